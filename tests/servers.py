"""Servers on loopback, of raw bytes and of applications, which leave nothing open behind them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def accepted() -> None:
    """Waits until no connection is on its way from a closed listener to its own task.

    It passes through some turns of the loop, and a task that is cancelled before it began leaves its connection open.
    """
    for _ in range(8):
        await asyncio.sleep(0)


@asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Host and port of a server that does this on each connection; a client that goes away ends it quietly."""
    under_way: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                await serve(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
            under_way.discard(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.close()
        await accepted()
        left = list(under_way)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


@asynccontextmanager
async def site(application: web.Application, **options: Any) -> AsyncIterator[str]:
    """The address of a server of an application, `http://` with its port; `options` are those of the runner."""
    runner = web.AppRunner(application, access_log=None, **options)
    await runner.setup()
    listener = web.TCPSite(runner, "127.0.0.1", 0)
    await listener.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await listener.stop()
        await accepted()
        await runner.cleanup()
