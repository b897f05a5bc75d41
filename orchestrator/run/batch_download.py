"""Reading the answers of a batch that has ended, again where results are missing that its provider has."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from venire.judges.providers.batches.base import BatchStatus
from venire.orchestrator.lanes.refusals import refusal_advice
from venire.orchestrator.lanes.retry import pause_after
from venire.orchestrator.run.collector import Collected
from venire.orchestrator.run.waves_out import Wave, WavesOut
from venire.storage.plans.submissions import OpenSubmission

_READINGS, _PATIENCE = 6, 10
"""How often the answers of a batch are read, and for how many of the longest pauses at least, before results that its
provider counts and does not hand out are lost."""


class BatchDownload:
    """Takes the answers of `out` in, until `halt`: the next start takes in the rest."""

    def __init__(self, out: WavesOut, halt: asyncio.Event) -> None:
        self._out, self._halt = out, halt
        self._had_strays = False

    async def collect(self, wave: Wave, status: BatchStatus) -> Collected:
        """Take the answers of a batch in; nothing is in what is returned unless it is whole."""
        one, found, out = wave.submission, wave.found, self._out
        patient = self._is_patient(one)
        answers = out.batches.answers(status.id)
        await out.collector.collect(one, answers, found, status=status, patient=patient, halt=self._halt)
        if found.is_foreign:
            await out.disown(wave, status.id, "its answers are to other requests")
        if found.missing and patient:
            await self._note_missing(wave, status)
        if not found.is_whole:
            return Collected()
        await out.note(wave, "collected", status.id, _summary(found, status))
        out.emit("batch.collected", wave, status.id, answered=found.answered, failed=found.failed, strays=found.strays)
        if found.missing:
            out.warn(
                f"{out.route}: {found.missing:,} results of batch {one.name} are lost: its provider did not "
                f"hand them out in {one.short_readings + 1} readings; their calls are asked again"
            )
        if found.strays and not self._had_strays:
            self._had_strays = True
            out.warn(
                f"{out.route}: batch {one.name} holds results ({found.strays:,}) that nobody asked for or "
                "that came twice: they are left aside, in further batches too"
            )
        out.forget(wave)
        if found.closing is not None:
            out.lane.close(f"{found.closing}{refusal_advice(found.closing)}")
        return found

    def _is_patient(self, one: OpenSubmission) -> bool:
        """Whether results that the provider has and does not hand out may still come: it keeps them for weeks."""
        since = one.missing_since
        if one.short_readings < _READINGS or since is None:
            return True
        return (self._out.clock.wall() - since).total_seconds() < _PATIENCE * self._out.longest

    async def _note_missing(self, wave: Wave, status: BatchStatus) -> None:
        """Put on record and say that a reading fell short; the next one is after a pause that grows."""
        one, found, out = wave.submission, wave.found, self._out
        readings = one.short_readings + 1
        wave.submission = replace(one, short_readings=readings, missing_since=one.missing_since or out.clock.wall())
        wave.rests_until = out.clock.monotonic() + min(out.longest, pause_after(readings))
        said = f"{found.missing:,} of {one.lines:,} results were not handed out"
        said += f" (lines that cannot be read: {found.unreadable:,})" if found.unreadable else ""
        await out.note(wave, "incomplete", status.id, said)
        if readings == 1:
            out.warn(
                f"{out.route}: batch {one.name} has ended, but {said}: they are read again, and nothing of it "
                "is asked anew meanwhile"
            )
        counts = {"missing": found.missing, "unreadable": found.unreadable, "reading": readings}
        out.emit("batch.incomplete", wave, status.id, **counts)


def _summary(found: Collected, status: BatchStatus) -> str:
    parts = [f"{found.answered} answered", f"{found.failed} failed"]
    parts += [f"{found.strays} not asked for"] if found.strays else []
    parts += [f"{found.unreadable} unreadable"] if found.unreadable else []
    parts += [status.problem] if status.problem else []
    return ", ".join(parts)
