"""A pilot: a few trials of a plan are asked first, so that the rest is forecast from what they took and said."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace

import typer
from rich.console import Console

from venire.arena.battles import Statistics
from venire.arena.errors import InputError
from venire.orchestrator.planning.pilot import pilot_trials
from venire.orchestrator.recording.ending import CampaignSummary, Ending
from venire.render.screen import progress
from venire.render.status import failure_summary, show_failed
from venire.session import Session
from venire.status import failed_steps, failure_reasons
from venire.storage.read.frames import progress as progress_of
from venire.wording import money, plain

__all__ = ["run_pilot"]


def run_pilot(screen: Console, session: Session, number: int, *, yes: bool) -> Ending:
    """Ask until every judge has about so many trials of the plan settled; returns how that ended.

    They are trials of the plan, paid once: a run goes on from there. Raises InputError where nobody is there to agree
    to the money, and typer.Exit(130) where they do not want to spend it.
    """
    trials = pilot_trials(session.store, session.planned, number, seed=session.campaign.seed)
    if not len(trials):
        screen.print(f"every judge has {number} trials on record, or no more to be asked: no pilot is needed")
        return Ending.COMPLETE
    whole = session.planned
    session.planned = replace(whole, only=frozenset(trials.tolist()))
    try:
        _agree(screen, session, len(trials), yes=yes)
        with progress(screen) as tell:
            summary = session.run(
                progress=_of_pilot(tell, session, len(trials)), warn=lambda one: screen.print(plain(one))
            )
    finally:
        session.planned = whole
    _show_ending(screen, session, summary, trials.tolist())
    return summary.ending


def _agree(screen: Console, session: Session, trials: int, *, yes: bool) -> None:
    if yes:
        return
    rows = session.forecast()
    expected, most = (sum(getattr(row, name) for row in rows) for name in ("expected", "most"))
    told = f"{trials:,} trials of the plan, about {money(expected)}, at most about {money(most)}"
    if not sys.stdin.isatty():
        raise InputError(f"a pilot asks {told}, and nobody is there to agree: add --yes")
    try:
        agreed = typer.confirm(f"Ask {told}?", err=True)
    except typer.Abort:  # Ctrl-C or the end of input
        agreed = False
    if not agreed:
        screen.print("nothing was asked")
        raise typer.Exit(130)


def _of_pilot(tell: Callable[[Statistics], None], session: Session, trials: int) -> Callable[[Statistics], None]:
    """Progress among the pilot's own trials."""
    before = session.progress
    return lambda now: tell(
        replace(now, planned=trials, settled=now.settled - before.settled, failed=now.failed - before.failed)
    )


def _show_ending(screen: Console, session: Session, summary: CampaignSummary, trials: list[int]) -> None:
    now, done = summary.statistics, progress_of(session.store, session.planned.id, trials)
    settled = f"{done.settled:,} of {done.planned:,}" if done.settled < done.planned else f"{done.planned:,}"
    screen.print(f"pilot: {settled} trials, {now.calls:,} calls, {money(now.spent)}")
    if summary.ending is not Ending.COMPLETE:
        screen.print(f"it did not end whole ({summary.ending.value}): what follows rests on what there is")
    for lane, why in summary.closed_lanes.items():
        screen.print(f"lane closed: {plain(lane)}: {plain(why)}")
    if done.failed:
        file = shlex.quote(os.path.relpath(session.campaign.path))
        failures = failure_summary(failure_reasons(session.store, session.planned.id), summary.progress.failed)
        screen.print(f"{failures}; try them again: venire run {file} --retry-failed")
        show_failed(screen, failed_steps(session.store, session.planned.id), summary.progress.failed)
