"""Matchups by judge: A's share of wins on each instruction, and the gap of each matchup in log odds.

All forms of consistency are computed from the shares. Counting uses dense codes: where all combinations of judge, pair
and instruction fit into memory, one pass sums a table; where they do not, the combinations that occur are numbered
first. Gaps come from people's ratings or from the other judges, never from a judge's own verdicts, since a judge must
not be measured by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.arena.wording import suggest
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.ratings.pairwise.components import strong_components
from venire.ratings.pairwise.solvers import NotConvergedError

_DENSE = 1 << 23
"""Number of entries up to which a table is counted directly, whatever the number of its rows."""

Weights = Literal["even", "gap", "gap-squared", "optimal"]


@dataclass(frozen=True, slots=True, eq=False)
class CodedVerdicts:
    """Readable verdicts as codes, one row per verdict, A before B by name.

    `pair` are indices into `pairs` (n, 2), the codes of the two models; `y` is the outcome for A; `unit` is the
    instruction, or -1 in every row of a table without instructions. `fractional` means that outcomes may differ from 1,
    0.5 and 0.
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
class VerdictCounts:
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
    """One row per (judge, pair, instruction), sorted by these: A's share `u`, and its codes.

    Without instructions each verdict is a separate row; `verdict` is its index (and is empty otherwise).
    """

    u: NDArray[np.float64]
    judge: NDArray[np.intp]
    pair: NDArray[np.intp]
    unit: NDArray[np.intp]
    verdict: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.u)


def dense_codes(key: NDArray[np.intp], size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the distinct keys (rows,), which are below `size`: each row's number, and the keys in ascending order.

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
    """The outcome for A of readable rows (rows,), 0 to 1: from the outcome column, else from the label."""
    y: NDArray[np.float64] = np.array([0.0, 0.5, 1.0])[label + np.int8(1)]
    if outcome is None:
        return y
    return np.asarray(np.where(np.isnan(outcome), y, outcome), dtype=np.float64)


def code_rows(rows: Battles, used: NDArray[np.bool_]) -> CodedVerdicts:
    """Code the rows `used` (rows,) of a canonical table."""
    size = max(len(rows.models), 1)
    take = slice(None) if used.all() else used
    key = rows.model_a[take].astype(np.int64) * size + rows.model_b[take]
    pair, found = dense_codes(key, size * size)
    return CodedVerdicts(
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


def count_verdicts(rows: CodedVerdicts) -> VerdictCounts | None:
    """Count verdicts; None for a table without instructions. Without orders all count as the first."""
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
    return VerdictCounts(judge, pair, unit, count, ties, wins, total.reshape(-1, 2).astype(np.float64))


def matchup_shares(rows: CodedVerdicts, counted: VerdictCounts | None, *, decisive: bool = False) -> MatchupShares:
    """Average each judge's verdicts on a pair and an instruction: repeats of one order first, then the two orders.

    `counted` are the counts of the same rows. `decisive` leaves ties out first. Without instructions each verdict is
    used separately.
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


def gaps_from_elo(rows: CodedVerdicts, elo: Mapping[str, float]) -> NDArray[np.float64]:
    """Signed gaps A minus B (judges, pairs) in log odds from Elo points by model; NaN where unknown."""
    logits = np.array([elo.get(name, np.nan) for name in rows.models], dtype=np.float64) / POINTS_PER_LOGIT
    gap = logits[rows.pairs[:, 0]] - logits[rows.pairs[:, 1]]
    return np.tile(gap, (len(rows.judges), 1))


def gaps_from_other_judges(rows: CodedVerdicts, shares: MatchupShares) -> NDArray[np.float64]:
    """Signed gaps A minus B (judges, pairs) in log odds, for each judge from a Bradley-Terry fit on all others.

    Each share of a matchup on an instruction counts once. Gaps are known within the largest set of models that the
    others can rate together. They are NaN elsewhere, and where the counts are too extreme for double precision.
    """
    judges, pairs, models = len(rows.judges), len(rows.pairs), len(rows.models)
    key = shares.judge * pairs + shares.pair
    won = np.bincount(key, shares.u, judges * pairs).reshape(judges, pairs)
    lost = np.bincount(key, 1.0 - shares.u, judges * pairs).reshape(judges, pairs)
    gaps = np.full((judges, pairs), np.nan)
    a, b = rows.pairs.T
    for judge in range(judges):
        # Summed over the others instead of subtracted from the total, which would leave rounding errors in place of
        # zeros.
        others = np.arange(judges) != judge
        wins = np.zeros((models, models))
        wins[a, b], wins[b, a] = won[others].sum(axis=0), lost[others].sum(axis=0)
        group = max(strong_components(wins), key=len, default=np.empty(0, dtype=np.intp))
        if len(group) > 1:
            gaps[judge] = _gaps(wins, group)[a, b]
    return gaps


def _gaps(wins: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
    """Gaps (models, models) between the models of one group, from pair counts; NaN elsewhere, or without a fit."""
    logits = np.full(len(wins), np.nan)
    with suppress(NotConvergedError):
        names = [str(code) for code in group]
        logits[group] = bradley_terry_wins(wins[np.ix_(group, group)], names).logits
    gaps: NDArray[np.float64] = logits[:, None] - logits
    return gaps


def importance(weights: Weights, shares: MatchupShares, gaps: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The weight of each matchup in each judge's consistency (judges, pairs); None: all equal.

    `gap` and `gap-squared` are the gap's size and its square. `optimal` is n * gap / (2 pbar - 1), n the judge's
    instructions and pbar A's share with all judges: the information of the spread about a judge's slope relative to its
    noise. NaN where the gap is unknown or the judges' majority contradicts it. Raises `InputError` for an unknown
    option.
    """
    if weights == "even":
        return None
    if weights == "gap":
        return np.abs(gaps)
    if weights == "gap-squared":
        return gaps**2
    if weights != "optimal":
        raise InputError(f"weights is {weights!r}; {suggest(weights, ('even', 'gap', 'gap-squared', 'optimal'))}")
    judges, pairs = gaps.shape
    count = np.bincount(shares.judge * pairs + shares.pair, minlength=judges * pairs).reshape(judges, pairs)
    lean = 2.0 * np.bincount(shares.pair, shares.u, pairs) / np.maximum(count.sum(axis=0), 1) - 1.0
    with_gap = gaps * lean > 0.0
    return np.where(with_gap, count * gaps / np.where(with_gap, lean, 1.0), np.nan)
