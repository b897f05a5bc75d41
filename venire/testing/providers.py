"""The contract of a provider, tested against a server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from venire.arena.errors import CallError, Fault, TransientError
from venire.arena.records import Reply, Request
from venire.judges.providers import PROVIDERS, Endpoint, Provider

_KEY = "sk-a-key-of-the-contract-1234567890"
_QUESTION = Request(({"role": "user", "content": "1 or 2? \N{SNOWMAN}"},), max_tokens=64, temperature=0.0, seed=7)
_FAULTS: tuple[tuple[int, dict[str, str], Fault], ...] = (
    (429, {"Retry-After": "7"}, Fault.RATE_LIMITED),
    (401, {}, Fault.AUTHENTICATION),
    (500, {}, Fault.TRANSIENT),
    (503, {}, Fault.TRANSIENT),
)
_SECONDS = 20.0


def check_provider(name: str, body: Callable[[str], bytes], *, model: str = "judge") -> None:
    """Check that a registered provider keeps its contract. Raises AssertionError with the broken rule.

    `body` makes the vendor's response body for a text. Equal requests give equal bytes; one call is one HTTP request
    with the key in a header, and returns text, tokens and the raw answer. Statuses map to their faults, Retry-After is
    read, and an unreadable answer is a transient fault. The key is in no error. A cancelled call ends at once, and a
    closed provider leaves no connection.

    >>> import json
    >>> def body(text):
    ...     choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    ...     return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}).encode()
    >>> check_provider("openai", body)
    """
    asyncio.run(asyncio.wait_for(_check(name, body, model), 4 * _SECONDS))


async def _check(name: str, body: Callable[[str], bytes], model: str) -> None:
    async with _serving() as server:
        provider = PROVIDERS[name].open(Endpoint(server.url, _KEY, _SECONDS, 4))
        assert _KEY not in repr(provider), f"{name}: the key is in its repr"
        assert _KEY not in repr(provider.limits_key(model)), f"{name}: the key is in its limits_key"
        sent = provider.encode(model, _QUESTION)
        assert sent == provider.encode(model, _QUESTION), f"{name}: one request gives different bytes"
        assert _KEY.encode() not in sent, f"{name}: the key is in the body, which is kept"
        try:
            await _check_reply(name, provider, server, sent, body)
            for status, headers, fault in _FAULTS:
                server.answer = (status, headers, _KEY.encode())
                await _check_fault(name, provider, sent, fault, f"status {status}")
            server.answer = (200, {}, b"<html>It works!</html>")
            await _check_fault(name, provider, sent, Fault.TRANSIENT, "an answer that is no JSON")
            await _check_cancelled(name, provider, server, sent)
        finally:
            await provider.close()


async def _check_reply(
    name: str, provider: Provider, server: _ScriptedServer, sent: bytes, body: Callable[[str], bytes]
) -> None:
    server.answer = (200, {}, body("2 \N{SNOWMAN}"))
    reply = await provider.send(sent, "step-1")
    assert isinstance(reply, Reply)
    assert reply.text == "2 \N{SNOWMAN}", f"{name}: the text of the answer is {reply.text!r}"
    assert reply.raw, f"{name}: the raw answer is not kept"
    assert reply.input_tokens or reply.estimated, f"{name}: no tokens are counted, and it does not say so"
    assert len(server.received) == 1, f"{name}: one call is {len(server.received)} requests"
    head, got = server.received[0]
    assert _KEY in head, f"{name}: the key is in no header"
    assert _KEY not in head.splitlines()[0], f"{name}: the key is in the address"
    assert "1 or 2?" in got.decode(), f"{name}: the question is not in the body"


async def _check_fault(name: str, provider: Provider, sent: bytes, fault: Fault, what: str) -> None:
    found: Reply | CallError
    try:
        found = await provider.send(sent, "step-1")
    except CallError as error:
        found = error
    assert isinstance(found, CallError), f"{name}: {what} is taken for a reply"
    assert found.fault is fault, f"{name}: {what} is {found.fault.name}, not {fault.name}"
    again = isinstance(found, TransientError)
    assert again == (fault in (Fault.TRANSIENT, Fault.RATE_LIMITED)), f"{name}: {what} is tried again: {again}"
    assert _KEY not in str(found) + repr(found), f"{name}: the key is in the error of {what}"
    asked = found.retry_after if isinstance(found, TransientError) else None
    assert fault is not Fault.RATE_LIMITED or asked == 7, f"{name}: Retry-After: 7 is read as {asked}"


async def _check_cancelled(name: str, provider: Provider, server: _ScriptedServer, sent: bytes) -> None:
    server.answer = None
    call = asyncio.create_task(provider.send(sent, "step-1"))
    await server.asked.wait()
    call.cancel()
    done, _ = await asyncio.wait([call], timeout=_SECONDS / 4)
    assert done, f"{name}: a cancelled call goes on"
    assert call.cancelled(), f"{name}: a cancelled call ends otherwise than by CancelledError"


@dataclass
class _ScriptedServer:
    """Answers each request with `answer`, a status, headers and a body; None: never answers."""

    url: str = ""
    answer: tuple[int, dict[str, str], bytes] | None = None
    received: list[tuple[str, bytes]] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a request that gets no answer."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                sizes = [line[15:] for line in head.splitlines() if line.lower().startswith("content-length:")]
                self.received.append((head, await reader.readexactly(int(sizes[0]) if sizes else 0)))
                if self.answer is None:
                    self.asked.set()
                    await asyncio.Event().wait()
                else:
                    writer.write(self._written(*self.answer))
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # the client has gone, or the check is over

    @staticmethod
    def _written(status: int, headers: dict[str, str], body: bytes) -> bytes:
        kind = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in {**kind, **headers}.items())]
        return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def _serving() -> AsyncIterator[_ScriptedServer]:
    found, open_now = _ScriptedServer(), set[asyncio.Task[None]]()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_now.add(task)
        try:
            await found.serve(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            open_now.discard(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    found.url = f"http://{host}:{port}/v1"
    try:
        yield found
    finally:
        server.close()
        await asyncio.sleep(0)  # a task that is cancelled before it began would leave its connection open
        for task in list(open_now):
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)
