"""What a lane still has to ask, read from the store in chunks; nobody holds the plan."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Container
from typing import TYPE_CHECKING

import numpy as np

from venire.storage.plans import Left, Pending, load
from venire.storage.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Feed"]

_CHUNK = 500


class Feed:
    """Hands out the pending trials of a lane, each once, the next chunk being read while one is asked.

    Trials of a respondent in `left_out`, which may grow on the way, are passed over. `inline` reads a chunk when it is
    wanted, and in no thread: what is handed out does not depend then on how long reading takes.
    """

    def __init__(self, store: Store, left: Left, left_out: Container[int] = (), *, inline: bool = False) -> None:
        self._store = store
        self._left = left
        self._left_out = left_out
        self._inline = inline
        self._next = 0
        self._ready: deque[Pending] = deque()
        self._reading: asyncio.Future[list[Pending]] | None = None
        self._refill = asyncio.Lock()

    @property
    def empty(self) -> bool:
        """Whether all trials were handed out, as far as is known."""
        return not self._ready and self._reading is None and self._next >= len(self._left.trials)

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
                if not self._inline:
                    self._read_on()
        return self._ready.popleft()

    def _read_on(self) -> bool:
        while self._next < len(self._left.trials):
            here = slice(self._next, self._next + _CHUNK)
            self._next += _CHUNK
            trials, respondents = self._left.trials[here], self._left.respondents[here]
            wanted = [number for number in np.unique(respondents).tolist() if number not in self._left_out]
            chunk = trials[np.isin(respondents, wanted)]
            if len(chunk):
                self._read(chunk)
                return True
        return False

    def _read(self, chunk: NDArray[np.int64]) -> None:
        loop = asyncio.get_running_loop()
        if self._inline:
            texts = load(self._store, chunk)
            self._reading = loop.create_future()
            self._reading.set_result(texts)
        else:
            self._reading = loop.run_in_executor(None, load, self._store, chunk)

    async def close(self) -> None:
        """Wait for a chunk that is being read, so that nobody reads a store that is closing."""
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)
