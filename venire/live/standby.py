"""Answers beside a store while its owner imports, plans or rates, when no run with a server of its own goes on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select as waiting
import socket
import threading
from dataclasses import dataclass, field

from venire.live.sockets import listening, socket_path
from venire.storage.store.store import Store


@dataclass(slots=True)
class Standby:
    """Lends a store to `venire status` and `venire sql` from a thread, so that they need not wait for its owner.

    The thread sleeps until somebody connects, and only then imports what answers. `stop` comes before the store is
    closed, and before a run listens on the same socket.
    """

    store: Store
    _thread: threading.Thread | None = None
    _stops: list[socket.socket] = field(default_factory=list)

    def start(self) -> None:
        """Begin to listen, if it does not; without a socket (a run then warns of it) others are refused."""
        if self._thread is not None:
            return
        with contextlib.suppress(OSError), listening(socket_path(self.store.path)) as listener:
            mine, theirs = socket.socketpair()
            self._stops.append(mine)
            self._thread = threading.Thread(
                target=self._listen, args=(listener, theirs), name="venire-standby", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End the thread, once queries that are being answered are interrupted; nothing where there is none."""
        while self._stops:
            self._stops.pop().close()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _listen(self, listener: socket.socket, stopped: socket.socket) -> None:
        with stopped, listener:
            try:
                if stopped not in waiting.select([listener, stopped], [], [])[0]:
                    asyncio.run(self._answer(listener, stopped))
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(socket_path(self.store.path))

    async def _answer(self, listener: socket.socket, stopped: socket.socket) -> None:
        from venire.live.answers import stored_answers
        from venire.live.server import serve

        over = asyncio.Event()
        asyncio.get_running_loop().add_reader(stopped, over.set)
        async with serve(self.store.path, stored_answers(self.store), listener=listener):
            await over.wait()
