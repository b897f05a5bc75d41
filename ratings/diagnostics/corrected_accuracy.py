"""Accuracy by a judge that errs, corrected by answers whose truth is known; Rogan and Gladen 1978, arXiv 2511.21140."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.data.statistics import norm, student
from venire.ratings.data.validation import check_level, float_array

_MIN_YOUDEN = 0.05
"""Sensitivity and specificity must exceed 1 by this, or verdicts say next to nothing of the truth."""

_MIN_LABELS = 5
"""Right and wrong answers with a known truth below which error rates are not estimated."""


@dataclass(frozen=True, slots=True)
class GraderErrors:
    """How often a judge takes right answers for right (`sensitivity`) and wrong ones for wrong (`specificity`).

    `right` and `wrong` count verdicts on answers whose truth is known.
    """

    sensitivity: float
    specificity: float
    right: int
    wrong: int


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedAccuracy:
    """Share of right answers (n,) of `models` if the judge did not err, with the interval `lo` to `hi` at `level`.

    The share is within 0 and 1; NaN where a model has no verdict. `errors` are those that it was corrected for.
    """

    models: tuple[str, ...]
    accuracy: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    errors: GraderErrors
    level: float


def corrected_accuracy(
    model: ArrayLike,
    correct: ArrayLike,
    truth: ArrayLike,
    cluster: ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> CorrectedAccuracy:
    """Accuracy of each model from verdicts of an erring judge, some of them on answers whose truth is known.

    Rogan and Gladen 1978, *Estimating prevalence from the results of a screening test*; for judges arXiv 2511.21140.

    `correct` (rows,) is 1 or 0 as the judge said, `truth` (rows,) the same as it is, NaN where not known. The share
    p that a judge takes for right is corrected to (p + specificity - 1) / (sensitivity + specificity - 1). It takes
    for granted that the judge errs alike on answers of known truth and on others, and on all models. The interval is
    by the delta method over clusters (rows where `cluster` is None), with rates moved towards even by a pseudo-count
    as there, and Student's t. Raises `InputError` for columns of unequal length, values other than 0 and 1, fewer than
    5 right or wrong answers of known truth, and for a judge whose verdicts say nothing of the truth.

    >>> from venire.ratings import corrected_accuracy
    >>> said = [1, 1, 1, 1, 0] * 12 + [0, 0, 0, 0, 1] * 12
    >>> known = [1.0] * 30 + [np.nan] * 30 + [0.0] * 30 + [np.nan] * 30
    >>> found = corrected_accuracy(["a"] * 60 + ["b"] * 60, said, known)
    >>> found.accuracy.round(2).tolist(), found.errors.sensitivity
    ([1.0, 0.0], 0.8)
    """
    check_level(level)
    names = np.asarray(model).astype(str)
    said, known = float_array("correct", correct), float_array("truth", truth)
    units = np.arange(len(said)) if cluster is None else np.asarray(cluster)
    if names.ndim != 1 or not names.shape == said.shape == known.shape == units.shape:
        raise InputError("model, correct, truth and cluster differ in length: give one of each a verdict")
    for argument, column in (("correct", said), ("truth", known[~np.isnan(known)])):
        if not np.isin(column, (0.0, 1.0)).all():
            raise InputError(f"{argument} has values other than 0 and 1")
    right, wrong = known == 1.0, known == 0.0
    count, missed = int(right.sum()), int(wrong.sum())
    if min(count, missed) < _MIN_LABELS:
        raise InputError(
            f"{count} verdicts on right and {missed} on wrong answers of known truth: error rates take {_MIN_LABELS}"
        )
    errors = GraderErrors(float(said[right].mean()), float(1.0 - said[wrong].mean()), count, missed)
    if errors.sensitivity + errors.specificity - 1.0 < _MIN_YOUDEN:
        raise InputError(
            f"the judge takes {errors.sensitivity:.0%} of right and {1 - errors.specificity:.0%} of wrong answers for "
            "right: its verdicts say nothing of the truth"
        )
    models, code = np.unique(names, return_inverse=True)
    _, unit = np.unique(units, return_inverse=True)
    figures = [_corrected(code == one, said, right, wrong, unit, level) for one in range(len(models))]
    accuracy, lo, hi = np.array(figures, dtype=np.float64).reshape(-1, 3).T
    return CorrectedAccuracy(tuple(models.tolist()), accuracy, lo, hi, errors, level)


def _corrected(
    own: NDArray[np.bool_],
    said: NDArray[np.float64],
    right: NDArray[np.bool_],
    wrong: NDArray[np.bool_],
    unit: NDArray[np.intp],
    level: float,
) -> tuple[float, float, float]:
    """One model's corrected share with its bounds, from masks of its rows and of those of known truth (rows,)."""
    plain = _rogan_gladen(said[own].mean(), said[right].mean(), 1.0 - said[wrong].mean())
    square = float(norm.ppf(0.5 + level / 2.0)) ** 2
    rates = [
        (float(np.sum(value[rows])) + pseudo / 2.0) / (float(rows.sum()) + pseudo)
        for rows, value, pseudo in ((own, said, square), (right, said, 2.0), (wrong, 1.0 - said, 2.0))
    ]
    share, sensitivity, specificity = rates
    steep = max(sensitivity + specificity - 1.0, _MIN_YOUDEN)
    middle = _rogan_gladen(share, sensitivity, specificity, clip=False)
    # Influence of each row on the corrected share, one term a rate: rows of a model may be of known truth as well.
    influence = np.zeros(len(said))
    for rows, value, rate, slope, pseudo in (
        (own, said, share, 1.0 / steep, square),
        (right, said, sensitivity, -middle / steep, 2.0),
        (wrong, 1.0 - said, specificity, (1.0 - middle) / steep, 2.0),
    ):
        influence[rows] += slope * (value[rows] - rate) / (rows.sum() + pseudo)
    sums = np.bincount(unit, influence)
    least = min(len(np.unique(unit[rows])) for rows in (own, right | wrong))
    if least < 2:
        return plain, np.nan, np.nan
    half = float(student.ppf(0.5 + level / 2.0, least - 1)) * float(np.sqrt(least / (least - 1.0) * (sums @ sums)))
    return plain, max(0.0, min(plain, middle - half)), min(1.0, max(plain, middle + half))


def _rogan_gladen(share: float, sensitivity: float, specificity: float, *, clip: bool = True) -> float:
    found = (share + specificity - 1.0) / max(sensitivity + specificity - 1.0, _MIN_YOUDEN)
    return float(min(1.0, max(0.0, found))) if clip else float(found)
