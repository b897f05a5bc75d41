"""The edit protocol: an editor writes a completion again with one change, such as an echo (docs/protocols.md).

What comes back is an edited copy of the completion, and no verdict. The prompt says what is changed; that of this
folder makes an echo, as in Remeli and Hardt 2026.
"""

from __future__ import annotations

from collections.abc import Mapping

from venire.arena.records import Conversation, GeneratedText, Material, Outcome, Reply, Status, Trial
from venire.arena.shapes import Shape
from venire.judges.conversation import STATUS_OF_FINISH, ask_step, make_request, user_message
from venire.judges.entry import ProtocolEntry, ReplyExample
from venire.judges.parsing.reply_text import without_leading_thoughts
from venire.judges.prompts import choose, show_completion, show_instruction, with_options

__all__ = ["EDIT", "PROMPTS", "edit"]

PROMPTS = ("edit",)


def edit(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Ask for the one completion with a change, and take the reply as it comes.

    Options: `max_tokens`, `temperature` (absent: the model's own), `prompt.edit` (a text of one's own). A copy that was
    cut at the limit is truncated, an empty one unreadable. Thoughts in front of the text are left out.
    """
    question = choose("edit", "edit", options).substitute(
        instruction=show_instruction(material), answer=show_completion(material, 0)
    )
    return _read((yield from ask_step(make_request(trial, options, (user_message(question),)))))


def _read(reply: Reply) -> Outcome:
    if reply.finish in STATUS_OF_FINISH:
        return Outcome(STATUS_OF_FINISH[reply.finish])
    text = without_leading_thoughts(reply.text)
    return Outcome(Status.UNREADABLE) if not text.strip() else Outcome(Status.OK, GeneratedText(text), "text")


EDIT = ProtocolEntry(
    number=11,
    shape=Shape(1, GeneratedText),
    talk=with_options(edit),
    prompts=PROMPTS,
    folder="edit",
    expects=(800,),
    examples=(ReplyExample(("The Volga.\n\nQuestion: Which?",), GeneratedText("The Volga.\n\nQuestion: Which?")),),
    rehearse="venire.simulation.contestants:edit",
)
