"""The criteria protocol: six scores from 1 to 10 for each of two answers and a preference, as JSON.

Source: docs/protocols.md; the Soft-Elo paper.

Scores carry more than a bare preference: the mean difference is what soft ratings are made of. Where a judge's
preference and its scores point to different sides, both are kept as they are: the preference is the label, and the
score is the score.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from venire.arena.records import Conversation, Material, Preference, Reply, Trial
from venire.arena.shapes import Shape
from venire.judges.conversation import ask_with_repair, make_request, user_message
from venire.judges.entry import REASONS_TOKENS, ProtocolEntry, ReplyExample
from venire.judges.parsing.scores import read_scores
from venire.judges.prompts import choose, fixed, show_completion, show_instruction, with_options

__all__ = ["CRITERIA", "PROMPTS", "PROTOCOL", "SCHEMA", "criteria"]

PROMPTS = ("question", "repair")
CRITERIA = ("adherence", "helpfulness", "factuality", "completeness", "clarity", "fluency")
"""The criteria in the order of `Preference.criteria`."""

_SIDE: Mapping[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "integer", "minimum": 1, "maximum": 10} for name in CRITERIA},
    "required": list(CRITERIA),
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "first": _SIDE,
        "second": _SIDE,
        "preference": {"type": "string", "enum": ["first", "second", "tie"]},
    },
    "required": ["first", "second", "preference"],
    "additionalProperties": False,
}
"""The answer as a JSON Schema."""


def criteria(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Ask for the scores and the preference, then once more for the form if they cannot be read.

    Options: `max_tokens`, `temperature` (absent: the model's own), `repair` ("1" or "0"). The score of the outcome is
    the mean over the criteria of first minus second.
    """
    question = choose("criteria", "question", options).substitute(
        instruction=show_instruction(material),
        first=show_completion(material, 0),
        second=show_completion(material, 1),
    )
    request = make_request(trial, options, (user_message(question),), schema=SCHEMA)
    return (yield from ask_with_repair(request, fixed("criteria", "repair", options), options, _read))


def _read(reply: Reply) -> tuple[Preference, str, bool] | None:
    if (found := read_scores(reply.text, CRITERIA)) is None:
        return None
    scores, rule = found
    mean = sum(first - second for first, second in scores.pairs) / len(scores.pairs)
    # An object that came whole is not missing anything: only the explanation after it can have been cut off.
    return Preference(scores.winner, mean, scores.pairs), rule, True


_EXAMPLE = {"first": dict.fromkeys(CRITERIA, 8), "second": dict.fromkeys(CRITERIA, 5), "preference": "first"}

PROTOCOL = ProtocolEntry(
    number=2,
    shape=Shape(2, Preference),
    talk=with_options(criteria),
    prompts=PROMPTS,
    folder="criteria",
    expects=(REASONS_TOKENS,),
    examples=(ReplyExample((json.dumps(_EXAMPLE),), Preference(1, 3.0, ((8.0, 5.0),) * len(CRITERIA))),),
    rehearse="venire.simulation.comparisons:compare",
)
