"""Sections on a board: models by rating, judges by consistency, the method's findings, and reasons to doubt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from venire.arena.wording import few, interval_text
from venire.ratings.methods.findings import (
    AbilitySign,
    ConformalCoverage,
    ContradictedVotes,
    CovariateEffect,
    CovariateEffects,
    DroppedJudges,
    JudgesWithoutAbility,
    SoftEloByPeople,
)
from venire.ratings.methods.methods import METHODS
from venire.reports.board.diagnostics import (
    Diagnostics,
    InputCounts,
    JudgeJackknife,
    ReferenceAgreement,
    ReferenceReading,
)
from venire.reports.board.judge_sections import figure_columns, judge_sections, percent, to_three_places
from venire.reports.board.model_rows import ModelRow
from venire.reports.board.record import BoardRecord
from venire.reports.board.source_sections import source_sections
from venire.reports.figure_tables import figure_sections
from venire.reports.grade_sections import edit_sections, grade_sections
from venire.reports.sections import Block, Column, Gap, Paragraph, TextTable, columns_of, faint, known
from venire.reports.wording import counted, elo_text

_FEW_UNITS = 20
"""Instructions below which intervals of judges are wide and only roughly right: docs/judges.md."""

_MAX_NAMED = 5
"""Judges that are named; all of them stand in `venire rate --json`."""


def board_sections(board: BoardRecord) -> Iterator[Block]:
    """Models by rating and judges by consistency, with what a reader needs to doubt them."""
    facts = board.diagnostics
    if board.grades is not None and not facts.counts.verdicts:  # nobody has set one model above another
        yield from grade_sections(board.grades)
        return
    if not board.models and facts.reason:
        yield Paragraph(f"no ratings: {facts.reason}")
        return
    if board.models:
        yield from _model_sections(board)
    if facts.source is not None:
        yield from source_sections(facts.source)
    if facts.reference is not None:
        yield from _reference_sections(facts.reference)
    yield from _doubt_sections(board)
    yield from judge_sections(board)
    if board.edits:
        yield Gap()
        yield from edit_sections(board.edits, facts.level, board.verdicts)
    if board.grades is not None:
        yield Gap()
        yield from grade_sections(board.grades)
    yield from figure_sections(facts.figures)


def _model_sections(board: BoardRecord) -> Iterator[Block]:
    rows = board.models
    columns = [
        Column("", [f"{rank}" for rank in range(1, len(rows) + 1)]),
        Column("model", [row.model for row in rows]),
        _rating_column(board),
        Column(percent(board.diagnostics.level), [_interval(board, row) for row in rows]),
        Column("rank", [_ranks(row) for row in rows]),
        Column("judgments", [f"{row.battles}" for row in rows]),
    ]
    figures = {name: [row.figures[name] for row in rows] for name in rows[0].figures}
    columns += figure_columns(figures, _figure, percent(board.diagnostics.level))
    columns += [
        Column("reference", ["" if row.reference is None else f"{row.reference:.0f}" for row in rows]),
        Column("group", [f"{row.group or ''}" for row in rows]),
    ]
    title = f"Leaderboard   {board.method}   verdicts: {board.verdicts}"
    if (coins := board.diagnostics.coins_text) is not None:
        yield Paragraph(f"WORRY: {coins}", "worry")
    yield TextTable(known(columns), title, name=1)


def _rating_column(board: BoardRecord) -> Column:
    """Ratings, or places where the method gives an order and no ratings."""
    if board.ordered:
        return Column("position", ["none" if row.position is None else f"{row.position:.4g}" for row in board.models])
    return Column("Elo", [elo_text(row.elo, row.lo, row.hi) for row in board.models])


def _doubt_sections(board: BoardRecord) -> Iterator[Block]:
    facts = board.diagnostics
    rated = f"{board.gauge}; errors: {_errors(facts)}; " if board.models else ""
    if board.ordered:  # an order has no gauge
        rated = "" if facts.errors == "none" else f"ranks: {_errors(facts)}; "
    yield faint(f"{_judgment_counts(facts.counts)}; {rated}judges: {_jackknife(facts.jackknife)}")
    if facts.estimand is not None:
        yield faint(f"{percent(facts.level)} intervals: {facts.estimand}")
    yield from method_note_sections(facts)
    for note in facts.doubts:
        yield Paragraph(f"note: {note}")
    for reason in dict.fromkeys(facts.no_estimate.values()):
        names = [name for name, why in facts.no_estimate.items() if why == reason]
        yield Paragraph(f"no rating: {few(names)}: {reason}")
    if any(row.elo is None and (row.lo, row.hi) != (None, None) for row in board.models):
        yield Paragraph(
            f"over, under: one-sided {percent(facts.level)} bounds, opponents' ratings held",
        )
    if board.unrated:
        # Without any rating a method of judges' abilities lacks their scale, which a prior of ratings does not give.
        takes = "ridge" in METHODS[board.method].options and any(row.elo is not None for row in board.models)
        method = "" if takes or board.method == "bradley-terry" else "--method bradley-terry "
        yield Paragraph(f"{method}--ridge 0.1, a weak prior, gives every model a rating")
    by_people, effects = facts.finding(SoftEloByPeople), facts.finding(CovariateEffects)
    if by_people is not None and by_people.conformal is not None:
        yield from _conformal_sections(by_people.conformal)
    if effects is not None and effects.covariates:
        yield from _covariate_sections(effects.covariates, facts.level)
    bad = {name: count for name, count in facts.counts.statuses.items() if count and name != "ok"}
    if bad:
        yield Paragraph("not read: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in bad.items()))
    if len(facts.groups) > 1:
        yield Paragraph("no common estimate exists: these groups were rated apart")
        for group in facts.groups:
            yield Paragraph("  " + ", ".join(group))
    if (agreement := facts.agreement) is not None:
        said = _format_agreement(agreement)
        yield Paragraph(f"agreement with the reference: {said}   verdicts: {agreement.verdicts}")
    elif any(row.reference is not None for row in board.models):
        yield Paragraph(f"agreement with the reference: none: {facts.agreement_reason}")
    yield Gap()


def _jackknife(found: JudgeJackknife) -> str:
    """What judges' intervals rest on."""
    few = f", fewer than {_FEW_UNITS}: rough" if found.unit == "instruction" and found.units < _FEW_UNITS else ""
    return f"jackknife over {counted(found.units, found.unit)}{few}"


def _judgment_counts(facts: InputCounts) -> str:
    """What the judgments were made from, and what of that decides nothing."""
    counts = f"{facts.judgments} judgments, {facts.ties} ties"
    if facts.ballots is not None:
        return f"pairs of {facts.ballots} ballot{'' if facts.ballots == 1 else 's'}; {counts}"
    if facts.merge == "none":
        flips = f"; {facts.flips} times the order turned the winner" if facts.flips else ""
        return f"each verdict for itself; {facts.judgments} verdicts, {facts.ties} ties{flips}"
    flips = f"{facts.flips} flipped with the order"
    flips += f", {facts.one_order} seen in one order only" if facts.one_order else ""
    return f"{facts.merge} of both orders; {counts}, {flips}"


def _format_agreement(agreement: ReferenceAgreement) -> str:
    """Correlations with the reference with their intervals, and the error where it is in the reference's unit.

    Of an order there are those of ranks alone, since places are no ratings.
    """
    parts = []
    for name in ("pearson", "spearman", "kendall"):
        value: float | None = getattr(agreement, name)
        if value is not None:
            lo, hi = agreement.intervals.get(name, (None, None))
            between = f" ({words})" if (words := interval_text(lo, hi, ".2f")) else ""
            parts.append(f"{name.capitalize()} {value:.3f}{between}")
    if agreement.mae is not None:
        parts.append(f"MAE {agreement.mae:.0f} Elo")
    elif agreement.mae_line is not None:
        wide = f"ratings spread {agreement.spread:.1f} times as wide as the reference's"
        parts.append(f"MAE after the best line {agreement.mae_line:.3g} points ({wide})")
    return f"{agreement.models} models, " + ", ".join(parts)


def _conformal_sections(conformal: ConformalCoverage) -> Iterator[Block]:
    """What intervals for people's ratings promise, beside what they held; and why one may not be believed."""
    if conformal.expected is not None and conformal.observed is not None:
        yield faint(
            f"conformal intervals: {conformal.observed:.0%} of the models that people rated are within, "
            f"{conformal.expected:.0%} expected"
        )
    if conformal.splits:
        parts = (f"{name} {one.observed:.0%} within, {one.width:.0f} wide" for name, one in conformal.splits.items())
        expected = next((one.expected for one in conformal.splits.values()), None)
        wanted = "" if expected is None else f" ({expected:.0%} expected)"
        yield Paragraph(
            f"calibrated on 70 % of the models, tested on the others, five times{wanted}: {'; '.join(parts)}"
        )
    for warning in conformal.warnings:
        yield Paragraph(f"note: {warning}")


def _covariate_sections(effects: Sequence[CovariateEffect], level: float) -> Iterator[Block]:
    """What each covariate is worth, in log odds a unit of it."""
    rows = [
        [
            one.name,
            _signed(one.coefficient),
            _signed(one.se),
            interval_text(one.lo, one.hi, ".3f"),
            to_three_places(one.p),
        ]
        for one in effects
    ]
    yield Gap()
    yield TextTable(columns_of(["covariate", "log odds", "se", percent(level), "p"], rows))


def _errors(facts: Diagnostics) -> str:
    """How the errors of ratings were found."""
    kind, comma, fitted = facts.errors.partition(",")
    if kind not in ("cluster", "two-way"):
        return facts.errors
    if facts.degrees is None:
        return "none"
    numbers = [
        max((fit[name] for fit in facts.fits if name in fit), default=facts.degrees + 1)
        for name in ("clusters", *(["respondents"] if kind == "two-way" else []))
    ]
    over = (f"{number:.0f} {unit}" for number, unit in zip(numbers, facts.cluster.split(" and "), strict=True))
    return f"{'two-way ' * (kind == 'two-way')}sandwich over {' and '.join(over)}{comma}{fitted}"


def _interval(board: BoardRecord, row: ModelRow) -> str:
    """The interval of a rated model; a model without a rating has its one bound in the rating's column."""
    if row.elo is None:
        return ""
    return interval_text(row.lo, row.hi) or ("no bound" if board.diagnostics.bootstrap.without_estimate else "")


def _ranks(row: ModelRow) -> str:
    if row.rank_lo is None or row.rank_hi is None:
        return ""
    return f"{row.rank_lo}" if row.rank_lo == row.rank_hi else f"{row.rank_lo}-{row.rank_hi}"


def _figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _signed(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def method_note_sections(facts: Diagnostics) -> Iterator[Block]:
    """The lines that a board's diagnostics ask for, as far as its method made them."""
    yield from map(faint, facts.selection)
    if (order := facts.finding(ContradictedVotes)) is not None:
        yield from _order_sections(order)
    if (sign := facts.finding(AbilitySign)) is not None and sign.sign.startswith("undecided"):
        yield Paragraph(f"note: the sign of the abilities is {sign.sign}")
    without = facts.finding(JudgesWithoutAbility)
    unknown = without.no_ability if without is not None else {}
    for reason in dict.fromkeys(unknown.values()):
        names = [name for name, why in unknown.items() if why == reason]
        yield Paragraph(f"no finite ability: {few(names)}: {reason}")
    left_out = facts.finding(DroppedJudges)
    dropped = left_out.dropped if left_out is not None else ()
    for one in dropped[:_MAX_NAMED]:
        yield Paragraph(f"left out: {one.judge}: {one.reason}")
    if len(dropped) > _MAX_NAMED:
        yield Paragraph(f"and {len(dropped) - _MAX_NAMED} more judges left out: all of them in `venire rate --json`")


def _order_sections(order: ContradictedVotes) -> Iterator[Block]:
    text = "proved to be the least" if order.proved else "not known to be the least"
    count = order.optimal_orders
    orders = (
        "" if count is None else "; no other order costs as little" if count == 1 else f"; {count:,} orders cost it"
    )
    yield faint(
        f"cost {order.cost:.10g}, the votes that this order contradicts, lower bound {order.lower_bound:.10g}: "
        f"{text}{orders}"
    )


def _reference_sections(reference: ReferenceReading) -> Iterator[Block]:
    """One line on the ratings of a file: how many were used, and which could not be."""
    shared = f"{reference.shared} of its {reference.ratings} models were judged"
    where = reference.file or ""
    if reference.people is not None:
        where = f"votes of {reference.people.name} ({reference.people.origin.value})"
    line = f"reference: {where}, {shared}"
    line += f" (not judged: {few(reference.not_judged)})" if reference.not_judged else ""
    line += f"; no reference for {few(reference.not_rated)}" if reference.not_rated else ""
    line += f"; in place of the store's {reference.replaces} ratings" if reference.replaces else ""
    yield faint(line)
