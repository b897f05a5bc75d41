"""One process owns a store: an advisory lock beside the file, held for as long as the process lives.

DuckDB's own lock is lost as soon as any part of the process opens and closes the file; this one is not, and it says
who holds it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from venire.arena.errors import InputError, StoreHeldError

__all__ = ["StoreLock"]


@dataclass(frozen=True, slots=True)
class StoreLock:
    """A held lock; `release` gives it up and removes its file."""

    path: Path
    descriptor: int

    @classmethod
    def acquire(cls, store: Path) -> StoreLock:
        """Take the lock of a store.

        Raises StoreHeldError naming the process, host and time when another process has it.
        """
        path = store.with_name(store.name + ".lock")
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise InputError(f"cannot write beside the store {store}: {error.strerror}") from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 4096, 0)
                os.close(descriptor)
                raise StoreHeldError(_held(store, holder)) from None
            if _same_file(descriptor, path):
                break
            os.close(descriptor)  # its last owner removed the file between our open and our lock
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat("T", "seconds")}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(owner).encode(), 0)
        return cls(path, descriptor)

    def release(self) -> None:
        """Give the lock up; the file goes first, while nobody else can hold it."""
        if _same_file(self.descriptor, self.path):  # else somebody else's, after ours was removed
            self.path.unlink()
        os.close(self.descriptor)


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _held(store: Path, holder: bytes) -> str:
    try:
        owner = json.loads(holder)
        who = f"process {owner['pid']} on host {owner['host']} since {owner['since']}"
    except (ValueError, KeyError, TypeError):
        who = "another process that has just started"
    named = shlex.quote(str(store))
    return (
        f"the store {store} is held by {who}: wait until it has finished, or stop it (Ctrl-C is safe), and try again; "
        f'`venire status {named}`, `venire watch {named}` and `venire sql {named} "..."` work meanwhile, as long as a '
        "campaign runs"
    )
