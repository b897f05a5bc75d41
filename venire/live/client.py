"""Reading a store that another process owns: the client of the socket beside it, which `live.server` serves."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

from venire.arena.errors import InputError, StoreHeldError
from venire.live.sockets import connect, socket_path
from venire.status import status_document
from venire.storage.read.selecting import Selected
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store

T = TypeVar("T")

_PATIENCE_SECONDS, _PAUSE_SECONDS = 2.0, 0.05
"""How long a store whose owner does not answer is tried, and how often."""
_ANSWER_SECONDS = 20.0
_SQL_SECONDS = 300.0
"""A query may run for a minute, and may first wait for queries before it."""


class SilentOwnerError(StoreHeldError):
    """The process that owns a store does not answer, or has stopped answering."""


def look(store: Path, cold: Callable[[Store], T], live: Callable[[Owner], T]) -> T:
    """The result of `cold` for the store opened here, or of `live` if a running campaign owns the store.

    Raises StoreHeldError if the owner does not answer, and InputError as `open_store` does.
    """
    until = monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return _opened(store, cold)
        except StoreHeldError as error:
            held = error
        try:
            return live(Owner(store))
        except SilentOwnerError:
            pass  # it may just begin or end, or be another that reads the store
        if monotonic() > until:
            raise StoreHeldError(f"{held}. It does not answer now: it is no run, or was stopped") from held
        sleep(_PAUSE_SECONDS)


def _opened(store: Path, cold: Callable[[Store], T]) -> T:
    with open_store(store, create=False, to_read=True) as opened:
        return cold(opened)


def current_status(store: Path) -> dict[str, Any]:
    """The status document of a store; its key `live` holds the counters of the current run, or None."""
    return look(
        store,
        lambda opened: status_document(opened) | {"live": None},
        lambda owner: owner.status() | {"store": str(store), "live": owner.live()},
    )


class Owner:
    """The process that runs a campaign on a store; every method sends one request.

    All raise SilentOwnerError if no answer comes in time, and InputError with the owner's message if it refuses.
    """

    def __init__(self, store: Path) -> None:
        self.store = store

    def status(self) -> dict[str, Any]:
        """The store's status document."""
        return self._document("GET", "/status", seconds=_ANSWER_SECONDS)

    def live(self) -> dict[str, Any] | None:
        """The run's latest counters: see `live.server.Pulse.document`; None while it plans or rates."""
        return self._document("GET", "/live", seconds=_ANSWER_SECONDS)

    def sql(self, text: str, *, most: int) -> Selected:
        """Rows of a query, at most `most` and never more than the owner's limit."""
        found = self._document("POST", "/sql", {"query": text, "most": most}, seconds=_SQL_SECONDS)
        return Selected(tuple(found["columns"]), found["rows"], found["more"])

    def watch(self, every: float) -> Iterator[dict[str, Any]]:
        """The counters at once, then every `every` seconds, and at the end of the run; `ended` is true in the last.

        Raises SilentOwnerError if the run ended without notice.
        """
        with contextlib.ExitStack() as stack:
            _, response = self._ask(stack, "GET", f"/live?every={every:g}", seconds=every + _ANSWER_SECONDS)
            while True:
                document = self._line(response)
                yield document
                if document["ended"]:
                    return

    @contextlib.contextmanager
    def hold(self) -> Iterator[Callable[[], bool]]:
        """Until the block ends, nothing is written to the store, and all committed data is in its one file.

        Yields a function that returns whether this still holds: an owner waits for at most a minute.
        """
        with contextlib.ExitStack() as stack:
            door, response = self._ask(stack, "POST", "/hold", seconds=_SQL_SECONDS)
            self._line(response)
            door.settimeout(0)

            def held() -> bool:
                try:
                    door.recv(1, socket.MSG_PEEK)
                except BlockingIOError:
                    return True  # nothing came: neither the end of the answer nor that of the connection
                except OSError:
                    return False
                return False

            yield held

    def _document(self, method: str, path: str, body: object = None, *, seconds: float) -> dict[str, Any]:
        with contextlib.ExitStack() as stack:
            _, response = self._ask(stack, method, path, body, seconds=seconds)
            with self._listening():
                document: dict[str, Any] = json.loads(response.read())
                return document

    def _line(self, response: HTTPResponse) -> dict[str, Any]:
        with self._listening():
            document: dict[str, Any] = json.loads(response.readline())
            return document

    def _ask(
        self, stack: contextlib.ExitStack, method: str, path: str, body: object = None, *, seconds: float
    ) -> tuple[socket.socket, HTTPResponse]:
        """Send a request; return the connection, which the stack closes, and the answer, whose body is not yet read."""
        connection = HTTPConnection("venire")
        stack.callback(connection.close)
        with self._listening():
            door = connection.sock = connect(socket_path(self.store), seconds)
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            refusal = None if response.status == 200 else json.loads(response.read())["error"]
        if refusal is not None:
            raise InputError(refusal)
        return door, response

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """Report every connection error as a silent owner; ValueError is a truncated answer."""
        try:
            yield
        except (OSError, HTTPException, ValueError) as error:
            raise SilentOwnerError(f"the process that holds the store {self.store} does not answer") from error
