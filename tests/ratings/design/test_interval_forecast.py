"""Widths that are promised before anything is asked are those that a fit shows afterwards."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.statistics import student
from venire.ratings.design.interval_forecast import (
    DEFAULT_EFFECT,
    FLAT,
    DesignEffect,
    IntervalForecast,
    design_effect,
    forecast_intervals,
    forecast_range,
)
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.simulation.judge import load_profiles, simulate

COINS = DesignEffect(scatter=1.0, judges=0.0, completions=0.0, repeats=0.0)
SHARED = DesignEffect(scatter=0.5, judges=0.3, completions=0.2, repeats=0.7)

Battles = NDArray[np.int32]


def names(number: int) -> tuple[str, ...]:
    return tuple(f"m{n:02}" for n in range(number))


def drawn(number: int, models: int, instructions: int, seed: int) -> Battles:
    """Battles of every pair in turn, each on an instruction drawn at random."""
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(models), 2)))
    chosen = np.concatenate([rng.permutation(pairs) for _ in range(-(-number // len(pairs)))])[:number]
    return np.column_stack([chosen, rng.integers(instructions, size=number)]).astype(np.int32)


def by_hand(battles: Battles, logits: NDArray[np.float64], judges: int, repeats: int, effect: DesignEffect) -> object:
    """The sandwich (n, n) from the covariance of every judgment with every other."""
    rows = [(a, b, i, j, r) for a, b, i in battles.tolist() for j in range(judges) for r in range(repeats)]
    sides = np.zeros((len(rows), len(logits)))
    for n, (a, b, *_) in enumerate(rows):
        sides[n, a], sides[n, b] = 1.0, -1.0
    p = expit(sides @ logits)
    noise = p * (1.0 - p)
    correlation = np.zeros((len(rows), len(rows)))
    for n, one in enumerate(rows):
        for m, other in enumerate(rows):
            if one[2] != other[2]:
                continue
            if one[:2] == other[:2]:
                same_judge = effect.repeats if one[4] != other[4] else 1.0
                correlation[n, m] = same_judge if one[3] == other[3] else effect.judges
            else:
                correlation[n, m] = effect.completions * float(sides[n] @ sides[m])
    covariance = effect.scatter * correlation * np.sqrt(np.outer(noise, noise))
    centring = np.eye(len(logits)) - 1.0 / len(logits)
    bread = centring @ np.linalg.inv(sides.T @ (noise[:, None] * sides) + 1.0) @ centring
    return bread @ sides.T @ covariance @ sides @ bread


@pytest.mark.parametrize(("judges", "repeats"), [(1, 1), (3, 1), (2, 2)])
def test_widths_are_the_sandwich_of_all_judgments_worked_out_one_by_one(judges: int, repeats: int) -> None:
    logits = np.array([0.0, 0.7, -0.4, 1.1, 0.2])
    battles = np.unique(drawn(60, 5, 12, 1), axis=0)
    effect = SHARED if judges * repeats < 4 else DesignEffect(0.5, 0.4, 0.1, 0.7)
    found = forecast_intervals(names(5), battles, logits, judges=judges, repeats=repeats, effect=effect)
    reach = POINTS_PER_LOGIT * student.ppf(0.975, found.instructions - 1)
    expected = reach * np.sqrt(np.diagonal(by_hand(battles, logits, judges, repeats, effect)))
    np.testing.assert_allclose(found.half_width(), expected, rtol=1e-9)


def test_coins_have_the_errors_of_the_model_itself() -> None:
    found = forecast_intervals(names(6), drawn(90, 6, 30, 2), np.linspace(-1, 1, 6), effect=COINS)
    np.testing.assert_allclose(found.half_width(), found.model_half_width(), rtol=1e-9)


def test_a_plan_grown_is_the_larger_plan() -> None:
    logits, effect = np.linspace(-1, 1, 5), SHARED
    one = drawn(50, 5, 20, 3)
    more = np.concatenate([one + np.array([0, 0, 20 * n], dtype=np.int32) for n in range(4)])
    grown = forecast_intervals(names(5), one, logits, effect=effect)
    larger = forecast_intervals(names(5), more, logits, effect=effect)
    clusters = student.ppf(0.975, 4 * grown.instructions - 1) / student.ppf(0.975, larger.instructions - 1)
    np.testing.assert_allclose(grown.half_width(4.0) / clusters, larger.half_width(), rtol=1e-9)
    np.testing.assert_allclose(grown.model_half_width(4.0) / clusters, larger.model_half_width(), rtol=1e-9)


def test_more_battles_on_the_same_instructions_cannot_go_below_what_these_share() -> None:
    battles = drawn(200, 5, 10, 4)
    here = forecast_intervals(names(5), battles, np.zeros(5), effect=SHARED, grows=False)
    elsewhere = forecast_intervals(names(5), battles, np.zeros(5), effect=SHARED, grows=True)
    assert np.all(here.half_width(4.0) > elsewhere.half_width(4.0))
    limit = float(np.median(here.half_width(1e9)))
    assert limit > 5.0
    assert here.size_needed(0.9 * limit) is None
    assert elsewhere.size_needed(0.9 * limit) is not None


@pytest.mark.parametrize("grows", [True, False])
def test_the_size_that_a_width_needs_has_that_width(grows: bool) -> None:
    found = forecast_intervals(names(5), drawn(100, 5, 30, 5), np.zeros(5), effect=SHARED, grows=grows)
    for half in (75.0, 60.0):
        times = found.size_needed(half)
        assert times is not None
        assert float(np.median(found.half_width(times))) == pytest.approx(half, rel=1e-6)


def test_names_and_rows_in_another_order_change_nothing() -> None:
    logits, battles = np.linspace(-1, 1, 6), drawn(120, 6, 25, 6)
    before = forecast_intervals(names(6), battles, logits, effect=SHARED).half_width()
    turn = np.random.default_rng(1).permutation(6)
    place = np.argsort(turn)
    other = battles.copy()
    other[:, :2] = place[battles[:, :2]]
    other = other[np.random.default_rng(2).permutation(len(other))]
    other[::2, :2] = other[::2, 1::-1]
    after = forecast_intervals(tuple(names(6)[n] for n in turn), other, logits[turn], effect=SHARED).half_width()
    np.testing.assert_allclose(after[place], before, rtol=1e-9)


def test_models_without_a_rating_have_the_widths_of_usual_ones() -> None:
    battles = np.array([(a, b, i) for i in range(30) for a, b in combinations(range(4), 2)], dtype=np.int32)
    unknown = np.full(4, np.nan)
    even, usual = (forecast_intervals(names(4), battles, unknown, spread=spread).half_width() for spread in (0.0, 1.0))
    np.testing.assert_allclose(even, forecast_intervals(names(4), battles, np.zeros(4)).half_width(), rtol=1e-9)
    np.testing.assert_allclose(usual, usual[0], rtol=1e-9)
    draws = np.random.default_rng(1).normal(size=(200_000, 2)) @ np.array([1.0, -1.0])
    assert usual[0] / even[0] == pytest.approx(np.sqrt(0.25 / np.mean(expit(draws) * expit(-draws))), rel=5e-3)


def test_models_that_no_battle_joins_are_named() -> None:
    battles = np.array([(0, 1, 0), (2, 3, 1)], dtype=np.int32)
    with pytest.raises(InputError, match="m0"):
        forecast_intervals(names(4), battles, np.zeros(4))
    with pytest.raises(InputError, match="other models"):
        forecast_intervals(names(2), battles, np.zeros(2))


def test_one_instruction_has_no_clustered_error() -> None:
    battles = np.array([(0, 1, 0)], dtype=np.int32)
    assert np.all(np.isinf(forecast_intervals(names(2), battles, np.zeros(2), grows=False).half_width()))


@pytest.mark.parametrize(("times", "half"), [(0.0, 1.0), (1.0, 0.0), (float("nan"), float("nan"))])
def test_sizes_and_widths_are_more_than_nothing(times: float, half: float) -> None:
    found: IntervalForecast = forecast_intervals(names(3), drawn(30, 3, 10, 1), np.zeros(3))
    with pytest.raises(InputError, match="more than 0"):
        found.half_width(times) if not times > 0.0 else found.size_needed(half)


def judged(profile: str, battles: Battles, elo: NDArray[np.float64], seed: int) -> Judgments:
    """What a simulated judge says of battles in both orders, of completions with lengths of their own."""
    rng = np.random.default_rng(seed)
    count = int(battles[:, 2].max()) + 1
    characters = np.exp(rng.normal(7.0, 0.6, count) + 0.347 * rng.normal(size=(len(elo), count))).astype(int)
    outcomes = []
    for a, b, i in battles.tolist():
        both = []
        for first, second in ((a, b), (b, a)):
            said = simulate(
                load_profiles()[profile],
                seed,
                instruction_id=i,
                first=f"m{first:02}",
                second=f"m{second:02}",
                gap=elo[first] - elo[second],
                chars_first=int(characters[first, i]),
                chars_second=int(characters[second, i]),
            )
            won = {"first": 1.0, "second": 0.0, "tie": 0.5}[said.leaning]
            both.append(won if first == a else 1.0 - won)
        outcomes.append(both)
    told = np.array(outcomes)
    rows, ones = len(battles), np.ones(len(battles), dtype=np.int32)
    return Judgments(
        names(len(elo)),
        (profile,),
        tuple(f"q{n:04}" for n in range(count)),
        battles[:, 0],
        battles[:, 1],
        0 * ones,
        battles[:, 2],
        ones,
        told.mean(axis=1),
        np.abs(told[:, 0] - told[:, 1]) == 1.0,
        np.full(rows, 2, dtype=np.int8),
        "mean",
        True,
        0,
    )


def halves(data: Judgments) -> NDArray[np.float64]:
    fit = bradley_terry(data.comparisons())
    assert fit.covariance is not None
    reach = POINTS_PER_LOGIT * student.ppf(0.975, fit.degrees)
    return np.asarray(reach * np.sqrt(np.diagonal(fit.covariance)))


def test_what_a_pilot_promises_is_what_the_whole_plan_shows() -> None:
    elo = np.linspace(850.0, 1150.0, 10)
    battles = drawn(1500, 10, 150, 7)
    whole = judged("gemini-pro", battles, elo, 1)
    pilot = whole.select(np.random.default_rng(1).permutation(len(whole))[:300])
    fit = bradley_terry(pilot.comparisons(), ridge=1.0, errors="none")
    effect = design_effect(pilot, fit.logits)
    seen = float(np.median(halves(whole)))
    rated = bradley_terry(pilot.comparisons(), ridge=1.0).logits
    promised = float(np.median(forecast_intervals(names(10), battles, rated, effect=effect).half_width()))
    assert promised / seen == pytest.approx(1.0, abs=0.15)
    usual = float(np.median(forecast_intervals(names(10), battles, rated, effect=DEFAULT_EFFECT).half_width()))
    assert usual / seen == pytest.approx(1.0, abs=0.3)


def test_ratings_too_far_apart_are_not_called_models_that_never_met() -> None:
    met = np.array([[0, 1, 0], [0, 1, 1]], dtype=np.int32)
    with pytest.raises(InputError, match="too far apart"):
        forecast_intervals(("a", "b"), met, np.array([900.0, 0.0]))


@pytest.mark.parametrize("grows", [True, False])
def test_the_floor_of_a_larger_plan_has_its_instructions_too(grows: bool) -> None:
    found = forecast_intervals(
        ("a", "b"), np.array([[0, 1, n] for n in range(10)], dtype=np.int32), np.zeros(2), grows=grows
    )
    quantile = student.ppf(0.975, 39 if grows else 9)
    assert found.model_half_width(4.0) == pytest.approx(
        POINTS_PER_LOGIT * quantile * np.sqrt(np.diagonal(found.bread) / 4.0)
    )


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


def test_the_band_is_wide_before_verdicts_and_narrows_with_what_is_measured() -> None:
    battles = np.array([(a, b, item) for item in range(30) for a, b in combinations(range(6), 2)], dtype=np.int32)
    unknown = np.full(6, np.nan)
    before = forecast_range(names(6), battles, unknown, judges=2)
    few, many = (
        forecast_range(names(6), battles, unknown, judges=2, effect=replace(DEFAULT_EFFECT, judgments=number))
        for number in (100, 10**6)
    )
    widths = [found.band() for found in (before, few, many)]
    assert all(low < found.median() < high for found, (low, high) in zip((before, few, many), widths, strict=True))
    assert widths[0][0] < 0.7 * before.median() < 1.2 * before.median() < widths[0][1]
    ratios = [high / low for low, high in widths]
    assert ratios[0] > ratios[1] > ratios[2] > 1.3, "errors over 30 instructions are off themselves"
    assert forecast_range(names(2), battles[:1, :] * [1, 1, 0], unknown[:2]).band() == (np.inf, np.inf)


def test_what_a_pilot_did_not_measure_stays_as_unsure_as_before() -> None:
    thin = replace(DEFAULT_EFFECT, judgments=10**8)
    _, flat = FLAT.of(thin)
    assert flat.scatter == pytest.approx(thin.scatter, rel=0.01)
    assert (flat.judges, flat.completions) == (0.4 * thin.judges, 0.5 * thin.completions)
    _, flat = FLAT.of(replace(thin, judge_pairs=10**8, completion_pairs=10**8))
    assert (flat.judges, flat.completions) == pytest.approx((thin.judges, thin.completions), rel=0.01)
    data = made(1, 1, 40, merit=0.1)
    each = data.select(np.unique(data.instruction, return_index=True)[1])
    assert design_effect(each, LOGITS).completion_pairs == 0 < design_effect(data, LOGITS).completion_pairs
