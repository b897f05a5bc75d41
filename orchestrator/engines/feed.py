"""What a lane still has to ask, read from the store in chunks; nobody holds the plan."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Container
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from venire.storage.plans.trial_states import PendingTrial, PendingTrials, load
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHUNK, _LARGEST = 500, 2000
"""Trials read at once: to read one of 2,000 takes half as long as one of 500, but every lane holds two chunks."""
_BRIEF = 2.0
"""Seconds within which a lane that asks quickly wants its next chunk."""
_CHARACTERS = 8 << 20
"""Of the texts of a chunk, above which chunks grow no more."""


class Feed:
    """Hands out the pending trials of a lane, each once, the next chunk being read while one is asked.

    Chunks grow while a lane uses them up quickly and their texts are short, and shrink again otherwise: a hundred slow
    lanes hold little.
    Trials of a respondent in `left_out`, which may grow on the way, are passed over. `inline` reads a chunk when it is
    wanted, and in no thread: what is handed out does not depend then on how long reading takes.
    """

    def __init__(
        self, store: Store, left: PendingTrials, left_out: Container[int] = (), *, inline: bool = False
    ) -> None:
        self._store = store
        self._left = left
        self._left_out = left_out
        self._inline = inline
        self._next = 0
        self._size = _CHUNK
        self._began = 0.0
        """When the last chunk was begun, in seconds of the machine's clock, also where the run's own jumps."""
        self._ready: deque[PendingTrial] = deque()
        self._reading: asyncio.Future[list[PendingTrial]] | None = None
        self._refill = asyncio.Lock()

    @property
    def empty(self) -> bool:
        """Whether all trials were handed out, as far as is known."""
        return not self._ready and self._reading is None and self._next >= len(self._left.trials)

    async def take(self) -> PendingTrial | None:
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
                self._resize(chunk)
                if not self._inline:
                    self._read_on()
        return self._ready.popleft()

    def _read_on(self) -> bool:
        while self._next < len(self._left.trials):
            here = slice(self._next, self._next + self._size)
            self._next += self._size
            trials, respondents = self._left.trials[here], self._left.respondents[here]
            wanted = [number for number in np.unique(respondents).tolist() if number not in self._left_out]
            chunk = trials[np.isin(respondents, wanted)]
            if len(chunk):
                self._read(chunk)
                return True
        return False

    def _resize(self, chunk: list[PendingTrial]) -> None:
        """Choose the size of the next chunk by how long the one before lasted and by the texts of this one."""
        began, self._began = self._began, monotonic()
        texts = {id(one): len(one.text) for pending in chunk for one in pending.shown}
        if sum(texts.values()) > _CHARACTERS or self._began - began > _BRIEF:
            self._size = max(_CHUNK, self._size // 2)
        else:
            self._size = min(2 * self._size, _LARGEST)

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
