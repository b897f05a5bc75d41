"""Whether judges favour their own, told from how sharply they judge."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.ratings.simulated import campaign
from venire.arena.battles import Battles
from venire.arena.records import Status
from venire.ratings.data.judgments import merge_orders, select_battles
from venire.reports.audit.bias import check_own_family
from venire.reports.audit.finding import Case, Finding

FAMILIES = {"m0": "x", "m1": "x", "m3": "y"}
OF_JUDGES = {"j0": "x", "j1": "y"}


def judged(
    seed: int,
    *,
    slope: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    favour: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
    strength: Sequence[float] = (1.2, 0.8, 0.3, -0.3, -0.8, -1.2),
    instructions: int = 60,
    share: float = 0.5,
    taste: float = 0.5,
    ties: float = 0.1,
) -> Case:
    """Six models and four judges, `j0` of the family of the two best, `j1` of that of the fourth, two of none.

    Each judges a `share` of all pairs of each instruction in both orders; `slope` and `favour` (judges,) are logits.
    """
    rng, size = np.random.default_rng(seed), len(strength)
    first, second = np.triu_indices(size, 1)
    shape = (instructions, len(first), len(slope), 2)
    instruction, pair, judge, order = (part.ravel() for part in np.indices(shape))
    met = np.broadcast_to((rng.random(shape[:2]) < share)[:, :, None, None], shape).ravel()
    instruction, pair, judge, order = (part[met] for part in (instruction, pair, judge, order))
    a, b = first[pair], second[pair]
    kin = np.zeros((len(slope), size))
    kin[0, :2] = kin[1, 3] = 1.0
    level = np.asarray(strength) + taste * rng.standard_normal((instructions, size))
    gap = np.asarray(slope)[judge] * (level[instruction, a] - level[instruction, b])
    gap += np.asarray(favour)[judge] * (kin[judge, a] - kin[judge, b])
    label = np.where(rng.random(len(a)) < 1.0 / (1.0 + np.exp(-gap)), 1, -1)
    label[rng.random(len(a)) < ties] = 0
    battles = Battles(
        models=tuple(f"m{code}" for code in range(size)),
        judges=tuple(f"j{code}" for code in range(len(slope))),
        instructions=tuple(f"q{code:04d}" for code in range(instructions)),
        model_a=a.astype(np.int32),
        model_b=b.astype(np.int32),
        judge=judge.astype(np.int32),
        instruction=instruction.astype(np.int32),
        repeat=np.ones(len(a), dtype=np.int32),
        swapped=order.astype(np.bool_),
        status=np.full(len(a), Status.OK, dtype=np.int8),
        label=label.astype(np.int8),
    )
    return case(battles)


def case(battles: Battles) -> Case:
    return Case(battles, merge_orders(battles), families=FAMILIES, judge_families=OF_JUDGES)


def of(found: Finding, judge: str) -> dict[str, Any]:
    (one,) = [row for row in found.details["judges"] if row["judge"] == judge]
    return dict(one)


def test_a_judge_that_favours_its_family_is_named_with_its_odds_and_its_shares() -> None:
    found = check_own_family(judged(1, favour=(0.0, 0.8, 0.0, 0.0)))
    assert found.worry is True
    assert found.says.startswith("j1 gives m3")
    assert "sharpness that is +0." in found.says
    assert found.says.endswith("it favours its own, or what looks like it (no lengths known)")
    assert found.figure == pytest.approx(of(found, "j1")["odds"], abs=1e-6)
    assert abs(of(found, "j1")["odds"] - 0.8) < 3.0 * of(found, "j1")["odds_se"]
    assert abs(of(found, "j0")["odds"]) < 3.0 * of(found, "j0")["odds_se"]
    json.dumps(found.details, allow_nan=False)


def test_a_judge_that_is_sharp_alone_does_not_favour_its_strong_family() -> None:
    """It gives its own far more than others do on the same battles."""
    found = check_own_family(judged(2, slope=(2.5, 0.8, 0.8, 0.8)))
    mine = of(found, "j0")
    assert mine["excess"] > 0.05
    assert mine["excess"] > 3.0 * mine["excess_se"]
    assert found.worry is False
    assert mine["slope"] > 1.5
    assert "judge clearly favours its own" in found.says


def test_a_favour_too_small_to_matter_is_no_worry() -> None:
    found = check_own_family(judged(3, favour=(0.0, 0.15, 0.0, 0.0), instructions=2_000, share=1.0))
    mine = of(found, "j1")
    assert mine["odds"] > 4.0 * mine["odds_se"]
    assert found.worry is False


def test_a_large_favour_that_chance_may_make_is_no_worry() -> None:
    """Honest judges and few verdicts: the odds of j1 are above the threshold, within two errors of 0."""
    found = check_own_family(judged(9, instructions=15))
    assert of(found, "j1")["odds"] > 0.2
    assert found.worry is False


def test_battles_within_the_family_tell_nothing_of_favour() -> None:
    looked = judged(4, favour=(0.9, 0.0, 0.0, 0.0))
    within = (looked.judgments.judge == 0) & (looked.judgments.model_a == 0) & (looked.judgments.model_b == 1)
    assert within.any()
    turned = np.where(within, 1.0 - looked.judgments.y, looked.judgments.y)
    whole, other = (
        check_own_family(one) for one in (looked, replace(looked, judgments=replace(looked.judgments, y=turned)))
    )
    assert of(whole, "j0")["odds"] == pytest.approx(of(other, "j0")["odds"], abs=0.1)


def test_rows_in_another_order_are_the_same_to_it() -> None:
    looked = judged(5, instructions=20)
    mixed = np.random.default_rng(6).permutation(len(looked.battles.label))
    assert check_own_family(case(select_battles(looked.battles, mixed))).says == check_own_family(looked).says


def test_a_judge_that_gives_its_own_everything_favours_it_where_others_give_half() -> None:
    """Its odds are infinite, and no sharpness puts a model ahead of those who are worth more."""
    found = check_own_family(judged(7, favour=(0.0, 60.0, 0.0, 0.0), ties=0.0))
    assert found.worry is True
    assert (found.figure, of(found, "j1")["odds"]) == (None, None)
    assert "sharp it is, it favours" in found.says


def test_a_judge_that_gives_the_best_everything_may_be_sharp() -> None:
    found = check_own_family(judged(8, favour=(60.0, 0.0, 0.0, 0.0), ties=0.0))
    assert found.worry is False
    assert found.says.endswith("of j0 it cannot be told")
    assert "all of its verdicts" in of(found, "j0")["reason"]
    alone = judged(8, favour=(60.0, 0.0, 0.0, 0.0), ties=0.0)
    nobody = check_own_family(replace(alone, judge_families={"j0": "x"}))
    assert nobody.worry is None
    assert "cannot be told" in nobody.says
    assert "are wins" in nobody.says


def test_without_judges_of_other_models_there_is_nothing_to_hold_it_against() -> None:
    looked = judged(9)
    assert "nobody can favour its own" in check_own_family(replace(looked, judge_families={})).says
    related = check_own_family(replace(looked, judge_families=dict.fromkeys(("j0", "j1", "j2", "j3"), "x")))
    assert related.worry is None
    assert "other judge saw the battles" in related.says


def test_models_without_common_ratings_leave_shares_alone() -> None:
    looked = judged(10)
    lost = np.where(looked.judgments.model_b == 5, 1.0, looked.judgments.y)
    found = check_own_family(replace(looked, judgments=replace(looked.judgments, y=lost)))
    assert found.worry is None
    assert "chain of wins joins them" in found.says
    assert "others" in found.says


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"slope": (2.0, 1.0, 1.0, 1.0)},
        {"slope": (2.0, 0.5, 0.5, 2.0)},
        {"slope": (0.5, 2.0, 1.0, 1.0), "instructions": 30},
        {"slope": (2.0, 1.0, 1.0, 1.0), "instructions": 300, "taste": 1.0},
        {"slope": (2.0, 1.0, 1.0, 1.0), "share": 0.2, "ties": 0.3},
    ],
)
def test_honest_judges_however_sharp_seldom_worry(shape: dict[str, Any]) -> None:
    """At most 5 % of campaigns: 6 of 40 would be chance in 1 of 70 tries."""
    assert sum(check_own_family(judged(seed, **shape)).worry is True for seed in range(40)) <= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [
        {"favour": (0.0, 0.8, 0.0, 0.0)},
        {"favour": (0.0, 0.8, 0.0, 0.0), "slope": (2.0, 1.0, 1.0, 1.0)},
        {"favour": (0.8, 0.0, 0.0, 0.0), "slope": (2.0, 1.0, 1.0, 1.0), "share": 1.0, "instructions": 200},
    ],
)
def test_a_favour_of_08_logits_is_found_nearly_always(shape: dict[str, Any]) -> None:
    """Of a sharp judge for the two best it takes more verdicts than of one for a model in the middle."""
    assert sum(check_own_family(judged(seed, **shape)).worry is True for seed in range(20)) >= 16


def test_a_judge_of_no_models_but_its_family_is_looked_at_too() -> None:
    battles = campaign(11, judges=3, instructions=40)
    looked = Case(battles, merge_orders(battles), families={"m02": "z"}, judge_families={"judge 2": "z"})
    assert [row["models"] for row in check_own_family(looked).details["judges"]] == [["m02"]]
