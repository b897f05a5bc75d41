"""Models that won or lost everything have a side of the rated ones, and a bound that holds as often as it says."""

from __future__ import annotations

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings import comparisons
from venire.ratings.inference.one_sided import one_sided

ELO = np.array([1000.0, 1000.0, np.nan, np.nan])
"""Of a and b, which met each other both ways, and of two that have no rating."""


def table(*pairs: str) -> tuple[list[str], list[str]]:
    """Winners and losers of battles such as "ca", after those of a and b among themselves."""
    return [pair[0] for pair in ("ab", "ba", *pairs)], [pair[1] for pair in ("ab", "ba", *pairs)]


def sides(*pairs: str, **more: object) -> dict[str, bool]:
    won, lost = table(*pairs)
    data = comparisons(won, lost, [1.0] * len(won), models=["a", "b", "c", "d"])
    return {name: side.above for name, side in one_sided(data, ELO).items()}


def test_a_model_stands_where_chains_of_wins_put_it() -> None:
    assert sides("ca", "bd") == {"c": True, "d": False}
    assert sides("ca", "dc") == {"c": True, "d": True}
    assert sides("ac", "cd") == {"c": False, "d": False}
    assert sides("ca", "cd") == {"c": True}, "d lost to c alone: it may be anywhere below c"
    assert sides("cd", "dc") == {}, "nobody met a rated model"


def test_the_bound_is_the_rating_at_which_so_much_luck_has_the_chance_of_a_miss() -> None:
    won, lost = table(*["ca", "cb"] * 10)
    data = comparisons(won, lost, [1.0] * len(won), models=["a", "b", "c", "d"])
    chance = 0.05 ** (1 / 20)
    expected = 1000.0 + POINTS_PER_LOGIT * np.log(chance / (1.0 - chance))
    found = one_sided(data, ELO, level=0.95)["c"].bound
    assert found == pytest.approx(expected)
    lower = one_sided(comparisons(lost, won, [1.0] * len(won), models=list("abcd")), ELO, level=0.95)["c"]
    assert (lower.above, lower.bound) == (False, pytest.approx(2000.0 - expected))


def test_judgments_of_one_cluster_are_one_piece_of_evidence() -> None:
    won, lost = table(*["ca"] * 40)
    y, models = [1.0] * len(won), ["a", "b", "c", "d"]
    whole = comparisons(won, lost, y, models=models, cluster=[0, 1, *[two // 2 for two in range(40)]])
    half = comparisons(won[:22], lost[:22], y[:22], models=models)
    assert one_sided(whole, ELO)["c"].bound == pytest.approx(one_sided(half, ELO)["c"].bound)


def test_the_bound_misses_no_oftener_than_it_says() -> None:
    rng = np.random.default_rng(4)
    missed, trials, truth = 0, 4000, 1.15
    for wins in rng.binomial(6, 1.0 / (1.0 + np.exp(-truth)), trials):
        if wins == 6:
            won, lost = table(*["ca"] * 6)
            data = comparisons(won, lost, [1.0] * 8, models=list("abcd"))
            missed += one_sided(data, ELO, level=0.8)["c"].bound > 1000.0 + POINTS_PER_LOGIT * truth
    assert missed / trials <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / trials)
    assert missed > 0, "else the test has no power"


def test_a_level_that_is_none_is_refused() -> None:
    won, lost = table("ca")
    with pytest.raises(InputError, match="level"):
        one_sided(comparisons(won, lost, [1.0] * 3, models=list("abcd")), ELO, level=95)
