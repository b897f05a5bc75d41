"""Out-of-sample prediction of battles by cross-validation: mean squared error and area under the ROC curve.

Source: the am-ELO paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import AmElo
from venire.ratings.data.clustered import ClusteredMean, cluster_codes, clustered_mean
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import ranks
from venire.ratings.data.validation import check_seed

_LEVELS = 20

Predict = Callable[[Comparisons, Comparisons], NDArray[np.float64]]
PredictRows = Callable[[NDArray[np.intp], NDArray[np.intp]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Figures over all held-out rows together; `predicted` (rows,) is each row's P(A), NaN without a prediction.

    `units` is the number of clusters (of rows, where they have none), each of which is in one fold. `log_loss` is the
    mean of minus the log of the probability given to the outcome, in nats; a tie counts as half of each.
    """

    mse: float
    log_loss: float
    auc: float
    auc_decisive: float
    rows: int
    missing: int
    units: int
    predicted: NDArray[np.float64]


def _ratings_prediction(ratings: Ratings, data: Comparisons) -> NDArray[np.float64]:
    """P(A wins) (rows,) by the ratings of the same models; NaN where one has no estimate."""
    return np.asarray(expit(ratings.logits[data.a] - ratings.logits[data.b]))


def predict_from_ratings(fit: Callable[[Comparisons], Ratings]) -> Predict:
    """A predictor for `evaluate` from a method that rates models.

    >>> from venire.ratings import bradley_terry, comparisons, predict_from_ratings
    >>> data = comparisons(list("aba") * 20, list("bcc") * 20, [1, 1, 0, 0, 1, 1] * 10, judge=list("xy") * 30)
    >>> predict = predict_from_ratings(bradley_terry)
    >>> predict(data, data).shape
    (60,)
    """
    return lambda train, test: _ratings_prediction(fit(train), test)


def abilities_prediction(found: AmElo, data: Comparisons) -> NDArray[np.float64]:
    """P(A wins) (rows,) for each row's judge; NaN where a model has no estimate.

    A judge of unknown ability gets the mean, 1. A judge of infinite ability is certain of every pair except equal
    models. Raises `InputError` for rows without a judge, and for judges other than those of the fit.
    """
    if data.judge is None or data.judges != found.judges:
        raise InputError("give comparisons that name their judges, the same ones as those that were fitted")
    ability = np.where(np.isnan(found.ability), 1.0, found.ability)[data.judge]
    gap = found.ratings.logits[data.a] - found.ratings.logits[data.b]
    # Infinity times a gap of 0 is NaN, but for every judge equal models have even odds.
    lean = np.multiply(ability, gap, out=np.zeros(len(gap)), where=gap != 0.0)
    return np.asarray(expit(lean))


def predict_from_abilities(fit: Callable[[Comparisons], AmElo]) -> Predict:
    """A predictor for `evaluate` from a method that also gives abilities: each test row uses its judge's ability.

    >>> from venire.ratings import am_elo, comparisons, predict_from_abilities
    >>> data = comparisons(list("aba") * 20, list("bcc") * 20, [1, 1, 0, 0, 1, 1] * 10, judge=list("xy") * 30)
    >>> predict = predict_from_abilities(am_elo)
    >>> predict(data, data).shape
    (60,)
    """
    return lambda train, test: abilities_prediction(fit(train), test)


def evaluate(data: Comparisons, method: Predict, *, folds: int = 5, seed: int = 0) -> Evaluation:
    """Cross-validation: predict each fold of the clusters (rows, where there are none) by `method(train, test)`.

    Both tables keep all models and judges. Rows of one cluster share what no rating knows, so they are held out
    together. Rows without a prediction are left out of the figures and counted. Raises `InputError` for fewer than two
    folds or more folds than clusters, and passes on the method's errors.

    >>> from venire.ratings import bradley_terry, comparisons, evaluate, predict_from_ratings
    >>> data = comparisons(list("aba") * 20, list("bcc") * 20, [1, 1, 0, 0, 1, 1] * 10, judge=list("xy") * 30)
    >>> round(evaluate(data, predict_from_ratings(bradley_terry), folds=2).mse, 3)
    0.226
    """
    return evaluate_rows(
        data.y, lambda train, test: method(data.select(train), data.select(test)), folds, seed, data.cluster
    )


def evaluate_rows(
    y: NDArray[np.float64],
    predict: PredictRows,
    folds: int,
    seed: int,
    cluster: NDArray[np.int32] | None = None,
) -> Evaluation:
    """The same of outcomes (rows,), where `predict` takes the numbers of the rows to learn from and to predict.

    Raises `InputError` for fewer than two folds or more folds than clusters, and passes on the errors of `predict`.
    """
    unit, units = cluster_codes(cluster, len(y))
    if not 2 <= folds <= units:
        what = "comparisons" if cluster is None else "clusters (instructions)"
        raise InputError(f"folds is {folds}; give 2 or more, and no more than the {units} {what}")
    check_seed(seed)
    fold = np.random.default_rng(seed).permutation(np.arange(units) % folds)[unit]
    predicted = np.empty(len(y))
    for held in range(folds):
        predicted[fold == held] = predict(np.flatnonzero(fold != held), np.flatnonzero(fold == held))
    known, rows = np.isfinite(predicted), len(y)
    y, p = y[known], predicted[known]
    return Evaluation(
        mse=mse(y, p),
        log_loss=log_loss(y, p),
        auc=auc(y, p),
        auc_decisive=auc_decisive(y, p),
        rows=len(y),
        missing=rows - len(y),
        units=units,
        predicted=predicted,
    )


def mse(y: NDArray[np.float64], p: NDArray[np.float64]) -> float:
    """Mean squared error of P(A) (rows,) against outcomes (rows,) of 0, 0.5 and 1; NaN for no row."""
    return float(np.mean((y - p) ** 2)) if len(y) else float("nan")


def log_loss(y: NDArray[np.float64], p: NDArray[np.float64]) -> float:
    """Mean log loss of P(A) (rows,) against outcomes (rows,) from 0 to 1, in nats; NaN for no row.

    Probabilities are kept 1e-12 from 0 and 1, so that one sure prediction that fails costs 28 nats and not infinity.
    """
    return float(np.mean(log_losses(y, p))) if len(y) else float("nan")


def log_losses(y: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log loss of each row (rows,), as in `log_loss`."""
    inside = np.clip(p, 1e-12, 1.0 - 1e-12)
    return np.asarray(-(y * np.log(inside) + (1.0 - y) * np.log1p(-inside)))


def loss_differences(
    y: NDArray[np.float64], one: Evaluation, other: Evaluation, cluster: NDArray[np.int32] | None
) -> dict[str, ClusteredMean]:
    """Held-out `mse` and `log_loss` of one method less those of another on the same folds, with clustered errors.

    Rows that both predict are compared.
    """
    known = np.isfinite(one.predicted) & np.isfinite(other.predicted)
    units = None if cluster is None else cluster[known]
    y, p, q = y[known], one.predicted[known], other.predicted[known]
    return {
        "mse": clustered_mean((y - p) ** 2 - (y - q) ** 2, units),
        "log_loss": clustered_mean(log_losses(y, p) - log_losses(y, q), units),
    }


def auc(y: NDArray[np.float64], p: NDArray[np.float64]) -> float:
    """Share of pairs of rows with different outcomes that P(A) orders correctly; equal predictions count half.

    Each battle is counted in both orientations, so that the result does not depend on which model is called A. NaN
    where all outcomes are equal. Raises `InputError` for outcomes that are probabilities: they have too many levels.
    """
    if len(np.unique(y)) > _LEVELS:
        raise InputError(f"y has more than {_LEVELS} distinct outcomes; give wins, losses and ties, or shares of a few")
    # Rounded, so that p and 1 - (1 - p) are equal predictions.
    return _concordance(np.concatenate([y, 1.0 - y]), np.round(np.concatenate([p, 1.0 - p]), 12))


def auc_decisive(y: NDArray[np.float64], p: NDArray[np.float64]) -> float:
    """`auc` over the battles with a winner only (y 0 or 1)."""
    won = (y == 0.0) | (y == 1.0)
    return auc(y[won], p[won])


def _concordance(y: NDArray[np.float64], p: NDArray[np.float64]) -> float:
    """Sum of the rank statistics over all pairs of levels."""
    levels = np.unique(y)
    right = pairs = 0.0
    for index, low in enumerate(levels):
        for high in levels[index + 1 :]:
            below, above = p[y == low], p[y == high]
            places = ranks(np.concatenate([above, below]))[: len(above)]
            right += float(places.sum()) - len(above) * (len(above) + 1) / 2
            pairs += len(above) * len(below)
    return right / pairs if pairs else float("nan")
