"""How near the order by a share of the battles is to that by all of them, and to orders known from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import VenireError
from venire.ratings.data.judgments import select_battles
from venire.ratings.data.result import Rated
from venire.ratings.data.statistics import BoundedFigure, kendall
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import rate

_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Parts of the battles of a learning curve."""

_CURVE_DRAWS = 50
"""Draws of each part."""

_FEWEST_IN_ORDER = 3


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Orders from a share of the battles: means over draws of Kendall's tau-b, with the middle 95 % of draws.

    `whole` is tau with the order by all battles, `known` tau with each order known from elsewhere. None where it is not
    defined in any draw; `unrated` is the mean number of models without a rating.
    """

    share: float
    battles: int
    whole: BoundedFigure
    known: Mapping[str, BoundedFigure]
    unrated: float


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """How orders come near to the final one as battles are added; `known` says from where other orders are."""

    method: str
    draws: int
    known: Mapping[str, str]
    points: tuple[CurvePoint, ...]


def learning_curve(
    battles: Battles, method: str, options: Options, outside: Mapping[str, tuple[str, Mapping[str, float]]]
) -> LearningCurve:
    """Orders by random shares of the battles, whole battles with both orders and all judges, against the final one.

    `outside` are orders known from elsewhere: a source and values by model, by name. Raises as `rate` does.
    """
    known = {name: (source, values) for name, (source, values) in outside.items() if values}
    key = np.stack([battles.instruction, *np.sort([battles.model_a, battles.model_b], axis=0)])
    battle = np.unique(key, axis=1, return_inverse=True)[1].ravel()
    count = int(battle.max(initial=-1)) + 1
    whole = rate(battles, method, options)
    models = whole.ratings.models
    columns = {"whole": _order_values(whole, models)}
    columns |= {name: np.array([values.get(one, np.nan) for one in models]) for name, (_, values) in known.items()}
    rng, points = np.random.default_rng(options.seed), []
    for share in _SHARES:
        size = max(1, round(share * count))
        found: list[Mapping[str, float]] = []
        unrated: list[int] = []
        for _ in range(_CURVE_DRAWS if size < count else 1):
            chosen = np.zeros(count, dtype=np.bool_)
            chosen[rng.permutation(count)[:size]] = True
            try:
                part = rate(select_battles(battles, chosen[battle]), method, options)
            except VenireError:
                continue
            values = _order_values(part, models)
            unrated.append(int(np.isnan(values).sum()))
            found.append({name: _tau(values, column) for name, column in columns.items()})
        taus = {name: _middle([one[name] for one in found]) for name in columns}
        missing = float(np.mean(unrated)) if unrated else float(len(models))
        points.append(CurvePoint(share, size, taus.pop("whole"), taus, missing))
    return LearningCurve(method, _CURVE_DRAWS, {name: source for name, (source, _) in known.items()}, tuple(points))


def _order_values(rated: Rated, models: Sequence[str]) -> NDArray[np.float64]:
    """A value for each model, higher for better: its rating, or its position turned round; NaN without one."""
    own = rated.ratings.logits if rated.position is None else -rated.position
    values = dict(zip(rated.ratings.models, own.tolist(), strict=True))
    return np.array([values.get(name, math.nan) for name in models], dtype=np.float64)


def _tau(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    both = np.isfinite(ours) & np.isfinite(theirs)
    if np.count_nonzero(both) < _FEWEST_IN_ORDER:
        return math.nan
    return float(kendall(np.round(ours[both], 9)[None], theirs[both])[0])


def _middle(values: Sequence[float]) -> BoundedFigure:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return BoundedFigure(None, None, None)
    lo, hi = np.quantile(known, (0.025, 0.975)).tolist()
    return BoundedFigure(float(np.mean(known)), lo, hi)
