"""One thread, so that the rig can be forked: imported before NumPy is, and asked before the first fork."""

from __future__ import annotations

import os
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


def check() -> None:
    """Raises RuntimeError where this process has threads: a forked one could then wait for a lock for ever."""
    threads = sum(1 for _ in Path("/proc/self/task").iterdir())
    if threads > 1:
        raise RuntimeError(f"the rig has {threads} threads before it forks")
