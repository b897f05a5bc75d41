"""am-ELO as its authors fit it: gradient ascent from random starts, with abilities normalised and without.

"am-ELO: A Stable Framework for Arena-based LLM Evaluation" (arXiv 2505.03475), algorithm 2 and figure 5: a fixed
learning rate and number of epochs. Without normalisation the likelihood does not tell an order from its reverse, so
that the start decides. The likelihood is that of `am_elo`, whose maximum each ascent is held against.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.am_elo.likelihood import Cells, Matrix, Point, Vector, cells_of, gradient_at, terms_at
from venire.ratings.am_elo.robustness import inconsistency
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.statistics import kendall
from venire.ratings.data.validation import check_seed

AscentRule = Literal["gradient", "adam"]

LEARNING_RATE = 0.1
"""The paper's (section 5.2)."""

EPOCHS = 2000
"""The paper's (section 5.2)."""

NEAR = 0.1
"""Nats below the maximum from which it counts as reached."""

_FAR = 1e9
"""Log odds from which an ascent counts as diverged."""

_MEAN_DECAY, _SQUARE_DECAY, _SMALL = 0.9, 0.999, 1e-8
"""Adam's constants (Kingma and Ba 2015)."""


@dataclass(frozen=True, slots=True)
class Ascent:
    """An ascent from one start: its last log-likelihood, and Kendall's tau-b of its order with that at the maximum.

    `epochs` are those until the maximum is reached; None where it is not. The others are None where it diverged.
    """

    log_likelihood: float | None
    epochs: int | None
    tau: float | None


@dataclass(frozen=True, slots=True)
class AscentsByRule:
    """Ascents by one rule, with abilities that sum to 1 (`normalised`) or free ones.

    `consistency` is the share of pairs of models that two starts order alike, the mean over pairs of starts; None where
    fewer than two did not diverge.
    """

    rule: AscentRule
    normalised: bool
    consistency: float | None
    starts: tuple[Ascent, ...]


@dataclass(frozen=True, slots=True)
class GradientAscents:
    """What `gradient_ascents` finds: by rule, beside the log-likelihood of `am_elo` and the steps that it took."""

    learning_rate: float
    epochs: int
    log_likelihood: float
    steps: int
    rules: tuple[AscentsByRule, ...]


def gradient_ascents(
    data: Comparisons,
    *,
    starts: int = 5,
    learning_rate: float = LEARNING_RATE,
    epochs: int = EPOCHS,
    seed: int = 0,
) -> GradientAscents:
    """Fit am-ELO by gradient ascent from random starts, as in the paper's figure 5; arXiv 2505.03475.

    By rule: "gradient" is algorithm 2 on the mean log-likelihood (on the sum a rate of 0.1 diverges), and "adam" what
    the paper's published code runs. Both from the same starts (Xavier's uniform, as that code), with abilities divided
    by their sum (equation 7) and without. Of models without a finite rating no verdict counts. Raises `InputError` for
    a number out of range, as `am_elo` does, and `NotConvergedError`.

    >>> from venire.ratings import comparisons, gradient_ascents
    >>> winners = [1, 1, 0, 0, 1, 1, 1, 0, 1, 1] * 6
    >>> data = comparisons(list("aba") * 20, list("bcc") * 20, winners, judge=list("xxxyyy") * 10)
    >>> found = gradient_ascents(data, learning_rate=1.0, epochs=50)
    >>> [(one.rule, one.normalised, len(one.starts)) for one in found.rules]
    [('gradient', False, 5), ('gradient', True, 5), ('adam', False, 5), ('adam', True, 5)]
    """
    check_seed(seed)
    if starts < 2:
        raise InputError(f"starts is {starts}; give 2 or more, such as 5")
    if not 0.0 < learning_rate < float("inf"):
        raise InputError(f"learning_rate is {learning_rate}; give a number above 0, such as {LEARNING_RATE}")
    if epochs < 1:
        raise InputError(f"epochs is {epochs}; give 1 or more, such as {EPOCHS}")
    best = am_elo(data, errors="none")
    rated = np.isfinite(best.ratings.logits)
    if not rated.any():
        raise InputError("no model has a finite rating, so that there is no maximum to hold ascents against")
    cells = cells_of(data)
    cells = cells.among(np.flatnonzero(rated), np.arange(cells.judges))
    rng = np.random.default_rng(seed)
    begun = _xavier(rng, (starts, cells.models)), _xavier(rng, (starts, cells.judges))
    order, found = best.ratings.logits[rated], []
    for rule in get_args(AscentRule):
        for normalised in (False, True):
            ascents = _Ascents(cells, *begun, normalised)
            ascents.climb(rule, learning_rate, epochs, best.loglik - NEAR)
            orders = ascents.ratings[~ascents.diverged]
            found.append(AscentsByRule(rule, normalised, _consistency(orders), ascents.results(order)))
    return GradientAscents(learning_rate, epochs, best.loglik, best.ratings.diagnostics["iterations"], tuple(found))


def _xavier(rng: np.random.Generator, shape: tuple[int, int]) -> Matrix:
    """Start values by row as the published code draws them: of an embedding of one dimension."""
    bound = float(np.sqrt(6.0 / (shape[1] + 1.0)))
    return rng.uniform(-bound, bound, shape)


class _Ascents:
    """Ascents from several starts, side by side: blocks of one table, without a cell in common.

    `ratings` (starts, models) and `theta` (starts, judges), the abilities before they are normalised, are where they
    are. `reached` (starts,) are the epochs from which on each is near the maximum, -1 where it is not.
    """

    def __init__(self, cells: Cells, ratings: Matrix, theta: Matrix, normalised: bool) -> None:
        starts = len(ratings)
        block = np.repeat(np.arange(starts), len(cells))
        self._cells = replace(
            cells,
            models=starts * cells.models,
            judges=starts * cells.judges,
            judge=np.tile(cells.judge, starts) + block * cells.judges,
            upper=np.tile(cells.upper, starts) + block * cells.models,
            lower=np.tile(cells.lower, starts) + block * cells.models,
            won=np.tile(cells.won, starts),
            lost=np.tile(cells.lost, starts),
        )
        self._total, self._normalised = float(cells.weight.sum()), normalised
        self.ratings, self.theta = ratings.copy(), theta.copy()
        self.reached = np.full(starts, -1)
        self.values, self.diverged = np.zeros(starts), np.zeros(starts, dtype=np.bool_)

    def climb(self, rule: AscentRule, rate: float, epochs: int, near: float) -> None:
        """So many epochs; a start whose log-likelihood is at least `near` has reached the maximum."""
        mean, square = np.zeros(1), np.zeros(1)
        for epoch in range(epochs + 1):
            ability, scale = self._abilities()
            point = Point(self.ratings.ravel(), ability.reshape(-1, 1))
            terms = terms_at(self._cells, point)
            self.values = terms.value.reshape(len(self.values), -1).sum(axis=1)
            kept = (self.values >= near) & ~self.diverged
            self.reached = np.where(kept, np.where(self.reached < 0, epoch, self.reached), -1)
            if epoch == epochs:
                return
            slopes = (
                slope.reshape(len(self.values), -1) / self._total for slope in gradient_at(self._cells, point, terms)
            )
            pull, turn = slopes
            if rule == "gradient":  # algorithm 2: a step from normalised abilities, which are normalised after it
                self.ratings, self.theta = self.ratings + rate * pull, ability + rate * turn
                continue
            if self._normalised:  # the published code divides within the likelihood: the slope is that of the quotient
                turn = (turn - (turn * ability).sum(axis=1, keepdims=True)) / scale
            slope = np.concatenate([pull, turn], axis=1)
            mean = _MEAN_DECAY * mean + (1.0 - _MEAN_DECAY) * slope
            square = _SQUARE_DECAY * square + (1.0 - _SQUARE_DECAY) * slope * slope
            size = np.sqrt(square / (1.0 - _SQUARE_DECAY ** (epoch + 1))) + _SMALL
            step = rate * mean / (1.0 - _MEAN_DECAY ** (epoch + 1)) / size
            self.ratings = self.ratings + step[:, : self.ratings.shape[1]]
            self.theta = self.theta + step[:, self.ratings.shape[1] :]

    def _abilities(self) -> tuple[Matrix, Matrix]:
        """Abilities (starts, judges) and what they were divided by (starts, 1); what diverged stays at 0 from then."""
        scale = self.theta.sum(axis=1, keepdims=True) if self._normalised else np.ones((len(self.theta), 1))
        self.diverged |= scale[:, 0] == 0.0
        ability = self.theta / np.where(scale == 0.0, 1.0, scale)
        self.diverged |= ~(np.abs(self.ratings).max(axis=1) * np.abs(ability).max(axis=1) < _FAR)
        self.ratings[self.diverged], ability[self.diverged], scale[self.diverged] = 0.0, 0.0, 1.0
        return ability, scale

    def results(self, order: Vector) -> tuple[Ascent, ...]:
        """What became of each start; `order` (models,) are the ratings at the maximum."""
        made = []
        for start, tau in enumerate(kendall(self.ratings, order).tolist()):
            if self.diverged[start]:
                made.append(Ascent(None, None, None))
                continue
            epochs = int(self.reached[start])
            known = float(tau) if np.isfinite(tau) else None
            made.append(Ascent(float(self.values[start]), epochs if epochs >= 0 else None, known))
        return tuple(made)


def _consistency(orders: Matrix) -> float | None:
    alike = [1.0 - inconsistency(one, other) for one, other in combinations(orders, 2)]
    return float(np.mean(alike)) if alike else None
