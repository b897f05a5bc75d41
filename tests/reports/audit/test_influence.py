"""Whether a winner hangs on little: what the checks say of honest verdicts, and of planted faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.ratings.simulated import campaign
from venire.arena.battles import Battles
from venire.ratings.data.battles import battles
from venire.ratings.data.judgments import merge_orders, select_battles
from venire.reports.audit.audit import word
from venire.reports.audit.finding import Case, Finding
from venire.reports.audit.influence import check_instructions, check_judges, check_models, check_removal

Check = Callable[[Case], Finding]
CHECKS: tuple[Check, ...] = (check_instructions, check_judges, check_models, check_removal)


def case(battles: Battles) -> Case:
    return Case(battles, merge_orders(battles))


def favoured(battles: Battles, rows: np.ndarray, model: int) -> Battles:
    """The same verdicts, but in these rows this model wins all its battles."""
    label = battles.label.copy()
    label[rows & (battles.model_a == model)] = 1
    label[rows & (battles.model_b == model)] = -1
    return replace(battles, label=label)


def test_one_instruction_that_favours_a_model_throughout_is_named() -> None:
    battles = campaign(1, models=4, instructions=40, judges=8)
    assert check_instructions(case(battles)).worry is False
    found = check_instructions(case(favoured(battles, battles.instruction == 7, 3)))
    assert found.worry is True
    assert found.says.startswith("without instruction i0007 m03 moves by 20 points")
    assert found.figure == pytest.approx(19.67, abs=0.01)


def test_a_bought_judge_is_named() -> None:
    battles = campaign(3, strength=[1.0, 0.4, 0.0, 0.0, -0.4, -1.0], instructions=80)
    found = check_judges(case(favoured(battles, battles.judge == 2, 1)))
    assert found.worry is True
    assert found.says.startswith("without judge judge 2 m01 moves by")
    assert "m00 leads" in found.says
    assert found.details["turning"][0]["name"] == "judge 2"


def test_a_model_that_turns_the_order_of_others_is_named() -> None:
    """m01 beats m05 always, and without m05 it is far behind m00."""
    battles = campaign(5, strength=[0.4, 0.0, 0.0, 0.0, 0.0, 0.4], instructions=300, battles=8)
    rows = (battles.model_a == 1) & (battles.model_b == 5)
    found = check_models(case(favoured(battles, rows, 1)))
    assert found.worry is True
    assert "without model m05 m01 moves" in found.says


def test_a_clear_lead_that_a_few_misread_verdicts_make_is_told() -> None:
    """Two equal models, and one of 210 verdicts turned in favour of one of them."""
    battles = campaign(
        4, models=6, strength=[0.8, 0.8, -0.4, -0.4, -0.4, -0.4], instructions=1500, battles=8, noise=0.2
    )
    found = check_removal(case(battles))
    assert found.worry is False
    assert "within its error" in found.says
    against = np.flatnonzero((battles.model_a == 0) & (battles.label == -1))[: len(battles.label) // 210]
    label = battles.label.copy()
    label[against] = 1
    found = check_removal(case(replace(battles, label=label)))
    assert found.worry is True
    assert found.figure is not None
    assert found.threshold is not None
    assert found.figure < found.threshold
    assert "m00 leads m01" in found.says
    assert set(found.details) == {"judgments", "instructions", "judges"}


def of_unlike_merits(seed: int, slopes: tuple[float, ...], instructions: int, merits: str) -> Battles:
    """All pairs of six models by judges of these slopes; merits of answers are normal, or have a long tail."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(instructions, 6))
    if merits == "skewed":
        drawn = 0.6 * np.exp(1.2 * drawn)
    else:
        drawn *= 0.5
    item, a, b, judge, order = (
        column.ravel()
        for column in np.meshgrid(np.arange(instructions), np.arange(6), np.arange(6), np.arange(len(slopes)), [0, 1])
    )
    kept = a < b
    item, a, b, judge, order = (column[kept] for column in (item, a, b, judge, order))
    strength = np.linspace(1.0, -1.0, 6) + drawn
    odds = np.array(slopes)[judge] * (strength[item, a] - strength[item, b])
    y = (rng.random(len(odds)) < 1.0 / (1.0 + np.exp(-odds))).astype(float)
    return battles(a, b, y, judge=judge, instruction=item, swapped=order == 1)


def test_two_honest_judges_of_unlike_slope_seldom_worry() -> None:
    """The sharper one stretches the ratings of all; 11 of 30 such campaigns worried while that counted as a move."""
    alarms = [check_judges(case(of_unlike_merits(seed, (1.2, 1.8), 40, "normal"))).worry for seed in range(15)]
    assert alarms.count(True) <= 1


def test_instructions_of_skewed_merit_seldom_worry() -> None:
    """Effects have a long tail; 11 of 30 such campaigns worried while it was taken for a normal one."""
    alarms = [check_instructions(case(of_unlike_merits(seed, (1, 1, 1), 30, "skewed"))).worry for seed in range(15)]
    assert alarms.count(True) <= 1


def test_honest_campaigns_are_seldom_unsure_of_their_instructions() -> None:
    """Each of a few instructions moves ratings by more than 10 points: that threshold made 95 of 100 unsure."""
    shapes: tuple[dict[str, int], ...] = ({"models": 4, "instructions": 16, "judges": 2}, {"instructions": 30})
    found = [check_instructions(case(campaign(seed, **shape))) for shape in shapes for seed in range(8)]  # type: ignore[arg-type]
    assert sum(one.figure > 10.0 for one in found if one.figure is not None) > 10
    assert sum(word(one) != "fine" for one in found) <= 1


@pytest.mark.parametrize("check", CHECKS)
def test_what_cannot_be_looked_at_is_none_with_a_reason(check: Check) -> None:
    nothing = check(case(select_battles(campaign(1), np.zeros(0, dtype=np.intp))))
    assert nothing.worry is None
    assert nothing.says


def test_details_are_plain_json_without_nan() -> None:
    for check in CHECKS:
        json.dumps(check(case(campaign(1))).details, allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"models": 10, "instructions": 200, "battles": 12},
        {"models": 4, "judges": 2, "instructions": 25},
        {"strength": [0.0] * 6, "instructions": 300},
    ],
)
def test_honest_verdicts_seldom_worry(shape: dict[str, int]) -> None:
    """At most 5 % of campaigns: 6 of 40 would be chance in 1 of 70 tries."""
    alarms = dict.fromkeys(("single-instructions", "single-judges", "single-models", "smallest-removal"), 0)
    for seed in range(40):
        looked = case(campaign(1000 + seed, **shape))  # type: ignore[arg-type]
        for check in CHECKS:
            found = check(looked)
            alarms[found.check] += found.worry is True
    assert max(alarms.values()) <= 5, alarms


@pytest.mark.slow
def test_planted_faults_are_found_nearly_always() -> None:
    """An instruction judged ten times as often as others for one model; a bought judge; one of 300 verdicts turned."""
    found = dict.fromkeys(("instruction", "judge", "removal"), 0)
    for seed in range(20):
        battles = campaign(4000 + seed, repeats=10)
        battles = select_battles(battles, (battles.repeat == 1) | (battles.instruction == 7))
        heavy = battles.instruction == 7
        model = int(np.random.default_rng(seed).choice(battles.model_a[heavy]))
        found["instruction"] += check_instructions(case(favoured(battles, heavy, model))).worry is True
        battles = campaign(4000 + seed, strength=[1.0, 0.4, 0.0, 0.0, -0.4, -1.0], instructions=80)
        found["judge"] += check_judges(case(favoured(battles, battles.judge == 2, 1))).worry is True
    for seed in range(4):
        strength = [0.8, 0.8, -0.4, -0.4, -0.4, -0.4]
        battles = campaign(4000 + seed, strength=strength, instructions=3000, battles=8, noise=0.2)
        label = battles.label.copy()
        label[np.flatnonzero((battles.model_a == 0) & (label == -1))[: len(label) // 300]] = 1
        found["removal"] += check_removal(case(replace(battles, label=label))).worry is True
    assert found["instruction"] >= 16, found
    assert found["judge"] >= 16, found
    assert found["removal"] >= 3, found
