"""Kemeny-Young for large blocks: local search for good orders, and linear programs with cuts that prove optimality.

One variable per pair states whether the model with the smaller code is above. Binary values form an order if and only
if no three models form a cycle; few of these constraints matter, and only those that a solution violates are added. The
dual of the linear relaxation gives a lower bound for all orders, which often equals the cost of the best order known.
Where it does not, HiGHS searches for binary values that cost less than the best order known: infeasibility is a proof
too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from venire.ratings.voting.kemeny_blocks import Excess, order_cost

_SEED = 0

_MOVED = 0.2
"""The share of models that a restart moves."""

Codes = NDArray[np.intp]

_ROWS = 64
"""Constraints added at a time per model, the most violated first."""

_ROWS_OF_ONE = 1000

_MISSED = 1e-6

_NONE = 2
"""The HiGHS status of an infeasible program."""

_STARTS = 200

_SEARCHING = 0.1
"""The share of the remaining time spent on searching better orders before the integer program."""

_ROUNDING = 1e-14

_DOUBT = 1e-10
"""Assumed error of a bound as a share of the largest possible cost: summed here, and reported by HiGHS."""

Vector = NDArray[np.float64]


def borda_start(block: Excess) -> Codes:
    """Borda's order (n,): by votes won minus votes lost; among equals the smaller code first."""
    table = block.table
    return np.argsort(-(table.sum(axis=1) - table.sum(axis=0)), kind="stable")


def local_search(block: Excess, order: Codes, late: Callable[[], bool]) -> Codes:
    """Local search: move one model at a time, the move that saves most, until none saves or it is `late`."""
    margin, order = block.table - block.table.T, order.copy()
    while not late():
        ranked = margin[np.ix_(order, order)]
        # The gain of placing a model above the first k of the others, relative to placing it below all of them.
        above = np.pad(np.cumsum(ranked[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
        saved = above - np.diagonal(above)[:, None]
        mover, place = np.unravel_index(int(np.argmax(saved)), saved.shape)
        if saved[mover, place] <= block.tolerance:
            break
        model = order[mover]
        order = np.insert(np.delete(order, mover), place - (place > mover), model)
    return order


def random_restarts(block: Excess, order: Codes, starts: int, late: Callable[[], bool]) -> Codes:
    """Iterated local search: the best order of `starts` restarts, each from the best known with some models moved."""
    rng, size = np.random.default_rng(_SEED), len(order)
    cost, moved = order_cost(block.table, order), max(2, round(_MOVED * size))
    for _ in range(starts):
        if late():
            break
        keys = np.empty(size)
        keys[order] = np.arange(size)
        keys[rng.choice(size, moved, replace=False)] = rng.uniform(-0.5, size - 0.5, moved)
        found = local_search(block, np.argsort(keys, kind="stable"), late)
        paid = order_cost(block.table, found)
        if paid <= cost:
            order, cost = found, paid
    return order


@dataclass(frozen=True, slots=True, eq=False)
class BestOrder:
    """The best order known (n,), its excess `cost`, and a lower `bound` of the cost of any order."""

    order: Codes
    cost: float
    bound: float


def optimal_order(block: Excess, left: Callable[[], float]) -> BestOrder:
    """An order of least cost, or the best found when no seconds are `left`; the bound shows which.

    The search uses a fixed seed, so equal blocks have equal orders unless time runs out.
    """

    def late() -> bool:
        return left() <= 0.0

    program = _Program(block)
    program.offer(local_search(block, borda_start(block), late))
    _cutting_planes(program, left)
    if not program.proved and not late():
        until = left() * (1.0 - _SEARCHING)
        program.offer(random_restarts(block, program.order, _STARTS, lambda: left() <= until))
    while not program.proved and not late() and _integer_program(program, left):
        pass
    return BestOrder(program.order, program.cost, program.bound)


class _Program:
    """The constraints added so far, the best order found and the best bound proved."""

    def __init__(self, block: Excess) -> None:
        size = len(block.table)
        self.block = block
        self.above, self.under = np.triu_indices(size, 1)
        self.pair = np.zeros((size, size), dtype=np.intp)
        self.pair[self.above, self.under] = self.pair[self.under, self.above] = np.arange(len(self.above))
        paid = block.table[self.above, self.under]
        self.price, self.base = block.table[self.under, self.above] - paid, float(paid.sum())
        self.circles = np.zeros((0, 3), dtype=np.intp)
        self.order, self.cost, self.bound = np.arange(size), math.inf, 0.0

    @property
    def proved(self) -> bool:
        return self.cost - self.bound <= self.block.tolerance

    def offer(self, order: Codes) -> None:
        """Keep an order that costs less than the best found so far."""
        paid = order_cost(self.block.table, order)
        if paid < self.cost:
            self.order, self.cost = order, paid

    def shown(self, bound: float, doubt: float) -> None:
        """Record a bound; where costs are integers it is rounded up."""
        sure = bound - doubt * float(self.block.table.sum())
        self.bound = max(self.bound, float(math.ceil(sure - _MISSED)) if self.block.whole else sure)

    def read(self, x: Vector, late: Callable[[], bool]) -> bool:
        """Offer the order closest to a solution (pairs,), and add the constraints that it violates; whether any."""
        size = len(self.block.table)
        above = np.zeros((size, size))
        above[self.above, self.under], above[self.under, self.above] = x, 1.0 - x
        nearest = np.argsort(-above.sum(axis=1), kind="stable")
        self.offer(local_search(self.block, nearest, late))
        circles = _violated_cycles(above, late)
        self.circles = np.concatenate([self.circles, circles])
        return len(circles) > 0

    def below(self, multipliers: Vector) -> float:
        """A lower bound from multipliers of the constraints: valid for any multipliers, so no solver is trusted."""
        rows, most = self.rows()
        held = np.minimum(multipliers, 0.0)
        return self.base + float(most @ held) + float(np.minimum(self.price - rows.T @ held, 0.0).sum())

    def rows(self) -> tuple[csr_array, Vector]:
        """The constraint of each cycle i over j over k over i as a row: at most two of the three."""
        start, end = self.circles, np.roll(self.circles, -1, axis=1)
        signs = np.where(start < end, 1.0, -1.0)
        at = np.repeat(np.arange(len(start)), 3), self.pair[start, end].ravel()
        shape = (len(start), len(self.price))
        return csr_array((signs.ravel(), at), shape=shape), 2.0 - (start > end).sum(axis=1)


def _violated_cycles(above: Vector, late: Callable[[], bool]) -> Codes:
    """Cycles of three (cycles, 3), each from its smallest code on, whose sum in a solution exceeds two."""
    most, found = _ROWS * len(above), []
    for first in range(len(above) - 2):
        if late():
            return np.zeros((0, 3), dtype=np.intp)
        rest = slice(first + 1, None)
        total = above[first, rest, None] + above[rest, rest] + above[rest, first]
        np.fill_diagonal(total, 0.0)
        second, third = np.nonzero(total > 2.0 + _MISSED)
        by = total[second, third]
        worst = np.argsort(-by, kind="stable")[:_ROWS_OF_ONE]
        found.append(np.column_stack([by, np.full(len(by), first), second + first + 1, third + first + 1])[worst])
    table = np.concatenate(found)
    return table[np.argsort(-table[:, 0], kind="stable")[:most], 1:].astype(np.intp)


def _cutting_planes(program: _Program, left: Callable[[], float]) -> None:
    """Solve the relaxation until no cycle is violated, an order meets the bound, or time is up."""
    from scipy.optimize import linprog  # slow to import: see `data.statistics`

    def late() -> bool:
        return left() <= 0.0

    x = (program.price < 0.0).astype(np.float64)
    while not program.proved and program.read(x, late) and not program.proved and not late():
        rows, most = program.rows()
        sparse: Any = rows  # the type stubs of linprog accept dense tables only
        found = linprog(
            program.price,
            A_ub=sparse,
            b_ub=most,
            bounds=(0.0, 1.0),
            method="highs-ds",
            options={"time_limit": max(left(), 0.0)},
        )
        if found.status != 0 or found.x is None:
            return
        program.shown(program.below(found.ineqlin.marginals), _ROUNDING)
        x = found.x


def _integer_program(program: _Program, left: Callable[[], float]) -> bool:
    """Solve the integer program for a cost below the best order found; whether another call could help."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import: see `data.statistics`

    rows, most = program.rows()
    step = program.block.tolerance * (1.0 if program.block.whole else 0.5)
    less = LinearConstraint(program.price[None, :], -np.inf, program.cost - step - program.base)
    found = milp(
        program.price,
        constraints=[LinearConstraint(rows, -np.inf, most), less],
        integrality=np.ones(len(program.price), dtype=np.int64),
        bounds=Bounds(0.0, 1.0),
        options={"time_limit": max(left(), 0.0), "mip_rel_gap": 0.0},
    )
    if found.status == _NONE:
        program.shown(program.cost if program.block.whole else program.cost - step, _DOUBT)
        return False
    if found.mip_dual_bound is not None and math.isfinite(found.mip_dual_bound):
        program.shown(min(program.base + float(found.mip_dual_bound), program.cost), _DOUBT)
    if found.x is None:
        return False
    return program.read(np.rint(found.x), lambda: left() <= 0.0) and found.status == 0
