"""A's share of each matchup on each instruction, by judge: what every form of consistency is computed from.

Counting goes by dense codes: where all combinations of judge, pair and instruction fit into memory, one pass adds a
table up; where they do not, the combinations that occur are numbered first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles

__all__ = ["Coded", "MatchupShares", "code_rows", "dense_codes", "matchup_shares", "outcomes"]

_DENSE = 1 << 23
"""Entries up to which a table is counted directly, whatever the number of its rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Readable verdicts as codes, one row a verdict, A before B by name.

    `pair` points into `pairs` (n, 2), the codes of the two models; `y` is the outcome for A; `unit` is the instruction,
    or -1 in every row of a table that names none.
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

    def __len__(self) -> int:
        return len(self.y)


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
    )


def matchup_shares(rows: Coded, *, decisive: bool = False) -> MatchupShares:
    """Average each judge's verdicts on a pair and an instruction: repeats of one order first, then the two orders.

    `decisive` leaves ties out first. Without instructions each verdict stands alone.
    """
    kept: slice | NDArray[np.intp] = np.flatnonzero(rows.y != 0.5) if decisive else slice(None)
    judge, pair, unit, y = rows.judge[kept], rows.pair[kept], rows.unit[kept], rows.y[kept]
    if not rows.instructions:
        order = np.lexsort((y, pair, judge))
        verdict = np.arange(len(rows))[kept][order]
        return MatchupShares(y[order], judge[order], pair[order], unit[order], verdict)
    pairs, units = max(len(rows.pairs), 1), rows.instructions
    key = (judge * pairs + pair) * units + unit
    cell, found = dense_codes(key, max(len(rows.judges), 1) * pairs * units)
    if rows.ordered:
        slot = 2 * cell + rows.swapped[kept]
        count = np.bincount(slot, minlength=2 * len(found)).reshape(-1, 2)
        total = np.bincount(slot, y, 2 * len(found)).reshape(-1, 2)
        share = total / np.maximum(count, 1)
        u = (share[:, 0] + share[:, 1]) / ((count[:, 0] > 0).astype(np.int8) + (count[:, 1] > 0))
    else:
        u = np.bincount(cell, y, len(found)) / np.bincount(cell, minlength=len(found))
    column, unit = np.divmod(found, units)
    judge, pair = np.divmod(column, pairs)
    return MatchupShares(u, judge, pair, unit, np.empty(0, dtype=np.intp))
