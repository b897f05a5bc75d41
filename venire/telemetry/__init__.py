"""Who watches a run from outside: JSON lines, OpenTelemetry and Prometheus, each only where it was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from venire.orchestrator.campaign import lane_name
from venire.orchestrator.ending import CampaignSummary
from venire.orchestrator.events import Events, Observer
from venire.screen import plain

if TYPE_CHECKING:
    from rich.console import Console

    from venire.session import Session

__all__ = ["observe", "told_run"]


@contextmanager
def observe(screen: Console, *, lines: Path | None = None) -> Iterator[list[Observer]]:
    """Observers for what was asked, which finish their work when the context ends.

    Raises InputError for what cannot be done, before anything is spent; later failures are told on the screen.
    """
    observers: list[Observer] = []

    def warn(message: str) -> None:
        screen.print(plain(message))

    with ExitStack() as stack:
        if lines is not None:
            from venire.telemetry.lines import Lines

            file = Lines(lines, warn)
            stack.callback(file.close)
            observers.append(file)
        yield observers


@contextmanager
def told_run(session: Session, events: Events) -> Iterator[Callable[[CampaignSummary], None]]:
    """Tell that a run begins, and at the end how it ended: an error when nobody handed in a summary."""
    if not events.active:
        yield lambda summary: None
        return
    campaign, before = session.campaign, session.progress
    lanes = {judge.lane.identity: judge.lane for judge in campaign.judges}.values()
    events.emit(
        "run.started",
        campaign=campaign.name,
        planned=before.planned,
        settled=before.settled,
        failed=before.failed,
        missing=before.missing,
        lanes=[
            {"lane": lane_name(one), "provider": one.provider, "model": one.model, "endpoint": one.base_url}
            for one in lanes
        ],
    )
    summary: CampaignSummary | None = None

    def keep(found: CampaignSummary) -> None:
        nonlocal summary
        summary = found

    try:
        yield keep
    finally:
        now, progress = (summary.statistics, summary.progress) if summary else (None, None)
        events.emit(
            "run.ended",
            campaign=campaign.name,
            ending=summary.ending.value if summary else "error",
            calls=now and now.calls,
            answered=now and now.answered,
            retries=now and now.retries,
            settled=progress and progress.settled,
            failed=progress and progress.failed,
            missing=progress and progress.missing,
            cost_nano=now and now.spent,
            seconds=now and now.elapsed,
        )
