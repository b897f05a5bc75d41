"""`venire run --events`: a line an event, in a file that can never stop the run."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from venire.arena.errors import InputError
from venire.orchestrator.recording.events import Event
from venire.telemetry import lines
from venire.telemetry.lines import EventLog

Venire = Callable[..., Any]
Write = Callable[..., Path]

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LOOK = 1.0 / 256
"""Seconds between two looks of the tests' threads at their files."""


def event(number: int) -> Event:
    return Event("circuit.closed", AT, {"lane": "openai", "route": number})


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_SECONDS", LOOK)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], None]]:
    """A disk that takes 10 bytes of each write and then no more, until it is told otherwise; waits for three tries."""
    write, tried, state = os.write, threading.Event(), {"full": True, "room": 10, "tries": 0}

    def slowly(descriptor: int, text: bytes) -> int:
        if not state["full"]:
            return write(descriptor, text)
        if not state["room"]:
            state["tries"] += 1
            if state["tries"] == 3:
                tried.set()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        state["room"] = 0
        return write(descriptor, text[:10])

    def change(is_full: bool) -> None:
        assert tried.wait(10)
        state.update(full=is_full)

    monkeypatch.setattr(lines.os, "write", slowly)
    yield change
    state.update(full=False)


def test_a_run_tells_how_it_began_and_ended_and_a_second_one_appends(
    venire: Venire, write_campaign: Write, tmp_path: Path
) -> None:
    path, file = write_campaign(), tmp_path / "events.jsonl"
    assert venire("run", path, "--yes", "--events", file).code == 0
    began, *_, ended, rated = read(file)
    assert began["event"] == "run.started"
    assert began["missing"] == 120
    assert [lane["model"] for lane in began["lanes"]] == ["simulated/gpt-4-0613@1", "simulated/claude-3-opus@1"]
    assert ended["event"] == "run.ended"
    assert (ended["ending"], ended["settled"], ended["calls"]) == ("complete", 120, 240)
    assert (rated["event"], rated["method"]) == ("board.rated", "bradley-terry")
    first = len(read(file))
    assert venire("run", path, "--yes", "--events", file).code == 0
    assert [line["event"] for line in read(file)[first:]] == ["run.started", "run.ended", "board.rated"]


@pytest.mark.parametrize("name", ["no-folder/events.jsonl", ".", "small.toml", "-"])
def test_a_path_that_cannot_hold_events_is_refused_before_anything_is_made_or_spent(
    venire: Venire, write_campaign: Write, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(folder)
    before = write_campaign().read_bytes()
    done = venire("run", "small.toml", "--yes", "--events", name)
    assert done.code == 2
    assert f"--events {name}" in done.err
    assert not (folder / "small.duckdb").exists()
    assert (folder / "small.toml").read_bytes() == before


def test_a_pipe_that_nobody_reads_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="cannot be written"):
        EventLog(tmp_path / "pipe", print)


def test_lines_keep_their_order_and_all_are_written_at_the_end(tmp_path: Path) -> None:
    told: list[str] = []
    file = EventLog(tmp_path / "events", told.append)
    for number in range(5_000):
        file(event(number))
    file.close()
    assert [line["route"] for line in read(tmp_path / "events")] == list(range(5_000))
    assert read(tmp_path / "events")[0]["at"] == "2026-01-02T03:04:05Z"
    assert told == []


def test_a_full_disk_is_told_once_and_what_waited_is_written_when_there_is_room(
    tmp_path: Path, full: Callable[[bool], None]
) -> None:
    told: list[str] = []
    file = EventLog(tmp_path / "events", told.append)
    for number in range(10):
        file(event(number))
    full(False)
    file.close()
    assert [line["route"] for line in read(tmp_path / "events")] == list(range(10))
    assert len(told) == 1
    assert "No space left" in told[0]
    assert "run goes on" in told[0]


def test_what_finds_no_place_to_wait_is_counted(
    tmp_path: Path, full: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_MAX_WAITING", 5)
    file = EventLog(tmp_path / "events", lambda told: None)
    file(event(0))
    full(True)  # the thread holds that one
    for number in range(1, 10):
        file(event(number))
    full(False)
    file.close()
    found = read(tmp_path / "events")
    assert [line["route"] for line in found if line["event"] == "circuit.closed"] == [0, 1, 2, 3, 4, 5]
    assert [line["count"] for line in found if line["event"] == "events.lost"] == [4]


def test_a_line_that_a_kill_cut_short_is_ended_before_the_next(tmp_path: Path) -> None:
    (tmp_path / "events").write_text('{"event":"run.star', encoding="utf-8")
    file = EventLog(tmp_path / "events", print)
    file(event(7))
    file.close()
    cut, whole = (tmp_path / "events").read_text(encoding="utf-8").splitlines()
    assert cut == '{"event":"run.star'
    assert json.loads(whole)["route"] == 7
