"""The listwise protocol: all answers to an instruction at once, anonymous, to be ranked.

Source: docs/protocols.md; arXiv 2510.15746.

The order shown is drawn when the trial is planned. The judge's own answer may be among them; nothing in the prompt
names the authors. One call ranks a whole field, at the price of a long prompt.
"""

from __future__ import annotations

from collections.abc import Mapping

from venire.arena.records import Ballot, Conversation, Material, Reply, Trial
from venire.arena.shapes import Shape
from venire.judges.conversation import ask_with_repair, make_request, user_message
from venire.judges.entry import ProtocolEntry, ProtocolOption, ReplyExample
from venire.judges.parsing.rankings import WHOLE_RANKINGS, read_ranking
from venire.judges.prompts import answer_labels, choose, fixed, show_instruction, show_list, with_options

__all__ = ["LISTWISE", "PROMPTS", "listwise"]

PROMPTS = ("all", "best", "repair")


def listwise(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Ask for a ranking of all answers or of the best few, then once more for the form if it cannot be read.

    Options: `max_tokens`, `temperature` (absent: the model's own), `repair` ("1" or "0"), `best` (how many are to be
    ranked; absent: all). A ranking names each answer once; one of the best k names exactly k. The places of the
    outcome are in the order shown, 1 the best, and 0 for what was not ranked.
    """
    names = answer_labels(material.shown)
    best = min(int(options.get("best", len(names))), len(names))
    question = choose("listwise", "best" if best < len(names) else "all", options).substitute(
        instruction=show_instruction(material),
        answers=show_list(material),
        number=str(best),
    )

    def read(reply: Reply) -> tuple[Ballot, str, bool] | None:
        if (found := read_ranking(reply.text, names, best)) is None:
            return None
        order, rule = found
        # A label of two digits that was cut is another label.
        whole = rule in WHOLE_RANKINGS and len(names[-1]) == 1
        return Ballot(_places(order, len(names))), rule, whole

    request = make_request(trial, options, (user_message(question),))
    return (yield from ask_with_repair(request, fixed("listwise", "repair", options), options, read))


def _places(order: tuple[int, ...], shown: int) -> tuple[int, ...]:
    place = {answer: number for number, answer in enumerate(order, 1)}
    return tuple(place.get(answer, 0) for answer in range(shown))


def _is_count(value: str) -> bool:
    return value.isascii() and value.isdecimal() and int(value) > 0


LISTWISE = ProtocolEntry(
    number=6,
    shape=Shape(None, Ballot),
    talk=with_options(listwise),
    prompts=PROMPTS,
    folder="listwise",
    expects=(60,),
    options={"best": ProtocolOption(_is_count, "a whole number of at least 1")},
    examples=(ReplyExample(("B > C > A",), Ballot((3, 1, 2))), ReplyExample(("Hm.", "A > B > C"), Ballot((1, 2, 3)))),
    rehearse="venire.simulation.rehearsal:rank",
)
