"""A protocol: how much better the first answer is, as one number from -2 to 2."""

import re

from venire.arena.records import Preference
from venire.arena.shapes import Shape
from venire.judges import VERDICT_TOKENS, ProtocolEntry, ReplyExample
from venire.judges.conversation import ask_with_repair, make_request, user_message
from venire.judges.prompts import choose, fixed, show_completion, show_instruction, with_options
from venire.simulation.rehearsal import pairwise

_FOLDER = "venire_scale:prompts"
_NUMBER = re.compile(r"\s*([+-]?[0-2])\s*\.?\s*")


def scale(trial, material, options):
    """Ask for a number, then once more for the form if it cannot be read."""
    question = choose(_FOLDER, "question", options).substitute(
        instruction=show_instruction(material),
        first=show_completion(material, 0),
        second=show_completion(material, 1),
    )
    request = make_request(trial, options, (user_message(question),))
    return (yield from ask_with_repair(request, fixed(_FOLDER, "repair", options), options, _read))


def _read(reply):
    """The reading, the name of the rule that read it, and whether nothing can be missing from it."""
    if (found := _NUMBER.fullmatch(reply.text)) is None:
        return None
    score = int(found[1])
    return Preference((score > 0) - (score < 0), float(score)), "number", True


SCALE = ProtocolEntry(
    shape=Shape(2, Preference),
    talk=with_options(scale),
    prompts=("question", "repair"),
    folder=_FOLDER,
    expects=(VERDICT_TOKENS,),
    examples=(ReplyExample(("+2",), Preference(1, 2.0)), ReplyExample(("Hm.", "-1"), Preference(-1, -1.0))),
    rehearse=pairwise(lambda verdict: str(max(-2, min(2, round(verdict.z))))),
)
