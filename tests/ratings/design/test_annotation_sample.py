"""Samples of battles for people: even over models, what a priority asks for, and shared as the pages are to share."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings import battles, merge_orders
from venire.ratings.data.clustered import score_interval
from venire.ratings.design.annotation_sample import (
    balanced_sample,
    dispute,
    doubt_of_order,
    shared_places,
    votes_for_agreement,
)

PAIRS = np.array([pair for pair in combinations(range(6), 2) for _ in range(16)])
A, B = PAIRS[:, 0], PAIRS[:, 1]


@pytest.mark.parametrize("count", [6, 40, 239, 240])
@pytest.mark.parametrize("with_priority", [False, True])
def test_a_sample_is_even_over_models_seeded_and_without_repeats(count: int, with_priority: bool) -> None:
    priority = np.random.default_rng(0).random(len(A)) if with_priority else None
    drawn = balanced_sample(A, B, count, np.random.default_rng(4), priority)
    assert len(set(drawn.tolist())) == count
    seen = np.bincount(np.concatenate([A[drawn], B[drawn]]), minlength=6)
    assert seen.max() - seen.min() <= (2 if count < 239 else 1)
    again = balanced_sample(A, B, count, np.random.default_rng(4), priority)
    assert drawn.tolist() == again.tolist()
    if priority is None and count < 239:
        assert drawn.tolist() != balanced_sample(A, B, count, np.random.default_rng(5), priority).tolist()


def test_a_priority_is_kept_to_before_models_are_even() -> None:
    priority = np.where(A == 0, 1.0, 0.0)  # 80 battles, all of the first model
    drawn = balanced_sample(A, B, 40, np.random.default_rng(1), priority)
    assert (A[drawn] == 0).all()
    assert np.bincount(B[drawn], minlength=6)[1:].tolist() == [8] * 5


def test_more_battles_than_there_are_is_refused() -> None:
    with pytest.raises(InputError, match="241 battles was asked for, and there are 240"):
        balanced_sample(A, B, 241, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("count", "pages", "overlap"), [(30, 3, 0.2), (7, 2, 0.0), (7, 4, 1.0), (10, 1, 0.2), (5, 3, 0.5)]
)
def test_pages_share_what_they_are_to_share_and_nothing_else(count: int, pages: int, overlap: float) -> None:
    places = [set(one.tolist()) for one in shared_places(count, pages, overlap)]
    together = count if pages == 1 else round(count * overlap)
    assert [len(one) for one in places] == [count] * pages
    assert len(set.intersection(*places)) == together
    for one, other in combinations(places, 2):
        assert len(one & other) == together
    assert set.union(*places) == set(range(together + pages * (count - together)))


def test_disputes_between_judges_come_before_flips() -> None:
    rows = [  # instruction, judge, order, label
        ("both", "j", 0, 1), ("both", "j", 1, 1), ("both", "k", 0, -1), ("both", "k", 1, -1),
        ("flip", "j", 0, 1), ("flip", "j", 1, -1), ("flip", "k", 0, 1), ("flip", "k", 1, -1),
        ("none", "j", 0, 1), ("none", "j", 1, 1), ("none", "k", 0, 1), ("none", "k", 1, 1),
        ("some", "j", 0, 1), ("some", "j", 1, 0), ("some", "k", 0, 1), ("some", "k", 1, 1),
    ]  # fmt: skip
    said = battles(
        ["a"] * 16, ["b"] * 16, [(one[3] + 1) / 2 for one in rows], judge=[one[1] for one in rows],
        instruction=[one[0] for one in rows], swapped=[bool(one[2]) for one in rows],
    )  # fmt: skip
    judgments = merge_orders(said)
    row, priority = dispute(judgments)
    found = dict(zip([judgments.instructions[code] for code in judgments.instruction[row]], priority, strict=True))
    assert found["both"] > found["some"] > found["flip"] > found["none"] == 0.0


def test_the_order_of_equals_is_most_in_doubt() -> None:
    rng = np.random.default_rng(2)
    logits = np.array([0.0, 0.1, 3.0])
    a, b = np.repeat([0, 0, 1], 60), np.repeat([1, 2, 2], 60)
    y = (rng.random(180) < 1 / (1 + np.exp(logits[b] - logits[a]))).astype(float)
    judgments = merge_orders(
        battles([str(one) for one in a], [str(one) for one in b], y, instruction=[f"q{n % 20}" for n in range(180)])
    )
    row, doubt = doubt_of_order(judgments)
    near = (judgments.model_a[row] == 0) & (judgments.model_b[row] == 1)
    assert doubt[near].min() > 0.05 > 0.001 > doubt[~near].max()
    assert doubt.max() <= 0.5


@pytest.mark.parametrize("width", [0.3, 0.1, 0.05])
@pytest.mark.parametrize("share", [0.5, 0.8, 1.0])
@pytest.mark.parametrize("effect", [1.0, 2.5])
def test_votes_for_a_width_are_the_fewest_that_have_it(width: float, share: float, effect: float) -> None:
    votes = votes_for_agreement(width, share, effect)
    spans = [np.diff(score_interval(share, number / effect, 1.959964))[0] for number in (votes, votes - 1)]
    assert spans[0] <= width + 1e-6
    assert spans[1] > width


def test_a_width_that_no_share_has_is_refused() -> None:
    with pytest.raises(InputError, match="width is 1"):
        votes_for_agreement(1.0)
