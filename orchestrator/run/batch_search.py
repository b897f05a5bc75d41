"""Batches that were not confirmed when they were sent: looked for at the provider, and others held back meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from math import inf

from venire.arena.errors import CallError
from venire.judges.providers.batches.base import CLOCK_SKEW, BatchState, BatchStatus
from venire.orchestrator.lanes.retry import pause_after
from venire.orchestrator.run.waves_out import Wave, WavesOut
from venire.storage.plans import submissions
from venire.storage.plans.submissions import OpenSubmission

SEARCHES = 2
"""How often a list is searched for a batch in vain before it counts as never made: lists lag behind."""
START_LATER = "start again later"
"""The advice where a lane is closed and nothing is to be changed."""
_SLACK = timedelta(seconds=90)
"""How much earlier than the writing of its submission a batch may be dated by our clock.

Dates are in whole seconds, and the servers of a provider differ. One more that may be ours costs a wait until its
answers are there; one that is ours and is passed over is paid for twice."""


@dataclass(slots=True)
class _Failures:
    """Batches in a row that were not confirmed when they were sent; times in seconds of the clock."""

    number: int = 0
    doubtful: int = 0
    """Of these, those that may have been made."""
    since: float | None = None
    pauses_until: float = -inf


class BatchSearch:
    """Confirms which batch of the provider a wave of `out` is: by the answer to its sending, its name, its answers."""

    def __init__(self, out: WavesOut) -> None:
        self._out = out
        self._failures = _Failures()
        self._keeps_names = out.batches.keeps_names
        """Whether a list without our name is one without our batch; not so at a gateway that drops names."""

    @property
    def is_pausing(self) -> bool:
        """Whether nothing is sent just now: a batch was not confirmed a short while ago, or is still looked for."""
        waves = (wave for wave in self._out.waves.values() if wave.sent_now and not wave.in_doubt)
        return any(wave.submission.provider_id is None for wave in waves) or self.is_held_back

    @property
    def is_held_back(self) -> bool:
        """Whether a batch was not confirmed a short while ago."""
        return self._out.clock.monotonic() < self._failures.pauses_until

    async def sent(self, wave: Wave, status: BatchStatus) -> None:
        """Put on record that the provider answered with a batch when a wave was sent."""
        wave.unsent = False
        self._keeps_names = self._keeps_names and status.name == wave.submission.name
        await self._confirm(wave, status)

    async def _confirm(self, wave: Wave, status: BatchStatus, how: str = "") -> None:
        """Put on record under which id the provider has a submission; `how` it was found, where not by its answer.

        One that has not our name is adopted: whether it is ours is known by its answers, so that it is never cancelled.
        """
        adopted = bool(how) and status.name != wave.submission.name
        await self._out.note(wave, "adopted" if adopted else "sent", status.id, how)
        wave.submission = replace(wave.submission, provider_id=status.id, adopted=adopted)
        wave.status = status
        self._failures = _Failures()

    def hold_back(self, wave: Wave, error: CallError) -> None:
        """After a batch that was not confirmed, wait with the next: longer each time, and not for ever.

        Each of those that may have been made may be paid for, so that they are as few as the attempts of a call.
        """
        wave.unsent = not error.may_be_billed
        failures, now = self._failures, self._out.clock.monotonic()
        failures.number += 1
        failures.doubtful += error.may_be_billed
        failures.since = now if failures.since is None else failures.since
        pause = pause_after(failures.number, error)
        failures.pauses_until = now + pause
        what = "is looked for" if error.may_be_billed else "is sent again"
        self._out.warn(
            f"{self._out.route}: the batch {wave.submission.name} was not confirmed ({error}); it {what}, and no other "
            f"is sent for {pause:.1f} s"
        )
        lane = self._out.lane
        if failures.doubtful >= lane.settings.max_attempts or now + pause - failures.since > lane.settings.max_elapsed:
            lane.close(f"sending a batch was not confirmed {failures.number} times in a row ({error}); {START_LATER}")

    async def find(self, wave: Wave) -> tuple[bool, list[int]]:
        """Look for a batch that was not confirmed when it was sent; where it is surely not there, return its trials.

        A name proves that it is ours. In a list without names one of its size that was made since then may be: that is
        waited for, and once it has ended its answers say whose it is. Where that takes longer than `max_wait` the next
        start goes on waiting, whatever `after_wait` says: to ask live could be to pay twice.
        """
        one, out = wave.submission, self._out
        taken = submissions.taken_batches(out.store, one.id)
        listed = [status for status in await out.batches.batches(one.written_at - CLOCK_SKEW) if status.id not in taken]
        for status in listed:
            if status.name == one.name:
                await self._confirm(wave, status, "found in the provider's list by its name")
                return True, []
        maybe = [] if self._keeps_names else [status for status in listed if _may_be(status, one)]
        for status in maybe:
            wave.candidate = status.id
            if (await out.batches.status(status.id)).state is BatchState.ENDED:
                await self._confirm(wave, status, "found in the provider's list by its size and time")
                return True, []
        wave.candidate = None
        # One of the same size that was adopted may turn out to be this one.
        others = () if self._keeps_names else (other.submission for other in out.waves.values())
        if maybe or any(other.adopted and other.lines == one.lines for other in others):
            await self._say_doubt(wave, maybe)
            wave.looked_for = 0
            assert out.lane.settings.batch is not None  # it asks in waves
            wave.is_left = out.age(wave) > (out.lane.settings.batch.max_wait or inf)
            return False, []
        wave.looked_for += 1
        if wave.looked_for < SEARCHES or out.age(wave) < out.longest:
            return False, []
        out.warn(f"{out.route}: batch {one.name} is not in the provider's list: its calls are sent again")
        return True, await out.give_back(wave, "the provider has no such batch")

    async def _say_doubt(self, wave: Wave, maybe: Sequence[BatchStatus]) -> None:
        """Say once why a submission is neither out nor sent again, and put it on record."""
        if maybe and not wave.in_doubt:
            wave.in_doubt = True
            ids = ", ".join(status.id for status in maybe[:3]) + (", ..." if len(maybe) > 3 else "")
            await self._out.note(wave, "doubted", detail=f"{ids} may be it, or somebody else's")
            self._out.emit("batch.doubted", wave, maybe[0].id, lines=wave.submission.lines, candidates=len(maybe))
            self._out.warn(
                f"{self._out.route}: {ids} of {wave.submission.lines:,} requests may be batch {wave.submission.name} "
                "or somebody else's: its answers will say so once it has ended; until then it is not cancelled, and "
                "nothing is sent again"
            )


def _may_be(status: BatchStatus, one: OpenSubmission) -> bool:
    """Whether a batch without a name may be a submission, by its size and time."""
    if status.name or status.lines not in (0, one.lines):
        return False
    return status.created_at is None or status.created_at >= one.written_at - _SLACK
