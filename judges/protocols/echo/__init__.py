"""The echo protocol: does an answer go on after its final answer (docs/protocols.md; Remeli and Hardt 2026)?

Some models repeat a phrase to their limit, or invent new questions and answer them. Such answers bias judges,
so they are identified before anything is ranked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from venire.arena.records import Conversation, Grade, Material, Reply, Trial
from venire.arena.shapes import Shape
from venire.judges.conversation import ask_with_repair, make_request, user_message
from venire.judges.entry import VERDICT_TOKENS, ProtocolEntry, ReplyExample
from venire.judges.parsing.letters import WHOLE_LETTERS, Words, read_word
from venire.judges.prompts import choose, fixed, show_completion, show_instruction, with_options

__all__ = ["ECHO", "PROMPTS", "echo"]

PROMPTS = ("question", "repair")
_WORD = {1: "ECHO", 0: "NO_ECHO"}
_ECHOES = Words(
    {"echo": 1, "no_echo": 0, "no echo": 0, "no-echo": 0}, re.compile(r"\b(?:no[ _-])?echo\b", re.IGNORECASE)
)


def echo(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Ask for ECHO or NO_ECHO of one completion, then once more for the form if it cannot be read.

    Options: `max_tokens`, `temperature` (absent: the model's own), `repair` ("1" or "0"). The label of the outcome is
    1 for ECHO and 0 for NO_ECHO.
    """
    question = choose("echo", "question", options).substitute(
        instruction=show_instruction(material), answer=show_completion(material, 0)
    )
    request = make_request(trial, options, (user_message(question),))
    return (yield from ask_with_repair(request, fixed("echo", "repair", options), options, _read))


def _read(reply: Reply) -> tuple[Grade, str, bool] | None:
    if (found := read_word(reply.text, _ECHOES)) is None:
        return None
    label, rule = found
    return Grade(label, _WORD[label]), rule, rule in WHOLE_LETTERS


ECHO = ProtocolEntry(
    number=7,
    shape=Shape(1, Grade),
    talk=with_options(echo),
    prompts=PROMPTS,
    folder="echo",
    expects=(VERDICT_TOKENS,),
    examples=(ReplyExample(("ECHO",), Grade(1, "ECHO")), ReplyExample(("Hm.", "NO_ECHO"), Grade(0, "NO_ECHO"))),
    rehearse="venire.simulation.grades:grade_echo",
)
