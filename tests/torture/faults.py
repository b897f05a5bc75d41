"""The injections: what is done to a run at the moment that its trap reports."""

from __future__ import annotations

import ctypes
import errno
import os
import random
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.torture.marks import PHASES, Marks, Orders, Phase
from tests.torture.processes import Process

_HOUR = 3_600_000
_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_RECURSIVE, _PRIVATE, _LAZY = 1 << 14, 1 << 18, 2
"""Flags of unshare, mount and umount2."""

SHORT_TIMEOUT = 0.6
"""Seconds that a campaign gives a call where the fault is about time."""


@dataclass
class Scene:
    """What a fault acts on."""

    process: Process
    marks: Marks
    orders: Orders
    store: Path
    mounted: bool
    rng: random.Random
    timeout: float

    def told(self) -> None:
        """Let the process go on."""
        self.marks.release()


Undo = Callable[[], None]


def _nothing() -> None:
    return None


def _kill(scene: Scene) -> Undo:
    scene.process.send(signal.SIGKILL)
    return _nothing


def _kill_later(scene: Scene) -> Undo:
    """Once the first steps of the trials under way are in the store, too."""
    time.sleep(0.2)
    return _kill(scene)


def _interrupt(scene: Scene) -> Undo:
    scene.process.send(signal.SIGINT)
    scene.told()
    return _nothing


def _terminate(scene: Scene) -> Undo:
    scene.process.send(signal.SIGTERM)
    scene.told()
    return _nothing


def _terminate_twice(scene: Scene) -> Undo:
    scene.process.send(signal.SIGTERM)
    scene.told()
    time.sleep(scene.rng.uniform(0.0, 0.02))
    scene.process.send(signal.SIGTERM)
    return _nothing


def _stop(scene: Scene) -> Undo:
    scene.process.send(signal.SIGSTOP)
    scene.told()
    time.sleep(scene.timeout + 0.15)
    scene.process.send(signal.SIGCONT)
    return _nothing


def _fill(scene: Scene) -> Undo:
    """No byte more on the store's disk; space comes back while the run goes on or after it has ended."""
    undo = _ballast(scene.store.parent) if scene.mounted else _limit(scene)
    scene.told()
    if scene.rng.random() < 0.4:
        scene.process.wait(scene.rng.uniform(0.05, 0.4))
        undo()
        return _nothing
    return undo


def _ballast(folder: Path) -> Undo:
    path = folder / "ballast"
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    return lambda: path.unlink(missing_ok=True)


def _limit(scene: Scene) -> Undo:
    """Without a file system of its own: nothing can be written behind the end of the log, in no file of the process.

    That is worse than a full disk, since what was set aside in the journal cannot be used either.
    """
    log = scene.store.with_name(scene.store.name + ".wal")
    size = log.stat().st_size if log.exists() else 0
    _, hard = resource.prlimit(scene.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(scene.process.pid, resource.RLIMIT_FSIZE, (size, hard))

    def undo() -> None:
        if scene.process.code is None:
            resource.prlimit(scene.process.pid, resource.RLIMIT_FSIZE, (hard, hard))

    return undo


def _replace(scene: Scene) -> Undo:
    undo = _remove_quietly(scene)
    impostor = scene.rng.randbytes(5000)
    scene.store.write_bytes(impostor)
    scene.told()

    def put_back() -> None:
        if scene.store.exists() and scene.store.read_bytes() != impostor:
            raise AssertionError("the file that was put in the store's place was written to")
        undo()

    return put_back


def _remove(scene: Scene) -> Undo:
    undo = _remove_quietly(scene)
    scene.told()
    return undo


def _remove_quietly(scene: Scene) -> Undo:
    away = scene.store.with_name("away")
    scene.store.rename(away)

    def undo() -> None:
        rescued = scene.store.with_name(scene.store.name + ".rescued")
        if rescued.exists() and scene.rng.random() < 0.5:  # as the run advised; else the file itself is put back
            away.unlink()
            rescued.replace(scene.store)
        else:
            away.replace(scene.store)

    return undo


def _order(kind: str) -> Callable[[Scene], Undo]:
    """Let the server spoil its next answers, and hold the process for a moment so that they fall into the phase."""

    def order(scene: Scene) -> Undo:
        # A few more than open a circuit: with each probe that fails the next one waits twice as long.
        most = 10_000 if kind == "unpriced" else 7
        count = scene.rng.choice((scene.rng.randint(1, 7), most))
        scene.orders.give(kind, count)
        begun = time.monotonic()
        while scene.orders.left == count and time.monotonic() - begun < 0.4:
            time.sleep(0.002)
        time.sleep(0.01)
        scene.told()
        return _nothing

    return order


def _jump(scene: Scene) -> Undo:
    """The wall clock is off by hours, back or forth, and again a little later; the monotonic one only leaps ahead."""
    ahead = 0
    for _ in range(2):
        ahead += scene.rng.choice((0, 500, 5_000, _HOUR))
        scene.marks.jumps = (scene.rng.randint(-8, 8) * _HOUR, ahead)
        scene.told()
        scene.process.wait(0.05)
    return _nothing


FAULTS: dict[str, Callable[[Scene], Undo]] = {
    "SIGKILL": _kill,
    "SIGINT": _interrupt,
    "SIGTERM": _terminate,
    "SIGTERM twice": _terminate_twice,
    "SIGSTOP": _stop,
    "disk full": _fill,
    "connections cut": _order("cut"),
    "store replaced": _replace,
    "store removed": _remove,
    "late replies": _order("late"),
    "unpriced replies": _order("unpriced"),
    "clock jumps": _jump,
    "late duplicates": _kill_later,  # and between two runs an answered attempt is put beside one that is on record
}
"""By name; each releases the process that waits in its trap and returns how to put the world right again."""

OF_THE_SERVER = frozenset({"connections cut", "late replies", "unpriced replies"})
"""Faults that the judge server makes; they need calls under way."""

_WITH_CALLS: tuple[Phase, ...] = ("first call", "calls", "commit", "checkpoint")

COMBINATIONS: tuple[tuple[str, Phase], ...] = tuple(
    (fault, phase)
    for fault in FAULTS
    for phase in PHASES
    if not (fault in OF_THE_SERVER and phase not in _WITH_CALLS)
    and not (fault == "late duplicates" and phase not in ("calls", "commit", "checkpoint"))
)
"""Each fault with every phase in which it can fall."""


def mount(folder: Path, megabytes: int = 24) -> bool:
    """Put a small file system on a folder, seen by this process and its children alone; False where that is refused."""
    libc = ctypes.CDLL(None)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_MOUNTS if user == 0 else _NEW_MOUNTS | _NEW_USERS) != 0:
        return False
    try:
        if user != 0:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    except OSError:
        return False
    if libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None) != 0:
        return False
    mounted: int = libc.mount(b"tmpfs", bytes(folder), b"tmpfs", 0, b"size=%dm" % megabytes)
    return mounted == 0


def unmount(folder: Path) -> None:
    """Take it off again, whoever still uses it."""
    ctypes.CDLL(None).umount2(bytes(folder), _LAZY)
