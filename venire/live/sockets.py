"""The Unix socket beside a store, on which its owner answers while a campaign runs; its path may be of any length."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

_MAX_PATH = 100
"""Length in bytes of a socket path that every Unix system accepts."""

_PROCESS_FOLDERS = Path("/proc/self/fd")
"""Folder where Linux lists a process's open files: it gives a short path to a file that has a long path."""


def socket_path(store: Path) -> Path:
    """The path of the socket on which the owner of a store answers while a campaign runs."""
    real = Path(os.path.realpath(store))
    return real.with_name(real.name + ".sock")


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name, short enough for a socket, of a socket whose path may be of any length. Raises OSError without a file."""
    if len(os.fsencode(path)) <= _MAX_PATH or not hasattr(os, "O_PATH"):
        yield str(path)
        return
    socket_file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        yield f"{_PROCESS_FOLDERS}/{socket_file}"
    finally:
        os.close(socket_file)


def connect(path: Path, seconds: float) -> socket.socket:
    """A connection to a Unix socket with a path of any length. Raises OSError if no process listens."""
    door = socket.socket(socket.AF_UNIX)
    door.settimeout(seconds)
    try:
        with short_path(path) as short:
            door.connect(short)
    except BaseException:
        door.close()
        raise
    return door


@contextlib.contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A socket that listens at `path` for this user alone; it atomically replaces an older socket there.

    It is first bound under a short name, relative to its folder if the whole path is too long for a socket.
    """
    made = path.with_name(f".venire-{os.getpid()}.sock")
    made.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX)
    try:
        if len(os.fsencode(made)) <= _MAX_PATH:
            listener.bind(str(made))
        elif _PROCESS_FOLDERS.is_dir():
            listener.bind(f"{_PROCESS_FOLDERS}/{folder}/{made.name}")
        else:
            raise OSError("its path is too long for a socket")
        made.chmod(0o600)  # nobody can connect before `listen`
        listener.listen(64)
        listener.setblocking(False)
        made.rename(path)
        yield listener  # with the folder open, since asyncio looks up the name that it was bound under
    except BaseException:
        listener.close()
        raise
    finally:
        made.unlink(missing_ok=True)
        os.close(folder)
