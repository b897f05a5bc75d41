"""Sections on the judges of a board: consistency, agreement with people, themselves, and how they predict Elo."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite

from venire.arena.wording import few, interval_text
from venire.ratings.data.statistics import FEWEST_FOR_CORRELATION
from venire.ratings.methods.findings import (
    DroppedJudges,
    SoftEloByPeople,
)
from venire.ratings.peers.peer_evaluation import PeerEvaluation, SelfPeerGap
from venire.ratings.peers.self_preference import SelfPreferenceOdds
from venire.ratings.soft_elo.cross_validation import NearestWay
from venire.reports.board.record import BoardRecord
from venire.reports.documents.people import people_blocks
from venire.reports.sections import Block, Column, Gap, Paragraph, TextTable, columns_of, faint, known
from venire.reports.wording import counted

_NARROW = 111
"""Columns below which tables of judges leave out intervals, errors and the parts of a gap: no figure is cut."""

_OWN_BOUNDS = 1
"""Least width of the bounds of a method's own figures, by which a table of judges knows what to leave out first."""

_MAX_JUDGES = 40
"""Judges shown, those with the most verdicts: a crowd does not push the leaderboard off the screen."""

_MAX_PEERS = 40


def judge_sections(board: BoardRecord) -> Iterator[Block]:
    """The judges, and what people, their own Elo and their verdicts on themselves say of them."""
    facts = board.diagnostics
    yield from _consistency_sections(board)
    if facts.people is not None:
        yield Gap()
        yield from people_blocks(facts.people_document, f"Judges and people   votes: {facts.people.origin.value}")
    if (by_people := facts.finding(SoftEloByPeople)) is not None:
        yield from _left_out_sections(by_people)
    yield from _prediction_sections(board)
    if facts.peers is not None:
        yield from peer_sections(facts.peers, board.verdicts)


def peer_sections(found: PeerEvaluation, verdicts: str | None) -> Iterator[Block]:
    """What models that judge say of themselves, what the others say, and what their own verdicts move."""
    models, level = found.models[:_MAX_PEERS], f"{100 * found.level:g} %"
    positions = found.unit == "positions"
    places = 2 if positions else 3
    columns = [
        Column("model", [row.model for row in models]),
        Column("by itself", [_fixed(row.self_evaluation, places) for row in models], _NARROW),
        Column("by others", [_fixed(row.peer_evaluation, places) for row in models], _NARROW),
        Column("gap", [_fixed(row.gap.value, places, "+") for row in models]),
        Column(level, [_between(row.gap, places) for row in models]),
        Column("own odds", [_fixed(row.odds.value, 2, "+") for row in models]),
        Column(level, [_between(row.odds, 2) for row in models]),
        Column("moved", [_fixed(row.moved, 2, "+") for row in models]),
    ]
    yield Gap()
    yield TextTable(known(columns), f"Judges on themselves   verdicts: {verdicts}")
    gap = "positions (1 is the best)" if positions else "share of points lost"
    held = found.held
    beyond = f"that and its taste for {', '.join(held)}" if held else "that, and for what looks like its own"
    yield faint(
        f"gap: by itself less by others, {gap}; a sharp judge puts a good model, itself too, further ahead. "
        f"own odds: log odds for itself beyond {beyond}; above 0 it favours itself. "
        "moved: places by verdicts of models on themselves, below 0 to the better"
    )
    for reason in dict.fromkeys(row.odds.reason for row in found.models if row.odds.reason):
        names = [row.model for row in found.models if row.odds.reason == reason]
        yield faint(f"no own odds: {few(names)}: {reason}")
    for warning in found.warnings:
        yield Paragraph(f"note: {warning}")


def _fixed(value: float | None, places: int, sign: str = "") -> str:
    if value is None:
        return ""
    return f"{value:{sign}.{places}f}" if round(value, places) else f"{0:.{places}f}"


def _between(found: SelfPeerGap | SelfPreferenceOdds, places: int) -> str:
    return interval_text(found.lo, found.hi, f".{places}f")


def _consistency_sections(board: BoardRecord) -> Iterator[Block]:
    """A line a judge; on a narrow screen without intervals, errors and the share of first places."""
    level = percent(board.diagnostics.level)
    judges = sorted(board.judges, key=lambda row: -row.verdicts)[:_MAX_JUDGES]
    rows = sorted(judges, key=lambda row: row.judge)
    notes = list(dict.fromkeys(row.note for row in rows if row.note))
    marks: dict[str | None, str] = {note: "*" * count for count, note in enumerate(notes, start=1)}
    names = [row.judge for row in rows]
    columns = [
        Column("judge", names),
        *figure_columns(
            {name: [found.get(judge) for judge in names] for name, found in board.judge_figures.items()},
            _two_places,
            level,
        ),
        Column("consistency", [_corrected(row.corrected, row.consistency) + marks.get(row.note, "") for row in rows]),
        Column(level, [interval_text(row.consistency_lo, row.consistency_hi, ".2f") for row in rows], _NARROW),
        Column("decisive", [_corrected(row.decisive_corrected, row.decisive) for row in rows]),
        Column(level, [interval_text(row.decisive_lo, row.decisive_hi, ".2f") for row in rows], _NARROW),
        Column("slope", ["" if row.discrimination is None else f"{row.discrimination:.2f}" for row in rows]),
        Column("ties", [_share(row.ties) for row in rows]),
        Column("flips", [_share(row.flips) for row in rows]),
        Column("1st", [_share(row.first) for row in rows], _NARROW),
        Column("read", [_share(row.readable) for row in rows]),
        Column("verdicts", [f"{row.verdicts}" for row in rows]),
    ]
    if rows:
        yield TextTable(_errors_where_they_fit(known(columns)), f"Judges   verdicts: {board.verdicts}")
    if len(board.judges) > _MAX_JUDGES:
        left = len(board.judges) - _MAX_JUDGES
        yield faint(f"and {left} judges with fewer verdicts: all of them in `venire rate --json`")
    for note in notes:
        yield faint(f"{marks[note]} {note}")
    if "ability" in board.judge_figures:
        yield faint(_ability_note(board))
    if rows:
        yield Paragraph("narrow terminal: intervals and 1st in `venire rate --json`", "faint", below_width=_NARROW)


def _errors_where_they_fit(columns: Sequence[Column]) -> list[Column]:
    """Errors and intervals of a method's own figures are left out on a screen too narrow for the whole table."""

    def room(shown: Sequence[Column]) -> int:
        return sum(2 + max(map(len, (column.head, *column.cells))) for column in shown) - 2

    least = room(columns)
    if least <= _NARROW:
        least = room([column for column in columns if column.least_width < _NARROW])
    errors = [column.head.endswith(" se") or column.least_width == _OWN_BOUNDS for column in columns]
    return [replace(one, least_width=least) if error else one for one, error in zip(columns, errors, strict=True)]


def _corrected(corrected: float | None, plain: float | None) -> str:
    """A score without what few instructions add, as its interval is about it, within the scale."""
    return to_three_places(plain if corrected is None else min(max(corrected, 0.0), 1.0))


_SIGNALS = {"hard": "hard", "scaled_hard": "scaled", "smoothed": "smoothed", "soft": "soft"}
"""Ways to use a judge, as fields of `SignalAccuracy`, and heads of columns."""


def _left_out_sections(by_people: SoftEloByPeople) -> Iterator[Block]:
    """How far each way to use a judge is from people, every model left out in turn; all judges together come last."""
    lines = [(one.judge or "the judge", one.leave_one_out) for one in by_people.judges_by_people]
    if len(lines) > 1:
        lines.append(("all together", by_people.baselines))
    rows = [
        [
            name,
            *(f"{getattr(found, one).mae:.0f}" for one in _SIGNALS),
            *(to_three_places(one.spearman) for one in (found.hard, found.soft)),
        ]
        for name, found in lines
        if found is not None
    ]
    if not rows:
        return
    yield Gap()
    head = ["judge", *(f"MAE {name}" for name in _SIGNALS.values()), "Spearman hard", "Spearman soft"]
    yield TextTable(columns_of(head, rows), "Judges' ratings beside people's, each model left out in turn")
    yield faint(
        "MAE in Elo points; hard: verdicts; scaled: these times one constant; smoothed: wins count as the best of nine "
        "shares; soft: probabilities from scores, sigma(beta score)"
    )
    nearest = next((found.nearest for _, found in reversed(lines) if found is not None), None)
    if nearest is not None:
        yield Paragraph(_take_text(nearest))


_METHOD_OF_WAY = {"hard": "hard-elo", "scaled-hard": "scaled-elo", "smoothed": "smoothed-elo", "soft": "soft-elo"}


def _take_text(nearest: NearestWay) -> str:
    """Which way to use the judges, and how sure that is."""
    way, than = (_SIGNALS[name.replace("-", "_")] for name in (nearest.way, nearest.than))
    figures = (
        f"{nearest.nearer:.0f} points of MAE, 95 % {nearest.lo:.0f} to {nearest.hi:.0f}, {nearest.models} models, "
        "the share chosen without each"
    )
    if nearest.differs:
        return f"take --method {_METHOD_OF_WAY[nearest.way]}: {way} is nearer to people than {than} by {figures}"
    return f"not told apart: {way} is nearest to people, before {than} by {figures}; any may be taken"


def _prediction_sections(board: BoardRecord) -> Iterator[Block]:
    """How well each score of the judges predicts their own Elo."""
    head = [
        "Elo of judges from",
        "judges",
        "Pearson",
        "95 %",
        "Spearman",
        "Kendall",
        "MAE left out",
        "over sd",
        "limit",
    ]
    rows = []
    for one in board.diagnostics.elo_from_consistency:
        for name, line in ((one.score, one.all), (f"{one.score}, {one.cluster}", one.top)):
            if line.pearson is None:
                continue
            left, share = line.mae_left_out, line.reliability
            over = None if left is None or not line.sd else left / line.sd
            limit = None if share is None else max(share, 0.0) ** 0.5
            lo, hi = line.intervals.get("pearson", (None, None))
            between = interval_text(lo, hi, ".2f")
            figures = [
                to_three_places(line.pearson),
                between,
                to_three_places(line.spearman),
                to_three_places(line.kendall),
            ]
            error = "" if left is None else f"{left:.0f}"
            rows.append([name, f"{len(line.judges)}", *figures, error, to_three_places(over), to_three_places(limit)])
    if rows:
        yield Gap()
        yield TextTable(columns_of(head, rows), f"Judges by their own Elo   verdicts: {board.verdicts}")
        top = board.diagnostics.elo_from_consistency[0]
        if len(top.top.judges) < FEWEST_FOR_CORRELATION:
            held = f"{top.cluster}: {counted(len(top.top.judges), 'judge')}"
            yield faint(f"no line of the best judges alone ({held}): a correlation takes {FEWEST_FOR_CORRELATION}")


def percent(level: float) -> str:
    """A level as the head of a column of intervals."""
    return f"{100 * level:g} %"


def to_three_places(value: float | None) -> str:
    """A figure to three places; nothing where it is not known."""
    return "" if value is None else f"{value:.3f}"


def _ability_note(board: BoardRecord) -> str:
    """What the figure is, which no head of a column can say."""
    text = "ability: how sharply a judge follows the order that all imply together; mean 1, below 0: against it"
    left_out = board.diagnostics.finding(DroppedJudges)
    if left_out is not None and any(isfinite(one.ability) for one in left_out.dropped):
        text += "; of judges left out: on the scale of the first fit"
    return text


def figure_columns(
    figures: Mapping[str, Sequence[float | None]], write: Callable[[float], str], level: str
) -> list[Column]:
    """The columns of a method's own figures; bounds `_lo` and `_hi` are one, beside a figure headed by `level`."""
    columns = []
    for name, values in figures.items():
        base, end = name[:-3], name[-3:]
        if end == "_lo":
            bounds = zip(values, figures[f"{base}_hi"], strict=True)
            head = level if base in figures else base.replace("_", " ")
            columns.append(Column(head, [interval_text(lo, hi, write) for lo, hi in bounds], _OWN_BOUNDS))
        elif end != "_hi":
            columns.append(Column(name.replace("_", " "), ["" if value is None else write(value) for value in values]))
    return columns


def _two_places(value: float) -> str:
    return f"{value:.2f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
