"""Replaying a conversation over the replies on record: what resumption, live lanes and a later reparse share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from venire.arena.records import Conversation, Material, Outcome, Protocol, Reply, Request, Trial

__all__ = ["advance", "resume"]


def resume(
    protocol: Protocol, trial: Trial, material: Material, options: Mapping[str, str], replies: Sequence[Reply]
) -> tuple[Conversation, Request] | Outcome:
    """A conversation that has heard the replies on record, in step order, and its next request; or its outcome.

    Replies past its end are not heard: rules that have learnt to read a reply need no repair that was asked for once.
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
