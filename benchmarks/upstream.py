"""A judge's endpoint as light as asyncio allows, in a process of its own: fixed answers after a seeded latency.

It speaks as much HTTP and OpenAI as the engine's client sends. `GET /count` tells what came, as JSON: `calls`, the
`most` in flight at one time, `in_flight` now, and `first`, the time of day of the first call.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import Any
from urllib.request import urlopen

import uvloop

__all__ = ["counts", "running"]

_REASONS = "The first answer names what was asked for and gives its grounds; the second one repeats the question. " * 12


class _State:
    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.random = Random(7)
        self.calls = self.in_flight = self.most = 0
        self.first: float | None = None


class _Connection(asyncio.Protocol):
    def __init__(self, state: _State) -> None:
        self._state = state
        self._data = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._data[:end]).lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(self._data) < end + 4 + length:
            return
        body = bytes(self._data[end + 4 : end + 4 + length])
        self._data.clear()
        self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        state = self._state
        if head.startswith(b"post"):
            state.first = state.first or time.time()
            state.calls += 1
            state.in_flight += 1
            state.most = max(state.most, state.in_flight)
            asyncio.get_running_loop().call_later(
                state.random.uniform(0.5, 1.5) * state.latency, self._say, b'"assistant"' in body
            )
        elif b"/count" in head:
            self._send({name: getattr(state, name) for name in ("calls", "in_flight", "most", "first")})
        else:
            self._send({"data": [{"id": "judge"}]})

    def _say(self, second: bool) -> None:
        self._state.in_flight -= 1
        text = "1" if second else _REASONS
        usage = {"prompt_tokens": 900, "completion_tokens": len(text) // 4 + 1}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        self._send({"id": "x", "model": "judge", "choices": [choice], "usage": usage})

    def _send(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        if not self._transport.is_closing():
            self._transport.write(head.encode() + body)


async def _serve(latency: float) -> None:
    state = _State(latency)
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(state), "127.0.0.1", 0, backlog=4096)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


@contextlib.contextmanager
def running(latency: float) -> Iterator[str]:
    """The base URL of an endpoint in another process; it answers after `latency` seconds, give or take half of it."""
    command = [sys.executable, __file__, str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


def counts(base_url: str) -> dict[str, Any]:
    """What an endpoint was asked so far."""
    with urlopen(f"{base_url}/count", timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


if __name__ == "__main__":
    uvloop.run(_serve(float(sys.argv[1])))
