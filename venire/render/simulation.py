"""The table of a simulation for eyes: figures of each variation over seeds, and what they come to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.console import Console

from venire.arena.wording import money, plain
from venire.experiments.contestants import ContestantField
from venire.experiments.experiment import Simulation
from venire.experiments.figures import FIGURES
from venire.experiments.results import FigureMean, conclusions, means
from venire.experiments.variations import StandIn, Variation
from venire.render.screen import tabulate
from venire.wording import duration

_ALWAYS = ("error", "pearson", "spearman", "kendall", "top", "half_width", "coverage")
_COSTS = ("calls", "dollars", "seconds", "unreadable")
_JUDGES = ("consistency", "decisive", "discrimination")


def show_simulation(
    screen: Console, found: Simulation, rows: Sequence[Variation], field: ContestantField, judges: Sequence[StandIn]
) -> None:
    """The table for eyes, with what it rests on above and what it comes to below."""
    seeds = 1 + max(run.number for run in found.runs)
    all_means = [means(found, place) for place in range(len(rows))]
    screen.print(_field_line(field))
    for one in judges:
        notes = f": {'; '.join(one.notes)}" if one.notes else ""
        screen.print(f"judge {plain(one.judge.name)}, {one.judge.protocol}, as {one.profile}{notes}")
    screen.print("")
    shown = [*_ALWAYS, *(name for name in ("unrated",) if any(row[name].mean for row in all_means))]
    _table(screen, rows, all_means, shown, f"verdicts: simulated; {seeds} seed{'s' * (seeds != 1)}; models")
    if any(row[name].mean is not None for row in all_means for name in _JUDGES):
        _table(screen, rows, all_means, _JUDGES, "verdicts: simulated; judges: correlation with their known slope")
    _table(screen, rows, all_means, _COSTS, "verdicts: simulated; what a run takes")
    screen.print(
        f"means over seeds, in brackets their spread (standard deviation); a mean's standard error is "
        f"{1 / math.sqrt(seeds):.2f} of it"
        if seeds > 1
        else "one seed: add --seeds 20 for spreads and comparisons"
    )
    screen.print(
        "error: mean distance from the known Elo in points, after the best line, since the judges' slopes make a "
        "scale of their own; half width is on that scale; coverage: of the ratings that the same judges would give "
        "in the long run"
    )
    for sentence in conclusions(found, rows):
        screen.print(plain(sentence))
    screen.print(_speed(found))


def _speed(found: Simulation) -> str:
    """How quick the simulation was, in a sentence."""
    pace = found.simulated / max(found.wall, 1e-9)
    return (
        f"simulated {duration(found.simulated)} in {duration(found.wall)}: {pace:,.0f} simulated seconds a second with "
        f"{found.workers} worker{'s' * (found.workers != 1)}"
    )


def _field_line(field: ContestantField) -> str:
    """The contestants in a sentence."""
    low, high = min(field.elo.values()), max(field.elo.values())
    kind = "a made-up field of known truth" if field.made_up else "the data of the file"
    out = f"; left out without Elo: {len(field.left_out)}" if field.left_out else ""
    return f"{len(field.elo)} models of {low:.0f} to {high:.0f} Elo on {field.instructions} instructions, {kind}{out}"


def _table(
    screen: Console,
    rows: Sequence[Variation],
    all_means: Sequence[Mapping[str, FigureMean]],
    names: Sequence[str],
    title: str,
) -> None:
    head = ("variation", *(FIGURES[name].heading for name in names))
    cells = [
        (plain(row.name), *(_cell(name, found[name], found["calls"].runs) for name in names))
        for row, found in zip(rows, all_means, strict=True)
    ]
    tabulate(screen, head, cells, title=title)
    screen.print("")


def _cell(name: str, one: FigureMean, runs: int) -> str:
    if one.mean is None:
        return "-"
    if one.runs < runs:
        return f"{_format_figure(name, one.mean)} ({one.runs} of {runs} seeds)"
    spread = "" if one.sd is None else f" ({_format_figure(name, one.sd)})"
    return _format_figure(name, one.mean) + spread


def _format_figure(name: str, value: float) -> str:
    if name in ("error", "half_width", "unrated", "long_run_error"):
        return f"{value:.1f}"
    if name in ("top", "coverage"):
        return f"{value:.2f}"
    if name == "unreadable":
        return f"{100 * value:.1f} %"
    if name == "dollars":
        return money(round(value * 1e9))
    if name == "seconds":
        return duration(value)
    return f"{value:,.0f}" if name in ("calls", "judgments") else f"{value:.3f}"
