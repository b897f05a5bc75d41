"""What the commands show of a campaign: its plan, how a run ended, and where it stands; for eyes and as JSON."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from venire.arena.campaigns import Budget, Campaign
from venire.arena.errors import Fault
from venire.drift import drift_json, show_drift
from venire.orchestrator.ending import CampaignSummary, Ending
from venire.orchestrator.events import Events, Observer
from venire.orchestrator.forecast import EXPECTED_REASONS
from venire.screen import console, duration, money, plain, progress, tabulate
from venire.session import Embedded, Session
from venire.standing import failed_steps
from venire.storage.recovery import Recovered, recovered
from venire.telemetry import told_run

__all__ = [
    "EXIT_CODES",
    "plan_json",
    "show_next_steps",
    "show_outcome",
    "show_plan",
    "show_status",
    "told_live",
]

EXIT_CODES = {
    Ending.COMPLETE: 0,
    Ending.LANE_CLOSED: 1,
    Ending.BUDGET: 3,
    Ending.FAILED_STEPS: 4,
    Ending.INTERRUPTED: 130,
}


def show_plan(screen: Console, session: Session) -> None:
    """What is planned, what is left of it, and what that will cost."""
    planned, chosen, standing = session.planned, session.planned.design, session.progress
    settings = session.campaign.plan
    screen.print(
        f"{plain(session.campaign.name)}: {len(chosen.models)} models, {len(chosen.matchups)} matchups "
        f"({settings.policy}) x {len(chosen.instructions)} instructions x 2 orders x {len(session.campaign.judges)} "
        f"judges{f' x {settings.repeats} repeats' if settings.repeats > 1 else ''} = {planned.trials} trials"
    )
    possible = len(chosen.models) * (len(chosen.models) - 1) // 2
    if settings.matchups is not None and len(chosen.matchups) < min(settings.matchups, possible):
        screen.print(f"{settings.matchups} matchups were asked for: coverage = {settings.coverage} allows no more")
    if planned.equal_texts:
        screen.print(f"left out: {planned.equal_texts} battles whose two texts are equal")
    if chosen.left_out:
        names = plain(", ".join(one.model for one in chosen.left_out[:8]))
        more = f" and {len(chosen.left_out) - 8} more" if len(chosen.left_out) > 8 else ""
        screen.print(f"left out: {len(chosen.left_out)} models with {chosen.left_out[0].reason}: {names}{more}")
    if chosen.matchups and chosen.matchups[0].gap is not None:
        gaps = [matchup.gap for matchup in chosen.matchups if matchup.gap is not None]
        screen.print(f"Elo gaps: {max(gaps):.0f} to {min(gaps):.0f} points")
    show_recovered(screen, recovered(session.store))
    if standing.settled or standing.failed:
        screen.print(
            f"on record: {standing.settled:,} settled, {standing.failed:,} failed, {standing.missing:,} missing; "
            f"{told_paid(asdict(session.accounts))}"
        )
    if not standing.missing:
        return
    head = ("judge", "trials", "calls", "tokens in", "tokens out", "expected", "at most", "at its rate limit")
    rows = [
        (
            plain(row.judge),
            f"{row.trials:,}",
            f"{row.calls:,}",
            f"{row.input_tokens:,}",
            f"{row.output_tokens:,}",
            money(row.expected),
            money(row.most),
            "no limit" if row.seconds is None else duration(row.seconds),
        )
        for row in session.forecast()
    ]
    tabulate(screen, head, rows)
    campaign = session.campaign
    budget = [_limits(campaign.budget)]
    for budgets in (campaign.judge_budgets, campaign.model_budgets):
        budget += [f"{plain(name)}: {_limits(limits)}" for name, limits in budgets.items()]
    screen.print(
        f"tokens are estimates (4 characters each, {EXPECTED_REASONS} tokens of reasons); budget: "
        f"{'; '.join(budget)}\n",
        style="dim",
    )


def _limits(budget: Budget) -> str:
    told = [f"{budget.calls:,} calls"] if budget.calls is not None else []
    told += [money(budget.money)] if budget.money is not None else []
    told += [f"{budget.tokens:,} tokens"] if budget.tokens is not None else []
    return " and ".join(told) or "none"


def show_recovered(screen: Console, found: Recovered) -> None:
    """What a run that ended without notice left behind, if one did."""
    if found.lost_commits:
        screen.print(f"the store had lost its last {found.lost_commits} commits; the loss was accepted")
    if found.replies:
        screen.print(
            f"taken in from the journal: {found.replies} replies that the last run could not write to the store"
        )
    if found.calls:
        screen.print(
            f"the last run ended without notice: {found.calls} calls have no answer on record; "
            f"{money(found.reserved)} reserved for them count as spent"
        )


def plan_json(session: Session) -> dict[str, Any]:
    """The plan as plain values."""
    chosen = session.planned.design
    return {
        "campaign": session.campaign.name,
        "models": list(chosen.models),
        "left_out": [asdict(one) for one in chosen.left_out],
        "matchups": [asdict(matchup) for matchup in chosen.matchups],
        "instructions": list(chosen.instructions),
        "trials": session.planned.trials,
        "equal_texts": session.planned.equal_texts,
        "progress": asdict(session.progress) | {"missing": session.progress.missing},
        "judges": [asdict(row) for row in session.forecast()],
        "spent": session.accounts.nano,
    }


def show_outcome(session: Session, screen: Console, embedded: Embedded, observers: Sequence[Observer] = ()) -> int:
    """Run a session with a progress display, show how it ended and its board; returns the exit code."""

    def warn(message: str) -> None:
        screen.print(plain(message))

    events = Events(session.clock, observers, warn=warn)
    with progress(screen) as tell, told_run(session, events) as tell_end:
        summary = session.run(embedded=embedded, progress=tell, warn=warn, events=events, loop_factory=_loop())
        tell_end(summary)
    _show_summary(screen, session, summary)
    show_drift(screen, drift_json(session.store, session.planned.id))
    if summary.ending is Ending.INTERRUPTED:  # whoever stops a run wants to leave, not to wait for ratings
        _show_ending(screen, session, summary)
        return EXIT_CODES[summary.ending]
    from venire.leaderboard import show_board  # and scipy, 65 MB that no run needs before its end

    out, standing = screen if screen.file is sys.stdout else console(), summary.progress
    if standing.missing:
        out.print(f"partial: {standing.settled:,} of {standing.planned:,} trials are settled")
    show_board(out, session.board())
    if summary.ending is not Ending.COMPLETE:
        _show_ending(screen, session, summary)
    return EXIT_CODES[summary.ending]


def _loop() -> Callable[[], Any] | None:
    """uvloop's event loop where it is installed: it carries more calls on a core."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], Any] = uvloop.new_event_loop
    return factory


def _show_summary(screen: Console, session: Session, summary: CampaignSummary) -> None:
    now, paid = summary.statistics, session.accounts
    if not now.calls:
        screen.print("nothing was asked in this run")
        return
    rate = now.calls / now.elapsed if now.elapsed > 0 else 0.0
    screen.print(
        f"{now.calls} calls in {duration(now.elapsed)} ({rate:.0f} a second): {now.answered} answered, "
        f"{now.retries} retries; the limiter made {now.waits} calls wait, {now.waited / max(1, now.waits):.2f} s on "
        "average"
    )
    screen.print(
        f"cost {money(now.spent)} in this run, {money(paid.nano)} in all"
        + (f" ({money(paid.unknown)} of it reserved for calls without an answer)" if paid.unknown else "")
        + f"; {paid.input_tokens:,} tokens in, {paid.output_tokens:,} out\n"
    )
    _show_routes(screen, summary)


def _show_routes(screen: Console, summary: CampaignSummary) -> None:
    """How calls ended, by class and route; nothing where all of one route were answered."""
    met = sorted({fault for calls in summary.routes.values() for fault in calls.ended} - {Fault.NONE})
    if not met and len(summary.routes) < 2:
        return
    head = ("route", "answered", *(fault.name.lower().replace("_", " ") for fault in met), "mean wait", "cost")
    rows = [
        (
            plain(name),
            *(f"{calls.ended[fault]:,}" for fault in (Fault.NONE, *met)),
            duration(calls.waited / max(1, calls.ended.total())),
            money(calls.cost),
        )
        for name, calls in sorted(summary.routes.items())
    ]
    tabulate(screen, head, rows)
    screen.print()


def _show_ending(screen: Console, session: Session, summary: CampaignSummary) -> None:
    left = f"{summary.progress.missing:,} of {summary.progress.planned:,} trials are missing"
    again = f"venire run {shlex.quote(os.path.relpath(session.campaign.path))}"
    if summary.ending is Ending.BUDGET:
        _show_missing(screen, session, summary)
        screen.print(f"Raise [budget] and go on: {again} --amend")
    elif summary.ending is Ending.INTERRUPTED:
        screen.print(f"\ninterrupted: what was answered is on disk; {left}. Go on: {again}")
        screen.print(f"What is settled so far: venire rate {shlex.quote(os.path.relpath(session.campaign.store))}")
    for lane, why in summary.closed_lanes.items():
        screen.print(f"\nlane closed: {plain(lane)}: {plain(why)}; {left}. Mend it and go on: {again}")
    if summary.progress.failed:
        screen.print(f"\n{summary.progress.failed} trials failed; try them again: {again} --retry-failed")
        _show_failed(screen, failed_steps(session.store, session.planned.id), summary.progress.failed)


def _show_missing(screen: Console, session: Session, summary: CampaignSummary) -> None:
    """What a budget left unasked, by judge, and what that would cost."""
    whole = summary.progress
    screen.print(f"\nstopped by the budget: {whole.missing:,} of {whole.planned:,} trials are missing")
    for row in session.forecast():
        if not row.trials:
            continue
        why = summary.unaffordable.get(row.judge, "not asked")
        price = f"{money(row.expected)} (at most {money(row.most)})"
        screen.print(f"  {plain(row.judge)}: {row.trials:,} trials, about {row.calls:,} calls, {price}: {plain(why)}")


def _show_failed(screen: Console, steps: list[dict[str, Any]], failed: int) -> None:
    for one in steps:
        told = (
            f"{one['judge']}, {one['instruction']}, {one['model_a']} against {one['model_b']}, step {one['step']}: "
            f"{one['fault'].replace('_', ' ')}: {one['message']}"
        )
        screen.print(f"  {plain(told)}")
    if failed > len(steps):
        screen.print(f"  and {failed - len(steps):,} more: venire sql STORE 'select * from failed'")


def show_next_steps(screen: Console, folder: Path, campaign: Campaign) -> None:
    """The commands to try after the demo."""
    store, file = (shlex.quote(str(folder / path.name)) for path in (campaign.store, campaign.path))
    screen.print("\nNext:")
    for command in (
        f"venire status {store}",
        f"venire rate {store} --json",
        f"venire run {file}        # nothing is asked or paid twice",
        "venire init my-campaign             # a campaign file to start from",
    ):
        screen.print(f"  {command}")


def show_status(screen: Console, facts: dict[str, Any]) -> None:
    """What a store holds, for eyes: a document of `status_json`, with what is told of a running campaign in `live`."""
    holds = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in facts["holds"].items())
    screen.print(f"{plain(facts['store'])}: {holds}")
    if facts["live"] is not None:
        screen.print(plain(f"running: {told_live(facts['live'])}"))
    show_recovered(screen, Recovered(**facts["recovered"]))
    for one in facts["campaigns"]:
        standing, paid = one["progress"], one["accounts"]
        screen.print(
            f"\n{plain(one['campaign'])}: {standing['settled']:,} of {standing['planned']:,} trials settled, "
            f"{standing['failed']:,} failed, {standing['missing']:,} missing; "
            f"{told_paid(paid)}"
        )
        for judge in one["judges"]:
            screen.print(f"  {plain(judge['judge'])}: {judge['settled']:,} of {judge['planned']:,}")
        if one["faults"]:
            told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in one["faults"].items())
            screen.print(f"  calls without a reply: {told}")
        show_drift(screen, one["served"])
        _show_failed(screen, one["failed_steps"], standing["failed"])


def told_paid(paid: dict[str, Any]) -> str:
    """A campaign's account in a line, what is only reserved apart."""
    told = f"{paid['calls']:,} calls, {money(paid['nano'])}"
    if not paid["unknown"]:
        return told
    return f"{told} ({money(paid['known'])} paid, {money(paid['unknown'])} reserved for calls without a known cost)"


def told_live(live: dict[str, Any]) -> str:
    """A running campaign in a line: who runs it since when, calls, pace, what is left and what it cost so far."""
    left = live["seconds_left"]
    return (
        f"process {live['process']} on host {live['host']} since {live['since']}, {live['calls']:,} calls, "
        f"{live['in_flight']:,} in flight, {live['calls_per_second']:,.3g} a second, "
        f"{'' if left is None else f'about {duration(left)} left, '}{money(live['spent'])}"
    )
