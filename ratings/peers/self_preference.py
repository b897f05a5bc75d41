"""Self-preference: how far judges favour their own models, the model that a judge is or all of its family.

A strong judge's own answers may be better, so its share of wins for them is not evidence by itself. Three methods
account for that. `family_excess` compares scores with the other judges' median, `family_preference` compares verdicts
on the same battles with those of judges of other families, and `self_preference_odds` fits all verdicts jointly, with a
slope and own-model odds for each judge k:

    log odds of A = slope_k * (R_A - R_B) + odds_k * ([A is k's own] - [B is k's own]) + taste_k * x

A judge with a large slope puts a strong model, including its own, further ahead than a judge with a small slope. The
plain difference between its verdicts on its own model and those of others is then not self-preference, and only the
odds correct for this. This is am-ELO's model (*am-ELO: A Stable Framework for Arena-based LLM Evaluation*, arXiv
2505.03475) with one more parameter per judge. Ratings are held at mean 0 and slopes at mean 1, which changes neither
probabilities nor odds. `x` are features of the two answers, such as a difference of lengths, for which each judge has a
taste of its own: a judge that likes long answers more than others do favours a model that writes long ones, itself or
another. Without lengths this is not told from self-preference. Tastes have a normal prior about 0 with a standard
deviation of 3, in usual differences of the feature, and slopes one about 1 with a standard deviation of 1: some hundred
verdicts of a judge outweigh them, and with few models, where slopes are hardly identified, theirs keeps them from
diverging.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array
from scipy.special import expit, log_expit

from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.data.clustered import ClusteredMean, cluster_codes, clustered_mean
from venire.ratings.data.judgments import Judgments, combine_keys
from venire.ratings.data.statistics import student
from venire.ratings.data.style import FAMILY, unit_scale
from venire.ratings.data.validation import code_integers, float_array
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import SeparatedError
from venire.ratings.pairwise.solvers import NotConvergedError

_STEPS = 100

_SETTLED = 1e-9

_COLLINEAR = 1e-9
"""Minimum share of a parameter's information that must not be explained by the other parameters."""

_NOT_IDENTIFIED = "its favour cannot be told from slopes and ratings: there are too few judges, or models"

_FAR = 15.0
"""Log odds beyond which a parameter is diverging: no judge is that certain."""

_TASTE = 1.0 / 9.0
"""Precision of the prior on tastes; with one of 1 a judge with a strong taste kept a tenth of it as favour."""

_STEP = 0.125
"""Usual differences of a feature that count as one value, so that rows of like values are one cell."""

_DENSE = 1 << 24
"""Largest table of sums by instruction and parameter (128 MB)."""


@dataclass(frozen=True, slots=True)
class SelfPreferenceOdds:
    """Self-preference in log odds: above 0 a judge favours its own models, below 0 others.

    `lo` to `hi` is Student's t interval over instructions. `slope` is its discrimination, where the mean of all slopes
    is 1 (for several judges with one parameter, their mean). Undefined values are None, and `reason` explains why.
    """

    value: float | None = None
    se: float | None = None
    lo: float | None = None
    hi: float | None = None
    slope: float | None = None
    reason: str | None = None

    @property
    def favours_own(self) -> bool | None:
        """True where the whole interval is above 0, False where it is below; None: undecided."""
        if self.lo is None or self.hi is None:
            return None
        return True if self.lo > 0.0 else False if self.hi < 0.0 else None


@dataclass(frozen=True, slots=True, eq=False)
class OddsRows:
    """Rows of the regression: models, outcome and weight, the slope's number, and the own-model odds with their side.

    `odds` is a number below `owners`, `side` is 1 where only A is the judge's own, -1 where only B is, else 0. `x` are
    the features held equal (rows, features).
    """

    models: int
    slopes: int
    owners: int
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    y: NDArray[np.float64]
    weight: NDArray[np.float64]
    slope: NDArray[np.int64]
    odds: NDArray[np.int64]
    side: NDArray[np.float64]
    x: NDArray[np.float64]

    @property
    def fixed(self) -> int:
        """The number of ratings, slopes and odds: parameters that follow are tastes, slope by slope."""
        return self.models + self.slopes + self.owners

    @property
    def size(self) -> int:
        """The number of parameters: ratings, slopes, odds, tastes, in this order."""
        return self.fixed + self.slopes * int(self.x.shape[1])

    def tastes(self) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Of each feature the parameter that it has in each row (rows,), and its values (rows,)."""
        number = self.x.shape[1]
        return [(self.fixed + self.slope * number + place, self.x[:, place]) for place in range(number)]

    def logits(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """The log odds of A (rows,) at a point (size,)."""
        slope = point[self.models + self.slope]
        own = point[self.models + self.slopes + self.odds]
        liked = sum((point[column] * values for column, values in self.tastes()), np.zeros(len(self.a)))
        return np.asarray(slope * (point[self.a] - point[self.b]) + own * self.side + liked, dtype=np.float64)

    def jacobian(self, point: NDArray[np.float64]) -> csr_array:
        """Derivatives of the log odds in each parameter (rows, size)."""
        rows, slope = np.arange(len(self.a)), point[self.models + self.slope]
        liked = self.tastes()
        columns = [self.a, self.b, self.models + self.slope, self.models + self.slopes + self.odds]
        columns += [column for column, _ in liked]
        values = (slope, -slope, point[self.a] - point[self.b], self.side, *(one for _, one in liked))
        at = np.tile(rows, len(columns)), np.concatenate(columns)
        return csr_array((np.concatenate(values), at), shape=(len(rows), self.size))


def self_preference_odds(
    given: Judgments,
    own: NDArray[np.bool_],
    *,
    together: NDArray[np.int64] | None = None,
    held: Sequence[str] = (),
    level: float = 0.95,
) -> Mapping[int, SelfPreferenceOdds]:
    """Self-preference odds of each judge for its `own` models (judges, models), by its number, if it has any.

    Judges with the same number in `together` (judges,) share one parameter, for example those that are one model; by
    default each has a separate parameter. Judges without own models share one slope. `held` names features of `given`
    that are held equal, with a taste for each judge. A judge has no finite estimate if
    its verdicts on its own models are all equal, or if no judge of other models judged these; its verdicts on them are
    then left out, so that they do not affect other estimates.

    >>> from venire.ratings import battles, merge_orders, self_preference_odds
    >>> rng = np.random.default_rng(0)
    >>> a, b = np.array([(0, 1), (1, 2), (0, 2)] * 160).T
    >>> y = (rng.random(960) < 0.6).astype(float)
    >>> judges = np.repeat(["x", "y"], 480)
    >>> asked = battles(np.tile(a, 2), np.tile(b, 2), y, judge=judges, instruction=np.tile(np.arange(480) // 3, 2))
    >>> given = merge_orders(asked)
    >>> own = np.array([[True, False, False], [False, False, False]])
    >>> found = self_preference_odds(given, own)
    >>> round(found[0].value, 2), round(found[0].se, 2)
    (-0.57, 0.59)
    """
    own = _own_table(given, own)
    if strange := [name for name in held if name not in given.features]:
        raise InputError(f"there is no feature {strange[0]!r} to hold equal; {suggest(strange[0], given.features)}")
    if together is not None and np.shape(together) != (len(own),):
        raise InputError(f"together has shape {np.shape(together)}; give one number for each of {len(own)} judges")
    whose = np.where(own.any(axis=1), np.arange(len(own)) if together is None else together, -1)
    found = {code: SelfPreferenceOdds() for code in np.unique(whose[whose >= 0]).tolist()}
    try:
        logits = bradley_terry(given.comparisons(), errors="none").logits
    except NotConvergedError as error:
        return dict.fromkeys(found, SelfPreferenceOdds(reason=str(error)))
    except SeparatedError:
        return dict.fromkeys(
            found, SelfPreferenceOdds(reason="the models have no common ratings: no chain of wins joins them")
        )
    kept = np.ones(len(given), dtype=np.bool_) if given.weight is None else given.weight > 0.0
    side = _side(given, own)
    concerned = np.flatnonzero(kept & (side != 0.0))
    for_own = np.where(side[concerned] > 0.0, given.y[concerned], 1.0 - given.y[concerned])
    met = _met(given.select(kept))
    for code in found:
        mine = whose[given.judge[concerned]] == code
        if why := _without_figure(for_own[mine], _judged_by_others(met, own, whose == code)):
            found[code] = SelfPreferenceOdds(reason=why)
            kept[concerned[mine]] = False
    part = given.select(kept)
    owners = [code for code, one in found.items() if one.reason is None]
    if not owners or not len(part):
        return found
    rows, there = _rows(part, side[kept], whose, owners, held)
    try:
        cells = _counted(rows)
        point = _climb(cells, logits[there])
        errors, units = _errors(part, rows, cells, point)
    except NotConvergedError as error:
        return {code: one if one.reason else SelfPreferenceOdds(reason=str(error)) for code, one in found.items()}
    slopes = _slopes(part, whose, rows, point)
    for number, code in enumerate(owners):
        value = float(point[rows.models + rows.slopes + number])
        found[code] = _odds_of(value, errors[number], units, level, slopes.get(code))
    return found


def _own_table(given: Judgments, own: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which models are a judge's own (judges, models); raises `InputError` for another shape."""
    table, shape = np.asarray(own), (len(given.judges), len(given.models))
    if table.shape != shape:
        raise InputError(f"own has shape {table.shape}; give a row a judge and a column a model: {shape}")
    return table.astype(np.bool_)


def features_held(pairs: Judgments) -> list[str]:
    """The features of answers that own odds hold equal: all that the table has, but for the family."""
    return [name for name in pairs.features if name != FAMILY]


def _side(given: Judgments, own: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1 where only A is the judge's own, -1 where only B is, else 0 (rows,)."""
    return own[given.judge, given.model_a].astype(np.float64) - own[given.judge, given.model_b]


def _met(given: Judgments) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The distinct combinations of judge and pair."""
    judges, models = len(given.judges), len(given.models)
    code = (given.model_a.astype(np.int64) * models + given.model_b) * judges + given.judge
    found = code_integers(code)[0]
    return found % judges, found // judges // models, found // judges % models


def _judged_by_others(
    met: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    own: NDArray[np.bool_],
    mine: NDArray[np.bool_],
) -> bool:
    """Whether a judge that owns none of these judges' models saw one of them against another model."""
    judge, a, b = met
    kin: NDArray[np.bool_] = np.any(own[mine], axis=0)
    strangers: NDArray[np.bool_] = ~np.any(own[:, kin], axis=1)
    return bool((strangers[judge] & (kin[a] != kin[b])).any())


def _without_figure(for_own: NDArray[np.float64], judged: bool) -> str | None:
    """The reason why verdicts on own models (outcomes for these) have no estimate; `judged`: by others."""
    if not len(for_own):
        return "it did not judge its own"
    if not judged:
        return "no judge of other models judged its own"
    for outcome, word in ((1.0, "wins"), (0.0, "losses")):
        if np.all(for_own == outcome):
            return f"all of its verdicts on its own are {word}: no finite figure exists"
    return None


def _odds_of(value: float, se: float, units: int, level: float, slope: float | None) -> SelfPreferenceOdds:
    if units < 2:
        return SelfPreferenceOdds(
            value, slope=slope, reason="all verdicts are of one instruction: its error is not known"
        )
    half = float(student.ppf(0.5 + level / 2.0, units - 1)) * se
    return SelfPreferenceOdds(value, se, value - half, value + half, slope)


def _rows(
    given: Judgments, side: NDArray[np.float64], whose: NDArray[np.int64], owners: list[int], held: Sequence[str]
) -> tuple[OddsRows, NDArray[np.int64]]:
    """The rows, and their models; judges without own models share one slope."""
    present = np.flatnonzero(np.bincount(given.judge, minlength=len(whose)) > 0)
    _, number = np.unique(np.where(whose >= 0, np.arange(len(whose)), len(whose))[present], return_inverse=True)
    of_judge = np.zeros(len(whose), dtype=np.int64)
    of_judge[present] = number
    there, codes = np.unique(np.concatenate([given.model_a, given.model_b]), return_inverse=True)
    numbers = {code: index for index, code in enumerate(owners)}
    odds = np.array([numbers.get(code, -1) for code in whose.tolist()], dtype=np.int64)[given.judge]
    features = np.stack([given.features[name] for name in held], axis=1) if held else np.empty((len(given), 0))
    return OddsRows(
        models=len(there),
        slopes=int(number.max(initial=0)) + 1,
        owners=len(owners),
        a=codes[: len(given)].astype(np.int64),
        b=codes[len(given) :].astype(np.int64),
        y=given.y,
        weight=np.ones(len(given)) if given.weight is None else given.weight,
        slope=of_judge[given.judge],
        odds=np.maximum(odds, 0),
        side=np.where(odds >= 0, side, 0.0),
        x=np.round(unit_scale(features)[0] / _STEP) * _STEP if held else features,
    ), there.astype(np.int64)


def _counted(rows: OddsRows) -> OddsRows:
    """The same likelihood with rows aggregated by slope, pair and own-model odds."""
    pair = (rows.slope * rows.models + rows.a) * rows.models + rows.b
    for _, values in rows.tastes():
        _, code = np.unique(values, return_inverse=True)
        pair = code_integers(pair)[1].astype(np.int64) * (int(code.max(initial=0)) + 1) + code
    found, cell = code_integers(pair)
    first = np.empty(len(found), dtype=np.intp)
    first[cell] = np.arange(len(cell))
    weight = np.bincount(cell, rows.weight).astype(np.float64)
    y = np.bincount(cell, rows.weight * rows.y) / weight
    columns = {name: getattr(rows, name)[first] for name in ("a", "b", "slope", "odds", "side", "x")}
    return replace(rows, y=y, weight=weight, **columns)


def log_likelihood(point: NDArray[np.float64], rows: OddsRows) -> float:
    """Log posterior of ratings, slopes, odds and tastes (size,), with penalties on the means that fix the gauge."""
    logit = rows.logits(point)
    fit = float(rows.weight @ (rows.y * log_expit(logit) + (1.0 - rows.y) * log_expit(-logit)))
    shift, scale = _held(point, rows)
    away, tastes = point[rows.models : rows.models + rows.slopes] - 1.0, point[rows.fixed :]
    return (
        fit
        - 0.5 * float(away @ away + _TASTE * (tastes @ tastes))
        - 0.5 * float(rows.weight.sum()) * (shift * shift + scale * scale)
    )


def _held(point: NDArray[np.float64], rows: OddsRows) -> tuple[float, float]:
    """The distance of the mean rating from 0, and of the mean slope from 1."""
    return float(point[: rows.models].mean()), float(point[rows.models : rows.models + rows.slopes].mean()) - 1.0


def derivatives(point: NDArray[np.float64], rows: OddsRows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gradient (size,) of `log_likelihood`, and minus its Hessian (size, size)."""
    share, jacobian = expit(rows.logits(point)), rows.jacobian(point)
    surprise, total = rows.weight * (rows.y - share), float(rows.weight.sum())
    gradient = np.asarray(jacobian.T @ surprise, dtype=np.float64)
    spread = rows.weight * share * (1.0 - share)
    table = np.asarray((jacobian.T @ (jacobian.multiply(spread[:, None]).tocsr())).toarray(), dtype=np.float64)
    # A rating and a slope are multiplied, so their mixed second derivative does not follow from the first derivatives.
    bend = np.bincount(rows.a * rows.slopes + rows.slope, surprise, rows.models * rows.slopes)
    bend -= np.bincount(rows.b * rows.slopes + rows.slope, surprise, rows.models * rows.slopes)
    ratings, slopes = slice(0, rows.models), slice(rows.models, rows.models + rows.slopes)
    table[ratings, slopes] -= bend.reshape(rows.models, rows.slopes)
    table[slopes, ratings] -= bend.reshape(rows.models, rows.slopes).T
    gradient[slopes] -= point[slopes] - 1.0
    table[slopes, slopes] += np.eye(rows.slopes)
    gradient[rows.fixed :] -= _TASTE * point[rows.fixed :]
    table[rows.fixed :, rows.fixed :] += _TASTE * np.eye(rows.size - rows.fixed)
    for part, away, size in zip((ratings, slopes), _held(point, rows), (rows.models, rows.slopes), strict=True):
        gradient[part] -= total * away / size
        table[part, part] += total / size**2
    return gradient, table


def _climb(cells: OddsRows, logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The maximum (size,) by Newton's method, damped where the likelihood is not concave; from Bradley-Terry's ratings.

    Raises `NotConvergedError` where none is found.
    """
    point = np.concatenate([logits, np.ones(cells.slopes), np.zeros(cells.size - cells.models - cells.slopes)])
    here, damping = log_likelihood(point, cells), 0.0
    for _ in range(_STEPS):
        gradient, table = derivatives(point, cells)
        scale = np.diagonal(table).copy()
        try:
            step = cho_solve(cho_factor(table + np.diag(damping * np.maximum(scale, 1e-12))), gradient)
        except LinAlgError:
            damping = max(10.0 * damping, 1e-4)
            continue
        there = log_likelihood(point + step, cells)
        if there < here - 1e-12 * (1.0 + abs(here)):
            damping = max(10.0 * damping, 1e-4)
            continue
        if damping == 0.0 and np.all(np.abs(step) <= _SETTLED * (1.0 + np.abs(point))):
            return point + step
        point, here, damping = point + step, there, 0.0 if damping <= 1e-4 else 0.1 * damping
        if np.abs(point[cells.models :]).max() > _FAR:
            break
    raise NotConvergedError(
        "a judge's verdicts follow the ratings, or its own odds, without exception: no finite figure"
    )


def _errors(given: Judgments, rows: OddsRows, cells: OddsRows, point: NDArray[np.float64]) -> tuple[list[float], int]:
    """Standard errors of the odds, clustered by instruction, and the number of instructions.

    Raises `NotConvergedError` where odds are not identified separately from slopes and ratings.
    """
    _, table = derivatives(point, cells)
    owners = slice(rows.models + rows.slopes, rows.fixed)
    scale = 1.0 / np.sqrt(np.diagonal(table))
    try:
        inverse = scale[:, None] * cho_solve(cho_factor(table * np.outer(scale, scale)), np.diag(scale)[:, owners])
    except LinAlgError:
        raise NotConvergedError(_NOT_IDENTIFIED) from None
    alone = 1.0 / (np.diagonal(inverse[owners]) * np.diagonal(table)[owners])
    if alone.min() < _COLLINEAR:
        raise NotConvergedError(_NOT_IDENTIFIED)
    group, units = cluster_codes(given.instruction if given.instructions else None, len(given))
    influence = _influences(rows, point, inverse, group, units)
    return np.sqrt((influence**2).sum(axis=0) * units / max(units - 1, 1)).tolist(), units


def _influences(
    rows: OddsRows, point: NDArray[np.float64], inverse: NDArray[np.float64], group: NDArray[np.int32], units: int
) -> NDArray[np.float64]:
    """The influence of each instruction on each of the odds (units, owners)."""
    surprise = rows.weight * (rows.y - expit(rows.logits(point)))
    if units * rows.size > _DENSE:
        jacobian = rows.jacobian(point)
        moves = [np.bincount(group, surprise * (jacobian @ column), units) for column in inverse.T]
        return np.stack(moves, axis=1)
    pull = point[rows.models + rows.slope] * surprise
    place = group.astype(np.int64) * rows.size
    parts = (
        (rows.a, pull),
        (rows.b, -pull),
        (rows.models + rows.slope, surprise * (point[rows.a] - point[rows.b])),
        (rows.models + rows.slopes + rows.odds, surprise * rows.side),
        *((column, surprise * values) for column, values in rows.tastes()),
    )
    scores = sum(np.bincount(place + column, value, units * rows.size) for column, value in parts)
    return np.asarray(np.asarray(scores).reshape(units, rows.size) @ inverse, dtype=np.float64)


def _slopes(given: Judgments, whose: NDArray[np.int64], rows: OddsRows, point: NDArray[np.float64]) -> dict[int, float]:
    """The slope of the judge of each parameter; for several judges their mean."""
    judges, first = np.unique(given.judge, return_index=True)
    found: dict[int, list[float]] = {}
    for judge, number in zip(judges.tolist(), rows.slope[first].tolist(), strict=True):
        if whose[judge] >= 0:
            found.setdefault(int(whose[judge]), []).append(float(point[rows.models + number]))
    return {code: sum(values) / len(values) for code, values in found.items()}


@dataclass(frozen=True, slots=True)
class FamilyPreference:
    """One judge on battles between its own `models` and others.

    `own` is its share for them, `others` the share that other judges give them on the same battles, and `excess` the
    difference, with its error clustered by instruction.

    A judge with a larger slope than others gives a strong family more, and a weak family less, without self-preference.
    """

    judge: str
    models: tuple[str, ...]
    own: float | None
    others: float | None
    excess: ClusteredMean


def family_preference(judgments: Judgments, own: NDArray[np.bool_]) -> tuple[FamilyPreference, ...]:
    """Family preference: the share of each judge for its `own` (judges, models) in excess of judges of other families.

    Raises `InputError` where no judge has own models, or no other judge saw the same battles.

    >>> from venire.ratings import battles, family_preference, merge_orders
    >>> rng = np.random.default_rng(0)
    >>> a, b = np.array([(0, 1), (1, 2), (0, 2)] * 160).T
    >>> y = (rng.random(960) < 0.6).astype(float)
    >>> judges = np.repeat(["x", "y"], 480)
    >>> asked = battles(np.tile(a, 2), np.tile(b, 2), y, judge=judges, instruction=np.tile(np.arange(480) // 3, 2))
    >>> given = merge_orders(asked)
    >>> own = np.array([[True, False, False], [False, False, False]])
    >>> found = family_preference(given, own)
    >>> [(one.judge, one.own, one.others) for one in found]
    [('x', 0.55, 0.625)]
    """
    own = _own_table(judgments, own)
    if not own.any():
        raise InputError("no judge is one of the models or of their families: nobody can favour its own")
    parts = (judgments.model_a, judgments.model_b, judgments.instruction + 1)
    battle = np.unique(combine_keys(*parts), return_inverse=True)[1] if len(judgments) else np.zeros(0, dtype=np.intp)
    judges = np.flatnonzero(own.any(axis=1)).tolist()
    made = [_of_judge(judgments, battle, code, own[code], ~(own & own[code]).any(axis=1)) for code in judges]
    if all(one.excess.value is None for one in made):
        raise InputError("no other judge saw the battles of a judge's own family: there is nothing to hold it against")
    return tuple(made)


def _of_judge(
    judgments: Judgments, battle: NDArray[np.intp], code: int, kin: NDArray[np.bool_], strangers: NDArray[np.bool_]
) -> FamilyPreference:
    of_a, of_b = kin[judgments.model_a], kin[judgments.model_b]
    share = np.where(of_a, judgments.y, 1.0 - judgments.y)
    matched = of_a != of_b
    count = int(battle.max(initial=-1)) + 1
    means = []
    for rows in (matched & (judgments.judge == code), matched & strangers[judgments.judge]):
        seen = np.bincount(battle[rows], minlength=count)
        sums = np.bincount(battle[rows], share[rows], count)
        means.append(np.divide(sums, seen, out=np.full(count, np.nan), where=seen > 0))
    both = np.flatnonzero(np.isfinite(means[0]) & np.isfinite(means[1]))
    place = np.zeros(count, dtype=np.intp)
    place[battle] = np.arange(len(battle))
    cluster = judgments.instruction[place[both]] if judgments.instructions else None
    excess = clustered_mean((means[0] - means[1])[both], cluster)
    own, others = (float(mean[both].mean()) if len(both) else None for mean in means)
    models = tuple(name for name, mine in zip(judgments.models, kin.tolist(), strict=True) if mine)
    return FamilyPreference(judgments.judges[code], models, own, others, excess)


@dataclass(frozen=True, slots=True)
class FamilyExcess:
    """One judge's excess over the other judges' median for its own family, minus the same for other models.

    `excess` is in the unit of the scores, `low` to `high` Welch's interval at 95 %; None where undefined.
    """

    judge: str
    family: str
    excess: float | None
    low: float | None
    high: float | None
    own: int
    others: int


def family_excess(
    scores: ArrayLike, judges: Sequence[str], judge_family: Sequence[str], model_family: Sequence[str]
) -> tuple[FamilyExcess, ...]:
    """Family excess: each judge's scores for its own family in excess of the other judges' median for the same models.

    Source: the Soft-Elo paper.

    `scores` (judges, models) are mean scores, Elo points or residuals, NaN where a judge has none. The deviation from
    that median is compared between own and other models, so a judge that is generous to all models has no excess.
    Raises `InputError`.

    >>> from venire.ratings import family_excess
    >>> found = family_excess([[3.0, 1.0], [2.0, 2.5]], ["x", "y"], ["gpt", "llama"], ["gpt", "llama"])
    >>> [one.family for one in found]
    ['gpt', 'llama']
    """
    table = float_array("scores", scores)
    if table.shape != (len(judges), len(model_family)) or len(judge_family) != len(judges):
        raise InputError(f"scores has shape {table.shape}; give a row a judge and a column a model, and all families")
    families, found = np.array(model_family, dtype=object), []
    for code, judge in enumerate(judges):
        rest = np.delete(table, code, axis=0)
        seen = ~np.isnan(rest).all(axis=0) & ~np.isnan(table[code])
        deviation = table[code, seen] - np.nanmedian(rest[:, seen], axis=0)
        own = families[seen] == judge_family[code]
        excess, low, high = _welch(deviation[own], deviation[~own])
        mine = int(np.count_nonzero(own))
        found.append(FamilyExcess(judge, judge_family[code], excess, low, high, mine, len(own) - mine))
    return tuple(found)


def _welch(own: NDArray[np.float64], others: NDArray[np.float64]) -> tuple[float | None, float | None, float | None]:
    """Difference of two means and Welch's interval; bounds are None where a side has fewer than two models."""
    if not len(own) or not len(others):
        return None, None, None
    gap = float(own.mean() - others.mean())
    if len(own) < 2 or len(others) < 2:
        return gap, None, None
    parts = np.array([own.var(ddof=1) / len(own), others.var(ddof=1) / len(others)])
    error = math.sqrt(float(parts.sum()))
    if error == 0.0:
        return gap, gap, gap
    degrees = float(parts.sum()) ** 2 / float(parts[0] ** 2 / (len(own) - 1) + parts[1] ** 2 / (len(others) - 1))
    half = float(student.ppf(0.975, degrees)) * error
    return gap, gap - half, gap + half
