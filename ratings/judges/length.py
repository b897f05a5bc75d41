"""Length bias: the share of verdicts for the longer answer, its partial correlation, and ratings adjusted for it.

Each is a diagnostic: it describes what a judge does, not an error. A longer answer may be the better answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.agreement.chance_corrected import kept_clusters
from venire.ratings.data.clustered import cluster_codes
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import norm, student
from venire.ratings.data.style import unit_scale
from venire.ratings.data.validation import float_array
from venire.ratings.judges.habits import ShareEstimate, estimate_share
from venire.ratings.pairwise.components import restrict_models
from venire.ratings.pairwise.covariates import covariates


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Share of decisive verdicts for the longer answer: at near-equal scores (`near`), in `all` battles, by people."""

    near: ShareEstimate
    all: ShareEstimate
    human: ShareEstimate


@dataclass(frozen=True, slots=True)
class PartialCorrelation:
    """A partial correlation over `n` models with Fisher's interval at 95 % and its p-value; None where none exists."""

    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    n: int


def length_bias(
    y: ArrayLike,
    length: ArrayLike,
    score: ArrayLike | None = None,
    *,
    human: ArrayLike | None = None,
    near: float = 0.5,
    cluster: ArrayLike | None = None,
) -> LengthBias:
    """Length bias: how often the longer answer wins, in all rows and where |score| <= `near`.

    `y` (rows,) is the judge's outcome for A, `length` (rows,) is A minus B in any unit, `score` (rows,) is A minus B
    (near 0 the judge itself sees little difference), `human` (rows,) are people's outcomes. Ties, equal lengths and NaN
    are left out. Raises `InputError`.

    >>> from venire.ratings import length_bias
    >>> found = length_bias([1, 0, 1, 1, 0, 1], [200, -50, 120, 80, -10, 30])
    >>> found.all
    ShareEstimate(value=1.0, low=0.6096657120978346, high=1.0, n=6)
    """
    outcome, gap = float_array("y", y), float_array("length", length)
    if outcome.shape != gap.shape or outcome.ndim != 1:
        raise InputError(f"y has shape {outcome.shape}, length {gap.shape}; give two columns of one length")
    nothing = np.full(len(gap), np.nan)
    scores = nothing if score is None else float_array("score", score)
    people = nothing if human is None else float_array("human", human)
    if scores.shape != gap.shape or people.shape != gap.shape:
        raise InputError(f"score and human need one number a row: length has {len(gap)} rows")

    def longer(said: NDArray[np.float64], rows: NDArray[np.bool_]) -> ShareEstimate:
        kept = rows & (said != 0.5) & ~np.isnan(said) & (gap != 0.0) & ~np.isnan(gap)
        return estimate_share((said[kept] > 0.5) == (gap[kept] > 0.0), kept_clusters(cluster, kept))

    every = np.ones(len(gap), dtype=np.bool_)
    return LengthBias(longer(outcome, np.abs(scores) <= near), longer(outcome, every), longer(people, every))


def partial_correlation(residual: ArrayLike, length: ArrayLike, elo: ArrayLike) -> PartialCorrelation:
    """Partial correlation of `residual` with `length` over models (n,), given `elo`.

    Models with NaN anywhere are left out. Raises `InputError` for columns of different lengths.

    >>> from venire.ratings import partial_correlation
    >>> rng = np.random.default_rng(0)
    >>> found = partial_correlation(rng.normal(size=20), rng.normal(size=20), rng.normal(size=20))
    >>> -1.0 <= found.value <= 1.0
    True
    """
    named = {"residual": residual, "length": length, "elo": elo}
    columns = [float_array(name, column) for name, column in named.items()]
    if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
        raise InputError("residual, length and elo: give one number a model in each")
    known = ~np.isnan(np.stack(columns)).any(axis=0)
    count = int(np.count_nonzero(known))
    if count < 5:
        return PartialCorrelation(None, None, None, None, count)
    ours, theirs, given = (column[known] - column[known].mean() for column in columns)
    scale = float(given @ given)
    left = [part - (part @ given / scale if scale > 0.0 else 0.0) * given for part in (ours, theirs)]
    rest = [float(part @ part) for part in left]
    if any(after <= 1e-24 * float(part @ part) for after, part in zip(rest, (ours, theirs), strict=True)):
        return PartialCorrelation(None, None, None, None, count)
    value = float(np.clip(left[0] @ left[1] / math.sqrt(rest[0] * rest[1]), -1.0, 1.0))
    degrees = count - 3
    slack = max(1.0 - value * value, 1e-300)
    p_value = float(2.0 * student.sf(abs(value) * math.sqrt(degrees / slack), degrees))
    middle, half = math.atanh(np.clip(value, -1 + 1e-15, 1 - 1e-15)), float(norm.ppf(0.975)) / math.sqrt(count - 4)
    return PartialCorrelation(value, math.tanh(middle - half), math.tanh(middle + half), p_value, count)


@dataclass(frozen=True, slots=True, eq=False)
class AdjustedRatings:
    """Ratings adjusted for a covariate: `plain`, and `equal` with the covariate `name` held equal, on the same rows.

    `coefficient` is in logits per unit of the covariate (or per standard deviation, if requested), with its standard
    error `se` (NaN where unknown) over `clusters` clusters. `moved` are models whose position changes, `kendall` is
    tau-b between the two orders. `own_information` is the share of the covariate's information that is not explained by
    the models: near 0, ratings and coefficient are hardly identified separately. `rows` is the number of comparisons
    used.
    """

    name: str
    coefficient: float
    se: float
    plain: Ratings
    equal: Ratings
    leaders: tuple[str, str]
    moved: tuple[str, ...]
    kendall: float
    own_information: float
    rows: int
    clusters: int

    @property
    def clear(self) -> float:
        """Distance of the coefficient from 0 in standard errors; 0 where no error is known."""
        return abs(self.coefficient) / self.se if self.se > 0.0 else 0.0


def adjust_for(
    data: Comparisons, x: ArrayLike, name: str, *, scaled: bool = True, ridge: float = 0.0
) -> AdjustedRatings:
    """Adjust ratings for the covariate `x` (rows,), A minus B; rows where it is NaN are left out.

    `scaled` divides it by its standard deviation about 0. Models outside the largest group connected by wins are
    excluded. Raises `InputError` without two models, for a covariate that is always 0 or determined by the models, and
    as `covariates` does.

    >>> from venire.ratings import adjust_for, comparisons
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> adjust_for(data, [1, -1, 1, -1, 1, 1], "length", ridge=0.1).name
    'length'
    """
    column = float_array("x", x)
    if column.shape != (len(data),):
        raise InputError(f"{name} has shape {column.shape}; give one number for each of {len(data)} comparisons")
    known = np.isfinite(column)
    rows, column = data.select(known), column[known]
    groups = rows.wins.strong_components() if len(rows) else []
    largest = max(groups, key=len, default=np.zeros(0, dtype=np.intp))
    if len(largest) < 2:
        raise InputError(f"no two models are joined by wins both ways: {name} cannot be told from strength")
    column = column[np.isin(rows.a, largest) & np.isin(rows.b, largest)]
    rows = restrict_models(rows, largest)
    if not column.any():
        raise InputError(f"{name} is the same on both sides of every comparison: nothing shows what it does")
    table = unit_scale(column[:, None])[0] if scaled else column[:, None]
    found = covariates(rows, table, (name,), ridge=ridge)
    before, after = found.plain.order, found.ratings.order
    return AdjustedRatings(
        name=name,
        coefficient=float(found.coefficients[0]),
        se=float(found.se[0]),
        plain=found.plain,
        equal=found.ratings,
        leaders=(before[0], after[0]),
        moved=tuple(model for index, model in enumerate(before) if after[index] != model),
        kendall=found.kendall,
        own_information=float(found.ratings.diagnostics["own_information"][name]),
        rows=len(rows),
        clusters=cluster_codes(rows.cluster, len(rows))[1],
    )
