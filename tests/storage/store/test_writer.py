"""What is put is written, in groups, whole, or the writer says that it was not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from venire.arena.budgets import Amount
from venire.arena.errors import Fault, InputError, StoreError
from venire.arena.records import Reply, Status, Verdict
from venire.orchestrator.recording.recorder import AttemptRecord, Recorder
from venire.storage.store.opening import open_store
from venire.storage.store.store import Commit
from venire.storage.store.writer import Writer

LONG = 3600.0
MANY = 1_000_000


def until(holds: Callable[[], bool], *, tries: int = 5_000) -> bool:
    """Whether it comes to hold within ten seconds, or so many tries of two milliseconds."""
    pause = threading.Event()
    for _ in range(tries):
        if holds():
            return True
        pause.wait(0.002)
    return False


def event(house: Any, detail: str) -> tuple[Any, ...]:
    return (house.store.clock.wall(), 1, "kind", detail)


def test_duckdb_divides_its_work_again_once_the_last_row_is_written(house: Any) -> None:
    def threads() -> int:
        return int(house.store.connection.execute("select current_setting('threads')").fetchone()[0])

    house.store.divide_work()
    before = threads()
    writer = Writer(house.store)
    while_writing = threads()
    writer.close()
    assert (while_writing, threads()) == (1, before) != (1, 1)


def test_rows_are_on_disk_as_soon_as_a_group_is_full(house: Any) -> None:
    writer = Writer(house.store, group_rows=10, group_seconds=LONG)
    for n in range(10):
        writer.put("event", event(house, str(n)))
    assert until(lambda: writer.waiting == 0)
    assert sorted(house.column("select detail from event")) == [str(n) for n in range(10)]
    writer.close()


def test_rows_are_on_disk_after_group_seconds_even_if_no_more_come(house: Any) -> None:
    writer = Writer(house.store, group_rows=MANY, group_seconds=0.01)
    for round_ in range(1, 4):
        writer.put("event", event(house, str(round_)))
        assert until(lambda: writer.waiting == 0)
        assert house.one("select count(*) from event") == (round_,)
    writer.close()


def test_a_group_that_is_not_full_and_not_old_waits_for_more(house: Any) -> None:
    writer = Writer(house.store, group_rows=10, group_seconds=LONG)
    for n in range(19):
        writer.put("event", event(house, str(n)))
        until(lambda: writer.waiting == 0, tries=2)  # time enough for a writer that does not wait
    assert until(lambda: writer.waiting == 9)
    writer.close()
    assert house.column("select written from ledger order by batch") == [10, 9]


def test_nothing_is_lost_at_close(house: Any) -> None:
    writer = Writer(house.store, group_rows=MANY, group_seconds=LONG)
    for n in range(1_234):
        writer.put("event", event(house, str(n)))
    writer.close()
    assert writer.waiting == 0
    assert sorted(map(int, house.column("select detail from event"))) == list(range(1_234))
    assert house.all("select batch, written from ledger") == [(1, 1_234)]


def test_a_writer_without_rows_makes_no_commit(house: Any) -> None:
    Writer(house.store).close()
    assert house.store.batch == 0


def test_ten_thousand_rows_go_in_groups_each_with_its_ledger_line(house: Any) -> None:
    writer = Writer(house.store, group_rows=500, group_seconds=LONG)
    for n in range(10_000):
        writer.put("verdict", house.verdict(n))
    writer.close()
    assert house.all("select written, running from ledger order by batch") == [(500, 500 * n) for n in range(1, 21)]
    assert house.one("select count(*), count(distinct trial), count(distinct batch) from verdict") == (
        10_000,
        10_000,
        20,
    )
    assert house.all("select count(*) from verdict group by batch") == [(500,)] * 20


def test_rows_from_many_threads_are_all_written(house: Any) -> None:
    writer = Writer(house.store, group_rows=64, group_seconds=0.005)

    def put(first: int) -> None:
        for n in range(first, first + 500):
            writer.put("event", event(house, str(n)))

    threads = [threading.Thread(target=put, args=(500 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    writer.close()
    assert house.one("select count(*), count(distinct detail) from event") == (2_000, 2_000)


def test_the_order_of_tables_does_not_matter(house: Any) -> None:
    writer = Writer(house.store, group_rows=MANY, group_seconds=LONG)
    for n in range(30):
        writer.put("event", event(house, str(n)))
        writer.put("failure", (n, 1, int(Fault.QUOTA), False))
        if n % 2:
            writer.put("verdict", house.verdict(n))
        writer.put("attempt", house.attempt(n))
    writer.close()
    for table, count in {"event": 30, "failure": 30, "verdict": 15, "attempt": 30}.items():
        assert house.one(f"select count(*), min(batch), max(batch) from {table}") == (count, 1, 1), table
    assert house.all("select written from ledger") == [(105,)]


def test_what_was_written_is_there_after_a_reopening(house: Any, path: Any) -> None:
    writer = Writer(house.store)
    writer.put("attempt", house.attempt(1, text="éà\n" * 1_000))
    writer.close()
    house.store.close()
    with open_store(path) as store:
        assert store.connection.execute("select text from attempt").fetchall() == [("éà\n" * 1_000,)]


def test_the_store_can_be_written_again_after_its_writer_has_closed(house: Any) -> None:
    for turn in range(1, 4):
        writer = Writer(house.store)
        writer.put("event", event(house, "from the writer"))
        writer.close()
        house.write("event", event(house, "by hand"))
        assert house.one("select count(*) from event") == (2 * turn,)


def test_the_listener_hears_of_every_group_once_it_is_on_disk(house: Any) -> None:
    heard: list[tuple[int, int, str]] = []

    def on_commit() -> None:
        (there,) = house.one("select count(*) from event")
        heard.append((there, there + writer.waiting, threading.current_thread().name))

    writer = Writer(house.store, group_rows=2, group_seconds=LONG, on_commit=on_commit)
    for n in range(5):
        writer.put("event", event(house, str(n)))
    writer.close()
    assert [there for there, _, _ in heard] == [2, 4, 5]
    assert all(known <= 5 for _, known, _ in heard)  # what is on disk waits no more
    assert {thread for _, _, thread in heard} == {"venire-writer"}


def test_a_group_that_failed_is_told_before_who_waits_for_it_is_woken(house: Any) -> None:
    heard: list[str] = []
    writer = Writer(
        house.store,
        group_rows=1,
        on_commit=lambda: heard.append("woken"),
        on_error=lambda _: heard.append("failed"),
    )
    writer.put(*BAD["a good verdict without a label"])
    with pytest.raises(StoreError):
        writer.close()
    assert heard[0] == "failed"
    assert writer.written == 0


BAD = {
    "a verdict with a label and a bad status": ("verdict", (2, 1, 1, "rule", 1, None, 80)),
    "a good verdict without a label": ("verdict", (2, 1, 0, "rule", None, None, 80)),
    "a bad verdict with a score": ("verdict", (2, 1, 1, "rule", None, 0.5, 80)),
    "a row that is too short": ("failure", (2, 1)),
    "a value of no column's type": ("failure", (2, 1, "quota", False)),
    "a value of no type at all": ("failure", (2, 1, object(), False)),
    "a text that is no Unicode": ("event", ("2026-01-01 00:00:00+00", 1, "kind", "\ud83d")),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_commit_that_fails_is_told_once_and_leaves_nothing_of_its_group(house: Any, bad: str) -> None:
    told: list[StoreError] = []
    writer = Writer(house.store, group_rows=3, group_seconds=LONG, on_error=told.append)
    writer.put("verdict", house.verdict(1))
    writer.put(*BAD[bad])
    writer.put("event", event(house, "in the same group"))
    assert until(lambda: bool(told))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"judged\.duckdb cannot be written: "):
            writer.put("event", event(house, "too late"))
    with pytest.raises(StoreError, match=r"judged\.duckdb cannot be written: "):
        writer.close()
    assert len(told) == 1
    assert writer.waiting == 3
    assert [house.one(f"select count(*) from {table}") for table in ("verdict", "event", "failure", "ledger")] == [
        (0,)
    ] * 4


def test_groups_before_the_one_that_failed_are_safe(house: Any, path: Any) -> None:
    writer = Writer(house.store, group_rows=2, group_seconds=LONG)
    for row in (house.verdict(1), house.verdict(2), house.verdict(3), (4, 1, 1, "rule", 1, None, 80)):
        writer.put("verdict", row)
    with pytest.raises(StoreError):
        writer.close()
    house.store.close()
    with open_store(path) as store:
        assert store.connection.execute("select trial from verdict order by trial").fetchall() == [(1,), (2,)]
        assert (store.batch, store.running) == (1, 2)


def test_a_failure_without_a_listener_is_raised_at_close(house: Any) -> None:
    writer = Writer(house.store)
    writer.put(*BAD["a row that is too short"])
    with pytest.raises(StoreError):
        writer.close()


def test_a_disk_that_refuses_reaches_the_listener_as_a_store_error(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[StoreError] = []
    writer = Writer(house.store, group_rows=1, on_error=told.append)

    def refuse() -> None:
        raise duckdb.IOException("no space left on device")

    monkeypatch.setattr(type(house.store.clock), "wall", lambda _: refuse())  # read between the rows and the ledger
    writer.put("verdict", house.verdict(1))
    assert until(lambda: bool(told))
    monkeypatch.undo()
    with pytest.raises(StoreError, match="cannot be written: no space left on device"):
        writer.close()
    assert house.one("select count(*) from verdict") == (0,)


def test_a_moment_without_memory_costs_nothing(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[StoreError] = []
    real, refused = Commit.append, 0

    def append(self: Commit, *arguments: Any) -> None:
        nonlocal refused
        refused += 1
        if refused <= 3:
            raise duckdb.OutOfMemoryException("could not allocate block")
        real(self, *arguments)

    monkeypatch.setattr(Commit, "append", append)
    writer = Writer(house.store, group_rows=1, group_seconds=0.001, on_error=told.append)
    writer.put("verdict", house.verdict(1))
    writer.close()
    assert (told, refused) == ([], 4)
    assert house.one("select count(*) from verdict") == (1,)


def test_a_long_log_is_folded_in_while_nothing_waits(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venire.storage.store.store._LONG_LOG", 1_000)
    writer = Writer(house.store, group_rows=1, group_seconds=LONG)
    writer.put("event", event(house, "x" * 10_000))
    assert until(lambda: house.store.log_bytes == 0 and writer.waiting == 0)
    writer.close()
    assert house.one("select count(*) from event") == (1,)


def test_what_the_recorder_puts_comes_back_under_its_own_columns(house: Any) -> None:
    """The danger: rows are tuples, and two columns of one type that change places are not noticed by the schema."""
    sent = house.store.clock.wall()
    reply = Reply("said", "length", "thought", 11, 12, 13, 14, 15, "served-1", "print-1", "{raw}")
    answer = AttemptRecord(21, 2, 5, 6, sent, 0.25, 0.125, 900, 70, 800, b"d" * 16, http_status=200, reply=reply)
    fault = AttemptRecord(22, 1, 1, 6, sent, 0.5, 0.0, 700, 60, None, b"e" * 16, Fault.RATE_LIMITED, 429, "slow down")
    told: list[StoreError] = []

    async def record() -> None:
        recorder = Recorder(house.store, 3, 4, group_rows=500, group_seconds=LONG, on_error=told.append)
        recorder.attempt(answer, await recorder.announce(21, 2, 5, 6, Amount(1, 900, 70)))
        recorder.attempt(fault, await recorder.announce(22, 1, 1, 6, Amount(1, 700, 60)))
        recorder.verdict(21, Verdict(b"k" * 16, Status.OK, -1, -0.5, rule="last line"), 123)
        recorder.verdict(22, Verdict(b"k" * 16, Status.REFUSED, rule="none"), 0)
        recorder.failure(23, 2, Fault.TOO_LONG)
        recorder.event(sent, "start", "with care")
        await recorder.close()

    asyncio.run(record())
    assert told == []
    columns = (
        "campaign, trial, step, number, lane, sent_at = $1::timestamptz, latency_ms, wait_ms, fault, http_status, "
        "message, finish, input_tokens, output_tokens, cached_tokens, reasoning_tokens, reserved, cost, served_model, "
        "fingerprint, request_digest, text, reasoning, raw, reserved_tokens"
    )
    answered, failed = house.all(f"select {columns} from attempt order by trial", sent)
    assert answered == (
        *(3, 21, 2, 5, 6, True, 250, 125, 0, 200, None, "length", 11, 12, 13, 14, 900, 800),
        *("served-1", "print-1", b"d" * 16, "said", "thought", "{raw}", 70),
    )
    assert failed == (
        *(3, 22, 1, 1, 6, True, 500, 0, int(Fault.RATE_LIMITED), 429, "slow down"),
        *(None, None, None, None, None, 700, None, None, None, b"e" * 16, None, None, None, 60),
    )
    assert house.all("select trial, reading, status, rule, label, score, cost from verdict order by trial") == [
        (21, 4, int(Status.OK), "last line", -1, -0.5, 123),
        (22, 4, int(Status.REFUSED), "none", None, None, 0),
    ]
    assert house.all("select trial, step, fault, cleared from failure") == [(23, 2, int(Fault.TOO_LONG), False)]
    assert house.all("select campaign, kind, detail from event") == [(3, "start", "with care")]


def test_a_table_that_is_not_the_writers_is_refused(path: Path) -> None:
    with open_store(path) as store:
        writer = Writer(store)
        with pytest.raises(KeyError):
            writer.put("nonsense", (1,))
        writer.close()


@pytest.mark.parametrize("rows", [0, 10_001])
def test_groups_that_no_space_can_be_set_aside_for_are_refused(rows: int, house: Any) -> None:
    """The danger: with 17,000 rows waiting the journal had no slot left for the next call, and the run broke off."""

    async def record() -> None:
        Recorder(house.store, 3, 4, group_rows=rows, group_seconds=LONG, on_error=lambda error: None)

    with pytest.raises(InputError, match="give 1 to 10,000 rows"):
        asyncio.run(record())
