"""am-ELO as its authors fit it: gradient ascent from random starts, with abilities normalised and without.

"am-ELO: A Stable Framework for Arena-based LLM Evaluation" (arXiv 2505.03475), algorithm 2 and figure 5: a fixed
learning rate and number of epochs. Without normalisation the likelihood does not tell an order from its reverse, so
that the start decides. The likelihood is that of `am_elo`, whose maximum each ascent is held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.am_elo.likelihood import Cells, Point, Vector, cells_of, gradient_at, terms_at
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
    >>> data = comparisons(list("aba") * 20, list("bcc") * 20, [1, 1, 0, 0, 1, 1] * 10, judge=list("xy") * 30)
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
    begun = [Point(_xavier(rng, cells.models), _xavier(rng, cells.judges)[:, None]) for _ in range(starts)]
    found = []
    for rule in get_args(AscentRule):
        for normalised in (False, True):
            ends = [_ascend(cells, point, rule, normalised, learning_rate, epochs, best.loglik) for point in begun]
            orders = [ratings for _, ratings in ends if ratings is not None]
            made = tuple(_with_order(ascent, ratings, best.ratings.logits[rated]) for ascent, ratings in ends)
            found.append(AscentsByRule(rule, normalised, _consistency(orders), made))
    return GradientAscents(learning_rate, epochs, best.loglik, best.ratings.diagnostics["iterations"], tuple(found))


def _xavier(rng: np.random.Generator, size: int) -> Vector:
    """Start values as the published code draws them: an embedding of one dimension."""
    bound = float(np.sqrt(6.0 / (size + 1.0)))
    return rng.uniform(-bound, bound, size)


def _ascend(
    cells: Cells, start: Point, rule: AscentRule, normalised: bool, rate: float, epochs: int, maximum: float
) -> tuple[Ascent, Vector | None]:
    """One ascent, still without the order, and its ratings (models,); None where it diverged."""
    ratings, theta, total = start.ratings, start.ability, float(cells.weight.sum())
    mean, square = np.zeros(cells.models + cells.judges), np.zeros(cells.models + cells.judges)
    reached: int | None = None
    for epoch in range(epochs + 1):
        scale = float(theta.sum()) if normalised else 1.0
        point = Point(ratings, (theta / scale if scale else theta)[:, None])
        if not scale or not float(np.abs(ratings).max()) * float(np.abs(point.ability).max()) < _FAR:
            return Ascent(None, None, None), None
        terms = terms_at(cells, point)
        value = float(terms.value.sum())
        reached = None if value < maximum - NEAR else epoch if reached is None else reached
        if epoch == epochs:
            break
        pull, local = gradient_at(cells, point, terms)
        pull, turn = pull / total, local[:, 0] / total
        if rule == "gradient":  # algorithm 2: the step is from normalised abilities, and they are normalised after it
            ratings, theta = ratings + rate * pull, point.ability + rate * turn
            continue
        # The published code divides by the sum within the likelihood, so that the slope is that of the quotient.
        slope = np.concatenate([pull, (turn - turn @ point.ability) / scale if normalised else turn])
        mean = _MEAN_DECAY * mean + (1.0 - _MEAN_DECAY) * slope
        square = _SQUARE_DECAY * square + (1.0 - _SQUARE_DECAY) * slope * slope
        early = np.sqrt(square / (1.0 - _SQUARE_DECAY ** (epoch + 1))) + _SMALL
        step = rate * mean / (1.0 - _MEAN_DECAY ** (epoch + 1)) / early
        ratings, theta = ratings + step[: cells.models], theta + step[cells.models :]
    return Ascent(value, reached, None), ratings


def _with_order(ascent: Ascent, ratings: Vector | None, best: Vector) -> Ascent:
    """The ascent with Kendall's tau-b of its ratings with those at the maximum."""
    if ratings is None:
        return ascent
    tau = float(kendall(ratings[None], best)[0])
    return Ascent(ascent.log_likelihood, ascent.epochs, tau if np.isfinite(tau) else None)


def _consistency(orders: Sequence[Vector]) -> float | None:
    alike = [1.0 - inconsistency(one, other) for one, other in combinations(orders, 2)]
    return float(np.mean(alike)) if alike else None
