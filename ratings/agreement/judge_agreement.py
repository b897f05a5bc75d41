"""Agreement of judges: each with the others, each with itself on a repeat, and pairs that agree more than expected.

Agreement of two judges is sum(s t) / sqrt(sum(s s) sum(t t)) over the battles that both saw. A side s or t is 1 for A,
-1 for B, 0 for a tie, and in between where the two orders disagree. Agreement is 1 where both always choose the same
side and 0 where they have nothing in common; it does not depend on which model is called A. If judges share one common
quality only, the agreement of two is the product of their loadings on it (Spearman's single factor); two judges that
share more, for example a model family, agree more.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.agreement.chance_corrected import Coefficient, krippendorff_alpha
from venire.ratings.data.judgments import Judgments, combine_keys
from venire.ratings.data.statistics import norm
from venire.ratings.data.validation import check_draws, check_level, finite_or_none

MIN_BATTLES = 30
"""Minimum number of battles that a judge must share with others to be included."""

MAX_JUDGES = 40
"""Maximum number of judges whose pairs are examined; beyond it, those with the most battles are."""

_STEPS = 1000
_CLOSE = 1e-9

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AgreementWithOthers:
    """Agreement of one judge with the mean of the others over `battles`, and with itself over `again` repeats.

    `behind` is how far it is below the median of the other judges; `behind_lo` is the lower bound of that, simultaneous
    for all judges. None where the data do not determine a value.
    """

    judge: str
    battles: int
    agreement: float
    behind: float | None
    behind_lo: float | None
    again: float | None


@dataclass(frozen=True, slots=True)
class RedundantPair:
    """Two similar judges: their `agreement`, the part one common factor explains, and the `excess` with its bound."""

    judges: tuple[str, str]
    agreement: float
    expected: float
    excess: float
    excess_lo: float | None


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """`alpha` is Krippendorff's over all judges, nominal over win, tie and loss; `judges` by name, in ascending order
    of agreement with others; `pairs` in descending order of excess agreement, empty with fewer than four judges.
    `left_out` are judges with too few battles in common with others.
    """

    alpha: Coefficient
    judges: tuple[AgreementWithOthers, ...]
    pairs: tuple[RedundantPair, ...]
    left_out: tuple[str, ...]
    clusters: int


def judge_agreement(
    judgments: Judgments, *, level: float = 0.95, replicates: int = 400, seed: int = 0
) -> JudgeAgreement:
    """Agreement of judges on shared battles; bounds resample instructions and are simultaneous for all judges.

    Raises `InputError` with fewer than two judges that saw `MIN_BATTLES` battles in common with others.

    >>> from venire.ratings import ballots, judge_agreement, merge_orders, to_battles
    >>> instruction = np.repeat(np.arange(30), 9)
    >>> given = ballots(list("aaabbbccc") * 30, instruction, list("abc") * 90, [1, 2, 3, 2, 1, 3, 1, 3, 2] * 30)
    >>> judgments = merge_orders(to_battles(given))
    >>> found = judge_agreement(judgments, replicates=50)
    >>> [one.judge for one in found.judges]
    ['b', 'c', 'a']
    """
    check_level(level)
    check_draws(replicates, seed)
    if not len(judgments):
        raise InputError("there is no judgment that could be read")
    sides, again, cluster = _sides(judgments)
    seen = np.isfinite(sides)
    shared = np.count_nonzero(seen & (np.count_nonzero(seen, axis=1) > 1)[:, None], axis=0)
    order = np.argsort(-shared, kind="stable")[:MAX_JUDGES]
    kept = np.sort(order[shared[order] >= MIN_BATTLES])
    if len(kept) < 2:
        raise InputError(f"fewer than two judges saw {MIN_BATTLES} battles or more that others saw too")
    names = tuple(judgments.judges[code] for code in kept.tolist())
    table, unit = sides[:, kept], np.unique(cluster, return_inverse=True)[1]
    clusters = int(unit.max(initial=-1)) + 1
    draws = np.random.default_rng(seed).multinomial(clusters, np.full(clusters, 1.0 / clusters), size=replicates)
    weights = np.concatenate([np.ones((1, clusters)), draws.astype(np.float64)])
    with_rest = _with_rest(table, unit, weights)
    return JudgeAgreement(
        alpha=krippendorff_alpha(np.sign(sides[seen.any(axis=1)]), level=level, cluster=cluster),
        judges=_with_others(names, shared[kept], with_rest, again[kept], level),
        pairs=_redundant_pairs(names, _pairwise(table, unit, weights), level) if len(names) > 3 else (),
        left_out=tuple(name for name in judgments.judges if name not in set(names)),
        clusters=clusters,
    )


def _sides(judgments: Judgments) -> tuple[Vector, Vector, NDArray[np.int32]]:
    """Mean side (battles, judges) over repeats, each judge's agreement with itself, and each battle's instruction."""
    size = len(judgments.judges)
    key = combine_keys(judgments.model_a, judgments.model_b, judgments.instruction + 1)
    _, at, battle = np.unique(key, return_index=True, return_inverse=True)
    side = 2.0 * judgments.y - 1.0
    cell, cells = battle * size + judgments.judge, len(at) * size
    count = np.bincount(cell, minlength=cells).astype(np.float64)
    sums, squares = np.bincount(cell, side, cells), np.bincount(cell, side * side, cells)
    mean = np.divide(sums, count, out=np.full(cells, np.nan), where=count > 0.0).reshape(-1, size)
    several = count > 1.0
    more = np.where(several, count, 2.0)
    products = np.where(several, (sums * sums - squares) / (more * (more - 1.0)), 0.0).reshape(-1, size).sum(axis=0)
    norms = np.where(several, squares / more, 0.0).reshape(-1, size).sum(axis=0)
    again = np.divide(products, norms, out=np.full(size, np.nan), where=norms > 0.0)
    cluster = judgments.instruction[at] if judgments.instructions else np.arange(len(at), dtype=np.int32)
    return mean, again, cluster


def _with_rest(table: Vector, unit: NDArray[np.intp], weights: Vector) -> Vector:
    """Agreement (draws, judges) of each judge with the mean of the others."""
    seen = np.isfinite(table)
    side = np.where(seen, table, 0.0)
    others = seen.sum(axis=1)[:, None] - seen
    rest = np.divide(side.sum(axis=1)[:, None] - side, others, out=np.zeros_like(side), where=others > 0)
    both = seen & (others > 0)
    parts = [weights @ _by_unit(column * both, unit) for column in (side * rest, side * side, rest * rest)]
    return _cosine(*parts)


def _pairwise(table: Vector, unit: NDArray[np.intp], weights: Vector) -> Vector:
    """Agreement (draws, judges, judges) of all pairs; 0 on the diagonal."""
    seen = np.isfinite(table)
    side, size = np.where(seen, table, 0.0), table.shape[1]
    found = np.zeros((len(weights), size, size))
    for one in range(size - 1):
        both = seen[:, one : one + 1] & seen[:, one + 1 :]
        first, second = np.where(both, side[:, one : one + 1], 0.0), np.where(both, side[:, one + 1 :], 0.0)
        parts = [weights @ _by_unit(column, unit) for column in (first * second, first * first, second * second)]
        found[:, one, one + 1 :] = _cosine(*parts)
    return found + found.transpose(0, 2, 1)


def _by_unit(columns: Vector, unit: NDArray[np.intp]) -> Vector:
    order = np.argsort(unit, kind="stable")
    starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
    return np.asarray(np.add.reduceat(columns[order], starts, axis=0))


def _cosine(product: Vector, first: Vector, second: Vector) -> Vector:
    norm = np.sqrt(first * second)
    return np.divide(product, norm, out=np.full_like(product, np.nan), where=norm > 0.0)


def _with_others(
    names: tuple[str, ...], shared: NDArray[np.intp], found: Vector, again: Vector, level: float
) -> tuple[AgreementWithOthers, ...]:
    made = []
    for code, name in enumerate(names):
        if not np.isfinite(found[0, code]):
            continue
        others = np.delete(found, code, axis=1)
        # With only two judges, both have the same agreement, so neither is behind.
        behind = np.median(others, axis=1) - found[:, code] if len(names) > 2 else np.full(len(found), np.nan)
        tail = (1.0 - level) / (2.0 * len(names))
        made.append(
            AgreementWithOthers(
                judge=name,
                battles=int(shared[code]),
                agreement=float(found[0, code]),
                behind=finite_or_none(behind[0]),
                behind_lo=_lower(behind, tail),
                again=finite_or_none(again[code]),
            )
        )
    return tuple(sorted(made, key=lambda one: (one.agreement, one.judge)))


def _redundant_pairs(names: tuple[str, ...], found: Vector, level: float) -> tuple[RedundantPair, ...]:
    """Pairs by their excess over a single factor, which is refitted in each draw."""
    usable = np.asarray(np.isfinite(found).all(axis=(1, 2)))
    if not usable[0]:
        return ()
    loadings = _loadings(found[usable])
    expected = loadings[:, :, None] * loadings[:, None, :]
    excess = found[usable] - expected
    pairs = list(combinations(range(len(names)), 2))
    made = [
        RedundantPair(
            judges=(names[one], names[other]),
            agreement=float(found[0, one, other]),
            expected=float(expected[0, one, other]),
            excess=float(excess[0, one, other]),
            excess_lo=_lower(excess[:, one, other], (1.0 - level) / (2.0 * len(pairs)), int((~usable).sum())),
        )
        for one, other in pairs
        if np.isfinite(excess[0, one, other])
    ]
    return tuple(sorted(made, key=lambda one: (-round(one.excess, 10), one.judges)))


def _loadings(found: Vector) -> Vector:
    """Each judge's loading on the common factor (draws, judges): off-diagonal least squares, NaN if not converged."""
    size = found.shape[1]
    mean = np.clip(found.sum(axis=(1, 2)) / (size * (size - 1)), 0.01, 1.0)
    loading: Vector = np.repeat(np.sqrt(mean)[:, None], size, axis=1)
    off = 1.0 - np.eye(size)
    for _ in range(_STEPS):
        before = loading
        wanted = np.einsum("djk,dk->dj", found, before) / np.maximum((before * before) @ off, 1e-12)
        # Half steps: with full steps two large loadings can oscillate.
        loading = 0.5 * (before + wanted)
        if float(np.abs(loading - before).max()) < _CLOSE:
            return loading
    reached = np.abs(loading - before).max(axis=1, keepdims=True) < _CLOSE
    return np.asarray(np.where(reached, loading, np.nan))


def _lower(drawn: Vector, tail: float, lost: int = 0) -> float | None:
    """The lower bound of a value from the spread of its draws: far quantiles of few draws are imprecise.

    None where so many draws are without a value, or `lost` before, that they make up the tail.
    """
    draws = drawn[1:][np.isfinite(drawn[1:])]
    lost += len(drawn) - 1 - len(draws)
    if len(draws) < 20 or not np.isfinite(drawn[0]) or lost > tail * (len(draws) + lost):
        return None
    return float(drawn[0] - norm.isf(tail) * draws.std(ddof=1))
