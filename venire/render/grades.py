"""Terminal output of a board's grades: accuracy of models, by category, and of each judge that grades."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console

from venire.arena.wording import few, interval_text, plain
from venire.render.screen import tabulate
from venire.reports.edits import EditContrast
from venire.reports.graded_pairs import DIRECT, REFERENCE
from venire.reports.grades import (
    AccuracyFilter,
    AccuracyTable,
    EchoTable,
    GradeBoard,
    GraderRow,
    RankAgreement,
    RankAgreementRow,
    ShareRow,
)
from venire.reports.wording import counted

_MAX_GRADERS = 40
_MAX_DROPPED = 10
_NARROW = 105
"""Columns below which Pearson's correlation and the distance are left to `venire rate --json`."""
_SEVERAL = 2


def show_grades(screen: Console, grades: GradeBoard) -> None:
    """Accuracy of the models by each protocol that grades answers, and by category; then the judges that grade."""
    for number, table in enumerate(grades.tables):
        if number:
            screen.print()
        _show_accuracy(screen, grades, table)
        if table.categories:
            _show_categories(screen, grades, table)
    if grades.agreement is not None:
        _show_rank_agreement(screen, grades, grades.agreement)
    if grades.echo is not None:
        if grades.tables:
            screen.print()
        _show_echoes(screen, grades, grades.echo)
    if len(grades.graders) >= _SEVERAL:
        _show_graders(screen, grades)
    for note in grades.notes:
        screen.print(f"note: {plain(note)}")


def _show_accuracy(screen: Console, grades: GradeBoard, table: AccuracyTable) -> None:
    rows = table.models
    columns: list[tuple[str, list[str]]] = [
        ("", [f"{place}" for place in range(1, len(rows) + 1)]),
        ("model", [plain(row.model) for row in rows]),
        ("accuracy", [_percent(row.accuracy) or "none" for row in rows]),
        (f"{100 * grades.level:g} %", [_interval(row.lo, row.hi) for row in rows]),
        ("correct", [f"{row.correct}" for row in rows]),
        ("attempted", [f"{row.attempted}" for row in rows]),
        ("not attempted", [_percent(row.not_attempted) for row in rows]),
        ("read", [_percent(row.parse_rate) for row in rows]),
    ]
    title = f"Accuracy   {plain(table.protocol)}   verdicts: {grades.verdicts}"
    cells = list(zip(*(cells for _, cells in columns), strict=True))
    tabulate(screen, [head for head, _ in columns], cells, name=1, title=title)
    screen.print(_basis(grades, table), style="dim")


def _basis(grades: GradeBoard, table: AccuracyTable) -> str:
    """What the figures of a table are, and what they rest on."""
    by = f"graded by {plain(few(table.judges))}"
    against = {
        REFERENCE: " against reference answers",
        DIRECT: " without reference answers: what the judges take for correct",
    }.get(table.protocol, "")
    errors = f"over {counted(table.instructions, 'instruction')}"
    errors = f"clustered {errors}" if grades.cluster != "none" else f"{errors}, answers as independent"
    campaigns = f"; campaigns: {plain(few(grades.campaigns))}" if len(grades.campaigns) > 1 else ""
    return f"share correct of attempted answers; {by}{against}; score intervals {errors}{campaigns}"


def _show_categories(screen: Console, grades: GradeBoard, table: AccuracyTable) -> None:
    """Accuracy by category; categories that do not fit beside each other stand below, in a table of their own."""
    names = ["model", *(plain(row.model) for row in table.models)]
    columns = [
        [plain(name) or "none", *(_with_interval(row.categories[name]) for row in table.models)]
        for name in table.categories
    ]
    screen.print()
    title: str | None = f"Accuracy by category   {plain(table.protocol)}   verdicts: {grades.verdicts}"
    for part in columns_by_width(names, columns, screen.width):
        heads = ["model", *(column[0] for column in part)]
        tabulate(screen, heads, list(zip(names, *part, strict=True))[1:], title=title)
        title = ""


def _show_rank_agreement(screen: Console, grades: GradeBoard, found: RankAgreement) -> None:
    """Correlations of ratings with accuracy: from all pairs, each kind of pair, of graders and of filtered models."""
    of_filtered = [found.filter.agreement] if found.filter is not None and found.filter.agreement is not None else []
    rows = [*found.rows, *of_filtered]
    known = [row for row in rows if row.kendall is not None]
    level = f"{100 * grades.level:g} %"
    screen.print()
    if known:
        columns: list[tuple[str, list[str]]] = [
            ("ratings from", [plain(row.ratings) for row in known]),
            ("judgments", ["" if row.judgments is None else f"{row.judgments}" for row in known]),
            ("share", [_percent(row.share) for row in known]),
            ("models", [f"{row.models}" for row in known]),
            ("Kendall", [_three(row.kendall) for row in known]),
            (level, [_of_row(row, "kendall") for row in known]),
            ("Spearman", [_three(row.spearman) for row in known]),
            (level, [_of_row(row, "spearman") for row in known]),
            ("Pearson", [_three(row.pearson) if screen.width >= _NARROW else "" for row in known]),
            ("distance", [_percent(row.distance) if screen.width >= _NARROW else "" for row in known]),
        ]
        columns = [(head, cells) for head, cells in columns if any(cells)]
        title = f"Rank agreement with accuracy   {plain(found.method)} and {plain(found.protocol)}   verdicts: "
        cells = list(zip(*(cells for _, cells in columns), strict=True))
        tabulate(screen, [head for head, _ in columns], cells, title=f"{title}{grades.verdicts}")
        screen.print(
            "discriminative: one answer right, one wrong; intervals are about other models of the same kind",
            style="dim",
        )
    for reason in dict.fromkeys(row.reason for row in rows if row.kendall is None):
        names = ", ".join(plain(row.ratings) for row in rows if row.kendall is None and row.reason == reason)
        screen.print(f"no rank agreement with accuracy: {names}: {plain(reason or '')}", style="dim")
    for note in known[0].notes if known else ():
        screen.print(f"note: {note}", style="dim")
    if found.ungraded:
        screen.print(f"{_percent(found.ungraded)} of verdicts on pairs have an answer without a grade", style="dim")
    if found.filter is not None:
        _show_filter(screen, found.filter)


def _show_filter(screen: Console, found: AccuracyFilter) -> None:
    """Which models a ranking by accuracy would keep, and why others fall."""
    rule = f"read above 90 %, accuracy above {found.baseline:.0%}, 1 point apart"
    models = counted(len(found.kept) + len(found.dropped), "model")
    screen.print(f"accuracy filter ({rule}): keeps {len(found.kept)} of {models}", style="dim")
    for name, reason in list(found.dropped.items())[:_MAX_DROPPED]:
        screen.print(f"  drops {plain(name)}: {plain(reason)}", style="dim")
    if len(found.dropped) > _MAX_DROPPED:
        screen.print(f"  and {len(found.dropped) - _MAX_DROPPED} more: `venire rate --json`", style="dim")


def _show_echoes(screen: Console, grades: GradeBoard, found: EchoTable) -> None:
    """How many answers of each model go on after their end, and which of two answers was preferred where one does."""
    level = f"{100 * grades.level:g} %"
    rows = [
        [
            plain(row.model),
            _percent(row.share) or "none",
            _interval(row.lo, row.hi),
            f"{row.graded}",
            _percent(row.graded / (row.graded + row.unparsed)),
        ]
        for row in found.models
    ]
    tabulate(screen, ["model", "echo", level, "graded", "read"], rows, title=f"Echoes   verdicts: {grades.verdicts}")
    screen.print(
        f"share of answers that go on after their end, by {plain(few(found.judges))}; score intervals as of accuracy",
        style="dim",
    )
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
    screen.print()
    tabulate(
        screen,
        ["pairs", "judgments", "one echoes", "other preferred", level],
        cells,
        title=f"Preference where one answer echoes   verdicts: {grades.verdicts}",
    )
    screen.print("as seen: an answer that echoes may be worse besides", style="dim")


def show_edits(screen: Console, edits: Sequence[EditContrast], level: float, verdicts: str | None) -> None:
    """How far each edit of a completion moves preference: over all judges by kind of pair, then by judge."""
    several = len({one.variant for one in edits}) > 1
    columns: list[tuple[str, list[str]]] = [
        ("edit", [plain(one.variant) if several else "" for one in edits]),
        ("judge", ["" if one.judge is None else plain(one.judge) for one in edits]),
        ("pairs", [one.pairs for one in edits]),
        ("battles", [f"{one.battles}" for one in edits]),
        ("A preferred", [_percent(one.unedited) for one in edits]),
        ("edit on A", [_percent(one.on_a) for one in edits]),
        ("edit on B", [_percent(one.on_b) for one in edits]),
        ("shift", [f"{one.shift:+.3f}" for one in edits]),
        (f"{100 * level:g} %", [_signed_interval(one) for one in edits]),
    ]
    shown = [(head, cells) for head, cells in columns if any(cells)]
    names = plain(few(sorted({one.variant for one in edits})))
    cells = list(zip(*(cells for _, cells in shown), strict=True))
    tabulate(screen, [head for head, _ in shown], cells, title=f"Edited completions: {names}   verdicts: {verdicts}")
    screen.print(
        "the same battles with the edit on either side; shift: how often A was preferred with the edit on A less with "
        "it on B, below 0 where it repels",
        style="dim",
    )
    for one in edits:
        if one.echoing and one.judge is None and one.pairs == edits[0].pairs:
            count = counted(one.echoing, "battle")
            screen.print(f"{count} left out for {plain(one.variant)}: an answer echoes without the edit", style="dim")


def _signed_interval(one: EditContrast) -> str:
    return interval_text(one.lo, one.hi, "+.3f")


def _three(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _of_row(row: RankAgreementRow, figure: str) -> str:
    lo, hi = row.intervals.get(figure, (None, None))
    return interval_text(lo, hi, ".2f")


def _show_graders(screen: Console, grades: GradeBoard) -> None:
    """What each judge of single completions said over all models."""
    graders: Sequence[GraderRow] = sorted(grades.graders, key=lambda row: -row.graded)[:_MAX_GRADERS]
    rows = [
        [
            plain(row.judge),
            plain(row.protocol),
            _percent(row.yes),
            _percent(row.not_attempted),
            _percent(row.graded / (row.graded + row.unparsed) if row.graded + row.unparsed else None),
            f"{row.graded}",
        ]
        for row in sorted(graders, key=lambda row: (row.protocol, row.judge))
    ]
    screen.print()
    heads = ["judge", "protocol", "yes", "not attempted", "read", "grades"]
    tabulate(screen, heads, rows, title=f"Judges that grade   verdicts: {grades.verdicts}")
    if len(grades.graders) > _MAX_GRADERS:
        left = len(grades.graders) - _MAX_GRADERS
        screen.print(f"and {left} judges with fewer grades: all of them in `venire rate --json`", style="dim")


def columns_by_width(names: Sequence[str], columns: Sequence[list[str]], width: int) -> Iterator[list[list[str]]]:
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


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _interval(lo: float | None, hi: float | None) -> str:
    return interval_text(lo, hi, lambda end: f"{100 * end:.1f}")


def _with_interval(row: ShareRow) -> str:
    if row.share is None:
        return "none"
    between = interval_text(row.lo, row.hi, lambda end: f"{100 * end:.0f}")
    return f"{row.share:.0%}" + (f" ({between})" if between else "")
