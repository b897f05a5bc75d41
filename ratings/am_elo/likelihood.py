"""The likelihood of am-ELO, P(A) = sigma(theta_k (R_A - R_B)) for judge k: counts, log-likelihood and slopes.

Judgments are counted by judge and pair of models; these counts are sufficient. All variants share one log-likelihood.
Let z be the log odds of a win for the first model and t the logarithm of the judge's tie parameter. Then P(win) = exp(z
/ 2) / Z, P(tie) = exp(t) / Z and Z = 2 cosh(z / 2) + exp(t): Davidson's model (1970). If ties are not an outcome,
exp(t) is 0, a tie is half a win for each side, and P(win) is sigma(z).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons

_TABLE = 1 << 22
"""Largest dense table of judges and pairs that is used for counting whatever the number of rows."""

Vector = NDArray[np.float64]

Matrix = NDArray[np.float64]

Codes = NDArray[np.intp]

NO_TIES = -700.0
"""The logarithm of the tie parameter of a judge that never ties."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Sufficient statistics: one cell per judge, pair of models and presentation order; `upper` < `lower` are codes.

    `won` and `lost` (cells,) are the weights for and against the upper model. `tied` is the weight of ties where they
    are a separate outcome; None: a tie is half of each. `first` is 1 where the upper model was shown first, -1 where
    second, 0 where neither; None where presentation order is not modelled.
    """

    models: int
    judges: int
    judge: Codes
    upper: Codes
    lower: Codes
    won: Vector
    lost: Vector
    tied: Vector | None = None
    first: Vector | None = None

    def __len__(self) -> int:
        return len(self.judge)

    @property
    def weight(self) -> Vector:
        """The weight of each cell (cells,)."""
        played = self.won + self.lost
        return played if self.tied is None else played + self.tied

    @property
    def mixed(self) -> NDArray[np.bool_]:
        """Cells (cells,) whose verdicts are not all of one kind."""
        split = (self.won > 0.0) & (self.lost > 0.0)
        return split if self.tied is None else split | (self.tied > 0.0)

    def by_judge(self, values: Vector | None) -> Vector:
        """Sums (judges,) of values by cell (cells,); None: the number of cells."""
        return np.asarray(np.bincount(self.judge, values, self.judges), dtype=np.float64)

    def select(self, kept: NDArray[np.bool_]) -> Cells:
        """Some of the cells, by mask (cells,); models and judges keep their codes."""
        return replace(
            self,
            judge=self.judge[kept],
            upper=self.upper[kept],
            lower=self.lower[kept],
            won=self.won[kept],
            lost=self.lost[kept],
            tied=None if self.tied is None else self.tied[kept],
            first=None if self.first is None else self.first[kept],
        )

    def among(self, models: Codes, judges: Codes) -> Cells:
        """The cells of some models and some judges only, recoded in ascending order."""
        if len(models) == self.models and len(judges) == self.judges:
            return self
        place, seat = np.full(self.models, -1), np.full(self.judges, -1)
        place[models], seat[judges] = np.arange(len(models)), np.arange(len(judges))
        inside = (place[self.upper] >= 0) & (place[self.lower] >= 0) & (seat[self.judge] >= 0)
        part = self.select(inside)
        return replace(
            part,
            models=len(models),
            judges=len(judges),
            judge=seat[part.judge],
            upper=place[part.upper],
            lower=place[part.lower],
        )


def cells_of(data: Comparisons, *, first: Vector | None = None, ties: bool = False) -> Cells:
    """Count comparisons by judge, pair and, where `first` (rows,) gives it for the model in a, presentation order.

    With `ties` an outcome of exactly 0.5 is a tie. Raises `InputError` if the table names no judges, for an outcome
    other than win, tie and loss under `ties`, and for values of `first` other than 1, -1 and 0.
    """
    if data.judge is None:
        raise InputError("abilities are of judges, and these comparisons name none: give judge=, a name for each row")
    ahead = data.a < data.b
    y = np.where(ahead, data.y, 1.0 - data.y)
    size, count = len(data.models), len(data.judges)
    key = data.judge.astype(np.int64) * size
    key += np.minimum(data.a, data.b)
    key *= size
    key += np.maximum(data.a, data.b)
    places = count * size * size
    if first is not None:
        key = 3 * key + (1 + np.where(ahead, 1, -1) * _orders(first, len(data)))
        places *= 3
    weight = data.weight
    drawn = _ties(y) if ties else None
    if drawn is not None:
        y = np.where(drawn, 0.0, y)
    lost = np.where(drawn, 0.0, 1.0 - y) if drawn is not None else 1.0 - y
    kinds = [y, lost] if drawn is None else [y, lost, drawn.astype(np.float64)]
    found, sums = _counted(key, [kind if weight is None else kind * weight for kind in kinds], places)
    order = None if first is None else np.asarray(found % 3 - 1, dtype=np.float64)
    pair = found // 3 if first is not None else found
    return Cells(
        models=size,
        judges=count,
        judge=pair // (size * size),
        upper=pair // size % size,
        lower=pair % size,
        won=sums[0],
        lost=sums[1],
        tied=None if drawn is None else sums[2],
        first=order,
    )


def _orders(first: Vector, rows: int) -> NDArray[np.int64]:
    given = np.asarray(first, dtype=np.float64)
    if given.shape != (rows,):
        raise InputError(f"first has shape {given.shape}; give 1, -1 or 0 for each of {rows} rows")
    if not np.isin(given, (-1.0, 0.0, 1.0)).all():
        row = int(np.argmin(np.isin(given, (-1.0, 0.0, 1.0))))
        raise InputError(f"first, row {row}: {given[row]} is not possible: give 1 where model_a was shown first, or -1")
    return given.astype(np.int64)


def _ties(y: Vector) -> NDArray[np.bool_]:
    tie = y == 0.5
    wrong = ~(tie | (y == 0.0) | (y == 1.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"y, row {row}: {y[row]} is not possible: with a habit of ties each outcome is a win, a tie or a loss"
        )
    return np.asarray(tie, dtype=np.bool_)


def _counted(key: NDArray[np.int64], sums: list[Vector], places: int) -> tuple[NDArray[np.int64], list[Vector]]:
    """The keys with nonzero weight, ascending, and the sums by key."""
    if places <= max(_TABLE, 4 * len(key)):
        keys, cell = np.arange(places), key
    else:
        keys, cell = np.unique(key, return_inverse=True)
    totals = [np.asarray(np.bincount(cell, values, len(keys)), dtype=np.float64) for values in sums]
    there = np.flatnonzero(sum(totals) > 0.0)
    return keys[there], [total[there] for total in totals]


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodTerms:
    """Each cell's log-likelihood (cells,), its slopes in z and t, and minus its second derivatives.

    `tie_slope`, `tie_bend` and `cross` are None where ties are not a separate outcome.
    """

    value: Vector
    slope: Vector
    bend: Vector
    tie_slope: Vector | None = None
    tie_bend: Vector | None = None
    cross: Vector | None = None


def likelihood_terms(
    won: Vector, lost: Vector, tied: Vector | None, odds: Vector, freedom: Vector | None
) -> LikelihoodTerms:
    """Log-likelihood and derivatives of cells at log odds z and tie parameter t (cells,) each.

    Log probabilities are computed from the rarer side, so that a rare loss keeps its precision.
    """
    if tied is None or freedom is None:
        rare = np.exp(-np.abs(odds))
        tail, likely = np.log1p(rare), 1.0 / (1.0 + rare)
        rare *= likely
        ahead = odds > 0.0
        win, loss = np.where(ahead, likely, rare), np.where(ahead, rare, likely)
        value = -(won * (np.maximum(-odds, 0.0) + tail) + lost * (np.maximum(odds, 0.0) + tail))
        return LikelihoodTerms(value, won * loss - lost * win, (won + lost) * (rare * likely))
    half = 0.5 * np.abs(odds)
    total = np.logaddexp(half + np.log1p(np.exp(-2.0 * half)), freedom)
    win, loss, tie = np.exp(0.5 * odds - total), np.exp(-0.5 * odds - total), np.exp(freedom - total)
    met = won + lost + tied
    return LikelihoodTerms(
        value=0.5 * odds * (won - lost) + tied * freedom - met * total,
        slope=0.5 * (won * (2.0 * loss + tie) + tied * loss - lost * (2.0 * win + tie) - tied * win),
        bend=0.25 * met * (tie * (win + loss) + 4.0 * win * loss),
        tie_slope=tied * (win + loss) - (won + lost) * tie,
        tie_bend=met * tie * (win + loss),
        cross=-0.5 * met * (win - loss) * tie,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """`ratings` (models,) in logits and, for each judge, `local` (judges, 1 to 3): ability, then habits.

    Habits are the position bias and the logarithm of the tie parameter, in this order.
    """

    ratings: Vector
    local: Matrix

    @property
    def ability(self) -> Vector:
        """Abilities (judges,)."""
        return np.asarray(self.local[:, 0])

    def scaled(self, factor: float, but: NDArray[np.bool_] | None = None) -> Point:
        """The point with ratings times `factor`: the same likelihood, unless abilities are held (`but`, judges)."""
        local = self.local.copy()
        local[:, 0] /= factor if but is None else np.where(but, 1.0, factor)
        return Point(self.ratings * factor, local)

    @property
    def spread(self) -> float:
        """Root mean square of the ratings about their mean; 1 where they are all equal."""
        apart = float(np.sqrt(np.mean((self.ratings - self.ratings.mean()) ** 2))) if len(self.ratings) else 0.0
        return apart if apart > 0.0 else 1.0


def odds_at(cells: Cells, point: Point) -> Vector:
    """The log odds (cells,) of a win for the upper model, habits of place included."""
    odds = point.local[cells.judge, 0] * (point.ratings[cells.upper] - point.ratings[cells.lower])
    if cells.first is not None:
        odds = odds + point.local[cells.judge, 1] * cells.first
    return np.asarray(odds, dtype=np.float64)


def terms_at(cells: Cells, point: Point) -> LikelihoodTerms:
    """Each cell's log-likelihood at a point, with its derivatives."""
    freedom = None if cells.tied is None else point.local[cells.judge, -1]
    return likelihood_terms(cells.won, cells.lost, cells.tied, odds_at(cells, point), freedom)


def gradient_at(cells: Cells, point: Point, terms: LikelihoodTerms) -> tuple[Vector, Matrix]:
    """Slopes of the log-likelihood in the ratings (models,) and in the judges' parameters (judges, 1 to 3)."""
    gap = point.ratings[cells.upper] - point.ratings[cells.lower]
    slopes = [terms.slope * gap] if cells.first is None else [terms.slope * gap, terms.slope * cells.first]
    if terms.tie_slope is not None:
        slopes.append(terms.tie_slope)
    ratings = _difference(cells, terms.slope * point.local[cells.judge, 0])
    return ratings, np.stack([cells.by_judge(slope) for slope in slopes], axis=1)


def _difference(cells: Cells, values: Vector) -> Vector:
    """Sums (models,) in which each cell adds to its upper model and subtracts from its lower model."""
    sums = np.bincount(cells.upper, values, cells.models) - np.bincount(cells.lower, values, cells.models)
    return np.asarray(sums, dtype=np.float64)
