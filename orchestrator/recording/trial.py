"""One trial from its replies on record to its outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from venire.arena.errors import Fault
from venire.arena.records import UNSENT, Material, Outcome, Protocol, Reply, Request, Status, Trial
from venire.judges.conversation import resume
from venire.storage.plans.trial_states import PendingTrial

__all__ = ["UNSENT_OUTCOME", "VERDICT_FAULTS", "Ask", "settle", "stage"]

Ask = Callable[[int, Request], Awaitable[Reply]]
"""Asks the request of a step (1, 2, ...) and returns its reply."""

VERDICT_FAULTS = {Fault.FILTERED: Status.FILTERED, Fault.TOO_LONG: Status.TOO_LONG}
"""Faults that are an answer about the trial itself: it has a verdict of that status."""

UNSENT_OUTCOME = Outcome(Status.TOO_LONG, rule=UNSENT)
"""Of a trial whose next request was counted and would not fit."""


def stage(pending: PendingTrial, respondent: bytes, protocol: str) -> tuple[Trial, Material]:
    """A pending trial, and what its names stand for."""
    trial = Trial(pending.key, respondent, protocol, pending.instruction.id, pending.shown_keys, pending.repeat)
    return trial, Material(pending.instruction, pending.shown, pending.fences)


async def settle(
    protocol: Protocol,
    trial: Trial,
    material: Material,
    options: Mapping[str, str],
    replies: Sequence[Reply],
    ask: Ask,
    fits: Callable[[Request], bool] = lambda request: True,
) -> Outcome:
    """Go on with a trial from the replies on record until it has an outcome; whatever `ask` raises passes through.

    A request that does not fit is not asked, and the trial is too long, or as the request has it otherwise.
    """
    found = resume(protocol, trial, material, options, replies)
    if isinstance(found, Outcome):
        return found
    talk, request = found
    number = len(replies)
    try:
        while True:
            number += 1
            if not fits(request):
                return request.otherwise or UNSENT_OUTCOME
            reply = await ask(number, request)
            request = talk.send(reply)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    finally:
        talk.close()
