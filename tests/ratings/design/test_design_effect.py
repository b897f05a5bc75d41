"""The moments by which judgments scatter are found again where they are known."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit

from venire.arena.errors import InputError
from venire.ratings.data.judgments import Judgments
from venire.ratings.design.interval_forecast import DEFAULT_EFFECT, design_effect

NAMES = ("ash", "birch", "cedar", "dogwood")
LOGITS = np.array([0.5, -0.2, 0.1, -0.4])


def made(judges: int, repeats: int, instructions: int, *, merit: float, seed: int = 1) -> Judgments:
    """Every pair on every instruction; a residual is made of merits of completions, a battle's, a judge's, its own."""
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(4), 2)))
    i, m, j, r = (
        grid.ravel()
        for grid in np.meshgrid(range(instructions), range(6), range(judges), range(repeats), indexing="ij")
    )
    a, b = pairs[m].T
    p = expit(LOGITS[a] - LOGITS[b])
    merits = rng.normal(size=(instructions, 4))
    shared = np.sqrt(merit) * (merits[i, a] - merits[i, b])
    battle = rng.normal(size=(instructions, 6))[i, m] * np.sqrt(0.1)
    own = rng.normal(size=(instructions, 6, judges))[i, m, j] * np.sqrt(0.2)
    rest = rng.normal(size=len(i)) * np.sqrt(0.7 - 2 * merit)
    y = p + np.sqrt(0.6 * p * (1 - p)) * (shared + battle + own + rest)
    return Judgments(
        NAMES,
        tuple(f"j{n}" for n in range(judges)),
        tuple(f"q{n:04}" for n in range(instructions)),
        a.astype(np.int32),
        b.astype(np.int32),
        j.astype(np.int32),
        i.astype(np.int32),
        (r + 1).astype(np.int32),
        y,
        np.arange(len(i)) % 4 == 0,
        np.full(len(i), 2, dtype=np.int8),
        "mean",
        True,
        0,
    )


def test_moments_are_found_again() -> None:
    found = design_effect(made(2, 2, 800, merit=0.15), LOGITS)
    assert found.scatter == pytest.approx(0.6, rel=0.05)
    assert found.completions == pytest.approx(0.15, abs=0.02)
    assert found.judges == pytest.approx(2 * 0.15 + 0.1, abs=0.03)
    assert found.repeats == pytest.approx(2 * 0.15 + 0.1 + 0.2, abs=0.03)
    assert found.judgments == 800 * 6 * 4
    assert found.flips == 0.25
    assert found.ties == 0.0


def test_completions_without_a_merit_share_nothing() -> None:
    assert design_effect(made(1, 1, 800, merit=0.0), LOGITS).completions < 0.02


def test_what_was_not_measured_is_the_default() -> None:
    nothing = made(1, 1, 1, merit=0.0).select(np.zeros(6, dtype=np.bool_))
    assert design_effect(nothing, LOGITS) == DEFAULT_EFFECT
    one_judge = design_effect(made(1, 1, 200, merit=0.1), LOGITS)
    assert (one_judge.judges, one_judge.repeats) == (DEFAULT_EFFECT.judges, DEFAULT_EFFECT.repeats)


def test_few_judgments_move_the_default_little() -> None:
    data = made(1, 1, 800, merit=0.15)
    few = design_effect(data.select(np.arange(6)), LOGITS)
    assert abs(few.scatter - DEFAULT_EFFECT.scatter) < 0.1
    assert few.judgments == 6


def test_rows_in_another_order_change_nothing_and_unrated_models_are_left_out() -> None:
    data = made(2, 1, 100, merit=0.1)
    before = design_effect(data, LOGITS)
    after = design_effect(data.select(np.random.default_rng(1).permutation(len(data))), LOGITS)
    for name in ("scatter", "judges", "completions", "repeats"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), rel=1e-9)
    unrated = np.where(np.arange(4) == 3, np.nan, LOGITS)
    among = data.select((data.model_a != 3) & (data.model_b != 3))
    assert design_effect(data, unrated) == design_effect(among, LOGITS)
    with pytest.raises(InputError, match="shape"):
        design_effect(data, LOGITS[:2])


def test_all_of_one_outcome_is_no_error() -> None:
    data = made(1, 1, 5, merit=0.0)
    same = replace(data, y=np.ones(len(data)))
    assert np.isfinite(design_effect(same, np.zeros(4)).scatter)
