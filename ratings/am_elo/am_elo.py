"""am-ELO: ratings of models and abilities of judges from the same verdicts, by maximum likelihood.

P(A) = sigma(theta_k (R_A - R_B)) for judge k; "am-ELO: A Stable Framework for Arena-based LLM Evaluation", arXiv
2505.03475. The likelihood does not change if all ratings are multiplied by c and all abilities divided by c, and c may
be negative. A mean ability of 1 fixes the scale, and the majority of judges fixes the sign. The likelihood is not
concave: it is maximised from several starts (an option adds more), and `Restarts` reports the maxima found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.choices import Habit
from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.am_elo.fit import Penalty
from venire.ratings.am_elo.likelihood import NO_TIES, Cells, Point, cells_of
from venire.ratings.am_elo.separation import (
    LimitFit,
    climb_to_limit,
    judge_reasons,
    model_reasons,
    verdict_directions,
    warm_start,
)
from venire.ratings.am_elo.standard_errors import StandardErrors, standard_errors_of
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import student
from venire.ratings.data.validation import check_level, check_seed
from venire.ratings.pairwise.covariance import Errors
from venire.ratings.pairwise.solvers import NotConvergedError, climb, curve_of

_NONE = 1e-5
"""A mean ability below this share of the mean absolute ability is treated as 0."""

Vector = NDArray[np.float64]

_SAME = 1e-6
"""Log-likelihoods with a smaller relative difference belong to the same optimum."""


@dataclass(frozen=True, slots=True, eq=False)
class AmElo:
    """Ratings of models and abilities of `judges`; arrays are (judges,).

    Finite values of `ability` have mean 1. It is infinite (of either sign) for a judge whose every verdict agrees, or
    disagrees, with the order of the ratings, and NaN where the data do not determine it. `separated` are the judges
    with infinite ability; `reasons` explain why an ability is not finite. `position` is the bias towards the first
    place in log odds and `ties` the tendency to give ties (Davidson's nu), where these habits are fitted. `sign` is "as
    the majority", or "undecided" with the reason. `loglik` is the log-likelihood of the verdicts, without penalties and
    with infinite judges in their limit.
    """

    ratings: Ratings
    judges: tuple[str, ...]
    ability: Vector
    ability_se: Vector
    loglik: float
    restarts: Restarts
    separated: tuple[str, ...]
    sign: str
    reasons: Mapping[str, str] = field(default_factory=dict)
    position: Vector | None = None
    position_se: Vector | None = None
    ties: Vector | None = None
    ties_se: Vector | None = None
    degrees: float = math.nan

    def ability_interval(self, level: float = 0.95) -> tuple[Vector, Vector]:
        """Bounds of abilities (judges,): Student's t with `degrees` of freedom, by clusters alone.

        The factor on the variance is (C + 1) / (C - 1) for C - 1 degrees: by that of the sandwich alone, abilities,
        whose scale is estimated with them, were held by 0.92 of intervals over eight instructions.
        """
        check_level(level)
        wider = np.sqrt(1.0 + 2.0 / (self.degrees - 1.0)) if self.degrees > 1.0 else np.nan
        half = float(student.ppf(0.5 + level / 2.0, self.degrees)) * wider * self.ability_se
        return self.ability - half, self.ability + half


def am_elo(
    data: Comparisons,
    *,
    ridge: float = 0.0,
    ability_ridge: float = 0.0,
    restarts: int = 0,
    seed: int = 0,
    habits: Sequence[Habit] = (),
    first: ArrayLike | None = None,
    errors: Errors | None = None,
) -> AmElo:
    """Maximum-likelihood ratings and abilities of comparisons that name their judges; docs/judges.md.

    `ridge` is lambda in lambda / 2 |R|^2 and `ability_ridge` in lambda / 2 (theta - 1)^2 on the summed likelihood;
    together they always give finite estimates. `restarts` adds starts drawn from `seed`. `habits` are fitted for each
    judge: "position" needs `first` (rows,), 1 where the model in a was shown first, -1 where second; "ties" models an
    outcome of 0.5 as a tie, and rejects other fractional outcomes. `errors` None is "cluster" where the data has
    clusters, else "sandwich". Raises `InputError` for what cannot be fitted and `NotConvergedError`.

    >>> from venire.ratings import am_elo, comparisons
    >>> data = comparisons(list("aba") * 20, list("bcc") * 20, [1, 1, 0, 0, 1, 1] * 10, judge=list("xy") * 30)
    >>> found = am_elo(data, ridge=0.1, ability_ridge=1.0)
    >>> found.ratings.elo.round().tolist()
    [1000.0, 1370.0, 630.0]
    """
    task = fit_problem(data, ridge, ability_ridge, habits, first)
    kind = _kind(errors, data)
    check_seed(seed)
    if restarts < 0:
        raise InputError(f"restarts is {restarts}; give 0 or more")
    limit, restarts_made = best_optimum(task, restarts, seed)
    if limit is None:
        return _nothing(task, restarts_made)
    return _result(task, limit, restarts_made, kind)


def _kind(errors: Errors | None, data: Comparisons) -> Errors:
    kind: Errors = errors or ("sandwich" if data.cluster is None else "cluster")
    if kind not in get_args(Errors):
        raise InputError(f"errors is {errors!r}; {suggest(kind, get_args(Errors))}")
    if kind == "cluster" and data.cluster is None:
        raise InputError("errors='cluster' needs comparisons with a cluster; give one, or use errors='sandwich'")
    if kind == "hessian" and bool(((data.y != 0.0) & (data.y != 1.0)).any()):
        raise InputError("errors is 'hessian', which holds for outcomes 0 and 1 alone; choose 'sandwich' or 'cluster'")
    return kind


def _result(task: FitProblem, limit: LimitFit, restarts: Restarts, kind: Errors) -> AmElo:
    """The result in its gauge: mean ability 1, mean rating 0, and the sign of the majority of judges."""
    data, cells, point = task.data, task.cells, limit.peak.point
    counted = _counted(limit)
    mean, degenerate = _scale(limit, counted)
    spread = None
    if kind != "none" and not degenerate:
        rows, order = _rows(task, limit)
        spread = standard_errors_of(limit, rows, order, task.penalty, counted, kind)
    logits = np.full(cells.models, np.nan)
    logits[limit.models] = mean * (point.ratings - point.ratings.mean())
    local, errors = np.full(task.fixed.shape, np.nan), np.full(task.fixed.shape, np.nan)
    local[limit.judges] = point.local
    ability = local[:, 0] / mean
    ability[np.setdiff1d(limit.judges[~counted], limit.edge)] = np.nan
    _put_endless(cells, limit, logits, ability)
    if spread is not None:
        errors[limit.judges] = spread.local
    errors[~np.isfinite(ability)] = np.nan
    sign = _sign(cells, ability, mean, limit, spread, degenerate)
    reasons = judge_reasons(data.judges, cells, logits, ability, limit)
    separated = tuple(name for name, value in zip(data.judges, ability, strict=True) if np.isinf(value))
    notes = {"sign": sign, "separated": list(separated), "no_ability": dict(reasons)}
    notes["no_estimate"] = model_reasons(data.models, cells, limit, ability)
    return AmElo(
        ratings=_ratings(task, limit, logits, spread, kind, {**_facts(limit, restarts), **notes}),
        judges=data.judges,
        ability=ability,
        ability_se=errors[:, 0],
        loglik=limit.peak.log_likelihood,
        restarts=restarts,
        separated=separated,
        sign=sign,
        reasons=reasons,
        degrees=math.nan if spread is None else spread.units - 1.0 if spread.respondents else spread.degrees,
        **_habits(task, limit, local, errors),
    )


def _facts(limit: LimitFit, restarts: Restarts) -> dict[str, Any]:
    optima = [list(one) for one in restarts.optima]
    return {
        "log_likelihood": limit.peak.log_likelihood,
        "iterations": limit.peak.steps,
        "gradient": limit.peak.gradient,
        "restarts": {"starts": restarts.starts, "failed": restarts.failed, "optima": optima},
    }


def _ratings(
    task: FitProblem,
    limit: LimitFit,
    logits: Vector,
    spread: StandardErrors | None,
    kind: Errors,
    notes: dict[str, Any],
) -> Ratings:
    """Ratings of all models, with the covariance of those in the fit."""
    ratings = Ratings("am-elo", task.data.models, logits, task.data.played, diagnostics=notes)
    if spread is None:
        return ratings
    covariance = np.full((len(logits), len(logits)), np.nan)
    covariance[np.ix_(limit.models, limit.models)] = spread.ratings
    notes |= {"clusters": spread.units, "errors_reason": spread.reason}
    notes |= {"respondents": spread.respondents} if spread.respondents else {}
    name = "two-way" if spread.respondents else kind
    return replace(ratings, covariance=covariance, errors=name, degrees=spread.degrees)


def _habits(
    task: FitProblem, limit: LimitFit, local: NDArray[np.float64], errors: NDArray[np.float64]
) -> dict[str, Vector]:
    """Habits by judge, NaN where its verdicts do not determine them; a judge without ties has nu 0 and no error."""
    found: dict[str, Vector] = {}
    if task.cells.first is not None:
        blank = limit.fixed[:, 1]
        found["position"] = np.where(blank, np.nan, local[:, 1])
        found["position_se"] = np.where(blank, np.nan, errors[:, 1])
    if task.cells.tied is not None:
        freedom = np.exp(local[:, -1])
        found["ties"] = np.where(task.fixed[:, -1], 0.0, freedom)
        found["ties_se"] = np.where(task.fixed[:, -1], np.nan, freedom * errors[:, -1])
    return found


def _counted(limit: LimitFit) -> NDArray[np.bool_]:
    """Judges of the fit (judges,) with a finite ability; judges that saw only equally rated models have none."""
    point, part = limit.peak.point, limit.part
    gap = (point.ratings[part.upper] - point.ratings[part.lower]) / point.spread
    known = part.by_judge(part.weight * gap * gap) > 1e-18 * part.by_judge(part.weight)
    return known & ~np.isin(limit.judges, limit.edge)


def _scale(limit: LimitFit, counted: NDArray[np.bool_]) -> tuple[float, bool]:
    """The divisor of abilities, and whether their mean is about 0, so that the mean absolute ability is used."""
    ability = limit.peak.point.ability[counted]
    if not len(ability):
        return 1.0, False
    mean, size = float(ability.mean()), float(np.abs(ability).mean())
    if abs(mean) > _NONE * size:
        return mean, False
    return (size if size > 0.0 else 1.0), True


def _rows(task: FitProblem, limit: LimitFit) -> tuple[Comparisons, Vector | None]:
    """The rows of the fit, coded into its models and judges, and their presentation orders."""
    data = task.data
    assert data.judge is not None
    if len(limit.models) == len(data.models) and len(limit.judges) == len(data.judges):
        return data, task.first
    place, seat = np.full(len(data.models), -1, np.int32), np.full(len(data.judges), -1, np.int32)
    place[limit.models] = np.arange(len(limit.models), dtype=np.int32)
    seat[limit.judges] = np.arange(len(limit.judges), dtype=np.int32)
    inside = (place[data.a] >= 0) & (place[data.b] >= 0) & (seat[data.judge] >= 0)
    rows = data.select(inside)
    assert rows.judge is not None
    rows = replace(
        rows,
        models=tuple(data.models[code] for code in limit.models.tolist()),
        judges=tuple(data.judges[code] for code in limit.judges.tolist()),
        a=place[rows.a],
        b=place[rows.b],
        judge=seat[rows.judge],
    )
    return rows, None if task.first is None else task.first[inside]


def _put_endless(cells: Cells, limit: LimitFit, logits: Vector, ability: Vector) -> None:
    """Set infinite abilities in place: by verdicts for judges out of the fit, by sign for those at the edge."""
    ability[limit.edge] = np.sign(ability[limit.edge]) * np.inf
    part = cells.among(limit.models, limit.endless)
    gap = logits[limit.models][part.upper] - logits[limit.models][part.lower]
    way = verdict_directions(part, gap)
    ability[limit.endless] = np.array([-np.inf, np.nan, np.inf])[1 + way]


def _sign(
    cells: Cells, ability: Vector, mean: float, limit: LimitFit, spread: StandardErrors | None, degenerate: bool
) -> str:
    """Whether the data determine the sign of the mean ability, and with it the direction of the ratings."""
    known = np.isfinite(ability)
    if not known.any():
        return "undecided: no judge has a finite ability"
    if degenerate:
        return "undecided: abilities have a mean of 0, so that their mean size is 1 instead"
    weight = cells.by_judge(cells.weight)
    lead = float(weight @ np.sign(np.where(np.isnan(ability), 0.0, ability)))
    if lead < 0.0:
        return (
            f"undecided: the mean ability is positive, but judges with {0.5 - 0.5 * lead / weight.sum():.0%} of the "
            "verdicts have a negative one"
        )
    if spread is not None and len(ability) > 1:
        size = abs(mean) * limit.peak.point.spread
        if not np.isfinite(spread.mean):
            return "undecided: the error of the mean ability is not known"
        if size <= 2.0 * spread.mean:
            figures = f"{size:.2g}, error {spread.mean:.2g}, ratings of spread 1"
            return f"undecided: the mean ability is within 2 errors of 0 ({figures})"
    return "as the majority"


def _nothing(task: FitProblem, restarts: Restarts) -> AmElo:
    """The result if no model can be rated: fewer than two models, or no judge contradicts itself to set a scale."""
    data = task.data
    if not data.models:
        raise InputError("there is no model to rate")
    blank = np.full(len(data.judges), np.nan)
    played = data.played
    why = "no judge has a finite ability, so that ratings have no scale: judge more battles, or give an ability ridge"
    notes = {
        "no_estimate": {
            name: why if weight > 0.0 else "took part in no readable judgment"
            for name, weight in zip(data.models, played.tolist(), strict=True)
        },
        "sign": "undecided: no judge has a finite ability",
    }
    ratings = Ratings("am-elo", data.models, np.full(len(data.models), np.nan), played, diagnostics=notes)
    return AmElo(ratings, data.judges, blank, blank.copy(), 0.0, restarts, (), str(notes["sign"]))


@dataclass(frozen=True, slots=True)
class Restarts:
    """Numbers of starts and of starts without convergence, and each optimum as (log-likelihood, count), best first.

    An optimum and its mirror image, with all signs reversed, count as one.
    """

    starts: int
    failed: int
    optima: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class FitProblem:
    """A problem to fit: the table, its cells, penalties, and the fixed parameters of each judge."""

    data: Comparisons
    cells: Cells
    penalty: Penalty
    fixed: NDArray[np.bool_]
    first: Vector | None


def fit_problem(
    data: Comparisons, ridge: float, ability_ridge: float, habits: Sequence[Habit], first: ArrayLike | None
) -> FitProblem:
    """Check the options of `am_elo` and count the table; raises `InputError` for what cannot be fitted."""
    for name, value in (("ridge", ridge), ("ability_ridge", ability_ridge)):
        if not (value >= 0.0 and np.isfinite(value)):
            raise InputError(f"{name} is {value}; give a finite number, 0 or more")
    if strange := [name for name in habits if name not in ("position", "ties")]:
        raise InputError(f"habit is {strange[0]!r}; choose of position, ties")
    shown: Vector | None = None
    if "position" in habits:
        if first is None:
            raise InputError("a habit of place needs to know which answer was shown first: give first=")
        shown = np.asarray(first, dtype=np.float64)
    cells = cells_of(data, first=shown, ties="ties" in habits)
    width = 1 + ("position" in habits) + ("ties" in habits)
    fixed = np.zeros((cells.judges, width), dtype=np.bool_)
    if cells.first is not None:
        fixed[:, 1] = cells.by_judge(np.abs(cells.first)) == 0.0
    if cells.tied is not None:
        fixed[:, -1] = cells.by_judge(cells.tied) == 0.0
        only = (cells.by_judge(cells.won + cells.lost) == 0.0) & (cells.by_judge(cells.tied) > 0.0)
        if only.any():
            raise InputError(
                f"judge {data.judges[int(np.argmax(only))]} gave nothing but ties, so that how freely it ties has no "
                "finite estimate: leave it out, or leave the habit of ties out"
            )
    return FitProblem(data, cells, Penalty(ridge, ability_ridge), fixed, shown)


def best_optimum(task: FitProblem, restarts: int, seed: int) -> tuple[LimitFit | None, Restarts]:
    """Multi-start optimisation: the best maximum reached from m-ELO with equal abilities and from further starts."""
    found: list[LimitFit] = []
    starts, failed, trouble = 0, 0, NotConvergedError("ratings and abilities: no start led to a maximum")
    rng = np.random.default_rng(seed)
    for number in range(2 + restarts):
        if number == 1 and found:
            continue
        start = _equal(task) if number == 0 else _leading(task) if number == 1 else _drawn(task, rng)
        starts += 1
        try:
            limit = climb_to_limit(task.cells, start, task.penalty, task.fixed, task.data.models, task.data.judges)
        except NotConvergedError as error:
            failed, trouble = failed + 1, error
            continue
        if limit is None:
            return None, Restarts(starts, failed, ())
        found.append(limit)
    if not found:
        raise trouble
    heights = [_height(task, limit) for limit in found]
    best = max(range(len(found)), key=lambda number: (heights[number], -number))
    optima: list[list[float]] = []
    for one in sorted((height[1] for height in heights), reverse=True):
        if optima and optima[-1][0] - one <= _SAME * max(1.0, abs(one)):
            optima[-1][1] += 1
        else:
            optima.append([one, 1])
    return found[best], Restarts(starts, failed, tuple((value, int(times)) for value, times in optima))


def _height(task: FitProblem, limit: LimitFit) -> tuple[int, float]:
    """Sort key of results: first the number of rated models, then the penalised likelihood."""
    height = limit.peak.log_likelihood - task.penalty.value(limit.peak.point)
    return len(limit.models), height


def _local(task: FitProblem, ability: Vector) -> NDArray[np.float64]:
    """Start values of judges: an ability each, no position bias, and the observed frequency of ties."""
    cells = task.cells
    local = np.zeros(task.fixed.shape)
    local[:, 0] = ability
    if cells.tied is not None:
        tied, rest = cells.by_judge(cells.tied), cells.by_judge(cells.won + cells.lost)
        odds = np.divide(2.0 * tied, rest, out=np.ones(len(tied)), where=rest > 0.0)
        local[:, -1] = np.where(tied > 0.0, np.log(np.where(odds > 0.0, odds, 1.0)), NO_TIES)
    return local


def _equal(task: FitProblem) -> Point:
    """Start from m-ELO's ratings, all abilities 1; a small ridge holds models that it cannot rate together."""
    counts = task.data.wins
    ridge = 0.0 if len(counts.strong_components()) == 1 else 0.1
    ratings = climb(curve_of(counts), counts.guess(), ridge=ridge).logits
    return warm_start(task.cells, Point(ratings, _local(task, np.ones(task.cells.judges))), task.fixed, task.penalty)


def _leading(task: FitProblem) -> Point:
    """Start from the order that judges' net wins share, whether followed or opposed; it needs no majority."""
    cells = task.cells
    net = np.zeros((cells.judges, cells.models))
    np.add.at(net, (cells.judge, cells.upper), cells.won - cells.lost)
    np.add.at(net, (cells.judge, cells.lower), cells.lost - cells.won)
    left, size, right = np.linalg.svd(net, full_matrices=False)
    if not len(size) or size[0] <= 0.0:
        raise NotConvergedError("ratings and abilities: verdicts name no winner that could tell models apart")
    ratings = right[0] / max(float(np.abs(right[0]).max()), 1e-300)
    ability = left[:, 0] / max(float(np.abs(left[:, 0]).max()), 1e-300)
    turn = 1.0 if ability.sum() >= 0.0 else -1.0
    return Point(turn * ratings, _local(task, turn * ability))


def _drawn(task: FitProblem, rng: np.random.Generator) -> Point:
    """Start from random abilities of either sign, and ratings from net wins weighted by them."""
    cells = task.cells
    ability = rng.normal(size=cells.judges)
    if task.penalty.tied:
        ability *= np.sign(ability.sum())
        ability += 1.0 - ability.mean()
    lead = ability[cells.judge] * (cells.won - cells.lost)
    net = np.bincount(cells.upper, lead, cells.models) - np.bincount(cells.lower, lead, cells.models)
    met = np.bincount(cells.upper, cells.weight, cells.models) + np.bincount(cells.lower, cells.weight, cells.models)
    return Point(np.divide(net, met, out=np.zeros(cells.models), where=met > 0.0), _local(task, ability))
