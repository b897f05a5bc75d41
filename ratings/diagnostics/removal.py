"""How little has to be left out until another model leads: the share of judgments, instructions or judges.

What supports a lead most is found to first order and left out in that order (arXiv 2011.14999; for ratings from pairs
arXiv 2508.11847). How much suffices is then searched with exact refits, so that the number is one that was seen to
suffice: at most so much. A smaller set may do as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.diagnostics.influence import Effects, effects, rated_together
from venire.ratings.pairwise.bradley_terry import SeparatedError, bradley_terry_wins
from venire.ratings.pairwise.wins import win_counts

__all__ = ["Removal", "RemovalUnit", "smallest_removal"]

RemovalUnit = Literal["judgment", "instruction", "judge"]

_FEW = 64
"""Up to so many units the effect of each is found by leaving it out, which few and heavy ones need."""

_SLIGHT = 1e-3
"""The ridge that decides who leads where what is left has no finite estimate."""

_NAMED = 20

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Removal:
    """Leaving out `removed` of `units` makes `rival` lead before `leader`: seen by a refit, so the least is at most it.

    `removed` is None where nothing that was tried changes the winner, and `predicted` is what the first order said,
    None where it says that nothing does. `lead` is in Elo points, with its standard error `se`, of the rival that needs
    the fewest. `names` are the first twenty instructions or judges in the order left out; empty for judgments.
    """

    unit: RemovalUnit
    units: int
    removed: int | None
    predicted: int | None
    leader: str
    rival: str
    lead: float
    se: float
    names: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """`removed` over `units`."""
        return None if self.removed is None else self.removed / self.units


@dataclass(frozen=True, slots=True, eq=False)
class _Pile:
    """Units that can be left out: what each holds of a lead, and who leads by how much when some are gone."""

    units: int
    names: tuple[str, ...]
    held: Callable[[int], Vector]
    without: Callable[[NDArray[np.intp]], Comparisons]


def smallest_removal(
    data: Comparisons, unit: RemovalUnit = "judgment", *, rivals: int = 3, ridge: float = 0.0
) -> Removal:
    """The fewest judgments (rows), instructions (clusters) or judges seen to change who leads.

    Of all rivals the `rivals` that need the fewest to first order are tried by exact refits. Raises `InputError`
    without two models that wins join, and without names of the units.
    """
    rows = rated_together(data)
    if len(rows.models) < 2 or not len(rows):
        raise InputError("no two models are joined by wins both ways: nobody leads")
    found = effects(rows, ridge=ridge)
    order = np.argsort(-np.round(found.ratings.logits, 10), kind="stable").tolist()
    leader, pile = order[0], _pile(found, unit, order[0], ridge)
    guesses = []
    for rival in order[1:]:
        lead = float(found.ratings.logits[leader] - found.ratings.logits[rival])
        guesses.append((_first_order(pile.held(rival), lead), lead, rival))
    guesses.sort(key=lambda one: (np.inf if one[0] is None else one[0], one[1], one[2]))
    tried = [_search(found, pile, unit, leader, rival, guess, ridge) for guess, _, rival in guesses[:rivals]]
    return min(tried, key=lambda one: (np.inf if one.removed is None else one.removed, one.lead, one.rival))


def _pile(found: Effects, unit: RemovalUnit, leader: int, ridge: float) -> _Pile:
    """The units of a table with what each holds of the lead over a rival, by the rival's code."""
    data = found.data
    if unit == "judgment":
        return _judgments(found, leader)
    codes, names = (data.cluster, data.clusters) if unit == "instruction" else (data.judge, data.judges)
    if codes is None or len(names) < 2:
        count = f"one named {unit}" if names else f"no named {unit}s"
        raise InputError(f"{count}: leaving some out needs two or more")

    def without(gone: NDArray[np.intp]) -> Comparisons:
        return data.select(~np.isin(codes, gone))

    if len(names) > _FEW:
        moved = found.units(codes, len(names))
    else:
        logits = [_refitted(without(np.array([one])), ridge) for one in range(len(names))]
        moved = found.ratings.logits - np.array(logits)

    def held(rival: int) -> Vector:
        return np.asarray(moved[:, leader] - moved[:, rival])

    return _Pile(len(names), names, held, without)


def _judgments(found: Effects, leader: int) -> _Pile:
    """Single rows; equal rows are counted as one cell, so that a large table costs what its distinct rows do."""
    data, size = found.data, len(found.data.models)
    turned = data.a > data.b
    first, second = np.where(turned, data.b, data.a), np.where(turned, data.a, data.b)
    pair = first.astype(np.int64) * size + second
    weight = np.ones(len(data)) if data.weight is None else data.weight
    table = np.stack([pair.astype(np.float64), np.where(turned, 1.0 - data.y, data.y), weight])
    # NumPy sorts one column far faster than three; most outcomes are quarters.
    quarters = 4.0 * table[1]
    if data.weight is None and bool(np.all(quarters == np.rint(quarters))):
        _, at, count = np.unique(5 * pair + quarters.astype(np.int64), return_index=True, return_counts=True)
    else:
        _, at, count = np.unique(table, axis=1, return_index=True, return_counts=True)
    of_pair, y, heavy = table[0][at].astype(np.int64), table[1][at], table[2][at]
    cells = Comparisons(data.models, (of_pair // size).astype(np.int32), (of_pair % size).astype(np.int32), y, heavy)
    residuals = np.where(turned, -found.residuals, found.residuals)[at]
    one_each = Effects(cells, found.ratings, found.bread, residuals)
    ends = np.cumsum(count)

    def held(rival: int) -> Vector:
        contrast = np.zeros(size)
        contrast[leader], contrast[rival] = 1.0, -1.0
        return np.repeat(one_each.rows(contrast), count)

    def without(gone: NDArray[np.intp]) -> Comparisons:
        left = count - np.bincount(np.searchsorted(ends, gone, side="right"), minlength=len(count))
        kept = left > 0
        return Comparisons(cells.models, cells.a[kept], cells.b[kept], y[kept], heavy[kept] * left[kept])

    return _Pile(len(data), (), held, without)


def _first_order(held: Vector, lead: float) -> int | None:
    """How many of the units that hold most of the lead hold all of it; None where all that help hold less."""
    helps = np.sort(held[held > 0.0])[::-1]
    place = int(np.searchsorted(np.cumsum(helps), lead))
    return place + 1 if place < len(helps) else None


def _search(
    found: Effects, pile: _Pile, unit: RemovalUnit, leader: int, rival: int, guess: int | None, ridge: float
) -> Removal:
    held = np.round(pile.held(rival), 12)
    order = np.argsort(-held, kind="stable")[: int(np.count_nonzero(held > 0.0))]

    def turns(number: int) -> bool:
        after = _refitted(pile.without(order[:number]), ridge)
        return bool(after[rival] > after[leader])

    removed = _least(turns, guess or len(order), min(len(order), pile.units - 1))
    contrast = np.zeros(len(found.data.models))
    contrast[leader], contrast[rival] = 1.0, -1.0
    named = pile.names and removed is not None
    return Removal(
        unit=unit,
        units=pile.units,
        removed=removed,
        predicted=guess,
        leader=found.data.models[leader],
        rival=found.data.models[rival],
        lead=float(POINTS_PER_LOGIT * (contrast @ found.ratings.logits)),
        se=POINTS_PER_LOGIT * found.error(contrast),
        names=tuple(pile.names[code] for code in order[: min(removed or 0, _NAMED)].tolist()) if named else (),
    )


def _least(turns: Callable[[int], bool], guess: int, most: int) -> int | None:
    """The least number up to `most` at which `turns` was seen to hold, searched outwards from a guess."""
    low, high = 0, max(1, min(guess, most))
    if most < 1:
        return None
    while not turns(high):
        if high == most:
            return None
        low, high = high, min(most, max(high + 1, high + (high - low) // 4 + 1))
    step = max(1, high // 16)
    while high - low > 1:
        # The guess is close: first steps are short.
        middle = max(low + 1, high - step)
        if turns(middle):
            high, step = middle, 2 * step
        else:
            low, step = middle, max(1, (high - middle) // 2)
    return high


def _refitted(data: Comparisons, ridge: float) -> Vector:
    """Ratings in logits (n,); models without a comparison count as last."""
    counts = win_counts(data)
    try:
        ratings = bradley_terry_wins(counts, ridge=ridge)
    except SeparatedError:
        ratings = bradley_terry_wins(counts, ridge=_SLIGHT)
    return np.where(np.isfinite(ratings.logits), ratings.logits, -np.inf)
