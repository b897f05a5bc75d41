"""Pages of stores at rest, served in this process and asked over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from venire.live.fits import Fits
from venire.live.guard import DoorAddress, Guard
from venire.live.library import Library
from venire.live.pages import Pages
from venire.live.server import serve_pages

PATIENCE = 30.0
BASE = "/s/small/c/1"


class KeptFits(Fits):
    """Fits whose process outlives the server of one test."""

    def __init__(self, kept: Fits) -> None:
        super().__init__()
        self._free, self._turn = kept._free, kept._turn

    def close(self) -> None:
        for _, fit in self._known.values():
            fit.done.wait(PATIENCE)


def guard() -> Guard:
    return Guard(DoorAddress(port=0))


@contextlib.asynccontextmanager
async def served(*stores: Path, fits: Fits, door: Guard | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    pages = Pages(Library.of_paths(stores), door or guard(), _fits=KeptFits(fits))
    async with serve_pages(pages):
        timeout = aiohttp.ClientTimeout(total=PATIENCE)
        base = f"http://127.0.0.1:{pages.guard.port}"
        async with aiohttp.ClientSession(base, timeout=timeout) as session:
            yield session


async def ready(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    """A page when it is there: those that compute say so meanwhile."""
    while True:
        async with session.get(path) as response:
            text = await response.text()
            if response.status != 202:
                return response.status, text


def visit(*stores: Path, fits: Fits, act: Callable[[aiohttp.ClientSession], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        async with served(*stores, fits=fits) as session:
            return await act(session)

    return asyncio.run(go())
