"""Events as JSON lines in a file, written by a separate thread so that no call waits for a disk."""

from __future__ import annotations

import os
import stat
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import orjson

from venire.arena.errors import InputError
from venire.orchestrator.recording.events import Event

_SECONDS = 0.2
"""How long an event may wait to be written; the thread is not woken for single events."""

_MAX_WAITING = 20_000
"""Events kept while the file accepts none; further events are counted and dropped."""

_AT_ONCE = 1_000
_FIRST = b'{"event":'
_MAX_CLOSING_SECONDS = 5.0


class EventLog:
    """An observer that appends one line per event to a file, a pipe or a device.

    Raises InputError for a path that cannot be written, or that holds anything but events. The thread reports the first
    later failure, for example a full disk, through `warn`. Failed writes are retried; if too many events wait, a line
    reports how many are missing.
    """

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self._path = path
        self._warn = warn
        self._descriptor, self._rest = _open(path)
        self._waiting: deque[Event] = deque()
        self._lost = self._lost_told = 0  # counted by the loop and by the thread
        self._warned = False
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="venire-events", daemon=True)
        self._thread.start()

    def __call__(self, event: Event) -> None:
        """Keep an event for the thread."""
        if len(self._waiting) < _MAX_WAITING:
            self._waiting.append(event)
        else:
            self._lost += 1

    def close(self) -> None:
        """Write the waiting events and close the file; a pipe without a reader is given up after 5 seconds."""
        self._ending.set()
        self._thread.join(_MAX_CLOSING_SECONDS)
        if self._thread.is_alive():
            self._report("it takes no more")

    def _run(self) -> None:
        while not self._ending.wait(_SECONDS):
            self._flush()
        self._flush()
        os.close(self._descriptor)

    def _flush(self) -> None:
        """Write the waiting events, as far as the file accepts them."""
        while self._write() and self._waiting:
            events = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
            lost = self._lost - self._lost_told
            if lost:
                events.append(Event("events.lost", events[-1].at, {"count": lost}))
                self._lost_told += lost
            self._rest = b"".join(map(_line, events))

    def _write(self) -> bool:
        """Write the rest of the last lines; return whether the file accepted all of it."""
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._descriptor, self._rest) :]
        except OSError as error:
            self._report(error.strerror or str(error))
            return False
        return True

    def _report(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(f"warning: events cannot be written to {self._path}: {why}; the run goes on")


def _open(path: Path) -> tuple[int, bytes]:
    """A descriptor, and the bytes to write before the first line: a line end after a truncated line."""
    if str(path) == "-":
        raise InputError("--events - is not possible, since standard output holds the board: name a file")
    try:  # a pipe that nobody reads is refused instead of waited for
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise InputError(f"--events {path} cannot be written: {error.strerror}; name a file that can") from error
    try:
        os.set_blocking(descriptor, True)
        found = os.fstat(descriptor)
        return descriptor, _lead(path) if stat.S_ISREG(found.st_mode) and found.st_size else b""
    except (InputError, OSError) as error:
        os.close(descriptor)
        if isinstance(error, InputError):
            raise
        raise InputError(f"--events {path} cannot be read: {error.strerror}; name another file") from error


def _lead(path: Path) -> bytes:
    with path.open("rb") as file:
        if file.read(len(_FIRST)) != _FIRST:
            raise InputError(f"--events {path}: that file holds something else than events: name another")
        file.seek(-1, os.SEEK_END)
        return b"" if file.read(1) == b"\n" else b"\n"


def _line(event: Event) -> bytes:
    whole = {"event": event.name, "at": event.at, **event.fields}
    return orjson.dumps(whole, default=str, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z)
