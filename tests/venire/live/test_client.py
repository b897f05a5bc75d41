"""A store that a running campaign owns can be looked at from elsewhere, and the run comes to the same end."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.parameters import slow_after
from venire.arena.errors import InputError, StoreHeldError
from venire.configs.loading import load_campaign
from venire.embedded import answer_key
from venire.live.client import Owner, SilentOwnerError, current_status, look
from venire.live.sockets import socket_path
from venire.orchestrator.recording.ending import CampaignSummary, Ending
from venire.session import Session
from venire.simulation.server import JudgeServer, serve_in_thread
from venire.storage.store.opening import open_store

Venire = Callable[..., Any]
Write = Callable[..., Path]
Serve = Callable[..., Any]
Start = Callable[..., subprocess.Popen[str]]

PATIENCE = 60.0
CAMPAIGN = """\
name = "small"
seed = 5
[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.csv"
[plan]
policy = "all-pairs"
instructions = 2
[[judge]]
name = "gpt-4-0613"
model = "simulated/gpt-4-0613@1"
concurrency = 4
base_url = "{base_url}"
"""
CALLS = 15 * 2 * 2 * 2

RUN = [sys.executable, "-m", "venire", "run", "--yes"]


@dataclass
class Running:
    """A campaign that runs in a thread and waits at a call until it is let go."""

    store: Path
    go_on: threading.Event
    summary: Future[CampaignSummary]

    def end(self) -> CampaignSummary:
        self.go_on.set()
        return self.summary.result(PATIENCE)


@contextlib.contextmanager
def a_running_campaign(folder: Path, *, at: int = 60) -> Iterator[Running]:
    """Stops at a call; goes on when it is told to, or at the end of the block."""
    for name in ("instructions.jsonl", "completions.jsonl", "elo.csv"):
        shutil.copy(str(files("venire.configs.demo").joinpath(name)), folder / name)
    path = folder / "small.toml"
    path.write_text(CAMPAIGN.format(base_url="http://127.0.0.1:1/v1"), encoding="utf-8")
    reached, go_on = threading.Event(), threading.Event()

    def wait(ordinal: int) -> None:
        if ordinal == at:
            reached.set()
            go_on.wait(10 * PATIENCE)  # many tests look at one run, on a busy machine too

    def run() -> CampaignSummary:
        with Session(load_campaign(path)) as session:
            return session.run(group_rows=10, group_seconds=0.01)

    server = JudgeServer(answer_key(load_campaign(path)), speed=0.0, on_request=wait)
    with serve_in_thread(server), ThreadPoolExecutor(1) as pool:
        path.write_text(CAMPAIGN.format(base_url=server.base_url), encoding="utf-8")
        running = Running(load_campaign(path).store, go_on, pool.submit(run))
        try:
            assert reached.wait(PATIENCE)
            yield running
        finally:
            go_on.set()


UNTOUCHED = """
select (select list(model order by id) from model), (select sum(hash(plan)) from plan),
  (select sum(hash(trial)) from trial), (select list(sql order by sql) from duckdb_tables()),
  (select list(sql order by sql) from duckdb_views() where not internal)
"""
"""One row of what a campaign leaves alone while it runs."""


def standing_of(running: Running) -> tuple[Any, ...]:
    """What nobody who looks may change: what is in the store, and how its DuckDB is set."""
    owner = Owner(running.store)
    settings = owner.sql("select name, value from duckdb_settings() order by all", most=1000)
    return owner.sql(UNTOUCHED, most=1), settings


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One campaign in the middle, for all tests that only look; it ends complete whatever they tried."""
    with a_running_campaign(tmp_path_factory.mktemp("paused")) as running:
        before = standing_of(running)
        yield running
        assert standing_of(running) == before
        summary = running.end()
        assert (summary.ending, summary.statistics.calls) == (Ending.COMPLETE, CALLS)
        assert not socket_path(running.store).exists()


@pytest.fixture
def ended(judged: Write) -> Path:
    """A store whose campaign has ended."""
    return load_campaign(judged(instructions=1)).store


def test_what_is_forbidden_changes_nothing_of_a_running_store(paused: Running, forbidden: str) -> None:
    """What is in the store and how DuckDB is set is looked at when all was tried, by `paused`."""
    names = sorted(one.name for one in paused.store.parent.iterdir())
    with pytest.raises(InputError) as caught:
        Owner(paused.store).sql(forbidden, most=10)
    assert not isinstance(caught.value, SilentOwnerError)
    assert sorted(one.name for one in paused.store.parent.iterdir()) == names


def test_the_socket_is_for_this_user_alone(paused: Running) -> None:
    assert stat.S_IMODE(socket_path(paused.store).stat().st_mode) == 0o600


def test_status_is_the_same_and_says_who_runs(paused: Running, venire: Venire) -> None:
    done = venire("status", paused.store)
    assert done.code == 0, done.err
    assert f"running: process {os.getpid()} on host {socket.gethostname()} since " in done.out
    assert "small: " in done.out
    assert " trials settled" in done.out
    facts = venire("status", paused.store, "--json").json()
    assert facts["live"]["calls"] >= 50
    assert facts["live"]["ending"] is None
    assert facts["store"] == str(paused.store)
    assert facts["campaigns"][0]["progress"]["planned"] == 60


def test_status_of_a_store_that_nobody_holds_says_that_nothing_runs(ended: Path, venire: Venire) -> None:
    facts = venire("status", ended, "--json").json()
    assert facts["live"] is None
    assert set(facts) == {"store", "holds", "recovered", "campaigns", "live"}
    assert "running" not in venire("status", ended).out


@pytest.mark.parametrize("running", [True, False])
def test_sql_answers_in_three_forms(running: bool, request: pytest.FixtureRequest, venire: Venire) -> None:
    store = request.getfixturevalue("paused").store if running else request.getfixturevalue("ended")
    query = "select 'a, \"b\"\nc' text, 1.5 number, null nothing, [1, 2] list, true yes, 7 number"
    done = venire("sql", store, query, "--json")
    row = {"text": 'a, "b"\nc', "number": "1.5", "nothing": None, "list": [1, 2], "yes": True, "number_2": 7}
    assert done.json() == [row]
    rows = list(csv.reader(io.StringIO(venire("sql", store, query, "--csv").out)))
    assert rows == [list(row), ['a, "b"\nc', "1.5", "", "[1, 2]", "true", "7"]]
    table = venire("sql", store, query)
    assert (table.code, table.err) == (0, "")
    assert table.out.splitlines() == [
        "text       number  nothing  list    yes   number_2",
        r'a, "b"\nc  1.5        NULL  [1, 2]  true         7',
        "1 row",
    ]


@pytest.mark.parametrize("running", [True, False])
def test_sql_without_a_query_lists_what_there_is_to_ask(
    running: bool, request: pytest.FixtureRequest, venire: Venire
) -> None:
    store = request.getfixturevalue("paused").store if running else request.getfixturevalue("ended")
    listed = venire("sql", store).out
    assert "  battle: campaign varchar, trial bigint, judge varchar" in listed
    assert "\ntables\n" in listed
    assert {one["kind"] for one in venire("sql", store, "--json").json()} == {"table", "view"}


@pytest.mark.parametrize("running", [True, False])
def test_a_mistake_in_a_query_is_exit_2_with_its_place(
    running: bool, request: pytest.FixtureRequest, venire: Venire
) -> None:
    store = request.getfixturevalue("paused").store if running else request.getfixturevalue("ended")
    done = venire("sql", store, "select * from batle")
    assert (done.code, done.out) == (2, "")
    assert "batle does not exist" in done.err
    assert "LINE 1: select * from batle" in done.err
    done = venire("sql", store, "drop table plan")
    assert done.code == 2
    assert "store is only read here" in done.err
    assert "this is DROP" in done.err


def test_rows_that_are_left_off_are_told_of_beside_the_output(paused: Running, ended: Path, venire: Venire) -> None:
    for store in (paused.store, ended):
        done = venire("sql", store, "from range(20000)", "--json", "--limit", "3")
        assert done.json() == [{"range": 0}, {"range": 1}, {"range": 2}]
        assert "first 3 rows of more" in done.err
    assert len(venire("sql", ended, "from range(20000)", "--json", "--limit", "15000").json()) == 15000
    live = venire("sql", paused.store, "from range(20000)", "--json", "--limit", "15000")
    assert len(live.json()) == 10_000
    assert "first 10,000 rows of more" in live.err


def test_a_query_can_come_from_standard_input(ended: Path, venire: Venire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("select 7 as seven"))
    assert venire("sql", ended, "-", "--json").json() == [{"seven": 7}]
    assert venire("sql", ended, "select 1", "--json", "--csv").code == 2


def test_watch_says_that_nothing_runs(ended: Path, venire: Venire) -> None:
    done = venire("watch", ended)
    assert done.code == 0
    assert done.out.endswith("\nno run is going on\n")
    assert "60 of 60 trials settled" in done.out


def test_other_verbs_name_those_that_work_meanwhile(paused: Running, venire: Venire) -> None:
    for done in (venire("reparse", paused.store), venire("run", paused.store.with_name("small.toml"), "--yes")):
        assert done.code == 2
        assert f"is held by process {os.getpid()}" in done.err
        for verb in ("status", "watch", "sql"):
            assert f"venire {verb} {paused.store}" in done.err


def test_many_readers_at_once_are_all_answered(paused: Running) -> None:
    def read(number: int) -> int:
        owner = Owner(paused.store)
        assert owner.status()["campaigns"][0]["campaign"] == "small"
        assert owner.live()["ending"] is None
        return int(owner.sql(f"select {number}", most=1).rows[0][0])

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(read, range(24))) == list(range(24))


def test_a_running_store_is_backed_up_whole(paused: Running, tmp_path: Path, start: Start) -> None:
    out = tmp_path / "copy.duckdb"
    process = start("-m", "venire", "store", "backup", paused.store, "-o", out, "--json")
    said, wrong = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, wrong
    here = Owner(paused.store).sql("select (select count(*) from attempt), (select max(batch) from ledger)", most=1)
    assert json.loads(said)["batch"] == here.rows[0][1]
    with open_store(out) as copy:
        assert copy.connection.execute("select count(*) from attempt").fetchall() == [(here.rows[0][0],)]
    assert not out.with_name(out.name + ".wal").exists()


def test_a_store_is_held_by_one_at_a_time_and_goes_on_after_it(paused: Running) -> None:
    with Owner(paused.store).hold() as held:
        assert held()
        with pytest.raises(InputError, match="somebody else"), Owner(paused.store).hold():
            pytest.fail("held twice")
    with Owner(paused.store).hold() as held:
        assert held()


def test_watching_ends_with_the_run_or_by_ctrl_c_which_leaves_the_run(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    with a_running_campaign(tmp_path) as running:
        stopped, whole = (start("-m", "venire", "watch", running.store, "--interval", "0.1") for _ in range(2))
        for watcher in (stopped, whole):
            assert watcher.stdout is not None
            assert "60 trials settled" in watcher.stdout.readline()
        stopped.send_signal(signal.SIGINT)
        rest, wrong = stopped.communicate(timeout=PATIENCE)
        assert (rest.splitlines()[-1], wrong) == ("no longer watching; the run goes on", "")
        assert running.end().ending is Ending.COMPLETE
        rest, wrong = whole.communicate(timeout=PATIENCE)
    assert whole.returncode == 0, wrong
    last = rest.splitlines()[-1]
    assert last.startswith("the run has ended: complete")
    assert f"60 trials settled, {CALLS} calls, $" in last


def test_queries_beside_the_writer_see_whole_commits_and_the_run_ends_complete(tmp_path: Path) -> None:
    with a_running_campaign(tmp_path, at=2) as running:
        owner = Owner(running.store)
        owner.sql("select 1", most=1)
        seen = []
        running.go_on.set()
        with contextlib.suppress(SilentOwnerError):  # the run has ended
            while True:
                seen += owner.sql(
                    "select (select count(*) from attempt), (select coalesce(max(running), 0) from ledger), "
                    "(select coalesce(sum(written), 0)::bigint from ledger), (select count(*) from verdict)",
                    most=1,
                ).rows
        summary = running.end()
    assert summary.ending is Ending.COMPLETE
    assert len(seen) > 3
    assert all(count == listed for _, count, listed, _ in seen)
    assert [row[0] for row in seen] == sorted(row[0] for row in seen)
    assert all(attempts >= 2 * verdicts for attempts, _, _, verdicts in seen)


@pytest.mark.slow
def test_a_kill_leaves_a_socket_that_confuses_nobody(
    write_campaign: Write, serve: Serve, venire: Venire, start: Callable[..., subprocess.Popen[str]]
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def wait(ordinal: int) -> None:
        if ordinal == 30:
            reached.set()
            go_on.wait(PATIENCE)

    with serve(on_request=wait) as server:
        path = write_campaign(judge=f'base_url = "{server.base_url}"')
        store = load_campaign(path).store
        process = start("-m", "venire", "run", path, "--yes")
        assert reached.wait(PATIENCE)
        watcher = start("-m", "venire", "watch", store)
        assert watcher.stdout is not None
        watcher.stdout.readline()
        process.kill()
        process.wait(PATIENCE)
        rest, _ = watcher.communicate(timeout=PATIENCE)
        assert "run has ended without notice" in rest
        assert watcher.returncode == 1
        go_on.set()
        assert socket_path(store).is_socket()
        assert venire("status", store, "--json").json()["live"] is None
        assert venire("sql", store, "select 1 a", "--json").json() == [{"a": 1}]
        assert venire("run", path, "--yes").code == 0
        assert not socket_path(store).exists()


def test_a_holder_that_does_not_answer_is_named(ended: Path, venire: Venire) -> None:
    with open_store(ended):
        for words in (("status", ended), ("watch", ended), ("sql", ended, "select 1")):
            done = venire(*words)
            assert done.code == 2
            assert f"is held by process {os.getpid()}" in done.err
            assert "does not answer now" in done.err
    assert venire("status", ended).code == 0


def test_an_owner_that_ends_while_it_is_asked_is_no_error(ended: Path) -> None:
    held = open_store(ended)

    def goes(owner: Owner) -> str:
        held.close()
        raise SilentOwnerError("gone")

    assert look(ended, lambda opened: "cold", goes) == "cold"


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}", b"garbage\r\n\r\n"])
def test_an_answer_that_is_cut_or_is_none_is_silence(tmp_path: Path, answer: bytes) -> None:
    store = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_path(store)))
        listener.listen()

        def reply() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(answer)

        thread = threading.Thread(target=reply)
        thread.start()
        with pytest.raises(SilentOwnerError, match="does not answer"):
            Owner(store).status()
        thread.join()


@pytest.mark.parametrize("length", slow_after(1, 180, 60))
def test_a_long_path_and_a_link_have_a_socket_too(tmp_path: Path, length: int, monkeypatch: Any) -> None:
    folder = tmp_path / ("f" * length)
    folder.mkdir()
    link = tmp_path / "link.duckdb"
    with a_running_campaign(folder) as running:
        link.symlink_to(running.store)
        monkeypatch.chdir(folder)
        for store in (running.store, link, Path(running.store.name)):
            assert current_status(store)["live"]["campaign"] == "small"
        assert running.end().ending is Ending.COMPLETE


def test_a_run_without_a_socket_says_so_once_and_ends_complete(write_campaign: Write, venire: Venire) -> None:
    path = write_campaign(instructions=1)
    store = load_campaign(path).store
    socket_path(store).mkdir()
    done = venire("run", path, "--yes")
    assert done.code == 0
    assert done.err.count("warning: no socket") == 1
    with open_store(store), pytest.raises(StoreHeldError):
        current_status(store)


def test_a_hold_lasts_as_long_as_its_owner_says(tmp_path: Path) -> None:
    store = tmp_path / "s"
    told, close = threading.Event(), threading.Event()

    def reply(listener: socket.socket) -> None:
        peer, _ = listener.accept()
        with peer:
            peer.recv(4096)
            line = json.dumps({"held": True}) + "\n"
            peer.sendall(f"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{line}".encode())
            assert close.wait(PATIENCE)
        told.set()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_path(store)))
        listener.listen()
        thread = threading.Thread(target=reply, args=(listener,))
        thread.start()
        with Owner(store).hold() as held:
            assert held()
            close.set()
            assert told.wait(PATIENCE)
            assert not held()
        thread.join()


LOOK = """
import sys
from pathlib import Path
from venire.live.client import current_status

current_status(Path(sys.argv[1]))
print([name for name in ("venire.session", "venire.judges", "venire.orchestrator", "aiohttp") if name in sys.modules])
"""


def test_a_look_at_a_store_does_not_wait_for_the_engine_to_load(judged: Callable[..., Path]) -> None:
    """The danger: `venire status` takes a second, most of it for what a run needs."""
    store = judged().with_suffix(".duckdb")
    done = subprocess.run([sys.executable, "-c", LOOK, str(store)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
