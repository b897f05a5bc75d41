"""Replaying a conversation over the replies on record: what resumption, live lanes and a later reparse share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from venire.arena.records import Conversation, Material, Outcome, Protocol, Reply, Request, Trial

__all__ = ["advance", "resume"]


def resume(
    protocol: Protocol, trial: Trial, material: Material, options: Mapping[str, str], replies: Sequence[Reply]
) -> tuple[Conversation, Request] | Outcome:
    """A conversation that has heard the replies on record, in step order, and its next request; or its outcome.

    Raises ValueError when there are more replies than the conversation has steps.
    """
    talk = protocol(trial, material, options)
    left = list(reversed(replies))
    try:
        request = next(talk)
        while left:
            request = talk.send(left.pop())
    except StopIteration as end:
        if left:
            raise ValueError(f"{len(left)} replies on record after the conversation ended") from None
        outcome: Outcome = end.value
        return outcome
    return talk, request


def advance(
    protocol: Protocol, trial: Trial, material: Material, options: Mapping[str, str], replies: Sequence[Reply]
) -> Request | Outcome:
    """The next request of a trial, or its outcome, given the replies on record in step order.

    Raises ValueError when there are more replies than the conversation has steps.
    """
    found = resume(protocol, trial, material, options, replies)
    if isinstance(found, Outcome):
        return found
    talk, request = found
    talk.close()
    return request
