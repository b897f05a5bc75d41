"""What lies beside a store while a campaign runs: no kill, cut log or full disk takes anything off the account."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parameters import slow_after
from venire.arena.budgets import Amount
from venire.arena.errors import Fault, InputError, StoreError
from venire.arena.records import Reply
from venire.orchestrator.recording.recorder import AttemptRecord, Recorder
from venire.storage.plans import plans
from venire.storage.plans.plans import SentLately
from venire.storage.read import frames
from venire.storage.store.journal import (
    MIN_SLOTS,
    Announcement,
    Journal,
    LeftBehind,
    Recovered,
    journal_path,
    read_journal,
)
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.store.writer import Writer

ME = b"m" * 16
BEGUN = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
CALL = st.builds(
    Announcement,
    st.integers(1, 2**62),
    st.integers(1, 9),
    st.integers(1, 2**15),
    st.integers(0, 60_000),
    st.integers(0, 2**60),
    st.integers(0, 2**31),
)
ONE = Announcement(1, 1, 1, 1, 5, 6)
SAID = Reply("said", input_tokens=30, output_tokens=20)


def announce(journal: Journal, one: Announcement) -> int:
    return journal.announce(one.trial, one.step, one.number, one.lane, one.reserved, one.tokens)


def found(store: Path) -> LeftBehind:
    left = read_journal(store)
    assert left is not None
    return left


@given(calls=st.lists(CALL, max_size=40))
def test_what_is_announced_is_read_back(tmp_path_factory: pytest.TempPathFactory, calls: list[Announcement]) -> None:
    store = tmp_path_factory.mktemp("j") / "s.duckdb"
    journal = Journal(store, ME, 7, BEGUN)
    for call in calls:
        announce(journal, call)
    journal.mark(12, 345)
    journal.close(remove=False)
    assert found(store) == LeftBehind(ME, 7, BEGUN, 12, 345, tuple(calls), ())


def test_a_slot_that_was_given_back_is_used_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s", ME, 1, BEGUN)
    for trial in range(1, 50_000):
        journal.release(announce(journal, replace(ONE, trial=trial)))
    journal.close(remove=True)
    assert list(tmp_path.iterdir()) == []


def test_more_calls_than_slots_are_refused_and_more_workers_have_more_slots(tmp_path: Path) -> None:
    for name, slots in (("few", MIN_SLOTS), ("many", MIN_SLOTS + 1_000)):
        journal = Journal(tmp_path / name, ME, 1, BEGUN, slots=slots)
        taken = {announce(journal, replace(ONE, trial=trial)) for trial in range(1, slots + 1)}
        assert len(taken) == slots
        with pytest.raises(IndexError):
            announce(journal, ONE)
        journal.close(remove=False)
        assert len(found(tmp_path / name).announced) == slots


def test_an_announcement_that_was_taken_back_is_none(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s", ME, 1, BEGUN)
    slots = [announce(journal, replace(ONE, trial=trial)) for trial in (1, 2, 3)]
    journal.withdraw(slots[1])
    journal.close(remove=False)
    assert [one.trial for one in found(tmp_path / "s").announced] == [1, 3]


def test_a_torn_slot_is_no_announcement_and_the_others_stand(tmp_path: Path) -> None:
    store = tmp_path / "s"
    journal = Journal(store, ME, 1, BEGUN)
    for trial in (1, 2, 3):
        announce(journal, replace(ONE, trial=trial))
    journal.close(remove=False)
    with journal_path(store).open("r+b") as file:
        file.seek(4096 + 32 + 10)
        file.write(b"\xff")
    assert [one.trial for one in found(store).announced] == [1, 3]


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["attempt", "verdict"]),
        st.lists(
            st.none()
            | st.integers(-(2**62), 2**62)
            | st.booleans()
            | st.text(max_size=200)
            | st.binary(max_size=20)
            | st.datetimes(timezones=st.just(UTC))
            | st.floats(allow_nan=False, allow_infinity=False),
            max_size=8,
        ).map(tuple),
    ),
    max_size=5,
)


@given(groups=st.lists(ROWS, max_size=4), cut=st.integers(0, 400))
def test_rows_that_the_store_could_not_take_are_read_back_and_a_torn_group_ends_them(
    tmp_path_factory: pytest.TempPathFactory, groups: list[Any], cut: int
) -> None:
    store = tmp_path_factory.mktemp("j") / "s.duckdb"
    journal = Journal(store, ME, 7, BEGUN)
    ends = []
    for number, rows in enumerate(groups):
        journal.spill(number, rows)
        ends.append(journal._spill_at)
    journal.close(remove=False)
    read = [(one.batch, list(one.rows)) for one in found(store).spilled]
    assert read == list(enumerate(groups))
    if groups:
        at = max(ends[-1] - 1 - cut, 4096 + MIN_SLOTS * 32)
        content = bytearray(journal_path(store).read_bytes())
        content[at] ^= 0xFF
        content[at + 1 :] = bytes(len(content) - at - 1)
        journal_path(store).write_bytes(content)
        assert [(one.batch, list(one.rows)) for one in found(store).spilled] == read[: sum(end <= at for end in ends)]


def test_when_the_space_for_rows_is_used_up_it_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s", ME, 1, BEGUN, spill_bytes=300)
    journal.spill(4, [("event", ("short",))])
    with pytest.raises(StoreError, match="used up"):
        journal.spill(5, [("event", (bytes(range(256)),))])
    journal.close(remove=False)
    assert [one.batch for one in found(tmp_path / "s").spilled] == [4]


@pytest.mark.parametrize("content", [b"short", b"x" * 800_000, b"venire-journal-3" + bytes(800_000)])
def test_a_journal_that_cannot_be_read_is_not_thrown_away(house: Any, path: Path, content: bytes) -> None:
    """The danger: what was in flight leaves the account without a word."""
    house.store.close()
    journal_path(path).write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        open_store(path)
    assert journal_path(path).read_bytes() == content


@pytest.mark.parametrize("content", [b"", bytes(800_000)])
def test_a_journal_that_was_not_begun_holds_nothing(house: Any, path: Path, content: bytes) -> None:
    house.store.close()
    journal_path(path).write_bytes(content)
    with open_store(path) as store:
        assert store.recovered == Recovered()
    assert not journal_path(path).exists()


def test_the_journal_of_another_version_is_not_thrown_away(house: Any, path: Path) -> None:
    house.store.close()
    journal_path(path).write_bytes(b"venire-journal-1" + bytes(10_000))
    with pytest.raises(InputError, match="another version"):
        open_store(path)
    assert journal_path(path).exists()


def left_by_a_killed_run(
    store: Store, *, calls: int = 0, spilled: Any = (), mark: tuple[int, int] | None = None
) -> None:
    """Put beside a store what a killed run of a campaign leaves there, and close it."""
    journal = Journal(store.path, store.constant, 3, BEGUN)
    for trial in range(100, 100 + calls):
        journal.announce(trial, 1, 1, 4, 50, 60)
    for batch, rows in spilled:
        journal.spill(batch, rows)
    journal.mark(*(mark or (store.batch, store.running)))
    journal.close(remove=False)
    store.close()


def test_announced_calls_without_an_attempt_count_at_their_reserved_price(house: Any, path: Path) -> None:
    """The danger: a killed run's calls are paid by the provider's account and missing from ours."""
    store = house.store
    house.write("attempt", house.attempt(21, 1, 1, campaign=3, cost=10, reserved=50))
    journal = Journal(path, store.constant, 3, BEGUN)
    journal.announce(21, 1, 1, 4, 50, 9)  # its attempt is on disk: its slot was not needed again
    journal.announce(21, 2, 1, 4, 70, 11)
    journal.announce(22, 1, 2, 4, 80, 12)
    journal.close(remove=False)
    store.close()
    with open_store(path) as again:
        assert again.recovered == Recovered(2, 150)
        accounts = frames.campaign_spending(again, 3)
        assert (accounts.nano, accounts.known, accounts.unknown, accounts.calls) == (160, 10, 150, 3)
        rows = again.connection.execute(
            "select trial, step, number, lane, sent_at = $1, fault, reserved, reserved_tokens, cost "
            "from attempt where fault <> 0 order by trial",
            [BEGUN],
        ).fetchall()
        fault = int(Fault.UNANSWERED)
        assert rows == [(21, 2, 1, 4, True, fault, 70, 11, None), (22, 1, 2, 4, True, fault, 80, 12, None)]
        assert again.connection.execute("select kind from event").fetchall() == [("recovered",)]
    assert not journal_path(path).exists()
    with open_store(path) as once_more:
        assert once_more.recovered == Recovered()
        assert frames.campaign_spending(once_more, 3).calls == 3


def test_a_killed_runs_calls_without_an_answer_count_within_the_limits_of_the_next(house: Any, path: Path) -> None:
    """When they were sent is not on record; the danger: a start right after the kill sends a whole minute's quota."""
    with house.store.commit() as commit:
        for name in "abcd":
            commit.run("insert_lane", name=name, provider="openai", endpoint="here")
    left_by_a_killed_run(house.store, calls=2)
    with open_store(path) as again:
        sent = plans.sent_lately(again, ["d", "of another store"])
        assert [calls for ago, calls in sent.calls if ago < 60] == [2]
        assert [row[1:] for row in sent.tokens] == [(2 * 60, 0)]
        assert plans.sent_lately(again, ["a"]) == SentLately()


def test_a_call_whose_answer_was_not_on_disk_yet_counts_at_its_cost(house: Any, path: Path) -> None:
    """The danger: what it left of its reservation was free for others, and counts twice after a kill."""
    store = house.store
    journal = Journal(path, store.constant, 3, BEGUN)
    for one, said in ((replace(ONE, trial=21), 20), (replace(ONE, trial=22), 70_000)):
        slot = announce(journal, replace(one, reserved=700, tokens=90_000))
        journal.settle(slot, one.trial, one.step, one.number, one.lane, 40, said + 30, said)
    journal.announce(23, 1, 1, 4, 80, 12)
    journal.close(remove=False)
    store.close()
    with open_store(path) as again:
        accounts = frames.campaign_spending(again, 3)
        assert (accounts.nano, accounts.known, accounts.unanswered, accounts.calls) == (160, 80, 80, 3)
        assert (accounts.input_tokens + accounts.output_tokens, accounts.answered) == (50 + 70_030, 0)


def test_calls_that_others_have_under_way_are_not_lost_until_nobody_knows_of_them(house: Any, path: Path) -> None:
    """The danger: a start that is refused takes calls off the account which actors of the run before have in flight."""
    store = house.store
    journal = Journal(path, store.constant, 3, BEGUN)
    journal.announce(21, 1, 1, 4, 70, 11)
    journal.announce(22, 1, 2, 4, 80, 12)
    journal.close(remove=False)
    store.close()
    with open_store(path, under_way={(22, 1, 2)}) as again:
        assert again.recovered == Recovered(1, 70)
    with open_store(path, under_way={(22, 1, 2)}) as again:
        assert again.recovered == Recovered()
    with open_store(path) as last:
        assert last.recovered == Recovered(1, 80)
        assert frames.campaign_spending(last, 3).calls == 2
    assert not journal_path(path).exists()


def test_a_journal_that_cannot_be_made_is_met_before_the_first_call(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot make"):
        Journal(tmp_path / "no such folder" / "s", ME, 1, BEGUN)
    with pytest.raises(StoreError, match="make room"):
        Journal(tmp_path / "s", ME, 1, BEGUN, spill_bytes=2**60)
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_was_cut_at_its_end_is_noticed_and_the_loss_can_be_accepted(house: Any, path: Path) -> None:
    """DuckDB opens such a file without a word."""
    store, elsewhere = house.store, path.with_name("cut.duckdb")
    log = path.with_name(path.name + ".wal")
    sizes = []
    for trial in range(1, 21):
        house.write("attempt", house.attempt(trial, campaign=3))
        sizes.append(log.stat().st_size)
    journal = Journal(elsewhere, store.constant, 3, BEGUN)
    journal.mark(store.batch, store.running)
    journal.announce(20, 1, 1, 4, 50, 60)
    journal.close(remove=False)
    content = log.read_bytes()[: sizes[14]]
    subprocess.run(["cp", path, elsewhere], check=True)  # opening the file in this process would drop DuckDB's lock
    elsewhere.with_name("cut.duckdb.wal").write_bytes(content)
    with pytest.raises(InputError, match=r"lost its last 5 commits \(5 rows\).*accept-loss"):
        open_store(elsewhere)
    with open_store(elsewhere, accept_loss=True) as again:
        assert (again.recovered.lost_commits, again.recovered.calls) == (5, 1)
        assert frames.campaign_spending(again, 3).calls == 15 + 1
    with open_store(elsewhere) as once_more:
        assert once_more.recovered == Recovered()
        assert frames.campaign_spending(once_more, 3).calls == 15 + 1


def test_an_older_copy_in_the_place_of_a_store_is_noticed(house: Any, path: Path) -> None:
    house.write("attempt", house.attempt(1, campaign=3))
    left_by_a_killed_run(house.store, mark=(9, 9))
    with pytest.raises(InputError, match="lost its last 8 commits"):
        open_store(path)


def test_another_stores_journal_is_refused(house: Any, path: Path) -> None:
    house.write("attempt", house.attempt(1, campaign=3))
    left_by_a_killed_run(house.store, calls=2)
    mine = journal_path(path).read_bytes()
    path.unlink()
    journal_path(path).unlink()
    with open_store(path) as store, store.commit() as commit:
        commit.run("insert_models", names=["a"])
    journal_path(path).write_bytes(mine)
    with pytest.raises(InputError, match="belongs to another store"):
        open_store(path)
    assert journal_path(path).read_bytes() == mine


def spilled_rows(house: Any) -> list[Any]:
    return [
        (1, [("attempt", house.attempt(1, 1, campaign=3)), ("event", (BEGUN, 3, "kind", "one"))]),
        (2, [("verdict", house.verdict(1)), ("attempt", house.attempt(1, 2, campaign=3))]),
        (3, [("event", (BEGUN, 3, "kind", "three"))]),
    ]


def test_what_the_store_could_not_take_is_taken_by_the_next_start(house: Any, path: Path) -> None:
    left_by_a_killed_run(house.store, spilled=spilled_rows(house))
    with open_store(path) as again:
        assert again.recovered == Recovered(replies=2)
        assert again.connection.execute("select step, text from attempt order by step").fetchall() == [
            (1, "said"),
            (2, "said"),
        ]
        assert again.connection.execute("select label from verdict").fetchall() == [(1,)]
        assert frames.campaign_spending(again, 3).calls == 2


@pytest.mark.parametrize("appenders", slow_after(2, 1, 5, 2, 3, 4))
def test_a_recovery_that_is_cut_short_goes_on_and_takes_nothing_twice(
    house: Any, path: Path, appenders: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by_a_killed_run(house.store, spilled=spilled_rows(house), calls=2)
    real, made = Store.appender, 0

    def dies(self: Store, table: str) -> duckdb.Appender:
        nonlocal made
        made += 1
        if made > appenders:
            raise KeyboardInterrupt
        return real(self, table)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "appender", dies)
        with pytest.raises(KeyboardInterrupt):
            open_store(path)
    with open_store(path) as again:
        assert frames.campaign_spending(again, 3).calls == 2 + 2
        assert again.connection.execute("select count(*) from verdict").fetchone() == (1,)
        assert again.connection.execute("select detail from event where kind = 'kind' order by 1").fetchall() == [
            ("one",),
            ("three",),
        ]


def test_a_group_that_was_written_after_all_is_not_written_again(house: Any, path: Path) -> None:
    """An exception at COMMIT does not say that nothing was written; the ledger does."""
    house.write("attempt", house.attempt(1, 1, campaign=3))
    left_by_a_killed_run(house.store, spilled=spilled_rows(house))  # whose first group has the number of that commit
    with open_store(path) as again:
        assert again.recovered == Recovered(replies=2)
        assert frames.campaign_spending(again, 3).calls == 2


@pytest.mark.parametrize("left", [".journal", ".wal", ".rescued"])
def test_a_store_that_is_gone_is_not_begun_anew_while_something_of_it_is_left(path: Path, left: str) -> None:
    """The danger: the next run pays for everything again, and clears away what was there."""
    rest = path.with_name(path.name + left)
    rest.write_bytes(b"what was paid for")
    with pytest.raises(InputError, match="begin anew") as refused:
        open_store(path)
    assert str(rest) in str(refused.value)
    assert (rest.read_bytes(), path.exists()) == (b"what was paid for", False)


def test_a_log_that_was_removed_from_a_young_store_is_noticed(house: Any, path: Path) -> None:
    """The danger: before its first checkpoint a file without its log is a new file."""
    store, elsewhere = house.store, path.with_name("cut.duckdb")
    store.begin_journal(3)
    house.write("attempt", house.attempt(1, campaign=3))
    for end in ("", ".journal"):
        subprocess.run(["cp", f"{path}{end}", f"{elsewhere}{end}"], check=True)
    with pytest.raises(InputError, match="lost its last 2 commits"):
        open_store(elsewhere)


def test_what_a_killed_owner_left_is_cleared_away(path: Path) -> None:
    with open_store(path):
        pass
    path.with_name(path.name + ".sock").touch()
    path.with_name(path.name + ".tmp").mkdir()
    path.with_name(path.name + ".tmp").joinpath("duckdb_temp_1.tmp").touch()
    with open_store(path):
        pass
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_replies_after_a_row_that_no_table_takes_are_kept(house: Any, path: Path) -> None:
    """The danger: telling of the row took the number of the next group, which then passed for written."""
    bad = ("verdict", (2, 1, 1, "rule", 1, None, 80))
    groups = [(n, [("attempt", house.attempt(n, campaign=3, text=f"reply {n}"))]) for n in (2, 3)]
    left_by_a_killed_run(house.store, spilled=[(1, [bad]), *groups])
    with open_store(path) as again:
        assert again.recovered == Recovered(replies=2)
        assert again.connection.execute("select text from attempt order by 1").fetchall() == [
            ("reply 2",),
            ("reply 3",),
        ]


def test_an_end_removes_no_journal_and_no_lock_but_its_own(path: Path) -> None:
    store = open_store(path)
    store.begin_journal(1)
    for end in ("", ".journal", ".lock"):
        path.with_name(path.name + end).unlink()
    path.with_name(path.name + ".journal").write_bytes(b"of another run")
    path.with_name(path.name + ".lock").write_bytes(b"of another run")
    store.close()
    assert path.with_name(path.name + ".journal").read_bytes() == b"of another run"
    assert path.with_name(path.name + ".lock").read_bytes() == b"of another run"


def test_a_slot_is_not_used_again_before_its_attempt_is_on_disk(house: Any, path: Path, monkeypatch: Any) -> None:
    """The danger: a kill then finds no word of a call whose answer was still waiting."""
    monkeypatch.setattr("venire.storage.store.store.MIN_SLOTS", 3)
    sent = house.store.clock.wall()

    async def record() -> None:
        recorder = Recorder(house.store, 3, 4, group_rows=500, group_seconds=3600.0, on_error=lambda error: None)
        for trial in (1, 2, 3):
            slot = await recorder.announce(trial, 1, 1, 6, Amount(1, 9, 70))
            one = AttemptRecord(trial, 1, 1, 6, sent, 0.1, 0.0, 9, 70, 8, b"d" * 16, reply=SAID)
            recorder.attempt(one, slot)
        with pytest.raises(IndexError):
            await recorder.announce(4, 1, 1, 6, Amount(1, 9, 70))
        assert [(one.trial, one.tokens) for one in found(path).announced] == [(1, 50), (2, 50), (3, 50)]
        await recorder.close()

    asyncio.run(record())


def test_a_row_that_no_table_takes_does_not_keep_the_store_closed(house: Any, path: Path) -> None:
    bad = ("verdict", (2, 1, 1, "rule", 1, None, 80))  # a label and a bad status
    odd = ("attempt", ("no", "row", object()))
    left_by_a_killed_run(house.store, spilled=[(1, [("attempt", house.attempt(1, campaign=3)), bad, odd])])
    with open_store(path) as again:
        assert again.recovered == Recovered(replies=1)
        kinds = again.connection.execute("select kind, detail from event order by 1").fetchall()
        assert [kind for kind, _ in kinds] == ["recovered", "rows refused"]
        assert kinds[1][1] == '{"rows": 2}'


def test_a_writer_whose_store_fails_keeps_everything_in_the_journal(
    house: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, told = house.store, list[StoreError]()
    store.begin_journal(3)
    writer = Writer(store, group_rows=1, on_error=told.append)
    writer.put("attempt", house.attempt(1, campaign=3))
    while writer.waiting:
        pass

    def full(*_: object) -> None:
        raise duckdb.IOException("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(store.clock), "wall", full)  # read between the rows and the ledger
        for trial in (2, 3):
            writer.put("attempt", house.attempt(trial, campaign=3, text=f"dear {trial}"))
        while writer.waiting:
            pass
    writer.put("attempt", house.attempt(4, campaign=3, text="dear 4"))  # the disk is well again: order is kept
    with pytest.raises(StoreError, match=r"No space left on device.*3 rows, 3 of them replies.*next start"):
        writer.close()
    assert len(told) == 1
    with pytest.raises(StoreError), store.commit():
        pass
    store.close()
    assert journal_path(path).exists()
    with open_store(path) as again:
        assert again.recovered == Recovered(replies=3)
        texts = again.connection.execute("select text from attempt order by trial").fetchall()
        assert texts == [("said",), ("dear 2",), ("dear 3",), ("dear 4",)]
        assert (again.batch, again.running) == (6, 5)
