"""The files of a store: where they are by name, by device and inode, and the lock that one process holds beside them.

DuckDB's own lock is lost as soon as any part of the process opens and closes the file; this one is not, and it
records its owner.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from venire.arena.errors import InputError, StoreHeldError

_YIELD_SECONDS = 10.0
"""How long a process that only shows a store has to give it up when another asks for it."""

_RETRY_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class StoreLock:
    """A held lock; `release` gives it up and removes its file. Its file names the owner in `size` bytes."""

    path: Path
    descriptor: int
    size: int

    @classmethod
    def acquire(cls, store: Path, *, shows: bool = False) -> StoreLock:
        """Take the lock of a store; `shows`: to show it on pages, and to give it up when another process asks for it.

        Of another process that only shows the store it is asked for, and waited for. Raises StoreHeldError naming the
        process, host and time when another process has it, and InputError where the lock cannot be written or is a
        symbolic link.
        """
        path, until = _lock_path(store), 0.0
        while True:
            try:
                descriptor = open_beside(path, os.O_RDWR | os.O_CREAT)
            except OSError as error:
                raise InputError(f"cannot write beside the store {store}: {error.strerror}") from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 4096, 0)
                if _yields(holder) and not holder.endswith(b" "):  # a longer file asks for the lock: see `is_wanted`
                    os.pwrite(descriptor, b" ", os.fstat(descriptor).st_size)
                os.close(descriptor)
                until = until or monotonic() + _YIELD_SECONDS
                if not _yields(holder) or monotonic() > until:
                    raise _held(store, holder) from None
                sleep(_RETRY_SECONDS)
                continue
            if _same_file(descriptor, path):
                break
            os.close(descriptor)  # its last owner removed the file between our open and our lock
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat("T", "seconds")}
        owner |= {"shows": True, "yields": True} if shows else {}
        os.ftruncate(descriptor, 0)
        return cls(path, descriptor, os.pwrite(descriptor, json.dumps(owner).encode(), 0))

    def is_wanted(self) -> bool:
        """Whether another process waits for the lock, which is held to show the store."""
        return os.fstat(self.descriptor).st_size > self.size

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


def _lock_path(store: Path) -> Path:
    return store.with_name(store.name + ".lock")


def is_writable(store: Path) -> bool:
    """Whether this user may write a store that is there, its folder and its lock; not on a read-only file system."""
    return all(os.access(one, os.W_OK) for one in (store.parent, store, _lock_path(store)) if one.exists())


def held(store: Path) -> StoreHeldError:
    """The error that names the process that holds a store, as far as its lock can be read."""
    try:
        return _held(store, _lock_path(store).read_bytes())
    except OSError:
        return _held(store, b"")


def _owner(holder: bytes) -> dict[str, Any]:
    """What the file of a lock says of its owner: nothing before it is written."""
    try:
        owner = json.loads(holder)
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def _yields(holder: bytes) -> bool:
    """Whether another process holds the lock that gives it up when asked."""
    owner = _owner(holder)
    return bool(owner.get("yields")) and (owner.get("pid"), owner.get("host")) != (os.getpid(), socket.gethostname())


def _held(store: Path, holder: bytes) -> StoreHeldError:
    owner = _owner(holder)
    try:
        who = f"process {owner['pid']} on host {owner['host']} since {owner['since']}"
    except KeyError:
        who = "another process that has just started"
    named = shlex.quote(str(store))
    if owner.get("shows"):
        return StoreHeldError(
            f"the store {store} is looked at by `venire serve`, {who}, which does not give it up: try again, or end "
            "that process (Ctrl-C is safe)"
        )
    return StoreHeldError(
        f"the store {store} is held by {who}: wait until it has finished, or stop it (Ctrl-C is safe), and try again; "
        f'`venire status {named}`, `venire watch {named}` and `venire sql {named} "..."` work meanwhile, as long as a '
        "campaign runs"
    )


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A file as it was found under a path: which it is, its bytes, its time of change in ns, and how it begins."""

    path: Path
    device: int
    inode: int
    size: int = -1
    changed_at: int = -1
    head: bytes = b""
    """Empty where this process does not have the file open, or the system does not report that."""

    @classmethod
    def of(cls, path: Path) -> FileIdentity:
        """The file that a path names now. Raises FileNotFoundError where there is none."""
        there = path.stat()
        return cls(path, there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns, _head(path))

    def now(self) -> str | None:
        """None while the path still names this file, else what happened: `removed` or `replaced`."""
        try:
            there = os.stat(self.path)
        except OSError:
            return "removed"
        return None if (there.st_dev, there.st_ino) == (self.device, self.inode) else "replaced"

    def changed(self) -> str | None:
        """The same, and `truncated` or `overwritten` where the file is shorter or begins otherwise.

        Size and time alone do not count: DuckDB may append blocks at any commit, and `touch` changes the time. How the
        file begins changes with a checkpoint alone: see `written`.
        """
        try:
            there = os.stat(self.path)
        except OSError:
            return "removed"
        if (there.st_dev, there.st_ino) != (self.device, self.inode):
            return "replaced"
        if (there.st_size, there.st_mtime_ns) == (self.size, self.changed_at):
            return None
        head = _head(self.path)
        if there.st_size < self.size:
            return "truncated" if self.head.startswith(head) else "overwritten"
        return None if head == self.head else "overwritten"

    def written(self) -> FileIdentity:
        """The same file as it is after this process wrote to it."""
        try:
            there = FileIdentity.of(self.path)
        except OSError:
            return self
        return there if (there.device, there.inode) == (self.device, self.inode) else self


def is_open_here(path: Path) -> bool:
    """Whether this process has the file of that name open; False where the system does not report it."""
    return _descriptor(path) is not None


def _descriptor(path: Path) -> int | None:
    """Where this process has a file open, if the system reports it; to open and close it drops DuckDB's lock."""
    try:
        there = path.stat()
        open_files = os.listdir("/proc/self/fd")
    except OSError:
        return None
    for name in open_files:
        try:
            mine = os.stat(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
            return int(name)
    return None


_HEAD_BYTES = 3 * 4096
"""DuckDB's headers: the database's identity, and twice the number and place of its last checkpoint."""


def _head(path: Path) -> bytes:
    descriptor = _descriptor(path)
    try:
        return b"" if descriptor is None else os.pread(descriptor, _HEAD_BYTES, 0)
    except OSError:
        return b""


def open_beside(path: Path, flags: int) -> int:
    """Open a file beside a store; one that is made is for its user alone, and a symbolic link is not followed.

    Returns the descriptor. Raises InputError for a link, else OSError.
    """
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise InputError(f"{path} is a symbolic link, which is not followed here: remove it") from error
        raise


def make_private(path: Path, content: bytes = b"") -> None:
    """Make a file for its user alone, unless there is one of that name. Raises OSError."""
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)


def log_path(store: Path) -> Path:
    """Where DuckDB keeps what it has not yet folded into a store's file."""
    return store.with_name(store.name + ".wal")


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
