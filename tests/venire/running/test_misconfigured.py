"""A campaign file with a wrong address, model or parameter: the run says which key to change, and its command works."""

from __future__ import annotations

import json
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

Venire = Callable[..., Any]
Write = Callable[..., Path]

JUDGE = '[[judge]]\nname = "j"\nmodel = "{model}"\nbase_url = "{url}"\nfree = true\nprotocol = "binary"\n{more}\n'
TEMPERATURE = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."


class Upstream(ThreadingHTTPServer):
    """Speaks chat completions at /v1, knows one model, and refuses by a rule; all other addresses are a web page."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rule: Callable[[dict[str, Any]], tuple[int, str] | None] = lambda body: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def do_GET(self) -> None:
        self._answer(404, b"<html><body>Not Found</body></html>")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        if self.path != "/v1/chat/completions":
            return self._answer(404, b"<!DOCTYPE html><html><body>Not Found</body></html>")
        if body["model"] != "good":
            message = f"The model `{body['model']}` does not exist or you do not have access to it."
            return self._answer(404, json.dumps({"error": {"message": message, "code": "model_not_found"}}).encode())
        if (refusal := self.server.rule(body)) is not None:
            return self._answer(refusal[0], json.dumps({"error": {"message": refusal[1]}}).encode())
        choice = {"index": 0, "message": {"role": "assistant", "content": "1"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
        return self._answer(200, json.dumps({"model": "good", "choices": [choice], "usage": usage}).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def next_command(err: str) -> list[str]:
    """The words after `venire` of the command that the end of a run names."""
    found = re.search(r"go on: venire (.+)", err)
    assert found is not None, err
    return shlex.split(found[1])


@pytest.mark.parametrize("instructions", [1, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ({"url": "/v2"}, {"url": "/v1"}, "correct base_url, which most often ends in /v1"),
        pytest.param({"model": "absent"}, {"model": "good"}, "correct model", marks=pytest.mark.slow),
        pytest.param(
            {"more": ""}, {"more": 'temperature = "default"'}, 'set temperature = "default"', marks=pytest.mark.slow
        ),
    ],
)
def test_a_run_that_is_refused_as_a_whole_fails_names_the_key_and_goes_on_by_its_command(
    venire: Venire,
    write_campaign: Write,
    upstream: Upstream,
    wrong: dict[str, str],
    right: dict[str, str],
    said: str,
    instructions: int,
) -> None:
    upstream.rule = lambda body: (400, TEMPERATURE) if "temperature" in body else None

    def judge(given: dict[str, str]) -> str:
        known = {"model": "good", "url": "/v1", "more": 'temperature = "default"', **given}
        return JUDGE.format(model=known["model"], url=upstream.url + known["url"], more=known["more"])

    file = write_campaign(judges=judge(wrong), instructions=instructions)
    done = venire("run", file, "--yes")
    assert done.code == 1
    assert said in done.err
    assert "trials failed" not in done.err, "no trial fails for what is wrong with all of them"
    write_campaign(judges=judge(right), instructions=instructions)
    mended = venire(*next_command(done.err), "--yes")
    assert mended.code == 0, mended.err
    assert "the limiter made" in mended.err


@pytest.mark.slow
def test_a_text_that_is_refused_fails_alone_once_any_other_was_answered(
    venire: Venire, write_campaign: Write, upstream: Upstream
) -> None:
    refused = iter([True, True])
    upstream.rule = lambda body: (400, "this text will not do") if next(refused, False) else None
    file = write_campaign(judges=JUDGE.format(model="good", url=upstream.url + "/v1", more="concurrency = 1"))
    done = venire("run", file, "--yes")
    assert done.code == 4
    assert "2 trials failed: HTTP 400: this text will not do (2)" in done.err


@pytest.mark.slow
def test_failures_of_an_endpoint_that_was_changed_are_tried_again_by_themselves(
    venire: Venire, write_campaign: Write, upstream: Upstream
) -> None:
    down = iter([False, False, True, True])
    upstream.rule = lambda body: (500, "down") if next(down, False) else None
    more = "concurrency = 1\nmax_attempts = 1"
    file = write_campaign(judges=JUDGE.format(model="good", url=upstream.url + "/v1", more=more))
    first = venire("run", file, "--yes")
    assert first.code == 4, first.err
    with Upstream() as other:
        thread = threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            write_campaign(judges=JUDGE.format(model="good", url=other.url + "/v1", more=more))
            done = venire("run", file, "--yes", "--amend")
        finally:
            other.shutdown()
            thread.join()
    assert done.code == 0, done.err
    assert "tried again: the endpoint, key or model that was asked is another one now" in done.err


@pytest.mark.parametrize("end", ["/v1/chat/completions", "/v1/chat/completions/", "/v1/messages"])
def test_the_address_of_single_calls_is_no_base_url(venire: Venire, write_campaign: Write, end: str) -> None:
    done = venire("plan", write_campaign(judges=JUDGE.format(model="m", url=f"http://127.0.0.1:9{end}", more="")))
    assert done.code == 2
    assert "base_url" in done.err
    assert "leave out /" in done.err
