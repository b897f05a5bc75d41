"""The two-stage protocol: reasons first, then one character.

Source: docs/protocols.md; arXiv 2509.23510, "two-stage preference elicitation".

Asking for reasons before a verdict keeps weak judges from answering the instruction instead of judging the answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from venire.arena.records import Conversation, Material, Outcome, Preference, Reply, Shape, Status, Trial
from venire.judges.conversation import CUT_SHORT, Message, answer, make_request, step, user
from venire.judges.entry import REASONS, SHORT, Example, ProtocolEntry
from venire.judges.parsing.choices import WHOLE, read_choice
from venire.judges.prompts import choose, dress, fixed, show_completion, show_instruction

__all__ = ["PROMPTS", "TWO_STAGE", "two_stage"]

PROMPTS = ("reasons", "verdict", "repair")
_WINNER = {0: 0, 1: 1, 2: -1}


def two_stage(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Ask for reasons, then for one of 1, 2 and 0, then once more for the form if it cannot be read.

    Options: `max_tokens` of each reply, `temperature` (absent: the model's own), `repair` ("1" or "0").
    Reasons cut off at the limit are still reasons and the verdict is asked; reasons that are empty, refused or
    filtered end the trial.
    """
    question = user(_question(material, options))
    reasons = yield from step(make_request(trial, options, (question,)))
    if reasons.finish in ("content_filter", "refusal") or not reasons.text.strip():
        return Outcome(CUT_SHORT.get(reasons.finish, Status.UNREADABLE))
    verdict, again = (fixed("two_stage", name, options) for name in ("verdict", "repair"))
    so_far: tuple[Message, ...] = (question, {"role": "assistant", "content": reasons.text}, user(verdict))
    return (yield from answer(make_request(trial, options, so_far), again, options, _read))


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
    return Preference(_WINNER[choice]), rule, rule in WHOLE


TWO_STAGE = ProtocolEntry(
    number=1,
    shape=Shape.PAIR,
    talk=dress(two_stage, 2),
    prompts=PROMPTS,
    folder="two_stage",
    expects=(REASONS, SHORT),
    examples=(
        Example(("The first is right.", "1"), Preference(1)),
        Example(("Both are right.", "0"), Preference(0)),
        Example(("Hard to say.", "The second, I think, or the first.", "2"), Preference(-1)),
    ),
    rehearse="venire.simulation.comparisons:compare_in_two_stages",
)
