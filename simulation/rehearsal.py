"""Rehearsals: what a simulated model answers to a chat request, by the judge protocol that it is of. Pure.

A protocol's entry refers to a `Rehearse` function. `pairwise` and `grading` make one of a function that only puts into
words what was drawn; `check_rehearsal` sees that a judge's prompts are recognised as those of its protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from venire.arena.errors import InputError
from venire.arena.keys import fence
from venire.arena.records import Completion, Instruction, Material, Request, Shape, Trial
from venire.judges import PROTOCOLS
from venire.judges.conversation import advance
from venire.simulation.answer_key import AnswerKey
from venire.simulation.chat_replies import UNREADABLE, JudgeReply, Rehearse, fallible_reply, remarks, timed_reply
from venire.simulation.chat_requests import ChatRequest, RecognisedQuestion, chat_request_of, recognise
from venire.simulation.comparisons import draw_verdict
from venire.simulation.grades import find_graded_completion, perceived_margin
from venire.simulation.judge import SimulatedVerdict, parse_model

__all__ = ["answer_to", "check_rehearsal", "grading", "pairwise"]

_SHOWN = {Shape.NONE: 0, Shape.SINGLE: 1, Shape.PAIR: 2, Shape.LIST: 3}
"""Completions that a trial of each shape shows in the check."""


def answer_to(request: ChatRequest, answer_key: AnswerKey) -> JudgeReply:
    """What the simulated model named in a request answers, by the protocol that its words ask for.

    Raises `InputError` for a model that is not simulated.
    """
    question = recognise(request)
    return _rehearsal(question.protocol, PROTOCOLS.changes)(request, question, answer_key)


@lru_cache(maxsize=64)
def _rehearsal(protocol: str, changes: int) -> Rehearse:
    """What the entry refers to, looked up once while the registry does not change."""
    rehearse: Rehearse | None = PROTOCOLS[protocol].rehearsal
    assert rehearse is not None  # nothing else is recognised
    return rehearse


def pairwise(say: Callable[[SimulatedVerdict], str], *, reasons: bool = False) -> Rehearse:
    """The rehearsal of a protocol that shows a pair: `say` puts a verdict into words, in the order shown.

    With `reasons` remarks of the profile's length stand before it. The verdict's `z` is above 0 where the first answer
    is the better one to this judge, in logits.

    >>> rehearse = pairwise(lambda verdict: "first" if verdict.z > 0 else "second")
    """

    def reply(request: ChatRequest, question: RecognisedQuestion, answer_key: AnswerKey) -> JudgeReply:
        drawn = draw_verdict(request, question, answer_key)
        if isinstance(drawn, JudgeReply):
            return drawn
        text = say(drawn.simulated)
        if reasons and not request.quoted:
            tokens = drawn.simulated.reply_tokens
            text = f"{remarks(drawn.profile, drawn.seed, drawn.completions, request.repeat, tokens)}\n\n{text}"
        return timed_reply(drawn.profile, request, text, drawn.noise)

    return reply


def grading(say: Callable[[float | None], str]) -> Rehearse:
    """The rehearsal of a protocol that shows one completion: `say` puts into words by how much it is correct.

    That is in logits as the judge sees it, above 0 for correct; None where nothing was attempted.

    >>> rehearse = grading(lambda margin: "yes" if margin is not None and margin > 0 else "no")
    """

    def reply(request: ChatRequest, question: RecognisedQuestion, answer_key: AnswerKey) -> JudgeReply:
        profile, seed = parse_model(request.model)
        known = find_graded_completion(question, answer_key)
        if known is None:
            return timed_reply(profile, request, UNREADABLE, 1.0, tokens=1)
        trial = (question.protocol, known.instruction_id, known.model, request.repeat)
        return fallible_reply(
            profile, seed, request, trial, say(perceived_margin(profile, seed, known, "direct", request.repeat))
        )

    return reply


def check_rehearsal(protocol: str, model: str, options: Mapping[str, str]) -> None:
    """See that a simulated judge knows what a judge with these options asks it.

    Raises InputError for a protocol without a rehearsal, and for prompts that are taken for those of another protocol:
    its replies would be read by rules that they are not written for.
    """
    entry = PROTOCOLS[protocol]
    if entry.rehearsal is None:
        raise InputError(
            f"protocol {protocol!r} cannot be rehearsed: {PROTOCOLS.package(protocol)} does not say how a simulated "
            "judge replies; ask another judge, or choose another protocol"
        )
    texts = ("What is the longest river?", *("ABC"[: _SHOWN[entry.shape]]))
    material = Material(
        Instruction("i", texts[:1], reference="A river."),
        tuple(Completion(f"model {text}", "i", text) for text in texts[1:]),
        tuple(fence(text, bytes(16)) for text in texts),
    )
    settings = {name: value for name, value in options.items() if name not in ("too_long", "context")}
    request = advance(entry.talk, Trial(bytes(16), bytes(16), protocol, "i", ()), material, settings, ())
    assert isinstance(request, Request)  # nothing has been said yet that could end it
    taken = recognise(chat_request_of(model, request, structured=False)).protocol
    if taken != protocol:
        raise InputError(
            f"a simulated judge takes these prompts for those of protocol {taken!r}, and would answer as that asks: "
            f"keep in them what a reply of protocol {protocol!r} must look like, or ask another judge"
        )
