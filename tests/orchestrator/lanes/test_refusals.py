"""Refusals without a reason: which are of the key, which of a call alone, and when either is known."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import count

import pytest

from venire.arena.errors import CallError, Fault, InputError, KeyRefusedError
from venire.orchestrator.lanes.refusals import REFUSALS_IN_A_ROW, Doubt, Refusal, Refusals, is_key_refused


@dataclass
class Route:
    """A route's refusals, and the trials that were put on record as failed."""

    accepted: bool = True
    failed: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.refusals = Refusals(accepted=self.accepted)
        self.trials = count(1)

    def refused(
        self, at: float, *, status: int = 403, instruction: int = 1, again: bool = False, doubt: Doubt | None = None
    ) -> bool:
        """One call is refused; returns whether that is the key's."""
        trial = next(self.trials)
        error = CallError("no", Fault.AUTHENTICATION, status=status, by_status=status)
        doubt = doubt or Doubt()
        closes = self.refusals.refused(Refusal(error, at, instruction, trial, again, doubt))
        if not closes:
            doubt.fail(lambda: self.failed.append(trial))
        return closes


def test_a_refusal_is_its_calls_own_once_a_call_that_was_sent_after_it_is_answered() -> None:
    route = Route()
    assert not route.refused(1.0)
    assert route.failed == []
    route.refusals.answered(sent=0.5)
    assert route.failed == [], "that call was on its way when the key may have been revoked"
    route.refusals.answered(sent=1.0)
    assert route.failed == [1]
    route.refusals.decide(own=True)
    assert route.failed == [1], "once"


@pytest.mark.parametrize("status", [401, 402])
def test_several_trials_running_are_the_keys_and_none_of_them_has_failed(status: int) -> None:
    route = Route()
    assert [route.refused(float(at), status=status) for at in range(REFUSALS_IN_A_ROW)] == [False] * (
        REFUSALS_IN_A_ROW - 1
    ) + [True]
    route.refusals.drop()
    route.refusals.answered(sent=99.0)
    assert route.failed == []


@pytest.mark.parametrize("status", [401, 402, 403])
def test_an_answer_between_refusals_starts_their_count_anew(status: int) -> None:
    route = Route()
    for at in range(5 * REFUSALS_IN_A_ROW):
        assert not route.refused(at + 0.0, status=status, instruction=at)
        if at % (REFUSALS_IN_A_ROW - 1) == REFUSALS_IN_A_ROW - 2:
            route.refusals.answered(sent=at + 0.5)
    assert len(route.failed) == 5 * REFUSALS_IN_A_ROW // (REFUSALS_IN_A_ROW - 1) * (REFUSALS_IN_A_ROW - 1)


def test_a_text_that_a_filter_refuses_in_many_trials_running_does_not_close_its_route() -> None:
    route = Route()
    assert not any(route.refused(float(at), instruction=at % 2) for at in range(1000))
    route.refusals.answered(sent=1000.0)
    assert len(route.failed) == 1000


def test_texts_of_several_instructions_refused_running_are_the_keys() -> None:
    route = Route()
    asked = [route.refused(float(at), instruction=at // 10) for at in range(10 * REFUSALS_IN_A_ROW)]
    assert asked.index(True) == 10 * (REFUSALS_IN_A_ROW - 1)


def test_what_was_refused_before_and_is_again_says_nothing_new_of_the_key() -> None:
    """Or a campaign of which only such trials are left would close its lane at each start."""
    route = Route()
    assert not any(route.refused(float(at), instruction=at, again=True) for at in range(100))
    assert not route.refusals.are_of_the_key
    route.refusals.decide(own=True)
    assert len(route.failed) == 100


@pytest.mark.parametrize("status", [401, 402])
def test_before_the_first_answer_a_refusal_is_the_keys_at_once(status: int) -> None:
    assert Route(accepted=False).refused(0.0, status=status)


def test_before_the_first_answer_a_403_is_the_keys_with_a_second_instruction() -> None:
    """A gateway's filter answers before the model does: the first refusal may well come before the first answer."""
    route = Route(accepted=False)
    assert not any(route.refused(float(at)) for at in range(20))
    assert route.refusals.are_of_the_key, "if nobody is answered until the end"
    assert route.refused(20.0, instruction=2)
    other = Route(accepted=False)
    assert not other.refused(0.0)
    other.refusals.answered(sent=1.0)
    assert other.failed == [1]
    assert not other.refused(2.0, instruction=2)


def test_at_the_end_one_refusal_is_its_calls_own_and_several_undecided_ones_are_the_keys() -> None:
    route = Route()
    route.refused(0.0)
    assert not route.refusals.are_of_the_key
    route.refused(1.0, instruction=2)
    assert route.refusals.are_of_the_key


def test_the_list_of_models_is_asked_for_at_most_once_a_minute() -> None:
    refusals = Refusals(accepted=True)
    asked = [at for at in range(0, 300, 7) if refusals.may_ask(float(at))]
    assert asked == [0, 63, 126, 189, 252]


def test_a_call_that_several_routes_refused_fails_when_one_of_them_turns_out_to_be_good() -> None:
    first, second = Route(), Route()
    doubt = Doubt()
    first.refused(0.0, doubt=doubt)
    second.refused(1.0, doubt=doubt)
    first.refusals.decide(own=False)  # closed; the other one is there
    assert (first.failed, second.failed) == ([], [])
    second.refusals.answered(sent=2.0)
    assert first.failed + second.failed == [1]


def test_a_call_that_several_routes_refused_is_asked_again_when_all_of_them_are_closed() -> None:
    first, second = Route(), Route()
    doubt = Doubt()
    first.refused(0.0, doubt=doubt)
    second.refused(1.0, doubt=doubt)
    first.refusals.decide(own=False)
    second.refusals.drop()
    first.refusals.answered(sent=2.0)
    assert first.failed + second.failed == []


def test_a_trial_that_a_good_key_refused_fails_as_soon_as_no_other_route_takes_it() -> None:
    failed: list[int] = []
    route, doubt = Route(), Doubt()
    error = CallError("no", Fault.AUTHENTICATION, status=403, by_status=403)
    route.refusals.refused(Refusal(error, 0.0, 1, 1, again=False, doubt=doubt))
    route.refusals.answered(sent=1.0)
    assert failed == [], "it is on its way by another route"
    doubt.fail(lambda: failed.append(1))
    assert failed == [1]


@dataclass
class Listing:
    """A provider whose list of models is as told, one after the other."""

    said: list[Exception | None]

    async def check(self) -> str | None:
        if (said := self.said.pop(0)) is not None:
            raise said
        return None


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ([None], False),
        ([InputError("nobody answers")], False),
        ([KeyRefusedError("no"), None], False),
        ([KeyRefusedError("no"), KeyRefusedError("no")], True),
    ],
)
def test_a_key_is_refused_where_its_list_is_refused_twice(said: list[Exception | None], refused: bool) -> None:
    listing = Listing(said)
    assert asyncio.run(is_key_refused(listing)) is refused
    assert listing.said == []
