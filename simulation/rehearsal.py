"""Rehearsals: a simulated model's answer to a chat request, by the judge protocol of the request. Pure.

A protocol's entry refers to a `Rehearse` function. `pairwise`, `ranking` and `grading` build one from a function that
only formats the drawn result; `check_rehearsal` verifies that a judge's prompts are recognised as its protocol's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import orjson

from venire.arena.errors import InputError
from venire.arena.keys import fence
from venire.arena.records import Completion, Instruction, Material, Request, Trial
from venire.judges import PROTOCOLS
from venire.judges.conversation import advance
from venire.judges.prompts import answer_labels
from venire.simulation.answer_key import AnswerKey
from venire.simulation.chat_replies import UNREADABLE, JudgeReply, Rehearse, fallible_reply, remarks, timed_reply
from venire.simulation.chat_requests import ChatRequest, RecognisedQuestion, RequestError, chat_request_of, recognise
from venire.simulation.comparisons import draw_ranking, draw_verdict
from venire.simulation.grades import find_graded_completion, perceived_margin
from venire.simulation.judge import SimulatedVerdict, parse_model


def answer_to(request: ChatRequest, answer_key: AnswerKey) -> JudgeReply:
    """The answer of the simulated model named in a request, by the protocol recognised from its words.

    Raises `InputError` for a model that is not simulated, and `RequestError` for a response_format that the answer to
    this question does not have.
    """
    question = recognise(request)
    reply = _rehearsal(question.protocol, PROTOCOLS.changes)(request, question, answer_key)
    # A truncated answer is no JSON at any provider, and an unreadable one is part of the judge's profile.
    if request.json_only and reply.finish == "stop" and reply.text != UNREADABLE:
        _check_json(reply.text, request.json_keys)
    return reply


def _check_json(text: str, keys: tuple[str, ...]) -> None:
    """Raises `RequestError` where an answer is not a JSON object with these keys."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise RequestError(
            "response_format cannot be honoured: a simulated model answers this question in plain text; leave "
            "response_format out",
            "response_format",
        )
    if missing := [key for key in keys if key not in found]:
        raise RequestError(
            f"response_format cannot be honoured: the answer to this question has no key {missing[0]!r}",
            "response_format",
        )


@lru_cache(maxsize=64)
def _rehearsal(protocol: str, changes: int) -> Rehearse:
    """The function that the entry refers to, looked up once per version of the registry."""
    rehearse: Rehearse | None = PROTOCOLS[protocol].rehearsal
    assert rehearse is not None  # nothing else is recognised
    return rehearse


def pairwise(say: Callable[[SimulatedVerdict], str], *, reasons: bool = False) -> Rehearse:
    """The rehearsal of a pairwise protocol: `say` formats a verdict, in presentation order.

    With `reasons` it is preceded by remarks of the profile's length. The verdict's `z`, in logits, is above 0 where
    this judge prefers the first answer.

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


def ranking(say: Callable[[tuple[str, ...]], str], *, reasons: bool = False) -> Rehearse:
    """The rehearsal of a protocol that ranks several completions: `say` formats their labels, the best first.

    With `reasons` it is preceded by remarks of the profile's usual length.

    >>> rehearse = ranking(lambda labels: labels[0])
    """

    def reply(request: ChatRequest, question: RecognisedQuestion, answer_key: AnswerKey) -> JudgeReply:
        drawn = draw_ranking(request, question, answer_key)
        if isinstance(drawn, JudgeReply):
            return drawn
        names, known = answer_labels(drawn.completions), drawn.completions
        text = say(tuple(names[place] for place in drawn.order))
        if reasons and not request.quoted:
            tokens = round(drawn.profile.reply_tokens_median)
            text = f"{remarks(drawn.profile, drawn.seed, known, request.repeat, tokens)}\n\n{text}"
        trial: tuple[str | int, ...] = (
            "list",
            known[0].instruction_id,
            *(completion.model for completion in known),
            request.repeat,
        )
        return fallible_reply(drawn.profile, drawn.seed, request, trial, text)

    return reply


rank = ranking(" > ".join)
"""The rehearsal of listwise."""


def grading(say: Callable[[float | None], str]) -> Rehearse:
    """The rehearsal of a grading protocol, with one completion: `say` formats its margin of correctness.

    The margin is in logits as the judge perceives it, above 0 for correct; None where nothing was attempted.

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
    """Check that the simulator recognises the prompts of a judge with these options.

    Raises InputError for a protocol without a rehearsal, and for prompts recognised as those of another protocol: their
    replies would not match the parser.
    """
    entry = PROTOCOLS[protocol]
    if entry.rehearsal is None:
        raise InputError(
            f"protocol {protocol!r} cannot be rehearsed: {PROTOCOLS.package(protocol)} does not say how a simulated "
            "judge replies; ask another judge, or choose another protocol"
        )
    texts = ("What is the longest river?", *(chr(65 + n) for n in range(entry.shape.size(3))))
    material = Material(
        Instruction("i", texts[:1], reference="A river."),
        tuple(Completion(f"model {text}", "i", text) for text in texts[1:]),
        tuple(fence(text, bytes(16)) for text in texts),
    )
    settings = {name: value for name, value in options.items() if name not in ("too_long", "context")}
    request = advance(entry.talk, Trial(bytes(16), bytes(16), protocol, "i", ()), material, settings, ())
    assert isinstance(request, Request)  # there is no reply yet that could end it
    taken = recognise(chat_request_of(model, request, structured=False)).protocol
    if taken != protocol:
        raise InputError(
            f"a simulated judge takes these prompts for those of protocol {taken!r}, and would answer as that asks: "
            f"keep in them what a reply of protocol {protocol!r} must look like, or ask another judge"
        )
