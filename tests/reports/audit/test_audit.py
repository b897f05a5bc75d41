"""An audit worries about planted faults and leaves clean data alone."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Origin, Status
from venire.render.sections import show
from venire.reports.audit.audit import CHECKS, Audit, audit, word
from venire.reports.audit.finding import Case, Finding

Draw = Callable[..., Battles]
MakeCase = Callable[..., Case]
Circle = Callable[[int, float], NDArray[np.float64]]

OF_DATA = (
    "connectivity",
    "coverage",
    "instructions",
    "complete",
    "unread",
    "unread-by-model",
    "first-place",
    "separation",
    "tie-rule",
    "transitivity",
    "circle",
    "fit",
    "single-pairs",
)
"""Checks of the data and the model; those of judges and influence have tests of their own."""

SCARCE = {"first-place", "separation", "instructions"}
"""Checks that speak of how much data there is, and rightly worry where there is little."""


def worries(found: Audit) -> set[str]:
    return {one.check for one in found.worries}


def finding(found: Audit, check: str) -> Finding:
    return next(one for one in found.findings if one.check == check)


def lossy(battles: Battles, model: int, share: float, seed: int = 0) -> Battles:
    """The same with verdicts on one model refused."""
    rng = np.random.default_rng(seed)
    hit = ((battles.model_a == model) | (battles.model_b == model)) & (rng.random(len(battles.label)) < share)
    status = np.where(hit, Status.REFUSED, battles.status).astype(np.int8)
    return replace(battles, status=status, label=np.where(hit, 0, battles.label).astype(np.int8))


def single(models: int, strength: float) -> NDArray[np.float64]:
    extra = np.zeros((models, models))
    extra[2, 4] = strength
    return extra


def rough(models: int, seed: int) -> NDArray[np.float64]:
    return np.triu(np.random.default_rng([9, seed]).standard_normal((models, models)), 1)


def test_nothing_worries_on_ample_clean_data_and_every_check_speaks(draw: Draw, case: MakeCase) -> None:
    battles = draw(1, models=5, instructions=120, gap=0.8)
    found = audit(case(battles, planned=len(battles.label)), origins=[Origin.SIMULATED])
    assert worries(found) == set()
    assert found.verdicts == "simulated"
    assert [one.check for one in found.findings] == list(CHECKS)
    assert all(one.says for one in found.findings)


def test_planted_faults_are_found_and_named(draw: Draw, case: MakeCase, circle: Circle) -> None:
    found = audit(case(draw(2, models=5, gap=0.3, extra=circle(5, 2.0))), checks=OF_DATA)
    assert {"circle", "fit", "single-pairs"} <= worries(found)
    assert "m00 beats m01" in finding(found, "circle").says
    assert "transitivity" in worries(audit(case(draw(3, models=12, gap=0.2, extra=rough(12, 1))), checks=OF_DATA))
    found = audit(case(draw(4, extra=single(8, -2.5))), checks=OF_DATA)
    assert "m04 wins" in finding(found, "single-pairs").says
    assert "single-pairs" in worries(found)
    found = audit(case(lossy(draw(5), 3, 0.15)), checks=OF_DATA)
    assert "unread-by-model" in worries(found)
    assert finding(found, "unread-by-model").says.startswith("m03 loses")
    assert "unread" in worries(audit(case(draw(6, unread=0.12)), checks=OF_DATA))


def test_too_few_instructions_a_torn_board_and_a_plan_half_done_worry(draw: Draw, case: MakeCase) -> None:
    assert "instructions" in worries(audit(case(draw(1, instructions=12)), checks=OF_DATA))
    battles = draw(1, models=6)
    torn = (battles.model_a < 3) == (battles.model_b < 3)
    kept = audit(case(_only(battles, torn)), checks=OF_DATA)
    assert "connectivity" in worries(kept)
    assert "2 islands never met" in finding(kept, "connectivity").says
    half = audit(case(battles, planned=2 * len(battles.label)), checks=OF_DATA)
    assert finding(half, "complete").figure == 0.5
    assert "complete" in worries(half)


def test_where_nothing_was_read_only_that_worries(draw: Draw, case: MakeCase) -> None:
    battles = draw(1, models=3, instructions=4)
    unread = replace(battles, status=np.full_like(battles.status, Status.UNREADABLE))
    assert worries(audit(case(unread), checks=OF_DATA)) == {"unread"}


def test_a_model_with_few_battles_is_a_hole_in_the_coverage(draw: Draw, case: MakeCase) -> None:
    battles = draw(1, models=6, instructions=80, share=0.5)
    rng = np.random.default_rng(0)
    mine = (battles.model_a == 5) | (battles.model_b == 5)
    found = audit(case(_only(battles, ~mine | (rng.random(len(mine)) < 0.03))), checks=OF_DATA)
    assert "coverage" in worries(found)
    assert "m05" in finding(found, "coverage").says


def test_equal_models_have_no_first_place(draw: Draw, case: MakeCase) -> None:
    found = audit(case(draw(2, gap=0.0)), checks=OF_DATA)
    assert {"first-place", "separation"} <= worries(found)
    assert not worries(found) - SCARCE


def test_circles_and_misfit_that_chance_may_make_are_no_worry_however_large(draw: Draw, case: MakeCase) -> None:
    checks = ("transitivity", "fit", "single-pairs", "circle")
    found = [audit(case(draw(seed, models=5, gap=0.0, judges=1, instructions=15)), checks=checks) for seed in range(12)]
    large: Counter[str] = Counter()
    for one in found:
        assert not one.worries
        large.update(that.check for that in one.findings if (that.figure or 0.0) > (that.threshold or 0.0))
    assert min(large[check] for check in checks) >= 2


def test_times_give_the_path_of_the_leader(draw: Draw, case: MakeCase) -> None:
    battles = draw(1, models=4, gap=0.8)
    seconds = np.arange(len(battles.label), dtype=float)
    np.random.default_rng(1).shuffle(seconds)
    path = finding(audit(case(battles, seconds=seconds), checks=["first-place"]), "first-place").details["path"]
    assert len(path) == 10
    assert path[-1]["leader"] == "m00"
    # A judgment counts as soon as one of its two orders is there.
    assert path[0]["judgments"] < path[-1]["judgments"] == len(battles.label) // 2


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_hardly_any_verdicts_make_checks_silent_with_a_reason(draw: Draw, case: MakeCase, rows: int) -> None:
    found = audit(case(_only(draw(1), np.arange(rows))))
    for one in found.findings:
        assert one.worry is not False or one.check in ("unread", "unread-by-model", "circle", "tie-rule"), one
    assert all(one.says for one in found.findings)
    json.dumps(found.to_json(), allow_nan=False)


def test_extremes_do_not_break_a_check(draw: Draw, case: MakeCase) -> None:
    battles = draw(1, models=3, instructions=25, unread=0.0)
    ties = replace(battles, label=np.zeros_like(battles.label))
    heavy = replace(battles, weight=np.full(len(battles.label), 1e12))
    lost = replace(battles, status=np.full_like(battles.status, Status.UNREADABLE), label=np.zeros_like(battles.label))
    two = _only(battles, battles.model_b == 1)
    for one in (ties, heavy, lost, two):
        json.dumps(audit(case(one)).to_json(), allow_nan=False)
    plain, scaled = (audit(case(one)) for one in (battles, heavy))
    assert [one.worry for one in plain.findings] == [one.worry for one in scaled.findings]


def test_rows_names_and_sides_change_no_finding(draw: Draw, case: MakeCase) -> None:
    battles = draw(7, models=4, instructions=30, judges=1)
    # Where no times are known, the order of rows is what drift is looked for in.
    checks = [name for name in CHECKS if name != "drift"]
    base = audit(case(battles), checks=checks).to_json()
    order = np.random.default_rng(3).permutation(len(battles.label))
    mixed = _only(battles, order)
    turned = replace(
        mixed,
        model_a=mixed.model_b,
        model_b=mixed.model_a,
        swapped=~mixed.swapped,
        label=(-mixed.label).astype(np.int8),
    )
    back = tuple(reversed(battles.models))
    renumbered = replace(turned, models=back, model_a=3 - turned.model_a, model_b=3 - turned.model_b)
    assert audit(case(renumbered), checks=checks).to_json() == base


def test_checks_are_chosen_by_name(draw: Draw, case: MakeCase) -> None:
    found = audit(case(draw(1)), checks=["fit", "connectivity"])
    assert [one.check for one in found.findings] == ["connectivity", "fit"]
    with pytest.raises(InputError, match="no check 'fitt'"):
        audit(case(draw(1)), checks=["fitt"])


SIZES: dict[str, dict[str, Any]] = {
    "4 models, 20 instructions": {"models": 4, "instructions": 20, "judges": 1, "gap": 0.5},
    "6 models, 30 instructions": {"models": 6, "instructions": 30, "judges": 1},
    "8 models, 60 instructions, 2 judges": {},
    "8 equal models": {"gap": 0.0, "instructions": 40},
    "12 models, a tenth of pairs": {"models": 12, "instructions": 100, "judges": 1, "share": 0.1},
    "20 models, a tenth of pairs": {"models": 20, "instructions": 200, "judges": 1, "share": 0.1, "gap": 0.2},
    "5 models, 500 instructions, 3 judges": {"models": 5, "instructions": 500, "judges": 3},
}


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_clean_data_alarm_in_at_most_one_of_twenty_audits_a_check(draw: Draw, case: MakeCase, size: str) -> None:
    sets = 60
    alarms = Counter(
        name
        for seed in range(sets)
        for name in worries(audit(case(draw(seed, **SIZES[size])), checks=OF_DATA))
        if name not in SCARCE
    )
    assert all(number <= 0.05 * sets for number in alarms.values()), alarms


@pytest.mark.slow
def test_planted_faults_alarm_in_nine_of_ten_audits(draw: Draw, case: MakeCase, circle: Circle) -> None:
    planted: dict[str, Callable[[int], Battles]] = {
        "circle": lambda seed: draw(seed, models=5, gap=0.3, extra=circle(5, 2.0)),
        "fit": lambda seed: draw(seed, models=12, gap=0.2, extra=rough(12, seed)),
        "transitivity": lambda seed: draw(seed, models=12, gap=0.2, extra=rough(12, seed)),
        "single-pairs": lambda seed: draw(seed, extra=single(8, -2.5)),
        "unread-by-model": lambda seed: lossy(draw(seed), 3, 0.15, seed),
        "unread": lambda seed: draw(seed, unread=0.12),
    }
    for check, make in planted.items():
        found = [audit(case(make(seed)), checks=[check]) for seed in range(30)]
        assert sum(bool(one.worries) for one in found) >= 27, check


@pytest.mark.slow
def test_a_leader_far_ahead_is_seldom_doubted_and_the_wrong_one_seldom_believed(draw: Draw, case: MakeCase) -> None:
    sure = [audit(case(draw(seed, models=5, gap=0.8)), checks=["first-place"]) for seed in range(60)]
    assert sum(bool(one.worries) for one in sure) <= 3
    close = [audit(case(draw(seed, gap=0.0, instructions=40)), checks=["first-place"]) for seed in range(60)]
    assert sum(bool(one.worries) for one in close) >= 54


def _only(battles: Battles, rows: NDArray[Any]) -> Battles:
    names = ("model_a", "model_b", "judge", "instruction", "repeat", "swapped", "status", "label")
    return replace(battles, **{name: getattr(battles, name)[rows] for name in names})


def test_a_figure_beyond_its_threshold_that_is_no_worry_is_unsure() -> None:
    found = [
        Finding("own-family", worry, figure, 0.2, "") for worry, figure in ((False, 0.5), (False, 0.1), (True, 0.5))
    ]
    assert [word(one) for one in found] == ["unsure", "fine", "worry"]
    assert word(Finding("own-family", None, None, 0.2, "")) == "not made"
    assert word(Finding("instructions", False, 25.0, 20.0, "")) == "fine"
    assert word(Finding("judge-agreement", False, 0.4, 0.5, "")) == "unsure"


@pytest.mark.parametrize("width", [70, 140, None])
def test_both_conditions_stand_beside_an_unsure_figure(width: int | None) -> None:
    out = io.StringIO()
    found = (Finding("own-family", False, 0.5, 0.2, "it may favour its own"), Finding("length", False, 0.1, 0.2, "no"))
    screen = Console(file=out, width=width or 300, force_terminal=width is not None, color_system=None)
    show(screen, Audit(found[::-1], "simulated", 10, 3, 2, 5, 0.95, 0).sections())
    shown = " ".join(out.getvalue().split())
    assert "none of 2 checks worries" in shown
    assert shown.index("unsure") < shown.index("fine")
    assert "<= 0.2 or chance" in shown
