"""A disk that is full, a store that is taken away: the run stops, says so, and nothing that was paid is gone."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.forked import run_forked
from venire.configs.loading import load_campaign
from venire.simulation.ledger import LedgerEntry
from venire.storage.store.journal import journal_path
from venire.storage.store.opening import open_store

Venire = Callable[..., Any]
Serve = Callable[..., Any]

INSTRUCTIONS = 6
CALLS_AT_LEAST = 15 * INSTRUCTIONS * 2 * 2 * 2
"""Two steps for each trial of the small campaign."""

CONCURRENCY = 2 * 8

SMALL_DISK = """
import resource, sys
from venire import session
from venire import cli
from venire.orchestrator.run import campaign
from venire.orchestrator.recording import recorder
from venire.storage.store import store
recorder._MIN_SPILL, store.MIN_SLOTS = 1, 1000  # so that the log is the longest file
session.Session.run.__wrapped__.__kwdefaults__["group_rows"] = 40
real, room = campaign._CampaignRun._round, int(sys.argv.pop())

async def asked(self, *rest):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    return await real(self, *rest)

campaign._CampaignRun._round = asked
cli.main()
"""
"""A run whose files may not grow beyond so many bytes from its first call on."""


def answered_keys(entries: list[LedgerEntry]) -> Counter[str | None]:
    return Counter(entry.key for entry in entries if entry.answered is not None)


def board(venire: Venire, path: Path) -> str:
    done = venire("rate", load_campaign(path).store, "--json")
    assert done.code == 0
    return str(done.out)


def account(path: Path) -> tuple[int, Counter[str]]:
    """Calls on the campaign's account, and how often each step was answered."""
    with open_store(load_campaign(path).store) as store:
        calls = store.rows("spend", campaign=1)[0][3]
        rows = store.connection.execute(
            "select lower(hex(t.trial_key)) || '-' || a.step, count(*) filter (where a.fault = 0) "
            "from attempt a join trial t on t.id = a.trial group by 1"
        ).fetchall()
    return calls, Counter(dict(rows))


@pytest.fixture
def undisturbed(judged: Callable[..., Path], venire: Venire) -> Callable[[int], str]:
    """The board of the campaign over so many instructions that nothing happened to."""

    def make(instructions: int) -> str:
        path = judged(instructions=instructions)
        found = board(venire, path)
        load_campaign(path).store.unlink()
        return found

    return make


@pytest.mark.parametrize("room", [400_000, pytest.param(550_000, marks=pytest.mark.slow)])
def test_a_full_disk_stops_the_run_and_the_next_start_has_every_reply(
    venire: Venire, write_campaign: Callable[..., Path], serve: Serve, undisturbed: Callable[[int], str], room: int
) -> None:
    expected = undisturbed(INSTRUCTIONS)
    with serve() as server:
        path = write_campaign(judge=f'base_url = "{server.base_url}"', instructions=INSTRUCTIONS)
        done = run_forked([sys.executable, "-c", SMALL_DISK, "run", path, "--yes", room])
        assert done.returncode == 1, done.stderr
        assert "cannot be written" in done.stderr
        assert "Traceback" not in done.stderr
        assert "taken in at the next start" in done.stderr
        assert journal_path(load_campaign(path).store).exists()
        before = answered_keys(server.ledger.entries)
        assert 0 < len(before) < CALLS_AT_LEAST
        again = venire("run", path, "--yes")
        assert again.code == 0
        assert "taken in from the journal" in again.err
        after = answered_keys(server.ledger.entries)
        assert max(after.values()) == 1, "a reply that was answered and paid is never asked for again"
        calls, kept = account(path)
        assert calls == len(server.ledger.entries)
        assert kept == after
    assert board(venire, path) == expected
    assert not journal_path(load_campaign(path).store).exists()


@pytest.fixture(scope="module")
def with_a_log(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """A store with something in its log that is not in its file, and that log."""
    path = tmp_path_factory.mktemp("other") / "other.duckdb"
    run_forked([sys.executable, "-c", OTHER, path])
    return path.read_bytes(), path.with_name("other.duckdb.wal").read_bytes()


@pytest.mark.parametrize(
    "what",
    [
        "removed",
        pytest.param("replaced", marks=pytest.mark.slow),
        pytest.param("moved away", marks=pytest.mark.slow),
        pytest.param("replaced with its log", marks=pytest.mark.slow),
        pytest.param("the journal", marks=pytest.mark.slow),
        pytest.param("overwritten", marks=pytest.mark.slow),
        pytest.param("truncated", marks=pytest.mark.slow),
    ],
)
def test_a_store_that_is_taken_away_stops_the_run_within_the_calls_in_flight(
    migrated_stores: None,  # of a truncated file only what this process wrote can be rescued
    venire: Venire,
    write_campaign: Callable[..., Path],
    serve: Serve,
    undisturbed: Callable[[int], str],
    with_a_log: tuple[bytes, bytes],
    what: str,
    tmp_path: Path,
) -> None:
    expected = undisturbed(2)
    seen: list[int] = []

    def take_away(ordinal: int) -> None:
        if ordinal != 100:
            return
        store = load_campaign(tmp_path / "small.toml").store
        if what == "the journal":
            journal_path(store).unlink()
        elif what == "removed":
            store.unlink()
        elif what == "moved away":
            store.rename(tmp_path / "moved.duckdb")
        elif what == "overwritten":
            store.write_bytes(other.read_bytes())
        elif what == "truncated":
            os.truncate(store, 8192)
        else:
            other.replace(store)
            if "log" in what:
                other.with_name("other.duckdb.wal").replace(store.with_name(store.name + ".wal"))
        seen.append(ordinal)

    with serve(on_request=take_away) as server:
        path = write_campaign(judge=f'base_url = "{server.base_url}"', instructions=2)
        store = load_campaign(path).store
        other = tmp_path / "other.duckdb"
        other.write_bytes(with_a_log[0])
        other.with_name("other.duckdb.wal").write_bytes(with_a_log[1])
        if "log" not in what:
            with open_store(other):
                pass
        content = other.read_bytes()
        done = venire("run", path, "--yes")
        assert done.code == 1
        asked = len(server.ledger.entries)
        assert seen == [100]
        assert asked <= 100 + CONCURRENCY + 3, "every fourth call looks"
        word = "removed" if what in ("moved away", "the journal") else what.removesuffix(" with its log")
        assert f"was {word}" in done.err
        copy = store.with_name(store.name + ".rescued")
        assert str(copy) in done.err
        if "replaced" in what or what == "overwritten":
            assert store.read_bytes() == content, "the file that came in its place is left alone"
            with open_store(store, to_read=True) as there:
                assert there.rows("models") == [("written by its log", 1, None, None)]
        if what not in ("removed", "moved away", "the journal"):
            refused = venire("run", path, "--yes")
            assert (refused.code, len(server.ledger.entries)) == (2, asked), "nothing is paid twice"
            assert f"is in {copy}" in refused.err.replace("\n", " ")
            assert f"(mv {copy} {store})" in refused.err
        before = answered_keys(server.ledger.entries)
        assert copy.exists()
        if what == "moved away":  # the file itself is whole too
            (tmp_path / "moved.duckdb").replace(store)
            copy.unlink()
        else:
            copy.replace(store)
        again = venire("run", path, "--yes")
        assert again.code == 0, again.err
        after = answered_keys(server.ledger.entries)
        assert {key for key in before if after[key] > 1} == set()
        calls, kept = account(path)
        assert (calls, kept) == (len(server.ledger.entries), after)
    assert board(venire, path) == expected


@pytest.mark.slow
def test_a_store_that_is_taken_away_after_the_last_call_is_noticed_too(
    venire: Venire, write_campaign: Callable[..., Path], serve: Serve, tmp_path: Path
) -> None:
    last = 15 * 2 * 2 * 2 * 2

    def take_away(ordinal: int) -> None:
        if ordinal == last:
            (tmp_path / "small.duckdb").unlink()

    with serve(on_request=take_away) as server:
        path = write_campaign(judge=f'base_url = "{server.base_url}"', instructions=2)
        store = load_campaign(path).store
        done = venire("run", path, "--yes")
        assert done.code == 1
        assert "was removed" in done.err
        store.with_name(store.name + ".rescued").replace(store)
        again = venire("run", path, "--yes")
        assert (again.code, len(server.ledger.entries)) == (0, last)
        assert "nothing was asked" in again.err


OTHER = """
import os, sys
from venire.storage.store.opening import open_store
store = open_store(sys.argv[1])
store.checkpoint()
with store.commit() as commit:
    commit.run("insert_models", names=["written by its log"])
os._exit(0)
"""


def test_a_folder_that_takes_no_files_is_told_before_anything_is_asked(
    write_campaign: Callable[..., Path], serve: Serve, tmp_path: Path
) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    with serve() as server:
        path = write_campaign(judge=f'base_url = "{server.base_url}"')
        tmp_path.chmod(0o500)
        try:
            done = run_forked([sys.executable, "-m", "venire", "run", path, "--yes"])
        finally:
            tmp_path.chmod(0o700)
        assert done.returncode == 2
        assert "cannot write beside the store" in done.stderr
        assert server.ledger.entries == []
