"""Leaving out a judge or a model gives what a fit on the rows that remain gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.wins import win_counts
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.leave_out import without_each_judge, without_each_model, without_judge, without_model


def table(seed: int = 4, rows: int = 800, weighted: bool = True) -> Comparisons:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 6, rows)
    b = (a + rng.integers(1, 6, rows)) % 6
    return comparisons(
        np.array(list("abcdef"))[a],
        np.array(list("abcdef"))[b],
        rng.random(rows),
        judge=np.array(["x", "y", "z"])[rng.integers(0, 3, rows)],
        weight=rng.choice([0.0, 0.1, 1.0, 3.0], rows) if weighted else None,
    )


def filtered(data: Comparisons, rows: Any) -> Comparisons:
    weight = None if data.weight is None else data.weight[rows]
    return comparisons(data.a[rows], data.b[rows], data.y[rows], models=data.models, weight=weight)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("options", [{}, {"ridge": 0.5}, {"anchors": {"a": 1100.0, "f": 950.0}}])
def test_without_a_judge_it_is_the_fit_on_the_other_rows(weighted: bool, options: dict[str, Any]) -> None:
    data = table(weighted=weighted)
    found = without_each_judge(data, **options)
    assert data.judge is not None
    assert found.everything.logits == pytest.approx(bradley_terry(data, **options).logits, abs=1e-12)
    assert not found.separated
    for code, judge in enumerate("xyz"):
        wanted = bradley_terry(filtered(data, data.judge != code), **options)
        assert found.without[judge].logits == pytest.approx(wanted.logits, abs=1e-10)
        assert without_judge(data, judge).total == pytest.approx(filtered(data, data.judge != code).total)


@pytest.mark.parametrize("options", [{}, {"ridge": 0.5}, {"anchors": {"a": 1100.0, "f": 950.0}}])
def test_without_a_model_it_is_the_fit_on_the_other_rows(options: dict[str, Any]) -> None:
    data = table()
    found = without_each_model(win_counts(data), **options)
    for code, model in enumerate("abcdef"):
        rest = filtered(data, (data.a != code) & (data.b != code))
        anchors = {name: points for name, points in options.get("anchors", {}).items() if name != model}
        kept = np.arange(6) != code
        if anchors:
            wanted = bradley_terry(rest, anchors=anchors).logits[kept]
        else:
            wanted = bradley_terry(rest, ridge=options.get("ridge", 0.0)).logits[kept]
        assert found.without[model].models == tuple(name for name in "abcdef" if name != model)
        assert found.without[model].logits == pytest.approx(wanted, abs=1e-10)


def test_a_judge_whom_the_estimate_hangs_on_is_named_with_the_groups() -> None:
    """Weights of 0.1 do not add up to what they are taken from: a trace of a win would join what is apart."""
    data = comparisons(["a"] * 12 + ["b"], ["b"] * 12 + ["a"], [1.0] * 13, weight=[0.1] * 13, judge=["x"] * 12 + ["y"])
    found = without_each_judge(data)
    assert dict(found.separated) == {"x": (("b",), ("a",)), "y": (("a",), ("b",))}
    assert not found.without


def test_a_model_that_one_judge_alone_compared_has_no_rating_without_it() -> None:
    data = comparisons(list("abac"), list("baca"), [1.0, 1.0, 1.0, 1.0], judge=["x", "x", "y", "y"])
    rest = without_each_judge(data).without["y"]
    assert rest.diagnostics["no_estimate"] == {"c": "no comparison"}
    assert rest.logits[:2] == pytest.approx([0.0, 0.0])


def test_names_that_are_not_there_are_refused() -> None:
    data = table()
    with pytest.raises(InputError, match="no model is called 'q'; the models are a, b"):
        without_model(win_counts(data), "q")
    with pytest.raises(InputError, match="no judge is called 'q'; the judges are x, y, z"):
        without_judge(data, "q")
    with pytest.raises(InputError, match="name no judge"):
        without_each_judge(comparisons(["a"], ["b"], [0.5]))


def test_without_the_only_judge_of_the_anchor_the_mean_is_the_gauge() -> None:
    a, b, y = list("abaabca"), list("babbaac"), [1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    found = without_each_judge(comparisons(a, b, y, judge=list("jjjkkkk")), anchors={"c": 1000.0}).without
    assert (found["k"].gauge, found["j"].gauge) == ("mean 1000", "anchored: c = 1000")
    assert np.isnan(found["k"].logits[2])
    assert found["k"].logits[:2].sum() == pytest.approx(0.0)
