"""A server on loopback with scripted answers, against which contracts of providers are checked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

KEY = "sk-a-key-of-the-contract-1234567890"
Answer = tuple[int, dict[str, str], bytes]
"""A status, headers and a body."""


@dataclass
class ScriptedServer:
    """Answers each request with `answer`, or with what that makes of its method and path; None: never answers."""

    origin: str = ""
    answer: Answer | Callable[[str], Answer] | None = None
    received: list[tuple[str, bytes]] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a request that gets no answer."""

    @property
    def url(self) -> str:
        """A base URL of this server."""
        return f"{self.origin}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                sizes = [line[15:] for line in head.splitlines() if line.lower().startswith("content-length:")]
                self.received.append((head, await reader.readexactly(int(sizes[0]) if sizes else 0)))
                if self.answer is None:
                    self.asked.set()
                    await asyncio.Event().wait()
                else:
                    asked = head.partition(" HTTP/")[0].partition("?")[0]
                    writer.write(self._written(*(self.answer(asked) if callable(self.answer) else self.answer)))
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # the client has gone, or the check is over

    @staticmethod
    def _written(status: int, headers: dict[str, str], body: bytes) -> bytes:
        kind = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in {**kind, **headers}.items())]
        return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def serving() -> AsyncIterator[ScriptedServer]:
    """A server on loopback until the block ends."""
    found, open_now = ScriptedServer(), set[asyncio.Task[None]]()

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
    found.origin = f"http://{host}:{port}"
    try:
        yield found
    finally:
        server.close()
        await asyncio.sleep(0)  # a task that is cancelled before it began would leave its connection open
        for task in list(open_now):
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)
