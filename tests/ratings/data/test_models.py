"""Which models are ranked against accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.ratings.data.models import filter_models, model_of_judge, own_models


def test_rules_in_their_order() -> None:
    rows = {
        "garbled": (0.80, 0.90),  # not above 90 %, however accurate
        "best": (0.70, 0.99),
        "near": (0.695, 0.97),  # within a point of best, parses worse
        "tidy": (0.505, 0.99),
        "loose": (0.51, 0.95),  # more accurate than tidy, but parses worse
        "twin": (0.40, 0.98),
        "lesser": (0.395, 0.98),  # parses as well as twin, less accurate
        "apart": (0.35, 0.98),
        "edge": (0.34, 0.98),  # exactly one point: far enough, in decimals too
        "chance": (0.25, 0.98),  # not above the baseline
    }
    accuracy, parsed = zip(*rows.values(), strict=True)
    found = filter_models(list(rows), accuracy, parsed, baseline=0.25)
    assert found.kept == ("best", "tidy", "twin", "apart", "edge")
    assert list(found.dropped) == ["garbled", "chance", "near", "loose", "lesser"]
    assert found.dropped["garbled"] == "parse rate 0.900 is not above 0.9"
    assert found.dropped["chance"] == "accuracy 0.250 is not above the baseline 0.25"
    assert found.dropped["near"] == "within 0.01 of best in accuracy: its parse rate is lower"
    assert found.dropped["loose"] == "within 0.01 of tidy in accuracy: its parse rate is lower"
    assert found.dropped["lesser"] == "within 0.01 of twin in accuracy: it is less accurate"


def test_equals_fall_at_random_by_the_seed() -> None:
    kept = {filter_models(["a", "b"], [0.5, 0.5], [0.95, 0.95], baseline=0.1, seed=seed).kept[0] for seed in range(20)}
    assert kept == {"a", "b"}
    once = [filter_models(["a", "b"], [0.5, 0.5], [0.95, 0.95], baseline=0.1, seed=3) for _ in range(2)]
    assert once[0] == once[1]
    assert next(iter(once[0].dropped.values())).endswith("at random")


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(85, 100)), max_size=12), st.randoms())
def test_what_is_kept_is_apart_and_nothing_is_lost(rows: list[tuple[int, int]], random: Any) -> None:
    named = [(f"m{place}", right / 200, parsed / 100) for place, (right, parsed) in enumerate(rows)]
    first = filter_models(*_columns(named), baseline=0.05)
    random.shuffle(named)
    assert filter_models(*_columns(named), baseline=0.05) == first
    accuracy = {name: right for name, right, _ in named}
    kept = [accuracy[name] for name in first.kept]
    assert all(gap >= 0.01 - 1e-9 for gap in -np.diff(kept))
    assert {*first.kept} | first.dropped.keys() == accuracy.keys()
    assert not {*first.kept} & first.dropped.keys()


def _columns(rows: list[tuple[str, float, float]]) -> tuple[list[str], list[float], list[float]]:
    return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((["a"], [0.5, 0.6], [1.0]), r"accuracy has shape \(2,\); give one share for each of 1 models"),
        ((["a", "b"], [0.5, 50.0], [1.0, 1.0]), r"accuracy, row 1: 50\.0 is not possible"),
        ((["a", "b"], [0.5, 0.4], [1.0, np.nan]), "parse_rate, row 1: nan"),
        ((["a", "a"], [0.5, 0.4], [1.0, 1.0]), "a name is listed twice"),
    ],
)
def test_bad_shares_are_named(columns: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        filter_models(*columns, baseline=0.1)


FAMILIES = {"a": "x", "b": "x", "c": "y"}
MODELS = ("a", "b", "c", "d")


def test_a_judge_is_the_model_of_its_name_or_the_one_that_peers_tell() -> None:
    assert model_of_judge(("d", "other", "eve"), MODELS, {"other": "b", "eve": "nobody"}).tolist() == [3, 1, -1]


def test_its_own_are_itself_and_its_family() -> None:
    judges = ("c", "told", "other", "a", "eve")
    table = own_models(judges, MODELS, {"other": "d"}, FAMILIES, {"told": "x"})
    own = {
        name: [model for model, mine in zip(MODELS, row, strict=True) if mine]
        for name, row in zip(judges, table.tolist(), strict=True)
    }
    assert own == {"c": ["c"], "told": ["a", "b"], "other": ["d"], "a": ["a", "b"], "eve": []}


def test_a_judge_may_be_of_another_family_than_its_model() -> None:
    assert own_models(("a",), MODELS, None, FAMILIES, {"a": "y"}).tolist() == [[True, False, True, False]]


def test_without_families_a_judge_has_itself_alone() -> None:
    assert own_models(("a", "eve"), MODELS).tolist() == [[True, False, False, False], [False] * 4]
