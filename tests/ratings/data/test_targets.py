"""Targets: what each label and score stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import comparisons, hard_targets, soft_targets
from venire.ratings.pairwise.bradley_terry import SeparatedError, bradley_terry
from venire.ratings.soft_elo.cross_validation import smooth_labels


def test_labels_and_scores_become_outcomes() -> None:
    assert hard_targets([1, 0, -1]).tolist() == [1.0, 0.5, 0.0]
    assert hard_targets(np.array([1, 0, -1], dtype=np.int8)).tolist() == [1.0, 0.5, 0.0]
    assert soft_targets([0.0, math.log(3), -math.log(3)], 1.0) == pytest.approx([0.5, 0.75, 0.25])
    assert soft_targets([2.0, -1e6], 0.0).tolist() == [0.5, 0.5]
    assert soft_targets([1e9, -1e9], 2.0).tolist() == [1.0, 0.0]


def test_both_sides_of_a_target_add_up_to_one() -> None:
    score = np.linspace(-30, 30, 61)
    assert soft_targets(score, 0.7) + soft_targets(-score, 0.7) == pytest.approx(np.ones(61))


def test_smoothing_gives_an_estimate_where_one_side_won_all() -> None:
    with pytest.raises(SeparatedError):
        bradley_terry(comparisons(["a"], ["b"], hard_targets([1])))
    found = bradley_terry(comparisons(["a"], ["b"], smooth_labels(hard_targets([1]), 0.9)))
    assert found.logits[0] - found.logits[1] == pytest.approx(math.log(9))


def test_what_cannot_be_a_target_is_refused() -> None:
    with pytest.raises(InputError, match="labels, row 1: 2 is not possible"):
        hard_targets([1, 2])
    with pytest.raises(InputError, match="labels, row 0: nan"):
        hard_targets([math.nan])
    with pytest.raises(InputError, match="beta is -1"):
        soft_targets([1.0], -1.0)
    with pytest.raises(InputError, match="score, row 1: inf"):
        soft_targets([1.0, math.inf], 1.0)
