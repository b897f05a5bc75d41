"""A board for eyes: models by rating, judges by consistency, and what a reader needs to doubt them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from venire.beside_board import show_reference
from venire.reports.board import Board
from venire.reports.comparison import Comparison
from venire.screen import plain, tabulate

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
    _show_judges(screen, board)
    _show_predictions(screen, board)


def _show_models(screen: Console, board: Board) -> None:
    columns: dict[str, list[str]] = {
        "": [f"{place}" for place in range(1, len(board.models) + 1)],
        "model": [plain(row.model) for row in board.models],
        "Elo": ["none" if row.elo is None else f"{row.elo:.0f}" for row in board.models],
        _percent(board.diagnostics["level"]): [_between(row.lo, row.hi, " to ") for row in board.models],
        "rank": [_between(row.rank_lo, row.rank_hi, "-") for row in board.models],
        "battles": [f"{row.battles}" for row in board.models],
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


def show_comparison(screen: Console, comparison: Comparison) -> None:
    """The rank of each model under each method, with how far it moved from the first method's."""
    head = ["model", *comparison.methods]
    rows = []
    for row in comparison.models:
        cells = [plain(row.model)]
        for rank, moved in zip(row.rank, row.moved, strict=True):
            cells.append("none" if rank is None else f"{rank}" + (f" ({moved:+d})" if moved else ""))
        rows.append(cells)
    rows.append(["Kendall's tau-b", *("" if one is None else f"{one:.3f}" for one in comparison.kendall)])
    tabulate(screen, head, rows, title=f"Rank by method, and places moved from {comparison.methods[0]}")
    if comparison.apart:
        methods = ", ".join(comparison.apart)
        screen.print(f"note: no common estimate exists under {methods}: the largest group of models alone is ranked")
    for name, reason in comparison.left_out.items():
        screen.print(f"left out: {name} {reason}", style="dim")


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
    flips = f"{facts['flips']} flipped with the order"
    flips += f", {facts['one_order']} seen in one order only" if facts["one_order"] else ""
    without = f", {boot['without_estimate']} without a finite estimate" if boot["without_estimate"] else ""
    rated = f"{board.gauge}; errors: {_errors(facts)}{without}; " if board.models else ""
    screen.print(
        f"{facts['merge']} of both orders; {facts['judgments']} judgments, {facts['ties']} ties, {flips}; "
        f"{rated}judges: {boot['replicates']} draws of {boot['unit']}s",
        style="dim",
    )
    for note in [*facts.get("notes", ()), *dict.fromkeys(fit.get("errors_reason") for fit in facts["fits"])]:
        if note:
            screen.print(f"note: {note}")
    for reason in dict.fromkeys(facts["no_estimate"].values()):
        names = [plain(name) for name, why in facts["no_estimate"].items() if why == reason]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        screen.print(f"no rating: {', '.join(names[:_NAMED])}{more}: {reason}")
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
        screen.print(
            f"agreement with the reference: Pearson {_number(agreement['pearson']) or 'none'}, "
            f"Spearman {_number(agreement['spearman']) or 'none'}, MAE {agreement['mae']:.0f} Elo   "
            f"verdicts: {agreement['verdicts']}"
        )
    screen.print()


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
            _number(one["p"]),
        ]
        for one in effects
    ]
    screen.print()
    tabulate(screen, ["covariate", "log odds", "se", _percent(level), "p"], rows)


def _errors(facts: Mapping[str, Any]) -> str:
    """How the errors of ratings were found."""
    if facts["errors"] != "cluster":
        return str(facts["errors"])
    if facts["degrees"] is None:
        return "none"
    return f"sandwich over {facts['degrees'] + 1:.0f} {facts['cluster']}"


_NAMED = 5
"""Models without a rating that are named for one reason; all of them stand in `venire rate --json`."""

_NARROW = 105
"""Columns below which the judges' intervals and the share of first places are left out, so that no figure is cut."""

_JUDGES = 40
"""Judges shown, those with the most verdicts: a crowd does not push the leaderboard off the screen."""


def _show_judges(screen: Console, board: Board) -> None:
    wide, level = screen.width >= _NARROW, _percent(board.diagnostics["level"])
    judges = sorted(board.judges, key=lambda row: -row.verdicts)[:_JUDGES]
    rows = sorted(judges, key=lambda row: row.judge)
    notes = list(dict.fromkeys(row.note for row in rows if row.note))
    marks: dict[str | None, str] = {note: "*" * number for number, note in enumerate(notes, start=1)}
    columns: list[tuple[str, list[str]]] = [
        ("judge", [plain(row.judge) for row in rows]),
        ("consistency", [_number(row.consistency) + marks.get(row.note, "") for row in rows]),
        (level, [_span(row.consistency_lo, row.consistency_hi) if wide else "" for row in rows]),
        ("decisive", [_number(row.decisive) for row in rows]),
        (level, [_span(row.decisive_lo, row.decisive_hi) if wide else "" for row in rows]),
        ("slope", ["" if row.discrimination is None else f"{row.discrimination:.2f}" for row in rows]),
        ("ties", [_share(row.ties) for row in rows]),
        ("flips", [_share(row.flips) for row in rows]),
        ("1st", [_share(row.first) if wide else "" for row in rows]),
        ("read", [_share(row.readable) for row in rows]),
        ("verdicts", [f"{row.verdicts}" for row in rows]),
    ]
    shown = [(head, cells) for head, cells in columns if any(cells)]
    if rows:
        cells = list(zip(*(cells for _, cells in shown), strict=True))
        tabulate(screen, [head for head, _ in shown], cells, title=f"Judges   verdicts: {board.verdicts}")
    if len(board.judges) > _JUDGES:
        left = len(board.judges) - _JUDGES
        screen.print(f"and {left} judges with fewer verdicts: all of them in `venire rate --json`", style="dim")
    for note in notes:
        screen.print(f"{marks[note]} {note}", style="dim")
    if not wide and rows:
        screen.print("narrow terminal: intervals and 1st in `venire rate --json`", style="dim")


def _percent(level: float) -> str:
    return f"{100 * level:g} %"


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


def _show_predictions(screen: Console, board: Board) -> None:
    """How well each score of the judges predicts their own Elo."""
    head = ["Elo of judges from", "judges", "Pearson", "Spearman", "MAE left out", "over sd", "limit"]
    rows = []
    for one in board.diagnostics.get("elo_from_consistency", ()):
        for name, line in ((one["score"], one["all"]), (f"{one['score']}, {one['cluster']}", one["top"])):
            if line["pearson"] is None:
                continue
            left, sd, share = line["mae_left_out"], line["sd"], line["reliability"]
            over = None if left is None or not sd else left / sd
            limit = None if share is None else max(share, 0.0) ** 0.5
            figures = [_number(value) for value in (line["pearson"], line["spearman"])]
            error = "" if left is None else f"{left:.0f}"
            rows.append([name, f"{len(line['judges'])}", *figures, error, _number(over), _number(limit)])
    if rows:
        screen.print()
        tabulate(screen, head, rows, title=f"Judges by their own Elo   verdicts: {board.verdicts}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _span(lo: float | None, hi: float | None) -> str:
    return "" if lo is None or hi is None else f"{lo:.2f}-{hi:.2f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
