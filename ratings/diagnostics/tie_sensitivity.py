"""What a tie counts as is a choice of whoever rates: does the board depend on it?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import Flips, Merge, merge_orders
from venire.ratings.data.result import Ratings
from venire.ratings.data.validation import check_level
from venire.ratings.pairwise.bradley_terry import NotConvergedError, SeparatedError, bradley_terry
from venire.ratings.pairwise.ties import NoTieParameterError, davidson

__all__ = ["TieRule", "TieSensitivity", "tie_sensitivity"]


@dataclass(frozen=True, slots=True)
class TieRule:
    """The board under another rule, beside that with ties as half a win.

    `leader` is its first model, `moved` the most places that a model moves and `mover` which one, `shift` the most Elo
    points. `contradicted` are pairs, better one first with ties as half a win, that stand the other way round here,
    although one of the two boards tells them apart at the level. `reason` says why there is no board, else None.
    """

    rule: str
    leader: str | None = None
    moved: int = 0
    mover: str | None = None
    shift: float = 0.0
    contradicted: tuple[tuple[str, str], ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TieSensitivity:
    """`leader` of the board with ties as half a win, the share of judgments that are ties or flips, other rules."""

    leader: str
    ties: float
    flips: float
    rules: tuple[TieRule, ...]


def tie_sensitivity(
    battles: Battles, *, merge: Merge = "mean", flips: Flips = "tie", level: float = 0.95
) -> TieSensitivity:
    """Rate verdicts with ties as half a win, then with ties or flips left out, and with ties as an outcome (Davidson).

    Rules that change nothing, since there is no tie or no flip, are left out. Raises `InputError` for a level, where
    the first of these boards does not exist, and as merging does.
    """
    check_level(level)
    judgments = merge_orders(battles, merge, flips=flips)
    data = judgments.comparisons()
    try:
        base = bradley_terry(data)
    except (SeparatedError, NotConvergedError) as error:
        raise InputError(f"no common estimate exists to compare with: {error}") from None
    rules = []
    if (data.y == 0.5).any():
        rules.append(_by_bradley_terry("ties left out", data.select(data.y != 0.5), base, level))
    if judgments.flips and merge != "none":
        dropped = merge_orders(battles, merge, flips="drop").comparisons()
        rules.append(_by_bradley_terry("flips left out", dropped, base, level))
    strict = data if merge == "none" else merge_orders(battles, "strict", flips=flips).comparisons()
    if (strict.y == 0.5).any():
        rules.append(_by_davidson(strict, base, level))
    size = max(len(judgments), 1)
    return TieSensitivity(base.order[0], judgments.ties / size, judgments.flips / size, tuple(rules))


def _by_bradley_terry(rule: str, data: Comparisons, base: Ratings, level: float) -> TieRule:
    try:
        return _beside(rule, base, bradley_terry(data), level)
    except (SeparatedError, NotConvergedError) as error:
        return TieRule(rule, reason=str(error))


def _by_davidson(data: Comparisons, base: Ratings, level: float) -> TieRule:
    rule = "ties as an outcome"
    if not np.isin(data.y, (0.0, 0.5, 1.0)).all():
        return TieRule(rule, reason="outcomes are shares, not wins, ties and losses")
    try:
        return _beside(rule, base, davidson(data).ratings, level)
    except (SeparatedError, NotConvergedError, NoTieParameterError) as error:
        return TieRule(rule, reason=str(error))


def _beside(rule: str, base: Ratings, other: Ratings, level: float) -> TieRule:
    both = np.flatnonzero(np.isfinite(base.logits) & np.isfinite(other.logits))
    if len(both) < 2:
        return TieRule(rule, reason="fewer than two models have a rating under it")
    first, second = (np.round(one.logits[both], 9) for one in (base, other))
    moved = _places(second) - _places(first)
    mover = int(np.argmax(np.abs(moved)))
    points = (other.elo - other.elo[both].mean() - base.elo + base.elo[both].mean())[both]
    swapped = (first[:, None] > first[None, :]) & (second[:, None] < second[None, :])
    swapped &= _apart(base, both, level) | _apart(other, both, level)
    names = [base.models[code] for code in both.tolist()]
    return TieRule(
        rule,
        leader=names[int(np.argmax(second))],
        moved=int(abs(moved[mover])),
        mover=names[mover] if moved[mover] else None,
        shift=float(np.abs(points).max()),
        contradicted=tuple((names[one], names[two]) for one, two in np.argwhere(swapped).tolist()),
    )


def _places(logits: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.argsort(np.argsort(-logits, kind="stable"), kind="stable")


def _apart(ratings: Ratings, codes: NDArray[np.intp], level: float) -> NDArray[np.bool_]:
    """Which pairs (n, n) differ by more than their error explains, each pair by itself."""
    if ratings.covariance is None:
        return np.zeros((len(codes), len(codes)), dtype=np.bool_)
    spread, at = ratings.covariance[np.ix_(codes, codes)], ratings.logits[codes]
    own = np.diagonal(spread)
    error = np.sqrt(np.maximum(own[:, None] + own[None, :] - 2.0 * spread, 0.0))
    return np.asarray(np.abs(at[:, None] - at[None, :]) > ratings.quantile(level) * error, dtype=np.bool_)
