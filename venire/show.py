"""What the commands show: plans, progress, summaries and boards, for eyes and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from venire.arena.battles import Statistics
from venire.arena.campaigns import Campaign
from venire.arena.errors import Fault
from venire.orchestrator.campaign import CampaignSummary, Ending
from venire.orchestrator.forecast import EXPECTED_REASONS
from venire.reports.board import Board
from venire.session import Embedded, Session
from venire.storage import frames
from venire.storage.store import Store

__all__ = [
    "EXIT_CODES",
    "console",
    "plan_json",
    "show_board",
    "show_next_steps",
    "show_outcome",
    "show_plan",
    "show_status",
    "status_json",
]

EXIT_CODES = {
    Ending.COMPLETE: 0,
    Ending.LANE_CLOSED: 1,
    Ending.BUDGET: 3,
    Ending.FAILED_STEPS: 4,
    Ending.INTERRUPTED: 130,
}


def console(*, stderr: bool = False) -> Console:
    """A console as wide as its terminal, or 130 columns where there is none."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else 130, highlight=False, soft_wrap=not stream.isatty())


def money(nano: int) -> str:
    """Nano-dollars as dollars."""
    dollars = nano / 1e9
    return f"${dollars:,.2f}" if dollars >= 1 or nano == 0 else f"${dollars:.4f}"


def duration(seconds: float) -> str:
    """Seconds in words."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def show_plan(screen: Console, session: Session) -> None:
    """What is planned, what is left of it, and what that will cost."""
    planned, chosen, standing = session.planned, session.planned.design, session.progress
    settings = session.campaign.plan
    screen.print(
        f"[bold]{session.campaign.name}[/bold]: {len(chosen.models)} models, {len(chosen.matchups)} matchups "
        f"({settings.policy}) x {len(chosen.instructions)} instructions x 2 orders x {len(session.campaign.judges)} "
        f"judges{f' x {settings.repeats} repeats' if settings.repeats > 1 else ''} = {planned.trials} trials"
    )
    if planned.equal_texts:
        screen.print(f"left out: {planned.equal_texts} battles whose two texts are equal")
    if chosen.left_out:
        names = ", ".join(one.model for one in chosen.left_out[:8])
        more = f" and {len(chosen.left_out) - 8} more" if len(chosen.left_out) > 8 else ""
        screen.print(f"left out: {len(chosen.left_out)} models with {chosen.left_out[0].reason}: {names}{more}")
    if chosen.matchups and chosen.matchups[0].gap is not None:
        gaps = [matchup.gap for matchup in chosen.matchups if matchup.gap is not None]
        screen.print(f"Elo gaps: {max(gaps):.0f} to {min(gaps):.0f} points")
    if standing.settled or standing.failed:
        screen.print(
            f"on record: {standing.settled} settled, {standing.failed} failed, {standing.missing} missing; "
            f"paid so far {money(session.accounts.nano)} in {session.accounts.calls} calls"
        )
    if not standing.missing:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("judge", "trials", "calls", "tokens in", "tokens out", "expected", "at most", "at its rate limit"):
        table.add_column(name, justify="left" if name == "judge" else "right")
    for row in session.forecast():
        table.add_row(
            row.judge,
            f"{row.trials:,}",
            f"{row.calls:,}",
            f"{row.input_tokens:,}",
            f"{row.output_tokens:,}",
            money(row.expected),
            money(row.most),
            "no limit" if row.seconds is None else duration(row.seconds),
        )
    screen.print(table)
    limits = session.campaign.budget
    budget = [f"{limits.calls} calls"] if limits.calls is not None else []
    budget += [money(limits.money)] if limits.money is not None else []
    screen.print(
        f"[dim]tokens are estimates (4 characters each, {EXPECTED_REASONS} tokens of reasons); budget: "
        f"{' and '.join(budget) or 'none'}[/dim]\n"
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


def show_outcome(session: Session, screen: Console, embedded: Embedded) -> int:
    """Run a session with a progress display, show how it ended and its board; returns the exit code."""
    with _progress(screen) as tell:
        summary = session.run(
            embedded=embedded, progress=tell, warn=lambda text: screen.print(f"warning: {text}"), loop_factory=_loop()
        )
    _show_summary(screen, session, summary)
    show_board(screen if screen.file is sys.stdout else console(), session.board())
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


@contextmanager
def _progress(screen: Console) -> Iterator[Callable[[Statistics], None]]:
    """A bar on a terminal; elsewhere a line at every tenth of the way."""
    if not screen.is_terminal:
        last = [-1]

        def line(now: Statistics) -> None:
            tenth = 10 * (now.settled + now.failed) // max(1, now.planned)
            if tenth > last[0]:
                last[0] = tenth
                screen.print(f"  {_told(now)}")

        yield line
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=screen, transient=True) as bar:
        task = bar.add_task("", total=None)

        def move(now: Statistics) -> None:
            bar.update(task, total=now.planned, completed=now.settled + now.failed, description=_counts(now))

        yield move


def _told(now: Statistics) -> str:
    return f"{now.settled + now.failed}/{now.planned} trials, {_counts(now)}, {duration(now.elapsed)}"


def _counts(now: Statistics) -> str:
    return f"{now.calls} calls, {now.in_flight} in flight, {now.retries} retries, {money(now.spent)}"


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


def _show_ending(screen: Console, session: Session, summary: CampaignSummary) -> None:
    left = f"{summary.progress.missing} of {summary.progress.planned} trials are missing"
    again = f"venire run {session.campaign.path.name}"
    if summary.ending is Ending.BUDGET:
        screen.print(f"\nstopped: {summary.reason}; {left}. Raise [budget] and go on: {again} --amend")
    elif summary.ending is Ending.INTERRUPTED:
        screen.print(f"\ninterrupted: what was answered is on disk; {left}. Go on: {again}")
    for lane, why in summary.closed_lanes.items():
        screen.print(f"\nlane closed: {lane}: {why}; {left}. Mend it and go on: {again}")
    if summary.progress.failed:
        screen.print(f"\n{summary.progress.failed} trials failed; try them again: {again} --retry-failed")
        _show_failed(screen, session.store, session.planned.id)


def _show_failed(screen: Console, store: Store, campaign: int) -> None:
    for judge, instruction, a, b, step, fault, message in store.read("failed_steps", campaign=campaign, limit=5):
        kind = Fault(fault).name.lower().replace("_", " ")
        screen.print(f"  {judge}, {instruction}, {a} against {b}, step {step}: {kind}: {message}", markup=False)


def show_board(screen: Console, board: Board) -> None:
    """Models by rating and judges by consistency, with what a reader needs to doubt them."""
    facts = board.diagnostics
    if not board.models:
        screen.print(f"no ratings: {facts['reason']}")
        return
    reference = any(row.reference is not None for row in board.models)
    grouped = any(row.group is not None for row in board.models)
    table = Table(title=f"Leaderboard   verdicts: {board.verdicts}", title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    table.add_column("model")
    for name in ("Elo", "95 %", "battles", *(("reference",) if reference else ()), *(("group",) if grouped else ())):
        table.add_column(name, justify="right")
    for place, row in enumerate(board.models, start=1):
        span = "" if row.lo is None or row.hi is None else f"{row.lo:.0f} to {row.hi:.0f}"
        cells = [f"{place}", row.model, "none" if row.elo is None else f"{row.elo:.0f}", span, f"{row.battles}"]
        cells += ["" if row.reference is None else f"{row.reference:.0f}"] if reference else []
        cells += [f"{row.group or ''}"] if grouped else []
        table.add_row(*cells)
    screen.print(table)
    _show_doubts(screen, board)
    _show_judges(screen, board)


def _show_doubts(screen: Console, board: Board) -> None:
    facts = board.diagnostics
    boot = facts["bootstrap"]
    without = f", {boot['without_estimate']} without a finite estimate" if boot["without_estimate"] else ""
    screen.print(
        f"[dim]{facts['merge']} of both orders; {facts['judgments']} judgments, {facts['ties']} ties, {facts['flips']} "
        f"flipped with the order; {board.gauge}; {boot['replicates']} bootstraps over {boot['unit']}s{without}[/dim]"
    )
    bad = {name: count for name, count in facts["statuses"].items() if count and name != "ok"}
    if bad:
        screen.print("not read: " + ", ".join(f"{count} {name}" for name, count in bad.items()))
    if len(facts["groups"]) > 1:
        screen.print("no common estimate exists: these groups were rated apart")
        for group in facts["groups"]:
            screen.print("  " + ", ".join(group))
    if agreement := facts["agreement"]:
        screen.print(
            f"agreement with the reference: Pearson {agreement['pearson']:.3f}, Spearman {agreement['spearman']:.3f}, "
            f"MAE {agreement['mae']:.0f} Elo   [bold]verdicts: {agreement['verdicts']}[/bold]"
        )
    screen.print()


def _show_judges(screen: Console, board: Board) -> None:
    title = f"Judges   verdicts: {board.verdicts}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("judge", no_wrap=True)
    for name in ("consistency", "95 %", "decisive", "95 %", "ties", "flips", "1st", "read", "verdicts"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in board.judges:
        table.add_row(
            row.judge,
            _number(row.consistency),
            _span(row.consistency_lo, row.consistency_hi),
            _number(row.decisive),
            _span(row.decisive_lo, row.decisive_hi),
            _share(row.tie_share),
            _share(row.flip_rate),
            _share(row.first_share),
            _share(row.readable_share),
            f"{row.verdicts}",
        )
    screen.print(table)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _span(lo: float | None, hi: float | None) -> str:
    return "" if lo is None or hi is None else f"{lo:.2f}-{hi:.2f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def show_next_steps(screen: Console, folder: Path, campaign: Campaign) -> None:
    """The commands to try after the demo."""
    store = folder / campaign.store.name
    screen.print("\nNext:")
    for command in (
        f"venire status {store}",
        f"venire rate {store} --json",
        f"venire run {folder / campaign.path.name}        # nothing is asked or paid twice",
        "venire init my-campaign             # a campaign file to start from",
    ):
        screen.print(f"  {command}", markup=False)


def status_json(store: Store) -> dict[str, Any]:
    """What a store holds, as plain values."""
    (counts,) = store.read("counts")
    names = ("instructions", "completions", "models", "models_with_elo", "attempts", "verdicts")
    found = []
    for one in frames.campaigns(store):
        standing, paid = frames.progress(store, one.id), frames.accounts(store, one.id)
        found.append(
            {
                "campaign": one.name,
                "started_at": one.started_at,
                "progress": asdict(standing) | {"missing": standing.missing},
                "judges": [
                    dict(zip(("judge", "planned", "settled", "failed"), row, strict=True))
                    for row in store.read("judge_progress", campaign=one.id)
                ],
                "accounts": asdict(paid),
                "faults": {Fault(fault).name.lower(): count for fault, count in store.read("faults", campaign=one.id)},
            }
        )
    return {"store": str(store.path), "holds": dict(zip(names, counts, strict=True)), "campaigns": found}


def show_status(screen: Console, store: Store) -> None:
    """What a store holds, for eyes."""
    facts = status_json(store)
    holds = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in facts["holds"].items())
    screen.print(f"[bold]{store.path}[/bold]: {holds}")
    for row, one in zip(frames.campaigns(store), facts["campaigns"], strict=True):
        standing, paid = one["progress"], one["accounts"]
        screen.print(
            f"\n[bold]{one['campaign']}[/bold]: {standing['settled']:,} of {standing['planned']:,} trials settled, "
            f"{standing['failed']:,} failed, {standing['missing']:,} missing; {paid['calls']:,} calls, "
            f"{money(paid['nano'])}"
        )
        for judge in one["judges"]:
            screen.print(f"  {judge['judge']}: {judge['settled']:,} of {judge['planned']:,}", markup=False)
        if one["faults"]:
            told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in one["faults"].items())
            screen.print(f"  calls without a reply: {told}")
        _show_failed(screen, store, row.id)
