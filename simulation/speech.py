"""From a chat request to what a simulated model answers, whatever it is asked for. Pure: no network, no clock."""

from __future__ import annotations

from venire.simulation.answers import AnswerKey
from venire.simulation.ballots import rank
from venire.simulation.contestants import write
from venire.simulation.dialect import Ask
from venire.simulation.grades import grade, tell_echo
from venire.simulation.recognition import recognise
from venire.simulation.replies import JudgeReply, reply_to
from venire.simulation.verdicts import compare

__all__ = ["answer_to"]


def answer_to(ask: Ask, answer_key: AnswerKey) -> JudgeReply:
    """What the simulated model named in a request answers, by the protocol that its words ask for.

    Raises `InputError` for a model that is not simulated.
    """
    asked = recognise(ask)
    match asked.protocol:
        case "criteria" | "binary" | "five-point":
            return compare(ask, asked, answer_key)
        case "direct" | "direct-reference":
            return grade(ask, asked, answer_key)
        case "echo":
            return tell_echo(ask, asked)
        case "listwise":
            return rank(ask, asked, answer_key)
        case "generate":
            return write(ask)
    return reply_to(ask, answer_key)
