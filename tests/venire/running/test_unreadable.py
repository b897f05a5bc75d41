"""A judge whose replies cannot be read does not spend the budget, and the run that asked it says so and fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

Venire = Callable[..., Any]
Write = Callable[..., Path]

MUMBLER = """\
[[judge]]
name = "{name}"
model = "mumbler"
base_url = "{url}"
price = {{ input = 1.00, output = 1.00 }}
protocol = "{protocol}"
concurrency = 4
"""
GATED = "[quality]\nreadable = 0.9\n"


class Mumbler(ThreadingHTTPServer):
    """A chat endpoint that gives one text to every question."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.text = "Both have their merits, \x1b[31mI would say."
        self.calls = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Mumbler

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.calls += 1
        message = {"role": "assistant", "content": self.server.text}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        self._answer({"id": "1", "object": "chat.completion", "model": "mumbler", "choices": choices, "usage": usage})

    def do_GET(self) -> None:
        self._answer({"object": "list", "data": [{"id": "mumbler"}]})

    def _answer(self, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def mumbler() -> Iterator[Mumbler]:
    with Mumbler() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_it_is_asked_no_more_after_20_trials_and_the_next_start_asks_nothing(
    venire: Venire, write_campaign: Write, mumbler: Mumbler
) -> None:
    judge = MUMBLER.format(name="m", url=mumbler.url, protocol="direct")
    file = write_campaign(judges=judge, instructions=16)
    first = venire("run", file, "--yes")
    assert first.code == 1
    asked = mumbler.calls
    assert asked <= 2 * (20 + 4), "the trials that decide it and those in flight, each with its repair"
    assert "of its last 20 trials none could be read (20 unreadable)" in first.err
    assert "Both have their merits, \\x1b[31mI would say." in " ".join(first.err.split())
    assert "\x1b[31m" not in first.err
    assert "--amend (to ask on whatever can be read, set give_up = 0 in [quality])" in " ".join(first.err.split())
    again = venire("run", file, "--yes")
    assert (again.code, mumbler.calls) == (1, asked)


def test_whoever_wants_to_pay_for_it_may_and_the_end_is_no_success(
    venire: Venire, write_campaign: Write, mumbler: Mumbler
) -> None:
    judge = MUMBLER.format(name="m", url=mumbler.url, protocol="direct")
    file = write_campaign(judges=judge, instructions=1, more="[quality]\ngive_up = 0\n")
    done = venire("run", file, "--yes")
    assert done.code == 5
    assert "quality: judge 'm': none of its 6 trials could be read" in done.err
    assert mumbler.calls >= 6


@pytest.mark.slow
def test_it_stops_alone_and_a_judge_of_the_same_lane_that_can_be_read_goes_on(
    venire: Venire, write_campaign: Write, mumbler: Mumbler
) -> None:
    mumbler.text = "1"
    both = MUMBLER.format(name="m", url=mumbler.url, protocol="criteria")
    both += MUMBLER.format(name="fine", url=mumbler.url, protocol="binary")
    file = write_campaign(judges=both, instructions=8)
    done = venire("run", file, "--yes")
    assert done.code == 1
    (campaign,) = venire("status", file.with_suffix(".duckdb"), "--json").json()["campaigns"]
    judges = {one["judge"]: one for one in campaign["judges"]}
    assert judges["fine"]["settled"] == 15 * 8 * 2
    assert judges["m"]["settled"] <= 24


@pytest.mark.parametrize(
    ("more", "code"),
    [
        pytest.param("", 0, marks=pytest.mark.slow),
        ("[quality]\nflips = 1\n", 0),
        ("[quality]\nflips = 0.5\n", 5),
    ],
)
def test_a_gate_that_is_missed_gives_a_code_of_its_own(
    venire: Venire, write_campaign: Write, mumbler: Mumbler, more: str, code: int
) -> None:
    mumbler.text = "1"
    judge = MUMBLER.format(name="m", url=mumbler.url, protocol="binary")
    done = venire("run", write_campaign(judges=judge, more=more), "--yes")
    assert done.code == code, done.err
    assert ("quality: judge 'm'" in done.err) == (code == 5)


@pytest.fixture
def board(venire: Venire, write_campaign: Write, mumbler: Mumbler) -> Callable[[str], Path]:
    """A board by a judge that could be read then, and mumbles from now on; beside it the texts of a new model."""

    def make(more: str) -> Path:
        mumbler.text = "1"
        judge = MUMBLER.format(name="m", url=mumbler.url, protocol="binary")
        file = write_campaign(judges=judge, instructions=4, more=more)
        assert venire("run", file, "--yes").code == 0
        texts = [json.loads(line) for line in file.with_name("completions.jsonl").read_text("utf-8").splitlines()]
        new = [{**one, "model": "new"} for one in texts if one["model"] == "terse"]
        file.with_name("new.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in new), encoding="utf-8")
        mumbler.text, mumbler.calls = "Hm.", 0
        return file.with_suffix(".duckdb")

    return make


@pytest.mark.slow
def test_a_placement_by_it_stops_and_fails(venire: Venire, board: Callable[[str], Path], mumbler: Mumbler) -> None:
    store = board("")
    texts = store.with_name("new.jsonl")
    done = venire("place", "new", "--on", store, "--completions", texts, "--budget", "1.00", "--yes")
    assert done.code == 1
    assert mumbler.calls <= 2 * (20 + 4 + 20)
    assert "none could be read (20 unreadable)" in done.err


@pytest.mark.slow
def test_battles_bounds_what_a_placement_asks_readable_or_not(
    venire: Venire, board: Callable[[str], Path], mumbler: Mumbler
) -> None:
    store = board("[quality]\ngive_up = 0\n")
    texts = store.with_name("new.jsonl")
    done = venire("place", "new", "--on", store, "--completions", texts, "--battles", "15", "--yes")
    assert done.code == 5
    assert mumbler.calls <= 15 * 2 * 2, "both orders, and each asked once more"
    assert "none of its 30 trials could be read" in done.err
