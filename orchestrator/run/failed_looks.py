"""What becomes of a batch whose provider did not answer a question about it: no single answer decides anything."""

from __future__ import annotations

import os
import shlex

from venire.arena.errors import CallError, TransientError
from venire.orchestrator.lanes.refusals import refusal_advice
from venire.orchestrator.lanes.retry import pause_after
from venire.orchestrator.run.waves_out import Wave, WavesOut
from venire.storage.plans import submissions

_REFUSED_LOOKS = 6
"""After so many refusals in a row it counts as certain that the provider hands nothing of a batch out."""
_NOT_OURS = frozenset({403, 404, 410})
_GONE = frozenset({404, 410})


class FailedLooks:
    """Decides whether a batch of `out` is looked at again after an error, and for how long."""

    def __init__(self, out: WavesOut) -> None:
        self._out = out

    async def take(self, wave: Wave, error: CallError) -> None:
        """After a failed look: the next one is later, or the lane is closed, or the batch was somebody else's."""
        out = self._out
        wave.failed_looks += 1
        if isinstance(error, TransientError):
            # In words that grow rarer: a list may answer with an error for hours.
            if wave.failed_looks.bit_count() == 1:
                again = "" if wave.failed_looks == 1 else f" ({wave.failed_looks} times in a row)"
                out.warn(f"{out.route}: {wave.submission.name}: {error}{again}; it is looked at again later")
            return
        if _may_pass(error):
            wave.refused_looks += 1
            if wave.refused_looks < _REFUSED_LOOKS:
                self._rest(wave, error)
                return
            if error.status in _NOT_OURS and (candidate := self._unproved(wave)) is not None:
                await out.disown(wave, candidate, f"its provider does not hand it out: {error}")
                return
        wave.is_left = True
        out.lane.close(f"batch {wave.submission.name}: {error}{self._advice(wave, error)}")

    def _rest(self, wave: Wave, error: CallError) -> None:
        out = self._out
        wave.rests_until = out.clock.monotonic() + min(out.longest, pause_after(wave.refused_looks))
        if wave.refused_looks == 1:
            out.warn(
                f"{out.route}: {wave.submission.name}: {error}; that may pass: it is looked at again "
                f"{_REFUSED_LOOKS - 1} times"
            )

    def _unproved(self, wave: Wave) -> str | None:
        """The provider's id of a batch that may be ours and of which no answer was ours so far."""
        one = wave.submission
        if one.provider_id is None:
            return wave.candidate
        is_ours = not one.adopted or wave.found.answered or submissions.lines_taken(self._out.store, one.id)
        return None if is_ours else one.provider_id

    def _advice(self, wave: Wave, error: CallError) -> str:
        """What to do where a provider refuses to say anything of a batch."""
        if error.status not in _GONE or wave.submission.provider_id is None:
            return refusal_advice(error)
        store = shlex.quote(os.path.relpath(self._out.store.path))
        command = f"venire batch cancel {store} {wave.submission.name}"
        return f"; where it is gone for good, give it up: {command}{' --give-up' if wave.submission.adopted else ''}"


def _may_pass(error: CallError) -> bool:
    """Whether a refusal may be of one server among several that has not the batch yet, or of a gateway before them."""
    return error.status is not None and (error.status in _NOT_OURS or 300 <= error.status < 400)
