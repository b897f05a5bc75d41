"""A judge that cannot be read is asked no more, and quality gates are what a campaign file asks for."""

from __future__ import annotations

import pytest

from venire.arena.campaigns import QualitySettings
from venire.arena.records import Reply, Status
from venire.orchestrator.run.readability import WINDOW, ReadabilityMonitor, gates_missed
from venire.storage.read.judge_quality import JudgeReadability


def monitor(*statuses: Status, instructions: int = 10, give_up: float = 0.1) -> ReadabilityMonitor:
    """One that has seen these verdicts of respondent 1, in turn on so many instructions."""
    recent = [(1, place % instructions, status) for place, status in enumerate(statuses)]
    return ReadabilityMonitor(QualitySettings(give_up=give_up), recent)


@pytest.mark.parametrize(
    ("statuses", "instructions", "unreadable"),
    [
        ([Status.UNREADABLE] * 19, 10, False),
        ([Status.UNREADABLE] * 20, 10, True),
        ([Status.TRUNCATED] * 10 + [Status.REFUSED] * 10, 10, True),
        ([Status.OK] + [Status.UNREADABLE] * 19, 10, True),
        ([Status.OK] * 2 + [Status.UNREADABLE] * 18, 10, False),
        ([Status.UNREADABLE] * 20, 1, True),
        ([Status.REFUSED] * 60, 1, False),
        ([Status.REFUSED] * WINDOW, 1, True),
        ([Status.FILTERED] * 100, 10, False),
        ([Status.TOO_LONG] * 100, 10, False),
        ([Status.OK] * 10_000 + [Status.UNREADABLE] * 95, 10, True),
    ],
)
def test_a_judge_is_given_up_by_its_last_verdicts_on_several_instructions(
    statuses: list[Status], instructions: int, unreadable: bool
) -> None:
    assert monitor(*statuses, instructions=instructions).is_unreadable(1) == unreadable


def test_who_wants_to_ask_on_whatever_can_be_read_may() -> None:
    assert not monitor(*[Status.UNREADABLE] * WINDOW, give_up=0.0).is_unreadable(1)
    assert monitor(*[Status.OK] * 40, *[Status.UNREADABLE] * 60, give_up=0.5).is_unreadable(1)


def test_the_reason_names_what_came_an_example_and_a_remedy() -> None:
    why = monitor(*[Status.TRUNCATED] * 15, *[Status.UNREADABLE] * 5).explain(1, Reply("So\n\nthe " + "x" * 1000))
    assert "of its last 20 trials none could be read (5 unreadable, 15 truncated); a reply: 'So the xxx" in why
    assert "max_tokens" in why
    assert len(why) < 500


def test_gates_name_the_judge_the_figure_and_what_is_asked_for() -> None:
    good = JudgeReadability("good", "two-stage", 10, 10, 0, 5, 5, 5, 5, 5, 1, 0, 0)
    poor = JudgeReadability("poor", "two-stage", 10, 8, 0, 5, 4, 5, 4, 4, 3, 0, 0)
    asked = QualitySettings(readable=0.9, flips=0.3)
    assert gates_missed([good], asked) == ()
    readable, flips = gates_missed([good, poor], asked)
    assert "'poor': 80.0%" in readable
    assert "readable = 0.9" in readable
    assert "75.0%" in flips
    assert "flips = 0.3" in flips
    assert gates_missed([poor], QualitySettings()) == ()


def test_a_judge_of_which_nothing_could_be_read_misses_a_gate_that_nobody_set() -> None:
    nothing = JudgeReadability("dumb", "two-stage", 10, 0, 0, 5, 0, 5, 0, 0, 0, 0, 0)
    too_long = JudgeReadability("short", "two-stage", 10, 0, 10, 5, 0, 5, 0, 0, 0, 0, 0)
    (sentence,) = gates_missed([nothing, too_long], QualitySettings())
    assert "none of its 10 trials" in sentence
    thought = Reply("", finish="length", reasoning="A names the river")
    (sentence,) = gates_missed([nothing], QualitySettings(), {"dumb": (Status.TRUNCATED, thought)})
    assert "no text, but the thought 'A names the river'" in sentence
    assert "raise max_tokens, turn thinking off" in sentence
