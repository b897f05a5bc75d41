"""Judges below a leaderboard: how firmly each decides, what the method found of it, and how both follow its own Elo."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from venire.render.screen import tabulate
from venire.reports.board import Board
from venire.wording import plain

__all__ = ["number", "percent", "show_judges", "show_predictions"]

_NARROW = 105
"""Columns below which intervals, errors and the share of first places are left out, so that no figure is cut."""

_JUDGES = 40
"""Judges shown, those with the most verdicts: a crowd does not push the leaderboard off the screen."""


def show_judges(screen: Console, board: Board) -> None:
    """A line a judge; on a narrow screen without intervals, errors and the share of first places."""
    wide, level = screen.width >= _NARROW, percent(board.diagnostics["level"])
    judges = sorted(board.judges, key=lambda row: -row.verdicts)[:_JUDGES]
    rows = sorted(judges, key=lambda row: row.judge)
    notes = list(dict.fromkeys(row.note for row in rows if row.note))
    marks: dict[str | None, str] = {note: "*" * number for number, note in enumerate(notes, start=1)}
    names = [row.judge for row in rows]
    columns: list[tuple[str, list[str]]] = [
        ("judge", [plain(name) for name in names]),
        *(
            (name.replace("_", " "), [_figure(found, judge) for judge in names])
            for name, found in board.judge_figures.items()
            if wide or not name.endswith("_se")
        ),
        ("consistency", [number(row.consistency) + marks.get(row.note, "") for row in rows]),
        (level, [_span(row.consistency_lo, row.consistency_hi) if wide else "" for row in rows]),
        ("decisive", [number(row.decisive) for row in rows]),
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
    if "ability" in board.judge_figures:
        screen.print(_ability(board), style="dim")
    if not wide and rows:
        screen.print("narrow terminal: intervals and 1st in `venire rate --json`", style="dim")


def show_predictions(screen: Console, board: Board) -> None:
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
            figures = [number(value) for value in (line["pearson"], line["spearman"])]
            error = "" if left is None else f"{left:.0f}"
            rows.append([name, f"{len(line['judges'])}", *figures, error, number(over), number(limit)])
    if rows:
        screen.print()
        tabulate(screen, head, rows, title=f"Judges by their own Elo   verdicts: {board.verdicts}")


def percent(level: float) -> str:
    """A level as the head of a column of intervals."""
    return f"{100 * level:g} %"


def number(value: float | None) -> str:
    """A figure to three places; nothing where it is not known."""
    return "" if value is None else f"{value:.3f}"


def _ability(board: Board) -> str:
    """What the figure is, which no head of a column can say."""
    said = "ability: how sharply a judge follows the order that all imply together; mean 1, below 0: against it"
    dropped = board.diagnostics.get("dropped", ())
    if any(one["ability"] is not None for one in dropped):
        said += "; of judges left out: on the scale of the first fit"
    return said


def _figure(found: Mapping[str, float | None], judge: str) -> str:
    value = found.get(judge)
    return "" if value is None else f"{value:.2f}"


def _span(lo: float | None, hi: float | None) -> str:
    return "" if lo is None or hi is None else f"{lo:.2f}-{hi:.2f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
