"""What a lane still has to ask, read from the store in chunks; nobody holds the plan."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from venire.storage.plans import Pending, load
from venire.storage.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Feed"]

_CHUNK = 500


class Feed:
    """Hands out the pending trials of a lane, each once, the next chunk being read while one is asked."""

    def __init__(self, store: Store, trials: NDArray[np.int64]) -> None:
        self._store = store
        self._trials = trials
        self._next = 0
        self._ready: deque[Pending] = deque()
        self._reading: asyncio.Future[list[Pending]] | None = None
        self._refill = asyncio.Lock()

    async def take(self) -> Pending | None:
        """The next trial, or None at the end. Popping is synchronous: only an empty buffer makes workers wait."""
        while not self._ready:
            async with self._refill:
                if self._ready:
                    break
                if self._reading is None and not self._read_on():
                    return None
                assert self._reading is not None
                chunk = await asyncio.shield(self._reading)  # a worker may be sent home while it waits here
                self._reading = None
                self._ready.extend(chunk)
                self._read_on()
        return self._ready.popleft()

    def _read_on(self) -> bool:
        chunk = self._trials[self._next : self._next + _CHUNK]
        if not len(chunk):
            return False
        self._next += len(chunk)
        self._reading = asyncio.get_running_loop().run_in_executor(None, load, self._store, chunk)
        return True

    async def close(self) -> None:
        """Wait for a chunk that is being read, so that nobody reads a store that is closing."""
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)
