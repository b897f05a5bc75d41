"""What a run that ended without notice left beside its store, brought into it at the next opening."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import duckdb

from venire.arena.errors import Fault, InputError, StoreError
from venire.storage.store.connection import ROW_GROUP, first_line, make_database, quoted, rescued_paths
from venire.storage.store.files import is_open_here, log_path
from venire.storage.store.journal import Announcement, LeftBehind, Recovered, Rows, journal_path, read_journal
from venire.storage.store.store import Store

ENDED_WITHOUT_ANSWER = "announced, and the process ended before an answer was on disk"
"""What is on record of a call that the journal alone knows of."""

FAULT_COLUMN = 7
"""Place of the column `fault` in a row of `attempt`."""


class _TakenBack(Exception):
    """A row that would have been taken."""


def recover(store: Store, *, accept_loss: bool = False, under_way: Collection[tuple[int, int, int]] = ()) -> Recovered:
    """Bring what a run left in its journal into the store; the journal goes once all of it is in the file.

    Each step is one commit that is known again when it was made already, so that a kill in here changes nothing.
    `under_way` are the trial, step and number of calls that other processes still have in flight, or an answer to.

    Raises InputError when the journal is another store's, or knows of commits that the store no longer has, unless
    `accept_loss` is true; StoreError when the store cannot be written.
    """
    left = read_journal(store.path)
    if left is None:
        journal_path(store.path).unlink(missing_ok=True)
        return Recovered()
    gone = _lost_commits(store, left)
    if gone and not accept_loss:
        raise InputError(_lost(store, left))
    if gone:
        store.batch = left.batch - 1  # numbers go on, so that what the journal holds keeps its places
        _note(store, left, "commits lost", {"commits": gone, "rows": left.running - store.running})
    try:
        replies = _take_spilled(store, left)
    except StoreError as error:
        raise StoreError(
            f"{error}. What the last run could not write is still kept in {journal_path(store.path)}: make room on the "
            "disk and try again"
        ) from error
    unanswered = _unanswered(store, left)
    lost = [one for one in unanswered if (one.trial, one.step, one.number) not in under_way]
    found = Recovered(len(lost), sum(one.reserved for one in lost), replies, gone)
    if lost:
        with store.commit() as commit:
            commit.append("attempt", [_attempt(one, left) for one in lost])
    if found != Recovered():
        facts = {"replies": found.replies, "calls": found.calls, "reserved": found.reserved}
        _note(store, left, "recovered", facts)
    if store.checkpoint() and len(lost) == len(unanswered):  # else the next run announces them again, or counts them
        journal_path(store.path).unlink(missing_ok=True)
    return found


def _lost_commits(store: Store, left: LeftBehind) -> int:
    """Commits that a journal knows of and its store has not. Raises InputError for the journal of another store."""
    if left.store_id != store.constant:
        raise InputError(
            f"{journal_path(store.path)} belongs to another store than {store.path}: a run wrote to a store of that "
            "name that is not there any more. Put that store back, or move the journal away"
        )
    return max(0, left.batch - store.batch)


def refuse_unfinished(store: Store) -> None:
    """Raises InputError where a store that is only read lacks commits or replies that its journal knows of.

    Calls that had no answer when the journal was last written do not matter: they add nothing to what can be read.
    """
    left = read_journal(store.path)
    if left is None:
        return
    if _lost_commits(store, left):
        raise InputError(_lost(store, left))
    if left.spilled:
        raise InputError(
            f"{journal_path(store.path)} holds replies that the last run could not write into {store.path}, which "
            "cannot be written now either: copy both to a folder of your own and name the copy"
        )


def recovered(store: Store) -> Recovered:
    """What was recovered since the last run that ended with notice, whichever command opened the store first."""
    sums: Counter[str] = Counter()
    for kind, detail in store.read("recovered"):
        found = json.loads(detail)
        sums.update({"lost_commits": found["commits"]} if kind == "commits lost" else found)
    return Recovered(**sums)


def _take_spilled(store: Store, left: LeftBehind) -> int:
    """Write the rows that DuckDB could not take, each group under its own number; returns how many were replies."""
    replies = refused = 0
    for group in left.spilled:
        kept: Rows = group.rows
        try:
            if group.batch > store.batch:  # else it was written after all, or by a recovery that was cut short
                _write(store, group.rows)
        except (duckdb.Error, ValueError):  # a row that no table takes must not keep the store closed for ever
            kept = [row for row in group.rows if _fits(store, row)]
            _write(store, kept)
            refused += len(group.rows) - len(kept)
        replies += sum(table == "attempt" and row[FAULT_COLUMN] == Fault.NONE for table, row in kept)
    if refused:  # noted last: each group has a number of its own, and this commit takes the next
        _note(store, left, "rows refused", {"rows": refused})
    return replies


def _write(store: Store, rows: Rows) -> None:
    with store.commit() as commit:
        for name in dict.fromkeys(table for table, _ in rows):
            commit.append(name, [row for table, row in rows if table == name])


def _fits(store: Store, row: tuple[str, tuple[Any, ...]]) -> bool:
    """Whether the table takes a row, tried and taken back."""
    try:
        with store.commit() as commit:
            commit.append(row[0], [row[1]])
            raise _TakenBack
    except _TakenBack:
        return True
    except (duckdb.Error, ValueError):
        return False


def _unanswered(store: Store, left: LeftBehind) -> list[Announcement]:
    known = {tuple(row) for row in store.rows("attempts_of", trials=sorted({one.trial for one in left.announced}))}
    return [one for one in left.announced if (one.trial, one.step, one.number) not in known]


def _attempt(one: Announcement, left: LeftBehind) -> tuple[Any, ...]:
    cost, tokens = (one.reserved, (one.tokens - one.output, None, one.output)) if one.settled else (None, (None,) * 3)
    head = (left.campaign, one.trial, one.step, one.number, one.lane, left.started_at, None, int(Fault.UNANSWERED))
    return (
        *(*head, None, ENDED_WITHOUT_ANSWER, None, None, *tokens, None, one.reserved, cost),
        *(None, None, b"", None, None, None, one.tokens, None, None, None),
    )


def _note(store: Store, left: LeftBehind, kind: str, facts: dict[str, int]) -> None:
    with store.commit() as commit:
        now = store.clock.wall()
        campaign, detail = left.campaign, json.dumps(facts)
        commit.run("insert_event", now=now, campaign=campaign, kind=kind, detail=detail, batch=commit.batch)


def _lost(store: Store, left: LeftBehind) -> str:
    return (
        f"the store {store.path} has lost its last {left.batch - store.batch} commits ({left.running - store.running} "
        f"rows): the journal beside it knows of them. Its log {store.path}.wal was cut or removed, or an older copy "
        "was put in its place. Put the right files back; or accept the loss with `venire store accept-loss "
        f"{store.path}`: calls whose replies are gone then count as unanswered, and are asked again"
    )


def rescue(store: Store) -> Path:
    """Write all that a store holds to `<store>.rescued`, after its own file was taken away or changed under the run.

    The process still has the file, wherever its name is now. Its log is folded into it when that still lies at the old
    place, where it would spoil the store that is there now; one of a file that was changed in place is removed, since
    all of it is in the copy. Raises StoreError when the copy cannot be written.
    """
    target = next((one for one in rescued_paths(store.path) if not one.exists()), None)
    log = log_path(store.path)
    if target is None:
        raise StoreError(f"{rescued_paths(store.path)[-1]} and all before it are there already: nothing was written")
    try:
        make_database(target)
        store.connection.execute(f"attach {quoted(target)} as rescued (row_group_size {ROW_GROUP})")
        store.connection.execute("copy from database venire to rescued")
        store.connection.execute("detach rescued")
    except (duckdb.Error, OSError) as error:
        for end in ("", ".wal"):  # half a copy opens as a store too
            target.with_name(target.name + end).unlink(missing_ok=True)
        raise StoreError(f"{target} cannot be written: {first_line(error)}") from error
    if store.is_elsewhere() and is_open_here(log):  # ours, so that DuckDB may remove it
        try:
            store.connection.execute("checkpoint")  # the file is whole again, wherever its name is now
        except duckdb.Error:
            log.unlink(missing_ok=True)
    elif not store.is_elsewhere() and store.displaced() is not None and is_open_here(log):
        log.unlink(missing_ok=True)
    store.end_journal()
    return target
