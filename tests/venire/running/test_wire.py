"""A campaign's own headers and proxy reach the wire, and the proxy's password is kept nowhere."""

from __future__ import annotations

import os
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.parameters import slow_after

PASSWORD = "pass-word-17"
BODY = (
    b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "The first."}, "finish_reason": "stop"}], '
    b'"usage": {"prompt_tokens": 5, "completion_tokens": 2}}'
)
JUDGE = """\
[[judge]]
name = "far"
model = "m"
base_url = "http://vendor.example/v1"
free = true
"""


class Far(ThreadingHTTPServer):
    """A proxy that answers for every vendor, and what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, dict[str, str]]] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Far

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def far() -> Iterator[Far]:
    with Far() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_headers_and_proxy_reach_the_wire_and_no_password_the_disk(
    far: Far, venire: Callable[..., Any], write_campaign: Callable[..., Path], folder: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("OUR_PROXY", f"http://me:{PASSWORD}@127.0.0.1:{far.server_port}")
    more = 'headers = { "X-Title" = "a title" }\nproxy_variable = "OUR_PROXY"\nconnect_timeout = 5\nread_timeout = 20\n'
    done = venire("run", write_campaign(judges=JUDGE + more), "--yes")
    assert done.code in (0, 1, 4), done.err
    assert [path for path, _ in far.seen][:2] == [
        "http://vendor.example/v1/models",
        "http://vendor.example/v1/chat/completions",
    ]
    basic = b64encode(f"me:{PASSWORD}".encode()).decode()
    for _, headers in far.seen:
        assert headers["x-title"] == "a title"
        assert headers["proxy-authorization"] == f"Basic {basic}"
        assert headers["host"] == "vendor.example"
    kept = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()) + (done.out + done.err).encode()
    assert b"The first." in kept
    assert PASSWORD.encode() not in kept
    assert basic.encode() not in kept


def test_a_variable_that_is_not_set_is_named(venire: Callable[..., Any], write_campaign: Callable[..., Path]) -> None:
    done = venire("run", write_campaign(judges=JUDGE + 'proxy_variable = "NO_SUCH_PROXY"\n'), "--yes")
    assert done.code == 2
    assert "judge 'far' needs its proxy in the environment variable NO_SUCH_PROXY, which is not set" in done.err


@pytest.mark.parametrize(
    "value", slow_after(1, f"https://me:{PASSWORD}@proxy", f"me:{PASSWORD}@proxy:3128", f"http://me:{PASSWORD}/x@h")
)
def test_a_variable_that_holds_no_proxy_is_refused_without_showing_it(
    venire: Callable[..., Any], write_campaign: Callable[..., Path], monkeypatch: Any, value: str
) -> None:
    monkeypatch.setenv("OUR_PROXY", value)
    done = venire("run", write_campaign(judges=JUDGE + 'proxy_variable = "OUR_PROXY"\n'), "--yes")
    assert done.code == 2
    assert "small.toml: judge 'far': the proxy for http://vendor.example/v1 must" in done.err
    assert "Traceback" not in done.err
    assert PASSWORD not in done.out + done.err


def test_a_proxy_that_is_not_there_ends_the_run_before_any_call(
    far: Far, venire: Callable[..., Any], write_campaign: Callable[..., Path]
) -> None:
    far.server_close()
    done = venire("run", write_campaign(judges=JUDGE + f'proxy = "http://127.0.0.1:{far.server_port}"\n'), "--yes")
    assert done.code == 2
    assert f"no connection to the proxy 127.0.0.1:{far.server_port} (refused); check proxy" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("name", slow_after(1, "other.env", ".env"))
def test_a_key_in_a_file_is_sent_and_kept_nowhere(
    far: Far,
    venire: Callable[..., Any],
    write_campaign: Callable[..., Path],
    folder: Path,
    monkeypatch: Any,
    name: str,
) -> None:
    monkeypatch.delenv("FAR_KEY", raising=False)
    judge = JUDGE + f'proxy = "http://127.0.0.1:{far.server_port}"\nkey_variable = "FAR_KEY"\n'
    (folder / ".env").write_text("FAR_KEY=sk-beside-0123456789\nUNASKED=1\n", encoding="utf-8")
    if name != ".env":
        (folder / name).write_text("FAR_KEY='sk-given-0123456789'\n", encoding="utf-8")
    more = () if name == ".env" else ("--env-file", folder / name)
    done = venire("run", write_campaign(judges=judge), "--yes", *more)
    assert done.code in (0, 1, 4), done.err
    key = "sk-beside-0123456789" if name == ".env" else "sk-given-0123456789"
    assert {headers["authorization"] for _, headers in far.seen} == {f"Bearer {key}"}
    kept = [file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.suffix != ".env"]
    assert not any(key.encode() in one for one in kept if not one.startswith(b"FAR_KEY="))
    assert key not in done.out + done.err
    assert "UNASKED" not in os.environ


def test_a_key_that_is_nowhere_names_both_places(
    venire: Callable[..., Any], write_campaign: Callable[..., Path], folder: Path, monkeypatch: Any
) -> None:
    monkeypatch.delenv("FAR_KEY", raising=False)
    done = venire("run", write_campaign(judges=JUDGE + 'key_variable = "FAR_KEY"\n'), "--yes")
    assert done.code == 2
    assert "export FAR_KEY=..., or write FAR_KEY=... into" in done.err
    (folder / ".env").write_text("FAR_KEY\n", encoding="utf-8")
    done = venire("run", write_campaign(name="again.toml", judges=JUDGE + 'key_variable = "FAR_KEY"\n'), "--yes")
    assert done.code == 2
    assert ".env: line 1 gives no variable" in done.err
