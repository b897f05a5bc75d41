"""What of a campaign's file may change while the rounds that were planned by it stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from venire.orchestrator.planning.amending import rounds_stay

PHASE = {"name": "refine", "policy": "information", "battles": 40, "round": 10, "purpose": "mean"}
PLAN = {"instructions": 8, "phase": [PHASE], "stop": {"top": 3}}
FILE: dict[str, Any] = {
    "name": "small",
    "seed": 5,
    "data": {"models": None, "families": {}},
    "plan": PLAN,
    "judge": [{"name": "j", "concurrency": 8, "price": None}],
    "budget": {"money": "1"},
}
LATER = {"name": "more", "policy": "balanced", "battles": 10, "round": 10}


def stays(**changed: Any) -> bool:
    return rounds_stay(json.dumps(FILE), json.dumps(FILE | changed), ["refine"])


def test_what_shapes_no_round_may_change() -> None:
    assert stays()
    assert stays(budget={"money": "2"}, durability="strict", judge=[{"name": "j", "concurrency": 16, "price": "1"}])
    assert stays(plan=PLAN | {"stop": {"top": 5}, "phase": [PHASE | {"battles": 90, "round": 20}, LATER]})
    assert stays(data={"models": None, "families": {"m": "f"}})


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 6},
        {"data": {"models": ["a", "b"], "families": {}}},
        {"judge": [{"name": "k"}]},
        {"judge": [{"name": "j", "repeats": 2}]},
        {"plan": PLAN | {"instructions": 9}},
        {"plan": PLAN | {"phase": [PHASE | {"policy": "balanced"}]}},
        {"plan": PLAN | {"phase": [PHASE | {"purpose": "boundary"}]}},
        {"plan": PLAN | {"phase": [PHASE | {"name": "other"}]}},
        {"plan": PLAN | {"phase": [LATER, PHASE]}},
    ],
)
def test_what_shapes_rounds_may_not(changed: dict[str, Any]) -> None:
    assert not stays(**changed)


def test_a_plan_of_one_phase_may_become_one_of_several() -> None:
    single = FILE | {"plan": {"instructions": 8, "policy": "information", "stop": {}, "coverage": "0.3"}}
    named = {"name": "plan", "policy": "information", "purpose": "mean", "top": 3, "band": ["60", "200"]}
    several = FILE | {"plan": {"instructions": 8, "stop": {}, "phase": [named | {"coverage": "0.3"}, LATER]}}
    assert rounds_stay(json.dumps(single), json.dumps(several), ["plan"])


def test_settings_that_no_file_has_are_never_gone_on_with() -> None:
    assert not rounds_stay('{"place": "m"}', '{"place": "n"}', ["place"])
    assert not rounds_stay("simulated a 1", "simulated b 1", ["plan"])
