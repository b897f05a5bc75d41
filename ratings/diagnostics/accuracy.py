"""Verdicts compared with answer correctness: kinds of pairs, a direct judge, and the effect of an echo.

Source: Remeli and Hardt 2026.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.arena.records import AnswerGrade
from venire.ratings.data.clustered import clustered_mean, score_interval
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import norm
from venire.ratings.data.validation import check_level, float_array
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import SeparatedError

PairKind = Literal["discriminative", "non-discriminative", "unattempted"]
PAIR_KINDS: tuple[PairKind, ...] = ("discriminative", "non-discriminative", "unattempted")


@dataclass(frozen=True, slots=True, eq=False)
class KindRatings:
    """Ratings from the pairs of one kind; None where there is no common estimate, with the reason in `why`."""

    kind: PairKind | Literal["all"]
    rows: int
    share: float
    ratings: Ratings | None
    why: str | None


@dataclass(frozen=True, slots=True, eq=False)
class DirectAccuracy:
    """Share correct among attempted answers (n,), its standard error, and the interval `lo` to `hi` at `level`.

    `attempted` and `graded` (n,) count answers; NaN where too few were attempted for a figure.
    """

    models: tuple[str, ...]
    accuracy: NDArray[np.float64]
    se: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    attempted: NDArray[np.int64]
    graded: NDArray[np.int64]
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class PreferenceShift:
    """P(A preferred | on A) - P(A preferred | on B) with an interval; below 0 the intervention repels the judge."""

    shift: float
    lo: float
    hi: float
    level: float


def pair_kinds(grade_a: ArrayLike, grade_b: ArrayLike) -> NDArray[np.int8]:
    """Codes into `PAIR_KINDS` (rows,) from the grades of both answers.

    Discriminative: one right and one wrong; non-discriminative: both the same; unattempted: either was not attempted.
    Raises `InputError` for a value that is not an `AnswerGrade`.

    >>> from venire.ratings import pair_kinds
    >>> pair_kinds([1, 1, 0], [0, 1, 0]).tolist()
    [0, 1, 1]
    """
    a, b = _answer_grades("grade_a", grade_a), _answer_grades("grade_b", grade_b)
    if a.shape != b.shape:
        raise InputError(f"grade_a has {len(a)} rows, grade_b {len(b)}; give one grade each a comparison")
    silent = (a == AnswerGrade.NOT_ATTEMPTED) | (b == AnswerGrade.NOT_ATTEMPTED)
    return np.where(silent, 2, (a == b).astype(np.int8)).astype(np.int8)


def rate_by_kind(
    data: Comparisons,
    grade_a: ArrayLike,
    grade_b: ArrayLike,
    method: Callable[[Comparisons], Ratings] = bradley_terry,
) -> tuple[KindRatings, ...]:
    """Ratings from all pairs, then from each of `PAIR_KINDS` alone; `method` rates a table of comparisons.

    `grade_a` and `grade_b` (rows,) are the grades of the completions, as in `pair_kinds`. A kind whose models have no
    common estimate has no ratings but a reason. Other errors of the method are passed on.

    >>> from venire.ratings import comparisons, rate_by_kind
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> [one.kind for one in rate_by_kind(data, [1, 1, 0, 1, 0, 0], [0, 1, 0, 0, 0, 1])]
    ['all', 'discriminative', 'non-discriminative', 'unattempted']
    """
    kinds = pair_kinds(grade_a, grade_b)
    if len(kinds) != len(data):
        raise InputError(f"there are {len(kinds)} grades of A and {len(data)} comparisons; give one a comparison")
    found = [_of_kind(data, "all", np.ones(len(data), dtype=np.bool_), method)]
    found += [_of_kind(data, kind, kinds == code, method) for code, kind in enumerate(PAIR_KINDS)]
    return tuple(found)


def direct_accuracy(
    model: ArrayLike,
    grade: ArrayLike,
    cluster: ArrayLike | None = None,
    judge: ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> DirectAccuracy:
    """Accuracy of each model by a judge that grades answers one at a time, from rows of answers.

    Source: the direct judge of Remeli and Hardt 2026.

    Models are sorted by name. The error is the standard error of a mean with n - 1, over clusters where `cluster`
    (rows,) is given, and two-way where a model has grades of five or more of `judge` (rows,) as well; the interval is
    that of `ClusteredMean.share_interval`; both NaN below two. Raises `InputError` for columns of unequal length, for a
    value that is not an `AnswerGrade`, and for a level outside (0, 1).

    >>> from venire.ratings import direct_accuracy
    >>> found = direct_accuracy(["a", "a", "b"], [1, 0, 1])
    >>> found.models
    ('a', 'b')
    """
    names, grades = np.asarray(model).astype(str), _answer_grades("grade", grade)
    if names.shape != grades.shape:
        raise InputError(f"model has {len(names)} rows, grade {len(grades)}; give one grade an answer")
    check_level(level)
    columns = []
    for name, column in (("cluster", cluster), ("judge", judge)):
        columns.append(None if column is None else np.asarray(column))
        if columns[-1] is not None and columns[-1].shape != grades.shape:
            raise InputError(f"{name} has {len(columns[-1])} rows, grade {len(grades)}; give one {name} an answer")
    found, code = np.unique(names, return_inverse=True)
    tried = grades != AnswerGrade.NOT_ATTEMPTED
    figures = []
    for one in range(len(found)):
        own = (code == one) & tried
        units, who = (None if column is None else column[own] for column in columns)
        share = clustered_mean(grades[own] == AnswerGrade.CORRECT, units, respondent=who)
        figures.append((share.value, share.se, *share.share_interval(level)))
    # None, of too few answers, becomes NaN
    accuracy, se, lo, hi = np.array(figures, dtype=np.float64).reshape(-1, 4).T
    return DirectAccuracy(
        models=tuple(found.tolist()),
        accuracy=accuracy,
        se=se,
        lo=lo,
        hi=hi,
        attempted=np.bincount(code[tried], minlength=len(found)),
        graded=np.bincount(code, minlength=len(found)),
        level=level,
    )


def preference_shift(
    preferred_on_a: float, total_on_a: float, preferred_on_b: float, total_on_b: float, *, level: float = 0.95
) -> PreferenceShift:
    """How far an intervention moves a judge, from counts of "A preferred" with it on A and with it on B.

    The interval is Newcombe's, from the score intervals of both shares; it is valid near 0 and 1 and for few pairs. It
    assumes independent sets: with the same pairs in both it is conservative. Raises `InputError` for impossible counts,
    and for a level outside (0, 1).

    >>> from venire.ratings import preference_shift
    >>> round(preference_shift(30, 50, 20, 50).shift, 2)
    0.2
    """
    for preferred, total in ((preferred_on_a, total_on_a), (preferred_on_b, total_on_b)):
        if not (total > 0 and 0 <= preferred <= total):
            raise InputError(f"{preferred} of {total} is not possible: give how often A was preferred, and of how many")
    check_level(level)
    quantile = float(norm.ppf(0.5 + level / 2.0))
    on_a, on_b = preferred_on_a / total_on_a, preferred_on_b / total_on_b
    (low_a, high_a), (low_b, high_b) = (
        score_interval(share, total, quantile) for share, total in ((on_a, total_on_a), (on_b, total_on_b))
    )
    shift = on_a - on_b
    return PreferenceShift(
        shift=shift,
        lo=shift - sqrt((on_a - low_a) ** 2 + (high_b - on_b) ** 2),
        hi=shift + sqrt((high_a - on_a) ** 2 + (on_b - low_b) ** 2),
        level=level,
    )


def paired_preference_shift(
    on_a: ArrayLike, on_b: ArrayLike, cluster: ArrayLike | None = None, *, level: float = 0.95
) -> PreferenceShift:
    """The same from outcomes for A (pairs,), 0 to 1, of the same pairs with the intervention on A and on B.

    The interval is put together from the score intervals of both shares, clustered by `cluster` (pairs,), and the
    correlation of their errors (Newcombe 1998, method 10; Zou and Donner 2008): it stays within -1 and 1, and has a
    width where all pairs agree. Bounds are NaN below two clusters. Raises `InputError` for no pairs, for columns of
    unequal length, for outcomes outside [0, 1], and for a level outside (0, 1).

    >>> from venire.ratings import paired_preference_shift
    >>> round(paired_preference_shift([0, 0.5, 0, 1], [1, 1, 0, 1]).shift, 3)
    -0.375
    """
    check_level(level)
    a, b = float_array("on_a", on_a), float_array("on_b", on_b)
    units = np.arange(len(a)) if cluster is None else np.asarray(cluster)
    if a.ndim != 1 or a.shape != b.shape or a.shape != units.shape or not len(a):
        raise InputError(f"on_a has shape {a.shape}, on_b {b.shape}, cluster {units.shape}: give one row each a pair")
    if not (np.isfinite(a) & np.isfinite(b) & (np.minimum(a, b) >= 0.0) & (np.maximum(a, b) <= 1.0)).all():
        raise InputError("on_a and on_b are outcomes for A: give shares from 0 to 1")
    first, second, both = clustered_mean(a, units), clustered_mean(b, units), clustered_mean(a - b, units)
    (low_a, high_a), (low_b, high_b) = first.share_interval(level), second.share_interval(level)
    shift = float(a.mean() - b.mean())
    if low_a is None or high_a is None or low_b is None or high_b is None:
        return PreferenceShift(shift, float("nan"), float("nan"), level)
    shared = 0.0
    if first.se and second.se and both.se is not None:  # else one side does not vary
        shared = (first.se**2 + second.se**2 - both.se**2) / (2.0 * first.se * second.se)
        shared = min(1.0, max(-1.0, shared))
    mean_a, mean_b = float(a.mean()), float(b.mean())
    below, above = (mean_a - low_a, high_b - mean_b), (high_a - mean_a, mean_b - low_b)
    lo, hi = (sqrt(max(0.0, x * x + y * y - 2.0 * shared * x * y)) for x, y in (below, above))
    return PreferenceShift(shift, max(-1.0, shift - lo), min(1.0, shift + hi), level)


def _of_kind(
    data: Comparisons,
    kind: PairKind | Literal["all"],
    rows: NDArray[np.bool_],
    method: Callable[[Comparisons], Ratings],
) -> KindRatings:
    count = int(np.count_nonzero(rows))
    share = count / len(data) if len(data) else float("nan")
    if not count:
        return KindRatings(kind, 0, share, None, "there is no such pair")
    try:
        return KindRatings(kind, count, share, method(data.select(rows)), None)
    except SeparatedError as error:
        return KindRatings(kind, count, share, None, str(error))


def _answer_grades(argument: str, values: ArrayLike) -> NDArray[np.int64]:
    grades = np.asarray(values)
    wrong = ~np.isin(grades, [int(grade) for grade in AnswerGrade])
    if grades.ndim != 1 or wrong.any():
        row = int(np.argmax(wrong)) if grades.ndim == 1 else 0
        given = grades[row] if grades.ndim == 1 and len(grades) else grades
        raise InputError(
            f"{argument}, row {row}: {given!s} is not a grade: give 1 correct, 0 incorrect, 2 not attempted"
        )
    return grades.astype(np.int64)
