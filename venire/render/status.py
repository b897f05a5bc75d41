"""A store's status for eyes: campaigns and how far they are, readings, drift, costs, failures, and a run to watch.

Every look at a store pays for what is imported here: neither the session nor the engine is.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import webbrowser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from venire.arena.wording import money, plain
from venire.live.client import Owner, SilentOwnerError
from venire.render.batches import show_batches_out
from venire.render.interim import format_last_interim, show_rounds
from venire.render.screen import FAILED, tabulate
from venire.storage.read.judge_quality import JudgeReadability
from venire.storage.store.journal import Recovered
from venire.wording import duration, retries, set_aside

MIN_READABLE = 0.9
_APART = 0.05
"""Difference of the shares read in the two orders that is worth a warning."""
"""A judge of whom less is read is named: its figures are those of the trials it answers in form."""

_JUDGES_SHARE = 20
"""The progress of judges is a query of the store: it may take one part in so many of the time."""


def show_status(screen: Console, facts: dict[str, Any]) -> None:
    """A document of `live.client.current_status`: what a store holds, and in `live` the run that is going on in it."""
    held = {name.replace("_", " "): count for name, count in facts["holds"].items()}
    rated = held.pop("models with elo")
    held = {f"{name} ({rated:,} with a known Elo)" if rated and name == "models" else name: held[name] for name in held}
    holds = ", ".join(f"{count:,} {name}" for name, count in held.items())
    screen.print(f"{plain(facts['store'])}: {holds}")
    if facts["live"] is not None:
        screen.print(plain(f"running: {format_live(facts['live'])}"))
        for sentence in facts["live"].get("slowed", ()):
            screen.print(f"  {plain(sentence)}")
    show_recovered(screen, Recovered(**facts["recovered"]))
    for one in facts["campaigns"]:
        progress, paid = one["progress"], one["accounts"]
        screen.print(
            f"\n{plain(one['campaign'])}: {progress['settled']:,} of {progress['planned']:,} trials settled, "
            f"{progress['failed']:,} failed, {progress['missing']:,} missing; "
            f"{format_spending(paid)}"
        )
        for judge in one["judges"]:
            screen.print(f"  {plain(judge['judge'])}: {judge['settled']:,} of {judge['planned']:,}")
        show_batches_out(screen, one["batches"], facts["store"])
        if one["faults"]:
            faults = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in one["faults"].items())
            screen.print(f"  calls without a reply: {faults}")
        if one["last_failure"] is not None and progress["missing"]:
            screen.print(f"  the last call failed: {plain(one['last_failure']['message'] or 'no answer came')}")
        show_spending(screen, one["forecast"])
        if one["lost_calls"] and "--engine ray:" in one["options"] and facts["live"] is None:
            screen.print(
                f"  {one['lost_calls']:,} calls without an answer here may have one with the actors of the cluster, "
                f"which keep it for twelve hours: venire run FILE {one['options']}"
            )
        if paid["unanswered"] or paid["unanswered_tokens"]:
            of = one["campaign"] if len(facts["campaigns"]) > 1 else None
            screen.print(f"  {unanswered_hint(paid, Path(facts['store']), of)}", soft_wrap=True)
        show_rounds(screen, one["plan"], len(one["judges"]), progress["missing"])
        show_long_input(screen, one["long_input"])
        show_drift(screen, one["served"])
        if progress["failed"]:
            screen.print(f"  {failure_summary(one['failure_reasons'], progress['failed'])}", style=FAILED)
        show_failed(screen, one["failed_steps"], progress["failed"], Path(facts["store"]))


def format_live(live: dict[str, Any]) -> str:
    """A running campaign in a line: who runs it since when, calls, pace, what is left and what it cost so far."""
    part = f"round {live['round']} ({live['phase']}), " if live.get("round") else ""
    return (
        f"process {live['process']} on host {live['host']} since {live['since']}, {part}{live['calls']:,} calls, "
        f"{live['in_flight']:,} in flight, {_batched(live)}{live['calls_per_second']:,.3g} a second, "
        f"{left + ', ' if (left := live.get('left', '')) else ''}{money(live['spent'])}"
    )


def _batched(live: Mapping[str, Any]) -> str:
    return f"{live['batched']:,} in batches, " if live.get("batched") else ""


def show_recovered(screen: Console, left: Recovered) -> None:
    """What a run that ended without notice left behind, if one did."""
    if left.lost_commits:
        screen.print(f"the store had lost its last {left.lost_commits} commits; the loss was accepted")
    if left.replies:
        screen.print(
            f"taken in from the journal: {left.replies} replies that the last run could not write to the store"
        )
    if left.calls:
        calls = "1 call has" if left.calls == 1 else f"{left.calls:,} calls have"
        screen.print(f"the last run ended without notice: {calls} no answer on record")


def format_spending(paid: dict[str, Any]) -> str:
    """A campaign's spending in a line, what is only reserved apart."""
    spent = f"{paid['calls']:,} calls, {money(paid['nano'])}"
    if not paid["unknown"]:
        return spent
    return f"{spent} ({money(paid['known'])} paid, {money(paid['unknown'])} reserved for calls without a known cost)"


def unanswered_hint(paid: dict[str, Any], store: Path, campaign: str | None = None) -> str:
    """What is set aside for calls without an answer, and how it is freed; `campaign` where the store has several."""
    one = paid["unanswered_calls"] == 1
    calls = "1 call without an answer counts" if one else f"{paid['unanswered_calls']:,} calls without an answer count"
    of = "" if campaign is None else f" --campaign {shlex.quote(campaign)}"
    amount = set_aside(paid["unanswered"], paid["unanswered_tokens"])
    return (
        f"{calls} as spent at {amount}, set aside when they were sent, since the provider may have "
        "charged for them. If it did not, free it: venire store release-unanswered "
        f"{plain(shlex.quote(os.path.relpath(store)) + of)}"
    )


def failure_summary(reasons: list[dict[str, Any]], failed: int) -> str:
    """How many trials failed, and for what: `2 trials failed: HTTP 403: blocked by policy (2)`."""
    parts = [f"{one['message'] or one['fault'].replace('_', ' ')} ({one['trials']:,})" for one in reasons]
    if (others := failed - sum(one["trials"] for one in reasons)) > 0:
        parts.append(f"other reasons ({others:,})")
    return plain(f"{'1 trial' if failed == 1 else f'{failed:,} trials'} failed: {'; '.join(parts)}")


def show_failed(screen: Console, steps: list[dict[str, Any]], failed: int, store: Path) -> None:
    """Steps that used up their attempts, and how many more there are; `failed` counts all."""
    for one in steps:
        line = (
            f"{one['judge']}, {one['instruction']}, {', '.join(one['models'])}, step {one['step']}: "
            f"{one['fault'].replace('_', ' ')}: {one['message']}"
        )
        screen.print(f"  {plain(line)}")
    if failed > len(steps):
        where = shlex.quote(os.path.relpath(store))
        screen.print(f"  and {failed - len(steps):,} more: venire sql {where} 'select * from failed'")


def show_spending(screen: Console, spending: dict[str, Any] | None) -> None:
    """A line: what the trials asked so far were expected to cost, and what they cost."""
    if spending is None or not spending["settled_since"] or not spending["expected"]:
        return
    paid, low, expected, high = (spending[f"{name}_so_far"] for name in ("paid", "low", "expected", "high"))
    beyond = "" if low <= paid <= high else ": below the forecast" if paid < low else ": beyond the forecast"
    screen.print(
        f"  {spending['settled_since']:,} trials since the first forecast were to cost {money(expected)} "
        f"({money(low)} to {money(high)}) and cost {money(paid)}{beyond}"
    )


def show_long_input(screen: Console, judges: Iterable[dict[str, Any]]) -> None:
    """What was too long or cut, a line a judge: documents of `status.long_input_documents`."""
    for one in judges:
        facts = [f"{one['unsent']:,} not sent, since they do not fit its context"] if one["unsent"] else []
        facts += [f"{one['refused']:,} refused by the provider as too long"] if one["refused"] else []
        if one["cut"]:
            facts.append(f"{one['cut']:,} asked with texts cut to fit, by {one['most_cut']:,} characters at most")
        screen.print(f"long input of {plain(one['judge'])}: {'; '.join(facts)}")


def show_drift(screen: Console, judges: Sequence[Mapping[str, Any]]) -> None:
    """Nothing where each judge was served by one model; else a warning for each that was not, and its fingerprints.

    `judges` are documents of `status.served_documents`.
    """
    for one in judges:
        judge = plain(one["judge"])
        if one["drift"]:
            screen.print(f"drift: judge {judge} was served by {' and by '.join(map(_format_served, one['models']))}")
        if one["fingerprints"] > 1:
            newest = plain(one["newest_fingerprint"] or "")
            screen.print(f"judge {judge}: {one['fingerprints']:,} fingerprints, the newest {newest}", style="dim")


def _format_served(model: Mapping[str, Any]) -> str:
    first, last = (time.removesuffix("Z").replace("T", " ") for time in (model["first"], model["last"]))
    day = f"{first[:10]} "
    until = "" if last == first else f" to {last.removeprefix(day)}"
    replies = "1 reply" if model["replies"] == 1 else f"{model['replies']:,} replies"
    return f"{plain(model['name'])} ({replies}, {first}{until} UTC)"


def show_readability(screen: Console, judges: Sequence[JudgeReadability], store: Path) -> None:
    """A line a judge: how much could be read, and how often the order decided; a warning of little."""
    if not judges:
        return
    head = ("judge", "protocol", "settled", "readable", "flips", "flagged", "cost")
    tabulate(screen, head, [_row(one) for one in judges], unless_all=money(0))
    for one in judges:
        orders = ((one.a_first_read, one.a_first), (one.b_first_read, one.b_first))
        shares = [read / shown for read, shown in orders if shown]
        if len(shares) == 2 and abs(shares[0] - shares[1]) > _APART:
            screen.print(
                f"warning: judge {plain(one.judge)} was readable in {shares[0]:.1%} of the trials with A first and in "
                f"{shares[1]:.1%} of those with B first: the verdicts that are left may favour one side"
            )
        if one.readable is not None and one.readable < MIN_READABLE:
            screen.print(
                f"warning: of judge {plain(one.judge)} ({one.protocol}) only {one.readable:.1%} could be "
                f"read: look at what it writes (venire sql {shlex.quote(os.path.relpath(store))} 'select text from "
                "reply'), or ask it another way"
            )
    screen.print()


def _row(one: JudgeReadability) -> tuple[str, ...]:
    return (
        plain(one.judge),
        one.protocol,
        f"{one.settled:,}",
        "-" if one.readable is None else f"{one.readable:.1%}",
        _share(one.flips, one.both_read),
        f"{one.flagged:,}",
        money(one.cost),
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def open_page(screen: Console, owner: Owner, command: str) -> None:
    """Open the page of a run in a browser, or name the command by which the next run serves one.

    Raises SilentOwnerError where nobody answers.
    """
    address = (owner.live() or {}).get("page")
    if address is None:
        screen.print(
            "this run serves no page: stop it with Ctrl-C and go on with the same command and `--serve`, or look at it "
            f"when it has ended with `{plain(command)}`"
        )
        return
    screen.print(f"page: {plain(address)}", soft_wrap=True)
    webbrowser.open(address)


def show_run(screen: Console, owner: Owner, interval: float) -> bool:
    """Watch a run until it ends, and say how it did: bars on a terminal, a line now and then elsewhere.

    Returns whether the run announced its end itself.

    Raises SilentOwnerError where nobody answers from the start.
    """
    last: dict[str, Any] | None = None
    shown: list[str] = []
    try:
        with Live(console=screen, auto_refresh=False) if screen.is_terminal else contextlib.nullcontext() as live:
            for last, judges, known in _analyses(owner, interval):
                if live is not None:
                    live.update(_picture(last, judges, known), refresh=True)
                elif not last["ended"]:
                    screen.print(f"{_done(last)}, {_counts(last)}")
                    if known != shown:
                        screen.print("\n".join(known))
                        shown = known
    except SilentOwnerError:
        if last is None:
            raise
        screen.print(f"the run has ended without notice, last seen at {_done(last)}: the same `venire run` goes on")
        return False
    assert last is not None  # the owner sends one line at least
    ending = last["ending"] or "an error stopped it"
    screen.print(f"the run has ended: {ending}; {_done(last)}, {last['calls']:,} calls, {money(last['spent'])}")
    return True


def _analyses(owner: Owner, interval: float) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]], list[str]]]:
    """The counters as often as wanted, each with the latest known progress of the judges and look at the plan."""
    judges: list[dict[str, Any]] = []
    known: list[str] = []
    next_look = 0.0
    for now in owner.watch(interval):
        if (begun := monotonic()) >= next_look and not now["ended"]:
            with contextlib.suppress(SilentOwnerError):  # the run may be ending: its last line is still to come
                found = [one for one in owner.status()["campaigns"] if one["campaign"] == now["campaign"]]
                judges = found[0]["judges"] if found else []
                known = [plain(line) for line in format_last_interim(found[0]["plan"])] if found else []
            next_look = begun + _JUDGES_SHARE * (monotonic() - begun)
        yield now, [] if now["ended"] else judges, known  # progress would be that of some seconds before the end


def _done(now: dict[str, Any]) -> str:
    failed = f", {now['failed']:,} failed" if now["failed"] else ""
    return f"{now['settled']:,} of {now['planned']:,} trials settled{failed}"


def _counts(now: dict[str, Any]) -> str:
    waits = f"{now['waits']:,} waits of {now['waited'] / now['waits']:.2f} s" if now["waits"] else "0 waits"
    part = f"round {now['round']}, {plain(now['phase'])}: " if now.get("round") else ""
    return (
        f"{part}{now['calls']:,} calls, {now['calls_per_second']:,.3g} a second, {now['in_flight']:,} in flight, "
        f"{waits}, {retries(now['retries'])}, {money(now['spent'])}, {duration(now['elapsed'])}"
        + (f", {left}" if (left := now.get("left", "")) and not now["ended"] else "")
        + "".join(f"\n{plain(sentence)}" for sentence in now.get("slowed", ()) if not now["ended"])
    )


def _picture(now: dict[str, Any], judges: list[dict[str, Any]], known: list[str]) -> RenderableType:
    bars = Table.grid(padding=(0, 2))
    bars.add_column(overflow="fold", max_width=40)
    bars.add_column(width=24)
    bars.add_column(justify="right", no_wrap=True)
    bars.add_column(justify="right", no_wrap=True)
    whole = {"judge": now["campaign"], **now}
    for number, one in enumerate((whole, *judges)):
        done = one["settled"] + one["failed"]
        bars.add_row(
            Text(("  " if number else "") + plain(one["judge"]), style="" if number else "bold"),
            ProgressBar(total=max(1, one["planned"]), completed=done, width=24),
            f"{done:,}/{one['planned']:,}",
            f"{one['failed']:,} failed" if one["failed"] else "",
        )
    return Group(bars, Text(_counts(now)), *(Text(line) for line in known))
