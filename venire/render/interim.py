"""Interim analyses for eyes: how intervals shrank from round to round, and the models at the last analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from venire.arena.planning import InterimAnalysis, InterimRating
from venire.arena.wording import few, interval_text, money, plain
from venire.render.screen import tabulate
from venire.reports.wording import counted, elo_text, estimand_text
from venire.status import MIN_INSTRUCTIONS
from venire.storage.plans.rounds import analysis_of

_MAX_SHOWN = 10
"""Analyses that are shown, first and last among them."""

_UNKNOWN = 3
"""The last of four places in a table: below models with a rating or a bound of one."""

_MAX_MODELS = 40

_MAX_STARVED = 5


def show_interim(
    screen: Console,
    analyses: Sequence[tuple[int, InterimAnalysis]],
    *,
    judges: int,
    verdicts: str | None = None,
    first: int = 1,
) -> None:
    """A line an analysis of how the widest interval shrank, and the models at the last one; nothing of none.

    `analyses` have the rounds after which they were made, in order; that of the number `first` is shown as round 1.
    So many `judges` gave the verdicts, and `verdicts` says where these come from.
    """
    if not analyses:
        return
    analyses = [(number - first + 1, analysis) for number, analysis in analyses]
    origin = "" if verdicts is None else f"   verdicts: {verdicts}"
    screen.print()
    if len(analyses) > 1:
        _show_history(screen, analyses, judges, origin)
    number, last = analyses[-1]
    _show_models(screen, last, f"Known after round {number}{origin}")
    for warning in last.warnings:
        screen.print(plain(warning), style="yellow")


def show_rounds(screen: Console, facts: Mapping[str, Any], judges: int, missing: int = 0) -> None:
    """A campaign planned in rounds: a document of `rounds_document`; nothing where none was analysed.

    `missing` trials of its `judges` are still to be asked, of those that could not be.
    """
    if not facts["looks"] and len(facts["rounds"]) < 2:
        return
    last = facts["rounds"][-1]
    screen.print(plain(f"  round {len(facts['rounds'])}, phase {last['phase']} ({last['policy']})"))
    known = [(one["round"], analysis_of(one)) for one in facts["looks"]]
    if known and known[-1][1].stop is not None:
        screen.print(plain(f"  {'stopped' if missing else 'complete'}: {known[-1][1].stop}"))
    elif facts["stops_when"]:
        screen.print(f"  stops when {' or '.join(facts['stops_when'])}")
    show_interim(screen, known, judges=judges, first=facts["rounds"][0]["round"])


def format_last_interim(facts: Mapping[str, Any]) -> list[str]:
    """The last interim analysis and the rules to stop, a line each; nothing without an analysis.

    `facts` is a document of `storage.plans.rounds.rounds_document`.
    """
    if not facts["looks"]:
        return []
    last, first = facts["looks"][-1], facts["rounds"][0]["round"]
    phase = next(one["phase"] for one in facts["rounds"] if one["round"] == last["round"])
    lines = [f"after {format_interim(analysis_of(last), phase, last['round'] - first + 1)}"]
    if facts.get("stops_when"):
        lines.append(f"stops when {' or '.join(facts['stops_when'])}")
    return lines


def format_interim(analysis: InterimAnalysis, phase: str = "", number: int | None = None) -> str:
    """An interim analysis in a line."""
    head = "" if number is None else f"round {number}{f' ({phase})' if phase else ''}: "
    width = (
        ", no interval to stop by yet"
        if analysis.half_width is None
        else f", intervals to stop by within {analysis.half_width:.0f} points"
    )
    if analysis.half_width is None and analysis.instructions < MIN_INSTRUCTIONS:
        width = f", no interval to stop by (fewer than {MIN_INSTRUCTIONS} instructions)"
    left = "" if analysis.open is None else f", {counted(analysis.open, 'pair')} open"
    judged = f"{counted(analysis.battles, 'battle')} judged"
    return f"{head}{judged}{width}{left}, {money(analysis.nano)} spent{_starved(analysis.models)}"


def _starved(models: Sequence[InterimRating]) -> str:
    starved = [one.model for one in models if one.starved]
    return f"; too few battles: {few(starved, _MAX_STARVED)}" if starved else ""


def _show_history(screen: Console, analyses: Sequence[tuple[int, InterimAnalysis]], judges: int, origin: str) -> None:
    count = len(analyses)
    shown = sorted({round(place * (count - 1) / (_MAX_SHOWN - 1)) for place in range(_MAX_SHOWN)})
    columns: dict[str, list[str]] = {"round": [], "battles": [], "instructions": [], "spent": []}
    columns |= {"half width": [], "pairs open": [], "starved": []}
    for number, analysis in (analyses[place] for place in shown):
        starved = sum(one.starved for one in analysis.models)
        cells = (
            f"{number}",
            f"{analysis.battles:,}",
            f"{analysis.instructions:,}",
            money(analysis.nano),
            "none yet" if analysis.half_width is None else f"{analysis.half_width:.1f}",
            "" if analysis.open is None else f"{analysis.open:,}",
            f"{starved:,}" if starved else "",
        )
        for column, cell in zip(columns.values(), cells, strict=True):
            column.append(cell)
    kept = {head: cells for head, cells in columns.items() if any(cells)}
    some = f", {len(shown)} of {count}" if len(shown) < count else ""
    tabulate(screen, list(kept), list(zip(*kept.values(), strict=True)), title=f"Looks{some}{origin}")
    meaning = {
        "half width": "half width: of the widest interval at that look, in Elo points, about "
        f"{estimand_text('instructions', 'judges', judges)} (none yet: fewer than {MIN_INSTRUCTIONS} instructions, or "
        "a model that cannot be rated yet)",
        "pairs open": "pairs open: pairs of models whose order the rule to stop still waits for",
        "starved": "starved: models with too few battles to be rated well",
    }
    screen.print("; ".join(sentence for head, sentence in meaning.items() if head in kept), style="dim")


def _show_models(screen: Console, analysis: InterimAnalysis, title: str) -> None:
    rows = sorted(analysis.models, key=_place)
    level = f"{100 * analysis.level:g} %"
    columns = {
        "": [f"{place}" if _place(one)[0] < _UNKNOWN else "" for place, one in enumerate(rows[:_MAX_MODELS], start=1)],
        "model": [plain(one.model) for one in rows[:_MAX_MODELS]],
        "Elo": [elo_text(one.elo, one.low, one.high) for one in rows[:_MAX_MODELS]],
        f"{level} now": [_interval(one, one.low, one.high) for one in rows[:_MAX_MODELS]],
        f"{level} at any look": [_interval(one, one.low_any, one.high_any) for one in rows[:_MAX_MODELS]],
        "battles": [_battles(one) for one in rows[:_MAX_MODELS]],
    }
    kept = {head: cells for head, cells in columns.items() if any(cells)}
    if rows:
        tabulate(
            screen, list(kept), list(zip(*kept.values(), strict=True)), name=list(kept).index("model"), title=title
        )
    if len(rows) > _MAX_MODELS:
        screen.print(f"and {len(rows) - _MAX_MODELS} more models")
    if any(one.low is not None and one.high is not None for one in rows):
        screen.print(
            f"now: right for {level} of models if this were the only look, mostly wider than the board's, since a "
            "run may stop by them; at any look: wider still: right however often one looks, and whenever one stops",
            style="dim",
        )


def _place(one: InterimRating) -> tuple[int, float, str]:
    """Sort key: who only beat the rated models, these by rating, who only lost to them, and who is not known yet."""
    tier = 1 if one.elo is not None else 0 if one.low is not None else 2 if one.high is not None else _UNKNOWN
    return tier, -(one.elo or 0.0), one.model


def _battles(one: InterimRating) -> str:
    return f"{one.battles:,}, starved" if one.starved else f"{one.battles:,}"


def _interval(one: InterimRating, low: float | None, high: float | None) -> str:
    """An interval of a rated model; one without a rating has its bound in the rating's column."""
    return "" if one.elo is None else interval_text(low, high)
