"""The engine of leave-one-model-out: tables of every signal once, then fits without some models by subtraction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.pairwise.components import weak_components
from venire.ratings.pairwise.solvers import climb, curve_of
from venire.ratings.pairwise.wins import WinCounts, win_counts
from venire.ratings.soft_elo.beta import HumanTies, ScoreGrid, beta_of, label_column, score_column, score_grid
from venire.ratings.soft_elo.placing import clipped, place, with_targets

__all__ = ["MINIMUM_ANCHORS", "Field", "Own", "field_of", "islands"]

MINIMUM_ANCHORS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """The battles of one model against anchors: their rows, the opponent in each, and which side the model stood on."""

    rows: NDArray[np.intp]
    opponent: NDArray[np.int32]
    first: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Checked rows with their targets for A by signal, NaN where a signal does not speak; soft targets are made anew.

    `wins` are the pair counts of each fixed signal, `start` its ratings with nobody left out.
    """

    data: Comparisons
    targets: Mapping[str, NDArray[np.float64]]
    grid: ScoreGrid
    scored: NDArray[np.bool_]
    ridge: float
    ties: HumanTies
    parity: bool
    wins: Mapping[str, WinCounts]
    start: Mapping[str, NDArray[np.float64]]
    anchor: NDArray[np.bool_]

    def touches(self, *out: int) -> NDArray[np.bool_]:
        """Rows (rows,) in which one of these models stands."""
        rows = np.zeros(len(self.data), dtype=np.bool_)
        for code in out:
            rows |= (self.data.a == code) | (self.data.b == code)
        return rows

    def beta(self, *out: int) -> float:
        """Beta from the labels of people in which none of these models stands; NaN where they say nothing."""
        labels = np.where(self.scored & ~self.touches(*out), self.targets["human"], np.nan)
        return beta_of(self.grid, labels, weight=self.data.weight, ties=self.ties).beta

    def soft(self, beta: float) -> NDArray[np.float64]:
        """Soft targets (rows,) at this beta; NaN without a score, and throughout where beta is NaN."""
        if np.isnan(beta):
            return np.full(len(self.data), np.nan)
        return np.where(self.scored, self.grid.probabilities(beta), np.nan)

    def rate(self, wins: WinCounts, out: tuple[int, ...], start: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ratings (n,) in logits of the anchors but `out`, with mean 0 over these; NaN for all others."""
        kept = self.anchor.copy()
        kept[list(out)] = False
        logits = climb(curve_of(wins.only(kept)), start[kept], ridge=self.ridge).logits
        rated = np.full(len(kept), np.nan)
        rated[kept] = logits - logits.mean()
        return rated

    def wins_of(self, targets: NDArray[np.float64]) -> WinCounts:
        """Pair counts of targets (rows,)."""
        return win_counts(with_targets(self.data, clipped(targets, self.parity)))

    def own(self, code: int, *out: int) -> Own:
        """The battles of model `code` against the anchors that are not in `out`."""
        opponents = self.anchor.copy()
        opponents[[code, *out]] = False
        first = (self.data.a == code) & opponents[self.data.b]
        rows = np.flatnonzero(first | ((self.data.b == code) & opponents[self.data.a]))
        side = first[rows]
        return Own(rows, np.where(side, self.data.b[rows], self.data.a[rows]), side)

    def place(
        self,
        own: Own,
        targets: NDArray[np.float64],
        anchors: NDArray[np.float64],
        unit: NDArray[np.intp],
        counts: NDArray[np.float64],
        start: float = 0.0,
    ) -> NDArray[np.float64]:
        """Ratings (columns,) in logits of one model against fixed `anchors` (n,), one for each column of `counts`.

        `unit` (own rows,) says what is drawn together, `counts` (units, columns) how often each was drawn.
        """
        told = clipped(targets[own.rows], self.parity)
        outcome = np.where(own.first, told, 1.0 - told)
        order = np.argsort(own.opponent, kind="stable")
        order = order[~np.isnan(outcome[order])]
        present, starts = np.unique(own.opponent[order], return_index=True)
        if not len(present):
            return np.full(counts.shape[1], np.nan)
        drawn, outcome = counts[unit[order]], outcome[order]
        if self.data.weight is not None:
            drawn *= self.data.weight[own.rows[order], None]
        won = np.add.reduceat(drawn * outcome[:, None], starts, axis=0)
        lost = np.add.reduceat(drawn * (1.0 - outcome)[:, None], starts, axis=0)
        return place(anchors[present], won, lost, self.ridge, start)


def field_of(
    data: Comparisons,
    score: ArrayLike,
    human: ArrayLike,
    others: Mapping[str, ArrayLike],
    *,
    ridge: float,
    ties: HumanTies,
    parity: bool,
) -> Field:
    """Check the columns, count the pairs, and find who can be an anchor: models with battles in every signal.

    Raises `InputError` where fewer than three models can.
    """
    scores, size = score_column(score, len(data)), len(data.models)
    targets = {"human": label_column(human, len(data)), "hard": data.y}
    for name, column in others.items():
        if name in ("human", "hard", "soft", "scaled-hard"):
            raise InputError(f"others: {name!r} is a signal already; choose another name")
        targets[name] = label_column(column, len(data))
    scored = ~np.isnan(scores)
    wins = {name: win_counts(with_targets(data, clipped(column, parity))) for name, column in targets.items()}
    seen = win_counts(with_targets(data, np.where(scored, 0.5, np.nan)))
    anchor = np.logical_and.reduce([table.played > 0.0 for table in (*wins.values(), seen)])
    if np.count_nonzero(anchor) < MINIMUM_ANCHORS:
        raise InputError(
            f"{np.count_nonzero(anchor)} models have battles with labels of people, verdicts and scores; "
            f"leaving one out needs at least {MINIMUM_ANCHORS}"
        )
    start = {name: climb(curve_of(table), np.zeros(size), ridge=ridge).logits for name, table in wins.items()}
    grid = score_grid(np.where(scored, scores, 0.0))
    return Field(data, targets, grid, scored, ridge, ties, parity, wins, start, anchor)


def islands(field: Field) -> tuple[str, ...]:
    """A sentence for each signal whose anchors were never all compared: the ridge alone places the parts."""
    parts = {name: weak_components(wins.only(field.anchor)) for name, wins in field.wins.items()}
    return tuple(
        f"{name}: the anchors fall into {count} parts that never met; only the ridge places these to one another"
        for name, count in parts.items()
        if count > 1
    )
