"""A board for eyes: models by rating, judges by consistency, and what a reader needs to doubt them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from venire.render.comparisons import show_peers, show_reference
from venire.render.judges import number, percent, show_judges, show_predictions
from venire.render.method_notes import show_found
from venire.render.screen import tabulate
from venire.reports.board import Board
from venire.reports.comparison import Comparison
from venire.reports.wording import few
from venire.wording import plain

__all__ = ["show_board", "show_comparison"]


def show_board(screen: Console, board: Board) -> None:
    """Models by rating and judges by consistency, with what a reader needs to doubt them."""
    facts = board.diagnostics
    if not board.models and facts["reason"]:
        screen.print(f"no ratings: {facts['reason']}")
        return
    if board.models:
        _show_models(screen, board)
    if source := facts.get("source"):
        _show_source(screen, source)
    if reference := facts.get("reference"):
        show_reference(screen, reference)
    _show_doubts(screen, board)
    show_judges(screen, board)
    show_predictions(screen, board)
    if peers := facts.get("peers"):
        show_peers(screen, peers, board.verdicts)


def _show_models(screen: Console, board: Board) -> None:
    columns: dict[str, list[str]] = {
        "": [f"{place}" for place in range(1, len(board.models) + 1)],
        "model": [plain(row.model) for row in board.models],
        **_standing(board),
        percent(board.diagnostics["level"]): [_between(row.lo, row.hi, " to ") for row in board.models],
        "rank": [_between(row.rank_lo, row.rank_hi, "-") for row in board.models],
        "judgments": [f"{row.battles}" for row in board.models],
    }
    for name in board.models[0].figures:
        values = [row.figures[name] for row in board.models]
        columns[name.replace("_", " ")] = ["" if value is None else _figure(value) for value in values]
    if any(row.reference is not None for row in board.models):
        columns["reference"] = ["" if row.reference is None else f"{row.reference:.0f}" for row in board.models]
    if any(row.group is not None for row in board.models):
        columns["group"] = [f"{row.group or ''}" for row in board.models]
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    title = f"Leaderboard   {board.method}   verdicts: {board.verdicts}"
    tabulate(screen, list(shown), list(zip(*shown.values(), strict=True)), name=1, title=title)


def _standing(board: Board) -> dict[str, list[str]]:
    """Ratings, or places where the method gives an order and no ratings."""
    if board.ordered:
        return {"position": ["none" if row.position is None else f"{row.position:.4g}" for row in board.models]}
    return {"Elo": ["none" if row.elo is None else f"{row.elo:.0f}" for row in board.models]}


def show_comparison(screen: Console, comparison: Comparison) -> None:
    """The rank of each model under each method, with how far it moved from the first method's.

    Methods that do not fit beside each other stand below, in a table of their own.
    """
    names = ["model", *(plain(row.model) for row in comparison.models), "Kendall's tau-b"]
    columns = []
    for place, method in enumerate(comparison.methods):
        cells = [_moved(row.rank[place], row.moved[place]) for row in comparison.models]
        kendall = comparison.kendall[place]
        columns.append([method, *cells, "" if kendall is None else f"{kendall:.3f}"])
    title: str | None = f"Rank by method, and places moved from {comparison.methods[0]}"
    for part in _fitting(names, columns, screen.width):
        tabulate(
            screen, ["model", *(column[0] for column in part)], list(zip(names, *part, strict=True))[1:], title=title
        )
        title = ""
    if comparison.apart:
        methods = ", ".join(comparison.apart)
        screen.print(f"note: no common estimate exists under {methods}: the largest group of models alone is ranked")
    for name, reason in comparison.left_out.items():
        screen.print(f"left out: {name} {reason}", style="dim")


def _moved(rank: int | None, moved: int | None) -> str:
    return "none" if rank is None else f"{rank}" + (f" ({moved:+d})" if moved else "")


def _fitting(names: Sequence[str], columns: Sequence[list[str]], width: int) -> Iterator[list[list[str]]]:
    """The columns in parts, each as many as fit beside the names on a screen of this width, one at least."""
    part: list[list[str]] = []
    left = room = width - min(max(map(cell_len, names)), width // 3)  # longer names are broken
    for column in columns:
        size = 2 + max(map(cell_len, column))
        if part and size > left:
            yield part
            part, left = [], room
        part.append(column)
        left -= size
    yield part


def _show_source(screen: Console, source: Mapping[str, Any]) -> None:
    """What the files were taken for, and what became of their rows."""
    by = "by its columns; another: --format" if source["guessed"] else "as told"
    screen.print(f"format: {source['format']} ({by}); {source['verdicts']} verdicts", style="dim")
    if source["both_bad"]:
        counted = "counted as ties; --both-bad drop" if source["both_bad_as"] == "tie" else "left out; --both-bad tie"
        other = "leaves them out" if source["both_bad_as"] == "tie" else "counts them"
        screen.print(f"both bad: {source['both_bad']}, {counted} {other}")
    if source["itself"]:
        screen.print(f"left out: {source['itself']} rows in which a model meets itself")
    if source["note"]:
        screen.print(f"note: {source['note']}", style="dim")


def _show_doubts(screen: Console, board: Board) -> None:
    facts = board.diagnostics
    boot = facts["bootstrap"]
    without = f", {boot['without_estimate']} without a finite estimate" if boot["without_estimate"] else ""
    rated = f"{board.gauge}; errors: {_errors(facts)}{without}; " if board.models else ""
    if board.ordered:  # an order has no gauge
        rated = "" if facts["errors"] == "none" else f"ranks: {_errors(facts)}{without}; "
    screen.print(
        f"{_judged(facts)}; {rated}judges: {boot['replicates']} draws of {boot['unit']}s",
        style="dim",
    )
    show_found(screen, facts)
    for note in [*facts.get("notes", ()), *dict.fromkeys(fit.get("errors_reason") for fit in facts["fits"])]:
        if note:
            screen.print(f"note: {note}")
    for reason in dict.fromkeys(facts["no_estimate"].values()):
        names = [plain(name) for name, why in facts["no_estimate"].items() if why == reason]
        screen.print(f"no rating: {few(names)}: {reason}")
    if conformal := facts.get("conformal"):
        _show_conformal(screen, conformal)
    if effects := facts.get("covariates"):
        _show_covariates(screen, effects, facts["level"])
    bad = {name: count for name, count in facts["statuses"].items() if count and name != "ok"}
    if bad:
        screen.print("not read: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in bad.items()))
    if len(facts["groups"]) > 1:
        screen.print("no common estimate exists: these groups were rated apart")
        for group in facts["groups"]:
            screen.print("  " + plain(", ".join(group)))
    if agreement := facts["agreement"]:
        screen.print(f"agreement with the reference: {_agreed(agreement)}   verdicts: {agreement['verdicts']}")
    screen.print()


def _judged(facts: Mapping[str, Any]) -> str:
    """What the judgments were made from, and what of that decides nothing."""
    counts = f"{facts['judgments']} judgments, {facts['ties']} ties"
    if "ballots" in facts:
        return f"pairs of {facts['ballots']} ballot{'' if facts['ballots'] == 1 else 's'}; {counts}"
    if facts["merge"] == "none":
        flips = f"; {facts['flips']} times the order turned the winner" if facts["flips"] else ""
        return f"each verdict for itself; {facts['judgments']} verdicts, {facts['ties']} ties{flips}"
    flips = f"{facts['flips']} flipped with the order"
    flips += f", {facts['one_order']} seen in one order only" if facts["one_order"] else ""
    return f"{facts['merge']} of both orders; {counts}, {flips}"


def _agreed(agreement: Mapping[str, Any]) -> str:
    """Correlations with the reference; of an order those of ranks alone, since places are no ratings."""
    if agreement["mae"] is None:
        said = [f"{name} {number(agreement[name.lower()]) or 'none'}" for name in ("Spearman", "Kendall")]
        return ", ".join(said)
    said = [f"{name} {number(agreement[name.lower()]) or 'none'}" for name in ("Pearson", "Spearman")]
    return ", ".join([*said, f"MAE {agreement['mae']:.0f} Elo"])


def _show_conformal(screen: Console, conformal: Mapping[str, Any]) -> None:
    """What intervals for people's ratings promise, beside what they held; and why one may not be believed."""
    if conformal["expected"] is not None:
        screen.print(
            f"conformal intervals: {conformal['observed']:.0%} of the models that people rated are within, "
            f"{conformal['expected']:.0%} expected",
            style="dim",
        )
    for warning in conformal["warnings"]:
        screen.print(f"note: {warning}")


def _show_covariates(screen: Console, effects: Sequence[Mapping[str, Any]], level: float) -> None:
    """What each covariate is worth, in log odds a unit of it."""
    rows = [
        [
            plain(one["name"]),
            *(_signed(one[key]) for key in ("coefficient", "se")),
            _between_signed(one),
            number(one["p"]),
        ]
        for one in effects
    ]
    screen.print()
    tabulate(screen, ["covariate", "log odds", "se", percent(level), "p"], rows)


def _errors(facts: Mapping[str, Any]) -> str:
    """How the errors of ratings were found."""
    if facts["errors"] != "cluster":
        return str(facts["errors"])
    if facts["degrees"] is None:
        return "none"
    return f"sandwich over {facts['degrees'] + 1:.0f} {facts['cluster']}"


def _between(lo: float | None, hi: float | None, word: str) -> str:
    if lo is None or hi is None:
        return ""
    return f"{lo:.0f}" if word == "-" and lo == hi else f"{lo:.0f}{word}{hi:.0f}"


def _figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _signed(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _between_signed(effect: Mapping[str, Any]) -> str:
    return "" if effect["lo"] is None else f"{effect['lo']:.3f} to {effect['hi']:.3f}"
