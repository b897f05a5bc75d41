"""Campaigns with several keys and fallback endpoints, against servers that refuse or fail in the middle of a run."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.stores import rows_of
from venire.arena.errors import Fault
from venire.orchestrator.lanes.refusals import REFUSALS_IN_A_ROW
from venire.simulation.server import JudgeServer

Venire = Callable[..., Any]
Write = Callable[..., Path]
Serve = Callable[..., AbstractContextManager[JudgeServer]]

CALLS = 15 * 2 * 2 * 2
"""Of one judge: a two-stage trial takes two."""

KEYS = {"FIRST_KEY": "value-of-the-first", "SECOND_KEY": "value-of-the-second"}


class Front(ThreadingHTTPServer):
    """Stands before a judge server: hands calls on, or answers with a status of its own where a rule says so.

    The rule is asked with the key and how many calls it has seen; lists of models are always handed on.
    """

    daemon_threads = True

    unlisted: str | None = None
    """A key that is refused the list of models too."""

    def __init__(self, behind: str, rule: Callable[[str, int], int | None]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind, self.rule = behind.removesuffix("/v1"), rule
        self.lock = threading.Lock()
        self.seen: list[tuple[str, int]] = []
        """Key and status of each call."""

    def refusal(self, key: str, body: bytes) -> tuple[int, dict[str, Any]] | None:
        """The status and the error that a call is refused with, if it is; asked under the lock."""
        status = self.rule(key, len(self.seen) + 1)
        return None if status is None else (status, {"message": f"no: {key}", "code": "refused_here"})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def statuses(self) -> Counter[int]:
        return Counter(status for _, status in self.seen)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Front

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        with self.server.lock:
            refusal = self.server.refusal(key, body)
            self.server.seen.append((key, refusal[0] if refusal else 200))
        if refusal is not None:
            self._say(refusal[0], json.dumps({"error": refusal[1]}).encode())
        else:
            self._hand_on(body)

    def do_GET(self) -> None:
        if self.server.unlisted and self.headers.get("Authorization") == f"Bearer {self.server.unlisted}":
            self._say(401, b"{}")
        else:
            self._hand_on(None)

    def _hand_on(self, body: bytes | None) -> None:
        headers = {name: value for name in ("Content-Type", "Idempotency-Key") if (value := self.headers.get(name))}
        request = urllib.request.Request(self.server.behind + self.path, body, headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            self._say(answer.status, answer.read())

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def fronted(
    behind: JudgeServer, rule: Callable[[str, int], int | None] = lambda key, nth: None, kind: type[Front] = Front
) -> Iterator[Front]:
    with kind(behind.base_url, rule) as front:
        thread = threading.Thread(target=front.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield front
        finally:
            front.shutdown()
            thread.join()


def judge(url: str, more: str) -> str:
    return f'[[judge]]\nname = "j"\nmodel = "simulated/gpt-4-0613@1"\nbase_url = "{url}"\nconcurrency = 4\n{more}\n'


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    return rows_of(path.with_suffix(".duckdb"), query)


BY_LANE = "select l.name, a.http_status, count(*) from attempt a join lane l on l.id = a.lane group by all order by all"


def refuse_second(key: str, nth: int) -> int | None:
    return 401 if nth > 30 and key == KEYS["SECOND_KEY"] else None


@pytest.mark.usefixtures("keys")
def test_one_refused_key_of_several_is_warned_of_at_the_start_and_the_only_one_ends_the_run(
    venire: Venire, write_campaign: Write, serve: Serve
) -> None:
    with serve() as server, fronted(server, lambda key, nth: 401 if key == KEYS["SECOND_KEY"] else None) as front:
        front.unlisted = KEYS["SECOND_KEY"]
        path = write_campaign(
            instructions=1, judges=judge(front.url, 'key_variables = ["FIRST_KEY", "SECOND_KEY"]\nmax_attempts = 1')
        )
        done = venire("run", path, "--yes")
        assert done.code == 0, done.err
        assert "warning: judge 'j' (its key is in SECOND_KEY)" in done.err
        again = write_campaign(instructions=1, judges=judge(front.url, 'key_variable = "SECOND_KEY"\ntemperature = 1'))
        refused = venire("run", again, "--yes", "--amend")
    assert refused.code == 2
    assert "SECOND_KEY" in refused.err
    assert KEYS["SECOND_KEY"] not in done.err + refused.err


@pytest.mark.usefixtures("keys")
def test_a_key_that_is_refused_in_the_middle_is_named_and_the_other_one_does_the_rest(
    venire: Venire, write_campaign: Write, serve: Serve
) -> None:
    with serve() as server, fronted(server, refuse_second) as front:
        both = judge(front.url, 'key_variables = ["FIRST_KEY", "SECOND_KEY"]\nmax_attempts = 1')
        path = write_campaign(instructions=2, judges=both)
        done = venire("run", path, "--yes")
        assert done.code == 0, done.err
        assert "SECOND_KEY" in done.err
        assert "takes no more calls" in done.err
        assert "calls go by the other routes" in done.err
        assert done.err.count("takes no more calls") == 1
        assert REFUSALS_IN_A_ROW <= front.statuses[401] <= REFUSALS_IN_A_ROW + 2 * 4, "several, and those in flight"
        ledger = server.ledger.entries
    assert len(ledger) == CALLS
    assert all(entry.key_asked == 1 for entry in ledger), "nothing was answered twice"
    name = f"openai {front.url} {{}} simulated/gpt-4-0613@1"
    seen = Counter((key, status) for key, status in front.seen)
    assert rows(path, BY_LANE) == [
        (name.format("FIRST_KEY"), 200, seen[KEYS["FIRST_KEY"], 200]),
        (name.format("SECOND_KEY"), 200, seen[KEYS["SECOND_KEY"], 200]),
        (name.format("SECOND_KEY"), 401, seen[KEYS["SECOND_KEY"], 401]),
    ]
    assert seen[KEYS["SECOND_KEY"], 200] > 5, "both were used"
    kept = b"".join(one.read_bytes() for one in path.parent.glob("small*")) + (done.out + done.err).encode()
    assert not any(value.encode() in kept for value in KEYS.values())


@pytest.mark.usefixtures("keys")
def test_when_the_last_key_is_refused_it_ends_with_1_and_goes_on_with_good_keys_where_it_was(
    venire: Venire, write_campaign: Write, serve: Serve
) -> None:
    with serve() as server, fronted(server, lambda key, nth: 401 if nth > 30 else None) as front:
        path = write_campaign(instructions=2, judges=judge(front.url, 'key_variables = ["FIRST_KEY", "SECOND_KEY"]'))
        done = venire("run", path, "--yes")
        assert done.code == 1
        assert done.err.count("takes no more calls") == 1
        assert "lane closed" in done.err
        assert all(name in done.err.replace("\n", " ") for name in KEYS)
        assert "are missing" in done.err
        assert "Traceback" not in done.err
        assert front.statuses[200] == 30
        assert rows(path, "select count(*) from failure") == [(0,)], "no step was used up"
        front.rule = lambda key, nth: None
        assert venire("run", path, "--yes").code == 0
        assert len(server.ledger.entries) == CALLS


@pytest.mark.slow
def test_a_fallback_does_the_rest_when_the_first_endpoint_fails_for_good(
    venire: Venire, write_campaign: Write, serve: Serve
) -> None:
    with serve() as server, serve() as other:
        with fronted(server, lambda key, nth: 503 if nth > 30 else None) as front, fronted(other) as second:
            more = f'max_attempts = 20\n[[judge.fallback]]\nbase_url = "{second.url}"'
            path = write_campaign(instructions=2, judges=judge(front.url, more))
            done = venire("run", path, "--yes")
        assert done.code == 0, done.err
        assert "calls fail" in done.err
        assert "calls go by the other routes" in done.err
        assert done.err.count("calls fail") == 1
        assert front.statuses[200] == 30 == len(server.ledger.entries)
        assert 5 <= front.statuses[503] <= 5 + 3 + 8, "five, what was in flight, and probes"
        assert second.statuses == {200: CALLS - 30}
        assert len(other.ledger.entries) == CALLS - 30
    name = "openai {} simulated/gpt-4-0613@1"
    assert set(rows(path, BY_LANE)) == {
        (name.format(front.url), 200, 30),
        (name.format(front.url), 503, front.statuses[503]),
        (name.format(second.url), 200, CALLS - 30),
    }
    transient = f"select count(*), sum(cost) from attempt where fault = {int(Fault.TRANSIENT)}"
    assert rows(path, transient) == [(front.statuses[503], 0)]
    assert rows(path, "select count(*) from failure") == [(0,)]


@pytest.mark.slow
def test_a_lane_that_nobody_answers_is_given_up_after_its_patience_with_1_and_says_so(
    venire: Venire, write_campaign: Write, serve: Serve
) -> None:
    with serve() as server, fronted(server, lambda key, nth: 503 if nth > 30 else None) as front:
        path = write_campaign(instructions=2, judges=judge(front.url, "max_attempts = 1000\npatience = 1.5"))
        done = venire("run", path, "--yes")
        assert done.code == 1
        assert "lane closed" in done.err
        assert "no call was answered for " in done.err
        assert "one is sent now and then until it works again" in done.err
        assert "; the last failure: HTTP 503" in done.err
        assert "the last call failed: HTTP 503" in venire("status", path.with_suffix(".duckdb")).out
        assert rows(path, "select count(*) from failure") == [(0,)]
        front.rule = lambda key, nth: None
        assert venire("run", path, "--yes").code == 0
        assert len(server.ledger.entries) == CALLS


def test_a_fallback_that_is_not_there_is_warned_of_and_does_not_keep_a_campaign_from_running(
    venire: Venire, write_campaign: Write, serve: Serve
) -> None:
    with serve() as server:
        more = '[[judge.fallback]]\nbase_url = "http://127.0.0.1:9/v1"'
        done = venire("run", write_campaign(instructions=2, judges=judge(server.base_url, more)), "--yes")
        assert done.code == 0, done.err
        assert "warning: judge 'j'" in done.err
        assert "127.0.0.1:9" in done.err
