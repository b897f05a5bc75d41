"""Judges of few verdicts: abilities that are large and finite, and limits that are the highest there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from tests.parameters import slow_after
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.data.comparisons import Comparisons, comparisons


def crowd(models: int, judges: int, rows: int, seed: int) -> Comparisons:
    """A crowd of judges with few verdicts each, a seventh of them ties."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, models, rows)
    b = (a + rng.integers(1, models, rows)) % models
    judge = rng.integers(0, judges, rows)
    truth, theta = rng.normal(size=models), rng.normal(1, 0.5, judges)
    y = (rng.random(rows) < expit(theta[judge] * (truth[a] - truth[b]))).astype(float)
    y[rng.random(rows) < 0.15] = 0.5
    return comparisons(a, b, y, models=[f"m{code:02d}" for code in range(models)], judge=judge)


def highest(data: Comparisons, starts: int) -> float:
    """The highest log-likelihood that a general optimiser comes to."""
    assert data.judge is not None
    judge, size, judges = data.judge, len(data.models), len(data.judges)

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        gap = point[data.a] - point[data.b]
        odds = point[size:][judge] * gap
        pull = expit(odds) - data.y
        slope = np.bincount(data.a, pull * point[size:][judge], size)
        slope -= np.bincount(data.b, pull * point[size:][judge], size)
        local = np.bincount(judge, pull * gap, judges)
        return float((np.logaddexp(0.0, odds) - data.y * odds).sum()), np.concatenate([slope, local])

    rng = np.random.default_rng(0)
    how: dict[str, Any] = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-10}
    tries = [rng.normal(size=size + judges) for _ in range(starts)]
    return -min(float(minimize(loss, one, jac=True, method="L-BFGS-B", options=how).fun) for one in tries)


# Each of these once ended short: an ability over 100 taken as infinite, a limit not gone far enough into, and judges
# held at the edge that would rather have come back.
KNOWN = -50.370618
"""What `highest` comes to in twelve seconds for the first case."""


@pytest.mark.parametrize(
    ("models", "judges", "rows", "seed", "known"),
    slow_after(
        1,
        (6, 12, 90, 1, KNOWN),
        (6, 12, 90, 1, None),
        (10, 20, 300, 10, None),
        (10, 20, 300, 9, None),
        (6, 12, 90, 3, None),
    ),
)
def test_a_crowd_reaches_the_highest_likelihood_known(
    models: int, judges: int, rows: int, seed: int, known: float | None
) -> None:
    data = crowd(models, judges, rows, seed)
    assert am_elo(data, restarts=2).loglik >= (highest(data, 4) if known is None else known) - 1e-5


def test_a_judge_of_one_pair_that_says_both_has_the_ability_its_share_asks_for() -> None:
    rows = [
        ("y", "d", "a", 0.75, 0.5),
        ("y", "b", "d", 0.75, 0.5),
        ("y", "d", "b", 0.25, 0.5),
        ("z", "a", "c", 0.5, 0.5),
        ("x", "b", "d", 0.75, 1.0),
        ("y", "a", "d", 0.25, 2.0),
        ("z", "c", "b", 0.25, 0.0),
        ("z", "a", "c", 0.25, 0.0),
        ("z", "a", "d", 0.0, 0.5),
        ("z", "d", "a", 0.75, 0.5),
    ]
    judge, one, other, y, weight = zip(*rows, strict=True)
    data = comparisons(list(one), list(other), list(y), weight=list(weight), judge=list(judge))
    found = am_elo(data, restarts=8)
    elo = dict(zip(found.ratings.models, found.ratings.logits.tolist(), strict=True))
    assert found.ability[0] == pytest.approx(logit(0.75) / (elo["b"] - elo["d"]))
    assert found.ability.mean() == pytest.approx(1.0)
    assert data.judge is not None
    odds = found.ability[data.judge] * (found.ratings.logits[data.a] - found.ratings.logits[data.b])
    assert data.weight is not None
    assert found.loglik == pytest.approx(float(data.weight @ (data.y * odds - np.logaddexp(0.0, odds))))
