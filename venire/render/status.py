"""What a store holds and how far its campaigns are, for eyes and as plain values.

Every look at a store pays for what is imported here: neither the session nor the engine is.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console

from venire.arena.errors import Fault
from venire.render.interim import rounds_json, show_rounds
from venire.render.long_input import long_json, show_long
from venire.render.readability import judged_json
from venire.render.screen import duration, money, plain
from venire.render.served_models import drift_json, show_drift
from venire.render.spending import show_spending, spending_json
from venire.storage.read import frames
from venire.storage.store.recovery import Recovered, recovered
from venire.storage.store.store import Store

__all__ = [
    "failed_steps",
    "failure_reasons",
    "failure_summary",
    "show_failed",
    "show_recovered",
    "show_status",
    "status_json",
    "told_live",
    "told_paid",
]


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
                "judges": [{"judge": name} | asdict(row) for name, row in frames.judge_progress(store, one.id).items()],
                "plan": rounds_json(store, one.id),
                "judged": judged_json(store, one.id),
                "long_input": long_json(store, one.id),
                "served": drift_json(store, one.id),
                "accounts": asdict(paid),
                "forecast": spending_json(store, one.id),
                "failure_reasons": failure_reasons(store, one.id),
                "failed_steps": failed_steps(store, one.id),
                "faults": {Fault(fault).name.lower(): count for fault, count in store.read("faults", campaign=one.id)},
            }
        )
    return {
        "store": str(store.path),
        "holds": dict(zip(names, counts, strict=True)),
        "recovered": asdict(recovered(store)),
        "campaigns": found,
    }


def failure_reasons(store: Store, campaign: int) -> list[dict[str, Any]]:
    """What most trials failed for: the fault and the message of the last attempt, and how many trials."""
    rows = store.read("failure_reasons", campaign=campaign, limit=3)
    return [{"fault": Fault(fault).name.lower(), "message": said, "trials": count} for fault, said, count in rows]


def failed_steps(store: Store, campaign: int) -> list[dict[str, Any]]:
    """The first few steps that used up their attempts, with the fault and the message of the last one."""
    names = ("judge", "instruction", "models", "step", "fault", "message")
    rows = store.read("failed_steps", campaign=campaign, limit=5)
    return [dict(zip(names, row, strict=True)) | {"fault": Fault(row[4]).name.lower()} for row in rows]


def show_status(screen: Console, facts: dict[str, Any]) -> None:
    """What a store holds, for eyes: a document of `status_json`, with what is told of a running campaign in `live`."""
    holds = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in facts["holds"].items())
    screen.print(f"{plain(facts['store'])}: {holds}")
    if facts["live"] is not None:
        screen.print(plain(f"running: {told_live(facts['live'])}"))
        for sentence in facts["live"].get("slowed", ()):
            screen.print(f"  {plain(sentence)}")
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
        show_spending(screen, one["forecast"])
        show_rounds(screen, one["plan"], standing["missing"])
        show_long(screen, one["long_input"])
        show_drift(screen, one["served"])
        if standing["failed"]:
            screen.print(f"  {failure_summary(one['failure_reasons'], standing['failed'])}")
        show_failed(screen, one["failed_steps"], standing["failed"])


def told_live(live: dict[str, Any]) -> str:
    """A running campaign in a line: who runs it since when, calls, pace, what is left and what it cost so far."""
    left = live["seconds_left"]
    part = f"round {live['round']} ({live['phase']}), " if live.get("round") else ""
    of_round = " of this round" if part else ""
    return (
        f"process {live['process']} on host {live['host']} since {live['since']}, {part}{live['calls']:,} calls, "
        f"{live['in_flight']:,} in flight, {live['calls_per_second']:,.3g} a second, "
        f"{'' if left is None else f'about {duration(left)} left{of_round}, '}{money(live['spent'])}"
    )


def show_recovered(screen: Console, found: Recovered) -> None:
    """What a run that ended without notice left behind, if one did."""
    if found.lost_commits:
        screen.print(f"the store had lost its last {found.lost_commits} commits; the loss was accepted")
    if found.replies:
        screen.print(
            f"taken in from the journal: {found.replies} replies that the last run could not write to the store"
        )
    if found.calls:
        calls = "1 call has" if found.calls == 1 else f"{found.calls:,} calls have"
        screen.print(
            f"the last run ended without notice: {calls} no answer on record; "
            f"{money(found.reserved)} reserved for them count as spent"
        )


def told_paid(paid: dict[str, Any]) -> str:
    """A campaign's account in a line, what is only reserved apart."""
    told = f"{paid['calls']:,} calls, {money(paid['nano'])}"
    if not paid["unknown"]:
        return told
    return f"{told} ({money(paid['known'])} paid, {money(paid['unknown'])} reserved for calls without a known cost)"


def failure_summary(reasons: list[dict[str, Any]], failed: int) -> str:
    """How many trials failed, and for what: `2 trials failed: HTTP 403: blocked by policy (2)`."""
    parts = [f"{one['message'] or one['fault'].replace('_', ' ')} ({one['trials']:,})" for one in reasons]
    if (others := failed - sum(one["trials"] for one in reasons)) > 0:
        parts.append(f"other reasons ({others:,})")
    return plain(f"{'1 trial' if failed == 1 else f'{failed:,} trials'} failed: {'; '.join(parts)}")


def show_failed(screen: Console, steps: list[dict[str, Any]], failed: int) -> None:
    """Steps that used up their attempts, and how many more there are; `failed` counts all."""
    for one in steps:
        told = (
            f"{one['judge']}, {one['instruction']}, {', '.join(one['models'])}, step {one['step']}: "
            f"{one['fault'].replace('_', ' ')}: {one['message']}"
        )
        screen.print(f"  {plain(told)}")
    if failed > len(steps):
        screen.print(f"  and {failed - len(steps):,} more: venire sql STORE 'select * from failed'")
