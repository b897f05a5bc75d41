"""The direct protocol: is one answer correct, incorrect or no attempt; also against a reference.

Source: docs/protocols.md; Remeli and Hardt 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from venire.arena.records import AnswerGrade, Conversation, Grade, Material, Reply, Trial
from venire.arena.shapes import Shape
from venire.judges.conversation import ask_with_repair, make_request, user_message
from venire.judges.entry import VERDICT_TOKENS, ProtocolEntry, ReplyExample
from venire.judges.parsing.letters import WHOLE_LETTERS, Words, read_word
from venire.judges.prompts import choose, fixed, show_completion, show_instruction, show_reference, with_options

__all__ = ["DIRECT", "DIRECT_REFERENCE", "PROMPTS", "direct", "direct_reference"]

PROMPTS = ("question", "repair")
_WORD = {
    AnswerGrade.CORRECT: "correct",
    AnswerGrade.INCORRECT: "incorrect",
    AnswerGrade.NOT_ATTEMPTED: "not attempted",
}
_GRADES = Words(
    {
        "a": AnswerGrade.CORRECT,
        "b": AnswerGrade.INCORRECT,
        "c": AnswerGrade.NOT_ATTEMPTED,
        "correct": AnswerGrade.CORRECT,
        "incorrect": AnswerGrade.INCORRECT,
        **dict.fromkeys(("not attempted", "not_attempted", "not-attempted"), AnswerGrade.NOT_ATTEMPTED),
    },
    re.compile(r"\b[ABC]\b|(?i:\bnot[ _-]attempted\b|\bincorrect\b|\bcorrect\b)"),
)


def direct(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Ask whether the one completion is correct, without ground truth: A, B or C; once more for the form if need be.

    Options: `max_tokens`, `temperature` (absent: the model's own), `repair` ("1" or "0"). The label of the outcome is
    1 correct, 0 incorrect, 2 not attempted.
    """
    question = choose("direct", "question", options).substitute(
        instruction=show_instruction(material), answer=show_completion(material, 0)
    )
    request = make_request(trial, options, (user_message(question),))
    return (yield from ask_with_repair(request, fixed("direct", "repair", options), options, _read))


def direct_reference(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """The same with the instruction's reference answer to grade against; options and outcome are those of `direct`.

    Raises ValueError for an instruction without a reference answer: a plan leaves such instructions out.
    """
    question = choose("direct_reference", "question", options).substitute(
        instruction=show_instruction(material),
        answer=show_completion(material, 0),
        reference=show_reference(material),
    )
    request = make_request(trial, options, (user_message(question),))
    return (yield from ask_with_repair(request, fixed("direct_reference", "repair", options), options, _read))


def _read(reply: Reply) -> tuple[Grade, str, bool] | None:
    if (found := read_word(reply.text, _GRADES)) is None:
        return None
    label, rule = found
    return Grade(int(label), _WORD[AnswerGrade(label)]), rule, rule in WHOLE_LETTERS


_EXAMPLES = (
    ReplyExample(("A",), Grade(1, "correct")),
    ReplyExample(("B",), Grade(0, "incorrect")),
    ReplyExample(("It depends.", "C"), Grade(2, "not attempted")),
)

DIRECT = ProtocolEntry(
    number=4,
    shape=Shape(1, Grade),
    talk=with_options(direct),
    prompts=PROMPTS,
    folder="direct",
    expects=(VERDICT_TOKENS,),
    examples=_EXAMPLES,
    rehearse="venire.simulation.grades:grade",
)
DIRECT_REFERENCE = ProtocolEntry(
    number=5,
    shape=Shape(1, Grade),
    talk=with_options(direct_reference),
    prompts=PROMPTS,
    folder="direct_reference",
    expects=(VERDICT_TOKENS,),
    needs_reference=True,
    examples=_EXAMPLES,
    rehearse="venire.simulation.grades:grade",
)
