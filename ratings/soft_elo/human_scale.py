"""Calibration of a judge's scale to people's: a line through models rated by both, with a prediction interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.data.validation import float_array
from venire.ratings.soft_elo.conformal import Conformal, split_conformal
from venire.ratings.soft_elo.cross_validation import least_squares_scale

_Rule = Literal["offset", "line"]
"""Offset: people's points are the judge's, shifted. Line: also scaled by one constant about the anchors' mean."""

_MIN_FOR_A_LINE = 4

_BEYOND = 1.6
"""Factor on a side of the interval that then ends beyond all anchors by people, and on both where the judge rates the
model beyond all: what lies out there no anchor shows. Chosen so that intervals of 90 % hold 0.88 of the models that
people put beyond all anchors (docs/policies.md)."""

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class HumanScale:
    """The predicted human rating of a new model in Elo points: `elo`, and `low` to `high` with coverage 1 - alpha.

    `rule` has the smaller leave-one-out mean error over anchors; `errors` contains that of each rule that could be
    tried. `slope` is people's points per point of the judge. `residual` (anchors,) is human minus judge of each anchor
    by the line through the others; the interval takes each by its leverage, as it does that of the new model, and is
    wider on a side that ends beyond all anchors, and on both where the judge rates the model beyond all (`beyond`).
    `interval` names its basis.
    """

    elo: float
    low: float
    high: float
    rule: _Rule
    slope: float
    errors: Mapping[str, float]
    residual: Vector
    interval: Conformal
    warnings: tuple[str, ...]
    beyond: bool = False


def human_scale(
    judge: ArrayLike,
    se: ArrayLike,
    human: ArrayLike,
    elo: float,
    elo_se: float,
    *,
    alpha: float = 0.1,
    rule: _Rule | None = None,
    family: str | None = None,
    families: Sequence[str] | None = None,
) -> HumanScale:
    """Map a model that the judge rates at `elo` (with error `elo_se`) to people's scale. All in Elo points.

    `judge` and `se` (anchors,) are ratings and errors of the anchors, each placed as the new model was, `human`
    (anchors,) their ratings by people. `rule` None selects the better rule by leave-one-out. `family` and `families`
    (anchors,) are used for a warning only. The interval is infinite with too few anchors, and where only the error of
    the model is unknown. Raises `InputError`.

    >>> from venire.ratings import human_scale
    >>> rng = np.random.default_rng(0)
    >>> judge = np.linspace(900, 1100, 12)
    >>> human = judge + rng.normal(0, 20, 12)
    >>> found = human_scale(judge, np.full(12, 10.0), human, 1000.0, 12.0)
    >>> found.low < found.elo < found.high
    True
    """
    x, errors, y = float_array("judge", judge), float_array("se", se), float_array("human", human)
    if x.ndim != 1 or not x.shape == y.shape == errors.shape or not len(x):
        raise InputError(f"judge, se and human have shapes {x.shape}, {errors.shape}, {y.shape}: one of each an anchor")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(elo)):
        raise InputError("judge, human and elo: give finite numbers; leave out anchors that are not rated by both")
    tried = _tried(x, y)
    missed: dict[str, float] = {name: float(np.abs(left).mean()) for name, left in tried.items() if len(left)}
    chosen: _Rule = rule or ("line" if missed.get("line", np.inf) < missed.get("offset", np.inf) else "offset")
    if chosen not in tried:
        raise InputError(f"rule is {chosen!r}; {suggest(chosen, tried)}: a line takes {_MIN_FOR_A_LINE} anchors")
    residual = tried[chosen]
    slope = _slope(x, y, chosen)
    point = float(y.mean() + slope * (elo - x.mean()))
    fitted = y.mean() + slope * (x - x.mean())
    known = len(residual) > 0 and bool(np.isfinite(errors).all())
    beyond = bool(elo < x.min() or elo > x.max())
    # A residual by the line through the others is larger than the noise, more so at the ends; so is a prediction there.
    own, new = _leverage(x, elo, chosen)
    found = split_conformal(
        residual * np.sqrt(np.maximum(1.0 - own, 0.0))[: len(residual)],
        abs(slope) * errors if known else 0.0,
        [point],
        abs(slope) * elo_se if np.isfinite(elo_se) else 0.0,
        alpha=alpha,
        calibration_elo=fitted if len(residual) else None,
        family=None if family is None else [family],
        calibration_family=families,
    )
    below, above = (np.sqrt(1.0 + new) * (end - point) for end in (found.low, found.high))
    below *= np.where(beyond | (point + _BEYOND * below < y.min()), _BEYOND, 1.0)
    above *= np.where(beyond | (point + _BEYOND * above > y.max()), _BEYOND, 1.0)
    found = replace(found, low=point + below, high=point + above)
    warnings = tuple(warning.removeprefix("model 0: ") for warning in found.warnings)
    if np.isfinite(found.low[0]) and (beyond or found.low[0] < y.min() or found.high[0] > y.max()):
        warnings += (f"beyond the anchors its interval on people's scale reaches {_BEYOND:g} times as far",)
    if slope <= 0.0:
        warnings += ("by these anchors the judge does not rate as people do, or the other way round: the line falls",)
    if known and not np.isfinite(elo_se):
        found = replace(found, low=np.array([-np.inf]), high=np.array([np.inf]), expected=None)
        warnings += ("its error is not known, and those of the anchors are: its interval has no end",)
    return HumanScale(
        point, float(found.low[0]), float(found.high[0]), chosen, slope, missed, residual,
        replace(found, warnings=warnings), warnings, beyond,
    )  # fmt: skip


def _tried(x: Vector, y: Vector) -> dict[_Rule, Vector]:
    """By rule, human minus judge (anchors,) of each anchor predicted from the others; empty without others."""
    if len(x) < 2:
        return {"offset": np.empty(0)}
    rules = get_args(_Rule) if len(x) >= _MIN_FOR_A_LINE else ("offset",)
    return {rule: _left_out(x, y, rule) for rule in rules}


def _leverage(x: Vector, elo: float, rule: _Rule) -> tuple[Vector, float]:
    """The weight of each anchor (anchors,) in its own prediction, and that of a model at `elo` in its variance."""
    apart = x - x.mean()
    spread = float(apart @ apart) if rule == "line" else 0.0
    if spread <= 0.0:
        return np.full(len(x), 1.0 / len(x)), 1.0 / len(x)
    return 1.0 / len(x) + apart**2 / spread, 1.0 / len(x) + float(elo - x.mean()) ** 2 / spread


def _left_out(x: Vector, y: Vector, rule: _Rule) -> Vector:
    found = np.empty(len(x))
    for code in range(len(x)):
        keep = np.arange(len(x)) != code
        ahead, behind = x[keep], y[keep]
        found[code] = y[code] - behind.mean() - _slope(ahead, behind, rule) * (x[code] - ahead.mean())
    return found


def _slope(x: Vector, y: Vector, rule: _Rule) -> float:
    return least_squares_scale(y - y.mean(), x - x.mean()) if rule == "line" else 1.0
