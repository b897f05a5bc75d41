"""Ratings from pairs beside accuracy: how far both give one order, by kind of pair, and under the accuracy filter.

Source: Remeli and Hardt 2026, *Correct Looks Better: Pairwise Comparisons Reveal Accuracy Rankings*, arXiv 2606.09409.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles, Grades
from venire.arena.errors import InputError
from venire.ratings.agreement.reference import Agreement, agreement
from venire.ratings.data.judgments import select_battles
from venire.ratings.data.models import filter_models
from venire.ratings.diagnostics.accuracy import PAIR_KINDS
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import METHODS, merge_selected, rate
from venire.ratings.pairwise.components import ranked_values
from venire.reports.board.board import Board
from venire.reports.graded_pairs import DIRECT, kinds_of_pairs
from venire.reports.grades import (
    AccuracyFilter,
    AccuracyTable,
    GradeBoard,
    GraderRow,
    JudgeRankAgreement,
    RankAgreement,
    RankAgreementRow,
)

_SECONDS = 1.0
"""Time limit of a method that proves its order, for each kind of pair."""


def with_rank_agreement(
    board: Board,
    grades: Grades,
    battles: Battles,
    options: Options,
    *,
    accuracy_baseline: float | Sequence[float] = 0.0,
    judge_models: Mapping[str, str] | None = None,
) -> Board:
    """The board with its order held against accuracy, where it has both: all pairs, each kind of pair, and graders.

    `grades` are those of the board's tables and `battles` the verdicts that its ratings come from. Models are filtered
    by `ratings.data.models.filter_models`; `accuracy_baseline` is the share (0 to 1) that guessing gets right, or
    several, each for a filter of its own. `judge_models` says which model each judge of pairs is. Raises InputError for
    a baseline outside [0, 1).
    """
    baselines = _baselines(accuracy_baseline)
    if board.grades is None or board.grades.accuracy is None or not len(battles.status):
        return board
    truth = board.grades.accuracy
    kinds = kinds_of_pairs(grades, truth.protocol, battles)
    total = len(merge_selected(battles, options))
    rows = [_row("all pairs", board_values(board), truth.accuracy, total, 1.0, options.level)]
    for code, kind in enumerate(PAIR_KINDS):
        rows.append(_rated_row(kind, battles, kinds == code, board.method, options, truth.accuracy, total))
    rows += _graders(board.grades.tables[1:], board.grades.graders, truth, options.level)
    ungraded = int(np.count_nonzero(kinds < 0)) / len(kinds)
    alone = "filtered models" if len(baselines) == 1 else None
    filters = [_filtered(board, battles, options, truth, baseline, total, alone) for baseline in baselines]
    judges = []
    for code in np.unique(battles.judge).tolist():
        name = battles.judges[code]
        own = _rated_row(name, battles, battles.judge == code, board.method, options, truth.accuracy, total)
        graded = _own_grades(board.grades, grades, (judge_models or {}).get(name))
        direct = None if graded is None else _row(name, graded, truth.accuracy, None, None, options.level)
        judges.append(JudgeRankAgreement(name, own, direct))
    found = RankAgreement(truth.protocol, board.method, tuple(rows), ungraded, tuple(filters), tuple(judges))
    return replace(board, grades=replace(board.grades, agreement=found))


def _own_grades(found: GradeBoard, grades: Grades, model: str | None) -> dict[str, float] | None:
    """The accuracies by a model that grades without the truth, None where it does not; of two alike the first."""
    if DIRECT not in (table.protocol for table in found.tables[1:]):
        return None
    for grader, own in zip(found.graders, grades.judge_models, strict=False):
        if own == model and grader.protocol == DIRECT:
            return _known(grader)
    return None


def _known(grader: GraderRow) -> dict[str, float]:
    return {model: value for model, value in grader.accuracy.items() if value is not None}


def _baselines(given: float | Sequence[float]) -> tuple[float, ...]:
    """The baselines in the order given, each once; raises InputError as `with_rank_agreement` does."""
    baselines = (given,) if isinstance(given, int | float) else tuple(dict.fromkeys(given))
    for baseline in baselines:
        if not 0.0 <= baseline < 1.0:
            raise InputError(f"the accuracy baseline is {baseline}; give the share that guessing gets right, 0 to 1")
    return baselines or (0.0,)


def board_values(board: Board) -> dict[str, float]:
    """The values that rank the board's models, higher being better, of the largest group that was rated together."""
    known = [row for row in board.models if (row.position if board.ordered else row.elo) is not None]
    sizes = Counter(row.group or 0 for row in known)
    group = min(sizes, key=lambda one: (-sizes[one], one), default=0)
    values = {
        row.model: row.elo if row.position is None else -row.position for row in known if (row.group or 0) == group
    }
    return {name: round(value, 6) for name, value in values.items() if value is not None}


def _rated_row(
    name: str,
    battles: Battles,
    rows: NDArray[np.bool_],
    method: str,
    options: Options,
    accuracy: Mapping[str, float],
    total: int,
) -> RankAgreementRow:
    """The agreement of ratings from some of the verdicts, or why there is none."""
    if not rows.any():
        return RankAgreementRow(name, 0, 0.0, 0, reason="there is no such pair")
    some = replace(select_battles(battles, rows), ballots=None)
    quick = replace(options, replicates=0, restarts=0)  # orders are compared, not intervals
    if "seconds" in METHODS[method].options:
        quick = replace(quick, seconds=min(options.seconds, _SECONDS))
    judgments = len(merge_selected(some, quick))
    share = judgments / total if total else 0.0
    try:
        values = ranked_values(rate(some, method, quick)) if judgments else {}
    except InputError as error:  # of fewer verdicts than a method needs
        return RankAgreementRow(name, judgments, share, 0, reason=str(error))
    return _row(name, values, accuracy, judgments, share, options.level)


def _row(
    name: str,
    values: Mapping[str, float],
    accuracy: Mapping[str, float],
    judgments: int | None,
    share: float | None,
    level: float,
) -> RankAgreementRow:
    # Values that print alike are ties.
    met = agreement(values, {model: round(value, 6) for model, value in accuracy.items()}, level=level)
    kept = ("kendall", "spearman", "pearson", "distance")
    return RankAgreementRow(
        ratings=name,
        judgments=judgments,
        share=share,
        models=met.models,
        kendall=met.kendall,
        spearman=met.spearman,
        pearson=met.pearson,
        distance=met.distance,
        intervals={figure: met.intervals[figure] for figure in kept if figure in met.intervals},
        reason=_reason(met, values, accuracy),
        notes=met.notes,
    )


def _reason(met: Agreement, values: Mapping[str, float], accuracy: Mapping[str, float]) -> str | None:
    """Why there is no figure: often few models could be rated together, though more were graded."""
    if met.reason is None or len(values) >= len(accuracy):
        return met.reason
    return f"{met.reason}, and {len(values)} could be rated together (--ridge 0.1, a weak prior, rates all)"


def _graders(
    tables: Sequence[AccuracyTable], graders: Sequence[GraderRow], truth: AccuracyTable, level: float
) -> list[RankAgreementRow]:
    """The same of judges that grade without the truth, which cost a call for each answer: together, and each alone."""
    rows = []
    for table in tables:
        rows.append(_row(table.protocol, table.accuracy, truth.accuracy, None, None, level))
        own = [one for one in graders if one.protocol == table.protocol]
        rows += [
            _row(f"{table.protocol}: {one.judge}", _known(one), truth.accuracy, None, None, level)
            for one in (own if len(own) > 1 else ())
        ]
    return rows


def _filtered(
    board: Board,
    battles: Battles,
    options: Options,
    truth: AccuracyTable,
    baseline: float,
    total: int,
    name: str | None,
) -> AccuracyFilter:
    """The models that the accuracy filter keeps of those rated and graded, and the agreement among them.

    `name` is what their ratings are called; None: as the filter is.
    """
    rated = set(battles.models)
    graded = [row for row in truth.models if row.model in rated and row.model in truth.accuracy]
    found = filter_models(
        [row.model for row in graded],
        [truth.accuracy[row.model] for row in graded],
        [row.parse_rate for row in graded],
        baseline=baseline,
        seed=options.seed,
    )
    among = AccuracyFilter(baseline, found.kept, found.dropped)
    if not found.dropped:
        return among
    inside = np.isin(battles.models, found.kept)
    rows = inside[battles.model_a] & inside[battles.model_b]
    accuracy = {name: truth.accuracy[name] for name in found.kept}
    return replace(
        among, agreement=_rated_row(name or among.name, battles, rows, board.method, options, accuracy, total)
    )
