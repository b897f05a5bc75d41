"""The two-stage protocol: reasons first, then one character.

Source: docs/protocols.md; arXiv 2509.23510, "two-stage preference elicitation".

Asking for reasons before a verdict keeps weak judges from answering the instruction instead of judging the answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from venire.arena.records import Conversation, Material, Outcome, Preference, Reply, Status, Trial
from venire.arena.shapes import Shape
from venire.judges.conversation import STATUS_OF_FINISH, Message, ask_step, ask_with_repair, make_request, user_message
from venire.judges.entry import REASONS_TOKENS, VERDICT_TOKENS, ProtocolEntry, ReplyExample
from venire.judges.parsing.choices import WHOLE_CHOICES, read_choice
from venire.judges.prompts import choose, fixed, show_completion, show_instruction, with_options

__all__ = ["PROMPTS", "TWO_STAGE", "two_stage"]

PROMPTS = ("reasons", "verdict", "repair")
_WINNER = {0: 0, 1: 1, 2: -1}


def two_stage(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Ask for reasons, then for one of 1, 2 and 0, then once more for the form if it cannot be read.

    Options: `max_tokens` of each reply, `temperature` (absent: the model's own), `repair` ("1" or "0").
    Reasons cut off at the limit are still reasons and the verdict is asked; reasons that are empty, refused or
    filtered end the trial.
    """
    question = user_message(_question(material, options))
    reasons = yield from ask_step(make_request(trial, options, (question,)))
    if reasons.finish in ("content_filter", "refusal") or not reasons.text.strip():
        return Outcome(STATUS_OF_FINISH.get(reasons.finish, Status.UNREADABLE))
    verdict, again = (fixed("two_stage", name, options) for name in ("verdict", "repair"))
    so_far: tuple[Message, ...] = (question, {"role": "assistant", "content": reasons.text}, user_message(verdict))
    return (yield from ask_with_repair(make_request(trial, options, so_far), again, options, _read))


def _question(material: Material, options: Mapping[str, str]) -> str:
    return choose("two_stage", "reasons", options).substitute(
        instruction=show_instruction(material),
        first=show_completion(material, 0),
        second=show_completion(material, 1),
    )


def _read(reply: Reply) -> tuple[Preference, str, bool] | None:
    if (found := read_choice(reply.text)) is None:
        return None
    choice, rule = found
    return Preference(_WINNER[choice]), rule, rule in WHOLE_CHOICES


TWO_STAGE = ProtocolEntry(
    number=1,
    shape=Shape(2, Preference),
    talk=with_options(two_stage, 2),
    prompts=PROMPTS,
    folder="two_stage",
    expects=(REASONS_TOKENS, VERDICT_TOKENS),
    examples=(
        ReplyExample(("The first is right.", "1"), Preference(1)),
        ReplyExample(("Both are right.", "0"), Preference(0)),
        ReplyExample(("Hard to say.", "The second, I think, or the first.", "2"), Preference(-1)),
    ),
    rehearse="venire.simulation.comparisons:compare_in_two_stages",
)
