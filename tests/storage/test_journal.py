"""A call that was announced is on the campaign's account, whatever becomes of the process that sent it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.errors import Fault, StoreError
from venire.storage import frames
from venire.storage.journal import Journal, journal_path, left_behind
from venire.storage.recovery import Recovered
from venire.storage.store import open_store

ME = b"m" * 16
BEGUN = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
CALL = st.tuples(
    st.integers(1, 2**62), st.integers(1, 9), st.integers(1, 2**15), st.integers(0, 200), st.integers(0, 2**60)
)


@settings(max_examples=50, deadline=None)
@given(calls=st.lists(CALL, max_size=40))
def test_what_is_announced_is_read_back(tmp_path_factory: pytest.TempPathFactory, calls: list[Any]) -> None:
    store = tmp_path_factory.mktemp("j") / "s.duckdb"
    journal = Journal(store, ME, 7, BEGUN)
    for call in calls:
        journal.announce(*call)
    journal.close(remove=False)
    found = list(left_behind(store, ME))
    assert [(one.trial, one.step, one.number, one.lane, one.reserved) for one in found] == calls
    assert all((one.campaign, one.announced_after) == (7, BEGUN) for one in found)


def test_a_slot_that_was_given_back_is_used_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s", ME, 1, BEGUN)
    for trial in range(1, 50_000):
        journal.release(journal.announce(trial, 1, 1, 1, 5))
    journal.close(remove=True)
    assert list(tmp_path.iterdir()) == []


def test_more_calls_than_slots_are_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s", ME, 1, BEGUN)
    taken = {journal.announce(trial, 1, 1, 1, 5) for trial in range(1, 16_385)}
    assert len(taken) == 16_384
    with pytest.raises(IndexError):
        journal.announce(1, 2, 1, 1, 5)
    journal.close(remove=True)


def test_a_torn_slot_is_no_announcement_and_the_others_stand(tmp_path: Path) -> None:
    store = tmp_path / "s"
    journal = Journal(store, ME, 1, BEGUN)
    for trial in (1, 2, 3):
        journal.announce(trial, 1, 1, 1, 5)
    journal.close(remove=False)
    with journal_path(store).open("r+b") as file:
        file.seek(4096 + 24 + 10)
        file.write(b"\xff")
    assert [one.trial for one in left_behind(store, ME)] == [1, 3]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 400_000, None])
def test_another_stores_journal_or_rubbish_is_left_aside(tmp_path: Path, content: bytes | None) -> None:
    store = tmp_path / "s"
    journal = Journal(store, b"o" * 16, 1, BEGUN)
    journal.announce(1, 1, 1, 1, 5)
    journal.close(remove=False)
    if content is not None:
        journal_path(store).write_bytes(content)
    assert list(left_behind(store, ME)) == []


def test_announced_calls_without_an_attempt_count_at_their_reserved_price(house: Any, path: Path) -> None:
    """The danger: a killed run's calls are paid by the provider's account and missing from ours."""
    store = house.store
    house.write("attempt", house.attempt(21, 1, 1, campaign=3, cost=10, reserved=50))
    journal = Journal(path, store.constant, 3, BEGUN)
    journal.announce(21, 1, 1, 4, 50)  # its attempt is on disk: its slot was not needed again
    journal.announce(21, 2, 1, 4, 70)
    journal.announce(22, 1, 2, 4, 80)
    journal.close(remove=False)
    store.close()
    with open_store(path) as again:
        assert again.recovered == Recovered(2, 150)
        accounts = frames.accounts(again, 3)
        assert (accounts.nano, accounts.known, accounts.unknown, accounts.calls) == (160, 10, 150, 3)
        rows = again.connection.execute(
            "select trial, step, number, lane, sent_at = $1, fault, reserved, cost "
            "from attempt where fault <> 0 order by trial",
            [BEGUN],
        ).fetchall()
        fault = int(Fault.UNANSWERED)
        assert rows == [(21, 2, 1, 4, True, fault, 70, None), (22, 1, 2, 4, True, fault, 80, None)]
        assert again.connection.execute("select kind from event").fetchall() == [("recovered",)]
    assert not journal_path(path).exists()
    with open_store(path) as once_more:
        assert once_more.recovered == Recovered()
        assert frames.accounts(once_more, 3).calls == 3


def test_a_journal_that_cannot_be_reserved_is_met_before_the_first_call(tmp_path: Path) -> None:
    if os.geteuid() == 0 and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    journal_path(tmp_path / "s").symlink_to("/dev/full")
    with pytest.raises(StoreError, match="No space left"):
        Journal(tmp_path / "s", ME, 1, BEGUN)
