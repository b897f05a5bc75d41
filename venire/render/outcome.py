"""What the commands show of a campaign: its plan, how a run ended, and where it stands; for eyes and as JSON."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from venire.arena.battles import Statistics
from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import Fault
from venire.arena.planning import InterimAnalysis
from venire.arena.wording import few, money, plain
from venire.embedded import Embedded
from venire.forecasts.plan import within_budgets
from venire.orchestrator.lanes.routes import lane_name
from venire.orchestrator.planning.pilot import pilot_trials
from venire.orchestrator.recording.ending import EXIT_CODES, CampaignSummary, Ending, LeaseLosses
from venire.orchestrator.recording.events import Events, Observer
from venire.orchestrator.run.batch_search import START_LATER
from venire.orchestrator.run.next_round import OnAnalysis
from venire.orchestrator.run.run_setup import Polling
from venire.render.interim import format_interim, show_interim
from venire.render.screen import FAILED, console, progress, show_pages_hint, tabulate, warning_printer
from venire.render.sections import show
from venire.render.status import (
    failure_summary,
    show_drift,
    show_failed,
    show_long_input,
    show_readability,
    show_spending,
    unanswered_hint,
)
from venire.session import Session
from venire.status import (
    failed_steps,
    failure_reasons,
    long_input_documents,
    served_documents,
    spending_document,
)
from venire.storage.plans import plans
from venire.storage.read import frames
from venire.storage.read.frames import CampaignSpending
from venire.storage.read.judge_quality import judge_readability
from venire.telemetry import run_events
from venire.wording import duration, is_reported_round, retries

if TYPE_CHECKING:
    from venire.live.guard import Guard

_SLOWED_SECONDS = 1.0
"""Shorter slow-downs are not worth a line."""


def show_outcome(
    session: Session,
    screen: Console,
    embedded: Embedded,
    observers: Sequence[Observer] = (),
    environ: Mapping[str, str] | None = None,
    guard: Guard | None = None,
    polling: Polling | None = None,
) -> int:
    """Run a session with a progress display, show how it ended and its board; returns the exit code.

    With `guard` the run serves its pages where that says. `polling` says how batches are waited for.
    """
    summary = run_shown(session, screen, embedded, observers, environ, guard, polling)
    return _show_ended(session, screen, summary, Events(session.clock, observers))


def run_shown(
    session: Session,
    screen: Console,
    embedded: Embedded | None,
    observers: Sequence[Observer] = (),
    environ: Mapping[str, str] | None = None,
    guard: Guard | None = None,
    polling: Polling | None = None,
) -> CampaignSummary:
    """Run a session with a progress display, as `show_outcome` does."""
    warn = warning_printer(screen)
    events = Events(session.clock, observers, warn=warn)
    with progress(screen) as show, run_events(session, events) as report_end:
        summary = session.run(
            environ=environ,
            embedded=embedded,
            progress=show,
            warn=warn,
            events=events,
            on_analysis=interim_printer(screen),
            loop_factory=fast_loop(),
            guard=guard,
            announce=announcer(screen),
            polling=polling,
        )
        report_end(summary)
    return summary


def show_trouble(session: Session, screen: Console, summary: CampaignSummary) -> int:
    """What but its budget kept a run from its end; returns the exit code."""
    if not summary.statistics.calls and not summary.statistics.answered:
        screen.print("nothing was asked in this run")
    _show_set_aside(screen, session)
    if summary.ending not in (Ending.COMPLETE, Ending.BUDGET):
        _show_ending(screen, session, summary)
    return EXIT_CODES[summary.ending]


def _show_ended(session: Session, screen: Console, summary: CampaignSummary, events: Events) -> int:
    _show_summary(screen, session, summary)
    _show_set_aside(screen, session)
    show_long_input(screen, long_input_documents(session.store, session.planned.id))
    show_drift(screen, served_documents(session.store, session.planned.id))
    if summary.ending is Ending.INTERRUPTED:  # whoever stops a run wants to leave, not to wait for ratings
        _show_stopped(screen, session, summary)
        _show_ending(screen, session, summary)
        return EXIT_CODES[summary.ending]
    out, standing = screen if screen.file is sys.stdout else console(), summary.progress
    if standing.missing:
        out.print(f"partial: {standing.settled:,} of {standing.planned:,} trials are settled")
    if session.campaign.writes:
        _show_generated(out, session)
    elif session.campaign.has_board:
        show_readability(screen, judge_readability(session.store, session.planned.id), session.campaign.store)
        _show_board(out, session, events)
    else:
        show_readability(out, judge_readability(session.store, session.planned.id), session.campaign.store)
    show_pages_hint(screen, session.campaign.store)
    _show_merge(screen, session)
    _show_stopped(screen, session, summary)
    if summary.ending is not Ending.COMPLETE:
        _show_ending(screen, session, summary)
    _show_all_too_long(screen, session)
    return EXIT_CODES[summary.ending]


def _show_all_too_long(screen: Console, session: Session) -> None:
    """The judges for which every text was too long, and what to do: last, as nothing else says why so little came."""
    cut = ', or have texts cut: set context and too_long = "truncate-both" (another judge then, which asks all anew)'
    for one in judge_readability(session.store, session.planned.id):
        if one.settled and one.too_long == one.settled:
            screen.print(
                f"\ntoo long: all {one.settled:,} trials of {session.role} {plain(repr(one.judge))}, for its server or "
                f"its context: give the server a longer context{cut if session.role == 'judge' else ''}",
                style=FAILED,
            )


def _show_merge(screen: Console, session: Session) -> None:
    """How the stores of all shards are put together."""
    if (shard := session.shard) is not None:
        whole = session.whole.store
        pattern = shard.store(whole, 0).name.replace("shard-0-", "shard-*-")
        stores = os.path.relpath(whole.with_name(pattern))
        screen.print(f"when all {shard.of} shards are through: venire store merge {stores} -o {os.path.relpath(whole)}")


def announcer(screen: Console) -> Callable[[str], None]:
    """Prints where pages are served, on a line that is not cut."""

    def show(link: str) -> None:
        screen.print(f"pages: {plain(link)}", soft_wrap=True)

    return show


def interim_printer(screen: Console) -> OnAnalysis:
    """Prints interim analyses as they are made: those of reported rounds, and the one that ends a campaign."""

    def show(number: int, phase: str, analysis: InterimAnalysis) -> None:
        if is_reported_round(number) or analysis.stop is not None:
            screen.print(plain(format_interim(analysis, phase, number)))

    return show


def _show_stopped(screen: Console, session: Session, summary: CampaignSummary) -> None:
    """Why a campaign of rounds is over and what to do next: last, where it is read, below what it led to."""
    if summary.stopped is None:
        return
    whole = summary.ending in (Ending.COMPLETE, Ending.FAILED_STEPS)
    screen.print(f"\n{'complete' if whole else 'stopped'}: {plain(summary.stopped)}")
    if summary.ending is Ending.COMPLETE and session.campaign.rates_models:
        store = shlex.quote(os.path.relpath(session.campaign.store))
        screen.print(f"When not to believe it: venire audit {store}")


def _show_board(out: Console, session: Session, events: Events) -> None:
    """The board, or why there is none: a run that went well should not end in a refusal."""
    origins = sorted({one.origin.value for one in session.campaign.judges})
    if len(origins) > 1:
        out.print(f"no board: the verdicts are of several origins ({', '.join(origins)}), which are not rated together")
        return

    board = session.board()
    show(out, board.sections())
    if events.active and board.models:
        events.emit("board.rated", leader=board.models[0].model, method=board.method)
    known = plans.interim_analyses(session.store, session.planned.id)
    judges = len(session.campaign.judges)
    show_interim(out, known, judges=judges, verdicts=origins[0], first=session.planned.rounds[0].number)


def _show_generated(out: Console, session: Session) -> None:
    """How many completions each contestant has now, and what became of the rest."""
    rows = [
        (plain(one.judge), f"{one.settled:,}", f"{one.read:,}", f"{one.settled - one.read:,}", money(one.cost))
        for one in judge_readability(session.store, session.planned.id)
    ]
    made = "edited copies" if session.campaign.asks_editors else "completions"
    tabulate(out, (session.role, "answered", made, "refused, cut or empty", "cost"), rows, unless_all=money(0))


def fast_loop() -> Callable[[], Any] | None:
    """uvloop's event loop where it is installed: it carries more calls on a core."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], Any] = uvloop.new_event_loop
    return factory


def _show_summary(screen: Console, session: Session, summary: CampaignSummary) -> None:
    now, paid = summary.statistics, session.spending
    if not now.calls and not now.answered:
        screen.print("nothing was asked in this run")
        return
    rate = now.calls / now.elapsed if now.elapsed > 0 else 0.0
    uncounted = frames.uncounted_answers(session.store, session.planned.id)
    screen.print(
        f"{now.calls:,} calls in {duration(now.elapsed)} ({rate:.0f} a second): {now.answered:,} answered, "
        f"{retries(now.retries)}; the limiter made {now.waits:,} calls wait, {now.waited / max(1, now.waits):.2f} s on "
        "average"
    )
    screen.print(
        f"cost {money(now.spent)} in this run, {money(paid.nano)} in all"
        + _reserved(paid)
        + f"; {paid.input_tokens:,} tokens in, {paid.output_tokens:,} out"
        + (f", without {uncounted:,} answers whose tokens the provider did not count" if uncounted else "")
    )
    _show_losses(screen, summary.losses)
    show_spending(screen, spending_document(session.store, session.planned.id))
    screen.print()
    _show_routes(screen, summary)


def _reserved(paid: CampaignSpending) -> str:
    """What of the money is only reserved, and for what, in brackets; empty for none."""
    parts = (
        (paid.unanswered, "calls without an answer"),
        (paid.unknown - paid.unanswered, "answers whose tokens the provider did not count"),
    )
    said = [f"{money(nano)} of it reserved for {whom}" for nano, whom in parts if nano > 0]
    return f" ({', '.join(said)})" if said else ""


def _show_set_aside(screen: Console, session: Session) -> None:
    """What the accounts that this run pays from hold for calls without an answer, its own and those of taken shards."""
    several = len(frames.campaigns(session.store)) > 1
    accounts = {session.campaign.store: session.spending}
    if (has := session.takeover) is not None:
        accounts |= {has.shard.store(session.whole.store, number): one for number, one in has.accounts.items()}
    for store, paid in accounts.items():
        if paid.unanswered or paid.unanswered_tokens:
            of = session.campaign.name if several else None
            screen.print(f"{unanswered_hint(asdict(paid), store, of)}\n", soft_wrap=True)


def _show_losses(screen: Console, losses: LeaseLosses) -> None:
    """What lost actors have cost; nothing where none was lost."""
    if not losses.any:
        return
    leases = f"{losses.leases:,} lease{'s' * (losses.leases != 1)} of actors lost"
    screen.print(
        f"{leases}: {losses.calls:,} calls in flight had no answer and count at {money(losses.reserved)}, their "
        f"highest price; {losses.late:,} were answered after their lease had ended, for {money(losses.late_cost)}"
    )


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
    tabulate(screen, head, rows, unless_all=money(0))
    for name, calls in sorted(summary.routes.items()):
        if calls.slowed >= _SLOWED_SECONDS:
            responses = calls.ended[Fault.RATE_LIMITED]
            screen.print(
                f"{plain(name)}: slowed for {duration(calls.slowed)} by rate-limit responses ({responses:,} in all). "
                "If the account has a limit, give it as requests_per_minute: then calls wait before they are refused"
            )
    screen.print()


def _show_ending(screen: Console, session: Session, summary: CampaignSummary) -> None:
    left = f"{summary.progress.missing:,} of {summary.progress.planned:,} trials are missing"
    if session.rounds is not None and not summary.progress.missing:
        left = "the next round is still to be asked"
    again, judges = session.again, session.role == "judge"
    if summary.ending is Ending.BUDGET:
        _show_missing(screen, session, summary)
        table = "[budget.generation]" if session.campaign.writes else "[budget]"
        screen.print(f"Raise {table} and go on: {again} --amend")
    elif summary.ending is Ending.INTERRUPTED:
        screen.print(f"\ninterrupted: what was answered is on disk; {left}. Go on: {again}")
        look = "rate" if judges and session.campaign.has_board else "status"
        screen.print(f"What is settled so far: venire {look} {shlex.quote(os.path.relpath(session.campaign.store))}")
    if summary.batches:
        out = "1 batch is" if summary.batches == 1 else f"{summary.batches:,} batches are"
        screen.print(
            f"\n{out} under way: {summary.statistics.batched:,} calls, which go on without us. To collect them: {again}"
        )
        store = shlex.quote(os.path.relpath(session.campaign.store))
        screen.print(f"How they are: venire batch list {store} --refresh; to end them: venire batch cancel {store}")
    if summary.left_for_later:
        screen.print(
            f"\n{summary.left_for_later:,} calls are left for the next start, since they took longer than max_wait "
            f"or no batch was taken: {again}"
        )
    if summary.out_elsewhere:
        store = shlex.quote(os.path.relpath(session.campaign.store))
        screen.print(
            f"\n{summary.out_elsewhere:,} trials are in batches of another campaign, or of a judge that is not asked "
            f"in batches now, and are not asked a second time. Which: venire batch list {store}"
        )
    for lane, why in summary.closed_lanes.items():
        names = [repr(one.name) for one in session.campaign.judges if lane_name(one.lane) == lane]
        whose = f"{session.role} {few(names, 4)}, {lane}"
        mend = "Mend it, or, if only some texts are refused, try the others" if "refusals running" in why else "Mend it"
        mend = f"{mend} and go on" if _is_to_be_mended(why) else "Go on"
        # What is mended in the cluster, or passes by itself, changes no file.
        on = again if summary.losses.gave_up or not _is_to_be_mended(why) else f"{again} --amend"
        screen.print(f"\nlane closed: {plain(whose)}: {plain(why)}; {left}. {mend}: {on}", style=FAILED)
    for name, why in summary.unreadable.items():
        screen.print(
            f"\nunreadable: {session.role} {plain(repr(name))} was asked no more: {plain(why)}; {left}. Mend it and go "
            f"on: {again} --amend (to ask on whatever can be read, set give_up = 0 in [quality])",
            style=FAILED,
        )
    for gate in summary.gates:
        screen.print(f"\nquality: {plain(gate)}", style=FAILED)
    if summary.progress.failed:
        failures = failure_summary(failure_reasons(session.store, session.planned.id), summary.progress.failed)
        screen.print(f"\n{failures}; try them again: {again} --retry-failed", style=FAILED)
        show_failed(
            screen, failed_steps(session.store, session.planned.id), summary.progress.failed, session.campaign.store
        )


def _is_to_be_mended(why: str) -> bool:
    """Whether a lane closed for something in the campaign file or the account: not where its reason says what to do."""
    return START_LATER not in why and "venire batch cancel" not in why


def _show_missing(screen: Console, session: Session, summary: CampaignSummary) -> None:
    """What a budget left unasked, by judge, and what that would cost."""
    whole = summary.progress
    if summary.stopped is not None:  # between two rounds, with nothing left half judged
        return
    screen.print(f"\nstopped by the budget: {whole.missing:,} of {whole.planned:,} trials are missing")
    for row in within_budgets(session, session.forecast()).judges:
        if not row.trials:
            continue
        why = summary.unaffordable.get(row.judge, "not asked")
        price = f"{money(row.expected)} (at most {money(row.most)})"
        screen.print(f"  {plain(row.judge)}: {row.trials:,} trials, about {row.calls:,} calls, {price}: {plain(why)}")


def run_pilot(
    screen: Console,
    session: Session,
    number: int,
    *,
    agree: Callable[[str], None] | None,
    environ: Mapping[str, str] | None = None,
) -> Ending:
    """Ask until every judge has about so many trials of the plan settled; returns how that ended.

    They are trials of the plan, paid once: a run goes on from there. `agree` is called with what is asked and what it
    costs, and raises where nobody wants to spend it; None: they agreed already.
    """
    trials = pilot_trials(session.store, session.planned, number, seed=session.campaign.seed)
    if not len(trials):
        screen.print(f"every judge has {number} trials on record, or no more to be asked: no pilot is needed")
        return Ending.COMPLETE
    whole = session.planned
    session.planned = replace(whole, only=frozenset(trials.tolist()))
    try:
        if agree is not None:
            cost = session.forecast().whole
            agree(f"{len(trials):,} trials of the plan, about {money(cost.expected)}, at most about {money(cost.most)}")
        with progress(screen) as show:
            summary = session.run(
                environ=environ,
                progress=_pilot_progress(show, session, len(trials)),
                live=True,  # somebody waits for it
                warn=warning_printer(screen),
            )
    finally:
        session.planned = whole
    _show_pilot(screen, session, summary, trials.tolist())
    return summary.ending


def _pilot_progress(show: Callable[[Statistics], None], session: Session, trials: int) -> Callable[[Statistics], None]:
    """Progress among the pilot's own trials."""
    before = session.progress
    return lambda now: show(
        replace(now, planned=trials, settled=now.settled - before.settled, failed=now.failed - before.failed)
    )


def _show_pilot(screen: Console, session: Session, summary: CampaignSummary, trials: list[int]) -> None:
    now, done = summary.statistics, frames.progress(session.store, session.planned.id, trials)
    settled = f"{done.settled:,} of {done.planned:,}" if done.settled < done.planned else f"{done.planned:,}"
    screen.print(f"pilot: {settled} trials, {now.calls:,} calls, {money(now.spent)}")
    if summary.ending is not Ending.COMPLETE:
        screen.print(f"it did not end whole ({summary.ending.value}): what follows rests on what there is")
    for lane, why in summary.closed_lanes.items():
        mend = "Mend it, and give the same command with --amend" if _is_to_be_mended(why) else "Give the same command"
        screen.print(f"lane closed: {plain(lane)}: {plain(why)}. {mend}", style=FAILED)
    for name, why in summary.unreadable.items():
        screen.print(f"unreadable: {session.role} {plain(repr(name))} was asked no more: {plain(why)}", style=FAILED)
    if done.failed:
        failures = failure_summary(failure_reasons(session.store, session.planned.id), summary.progress.failed)
        screen.print(f"{failures}; try them again: {session.again} --retry-failed", style=FAILED)
        show_failed(
            screen, failed_steps(session.store, session.planned.id), summary.progress.failed, session.campaign.store
        )


def show_next_steps(screen: Console, folder: Path, campaign: CampaignSettings) -> None:
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
