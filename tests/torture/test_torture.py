"""Campaigns under torture keep their promises, and the rig notices builds that break one.

The rig forks, so it runs in a process of its own: this one may have threads.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.torture.faults import COMBINATIONS, FAULTS
from tests.torture.marks import PHASES
from tests.torture.plan import Plan
from tests.torture.shapes import SHAPES

ROOT = Path(__file__).resolve().parent.parent.parent


def torture(*words: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of the rig and its results."""
    command = [sys.executable, "-m", "tests.torture", "--json", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def broken(results: list[dict[str, Any]]) -> list[str]:
    """What to read when a promise is broken: the rounds, and what was expected and seen."""
    return [
        f"round {one['number']}: {one['fault']} in {one['phase']}: promise {each['number']}: expected "
        f"{each['expected']}; seen: {each['seen']}"
        for one in results
        for each in one["broken"]
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_promise_is_broken_in_rounds_of_torture() -> None:
    rounds = 6
    code, results = torture("--rounds", str(rounds))
    assert broken(results) == []
    assert code == 0
    assert len(results) == rounds
    assert sum(one["inside"] for one in results) >= rounds - 1


BUILDS = [
    pytest.param("announcement-skipped", "SIGKILL", 3, marks=pytest.mark.slow),
    pytest.param("reservation-released-twice", "money budget", 3, marks=pytest.mark.slow),
    pytest.param("first-reply-wins-off", "late duplicates", 2, marks=pytest.mark.slow),
    pytest.param("replies-dropped", "disk full", 1, marks=pytest.mark.slow),
    pytest.param("recovered-again", "SIGKILL", 4, marks=pytest.mark.slow),
    pytest.param("history-rewritten", "SIGKILL", 5, marks=pytest.mark.slow),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("build", "only", "promise"), BUILDS)
def test_a_build_that_breaks_a_promise_is_noticed(build: str, only: str, promise: int) -> None:
    rounds = "1" if build == "announcement-skipped" else "3"
    code, results = torture("--only", only, "--rounds", rounds, "--broken", build)
    assert code == 1
    assert promise in {each["number"] for one in results for each in one["broken"]}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("only", ["SIGKILL", "money budget", "late duplicates", "disk full"])
def test_the_same_rounds_of_the_build_as_it_is_break_none(only: str) -> None:
    code, results = torture("--only", only, "--rounds", "3")
    assert (code, broken(results)) == (0, [])


def test_a_round_depends_on_the_seed_and_its_number_alone() -> None:
    plans = [Plan.draw(7, number, 0) for number in range(1, 60)]
    assert plans == [Plan.draw(7, number, 0) for number in range(1, 60)]
    assert plans != [Plan.draw(8, number, 0) for number in range(1, 60)]
    assert {plan.shape.name for plan in plans} == {shape.name for shape in SHAPES}


def test_two_hundred_rounds_have_ten_in_every_phase_and_each_fault_wherever_it_can_fall() -> None:
    plans = [Plan.draw(0, number, 0) for number in range(1, 201)]
    assert {(plan.fault, plan.phase) for plan in plans} == set(COMBINATIONS)
    assert {fault for fault, _ in COMBINATIONS} == set(FAULTS)
    for phase in PHASES:
        assert sum(plan.phase == phase for plan in plans) >= 10
