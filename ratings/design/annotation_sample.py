"""Battles for people to vote on: a seeded sample, balanced over models, and how many votes an interval needs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.clustered import score_interval
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.statistics import norm
from venire.ratings.pairwise.bradley_terry import bradley_terry

Codes = NDArray[np.int64]
Vector = NDArray[np.float64]

_POOL = 2
"""From so many times the battles that are wanted, those of the highest priority, models are balanced."""
_FLIPS = 0.1
"""Less than the least difference between two judges, a quarter: flips decide between battles alike in that."""
_RIDGE = 0.3
"""Keeps ratings finite where a model won every battle."""


def balanced_sample(
    model_a: Codes, model_b: Codes, count: int, rng: np.random.Generator, priority: Vector | None = None
) -> Codes:
    """Places (count,) of a sample of battles, in the order drawn; each step takes the models with the fewest so far.

    `model_a` and `model_b` (battles,) are codes. With `priority` (battles,) the sample is of the `2 * count` battles
    that have the highest, and of the battles of two models the highest come first; without it, all have equal chances.
    Raises InputError where there are fewer than `count` battles.

    >>> a, b = np.array([0, 0, 0, 1]), np.array([1, 1, 2, 2])
    >>> drawn = balanced_sample(a, b, 3, np.random.default_rng(1))
    >>> sorted(zip(a[drawn].tolist(), b[drawn].tolist()))
    [(0, 1), (0, 2), (1, 2)]
    """
    if not 0 < count <= len(model_a):
        raise InputError(f"a sample of {count} battles was asked for, and there are {len(model_a)}")
    place = rng.permutation(len(model_a))
    if priority is not None:
        place = place[np.argsort(-priority[place], kind="stable")][: _POOL * count]
    size = int(max(model_a.max(), model_b.max())) + 1
    pairs, pair = np.unique(model_a[place] * size + model_b[place], return_inverse=True)
    queues = np.split(place[np.argsort(pair, kind="stable")], np.cumsum(np.bincount(pair))[:-1])
    first, second = pairs // size, pairs % size
    taken, seen = np.zeros(len(pairs), dtype=np.int64), np.zeros(size, dtype=np.int64)
    length = np.array([len(queue) for queue in queues])
    drawn = np.empty(count, dtype=np.int64)
    for step in range(count):
        cost = np.where(taken < length, seen[first] + seen[second], np.iinfo(np.int64).max)
        least = np.flatnonzero(cost == cost.min())
        if priority is not None:
            heads = np.array([priority[queues[one][taken[one]]] for one in least])
            least = least[heads == heads.max()]
        chosen = int(rng.choice(least))
        drawn[step] = queues[chosen][taken[chosen]]
        taken[chosen] += 1
        seen[[first[chosen], second[chosen]]] += 1
    return drawn


def shared_places(count: int, pages: int, overlap: float) -> tuple[Codes, ...]:
    """Which of the battles drawn each of `pages` shows, as places (count,) in the order drawn.

    A share `overlap` of each page is on all of them. These are spread evenly over the order, so that they are like the
    others; the others are dealt in turn. The number of battles to draw is the largest place and one. Raises InputError.

    >>> [one.tolist() for one in shared_places(3, 2, 0.4)]
    [[0, 1, 3], [0, 2, 4]]
    """
    if count < 1 or pages < 1 or not 0.0 <= overlap <= 1.0:
        raise InputError(f"count is {count}, pages {pages} and overlap {overlap:g}; give 1 or more, and a share")
    together = count if pages == 1 else round(count * overlap)
    whole = together + pages * (count - together)
    common = np.floor(np.arange(together) * whole / max(together, 1)).astype(np.int64)
    rest = np.setdiff1d(np.arange(whole), common)
    return tuple(np.sort(np.concatenate([common, rest[page::pages]])) for page in range(pages))


def _battle_of(judgments: Judgments) -> tuple[Codes, Codes]:
    """The place of each battle's first row, in order, and the battle of each row."""
    key = np.stack([judgments.model_a, judgments.model_b, judgments.instruction])
    _, first, battle = np.unique(key, axis=1, return_index=True, return_inverse=True)
    return first.astype(np.int64), battle.ravel().astype(np.int64)


def dispute(judgments: Judgments) -> tuple[Codes, Vector]:
    """How far judges differ on each battle: the place of its first row (battles,), and a priority (battles,).

    That is the largest difference between two judges' mean outcomes, from 0 to 1; battles alike in this come by the
    share of judgments whose two orders name opposite winners. One judge alone differs from itself only.

    >>> from venire.ratings import battles, merge_orders
    >>> said = battles(["a"] * 4, ["b"] * 4, [1, 0, 1, 1], judge=list("jkjk"), instruction=list("qqrr"))
    >>> dispute(merge_orders(said))[1].tolist()
    [1.0, 0.0]
    """
    first, battle = _battle_of(judgments)
    cell = battle * len(judgments.judges) + judgments.judge
    cells, of = np.unique(cell, return_inverse=True)
    mean = np.bincount(of, judgments.y) / np.bincount(of)
    high, low = np.full(len(first), -np.inf), np.full(len(first), np.inf)
    np.maximum.at(high, cells // len(judgments.judges), mean)
    np.minimum.at(low, cells // len(judgments.judges), mean)
    flips = np.bincount(battle, judgments.flipped) / np.bincount(battle)
    return first, (high - low) + _FLIPS * flips


def doubt_of_order(judgments: Judgments) -> tuple[Codes, Vector]:
    """How doubtful the order of each battle's two models is: the place of its first row (battles,), and a priority.

    The priority is the chance that the true order is not the estimated one, by the errors of a Bradley-Terry fit of all
    judgments, clustered by instruction: at most a half. Votes on battles where it is high decide the order of a board.

    >>> from venire.ratings import battles, merge_orders
    >>> said = battles(list("aabaab"), list("bccbcc"), [1, 1, 1, 0, 1, 1], instruction=list("qqqrrr"))
    >>> first, doubt = doubt_of_order(merge_orders(said))
    >>> bool(doubt[0] > doubt[-1])  # a and b won once each, c never
    True
    """
    first, _ = _battle_of(judgments)
    found = bradley_terry(judgments.comparisons(), ridge=_RIDGE)
    place = {name: code for code, name in enumerate(found.models)}
    code = np.array([place[name] for name in judgments.models])
    a, b = code[judgments.model_a[first]], code[judgments.model_b[first]]
    gap = np.abs(found.logits[a] - found.logits[b])
    if found.covariance is None:
        return first, 0.5 * np.exp(-gap)
    variance = np.diagonal(found.covariance)
    se = np.sqrt(np.maximum(variance[a] + variance[b] - 2.0 * found.covariance[a, b], 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        doubt = np.where(se > 0.0, norm.sf(gap / se), 0.5 * np.exp(-gap))
    return first, np.nan_to_num(doubt, nan=0.0)


def votes_for_agreement(width: float, share: float = 0.5, effect: float = 1.0, level: float = 0.95) -> int:
    """The number of votes after which the interval of a share of agreement is at most `width` from end to end.

    `share` is the agreement that is expected, by default the one that needs most votes. `effect` is the design effect:
    by how much votes on few instructions scatter more than as many independent ones. The interval is that of the board,
    Wilson's score interval. Raises InputError.

    >>> votes_for_agreement(0.1), votes_for_agreement(0.1, share=0.8)
    (381, 245)
    """
    if not (0.0 < width < 1.0 and 0.0 <= share <= 1.0 and effect > 0.0):
        raise InputError(f"width is {width:g}: give the width of an interval of a share, such as 0.1, between 0 and 1")
    quantile = float(norm.ppf(0.5 + level / 2.0))
    low, high = 0, 1
    while _width(share, high / effect, quantile) > width:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _width(share, middle / effect, quantile) > width else (low, middle)
    return high


def _width(share: float, rows: float, quantile: float) -> float:
    low, high = score_interval(share, rows, quantile)
    return high - low
