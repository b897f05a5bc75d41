"""The batches of a store at their providers: how they are, and ending them before their time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from venire.arena.campaigns import BatchSettings, CampaignSettings, JudgeSettings
from venire.arena.errors import CallError, InputError, VenireError
from venire.configs.loading import campaign_of
from venire.endpoints import open_routes, read_secrets
from venire.judges.providers.base import Provider
from venire.judges.providers.batches.base import BatchProvider, BatchStatus
from venire.orchestrator.lanes.retry import pause_after
from venire.orchestrator.lanes.routes import route_name
from venire.storage.plans import submissions
from venire.storage.plans.submissions import SubmissionRow
from venire.storage.read import frames
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store

_GONE = frozenset({404, 410})
_TIMES = 3
"""How often a provider says that it does not know a batch before that batch is closed."""
_UNPROVEN = (
    "found in its provider's list by its size and time alone, so that it may be somebody else's: not cancelled; the "
    "next run reads its answers once it has ended"
)

_GIVEN_UP = "given up: its calls count at what was reserved, and the next run asks them again; nothing was cancelled"


@dataclass(frozen=True, slots=True)
class BatchAtProvider:
    """A submission and what its provider says of it; `problem` where it says nothing."""

    campaign: str
    submission: SubmissionRow
    status: BatchStatus | None
    problem: str = ""
    closed: bool = False
    """Whether it is not out any more."""

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        status = None
        if self.status is not None:
            status = {name: getattr(self.status, name) for name in ("lines", "answered", "failed", "problem")}
            expires = self.status.expires_at
            status |= {
                "state": self.status.state.value,
                "expires_at": None if expires is None else expires.isoformat(),
            }
        return self.submission.to_json() | {"campaign": self.campaign, "provider": status, "not_known": self.problem}


def ask_providers(
    store: Path, name: str | None = None, *, environ: Mapping[str, str] | None = None
) -> list[BatchAtProvider]:
    """What providers say of the batches of a store that are out; `name` is one of them, None: all.

    Keys come from `environ` (None: this process's). Raises InputError for a name that no batch has, and
    StoreHeldError while a run owns the store: that looks at its batches itself.
    """
    with open_store(store, create=False) as opened:
        return [_at_provider(opened, campaign.name, one, environ, _show) for campaign, one in _out(opened, name)]


def cancel(
    store: Path, name: str | None = None, *, give_up: bool = False, environ: Mapping[str, str] | None = None
) -> list[BatchAtProvider]:
    """Ask providers to end the batches of a store that are out; `name` is one of them, None: all.

    What was answered by then is taken in by the next run of the campaign, which asks the rest again. One that is not
    proved to be ours is not cancelled. A batch that was never sent, or that its provider does not know any more, is
    closed here: calls that may have been answered count at what was reserved for them. So is, with `give_up`, the one
    of that name that is in doubt. Raises as `ask_providers`, and InputError where `give_up` has no name, or that of one
    that is not in doubt.
    """
    if give_up and name is None:
        raise InputError("--give-up is of one batch: name it (venire batch list STORE shows which are out)")
    found = []
    with open_store(store, create=False) as opened:
        for campaign, one in _out(opened, name):
            adopted = any(row.adopted for row in submissions.open_submissions(opened, campaign.id) if row.id == one.id)
            if give_up:
                if not adopted and one.kind != "doubted":
                    raise InputError(f"batch {one.name} is not in doubt: cancel it without --give-up, or run again")
                _close(opened, one, "by venire batch cancel, whosever it is")
                found.append(BatchAtProvider(campaign.name, one, None, _GIVEN_UP, closed=True))
                continue
            ask = _show if adopted else _cancel
            asked = _at_provider(opened, campaign.name, one, environ, ask, closes=True, is_ours=not adopted)
            if adopted and not asked.closed:
                asked = replace(asked, status=None, problem=_UNPROVEN)
            elif asked.status is not None:
                _note(opened, one, "cancelling", "asked for by venire batch cancel")
            elif not asked.closed and one.provider_id is not None:
                asked = replace(
                    asked, problem=f"not cancelled ({asked.problem}): it goes on; cancel it again when that has passed"
                )
            found.append(asked)
    return found


def _show(batches: BatchProvider, batch: str) -> Awaitable[BatchStatus]:
    return batches.status(batch)


def _cancel(batches: BatchProvider, batch: str) -> Awaitable[BatchStatus]:
    return batches.cancel(batch)


def _out(store: Store, name: str | None) -> list[tuple[frames.CampaignRow, SubmissionRow]]:
    there = [(one, row) for one in frames.campaigns(store) for row in submissions.submissions(store, one.id)]
    if name is None:
        return [(campaign, row) for campaign, row in there if row.is_open]
    chosen = [(campaign, row) for campaign, row in there if row.name == name or row.provider_id == name]
    if not chosen:
        known = ", ".join(row.name for _, row in there if row.is_open) or "none is out"
        raise InputError(f"{store.path} has no batch {name!r}; out: {known}")
    if not chosen[0][1].is_open:
        raise InputError(f"batch {name} is not out any more: {chosen[0][1].kind} ({chosen[0][1].detail})")
    return chosen


def _at_provider(
    store: Store,
    campaign: str,
    one: SubmissionRow,
    environ: Mapping[str, str] | None,
    ask: Callable[[BatchProvider, str], Awaitable[BatchStatus]],
    *,
    closes: bool = False,
    is_ours: bool = True,
) -> BatchAtProvider:
    """What the provider says to a question about one batch.

    `closes`: close it here where nobody has it any more; the provider says so of one that is proved to be ours alone.
    """
    if one.provider_id is None:
        return BatchAtProvider(campaign, one, None, "not confirmed when it was sent: the next run looks for it")
    provider_id = one.provider_id

    async def go() -> BatchStatus:
        provider, batches = _open(store, campaign, one, environ)
        try:
            for failures in range(1, _TIMES):
                try:
                    return await ask(batches, provider_id)
                except CallError as error:
                    if not closes or error.status not in _GONE:
                        raise
                await asyncio.sleep(pause_after(failures))
            return await ask(batches, provider_id)
        finally:
            await batches.close()
            await provider.close()

    try:
        return BatchAtProvider(campaign, one, asyncio.run(go()))
    except CallError as error:
        if closes and is_ours and error.status in _GONE:
            _close(store, one)
            return BatchAtProvider(campaign, one, None, "its provider does not know it any more: closed", closed=True)
        return BatchAtProvider(campaign, one, None, str(error))
    except _NoEndpointError:
        if closes:
            _close(store, one)
        what = ": closed" if closes else ""
        problem = f"a simulated provider's, which ended with its run{what}"
        return BatchAtProvider(campaign, one, None, problem, closed=closes)
    except VenireError as error:
        return BatchAtProvider(campaign, one, None, str(error))


class _NoEndpointError(Exception):
    """The batch was sent to the embedded server of a run that is over."""


def _open(
    store: Store, campaign: str, one: SubmissionRow, environ: Mapping[str, str] | None
) -> tuple[Provider, BatchProvider]:
    """The endpoint that a batch was sent to. Raises InputError where its judge or key is not known."""
    settings, judge = _judge(store, campaign, one.route)
    if judge.lane.routes[0].base_url is None:
        raise _NoEndpointError
    (opened,) = open_routes(settings, [judge], read_secrets(settings, [judge], environ), None, {})
    if opened.batches is None:
        raise InputError(f"{one.route} has no batch interface any more")
    return opened.provider, opened.batches


def _judge(store: Store, campaign: str, route: str) -> tuple[CampaignSettings, JudgeSettings]:
    """The judge that asks by a route, alone with it, from the campaign's file as it was when last accepted."""
    from venire.storage.plans.plans import find_campaign

    known = find_campaign(store, campaign)
    assert known is not None  # its submissions name it
    path = store.path.with_suffix(".toml")
    settings = replace(campaign_of(path, known.text), store=store.path)  # waves in files are beside it
    for judge in (*settings.judges, *settings.contestants, *settings.editors):
        for way in judge.lane.routes:
            if route_name(way) == route:
                lane = replace(judge.lane, routes=(way,), batch=judge.lane.batch or BatchSettings())
                return settings, replace(judge, lane=lane)
    raise InputError(f"no judge of campaign {campaign!r} asks by {route}")


def _note(store: Store, one: SubmissionRow, kind: str, detail: str) -> None:
    with store.commit() as commit:
        commit.run(
            "insert_submission_event",
            submission=one.id,
            now=store.clock.wall(),
            kind=kind,
            provider_id=one.provider_id,
            detail=detail,
            batch=commit.batch,
        )


def _close(store: Store, one: SubmissionRow, why: str = "its provider does not know it any more") -> None:
    """Close a batch that nobody can ask about any more: its calls are on record as unanswered."""
    with store.commit() as commit:
        commit.run("give_up_lines", submission=one.id, batch=commit.batch)
    _note(store, one, "returned", f"given up: {why}")
