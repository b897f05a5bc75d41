"""The one door for plain arrays: what is right comes through unchanged, what is wrong is named by argument and row."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import comparisons, hard_targets, soft_targets
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import SeparatedError
from venire.ratings.soft_elo.cross_validation import smooth_labels


def test_names_of_both_sides_share_one_sorted_table() -> None:
    data = comparisons(["b", "c"], np.array(["a", "b"]), [1, 0.25], judge=["y", "x"], cluster=[7, 3])
    assert (data.models, data.a.tolist(), data.b.tolist()) == (("a", "b", "c"), [1, 2], [0, 1])
    assert data.judge is not None
    assert data.cluster is not None
    assert (data.judges, data.judge.tolist()) == (("x", "y"), [1, 0])
    assert (data.clusters, data.cluster.tolist()) == (("3", "7"), [1, 0])
    assert (data.y.tolist(), len(data), data.total) == ([1.0, 0.25], 2, 2.0)


def test_names_are_placed_among_the_models_listed() -> None:
    data = comparisons(["b", "a"], ["a", "b"], [1, 0], models=["z", "b", "a"], weight=[2, 0.5])
    assert (data.models, data.a.tolist(), data.b.tolist()) == (("z", "b", "a"), [1, 2], [2, 1])
    assert data.total == 2.5


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint16])
def test_integers_count_into_the_models(kind: Any) -> None:
    a, b = np.array([0, 2], dtype=kind), np.array([1, 0], dtype=kind)
    assert comparisons(a, b, [1, 0], models=["x", "y", "z"]).models == ("x", "y", "z")
    assert comparisons(a, b, [1, 0]).models == ("0", "1", "2")


def test_dense_integer_codes_are_not_copied() -> None:
    codes = np.array([0, 1], dtype=np.int32)
    data = comparisons(codes, codes[::-1], [1, 0], cluster=codes)
    assert data.a is codes
    assert data.cluster is codes


def test_no_rows_are_no_error() -> None:
    data = comparisons([], [], [], models=["a"], cluster=[], judge=[])
    assert (len(data), data.total, data.models) == (0, 0.0, ("a",))


GOOD: dict[str, Any] = {"model_a": ["a", "b", "c"], "model_b": ["b", "c", "a"], "y": [1.0, 0.5, 0.0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [1.0, 1.5, 0.0]}, "y, row 1: 1.5 is not possible"),
        ({"y": [1.0, 0.5, math.nan]}, "y, row 2: nan is not possible"),
        ({"y": [-0.1, 0.5, 0.0]}, "y, row 0: -0.1"),
        ({"y": [1.0, 0.5]}, r"y has shape \(2,\), model_a has 3 rows"),
        ({"y": ["win", "tie", "loss"]}, "y is not numbers"),
        ({"model_b": ["b", "b", "a"]}, "model_b, row 1: .* a model meets itself"),
        ({"model_b": ["b", "c"]}, "model_a has 3 rows, model_b 2"),
        ({"model_a": ["a", None, "c"]}, "model_a, row 1: None is not possible"),
        ({"models": ["a", "b"]}, "model_a, row 2: 'c' is not possible: models does not list it"),
        ({"models": ["a", "b", "c", "a"]}, "models: a name is listed twice"),
        ({"model_a": [0, 1, 3], "model_b": [1, 2, 0], "models": list("abc")}, "model_a, row 2: 3 .* from 0 to 2"),
        ({"model_a": [0, 1, -1], "model_b": [1, 2, 0]}, "model_a, row 2: -1"),
        ({"model_a": [0, 1, 2**40], "model_b": [1, 2, 0]}, "has the number 1099511627776; models count from 0"),
        ({"weight": [1.0, -1.0, 1.0]}, "weight, row 1: -1.0"),
        ({"weight": [1.0, math.inf, 1.0]}, "weight, row 1: inf"),
        ({"cluster": ["i", "j"]}, "cluster has 2 rows, model_a has 3"),
        ({"judge": [0.5, 1.0, 1.5]}, "judge holds float64"),
    ],
)
def test_what_is_wrong_is_named_by_argument_and_row(
    change: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["venire.ratings.data.comparisons"], "_PART", 2)
    with pytest.raises(InputError, match=message):
        comparisons(**GOOD | change)


def test_each_row_counts_for_both_of_its_models_by_its_weight() -> None:
    plain = comparisons(list("aab"), list("bcc"), [1.0, 0.0, 0.5], models=list("abcd"))
    assert plain.played.tolist() == [2.0, 2.0, 2.0, 0.0]
    weighted = comparisons(list("aab"), list("bcc"), [1.0, 0.0, 0.5], weight=[0.5, 2.0, 0.0])
    assert weighted.played.tolist() == [2.5, 0.5, 2.0]
    assert weighted.select(weighted.y == 1.0).played.tolist() == [0.5, 0.5, 0.0]


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
