"""Where a store's files are: by name, and by device and inode without opening them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Place", "flush", "is_open_here", "log_path"]


@dataclass(frozen=True, slots=True)
class Place:
    """A file as it was found under a path."""

    path: Path
    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Place:
        """The file that a path names now. Raises FileNotFoundError where there is none."""
        there = path.stat()
        return cls(path, there.st_dev, there.st_ino)

    def now(self) -> str | None:
        """None while the path still names this file, else what happened: `removed` or `replaced`."""
        try:
            there = os.stat(self.path)
        except OSError:
            return "removed"
        return None if (there.st_dev, there.st_ino) == (self.device, self.inode) else "replaced"


def is_open_here(path: Path) -> bool:
    """Whether this process has the file of that name open; False where the system does not tell."""
    try:
        there = path.stat()
        open_files = os.listdir("/proc/self/fd")
    except OSError:
        return False
    for name in open_files:
        try:
            mine = os.stat(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
            return True
    return False


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
