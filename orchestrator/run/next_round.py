"""The next round of a run, once everything that was planned is settled or failed: its source, and who is notified."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from venire.arena.planning import InterimAnalysis
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.recording.events import Events

OnAnalysis = Callable[[int, str, InterimAnalysis], None]
"""Called with each look: how many rounds there are, the phase of the last one, and what is known after it."""

T = TypeVar("T")


class RoundSource(Protocol):
    """Looks at a campaign and plans what follows; called in a thread, while nobody else writes to the store."""

    analysed: tuple[int, InterimAnalysis] | None
    """The last look, with the number of the round that it was made after."""
    stopped: str | None
    """Why no more is planned, in a sentence; None before that is so."""
    short: bool
    """Whether it is because no budget covers what the plan still wants."""

    def __call__(self) -> PlannedCampaign | None:
        """The campaign with one round more, or None."""
        ...

    def analyse(self) -> InterimAnalysis:
        """What is known of the campaign by now; no more is planned."""
        ...


class NextRound:
    """Asks the source for another round and reports it; true where there is a source at all."""

    def __init__(self, source: RoundSource | None, events: Events, on_analysis: OnAnalysis | None = None) -> None:
        self._source, self._events, self._on_analysis = source, events, on_analysis
        self.asked = False
        """Whether no more is planned because the source said so."""

    def __bool__(self) -> bool:
        return self._source is not None

    @property
    def stopped(self) -> str | None:
        """Why no more is planned."""
        return None if self._source is None else self._source.stopped

    @property
    def short(self) -> bool:
        """Whether that is for want of a budget."""
        return self._source is not None and self._source.short

    async def ask(self, before: PlannedCampaign) -> PlannedCampaign | None:
        """The campaign with a round more, or None. Cancelled: what is being planned is stored first."""
        assert self._source is not None  # or the run is over
        planned = await _to_its_end(self._source)
        self.asked = planned is None
        self._notify(before)
        if planned is not None and self._events.active:
            last = planned.rounds[-1]
            fields = {"round": last.number, "phase": last.phase, "policy": last.policy, "trials": last.trials}
            self._events.emit("round.planned", battles=last.design.size, **fields)
        return planned

    async def analyse(self, planned: PlannedCampaign) -> None:
        """Look at a campaign that ends before its plan does."""
        if self._source is not None:
            await _to_its_end(self._source.analyse)
            self._notify(planned)

    def _notify(self, planned: PlannedCampaign) -> None:
        if self._source is None or self._source.analysed is None:
            return
        number, analysis = self._source.analysed
        if self._on_analysis is not None:
            self._on_analysis(len(planned.rounds), planned.rounds[-1].phase, analysis)
        if not self._events.active:
            return
        self._events.emit(
            "look",
            round=number,
            battles=analysis.battles,
            verdicts=analysis.verdicts,
            half_width=analysis.half_width,
            open=analysis.open,
            starved=[one.model for one in analysis.models if one.starved],
            spent_nano=analysis.nano,
            stop=analysis.stop or self._source.stopped,
        )


async def beside(aside: Coroutine[Any, Any, None], work: Awaitable[T]) -> T:
    """What some work comes to, with something else going on meanwhile that ends with it."""
    going_on = asyncio.ensure_future(aside)
    try:
        return await work
    finally:
        going_on.cancel()
        await asyncio.gather(going_on, return_exceptions=True)


async def _to_its_end(work: Callable[[], T]) -> T:
    """Do something in a thread; whoever is cancelled meanwhile waits for it, since it writes to the store."""
    under_way: asyncio.Future[Any] = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        found: T = await asyncio.shield(under_way)
    except asyncio.CancelledError:
        await asyncio.wait([under_way])
        raise
    return found
