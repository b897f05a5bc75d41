"""Where a store's file is, by device and inode, without opening it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Place", "is_open_here"]


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
            there = self.path.stat()
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
