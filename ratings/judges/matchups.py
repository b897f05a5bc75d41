"""A's share of each matchup on each instruction, by judge: what every form of consistency is computed from.

Counting goes by dense codes: where all combinations of judge, pair and instruction fit into memory, one pass adds a
table up; where they do not, the combinations that occur are numbered first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles

__all__ = ["Coded", "MatchupShares", "Tally", "code_rows", "dense_codes", "matchup_shares", "outcomes", "tally"]

_DENSE = 1 << 23
"""Entries up to which a table is counted directly, whatever the number of its rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Readable verdicts as codes, one row a verdict, A before B by name.

    `pair` points into `pairs` (n, 2), the codes of the two models; `y` is the outcome for A; `unit` is the instruction,
    or -1 in every row of a table that names none. `fractional` says that outcomes may be other than 1, 0.5 and 0.
    """

    judges: tuple[str, ...]
    models: tuple[str, ...]
    pairs: NDArray[np.intp]
    judge: NDArray[np.intp]
    pair: NDArray[np.intp]
    unit: NDArray[np.intp]
    instructions: int
    swapped: NDArray[np.bool_]
    ordered: bool
    y: NDArray[np.float64]
    fractional: bool

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Verdicts counted by judge, pair, instruction (cells,) and order: arrays of shape (cells, 2), A first and B first.

    `ties` and `won` (by A) are of the `count` verdicts; `total` is the sum of their outcomes.
    """

    judge: NDArray[np.intp]
    pair: NDArray[np.intp]
    unit: NDArray[np.intp]
    count: NDArray[np.intp]
    ties: NDArray[np.intp]
    won: NDArray[np.intp]
    total: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MatchupShares:
    """One row a (judge, pair, instruction), sorted by these: A's share `u`, and what it is of.

    Without instructions each verdict is a row of its own; `verdict` says which (and is empty otherwise).
    """

    u: NDArray[np.float64]
    judge: NDArray[np.intp]
    pair: NDArray[np.intp]
    unit: NDArray[np.intp]
    verdict: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.u)


def dense_codes(key: NDArray[np.intp], size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the distinct keys (rows,) below `size`: each row's number, and the keys in ascending order.

    Counts a table of `size` entries where that is cheaper than sorting the rows.
    """
    if size > max(_DENSE, 4 * len(key)):
        found, codes = np.unique(key, return_inverse=True)
        return codes, found
    occurs = np.zeros(size, dtype=np.bool_)
    occurs[key] = True
    found = np.flatnonzero(occurs)
    if len(found) == size:
        return key, found
    number = np.empty(size, dtype=np.intp)
    number[found] = np.arange(len(found))
    return number[key], found


def outcomes(label: NDArray[np.int8], outcome: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """The outcome for A of readable rows (rows,), 0 to 1: what the table states, else what the label says."""
    y: NDArray[np.float64] = np.array([0.0, 0.5, 1.0])[label + np.int8(1)]
    if outcome is None:
        return y
    return np.asarray(np.where(np.isnan(outcome), y, outcome), dtype=np.float64)


def code_rows(rows: Battles, used: NDArray[np.bool_]) -> Coded:
    """Take the rows used (rows,) of a canonical table as codes."""
    size = max(len(rows.models), 1)
    take = slice(None) if used.all() else used
    key = rows.model_a[take].astype(np.int64) * size + rows.model_b[take]
    pair, found = dense_codes(key, size * size)
    return Coded(
        judges=rows.judges,
        models=rows.models,
        pairs=np.stack(np.divmod(found, size), axis=1).astype(np.intp),
        judge=rows.judge[take].astype(np.intp),
        pair=pair,
        unit=rows.instruction[take].astype(np.intp),
        instructions=len(rows.instructions),
        swapped=rows.swapped[take],
        ordered=rows.ordered,
        y=outcomes(rows.label[take], None if rows.outcome is None else rows.outcome[take]),
        fractional=rows.outcome is not None,
    )


def tally(rows: Coded) -> Tally | None:
    """Count verdicts; None where the table names no instruction. Without orders all count as the first."""
    if not rows.instructions:
        return None
    pairs, units = max(len(rows.pairs), 1), rows.instructions
    key = (rows.judge * pairs + rows.pair) * units + rows.unit
    cell, found = dense_codes(key, max(len(rows.judges), 1) * pairs * units)
    slot = 2 * cell
    if rows.ordered:
        slot += rows.swapped
    size = 2 * len(found)
    tied, won = rows.y == 0.5, rows.y > 0.5
    ties, wins = np.bincount(slot[tied], minlength=size), np.bincount(slot[won], minlength=size)
    total = np.bincount(slot, rows.y, size) if rows.fractional else wins + 0.5 * ties
    column, unit = np.divmod(found, units)
    judge, pair = np.divmod(column, pairs)
    count = np.bincount(slot, minlength=size)
    count, ties, wins = count.reshape(-1, 2), ties.reshape(-1, 2), wins.reshape(-1, 2)
    return Tally(judge, pair, unit, count, ties, wins, total.reshape(-1, 2).astype(np.float64))


def matchup_shares(rows: Coded, counted: Tally | None, *, decisive: bool = False) -> MatchupShares:
    """Average each judge's verdicts on a pair and an instruction: repeats of one order first, then the two orders.

    `counted` is the tally of the same rows. `decisive` leaves ties out first. Without instructions each verdict stands
    alone.
    """
    if counted is None:
        kept = np.flatnonzero(rows.y != 0.5) if decisive else np.arange(len(rows))
        verdict = kept[np.lexsort((rows.y[kept], rows.pair[kept], rows.judge[kept]))]
        return MatchupShares(rows.y[verdict], rows.judge[verdict], rows.pair[verdict], rows.unit[verdict], verdict)
    count, total = counted.count, counted.total
    if decisive:
        count, total = count - counted.ties, total - 0.5 * counted.ties
    share = total / np.maximum(count, 1)
    orders = (count[:, 0] > 0).astype(np.int8) + (count[:, 1] > 0)
    u = (share[:, 0] + share[:, 1]) / np.maximum(orders, 1)
    if orders.all():
        return MatchupShares(u, counted.judge, counted.pair, counted.unit, np.empty(0, dtype=np.intp))
    some = orders > 0
    codes = (counted.judge[some], counted.pair[some], counted.unit[some])
    return MatchupShares(u[some], *codes, np.empty(0, dtype=np.intp))
