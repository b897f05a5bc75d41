"""The process of one `venire run`: the real command, with marks around the functions that the rig aims at.

The product has no hooks for this; the functions are wrapped here, where they are looked up. A deliberately broken build
is made here too, to see that the rig notices.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import shutil
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import venire.orchestrator.costs.budget
import venire.orchestrator.recording.recorder
import venire.running
import venire.session
import venire.storage.plans.plans
import venire.storage.store.connection
import venire.storage.store.journal
import venire.storage.store.opening
import venire.storage.store.recovery
import venire.storage.store.store
import venire.storage.store.writer
from tests.torture.marks import Marks
from tests.torture.promises import Dump
from venire.arena.clock import SystemClock
from venire.judges.providers.openai import OpenAIProvider
from venire.storage.store.store import Store

_CHECKPOINT_BYTES = 30_000


@dataclass(frozen=True)
class Settings:
    """How a campaign is run: group commits as given, a checkpoint whenever the log is longer than a few commits."""

    group_rows: int
    group_seconds: float
    dump: Path
    """Where the rows are written that the store has once it is open."""
    retry_failed: bool = False
    broken: str | None = None


def run(campaign: Path, settings: Settings, marks: Marks) -> None:
    """`venire run CAMPAIGN --yes`; ends with SystemExit."""
    from venire.cli import main

    _mark(settings, marks)
    if settings.broken is not None:
        BROKEN[settings.broken]()
    sys.argv = ["venire", "run", str(campaign), "--yes", *(["--retry-failed"] if settings.retry_failed else [])]
    main()
    raise SystemExit(0)


def _mark(settings: Settings, marks: Marks) -> None:
    assert venire.storage.store.store._LONG_LOG > _CHECKPOINT_BYTES
    venire.storage.store.store._LONG_LOG = _CHECKPOINT_BYTES
    venire.session.SystemClock = functools.partial(_JumpingClock, marks)
    venire.storage.plans.plans.append_round = _marked(marks, "planning", venire.storage.plans.plans.append_round)
    venire.storage.store.opening.recover = _marked(marks, "recovery", venire.storage.store.opening.recover)
    Store.checkpoint = _marked(marks, "checkpoint", Store.checkpoint)
    _mark_commits(marks)
    _mark_calls(marks)
    _mark_running(settings, marks)
    real_open = venire.session.open_store

    def open_store(*words: Any, **named: Any) -> Store:
        store = real_open(*words, **named)
        settings.dump.write_bytes(pickle.dumps(Dump.of(store.connection)))
        return store

    venire.session.open_store = open_store


def _marked(marks: Marks, phase: Any, real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def marked(*words: Any, **named: Any) -> Any:
        marks.enter(phase)
        try:
            marks.point(phase, "start")
            result = real(*words, **named)
            marks.point(phase, "end")
            return result
        finally:
            marks.leave(phase)

    return marked


def _mark_commits(marks: Marks) -> None:
    """A commit of the writer's thread is a phase; one of the main thread is the middle of the phase it belongs to."""
    real = Store.commit

    @contextlib.contextmanager
    def commit(store: Store) -> Iterator[Any]:
        with contextlib.ExitStack() as stack:
            phase: Any = None
            if threading.current_thread() is not threading.main_thread():
                phase = "commit"
                marks.enter(phase)
                stack.callback(marks.leave, phase)
            with real(store) as transaction:
                marks.point(phase, "start")
                yield transaction
                marks.point(phase, "middle")
            marks.batch = store.batch
            if phase is not None:
                marks.point(phase, "end")

    Store.commit = commit


def _mark_calls(marks: Marks) -> None:
    """The first call lasts from before its announcement until its answer, `calls` from the nth until the end.

    The end of `calls` is when no call is left and the last rows are not yet asked to be written.
    """
    recorder = venire.orchestrator.recording.recorder.Recorder
    announce, close, send = recorder.announce, recorder.close, OpenAIProvider.send
    count = later = 0

    async def announced(self: Any, *words: Any, **named: Any) -> Any:
        nonlocal count, later
        count += 1
        if count == 1:
            marks.enter("first call")
            marks.point("first call", "start")
        slot = await announce(self, *words, **named)
        if count == 1:
            marks.point("first call", "middle")
        later += words[1] >= marks.step
        marks.enter_once("calls", later)
        return slot

    async def sent(self: OpenAIProvider, *words: Any) -> Any:
        first = marks.inside("first call") and marks.claim()
        try:
            return await send(self, *words)
        finally:
            if first:
                marks.point("first call", "end")
                marks.leave("first call")

    async def closed(self: Any) -> None:
        marks.point("calls", "end")
        await close(self)

    recorder.announce, recorder.close = announced, closed
    OpenAIProvider.send = sent


def _mark_running(settings: Settings, marks: Marks) -> None:
    real: Callable[..., Awaitable[Any]] = venire.running.run_campaign

    async def run_campaign(*words: Any) -> Any:
        *plan, setup = words
        setup = replace(setup, group_rows=settings.group_rows, group_seconds=settings.group_seconds)
        try:
            return await real(*plan, setup)
        finally:
            if marks.inside("calls"):
                marks.leave("calls")

    venire.running.run_campaign = run_campaign


class _JumpingClock(SystemClock):
    """The machine's clock, off by what the rig says: the wall clock either way, the monotonic one forward."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks

    def monotonic(self) -> float:
        return time.monotonic() + self._marks.jumps[1] / 1000

    def wall(self) -> datetime:
        return datetime.now(UTC) + timedelta(milliseconds=self._marks.jumps[0])


def _announcement_skipped() -> None:
    """Calls are sent without being announced on disk."""

    def announce(self: Any, *words: Any, **named: Any) -> Any:
        return self._free.popleft()

    venire.storage.store.journal.Journal.announce = announce


def _first_reply_wins_off() -> None:
    """Of several answered attempts the last sent is taken."""
    queries = venire.storage.store.connection._queries()
    last = queries["replies"].replace("order by number, batch)", "order by number desc)")
    if last == queries["replies"]:
        raise ValueError("the query `replies` chooses in other words: this build breaks nothing")
    queries["replies"] = last


def _reservation_released_twice() -> None:
    """A settled call gives its reservation back twice."""
    view = venire.orchestrator.costs.budget.BudgetView
    settle = view.settle

    def settled(self: Any, reservation: Any, *words: Any) -> None:
        settle(self, reservation, *words)
        for account in self.accounts:
            account.reserved = account.reserved.minus(reservation)

    view.settle = settled


def _replies_dropped() -> None:
    """What a full disk keeps out of the store is not kept anywhere else."""
    venire.storage.store.journal.Journal.spill = lambda *_: None


def _recovered_again() -> None:
    """A start puts every announcement on record, those of calls that are there already too."""
    venire.storage.store.recovery._unanswered = lambda store, left: list(left.announced)


def _history_rewritten() -> None:
    """A start changes rows of earlier runs."""
    real = venire.storage.store.opening.recover

    def recover(store: Store, **named: Any) -> Any:
        store.connection.execute("update attempt set latency_ms = 0")
        return real(store, **named)

    venire.storage.store.opening.recover = recover


BROKEN: dict[str, Callable[[], None]] = {
    "announcement-skipped": _announcement_skipped,
    "first-reply-wins-off": _first_reply_wins_off,
    "reservation-released-twice": _reservation_released_twice,
    "replies-dropped": _replies_dropped,
    "recovered-again": _recovered_again,
    "history-rewritten": _history_rewritten,
}
"""Builds with one promise broken, by name."""


def read_dump(path: Path) -> Dump | None:
    """What a run wrote of the store that it had opened; None where it did not get so far."""
    try:
        dump: Dump = pickle.loads(path.read_bytes())
    except (FileNotFoundError, EOFError, pickle.UnpicklingError):
        return None
    return dump


def committed(store: Path, copy: Path) -> Dump | None:
    """The committed rows of a store that nobody has open, read from a copy; None where it is none."""
    import duckdb

    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for suffix in ("", ".wal"):
        if (path := store.with_name(store.name + suffix)).is_file():
            shutil.copy(path, copy / path.name)
    if not (copy / store.name).is_file():
        return None
    try:
        with duckdb.connect(copy / store.name) as connection:
            return Dump.of(connection)
    except duckdb.Error:
        return None


def put_duplicates(store: Path, message: str) -> int:
    """Beside every answered step of a trial without a verdict, an answer sent later that says something else."""
    with venire.storage.store.opening.open_store(store, create=False) as opened, opened.commit() as commit:
        written = opened.connection.execute(_DUPLICATES, {"message": message, "batch": commit.batch}).fetchall()
        commit.written += written[0][0]
        return int(written[0][0])


_DUPLICATES = """
insert into attempt by name select * replace (number + 100 as number, sent_at + interval 1 second as sent_at,
  case when step = 1 then 'Something else. ' || text else '0' end as text, $message as message, 0 as cost,
  $batch as batch)
  from attempt a where fault = 0 and not exists (select 1 from verdict v where v.trial = a.trial)
"""
