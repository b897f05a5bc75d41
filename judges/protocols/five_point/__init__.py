"""The five-point protocol: reasons, then one of A>>B, A>B, A=B, B>A and B>>A.

Source: docs/protocols.md; in the style of arena-hard.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from venire.arena.records import Conversation, Material, Preference, Reply, Trial
from venire.arena.shapes import Shape
from venire.judges.conversation import ask_with_repair, make_request, user_message
from venire.judges.entry import REASONS_TOKENS, ProtocolEntry, ReplyExample
from venire.judges.parsing.letters import WHOLE_LETTERS, Words, read_word
from venire.judges.prompts import choose, fixed, show_completion, show_instruction, with_options

__all__ = ["FIVE_POINT", "PROMPTS", "five_point"]

PROMPTS = ("question", "repair")
_LABELS = Words(
    {"a>>b": 2, "a>b": 1, "a=b": 0, "b>a": -1, "b>>a": -2},
    re.compile(r"\b[AB] ?(?:>>?|=) ?[AB]\b", re.IGNORECASE),
    {2: "first", 1: "first", -1: "second", -2: "second"},
)


def five_point(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Ask for reasons and one of five labels, then once more for the label alone if it cannot be read.

    Options: `max_tokens`, `temperature` (absent: the model's own), `repair` ("1" or "0"). The score of the outcome is
    2, 1, 0, -1 or -2. A reply that was cut at the limit is not read, since the label comes last.
    """
    question = choose("five_point", "question", options).substitute(
        instruction=show_instruction(material),
        first=show_completion(material, 0),
        second=show_completion(material, 1),
    )
    request = make_request(trial, options, (user_message(question),))
    return (yield from ask_with_repair(request, fixed("five_point", "repair", options), options, _read))


def _read(reply: Reply) -> tuple[Preference, str, bool] | None:
    if (found := read_word(reply.text, _LABELS)) is None:
        return None
    score, rule = found
    # A>B may be the beginning of A>>B only before its middle: a label that was read is a whole one.
    return Preference((score > 0) - (score < 0), float(score)), rule, rule in WHOLE_LETTERS


FIVE_POINT = ProtocolEntry(
    number=8,
    shape=Shape(2, Preference),
    talk=with_options(five_point),
    prompts=PROMPTS,
    folder="five_point",
    expects=(REASONS_TOKENS,),
    examples=(
        ReplyExample(("The first is far better.\n\nA>>B",), Preference(1, 2.0)),
        ReplyExample(("A=B",), Preference(0, 0.0)),
        ReplyExample(("Hm.", "B>A"), Preference(-1, -1.0)),
    ),
    rehearse="venire.simulation.comparisons:compare",
)
