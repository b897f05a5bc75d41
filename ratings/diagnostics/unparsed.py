"""Unparsed replies: how many, and whether some models lose more verdicts to them than others.

Every rating leaves out unparsed verdicts. This is harmless where they are missing at random, and a bias where
missingness depends on the models: a model whose answers make judges refuse or run out of tokens is rated on the rest of
its battles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.records import Status
from venire.ratings.data.clustered import cluster_codes
from venire.ratings.data.statistics import chi2, norm
from venire.ratings.diagnostics.goodness_of_fit import pool_units

_MIN_VERDICTS = 20
"""Number of verdicts of a judge below which its share is not distinguished from chance."""


@dataclass(frozen=True, slots=True)
class UnparsedShare:
    """A judge or a model: its verdicts, the unparsed `share`, counts by status, and Wilson's lower bound of the share.

    For a model, `expected` is the share that its judges would lose if they treated all models equally, and `z` the
    distance from it in standard errors.
    """

    name: str
    verdicts: int
    share: float
    lo: float
    statuses: dict[str, int]
    expected: float | None = None
    z: float | None = None


@dataclass(frozen=True, slots=True)
class UnparsedReplies:
    """Shares of all verdicts, of each judge's and of each model's, the largest share first; `p_value` of a difference
    between models given their judges: the clearest model's, times their number. `judges_p` is that between judges."""

    verdicts: int
    share: float
    judges: tuple[UnparsedShare, ...]
    models: tuple[UnparsedShare, ...]
    p_value: float
    judges_p: float


def unparsed_replies(battles: Battles, *, level: float = 0.99) -> UnparsedReplies:
    """Share of unparsed replies, by judge and model; errors are clustered by instruction. `level` is that of `lo`.

    >>> from venire.ratings import ballots, to_battles, unparsed_replies
    >>> given = ballots(list("aaabbbccc"), ["q"] * 9, list("abc") * 3, [1, 2, 3, 2, 1, 3, 1, 3, 2])
    >>> found = unparsed_replies(to_battles(given))
    >>> found.verdicts, found.share
    (9, 0.0)
    """
    lost = (battles.status != Status.OK).astype(np.float64)
    size, judges = len(battles.models), len(battles.judges)
    judged = np.bincount(battles.judge, minlength=judges)
    by_judge = np.bincount(battles.judge, lost, judges) / np.maximum(judged, 1)
    sides = np.concatenate([battles.model_a, battles.model_b])
    met = np.bincount(sides * np.int64(judges) + np.tile(battles.judge, 2), minlength=size * judges)
    met = met.reshape(size, judges)
    z = _distances(battles, lost, by_judge, met)
    there = met.sum(axis=1)
    expected = met @ by_judge / np.maximum(there, 1)
    by_status = [_statuses(battles.judge, battles.status, judges), _statuses(sides, np.tile(battles.status, 2), size)]
    models = [
        _unparsed_share(name, counts, level, float(expected[code]), float(z[code]))
        for code, (name, counts) in enumerate(zip(battles.models, by_status[1], strict=True))
        if there[code]
    ]
    return UnparsedReplies(
        verdicts=len(lost),
        share=float(lost.mean()) if len(lost) else 0.0,
        judges=_sorted(
            [
                _unparsed_share(name, counts, level)
                for name, counts in zip(battles.judges, by_status[0], strict=True)
                if counts.sum()
            ]
        ),
        models=_sorted(models),
        p_value=float(min(1.0, 2.0 * norm.sf(np.abs(z).max(initial=0.0)) * len(models))),
        judges_p=_chi_squared(lost, battles.judge, judged),
    )


def _distances(
    battles: Battles, lost: NDArray[np.float64], by_judge: NDArray[np.float64], met: NDArray[np.intp]
) -> NDArray[np.float64]:
    """How far each model's losses are from its judges' (models,), in standard errors.

    A judge's mean partly depends on the model itself; rows are weighted to remove this effect. With few losses the
    empirical variance can be too small by chance, so the binomial variance is the lower limit.
    """
    size, judges = met.shape
    own = met / np.maximum(np.bincount(battles.judge, minlength=judges), 1)
    left = lost - by_judge[battles.judge]
    variance = (met * (1.0 - own)) @ (by_judge * (1.0 - by_judge))
    sums = np.bincount(battles.model_a, left, size) + np.bincount(battles.model_b, left, size)
    if battles.instructions:
        unit, units = pool_units(*cluster_codes(battles.instruction, len(left)))
        wide = unit.astype(np.int64) * size
        parts = np.bincount(wide + battles.model_a, left, units * size)
        parts += np.bincount(wide + battles.model_b, left, units * size)
        shared = np.bincount(unit.astype(np.int64) * judges + battles.judge, left, units * judges)
        scatter = parts.reshape(units, size) - shared.reshape(units, judges) @ own.T
        variance = np.maximum(variance, (scatter**2).sum(axis=0))
    return np.asarray(np.divide(sums, np.sqrt(variance), out=np.zeros(size), where=variance > 1e-12 * len(lost)))


def _statuses(code: NDArray[np.int32], status: NDArray[np.int8], size: int) -> NDArray[np.intp]:
    """Count of each status for each of `size` codes (size, statuses)."""
    wide = len(Status)
    return np.bincount(code * np.int64(wide) + status, minlength=size * wide).reshape(size, wide)


def _unparsed_share(
    name: str, counts: NDArray[np.intp], level: float, expected: float | None = None, z: float | None = None
) -> UnparsedShare:
    number = int(counts.sum())
    statuses = {one.name.lower(): int(counts[one]) for one in Status if one is not Status.OK and counts[one]}
    lost = number - int(counts[Status.OK])
    return UnparsedShare(name, number, lost / number, wilson_lower_bound(lost, number, level), statuses, expected, z)


def wilson_lower_bound(hits: int, number: int, level: float) -> float:
    """Lower bound of a share, one-sided (Wilson 1927); 0 for fewer than 20."""
    if number < _MIN_VERDICTS:
        return 0.0
    z, share = float(norm.ppf(level)), hits / number
    middle = share + z * z / (2 * number)
    half = z * np.sqrt(share * (1.0 - share) / number + z * z / (4 * number * number))
    return float(max(0.0, (middle - half) / (1.0 + z * z / number)))


def _sorted(rows: list[UnparsedShare]) -> tuple[UnparsedShare, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.share, row.name)))


def _chi_squared(lost: NDArray[np.float64], judge: NDArray[np.int32], judged: NDArray[np.intp]) -> float:
    there = judged > 0
    if np.count_nonzero(there) < 2 or not 0.0 < lost.mean() < 1.0:
        return 1.0
    share = lost.mean()
    apart = np.bincount(judge, lost, len(judged))[there] - judged[there] * share
    return float(chi2.sf((apart**2 / (judged[there] * share * (1.0 - share))).sum(), int(np.count_nonzero(there)) - 1))
