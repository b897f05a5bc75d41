"""Standard errors of jointly fitted ratings and abilities, in an exact gauge.

To first order the estimate moves by the inverse information times the score, so its covariance is the sandwich: inverse
times scatter of scores times inverse. The information is an arrowhead and is never stored in full: the judges are
eliminated, and an ability is moved by its own judgments and, through the ratings, by all others. Equal shifts and
scales are not errors: ratings are centred and the mean ability is 1, in each direction in which the estimate could
move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from venire.arena.choices import PairErrors
from venire.arena.errors import InputError
from venire.ratings.am_elo.fit import Arrow, Penalty, Reduced, arrow, reduced
from venire.ratings.am_elo.likelihood import likelihood_terms
from venire.ratings.am_elo.separation import LimitFit
from venire.ratings.data.clustered import Units, cluster_codes
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.pairwise.covariance import blank_without_scatter, few_clusters

_DENSE = 20_000_000
"""Largest dense table of summed scores by unit and parameter (160 MB)."""
_NO_SCATTER = 1e-20

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class StandardErrors:
    """Errors of a `LimitFit`, for its models and judges, where the mean ability is 1.

    `ratings` (n, n) is their covariance in logits, `local` (judges, b) the standard errors of abilities and habits, NaN
    where they are not identified. `mean` is the error of the mean ability at ratings with a root mean square of 1.
    `degrees` are those of ratings, which `respondents` cross (0: they do not); those of abilities are `units` less one.
    `reason` explains why there are no errors, or is a warning.
    """

    ratings: Matrix
    local: Matrix
    mean: float
    degrees: float
    units: int
    respondents: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Moves:
    """How scores move the estimate: `ratings` (n, all) directly, abilities by `own` and by `through` @ `base`.

    `own` (judges, b, b) is the effect of a judge's own scores; `base` (n + 1, all) moves ratings before their inverse
    and, last, the mean ability; `through` (judges * b, n + 1). `mean` (all,) moves the mean ability at unit spread.
    """

    ratings: Matrix
    own: NDArray[np.float64]
    through: Matrix
    base: Matrix
    mean: Vector


def standard_errors_of(
    limit: LimitFit,
    rows: Comparisons,
    first: Vector | None,
    penalty: Penalty,
    counted: NDArray[np.bool_],
    kind: PairErrors,
) -> StandardErrors:
    """Standard errors at a maximum, by cluster, by row ("sandwich") or of the model itself ("hessian").

    `rows` are those of the fit, coded into its models and judges; `first` (rows,) the order shown where it is fitted;
    `counted` (judges,) the judges whose abilities have the mean of 1. Of crossed rows the covariance of ratings is over
    other judges too; an ability is about its own judge. Raises `InputError` where the data do not distinguish the
    habits of judges from the ratings.
    """
    if rows.weight is not None:
        some = rows.weight > 0.0
        rows, first = rows.select(some), None if first is None else first[some]
    point, part = limit.peak.point, limit.part
    here = arrow(part, point, penalty, limit.held)
    system = reduced(here, point.ratings, penalty)
    if system is None or not _known(here, system):
        return _unknown(limit)
    moves = _moves(limit, system, penalty, counted)
    if kind == "hessian":
        gram: Any = _information(here)
        return StandardErrors(*_put(limit, moves, gram, 1.0), np.inf, len(rows))
    scores, largest, unit = _scores(limit, rows, first)
    each, units = cluster_codes(rows.cluster if kind == "cluster" else None, len(rows))
    if units < 2:
        return _blanks(limit, f"errors cannot be told from one {'cluster' if kind == 'cluster' else 'comparison'}")
    entry, place, value = scores
    gram = _gram(each[entry], place, value, (units, part.models + point.local.size))
    ratings, local, mean = _put(limit, moves, gram, units / (units - 1.0))
    both = rows.units(clustered=kind == "cluster")
    if both.respondents:
        ratings = _crossed(limit, moves, scores, rows, both, counted)
    names = [rows.models[code] for code in range(part.models)]
    reach = np.diagonal(system.ratings(np.eye(part.models))) * largest[: part.models].max(initial=0.0)
    reason = blank_without_scatter(names, ratings, reach * _mean(limit, counted))
    _blank(local, limit, each, unit)
    reason = reason or few_clusters(units, part.models, kind)
    return StandardErrors(ratings, local, mean, both.count - 1.0, units, both.respondents, reason)


def _unknown(limit: LimitFit) -> StandardErrors:
    """The result for singular information: with habits, they are not identified; else ratings are too far apart."""
    if limit.held.shape[1] > 1:
        raise InputError(
            "habits of judges cannot be told from abilities and ratings in these data: leave them out, or judge more "
            "battles in both orders"
        )
    return _blanks(limit, "ratings are too far apart for an error in double precision: give a ridge")


def _blanks(limit: LimitFit, reason: str) -> StandardErrors:
    """A result without errors, with the reason."""
    nothing = np.full((limit.part.models, limit.part.models), np.nan)
    return StandardErrors(nothing, np.full_like(limit.peak.point.local, np.nan), np.nan, np.nan, 0, reason=reason)


def _mean(limit: LimitFit, counted: NDArray[np.bool_]) -> float:
    ability = limit.peak.point.ability[counted]
    return float(ability.mean()) if len(ability) and ability.mean() != 0.0 else 1.0


def _known(here: Arrow, system: Reduced) -> bool:
    """Whether the factor is above rounding error: its smallest diagonal relative to the original information."""
    kept = np.diagonal(system.factor) ** 2
    return bool(np.all(kept > 1e-12 * np.maximum(np.diagonal(here.head), 1e-300)))


def _moves(limit: LimitFit, system: Reduced, penalty: Penalty, counted: NDArray[np.bool_]) -> _Moves:
    point, size = limit.peak.point, limit.part.models
    mean, spread = _mean(limit, counted), point.spread
    inverse = system.ratings(np.eye(size))
    base = np.hstack([np.eye(size), -system.folded])
    border = np.zeros_like(point.local)
    border[:, 0] = counted / max(int(counted.sum()), 1)
    through = -(system.folded.T @ inverse)
    level = (border.ravel() @ through) @ base
    level[size:] += np.einsum("ka,kab->kb", border, system.inverse).ravel()
    if penalty.tied and counted.any():
        along = system.solve(np.zeros(size), border)
        scale = float((border * along[1]).sum())
        shift, turn = along[0] / scale, along[1] / scale
    else:
        shift, turn = -point.ratings / mean, np.zeros_like(point.local)
        turn[:, 0] = point.ability / mean
    ratings = mean * (inverse @ base - shift[:, None] * level)
    ratings -= ratings.mean(axis=0)
    stretch = np.ones_like(point.local)
    stretch[:, 0] = 1.0 / mean
    apart = point.ratings - point.ratings.mean()
    return _Moves(
        ratings=ratings,
        own=stretch[:, :, None] * system.inverse,
        through=stretch.reshape(-1, 1) * np.column_stack([through, -turn.ravel()]),
        base=np.vstack([base, level]),
        mean=spread * level + mean / (size * spread) * ((apart @ inverse) @ base),
    )


def _put(limit: LimitFit, moves: _Moves, gram: Any, factor: float) -> tuple[Matrix, Matrix, float]:
    """Covariance of ratings, errors of abilities and habits, and error of the mean, from the scatter of scores."""
    size, shape = limit.part.models, limit.peak.point.local.shape
    matrix = moves.ratings @ np.asarray(gram @ moves.ratings.T)
    across = np.asarray(gram @ moves.base.T)
    middle = moves.base @ across
    inside = _blocks(gram, size, shape)
    own = np.einsum("kab,kbc,kac->ka", moves.own, inside, moves.own).ravel()
    mixed = np.einsum("kab,kbm->kam", moves.own, across[size:].reshape(*shape, size + 1)).reshape(-1, size + 1)
    variance = own + 2.0 * (mixed * moves.through).sum(axis=1) + ((moves.through @ middle) * moves.through).sum(axis=1)
    mean = float(moves.mean @ np.asarray(gram @ moves.mean))
    local = np.sqrt(factor * np.maximum(variance, 0.0)).reshape(shape)
    local[limit.held] = np.nan
    return factor * 0.5 * (matrix + matrix.T), local, float(np.sqrt(factor * max(mean, 0.0)))


def _blocks(gram: Any, size: int, shape: tuple[int, int]) -> NDArray[np.float64]:
    """The blocks (judges, b, b) on the diagonal of a matrix whose first `size` rows are the ratings."""
    judges, width = shape
    blocks = np.empty((judges, width, width))
    start = size + width * np.arange(judges)
    for row in range(width):
        for column in range(width):
            blocks[:, row, column] = np.asarray(gram[start + row, start + column]).ravel()
    return blocks


def _information(here: Arrow) -> Any:
    """The whole arrowhead, written out as a sparse matrix (all, all)."""
    models, judges, width = here.wing.shape
    local = models + np.arange(judges * width)
    head = np.repeat(np.arange(models), models), np.tile(np.arange(models), models)
    wing = np.repeat(np.arange(models), judges * width), np.tile(local, models)
    start = (models + width * np.arange(judges))[:, None, None]
    inner = np.broadcast_arrays(start + np.arange(width)[:, None], start + np.arange(width))
    row = np.concatenate([head[0], wing[0], wing[1], inner[0].ravel()])
    column = np.concatenate([head[1], wing[1], wing[0], inner[1].ravel()])
    value = np.concatenate([here.head.ravel(), here.wing.ravel(), here.wing.ravel(), here.inner.ravel()])
    size = models + judges * width
    return coo_array((value, (row, column)), shape=(size, size)).tocsr()


def _scores(
    limit: LimitFit, rows: Comparisons, first: Vector | None
) -> tuple[tuple[NDArray[np.intp], NDArray[np.intp], Vector], Vector, NDArray[np.intp]]:
    """Entries (row, place, score) of all rows, the largest score by place, and each row's judge."""
    assert rows.judge is not None
    point, size, width = limit.peak.point, limit.part.models, limit.peak.point.local.shape[1]
    judge, ties = rows.judge.astype(np.intp), limit.part.tied is not None
    ability, gap = point.local[judge, 0], point.ratings[rows.a] - point.ratings[rows.b]
    odds = ability * gap if first is None else ability * gap + point.local[judge, 1] * first
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    drawn = weight * (rows.y == 0.5) if ties else None
    won, lost = weight * rows.y, weight * (1.0 - rows.y)
    if drawn is not None:
        won, lost = np.where(drawn > 0.0, 0.0, won), np.where(drawn > 0.0, 0.0, lost)
    found = likelihood_terms(won, lost, drawn, odds, point.local[judge, -1] if ties else None)
    columns = [found.slope * gap]
    if first is not None:
        columns.append(found.slope * first)
    if found.tie_slope is not None:
        columns.append(found.tie_slope)
    start, number = size + width * judge, np.arange(len(rows))
    places = [rows.a.astype(np.intp), rows.b.astype(np.intp), *(start + one for one in range(width))]
    values = [found.slope * ability, -found.slope * ability, *columns]
    for one in range(width):
        values[2 + one] = np.where(limit.held[judge, one], 0.0, values[2 + one])
    entry, place, value = np.tile(number, 2 + width), np.concatenate(places), np.concatenate(values)
    largest = np.zeros(size + point.local.size)
    np.maximum.at(largest, place, np.abs(value))
    return (entry, place, value), largest, judge


def _crossed(
    limit: LimitFit,
    moves: _Moves,
    scores: tuple[NDArray[np.intp], NDArray[np.intp], Vector],
    rows: Comparisons,
    units: Units,
    counted: NDArray[np.bool_],
) -> Matrix:
    """The covariance of ratings (n, n) over other judges as well.

    The scores of a judge move the ratings, and its ability the mean that they are scaled by: that has no score, as an
    ability is fitted to its judge, and is shared out among the judge's rows.
    """
    assert rows.judge is not None
    entry, place, value = scores
    point, size = limit.peak.point, moves.ratings.shape[1]
    apart = np.where(counted, point.ability - _mean(limit, counted), 0.0) / max(int(counted.sum()), 1)
    each = (apart / np.maximum(np.bincount(rows.judge, minlength=len(apart)), 1))[rows.judge]
    entry = np.concatenate([entry, np.arange(len(rows))])
    place, value = np.concatenate([place, np.full(len(rows), size)]), np.concatenate([value, each])
    ratings = np.column_stack([moves.ratings, point.ratings - point.ratings.mean()])

    def of(code: NDArray[np.int32], count: int) -> Matrix:
        gram = _gram(code[entry], place, value, (count, size + 1))
        return np.asarray(ratings @ np.asarray(gram @ ratings.T))

    return units.covariance(of)


def _gram(unit: NDArray[Any], place: NDArray[np.intp], value: Vector, shape: tuple[int, int]) -> Any:
    """The sum over units of the outer product of the unit's summed scores with themselves."""
    units = int(unit.max(initial=-1)) + 1
    if units * shape[1] <= _DENSE:
        sums = np.bincount(unit.astype(np.int64) * shape[1] + place, value, units * shape[1]).reshape(units, shape[1])
        return sums.T @ sums
    table = coo_array((value, (unit, place)), shape=(units, shape[1])).tocsr()
    return (table.T @ table).tocsr()


def _blank(local: Matrix, limit: LimitFit, unit: NDArray[np.int32], judge: NDArray[np.intp]) -> None:
    """Set NaN in place for judges with verdicts in a single unit, and where scores have no scatter."""
    pairs = np.unique(unit.astype(np.int64) * limit.part.judges + judge)
    units = np.bincount(pairs % limit.part.judges, minlength=limit.part.judges)
    local[units < 2] = np.nan
    local[local <= np.sqrt(_NO_SCATTER) * np.maximum(1.0, np.abs(limit.peak.point.local))] = np.nan
