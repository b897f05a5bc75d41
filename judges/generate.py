"""The generate protocol: a contestant is put the instruction, as a person would put it, and its text is a completion.

Nothing is added and nothing is fenced: the instruction is what the respondent is to follow here.
"""

from __future__ import annotations

from collections.abc import Mapping

from venire.arena.records import Answer, Conversation, Material, Outcome, Reply, Status, Trial
from venire.judges.asking import CUT_SHORT, make_request, step
from venire.judges.parsing.choices import without_thoughts
from venire.judges.showing import speakers

__all__ = ["PROMPTS", "generate"]

PROMPTS: tuple[str, ...] = ()


def generate(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Put the turns of an instruction as a conversation and take the reply as it comes.

    Options: `max_tokens`, `temperature` (absent: the model's own). A completion that was cut at the limit is
    truncated, an empty one unreadable. Thoughts in front of the text are left out of the completion.
    """
    turns = material.instruction.turns
    said = tuple({"role": who, "content": turn} for who, turn in zip(speakers(turns), turns, strict=True))
    reply = yield from step(make_request(trial, options, said))
    return _read(reply)


def _read(reply: Reply) -> Outcome:
    if reply.finish in CUT_SHORT:
        return Outcome(CUT_SHORT[reply.finish])
    text = _without_leading_thoughts(reply.text)
    return Outcome(Status.UNREADABLE) if not text.strip() else Outcome(Status.OK, Answer(text), "text")


def _without_leading_thoughts(text: str) -> str:
    """The text after its thoughts, nothing where they do not end; a tag that an answer speaks of later is left."""
    said = without_thoughts(text)
    if said is not None:
        return text if said == text else said.lstrip()
    return "" if text.lstrip().startswith("<") else text
