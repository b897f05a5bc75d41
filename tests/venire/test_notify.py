"""Notifications: what is sent, to whom, and that whoever does not take it costs a run little time and no secret."""

from __future__ import annotations

import json
import shlex
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.venire.conftest import Done
from venire.arena.clock import VirtualClock
from venire.arena.errors import InputError
from venire.cli.options import notify_target
from venire.configs.loading import load_campaign
from venire.orchestrator.recording.ending import EXIT_CODES, Ending
from venire.orchestrator.recording.events import Events
from venire.telemetry import notify as module
from venire.telemetry.notify import Notifier, NotifyTarget

TOKEN = "T0KEN-of-a-webhook"
ROUTES = [{"lane": "l", "route": "r", "provider": "openai", "model": "m", "endpoint": None}]
STARTED = {"campaign": "first", "planned": 10, "settled": 3, "failed": 1, "missing": 6, "lanes": ROUTES}
TRIAL = {"trial": 1, "key": "aa", "judge": "j", "lane": "l", "cost_nano": 1, "seconds": 1.0}
ENDED = {"campaign": "first", "calls": 6, "answered": 6, "retries": 0, "seconds": 9.0}


class Hook(ThreadingHTTPServer):
    """A webhook that keeps what comes, and answers as it is said to."""

    daemon_threads = True

    def __init__(self, status: int, *, silent: bool, drips: int) -> None:
        self.status, self.silent, self.drips = status, silent, drips
        self.documents: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/services/{TOKEN}"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        self.server.documents.append(json.loads(body))
        if self.server.silent:
            self.server.over.wait(30)
        if len(self.server.documents) <= self.server.drips:
            for byte in "HTTP/1.1 200 OK\r\nX-Slow: " + "x" * 1000:
                if self.server.over.wait(0.02):
                    break
                with suppress(OSError):
                    self.wfile.write(byte.encode())
            return
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        return


@contextmanager
def hook(status: int = 200, *, silent: bool = False, drips: int = 0) -> Iterator[Hook]:
    """A webhook; to the first `drips` documents its answer comes byte by byte, and never to its end."""
    with Hook(status, silent=silent, drips=drips) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


def tell(target: NotifyTarget, *, leader: str = "gpt-x", budget: int | None = 10**9) -> list[str]:
    """A run that passes half of its money, loses a lane and ends; returns the warnings."""
    said: list[str] = []
    notifier = Notifier(target, said.append)
    events = Events(VirtualClock(), [notifier], warn=said.append)
    events.emit("run.started", **STARTED, spent_nano=100_000_000, budget_nano=budget)
    events.emit("pages.served", address="http://127.0.0.1:8377")
    events.emit("trial.settled", **TRIAL, status="ok")
    events.emit("budget.passed", percent=50, spent_nano=500_000_000, limit_nano=budget)
    events.emit("lane.closed", lane="openai m", why="its key is refused")
    events.emit("run.ended", **ENDED, ending="complete", settled=9, failed=1, missing=0, cost_nano=600_000_000)
    events.emit("board.rated", leader=leader, method="bradley-terry")
    notifier.close()
    return said


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_ANSWER_SECONDS", "_RETRY_SECONDS"):
        monkeypatch.setattr(module, name, 0.1)


def test_money_a_closed_lane_and_the_end_are_posted_as_a_document_with_a_sentence() -> None:
    with hook() as server:
        assert tell(NotifyTarget(server.url)) == []
    assert set(server.paths) == {f"/services/{TOKEN}"}
    half, lane, end = server.documents
    assert (half["event"], half["percent"], half["done"], half["of"]) == ("budget", 50, 5, 10)
    assert (half["spent"], half["budget"], half["pages"]) == (0.5, 1.0, "http://127.0.0.1:8377")
    assert half["text"] == "first: 50 % of the budget is spent; 5 of 10 trials, $0.5000 of $1.00; http://127.0.0.1:8377"
    assert half["content"] == half["text"]
    assert (lane["event"], lane["lane"], lane["why"]) == ("lane closed", "openai m", "its key is refused")
    assert (end["event"], end["ending"], end["exit_code"], end["spent"]) == ("ended", "complete", 0, 0.7)
    assert end["text"] == "first: ended (complete); 10 of 10 trials, $0.7000 of $1.00, gpt-x is rated highest"
    assert half.keys() == lane.keys() == end.keys()


def test_a_name_calls_nobody_in_a_chat() -> None:
    with hook() as server:
        tell(NotifyTarget(server.url), leader="<!channel> @everyone\n")
    end = server.documents[-1]
    assert "<" not in end["text"]
    assert "\n" not in end["text"]
    assert end["allowed_mentions"] == {"parse": []}


@pytest.mark.parametrize(
    ("status", "silent", "why"),
    [(500, False, "it answered 500"), (302, False, "it answered 302"), (200, True, "no answer within")],
)
def test_a_server_that_fails_is_said_once_without_its_token(status: int, silent: bool, why: str, quick: None) -> None:
    with hook(status, silent=silent) as server:
        (sentence,) = tell(NotifyTarget(server.url))
    assert f"at the address of --notify: {why}" in sentence
    assert TOKEN not in sentence
    assert len(server.paths) == 4, "twice for the first, once for each of the others"


def test_an_answer_that_drips_keeps_no_later_message_from_a_server_that_recovers(quick: None) -> None:
    with hook(drips=2) as server:
        (sentence,) = tell(NotifyTarget(server.url))
    assert "no answer within 0.1 s" in sentence
    assert [one["event"] for one in server.documents] == ["budget", "budget", "lane closed", "ended"]


def test_a_host_that_is_the_secret_is_not_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quick: None) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ssl.SSLCertVerificationError(1, f"certificate is not valid for '{TOKEN}.invalid'")

    monkeypatch.setattr(socket, "create_connection", refuse)
    target = NotifyTarget.of(None, None, {"VENIRE_NOTIFY": f"http://{TOKEN}.invalid/x"}, tmp_path / "c.toml")
    assert target is not None
    (sentence,) = tell(target)
    assert "at the address of VENIRE_NOTIFY: " in sentence
    assert TOKEN not in sentence


def test_a_server_that_is_not_there_is_said_once(quick: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (sentence,) = tell(NotifyTarget(f"http://127.0.0.1:{port}/{TOKEN}"))
    assert "Connection refused" in sentence
    assert TOKEN not in sentence


def test_the_end_of_a_run_waits_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CLOSING_SECONDS", 0.1)
    with hook(silent=True) as server:
        (sentence,) = tell(NotifyTarget(server.url))
    assert "no answer within 0.1 s" in sentence


def test_a_command_has_the_document_and_no_shell_reads_what_a_model_said(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = (
        "import os, sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n' + os.environ['VENIRE_LEADER'] + '\\n')"
    )
    command = shlex.join([sys.executable, "-c", code, str(out)])
    target = NotifyTarget.of(None, command, {}, tmp_path / "c.toml")
    assert target is not None
    assert tell(target, leader="$(touch hacked); `touch hacked`") == []
    *_, end, leader = out.read_text().splitlines()
    assert json.loads(end)["exit_code"] == 0
    assert leader == "$(touch hacked); `touch hacked`"
    assert not (tmp_path / "hacked").exists()


def test_a_command_has_no_key_of_the_campaign(
    write_campaign: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    code = "import json, os, sys; open(sys.argv[1], 'w').write(json.dumps(dict(os.environ)))"
    contestant = '\n[[contestant]]\nmodel = "openai/writer"\nkey_variable = "KEY_OF_A_WRITER"\n'
    contestant += 'base_url = "https://api.example.com/v1"\nprice = { input = 1.0, output = 4.0 }\n'
    path = write_campaign(instructions=1, more=contestant)
    monkeypatch.setenv("KEY_OF_A_WRITER", TOKEN)
    monkeypatch.setenv("CHANNEL", "alerts")
    command = shlex.join([sys.executable, "-c", code, str(out)])
    target = notify_target(None, command, {}, path, load_campaign(path))
    assert target is not None
    assert tell(target) == []
    assert TOKEN not in out.read_text()
    assert json.loads(out.read_text())["CHANNEL"] == "alerts"


@pytest.mark.parametrize(
    ("code", "why"),
    [("raise SystemExit(3)", "exit code 3"), ("import signal; signal.pause()", "it did not end within")],
)
def test_a_command_that_fails_or_hangs_is_ended_and_said_once(
    code: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_COMMAND_SECONDS", 0.2 if "pause" in code else 30.0)
    monkeypatch.setattr(module, "_CLOSING_SECONDS", 60.0)
    (sentence,) = tell(NotifyTarget(None, (sys.executable, "-c", code)))
    assert why in sentence


@pytest.mark.parametrize(
    ("url", "command", "sentence"),
    [
        (f"ftp://host/{TOKEN}", None, "begins with http:// or https://"),
        (f"https://user:{TOKEN}@host/", None, "without a user or a password"),
        (f"https://host:{TOKEN}/", None, "begins with http:// or https://"),
        (f"https://host/{TOKEN} \x00", None, "begins with http:// or https://"),
        ("env:HOOK", None, "--notify env:HOOK: that variable is not set"),
        (None, "no-such-program-here --loud", "there is no program 'no-such-program-here'"),
        (None, "'", "--notify-command cannot be read"),
    ],
)
def test_what_cannot_be_notified_is_refused_before_anything_is_spent(
    url: str | None, command: str | None, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        NotifyTarget.of(url, command, {}, tmp_path / "c.toml")
    assert sentence in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_an_address_comes_from_a_variable_or_from_the_file_beside_the_campaign(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("HOOK=https://hooks.example.com/b\n")
    campaign = tmp_path / "c.toml"
    found = [
        NotifyTarget.of(url, None, environ, campaign)
        for url, environ in (
            ("env:HOOK", {"HOOK": "https://a/"}),
            ("env:HOOK", {}),
            (None, {"VENIRE_NOTIFY": "http://c/"}),
        )
    ]
    assert [one and one.url for one in found] == ["https://a/", "https://hooks.example.com/b", "http://c/"]
    assert "example" not in repr(found)
    assert NotifyTarget.of(None, None, {}, campaign) is None


def test_every_ending_has_an_exit_code() -> None:
    assert set(EXIT_CODES) == set(Ending)


def test_a_run_notifies_of_its_end_and_its_token_is_nowhere(
    write_campaign: Callable[..., Path], venire: Callable[..., Done], tmp_path: Path
) -> None:
    path = write_campaign(instructions=1, more="[budget]\ncalls = 60\n")
    log = tmp_path / "events.jsonl"
    with hook() as server:
        done = venire("run", path, "--yes", "--notify", server.url, "--events", log)
        assert done.code == 3
        again = venire("status", path)
    assert [one["event"] for one in server.documents] == ["budget", "ended"]
    budget, end = server.documents
    assert budget["percent"] == 100
    assert "the budget of 60 calls is reached" in budget["why"]
    assert budget["why"] in budget["text"]
    assert "is spent" not in budget["text"], "of money nothing may be spent"
    assert (end["ending"], end["exit_code"]) == ("budget reached", 3)
    assert end["leader"]
    for text in (done.out, done.err, again.out, again.err, log.read_text(encoding="utf-8")):
        assert TOKEN not in text
    assert TOKEN.encode() not in path.with_suffix(".duckdb").read_bytes()


def test_a_run_is_not_harmed_by_a_server_that_answers_with_errors(
    write_campaign: Callable[..., Path], venire: Callable[..., Done], quick: None
) -> None:
    path = write_campaign(instructions=1)
    with hook(500) as server:
        done = venire("run", path, "--yes", "--notify", server.url)
    assert done.code == 0
    assert done.err.count("nobody could be notified") == 1
    assert TOKEN not in done.err


def test_a_run_notifies_of_the_money_that_it_passes_and_the_next_run_not_again(
    write_campaign: Callable[..., Path], venire: Callable[..., Done]
) -> None:
    judge = '[[judge]]\nname = "gpt-4-0613"\nmodel = "simulated/gpt-4-0613@1"\nprice = { input = 1.0, output = 4.0 }\n'

    def ran(name: str, money: float) -> list[dict[str, Any]]:
        path = write_campaign(name=name, judges=judge, more=f"[budget]\nmoney = {money:.6f}\n")
        with hook() as server:
            assert venire("run", path, "--yes", "--notify", server.url).code == 0
        return server.documents

    (whole,) = ran("small.toml", 10.0)
    assert whole["budget"] == 10.0
    half, end = ran("other.toml", 1.6 * whole["spent"])
    assert (half["event"], half["percent"], end["event"]) == ("budget", 50, "ended")
    (again,) = ran("other.toml", 1.6 * whole["spent"])
    assert again["spent"] == end["spent"]
