"""Requests that are broken or never end: a status of the client's, a closed connection, and nothing on the terminal.

Every POST route of every server of this product is asked, as the routers have them.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from venire.live import server as live_server
from venire.live.answers import Answers, Pulse
from venire.live.guard import DoorAddress, Guard
from venire.live.library import Library
from venire.live.pages import Pages
from venire.live.server import serve
from venire.live.sockets import socket_path
from venire.live.voting import Voting
from venire.simulation import requests
from venire.simulation import server as judge_server
from venire.simulation.answer_key import AnswerKey
from venire.simulation.server import JudgeServer
from venire.storage.read.selecting import Selected

SERVERS = ("mock provider", "pages", "socket")
IN_PATHS = {"store": "a", "campaign": "1", "id": "x"}
UNREAD = ("/hold", "/v1/batches/x/cancel", "/v1/messages/batches/x/cancel")
"""What is asked there does not depend on a body."""

PART = b'--b\r\nContent-Disposition: form-data; name="token"\r\n'
BODIES = {
    "no boundary": ("multipart/form-data", PART),
    "no part": ("multipart/form-data; boundary=b", b"token"),
    "half a head": ("multipart/form-data; boundary=b", b"--b\r\nContent-Dispo"),
    "no end": ("multipart/form-data; boundary=b", PART + b"\r\nabc"),
    "odd encoding": (
        "multipart/form-data; boundary=b",
        PART + b"Content-Transfer-Encoding: odd\r\n\r\nabc\r\n--b--\r\n",
    ),
    "odd characters": (
        "multipart/form-data; boundary=b",
        PART + b"Content-Type: text/plain; charset=odd\r\n\r\na\r\n--b--\r\n",
    ),
    "not packed": ("application/json\r\nContent-Encoding: gzip", b"nonsense"),
    "no JSON": ("application/json; charset=odd", b'{"a'),
    "nested": ("application/json", b"[" * 100_000),
}


@dataclass
class Door:
    """A server that listens: how to connect to it, and its routes."""

    connect: Callable[[], Any]
    app: web.Application
    origin: str = "http://127.0.0.1"
    elsewhere: tuple[str, ...] = ()

    @property
    def posts(self) -> list[str]:
        routes = [one for one in self.app.router.routes() if one.method == "POST" and one.resource is not None]
        found = [one.resource.canonical for one in routes if one.resource.canonical not in self.elsewhere]
        return [re.sub(r"\{(\w+)[^}]*\}", lambda name: IN_PATHS[name[1]], path) for path in found]

    async def ask(self, raw: bytes) -> bytes:
        """The first line of the answer; nothing where the connection is closed without one."""
        reader, writer = await self.connect()
        writer.write(raw)
        try:
            return await asyncio.wait_for(reader.readline(), 20)
        finally:
            writer.close()

    def head(self, path: str, kind: str, length: int) -> bytes:
        host = self.origin.removeprefix("http://")
        lines = f"POST {path} HTTP/1.1", f"Host: {host}", f"Origin: {self.origin}", f"Content-Type: {kind}"
        return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


@contextlib.asynccontextmanager
async def opened(which: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    apps: list[web.Application] = []

    def made(app: web.Application, *given: Any, **named: Any) -> web.AppRunner:
        apps.append(app)
        return requests.app_runner(app, *given, **named)

    for module in (live_server, judge_server):
        monkeypatch.setattr(module, "app_runner", made)
    if which == "mock provider":
        async with JudgeServer(AnswerKey((), {})) as server:
            port = server.base_url.rpartition(":")[2].partition("/")[0]
            yield Door(lambda: asyncio.open_connection("127.0.0.1", int(port)), apps[0])
        return
    pages = Pages(Library.of_paths([]), Guard(DoorAddress(port=0)), voting=Voting())
    answers = Answers(Pulse("small", datetime.now(UTC)), dict, lambda *_: Selected((), [], more=False))
    async with serve(folder / "a.duckdb", answers, pages=pages):
        if which == "socket":
            yield Door(lambda: asyncio.open_unix_connection(socket_path(folder / "a.duckdb")), apps[0])
        else:
            port = pages.guard.port
            yield Door(
                lambda: asyncio.open_connection("127.0.0.1", port),
                apps[0],
                f"http://127.0.0.1:{port}",
                ("/sql", "/hold"),
            )


@pytest.mark.parametrize("which", SERVERS)
def test_a_broken_body_is_the_clients_error_and_says_nothing_on_the_terminal(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> list[tuple[str, str, bytes]]:
        async with opened(which, tmp_path, monkeypatch) as door:
            assert len(door.posts) >= 3
            return [
                (path, name, await door.ask(door.head(path, kind, len(body)) + body))
                for path in door.posts
                for name, (kind, body) in BODIES.items()
            ]

    found = asyncio.run(go())
    assert [one for one in found if not one[2].startswith(b"HTTP/1.1 4")] == []
    forms = {line for path, name, line in found if path.endswith("/stop") and "multipart" in BODIES[name][0]}
    assert forms == ({b"HTTP/1.1 400 Bad Request\r\n"} if which != "mock provider" else set())
    assert caplog.records == []


@pytest.mark.parametrize("which", SERVERS)
def test_a_request_that_does_not_come_to_its_end_is_given_up(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr(requests, "BODY_SECONDS", 0.2)

    async def go() -> None:
        async with opened(which, tmp_path, monkeypatch) as door:
            assert await door.ask(b"POST / HTTP/1.1\r\nHost: ") == b""
            for path in (one for one in door.posts if one not in UNREAD):
                kind = "application/json" if path.endswith("vote") else "multipart/form-data; boundary=b"
                line = await door.ask(door.head(path, kind, 1000) + PART)
                assert line.startswith(b"HTTP/1.1 408"), (path, line)

    asyncio.run(go())
