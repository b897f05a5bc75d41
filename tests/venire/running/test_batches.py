"""Batches from the command line: what is out, how to go on, and how to end them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.parameters import slow_after
from tests.stores import rows_of
from venire import batches
from venire.arena.errors import CallError, Fault
from venire.judges.providers.batches.openai import OpenAIBatches
from venire.simulation.batches import BatchDesk, BatchFaults, SimulatedBatch
from venire.simulation.server import JudgeServer

Venire = Callable[..., Any]
Write = Callable[..., Path]
Serve = Callable[..., AbstractContextManager[JudgeServer]]

JUDGE = """\
[[judge]]
name = "judge"
model = "simulated/gpt-4-0613@1"
price = {{ input = 1.0, output = 4.0 }}
base_url = "{address}"
transport = "batch"
{more}
"""


@pytest.fixture
def server(serve: Serve) -> Iterator[JudgeServer]:
    """Simulated judges whose batches never end by themselves."""
    with serve(batch_faults=BatchFaults(polls=10_000)) as running:
        yield running


@pytest.fixture
def write(write_campaign: Write, server: JudgeServer) -> Callable[..., Path]:
    """Writes a campaign of 30 trials that asks the server by batches."""

    def campaign(more: str = "", **settings: Any) -> Path:
        judges = JUDGE.format(address=server.base_url, more=more)
        return write_campaign(instructions=1, judges=judges, **settings)

    return campaign


def end_batches(server: JudgeServer) -> None:
    """Let every batch end at the next question."""
    server.batches.faults = replace(server.batches.faults, polls=0)


def test_detached_batches_are_listed_refreshed_and_collected(
    venire: Venire, write: Callable[..., Path], server: JudgeServer
) -> None:
    path = write()
    store = path.with_suffix(".duckdb")
    left = venire("run", path, "--yes", "--detach")
    assert left.code == 3
    said = " ".join(left.err.split())
    assert "1 batch is under way: 30 calls, which go on without us. To collect them: venire run" in said
    assert "venire batch list" in said
    (row,) = venire("batch", "list", store, "--json").json()
    assert (row["lines"], row["collected"], row["open"], row["kind"]) == (30, 0, True, "sent")
    shown = venire("batch", "list", store).out
    assert row["name"] in shown
    assert "reserved" in shown
    (now,) = venire("batch", "list", store, "--refresh", "--json").json()
    assert now["provider"]["state"] == "running"
    status = venire("status", store)
    assert "out: 1 batch with 30 calls" in status.out
    (campaign,) = venire("status", store, "--json").json()["campaigns"]
    assert (campaign["batches"][0]["name"], campaign["batches"][0]["reserved"]) == (row["name"], row["reserved"])
    end_batches(server)
    done = venire("run", path, "--yes", "--poll", "0.01s")
    assert done.code == 0, done.err
    assert "60 answered" in done.err
    assert "30 calls in" in done.err
    assert [one["kind"] for one in venire("batch", "list", store, "--json").json()] == ["collected", "collected"]
    assert venire("batch", "list", store, "--refresh").out == "no batch is out\n"


def test_a_cancelled_batch_keeps_what_was_answered_and_returns_the_rest(
    venire: Venire, write: Callable[..., Path], server: JudgeServer
) -> None:
    path = write()
    store = path.with_suffix(".duckdb")
    server.batches.faults = replace(server.batches.faults, polls=4)
    assert venire("run", path, "--yes", "--detach").code == 3
    while server.batches.batches[0].count("answered") < 10:
        venire("batch", "list", store, "--refresh")
    done = venire("batch", "cancel", store)
    assert done.code == 0
    assert "being cancelled" in done.out
    answered = server.batches.batches[0].count("answered")
    assert 0 < answered < 30
    assert venire("batch", "list", store, "--json").json()[0]["kind"] == "cancelling"
    end_batches(server)
    assert venire("run", path, "--yes", "--poll", "0.01s").code == 0
    rows = venire("batch", "list", store, "--json").json()
    assert [(one["lines"], one["answered"]) for one in rows] == [
        (30, answered),
        (30, 30),
        (30 - answered, 30 - answered),
    ]
    keys = [one.key for one in server.ledger.entries]
    assert len(keys) == len(set(keys)) == 60


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question to a provider is asked again at once."""
    monkeypatch.setattr(batches, "pause_after", lambda failures: 0.0)


@pytest.mark.parametrize(("status", "code"), [(500, 1), (404, 0)])
def test_a_cancel_that_failed_ends_with_1_and_one_404_closes_nothing(
    venire: Venire,
    write: Callable[..., Path],
    server: JudgeServer,
    monkeypatch: pytest.MonkeyPatch,
    no_pauses: None,
    status: int,
    code: int,
) -> None:
    path = write()
    store = path.with_suffix(".duckdb")
    assert venire("run", path, "--yes", "--detach").code == 3
    cancel, left = OpenAIBatches.cancel, iter(range(1))

    async def failing(self: Any, batch: str) -> Any:
        if next(left, None) is not None:
            raise CallError(f"HTTP {status}: no", Fault.TRANSIENT, status=status)
        return await cancel(self, batch)

    monkeypatch.setattr(OpenAIBatches, "cancel", failing)
    first = venire("batch", "cancel", store)
    assert first.code == code
    assert ("not cancelled (HTTP 500: no): it goes on; cancel it again" in " ".join(first.out.split())) == (code == 1)
    assert server.batches.batches[0].cancelled == (code == 0)
    assert venire("batch", "list", store, "--json").json()[0]["open"]
    assert venire("batch", "cancel", store).code == 0
    assert server.batches.batches[0].cancelled


def test_a_batch_that_its_provider_does_not_know_is_given_up_and_counts_as_reserved(
    venire: Venire, write: Callable[..., Path], server: JudgeServer, no_pauses: None
) -> None:
    path = write()
    store = path.with_suffix(".duckdb")
    assert venire("run", path, "--yes", "--detach").code == 3
    server.batches.batches.clear()
    failed = venire("run", path, "--yes", "--poll", "0.01s")
    assert failed.code == 3
    assert "venire batch cancel" in failed.err
    (row,) = venire("batch", "list", store, "--json").json()
    gone = venire("batch", "cancel", store, row["name"])
    assert "does not know it any more: closed" in gone.out
    unknown = "select count(*), sum(reserved) from attempt where cost is null"
    assert rows_of(store, unknown) == [(30, row["reserved"])]
    again = venire("batch", "cancel", store, row["name"])
    assert again.code == 2
    assert "is not out any more" in again.err
    end_batches(server)
    assert venire("run", path, "--yes", "--poll", "0.01s").code == 0
    assert venire("store", "check", store).code == 0


def test_a_lane_that_waits_for_better_times_asks_for_no_change_of_the_file(
    venire: Venire, write: Callable[..., Path], server: JudgeServer
) -> None:
    server.batches.faults = replace(server.batches.faults, failed_creates=1)
    path = write("max_attempts = 1")
    closed = venire("run", path, "--yes", "--poll", "0.01s")
    assert closed.code == 1
    assert "start again later" in closed.err
    assert "Go on: venire run" in " ".join(closed.err.split())
    assert "Mend" not in closed.err
    assert "--amend" not in closed.err


def test_a_batch_that_is_not_proved_to_be_ours_is_never_cancelled(
    venire: Venire, write: Callable[..., Path], server: JudgeServer, monkeypatch: pytest.MonkeyPatch, no_pauses: None
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    server.batches.faults = replace(server.batches.faults, strangers=1)
    path = write('provider = "anthropic"')
    store = path.with_suffix(".duckdb")
    assert venire("run", path, "--yes", "--detach").code == 3
    ours, stranger = server.batches.batches
    assert stranger.is_strange
    for kind, said in (("adopted", "may be somebody else's: not cancelled"), ("mistaken", "not confirmed when it was")):
        with duckdb.connect(str(store)) as opened:
            event = "insert into submission_event values (1, now(), ?, ?, '', (select max(batch) from submission))"
            opened.execute(event, [kind, stranger.id])
        for there in (True, False):
            if not there and kind == "adopted":
                server.batches.batches.remove(stranger)  # its owner has deleted it
            cancelled = venire("batch", "cancel", store)
            assert said in " ".join(cancelled.out.split())
            assert cancelled.code == 1
        assert venire("batch", "list", store, "--json").json()[0]["open"]
    assert venire("batch", "list", store, "--json").json()[0]["provider_id"] is None
    assert not stranger.cancelled
    assert not ours.cancelled


def test_a_batch_in_doubt_is_shown_with_the_command_that_gives_it_up_at_what_was_reserved(
    venire: Venire, write: Callable[..., Path], server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    server.batches.faults = replace(server.batches.faults, failed_creates=1, strangers=1)
    path = write('provider = "anthropic"\nmax_wait = 0.01')
    store = path.with_suffix(".duckdb")
    assert venire("run", path, "--yes", "--poll", "0.01s").code == 3
    (row,) = venire("batch", "list", store, "--json").json()
    said = " ".join(venire("status", store).out.split())
    assert f"in doubt: batch {row['name']}" in said
    assert f"{row['name']} --give-up" in said
    assert "name it" in venire("batch", "cancel", store, "--give-up").err
    assert "at what was reserved" in venire("batch", "cancel", store, row["name"], "--give-up").out
    given_up = "select count(*), sum(reserved) from attempt where cost is null"
    assert rows_of(store, given_up) == [(30, row["reserved"])]
    assert not any(batch.cancelled for batch in server.batches.batches)
    end_batches(server)
    assert venire("run", path, "--yes", "--poll", "0.01s").code == 0
    assert venire("store", "check", store).code == 0


def test_a_name_that_no_batch_has_is_refused_with_those_that_there_are(
    venire: Venire, write: Callable[..., Path]
) -> None:
    path = write()
    assert venire("run", path, "--yes", "--detach").code == 3
    store = path.with_suffix(".duckdb")
    (row,) = venire("batch", "list", store, "--json").json()
    assert "not in doubt" in venire("batch", "cancel", store, row["name"], "--give-up").err
    refused = venire("batch", "cancel", store, "venire-0")
    assert refused.code == 2
    assert f"has no batch 'venire-0'; out: {row['name']}" in " ".join(refused.err.split())


def test_a_store_without_batches_says_so(venire: Venire, judged: Callable[..., Path]) -> None:
    store = judged(instructions=1).with_suffix(".duckdb")
    assert 'transport = "batch"' in venire("batch", "list", store).out
    assert venire("batch", "list", store, "--json").json() == []
    assert venire("batch", "cancel", store).out == "no batch is out\n"


@pytest.mark.parametrize("number", slow_after(1, signal.SIGINT, signal.SIGTERM))
def test_a_signal_while_only_batches_are_out_says_what_is_out_and_how_to_go_on(
    write: Callable[..., Path], start: Callable[..., Any], number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll, looked_at_twice = BatchDesk.poll, threading.Event()

    def polled(self: BatchDesk, batch: SimulatedBatch) -> None:
        poll(self, batch)
        if batch.polls == 2:
            looked_at_twice.set()

    monkeypatch.setattr(BatchDesk, "poll", polled)
    process = start("-m", "venire", "run", write(), "--yes", "--poll", "1h", env=dict(os.environ))
    assert looked_at_twice.wait(60)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    words = " ".join(said.split())
    assert "interrupted: what was answered is on disk; 30 of 30 trials are missing" in words
    assert "1 batch is under way: 30 calls, which go on without us. To collect them: venire run" in words


def test_a_judge_asked_by_batches_for_one_start_goes_on_with_the_same_option(
    venire: Venire, write: Callable[..., Path]
) -> None:
    path = write()
    path.write_text(path.read_text().replace('transport = "batch"', ""), encoding="utf-8")
    left = venire("run", path, "--yes", "--detach", "--batch", "judge")
    assert left.code == 3
    assert "--batch judge" in left.err
    assert "To collect them: venire run" in left.err
    wrong = venire("run", path, "--yes", "--batch", "jugde")
    assert wrong.code == 2
    assert "--batch jugde: no judge of that name; did you mean 'judge'? There is: judge" in wrong.err


def test_contestants_and_editors_are_asked_by_batches(
    venire: Venire, write: Callable[..., Path], server: JudgeServer
) -> None:
    end_batches(server)
    path = write()
    peer = JUDGE.format(address=server.base_url, more="elo = 1200").replace("[[judge]]", "[[contestant]]")
    text = path.read_text().replace('completions = "completions.jsonl"\nelo = "elo.csv"\n', "")
    other = peer.replace('"judge"', '"other"').replace("gpt-4-0613", "claude-v1").replace("1200", "1100")
    path.write_text(text + peer + other, encoding="utf-8")
    done = venire("generate", path, "--yes")
    assert done.code == 0, done.err
    rows = venire("batch", "list", path.with_suffix(".duckdb"), "--json").json()
    assert [(one["lines"], one["answered"], one["kind"]) for one in rows] == [(1, 1, "collected")] * 2


@pytest.mark.parametrize(
    ("more", "key", "problem"),
    [
        ('transport = "live"\nwave_size = 5', "wave_size", 'only for calls in batches: add transport = "batch"'),
        ("batch_price = { input = 1, output = 1 }", "batch_price", "only for calls in batches"),
        ('transport = "file"\nafter_wait = "live"', "max_wait", "missing; after_wait says what becomes of calls"),
        ('transport = "batch"\nafter_wait = "never"\nmax_wait = 5', "after_wait", 'accepted: "live" or "start"'),
        ('transport = "batch"\nmax_wait = 0', "max_wait", "accepted: a number of seconds above 0"),
        ('transport = "batch"\nwave_size = 0', "wave_size", "accepted: a whole number from 1 to 1000000"),
        ('transport = "post"', "transport", 'accepted: "live", "batch" or "file"'),
        ('transport = "batch"\nprovider = "litellm"', "transport", "has no batch interface; those that have:"),
        ('transport = "batch"\nfree = true\nbatch_price = { input = 1, output = 1 }', "batch_price", "are both given"),
    ],
)
def test_wrong_settings_of_batches_are_a_clear_sentence(
    venire: Venire, write: Callable[..., Path], more: str, key: str, problem: str
) -> None:
    path = write()
    text = path.read_text().replace('transport = "batch"', more)
    if "free" in more:
        text = text.replace("price = { input = 1.0, output = 4.0 }\n", "", 1)
    path.write_text(text, encoding="utf-8")
    refused = venire("plan", path)
    assert refused.code == 2
    assert f'judge[1].{key} (judge "judge"): ' in refused.err
    assert problem in refused.err


@pytest.mark.parametrize("pause", ["never", "0s", "-5m", "", "3d", "nan", "inf"])
def test_a_pause_that_is_no_time_is_refused(venire: Venire, write: Callable[..., Path], pause: str) -> None:
    refused = venire("run", write(), "--yes", "--poll", pause)
    assert refused.code == 2
    assert "--poll" in refused.err
