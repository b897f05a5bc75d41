"""Whose models are whose."""

from __future__ import annotations

from venire.ratings.data.models import model_of_judge, own_models

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
