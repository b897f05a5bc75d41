"""A judge that decides like a coin, however it leans, is told from one that reads."""

from __future__ import annotations

import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.ratings import battles
from venire.ratings.judges.order_agreement import FEWEST_BATTLES, order_agreement


def asked(number: int, *, first: float = 0.5, follows: float = 0.0, ties: float = 0.0, seed: int = 0) -> Battles:
    """A battle on each of `number` instructions in both orders.

    The judge takes the first place with chance `first`, names the better model with chance `follows` whatever the
    order, and ties with chance `ties`.
    """
    rng = np.random.default_rng(seed)
    swapped = np.tile([False, True], number)
    took_first = rng.random(2 * number) < first
    y = np.where(rng.random(2 * number) < follows, 1.0, took_first != swapped)
    y = np.where(rng.random(2 * number) < ties, 0.5, y)
    names = ["a"] * (2 * number), ["b"] * (2 * number)
    return battles(*names, y, instruction=np.arange(2 * number) // 2, swapped=swapped)


@pytest.mark.parametrize(("first", "ties"), [(0.5, 0.0), (0.66, 0.0), (0.9, 0.2), (0.1, 0.0)])
def test_a_coin_is_a_coin_however_it_leans(first: float, ties: float) -> None:
    (found,) = order_agreement(asked(400, first=first, ties=ties, seed=1))
    assert found.value == pytest.approx(0.0, abs=0.15)
    assert found.first == pytest.approx((2.0 * first - 1.0) * (1.0 - ties), abs=0.1)
    assert found.is_coin


def test_always_the_same_place_and_nothing_but_ties_are_coins() -> None:
    for given in (asked(50, first=1.0), asked(50, ties=1.0)):
        (found,) = order_agreement(given)
        assert (found.value, found.lo, found.hi, found.is_coin) == (0.0, 0.0, 0.0, True)


def test_coins_pass_for_judges_as_seldom_as_their_interval_says() -> None:
    passed = sum(not order_agreement(asked(60, first=0.7, seed=seed))[0].is_coin for seed in range(200))
    assert passed <= 12


def test_a_judge_that_reads_is_none_and_its_figure_is_the_correlation_of_both_orders() -> None:
    data = asked(300, first=0.7, follows=0.6)
    (found,) = order_agreement(data)
    x = data.label.astype(float).reshape(-1, 2)
    both = np.concatenate([x, -x[:, ::-1]])
    assert found.value == pytest.approx(np.corrcoef(both.T)[0, 1])
    assert found.lo is not None
    assert found.lo > 0.0


def test_full_agreement_has_an_interval_with_room_below() -> None:
    (found,) = order_agreement(asked(40, follows=1.0))
    assert (found.value, found.hi) == (1.0, 1.0)
    assert found.lo is not None
    assert 0.5 < found.lo < 0.95


def test_few_battles_one_order_and_no_instructions_say_nothing() -> None:
    (few,) = order_agreement(asked(FEWEST_BATTLES - 1, first=1.0))
    assert (few.value, few.is_coin) == (None, False)
    assert order_agreement(battles(["a"] * 60, ["b"] * 60, [1.0] * 60, instruction=np.arange(60))) == ()
    assert order_agreement(battles(["a"] * 60, ["b"] * 60, [1.0] * 60)) == ()
