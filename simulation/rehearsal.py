"""From a chat request to what a simulated model answers, whatever it is asked for. Pure: no network, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from venire.arena.errors import InputError
from venire.arena.keys import fence
from venire.arena.records import Completion, Instruction, Material, Request, Shape, Trial
from venire.judges import PROTOCOLS
from venire.judges.conversation import advance
from venire.simulation.answer_key import AnswerKey
from venire.simulation.chat_replies import UNREADABLE, JudgeReply, Rehearse, answered, remarks, spoken
from venire.simulation.chat_requests import Ask, Asked, ask_of, recognise
from venire.simulation.comparisons import draw
from venire.simulation.grades import seen, shown
from venire.simulation.judge import SimulatedVerdict, parse_model

__all__ = ["answer_to", "check_rehearsal", "grading", "pairwise"]


def answer_to(ask: Ask, answer_key: AnswerKey) -> JudgeReply:
    """What the simulated model named in a request answers, by the protocol that its words ask for.

    Raises `InputError` for a model that is not simulated.
    """
    asked = recognise(ask)
    return _rehearsal(asked.protocol, PROTOCOLS.changes)(ask, asked, answer_key)


@lru_cache(maxsize=64)
def _rehearsal(protocol: str, changes: int) -> Rehearse:
    """What the entry refers to, looked up once while the registry does not change."""
    found: Rehearse | None = PROTOCOLS[protocol].rehearsal
    assert found is not None  # nothing else is recognised
    return found


_SHOWN = {Shape.NONE: 0, Shape.SINGLE: 1, Shape.PAIR: 2, Shape.LIST: 3}


def pairwise(say: Callable[[SimulatedVerdict], str], *, reasons: bool = False) -> Rehearse:
    """The rehearsal of a protocol that shows a pair: `say` puts a verdict into words, in the order shown.

    With `reasons` remarks of the profile's length stand before it. The verdict's `z` is above 0 where the first answer
    is the better one to this judge, in logits.

    >>> rehearse = pairwise(lambda verdict: "first" if verdict.z > 0 else "second")
    """

    def reply(ask: Ask, asked: Asked, answer_key: AnswerKey) -> JudgeReply:
        drawn = draw(ask, asked, answer_key)
        if isinstance(drawn, JudgeReply):
            return drawn
        text = say(drawn.said)
        if reasons and not ask.quoted:
            text = f"{remarks(drawn.profile, drawn.seed, drawn.found, ask.repeat, drawn.said.reply_tokens)}\n\n{text}"
        return spoken(drawn.profile, ask, text, drawn.noise)

    return reply


def grading(say: Callable[[float | None], str]) -> Rehearse:
    """The rehearsal of a protocol that shows one completion: `say` puts into words by how much it is correct.

    That is in logits as the judge sees it, above 0 for correct; None where nothing was attempted.

    >>> rehearse = grading(lambda margin: "yes" if margin is not None and margin > 0 else "no")
    """

    def reply(ask: Ask, asked: Asked, answer_key: AnswerKey) -> JudgeReply:
        profile, seed = parse_model(ask.model)
        known = shown(asked, answer_key)
        if known is None:
            return spoken(profile, ask, UNREADABLE, 1.0, tokens=1)
        trial = (asked.protocol, known.instruction_id, known.model, ask.repeat)
        return answered(profile, seed, ask, trial, say(seen(profile, seed, known, "direct", ask.repeat)))

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
    taken = recognise(ask_of(model, request, structured=False)).protocol
    if taken != protocol:
        raise InputError(
            f"a simulated judge takes these prompts for those of protocol {taken!r}, and would answer as that asks: "
            f"keep in them what a reply of protocol {protocol!r} must look like, or ask another judge"
        )
