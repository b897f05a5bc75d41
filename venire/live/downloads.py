"""Downloads of pages: tables of trials, made and sent part by part, each ended where its store is given up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from aiohttp import web

from venire.live.library import ServedStore
from venire.pages.views import calls as calls_view

T = TypeVar("T")


class Downloads:
    """The downloads under way of some stores; one part of one of them is made at a time, in a thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "venire-download")
        self._under_way: dict[asyncio.Task[None], ServedStore] = {}

    async def send(
        self, request: web.Request, served: ServedStore, campaign: int, query: Mapping[str, str], form: str
    ) -> web.StreamResponse:
        """Answer with the trials of a campaign that a query chooses, as a file of a form.

        Raises VenireError where they cannot be read.
        """
        with contextlib.ExitStack() as stack:
            if (task := asyncio.current_task()) is not None:
                self._under_way[task] = served
                stack.callback(self._under_way.pop, task)

            def begin() -> Iterator[bytes]:
                store = stack.enter_context(served.store())
                here = served.context(store, campaign, token="", live=None)
                here.table.refresh()
                return calls_view.download(here.table, query, form)

            parts = await self._made(begin)
            response = web.StreamResponse(
                headers={
                    "Content-Type": calls_view.DOWNLOADS[form],
                    "Content-Disposition": f'attachment; filename="trials.{form}"',
                    "Cache-Control": "no-store",
                }
            )
            await response.prepare(request)
            while (part := await self._made(partial(next, parts, None))) is not None:
                if part:
                    await response.write(part)
            await response.write_eof()
            return response

    def cancel(self, served: ServedStore) -> None:
        """End those of a store."""
        for task in [task for task, its in self._under_way.items() if its is served]:
            task.cancel()

    def close(self) -> None:
        """Make no part any more; waits for the one that is being made."""
        self._thread.shutdown(cancel_futures=True)

    async def _made(self, make: Callable[[], T]) -> T:
        """What a function returns in the thread; who is cancelled meanwhile waits for it, which reads a store."""
        making = asyncio.get_running_loop().run_in_executor(self._thread, make)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            await asyncio.wait([making])
            raise
