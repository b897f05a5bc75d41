"""Where the owner of a store is found while a campaign runs: what its server and its clients both know."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["LONGEST_PATH", "PROCESS_FOLDERS", "socket_path"]

LONGEST_PATH = 100
"""Bytes of a path that every Unix system takes as a socket's."""

PROCESS_FOLDERS = Path("/proc/self/fd")
"""Where Linux shows what a process has open: a short way to a file that has a long path."""


def socket_path(store: Path) -> Path:
    """Where the owner of a store is to be found while a campaign runs."""
    real = Path(os.path.realpath(store))
    return real.with_name(real.name + ".sock")
