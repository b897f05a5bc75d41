"""Recorded judgments are read in their dialect, once, and whatever has none of its forms is unreadable: never a tie."""

from __future__ import annotations

from typing import Any

import pytest

from venire.arena.errors import InputError
from venire.arena.records import Outcome, Preference, Reply, Request, Status
from venire.judges import PROTOCOLS


def test_nothing_of_how_the_judge_was_asked_is_made_up(say: Any) -> None:
    request = say("recorded")
    assert isinstance(request, Request)
    assert (request.messages, request.temperature) == ((), None)


@pytest.mark.parametrize(
    ("text", "winner", "score"),
    [
        ("first", 1, None),
        ("second", -1, None),
        ("tie", 0, None),
        ("first 8.0 6.5", 1, 1.5),
        ("second 1e1 -2", -1, 12.0),
        ("tie 7 7", 0, 0.0),
    ],
)
def test_a_word_is_a_verdict_and_scores_behind_it_are_their_difference(
    text: str, winner: int, score: float | None, say: Any
) -> None:
    assert say("recorded", text) == Outcome(Status.OK, Preference(winner, score), "word")


@pytest.mark.parametrize("text", ["", "First", "first 7", "first 7 x", "first\n", "first second", "nan", "tie 1 2 3"])
def test_any_other_word_is_unreadable_and_nobody_is_asked_again(text: str, say: Any) -> None:
    assert say("recorded", text, options={"repair": "1"}) == Outcome(Status.UNREADABLE)


def test_a_recorded_reply_is_read_in_the_dialect_that_the_judge_has(say: Any) -> None:
    reply = "Both are fine. My final verdict is: [[B]]"
    found = say("recorded", reply, options={"dialect": "mt-bench"})
    assert found == Outcome(Status.OK, Preference(-1), "mt-bench:brackets")
    assert say("recorded", reply, options={"dialect": "one-two-three"}) == Outcome(Status.UNREADABLE)
    assert say("recorded", "Neither.\n\n3", options={"dialect": "one-two-three"}).reading == Preference(0)


def test_a_recorded_reply_that_was_cut_is_truncated(say: Any) -> None:
    assert say("recorded", Reply("", "length")) == Outcome(Status.TRUNCATED)


def test_a_dialect_that_is_not_there_is_refused_with_those_that_are() -> None:
    entry = PROTOCOLS["recorded"]
    entry.check({"dialect": "word"})
    entry.check({"dialect": "arena-hard"})
    with pytest.raises(InputError, match=r"dialect: 'mtbench' is not a dialect: word, .*mt-bench"):
        entry.check({"dialect": "mtbench"})
    with pytest.raises(InputError, match="dialect: this protocol has no such setting"):
        PROTOCOLS["binary"].check({"dialect": "word"})
