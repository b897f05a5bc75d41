"""The generate protocol: a contestant is put the instruction, as a person would put it, and its text is a completion.

Nothing is added and nothing is fenced: the instruction is what the respondent is to follow here.
"""

from __future__ import annotations

from collections.abc import Mapping

from venire.arena.records import Conversation, GeneratedText, Material, Outcome, Reply, Status, Trial
from venire.arena.shapes import Shape
from venire.judges.conversation import STATUS_OF_FINISH, Message, ask_step, make_request, user_message
from venire.judges.entry import ProtocolEntry, ReplyExample
from venire.judges.parsing.reply_text import without_leading_thoughts
from venire.judges.prompts import join_turn_answers, turn_roles, with_options

__all__ = ["GENERATE", "PROMPTS", "generate"]

PROMPTS: tuple[str, ...] = ()


def generate(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Put the turns of an instruction as a conversation and take the reply as it comes.

    Where all turns are the user's, each is put after the answer to the one before, and the completion has a part for
    each. Options: `max_tokens` of each reply, `temperature` (absent: the model's own). A completion that was cut at the
    limit is truncated, an empty one unreadable. Thoughts in front of the text are left out of the completion.
    """
    turns = material.instruction.turns
    if "assistant" in turn_roles(turns):
        said = tuple({"role": who, "content": turn} for who, turn in zip(turn_roles(turns), turns, strict=True))
        return _read((yield from ask_step(make_request(trial, options, said))))
    so_far: tuple[Message, ...] = ()
    parts: list[str] = []
    for turn in turns:
        so_far += (user_message(turn),)
        outcome = _read((yield from ask_step(make_request(trial, options, so_far))))
        if not isinstance(outcome.reading, GeneratedText):
            return outcome
        parts.append(outcome.reading.text)
        so_far += ({"role": "assistant", "content": parts[-1]},)
    return outcome if len(parts) == 1 else Outcome(Status.OK, GeneratedText(join_turn_answers(parts)), "text")


def _read(reply: Reply) -> Outcome:
    if reply.finish in STATUS_OF_FINISH:
        return Outcome(STATUS_OF_FINISH[reply.finish])
    text = without_leading_thoughts(reply.text)
    return Outcome(Status.UNREADABLE) if not text.strip() else Outcome(Status.OK, GeneratedText(text), "text")


GENERATE = ProtocolEntry(
    number=9,
    shape=Shape(0, GeneratedText),
    talk=with_options(generate),
    prompts=PROMPTS,
    folder="generate",
    expects=(600,),
    examples=(ReplyExample(("The Volga.",), GeneratedText("The Volga.")),),
    rehearse="venire.simulation.contestants:write",
)
