"""Memory that a campaign's process shares with the rig: where it is, what it was told, and where it waits to be hit."""

from __future__ import annotations

import mmap
import os
import select
from dataclasses import dataclass
from typing import Literal

Phase = Literal["planning", "first call", "calls", "commit", "checkpoint", "recovery"]
Point = Literal["start", "middle", "end", "anywhere"]

PHASES: tuple[Phase, ...] = ("planning", "first call", "calls", "commit", "checkpoint", "recovery")
_PATIENCE = 5.0
"""Seconds after which a process goes on although nobody released it."""


@dataclass(frozen=True)
class Trap:
    """Where a process reports and waits to be hit: the `nth` time in a phase; "anywhere": it reports and goes on."""

    phase: Phase
    point: Point
    nth: int
    step: int = 1
    """In `calls`, only calls of this step of a trial or a later one are counted."""


class _Shared:
    """Whole numbers in anonymous memory, which a fork shares."""

    def __init__(self, count: int) -> None:
        self._map = mmap.mmap(-1, count * 8)
        self.cells = memoryview(self._map).cast("q")


class Marks(_Shared):
    """Counts of phases entered and left, the clock's jumps in milliseconds, and the last batch committed in a run.

    Made by the rig before the fork. In the campaign's process `enter`, `point` and `leave` are called around the real
    functions; in the rig `wait_for` hears of the trap and `release` lets the process go on.
    """

    def __init__(self, trap: Trap | None) -> None:
        super().__init__(2 * len(PHASES) + 4)
        self.trap = trap
        self._open: list[Phase] = []
        self._told = False
        self._claimed = False
        self.report, self._reporting = os.pipe()
        self._releasing, self._release = os.pipe()

    def enter(self, phase: Phase) -> None:
        """A phase begins."""
        self.cells[2 * PHASES.index(phase)] += 1
        self._open.append(phase)
        if self.trap is not None and self.trap.point == "anywhere":
            self._meet(phase)

    def point(self, phase: Phase | None, point: Point) -> None:
        """A point inside a phase; None stands for the one that was entered last."""
        phase = phase or (self._open[-1] if self._open else None)
        if phase is not None and self.trap is not None and self.trap.point == point:
            self._meet(phase)

    def leave(self, phase: Phase) -> None:
        """A phase ends."""
        self.cells[2 * PHASES.index(phase) + 1] += 1
        self._open.remove(phase)

    @property
    def step(self) -> int:
        """From which step on calls are counted."""
        return 1 if self.trap is None else self.trap.step

    def enter_once(self, phase: Phase, count: int) -> None:
        """Enter a phase at the count that the trap names, or at the first."""
        wanted = self.trap.nth if self.trap is not None and self.trap.phase == phase else 1
        if count == wanted:
            self.cells[2 * PHASES.index(phase)] += wanted
            self.cells[2 * PHASES.index(phase) + 1] += wanted - 1
            self._open.append(phase)
            self.point(phase, "start")
            if self.trap is not None and self.trap.point == "anywhere":
                self._meet(phase)

    def claim(self) -> bool:
        """True the first time."""
        first, self._claimed = not self._claimed, True
        return first

    def _meet(self, phase: Phase) -> None:
        trap = self.trap
        assert trap is not None
        if self._told or phase != trap.phase or self.entered(phase) < trap.nth:
            return
        self._told = True
        os.write(self._reporting, b"!")
        if trap.point != "anywhere":
            select.select([self._releasing], [], [], _PATIENCE)

    def release(self) -> None:
        """Let the process that waits in the trap go on."""
        os.write(self._release, b"!")

    def entered(self, phase: Phase) -> int:
        """How often a phase was entered."""
        return self.cells[2 * PHASES.index(phase)]

    def inside(self, phase: Phase) -> bool:
        """Whether a phase was entered and not left."""
        return self.cells[2 * PHASES.index(phase)] > self.cells[2 * PHASES.index(phase) + 1]

    @property
    def batch(self) -> int:
        """The last batch whose commit returned in this run."""
        return self.cells[-1]

    @batch.setter
    def batch(self, value: int) -> None:
        self.cells[-1] = value

    @property
    def jumps(self) -> tuple[int, int]:
        """Milliseconds by which the wall clock and the monotonic clock are off."""
        return self.cells[-2], self.cells[-3]

    @jumps.setter
    def jumps(self, milliseconds: tuple[int, int]) -> None:
        self.cells[-2], self.cells[-3] = milliseconds

    def close(self) -> None:
        """Close this process's ends of the pipes."""
        for descriptor in (self.report, self._reporting, self._releasing, self._release):
            os.close(descriptor)


class Orders(_Shared):
    """What the judge server is told to do with its next answers: a kind of fault, and how often."""

    KINDS = ("cut", "late", "unpriced")

    def __init__(self) -> None:
        super().__init__(2)

    def give(self, kind: str, count: int) -> None:
        """Let the next `count` answers meet this fault."""
        self.cells[1] = self.KINDS.index(kind)
        self.cells[0] = count

    def take(self) -> str | None:
        """The fault for the answer that is being decided."""
        if self.cells[0] <= 0:
            return None
        self.cells[0] -= 1
        return self.KINDS[self.cells[1]]

    @property
    def left(self) -> int:
        """Faults ordered and not yet made."""
        return max(0, self.cells[0])
