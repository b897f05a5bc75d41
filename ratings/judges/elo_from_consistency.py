"""People's ratings of the judges themselves, predicted from how consistently they judge; arXiv 2509.23510.

One linear least squares regression of Elo on score. In-sample figures are optimistic, so every judge is also predicted
from a line through the others. Errors in points are hard to interpret alone, so they are also given relative to Elo's
standard deviation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.data.statistics import (
    FEWEST_FOR_CORRELATION,
    correlation_interval,
    kendall,
    least_squares,
    pearson,
    spearman,
)
from venire.ratings.data.validation import float_array
from venire.ratings.judges.consistency import Consistency
from venire.ratings.judges.discrimination import score_reliability

Score = Literal["consistency", "decisive", "corrected", "discrimination"]

_TOP = 1250.0
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class RegressionLine:
    """Regression of Elo on the score over some judges; None where they are fewer than 4, or do not differ.

    `mae` is the mean absolute error in Elo points in sample, `mae_left_out` with each judge predicted from a line
    through the others, and `_sd` the same over `sd`, the standard deviation of Elo. `reliability` is the share of the
    score's variance that is not error: a correlation is not expected to exceed its square root, the `limit`.
    `intervals` maps `pearson`, `spearman` and `kendall` to Fisher's 95 % interval, over other judges of the same kind;
    one is missing where its error cannot be told.
    """

    judges: tuple[str, ...]
    slope: float | None
    intercept: float | None
    pearson: float | None
    spearman: float | None
    kendall: float | None
    mae: float | None
    mae_left_out: float | None
    sd: float | None
    reliability: float | None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def mae_sd(self) -> float | None:
        """In-sample error in standard deviations of Elo."""
        return _over(self.mae, self.sd)

    @property
    def mae_left_out_sd(self) -> float | None:
        """Leave-one-out error in standard deviations of Elo."""
        return _over(self.mae_left_out, self.sd)

    @property
    def limit(self) -> float | None:
        """The largest expected correlation for a score with this much noise; 0 where it is noise only."""
        return None if self.reliability is None else float(np.sqrt(max(self.reliability, 0.0)))


@dataclass(frozen=True, slots=True)
class EloFromConsistency:
    """How well a score of judges predicts their Elo: over `all` of them, and within the `top` cluster.

    `cluster` states how the top cluster was chosen. `left_out` are the judges without a finite score or a known Elo.
    """

    score: str
    all: RegressionLine
    top: RegressionLine
    cluster: str
    left_out: tuple[str, ...]

    def summary(self) -> str:
        """Both lines as a text table; an empty field is an undefined figure."""
        head = f"{'Elo from ' + self.score:<28}  {'judges':>6}  {'r':>6}  {'rho':>6}  {'tau':>6}  {'limit':>6}"
        lines = [f"{head}  {'MAE':>6}  {'left out':>8}  {'/ sd':>5}"]
        for name, line in (("all judges", self.all), (self.cluster, self.top)):
            correlations = (line.pearson, line.spearman, line.kendall, line.limit)
            shown = "  ".join(f"{_figure(value, 2):>6}" for value in correlations)
            errors = f"{_figure(line.mae, 1):>6}  {_figure(line.mae_left_out, 1):>8}"
            over = _figure(line.mae_left_out_sd, 2)
            lines.append(f"{name:<28}  {len(line.judges):>6}  {shown}  {errors}  {over:>5}")
        if self.left_out:
            lines.append("left out, without a finite score or a known Elo: " + ", ".join(self.left_out))
        return "\n".join(lines)


def elo_from_scores(
    judges: Sequence[str],
    score: ArrayLike,
    elo: ArrayLike,
    *,
    se: ArrayLike | None = None,
    top: float = _TOP,
    name: str = "score",
) -> EloFromConsistency:
    """Predict Elo from a score on plain columns (judges,); `se` are the scores' standard errors, for reliability.

    The top cluster consists of the judges with an Elo over `top`, or if they are fewer than 4, of the top third. Judges
    whose score or Elo is not finite are left out and named. Raises `InputError` for columns of unequal length.

    >>> from venire.ratings import elo_from_scores
    >>> found = elo_from_scores(["x", "y", "z", "w"], [0.9, 0.8, 0.7, 0.6], [1200.0, 1100.0, 1000.0, 950.0])
    >>> found.score
    'score'
    """
    x, y = float_array("score", score), float_array("elo", elo)
    error = np.full(len(x), np.nan) if se is None else float_array("se", se)
    for word, column in (("score", x), ("elo", y), ("se", error)):
        if column.shape != (len(judges),):
            raise InputError(f"{word} has shape {column.shape}; give one value for each of the {len(judges)} judges")
    known = np.isfinite(x) & np.isfinite(y)
    places = np.flatnonzero(known)
    cluster, first = f"Elo over {top:g}", places[y[places] > top]
    if len(first) < FEWEST_FOR_CORRELATION:
        # All judges that are equal at the boundary are included, so that the order of judges decides nothing.
        least = np.sort(y[places])[::-1][: max(-(-len(places) // 3), 1)].min(initial=np.inf)
        cluster, first = "top third", places[y[places] >= least]
    return EloFromConsistency(
        score=name,
        all=_line([judges[k] for k in places.tolist()], x[places], y[places], error[places]),
        top=_line([judges[k] for k in first.tolist()], x[first], y[first], error[first]),
        cluster=cluster,
        left_out=tuple(judges[k] for k in np.flatnonzero(~known).tolist()),
    )


def elo_from_consistency(
    found: Consistency, elo: Mapping[str, float], *, score: Score = "decisive", top: float = _TOP
) -> EloFromConsistency:
    """`elo_from_scores` from the figures of judges and their Elo by name.

    `discrimination` means the maximum-likelihood slope: the shrunk slope is for display. The errors of the other scores
    come from the jackknife of their intervals. Raises `InputError` for an unknown score.

    >>> from venire.ratings import battles, consistency, elo_from_consistency
    >>> rng = np.random.default_rng(0)
    >>> a, b = np.array([(0, 1), (1, 2), (0, 2)] * 160).T
    >>> y = (rng.random(960) < 0.7).astype(float)
    >>> judges, i = np.repeat(["x", "y"], 480), np.arange(960)
    >>> asked = battles(np.tile(a, 2), np.tile(b, 2), y, judge=judges, instruction=i // 6, swapped=i % 6 > 2)
    >>> given = consistency(asked)
    >>> found = elo_from_consistency(given, {"x": 1000.0, "y": 1100.0})
    >>> found.score, found.all.judges
    ('decisive', ('x', 'y'))
    """
    if score not in get_args(Score):
        raise InputError(f"score is {score!r}; {suggest(score, get_args(Score))}")
    names = [row.judge for row in found.judges]
    nothing = np.full(len(names), np.nan)
    if score == "discrimination":
        values = nothing if found.slopes is None else found.slopes.ml
        errors = nothing if found.slopes is None else found.slopes.ml_se
    else:
        form = found.forms.get(score)
        values = nothing if form is None else form.point
        errors = nothing if form is None else form.errors()
    return elo_from_scores(names, values, [elo.get(name, np.nan) for name in names], se=errors, top=top, name=score)


def _line(judges: list[str], x: NDArray[np.float64], y: NDArray[np.float64], se: NDArray[np.float64]) -> RegressionLine:
    names = tuple(judges)
    share = score_reliability(x, se)
    if len(x) < FEWEST_FOR_CORRELATION or np.ptp(x) == 0.0:
        return RegressionLine(names, None, None, None, None, None, None, None, None, share)
    slope, intercept, residual = least_squares(x, y)
    differ = np.ptp(y) > 0.0
    found = {}
    if differ:
        found = {
            "pearson": float(pearson(x[None], y)[0]),
            "spearman": float(spearman(x[None], y)[0]),
            "kendall": float(kendall(x[None], y)[0]),
        }
    intervals = {name: correlation_interval(name, value, len(x), _LEVEL) for name, value in found.items()}
    return RegressionLine(
        judges=names,
        slope=slope,
        intercept=intercept,
        pearson=found.get("pearson"),
        spearman=found.get("spearman"),
        kendall=found.get("kendall"),
        mae=float(np.abs(residual).mean()),
        mae_left_out=_left_out(x, residual),
        sd=float(y.std(ddof=1)) if differ else None,
        reliability=share,
        intervals={name: interval for name, interval in intervals.items() if interval is not None},
    )


def _left_out(x: NDArray[np.float64], residual: NDArray[np.float64]) -> float | None:
    """Mean absolute error of each judge predicted from a line through the others, by its leverage.

    None where the other judges of some judge do not differ, so that they have no line.
    """
    away = x - x.mean()
    rest = 1.0 - (1.0 / len(x) + away**2 / (away @ away))
    return None if rest.min() <= 1e-12 else float(np.abs(residual / rest).mean())


def _over(value: float | None, sd: float | None) -> float | None:
    return None if value is None or sd is None else value / sd


def _figure(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
