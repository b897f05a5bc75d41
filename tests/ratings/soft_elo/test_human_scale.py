"""A judge's points become people's by the rule that misses anchors left out the least, with an interval that holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.soft_elo.conformal import split_conformal
from venire.ratings.soft_elo.human_scale import human_scale


def test_a_stretched_scale_is_undone_exactly() -> None:
    human = np.linspace(900, 1300, 12)
    judge = 1000 + 1.8 * (human - 1100)
    found = human_scale(judge, np.full(12, 10.0), human, 1000 + 1.8 * 77, 10.0)
    assert found.rule == "line"
    assert found.slope == pytest.approx(1 / 1.8)
    assert found.elo == pytest.approx(1177)
    assert found.errors["line"] == pytest.approx(0.0, abs=1e-9)
    assert found.errors["offset"] > 50


def test_a_scale_that_is_not_stretched_is_shifted_alone() -> None:
    rng = np.random.default_rng(3)
    human = rng.normal(1100, 15, 10)
    judge = human - 100 + rng.normal(0, 40, 10)
    found = human_scale(judge, np.full(10, 10.0), human, 1000.0, 10.0, rule="offset")
    assert found.slope == 1.0
    assert found.elo == pytest.approx(1000 + human.mean() - judge.mean())


def test_every_residual_is_by_the_line_through_the_others() -> None:
    rng = np.random.default_rng(0)
    judge = rng.normal(1000, 120, 11)
    human = 1100 + 0.6 * (judge - 1000) + rng.normal(0, 20, 11)
    se = rng.uniform(10, 30, 11)
    found = human_scale(judge, se, human, 1040.0, 20.0)
    for code in range(11):
        keep = np.arange(11) != code
        slope, start = np.polyfit(judge[keep], human[keep], 1)
        assert found.residual[code] == pytest.approx(human[code] - start - slope * judge[code])
    slope, start = np.polyfit(judge, human, 1)
    apart = judge - judge.mean()
    own = 1 / 11 + apart**2 / (apart @ apart)
    whole = split_conformal(found.residual * np.sqrt(1 - own), slope * se, [start + slope * 1040], [slope * 20])
    reach = np.sqrt(1 + 1 / 11 + (1040 - judge.mean()) ** 2 / (apart @ apart))
    middle = start + slope * 1040
    low, high = middle - reach * (middle - whole.low[0]), middle + reach * (whole.high[0] - middle)
    far = middle + 1.6 * (high - middle)
    assert human.min() < middle - 1.6 * (middle - low) < high < human.max() < far
    assert (found.low, found.high) == pytest.approx((low, far))
    assert found.interval.n == 11


def test_towards_what_lies_beyond_all_anchors_the_interval_reaches_farther_and_that_is_said() -> None:
    rng = np.random.default_rng(5)
    judge = rng.normal(1000, 120, 12)
    human = judge + rng.normal(0, 30, 12)
    middle, last, outside = (
        human_scale(judge, np.full(12, 9.0), human, elo, 9.0) for elo in (1000.0, judge.max(), judge.max() + 1)
    )
    below, above = (
        [side / (middle.high - middle.elo) for side in sides]
        for sides in zip(*((one.elo - one.low, one.high - one.elo) for one in (middle, last, outside)), strict=True)
    )
    assert below == pytest.approx([1.0, 1.0, 1.6], rel=0.2)
    assert above == pytest.approx([1.0, 1.6, 1.6], rel=0.2)
    assert [one.beyond for one in (middle, last, outside)] == [False, False, True]
    said = [any("1.6 times as far" in warning for warning in one.warnings) for one in (middle, last, outside)]
    assert said == [False, True, True]


def test_the_interval_holds_models_at_the_ends_too() -> None:
    held = []
    for seed in range(600):
        rng = np.random.default_rng(seed)
        human = 1000 + 120 * rng.normal(size=17)
        judge = 1000 + 0.7 * (human - 1000) + rng.normal(0, 40, 17)
        if not human[:-1].min() <= human[-1] <= human[:-1].max():
            found = human_scale(judge[:-1], np.full(16, 15.0), human[:-1], judge[-1], 15.0)
            held.append(found.low <= human[-1] <= found.high)
    assert len(held) > 50
    assert np.mean(held) >= 0.88


def test_the_interval_holds_as_often_as_it_says() -> None:
    held = 0
    for seed in range(600):
        rng = np.random.default_rng(seed)
        judge = rng.normal(1000, 120, 20)
        se = rng.uniform(10, 40, 20)
        human = 1100 + 0.6 * (judge - 1000) + rng.normal(0, 25, 20)
        seen = judge + rng.normal(0, se)
        found = human_scale(seen[:19], se[:19], human[:19], seen[19], se[19])
        held += found.low <= human[19] <= found.high
    assert 0.87 <= held / 600 <= 0.95


def test_what_the_interval_cannot_answer_for_is_said() -> None:
    rng = np.random.default_rng(1)
    human = rng.normal(1100, 60, 12)
    judge = human - 100
    said = human_scale(judge, np.full(12, 9.0), human, 1500.0, 9.0, family="new", families=["old"] * 12).warnings
    assert any("outside" in sentence and "model 0" not in sentence for sentence in said)
    assert any("of the family new" in sentence for sentence in said)
    within = human_scale(judge, np.full(12, 9.0), human, float(judge.mean()), 9.0).warnings
    assert not any("outside" in sentence for sentence in within)


@pytest.mark.parametrize("anchors", [1, 2, 8])
def test_too_few_anchors_give_no_end_and_say_how_many_would_do(anchors: int) -> None:
    human = np.linspace(1000, 1200, anchors) + np.arange(anchors) % 2
    found = human_scale(human - 50, np.full(anchors, 9.0), human, 1000.0, 9.0)
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert math.isfinite(found.elo)
    assert any("9 would do" in sentence for sentence in found.warnings)
    assert ("line" in found.errors) == (anchors >= 4)


def test_bad_columns_and_rules_are_refused() -> None:
    with pytest.raises(InputError, match="shapes"):
        human_scale([], [], [], 1000.0, 9.0)
    with pytest.raises(InputError, match="finite"):
        human_scale([1000.0, math.nan], [9.0, 9.0], [1000.0, 1100.0], 1000.0, 9.0)
    with pytest.raises(InputError, match="a line takes 4 anchors"):
        human_scale([1000.0, 1100.0], [9.0, 9.0], [1000.0, 1100.0], 1000.0, 9.0, rule="line")


def test_an_unknown_error_of_the_new_model_is_not_taken_for_none() -> None:
    rng = np.random.default_rng(4)
    human = rng.normal(1100, 80, 12)
    judge = human + rng.normal(0, 20, 12)
    known = human_scale(judge, np.full(12, 10.0), human, 1100.0, 30.0)
    assert math.isfinite(known.high - known.low)
    for error in (math.inf, math.nan):
        found = human_scale(judge, np.full(12, 10.0), human, 1100.0, error)
        assert (found.low, found.high) == (-math.inf, math.inf)
        assert found.elo == known.elo
        assert found.interval.expected is None
        assert "not known" in found.warnings[-1]
    alike = human_scale(judge, np.full(12, math.inf), human, 1100.0, math.inf)
    assert math.isfinite(alike.high)  # judged alike, residuals hold what nobody could tell apart


def test_a_judge_that_rates_the_other_way_round_is_said() -> None:
    human = np.linspace(900, 1100, 12)
    against = human_scale(2000.0 - human, np.full(12, 10.0), human, 1000.0, 10.0)
    assert against.slope == pytest.approx(-1.0)
    assert any("other way round" in one for one in against.warnings)
    assert not any("other way round" in one for one in human_scale(human, 10.0 + 0.0 * human, human, 1e3, 9.0).warnings)
    with pytest.raises(InputError, match="elo"):
        human_scale(human, np.full(12, 10.0), human, math.nan, 10.0)
