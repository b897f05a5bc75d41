"""The conversation of a trial: requests and replies in turn, a repair where a reply cannot be read, and its replay.

A protocol yields requests and is sent replies. `resume` and `advance` replay it over the replies on record, which is
what resumption, live lanes and a later reparse share.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from venire.arena.records import Conversation, Material, Outcome, Protocol, Reading, Reply, Request, Status, Trial
from venire.judges.parsing.reply_text import without_thoughts

Message = Mapping[str, str]

ReplyReader = Callable[[Reply], tuple[Reading, str, bool] | None]
"""From a reply to its reading, the rule that read it, and whether nothing can be missing from what was read."""

STATUS_OF_FINISH = {"length": Status.TRUNCATED, "content_filter": Status.FILTERED, "refusal": Status.REFUSED}
"""What became of a reply that did not come to its own end."""


def user_message(text: str) -> Message:
    """A message to the respondent."""
    return {"role": "user", "content": text}


def make_request(
    trial: Trial,
    options: Mapping[str, str],
    messages: tuple[Message, ...],
    *,
    schema: Mapping[str, Any] | None = None,
    top_logprobs: int = 0,
) -> Request:
    """A request with the settings of the respondent, the trial's repeat as its seed."""
    temperature = options.get("temperature")
    return Request(
        messages,
        max_tokens=int(options["max_tokens"]),
        temperature=None if temperature is None else float(temperature),
        seed=trial.repeat,
        schema=schema,
        top_logprobs=top_logprobs,
    )


def ask_step(request: Request) -> Generator[Request, Reply, Reply]:
    """Ask a request; a reply that was cut off while the model still thought is asked once more with twice the tokens.

    Both replies are steps of the trial, paid and on record. Returns the last of them.
    """
    reply = yield request
    if _cut_in_thought(reply):
        reply = yield replace(request, max_tokens=2 * request.max_tokens, otherwise=Outcome(Status.TRUNCATED))
    return reply


def _cut_in_thought(reply: Reply) -> bool:
    """Whether the token limit cut a reply before the first word of its answer.

    Some providers tell nothing of the thoughts but the tokens that they took, and only what the store gives back may
    count here: a conversation must take the same way when it is replayed.
    """
    if reply.finish != "length":
        return False
    text = reply.text.strip()
    if not text:
        return bool(reply.reasoning or reply.output_tokens)
    return text.startswith("<") and without_thoughts(text) is None


def read_outcome(reply: Reply, read: ReplyReader) -> Outcome:
    """The outcome of a reply; one that was cut at the token limit is read only where nothing can be missing from it."""
    if reply.finish in ("content_filter", "refusal"):
        return Outcome(STATUS_OF_FINISH[reply.finish])
    if (found := read(reply)) is not None:
        reading, rule, whole = found
        if whole or reply.finish != "length":
            return Outcome(Status.OK, reading, rule)
    return Outcome(STATUS_OF_FINISH.get(reply.finish, Status.UNREADABLE))


def repairable(outcome: Outcome, reply: Reply, options: Mapping[str, str]) -> bool:
    """Whether a repair is asked for: the reply has a text, no rule read it, and the option `repair` is not "0"."""
    return outcome.status is Status.UNREADABLE and options.get("repair", "1") == "1" and bool(reply.text.strip())


def ask_with_repair(request: Request, again: str, options: Mapping[str, str], read: ReplyReader) -> Conversation:
    """Ask a request; where the reply cannot be read, ask once more, with the text `again`, for a form that can be."""
    reply = yield from ask_step(request)
    outcome = read_outcome(reply, read)
    if not repairable(outcome, reply, options):
        return outcome
    so_far = (*request.messages, {"role": "assistant", "content": reply.text}, user_message(again))
    repaired = yield from ask_step(replace(request, messages=so_far))
    return read_outcome(repaired, read)


def resume(
    protocol: Protocol, trial: Trial, material: Material, options: Mapping[str, str], replies: Sequence[Reply]
) -> tuple[Conversation, Request] | Outcome:
    """A conversation that was replayed over the replies on record, in step order, and its next request; or its outcome.

    Replies past its end are not replayed: rules that have learnt to read a reply need no repair that was asked for.
    """
    talk = protocol(trial, material, options)
    try:
        request = next(talk)
        for reply in replies:
            request = talk.send(reply)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    return talk, request


def advance(
    protocol: Protocol, trial: Trial, material: Material, options: Mapping[str, str], replies: Sequence[Reply]
) -> Request | Outcome:
    """The next request of a trial, or its outcome, given the replies on record in step order; see `resume`."""
    found = resume(protocol, trial, material, options, replies)
    if isinstance(found, Outcome):
        return found
    talk, request = found
    talk.close()
    return request
