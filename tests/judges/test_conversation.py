"""A conversation picks up wherever its replies on record end, at the request it would have made anyway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.records import (
    Completion,
    Conversation,
    GeneratedText,
    Instruction,
    Material,
    Outcome,
    Preference,
    Reply,
    Request,
    Status,
    Trial,
)
from venire.judges import PROTOCOLS
from venire.judges.conversation import advance

TRIAL = Trial(bytes(16), bytes(16), "two-stage", "i", (b"a", b"b"))
MATERIAL = Material(
    Instruction("i", ("Say hello.",), reference="Hello."),
    (Completion("one", "i", "Hello."), Completion("two", "i", "Bye.")),
    ("0" * 16, "1" * 16, "2" * 16),
)
OPTIONS = {"max_tokens": "64", "temperature": "0"}
FINISHES = ("stop", "stop", "length", "content_filter", "refusal")
SIX = "adherence", "helpfulness", "factuality", "completeness", "clarity", "fluency"
SIDE = "{" + ", ".join(f'"{name}": 5' for name in SIX) + "}"
SCORES = f'{{"first": {SIDE}, "second": {SIDE}, "preference": "tie"}}'
TEXTS = ("", " ", "1", "2", "0", "Answer: 2", "1 or 2", "<think>1", "A", "A > B", "B>>A", "NO_ECHO", SCORES)

replies = st.builds(Reply, st.sampled_from(TEXTS), st.sampled_from(FINISHES), st.sampled_from(("", "Hm.")))
scripts = st.lists(replies, min_size=6, max_size=6)
"""As many as the longest conversation has steps: reasons, verdict and repair, each cut off in thought once."""
names = st.sampled_from(sorted(PROTOCOLS))


def in_one_go(name: str, script: Sequence[Reply]) -> tuple[list[Request], Outcome | None]:
    """Every request that the script brings about, and the outcome where it ends the conversation."""
    talk = PROTOCOLS[name].talk(TRIAL, MATERIAL, OPTIONS)
    requests = [next(talk)]
    for reply in script:
        try:
            requests.append(talk.send(reply))
        except StopIteration as end:
            return requests, end.value
    return requests, None


@given(names, scripts)
def test_every_prefix_of_replies_resumes_to_the_same_request(name: str, script: list[Reply]) -> None:
    requests, outcome = in_one_go(name, script)
    assert outcome is not None
    talk = PROTOCOLS[name].talk
    for n, request in enumerate(requests):
        assert advance(talk, TRIAL, MATERIAL, OPTIONS, script[:n]) == request
    assert advance(talk, TRIAL, MATERIAL, OPTIONS, script[: len(requests)]) == outcome


@given(names, scripts, st.lists(replies, min_size=1, max_size=3))
def test_replies_left_over_change_nothing(name: str, script: list[Reply], more: list[Reply]) -> None:
    requests, outcome = in_one_go(name, script)
    over = [*script[: len(requests)], *more]
    assert advance(PROTOCOLS[name].talk, TRIAL, MATERIAL, OPTIONS, over) == outcome


class Spelling:
    """A protocol that asks for three letters; it notes what it was sent and whether it was closed."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.closed = 0

    def __call__(self, trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
        try:
            for n in range(3):
                reply = yield Request(({"role": "user", "content": f"{options['word']} {n}"},), max_tokens=trial.repeat)
                self.heard.append(reply.text)
        finally:
            self.closed += 1
        return Outcome(Status.OK, GeneratedText("".join(self.heard)))


@pytest.mark.parametrize("n", range(3))
def test_a_conversation_that_waits_is_closed(n: int) -> None:
    protocol = Spelling()
    found = advance(protocol, TRIAL, MATERIAL, {"word": "letter"}, [Reply(text) for text in "abc"[:n]])
    assert found == Request(({"role": "user", "content": f"letter {n}"},), max_tokens=1)
    assert protocol.closed == 1


def test_replies_are_sent_in_step_order() -> None:
    protocol = Spelling()
    found = advance(protocol, TRIAL, MATERIAL, {"word": "letter"}, [Reply(text) for text in "abc"])
    assert found == Outcome(Status.OK, GeneratedText("abc"))
    assert protocol.closed == 1


def test_the_replies_on_record_are_left_as_they_are() -> None:
    script = [Reply("Reasons."), Reply("1")]
    for kept in (script, tuple(script)):
        assert advance(PROTOCOLS["two-stage"].talk, TRIAL, MATERIAL, OPTIONS, kept) == Outcome(
            Status.OK, Preference(1), "bare"
        )
    assert script == [Reply("Reasons."), Reply("1")]


def test_a_conversation_without_steps_has_its_outcome_at_once() -> None:
    def silent(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
        yield from ()
        return Outcome(Status.TOO_LONG)

    assert advance(silent, TRIAL, MATERIAL, OPTIONS, []) == Outcome(Status.TOO_LONG)
    assert advance(silent, TRIAL, MATERIAL, OPTIONS, [Reply("1")]) == Outcome(Status.TOO_LONG)


def test_an_error_of_a_protocol_comes_out() -> None:
    with pytest.raises(KeyError, match="max_tokens"):
        advance(PROTOCOLS["two-stage"].talk, TRIAL, MATERIAL, {}, [])
