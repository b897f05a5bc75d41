"""Verdicts that were not read: how many, and whether some models lose more of them than others.

Unread verdicts are left out of every rating. That is harmless where they are missing by chance, and a bias where they
follow the models: a model whose answers make judges refuse or run out of tokens is rated on the rest of its battles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from venire.arena.battles import Battles
from venire.arena.records import Status
from venire.ratings.clusters import grouped

__all__ = ["Unread", "UnreadOf", "unread", "wilson"]

_FEWEST = 20
"""Verdicts of a judge below which its share is not told apart from chance."""


@dataclass(frozen=True, slots=True)
class UnreadOf:
    """A judge or a model: its verdicts, the `share` not read, by status, and lower bound of the share (Wilson).

    Of a model, `expected` is the share that its judges would lose on it if all models were alike to them, `z` the
    distance from that in standard errors.
    """

    name: str
    verdicts: int
    share: float
    lo: float
    statuses: dict[str, int]
    expected: float | None = None
    z: float | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """Shares of all verdicts, of each judge's and of each model's, the largest share first; `p_value` of a difference
    between models given their judges: the clearest model's, times their number. `judges_p` is that between judges."""

    verdicts: int
    share: float
    judges: tuple[UnreadOf, ...]
    models: tuple[UnreadOf, ...]
    p_value: float
    judges_p: float


def unread(battles: Battles, *, level: float = 0.99) -> Unread:
    """Count what was not read; errors are clustered by instruction where there are instructions. `level` is of `lo`."""
    lost = (battles.status != Status.OK).astype(np.float64)
    judged = np.bincount(battles.judge, minlength=len(battles.judges))
    by_judge = np.bincount(battles.judge, lost, len(battles.judges)) / np.maximum(judged, 1)
    judges = [
        _told(battles, battles.judge == code, name, level) for code, name in enumerate(battles.judges) if judged[code]
    ]
    cluster, count = grouped(battles.instruction if battles.instructions else None, len(lost))
    left = lost - by_judge[battles.judge]
    models, clearest = [], 0.0
    for code, name in enumerate(battles.models):
        rows = (battles.model_a == code) | (battles.model_b == code)
        number = int(rows.sum())
        if not number:
            continue
        # A judge's mean is partly this model's own doing: weighing by how far a row is the model's takes that off.
        own = np.bincount(battles.judge, rows, len(judged)) / np.maximum(judged, 1)
        away = rows - own[battles.judge]
        sums = np.bincount(cluster, away * left, count)
        # Few lost verdicts scatter less than they should by chance; what a binomial would is the least to reckon with.
        error = float(np.sqrt(max((sums**2).sum(), (away**2 * (by_judge * (1.0 - by_judge))[battles.judge]).sum())))
        z = float(sums.sum()) / error if error > 0.0 else 0.0
        clearest = max(clearest, abs(z))
        expected = float(by_judge[battles.judge[rows]].mean())
        models.append(_told(battles, rows, name, level, expected, z))
    return Unread(
        verdicts=len(lost),
        share=float(lost.mean()) if len(lost) else 0.0,
        judges=_sorted(judges),
        models=_sorted(models),
        p_value=float(min(1.0, 2.0 * norm.sf(clearest) * len(models))),
        judges_p=_chi_squared(lost, battles.judge, judged),
    )


def _told(
    battles: Battles,
    rows: NDArray[np.bool_],
    name: str,
    level: float,
    expected: float | None = None,
    z: float | None = None,
) -> UnreadOf:
    number = int(rows.sum())
    counts = np.bincount(battles.status[rows], minlength=len(Status))
    statuses = {one.name.lower(): int(counts[one]) for one in Status if one is not Status.OK and counts[one]}
    lost = number - int(counts[Status.OK])
    return UnreadOf(name, number, lost / number, wilson(lost, number, level), statuses, expected, z)


def wilson(hits: int, number: int, level: float) -> float:
    """Lower bound of a share, one-sided (Wilson 1927); 0 for fewer than 20."""
    if number < _FEWEST:
        return 0.0
    z, share = float(norm.ppf(level)), hits / number
    middle = share + z * z / (2 * number)
    half = z * np.sqrt(share * (1.0 - share) / number + z * z / (4 * number * number))
    return float(max(0.0, (middle - half) / (1.0 + z * z / number)))


def _sorted(rows: list[UnreadOf]) -> tuple[UnreadOf, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.share, row.name)))


def _chi_squared(lost: NDArray[np.float64], judge: NDArray[np.int32], judged: NDArray[np.intp]) -> float:
    there = judged > 0
    if np.count_nonzero(there) < 2 or not 0.0 < lost.mean() < 1.0:
        return 1.0
    share = lost.mean()
    apart = np.bincount(judge, lost, len(judged))[there] - judged[there] * share
    return float(chi2.sf((apart**2 / (judged[there] * share * (1.0 - share))).sum(), np.count_nonzero(there) - 1))
