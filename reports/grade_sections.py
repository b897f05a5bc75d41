"""Sections on a board's grades and edits: accuracy of models, by category, of each judge that grades, and echoes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from venire.arena.battles import GOLD
from venire.arena.wording import few, interval_text
from venire.reports.edits import EditContrast
from venire.reports.graded_pairs import DIRECT, REFERENCE
from venire.reports.grades import (
    AccuracyFilter,
    AccuracyTable,
    CorrectedShare,
    EchoTable,
    GoldLabels,
    GradeBoard,
    GraderRow,
    RankAgreement,
    RankAgreementRow,
    ShareRow,
)
from venire.reports.sections import Block, Column, Gap, Paragraph, TextTable, columns_of, faint, known
from venire.reports.wording import counted

_MAX_GRADERS = 40
_MAX_DROPPED = 10
_NARROW = 105
"""Columns below which Pearson's correlation and the distance are left to `venire rate --json`."""
_SEVERAL = 2


def grade_sections(grades: GradeBoard) -> Iterator[Block]:
    """Accuracy of the models by each protocol that grades answers, and by category; then the judges that grade."""
    for number, table in enumerate(grades.tables):
        if number:
            yield Gap()
        yield from _accuracy_sections(grades, table)
        if table.categories:
            yield from _category_sections(grades, table)
    if grades.agreement is not None:
        yield from _rank_agreement_sections(grades, grades.agreement)
    if grades.echo is not None:
        if grades.tables:
            yield Gap()
        yield from _echo_sections(grades, grades.echo)
    if len(grades.graders) >= _SEVERAL:
        yield from _grader_sections(grades)
    for note in grades.notes:
        yield Paragraph(f"note: {note}")


def _accuracy_sections(grades: GradeBoard, table: AccuracyTable) -> Iterator[Block]:
    rows = table.models
    columns = [
        Column("", [f"{rank}" for rank in range(1, len(rows) + 1)]),
        Column("model", [row.model for row in rows]),
        Column("accuracy", [_percent(row.accuracy) or "none" for row in rows]),
        Column(f"{100 * grades.level:g} %", [_interval(row.lo, row.hi) for row in rows]),
        *_corrected_columns(grades, table),
        Column("correct", [f"{row.correct}" for row in rows]),
        Column("attempted", [f"{row.attempted}" for row in rows]),
        Column("not attempted", [_percent(row.not_attempted) for row in rows]),
        Column("read", [_percent(row.parse_rate) for row in rows]),
    ]
    yield TextTable(columns, f"Accuracy   {_source(grades, table)}", name=1)
    yield faint(_basis(grades, table))
    if table.gold is not None:
        yield faint(_gold_text(table.gold))


def _source(grades: GradeBoard, table: AccuracyTable) -> str:
    """Who says what is right, for a title."""
    return f"{table.protocol}   " + ("labels of people" if table.protocol == GOLD else f"verdicts: {grades.verdicts}")


def _corrected_columns(grades: GradeBoard, table: AccuracyTable) -> list[Column]:
    """Accuracy corrected for judges' errors with its interval, where answers of known truth tell these."""
    if table.gold is None or table.gold.errors is None:
        return []
    found = [row.corrected or CorrectedShare(None, None, None) for row in table.models]
    return [
        Column("corrected", [_percent(one.share) or "none" for one in found]),
        Column(f"{100 * grades.level:g} %", [_interval(one.lo, one.hi) for one in found]),
    ]


def _gold_text(gold: GoldLabels) -> str:
    """What the correction rests on, or why there is none."""
    if gold.errors is None:
        return f"not corrected for judges' errors: {gold.reason}"
    errors = gold.errors
    return (
        f"corrected for judges' errors: of {errors.right} verdicts on answers that are right by gold labels "
        f"{errors.sensitivity:.0%} say so, of {errors.wrong} on wrong ones {errors.specificity:.0%}; it takes for "
        "granted that they err alike on all models (Rogan-Gladen)"
    )


def _basis(grades: GradeBoard, table: AccuracyTable) -> str:
    """What the figures of a table are, and what they rest on."""
    by = f"{'labelled' if table.protocol == GOLD else 'graded'} by {few(table.judges)}"
    against = {
        REFERENCE: " against reference answers",
        DIRECT: " without reference answers: what the judges take for correct",
    }.get(table.protocol, "")
    errors = f"over {counted(table.instructions, 'instruction')}"
    if table.crossed:
        errors += f" and {len(table.judges)} {'people' if table.protocol == GOLD else 'judges'}"
    errors = f"clustered {errors}" if grades.cluster != "none" else f"{errors}, answers as independent"
    campaigns = f"; campaigns: {few(grades.campaigns)}" if len(grades.campaigns) > 1 else ""
    about = f"score intervals {errors}: {grades.estimand(table)}"
    return f"share correct of attempted answers; {by}{against}; {about}{campaigns}"


def _category_sections(grades: GradeBoard, table: AccuracyTable) -> Iterator[Block]:
    """Accuracy by category."""
    columns = [Column("model", [row.model for row in table.models])]
    columns += [
        Column(name or "none", [_with_interval(row.categories[name]) for row in table.models])
        for name in table.categories
    ]
    yield Gap()
    yield TextTable(columns, f"Accuracy by category   {_source(grades, table)}", divisible=True)


def _rank_agreement_sections(grades: GradeBoard, found: RankAgreement) -> Iterator[Block]:
    """Correlations of ratings with accuracy: from all pairs, each kind of pair, of graders and of filtered models."""
    rows = [*found.rows, *_filter_rows(found)]
    ranked = [row for row in rows if row.kendall is not None]
    level = f"{100 * grades.level:g} %"
    yield Gap()
    if ranked:
        columns = [
            Column("ratings from", [row.ratings for row in ranked]),
            Column("judgments", ["" if row.judgments is None else f"{row.judgments}" for row in ranked]),
            Column("share", [_percent(row.share) for row in ranked]),
            Column("models", [f"{row.models}" for row in ranked]),
            Column("Kendall", [_three(row.kendall) for row in ranked]),
            Column(level, [_of_row(row, "kendall") for row in ranked]),
            Column("Spearman", [_three(row.spearman) for row in ranked]),
            Column(level, [_of_row(row, "spearman") for row in ranked]),
            Column("Pearson", [_three(row.pearson) for row in ranked], _NARROW),
            Column("distance", [_percent(row.distance) for row in ranked], _NARROW),
        ]
        title = f"Rank agreement with accuracy   {found.method} and {found.protocol}   verdicts: {grades.verdicts}"
        yield TextTable(known(columns), title)
        yield faint("discriminative: one answer right, one wrong; intervals are about other models of the same kind")
    yield from _without_agreement(rows)
    for note in ranked[0].notes if ranked else ():
        yield faint(f"note: {note}")
    if found.ungraded:
        yield faint(f"{_percent(found.ungraded)} of verdicts on pairs have an answer without a grade")
    for one in found.filters:
        yield from _filter_sections(one)
    if len(found.judges) >= _SEVERAL:
        yield from _judge_sections(grades, found)


def _judge_sections(grades: GradeBoard, found: RankAgreement) -> Iterator[Block]:
    """Ratings from each judge's verdicts alone held against accuracy, beside the grades of the same model."""
    ranked = [one for one in found.judges if one.pairs.kendall is not None][:_MAX_GRADERS]
    level = f"{100 * grades.level:g} %"
    direct = [one.direct for one in ranked]
    if ranked:
        columns = [
            Column("pairs by", [one.judge for one in ranked]),
            Column("judgments", [f"{one.pairs.judgments}" for one in ranked]),
            Column("models", [f"{one.pairs.models}" for one in ranked]),
            Column("Kendall", [_three(one.pairs.kendall) for one in ranked]),
            Column(level, [_of_row(one.pairs, "kendall") for one in ranked]),
            Column("Spearman", [_three(one.pairs.spearman) for one in ranked], _NARROW),
            Column(level, [_of_row(one.pairs, "spearman") for one in ranked], _NARROW),
            Column("direct", [_three(row.kendall) if row else "" for row in direct]),
            Column(level, [_of_row(row, "kendall") if row else "" for row in direct], _NARROW),
        ]
        yield Gap()
        title = f"Rank agreement by judge   {found.method} and {found.protocol}   verdicts: {grades.verdicts}"
        yield TextTable(known(columns), title)
        yield faint("ratings from each judge's verdicts alone")
        if any(direct):
            yield faint(
                "direct: Kendall of the accuracies that the same model gives, grading without reference answers"
            )
    yield from _without_agreement([one.pairs for one in found.judges])
    if len(found.judges) > _MAX_GRADERS:
        yield faint(f"{_MAX_GRADERS} judges at most are shown: all of them in `venire rate --json`")


def _without_agreement(rows: Sequence[RankAgreementRow]) -> Iterator[Block]:
    """Why some rows have no figure, each reason once."""
    for reason in dict.fromkeys(row.reason for row in rows if row.kendall is None):
        names = few([row.ratings for row in rows if row.kendall is None and row.reason == reason], most=12)
        yield faint(f"no rank agreement with accuracy: {names}: {reason or ''}")


def _filter_rows(found: RankAgreement) -> Iterator[RankAgreementRow]:
    """Ratings of the models that each filter keeps: those of all pairs where it keeps all and others are beside it."""
    for one in found.filters:
        if one.agreement is not None:
            yield one.agreement
        elif len(found.filters) > 1:
            yield replace(found.rows[0], ratings=one.name)


def _filter_sections(found: AccuracyFilter) -> Iterator[Block]:
    """Which models a ranking by accuracy would keep, and why others fall."""
    rule = f"read above 90 %, {found.name}, 1 point apart"
    models = counted(len(found.kept) + len(found.dropped), "model")
    yield faint(f"accuracy filter ({rule}): keeps {len(found.kept)} of {models}")
    for name, reason in list(found.dropped.items())[:_MAX_DROPPED]:
        yield faint(f"  drops {name}: {reason}")
    if len(found.dropped) > _MAX_DROPPED:
        yield faint(f"  and {len(found.dropped) - _MAX_DROPPED} more: `venire rate --json`")


def _echo_sections(grades: GradeBoard, found: EchoTable) -> Iterator[Block]:
    """How many answers of each model go on after their end, and which of two answers was preferred where one does."""
    level = f"{100 * grades.level:g} %"
    rows = [
        [
            row.model,
            _percent(row.share) or "none",
            _interval(row.lo, row.hi),
            f"{row.graded}",
            _percent(row.graded / (row.graded + row.unparsed)),
        ]
        for row in found.models
    ]
    heads = ["model", "echo", level, "graded", "read"]
    yield TextTable(columns_of(heads, rows), f"Echoes   verdicts: {grades.verdicts}")
    yield faint(f"share of answers that go on after their end, by {few(found.judges)}; score intervals as of accuracy")
    if not found.pairs:
        return
    cells = [
        [
            row.pairs,
            f"{row.judgments}",
            _percent(row.one_echoes),
            _percent(row.clean.share) or "none",
            _interval(row.clean.lo, row.clean.hi),
        ]
        for row in found.pairs
    ]
    yield Gap()
    heads = ["pairs", "judgments", "one echoes", "other preferred", level]
    yield TextTable(columns_of(heads, cells), f"Preference where one answer echoes   verdicts: {grades.verdicts}")
    yield faint("as seen: an answer that echoes may be worse besides")


def edit_sections(edits: Sequence[EditContrast], level: float, verdicts: str | None) -> Iterator[Block]:
    """How far each edit of a completion moves preference: over all judges by kind of pair, then by judge."""
    several = len({one.variant for one in edits}) > 1
    columns = [
        Column("edit", [one.variant if several else "" for one in edits]),
        Column("judge", [one.judge or "" for one in edits]),
        Column("pairs", [one.pairs for one in edits]),
        Column("battles", [f"{one.battles}" for one in edits]),
        Column("A preferred", [_percent(one.unedited) for one in edits]),
        Column("edit on A", [_percent(one.on_a) for one in edits]),
        Column("edit on B", [_percent(one.on_b) for one in edits]),
        Column("shift", [f"{one.shift:+.3f}" for one in edits]),
        Column(f"{100 * level:g} %", [interval_text(one.lo, one.hi, "+.3f") for one in edits]),
    ]
    names = few(sorted({one.variant for one in edits}))
    yield TextTable(known(columns), f"Edited completions: {names}   verdicts: {verdicts}")
    yield faint(
        "the same battles with the edit on either side; shift: how often A was preferred with the edit on A less with "
        "it on B, below 0 where it repels"
    )
    for one in edits:
        if one.echoing and one.judge is None and one.pairs == edits[0].pairs:
            count = counted(one.echoing, "battle")
            yield faint(f"{count} left out for {one.variant}: an answer echoes without the edit")


def _three(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _of_row(row: RankAgreementRow, figure: str) -> str:
    lo, hi = row.intervals.get(figure, (None, None))
    return interval_text(lo, hi, ".2f")


def _grader_sections(grades: GradeBoard) -> Iterator[Block]:
    """What each judge of single completions said over all models."""
    graders: Sequence[GraderRow] = sorted(grades.graders, key=lambda row: -row.graded)[:_MAX_GRADERS]
    rows = [
        [
            row.judge,
            row.protocol,
            _percent(row.yes),
            _percent(row.not_attempted),
            _percent(row.graded / (row.graded + row.unparsed) if row.graded + row.unparsed else None),
            f"{row.graded}",
        ]
        for row in sorted(graders, key=lambda row: (row.protocol, row.judge))
    ]
    yield Gap()
    heads = ["judge", "protocol", "yes", "not attempted", "read", "grades"]
    yield TextTable(columns_of(heads, rows), f"Judges that grade   verdicts: {grades.verdicts}")
    if len(grades.graders) > _MAX_GRADERS:
        left = len(grades.graders) - _MAX_GRADERS
        yield faint(f"and {left} judges with fewer grades: all of them in `venire rate --json`")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _interval(lo: float | None, hi: float | None) -> str:
    return interval_text(lo, hi, lambda end: f"{100 * end:.1f}")


def _with_interval(row: ShareRow) -> str:
    if row.share is None:
        return "none"
    between = interval_text(row.lo, row.hi, lambda end: f"{100 * end:.0f}")
    return f"{row.share:.0%}" + (f" ({between})" if between else "")
