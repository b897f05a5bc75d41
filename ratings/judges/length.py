"""Ratings with one covariate held equal (length, the place shown), and what that changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from venire.arena.errors import InputError
from venire.ratings.data.clustered import cluster_codes
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.style import unit_scale
from venire.ratings.pairwise.components import restrict_models, strong_components_of
from venire.ratings.pairwise.covariates import covariates
from venire.ratings.pairwise.wins import win_counts

__all__ = ["HeldEqual", "held_equal"]


@dataclass(frozen=True, slots=True, eq=False)
class HeldEqual:
    """Ratings `plain` and with the covariate `name` held `equal`, on the same rows.

    `coefficient` is in logits a unit of the covariate, or a deviation of it where that was asked, with its standard
    error `se` (NaN where none can be told) over `clusters` clusters. `moved` are models whose place changes, `kendall`
    is tau-b between the two orders, `own_information` the share of what the covariate says that the models do not say
    as well: near 0 ratings and coefficient can hardly be told apart. `rows` is how many comparisons were used.
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
        """How many standard errors the coefficient is away from 0; 0 where no error is known."""
        return abs(self.coefficient) / self.se if self.se > 0.0 else 0.0


def held_equal(data: Comparisons, x: ArrayLike, name: str, *, scaled: bool = True, ridge: float = 0.0) -> HeldEqual:
    """Fit ratings with and without the covariate `x` (rows,) of A less B; rows where it is NaN are left out.

    `scaled` divides it by its deviation about 0. Models outside the largest group that wins join take no part. Raises
    `InputError` without two models, a covariate that is 0 throughout or follows from the models, and as `covariates`
    does.
    """
    column = np.asarray(x, dtype=np.float64)
    if column.shape != (len(data),):
        raise InputError(f"{name} has shape {column.shape}; give one number for each of {len(data)} comparisons")
    known = np.isfinite(column)
    rows, column = data.select(known), column[known]
    groups = strong_components_of(win_counts(rows)) if len(rows) else []
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
    return HeldEqual(
        name=name,
        coefficient=float(found.coefficients[0]),
        se=float(found.se[0]),
        plain=found.plain,
        equal=found.ratings,
        leaders=(before[0], after[0]),
        moved=tuple(model for place, model in enumerate(before) if after[place] != model),
        kendall=found.kendall,
        own_information=float(found.ratings.diagnostics["own_information"][name]),
        rows=len(rows),
        clusters=cluster_codes(rows.cluster, len(rows))[1],
    )
