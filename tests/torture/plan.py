"""What a round does: drawn from the seed and its number alone, so that it can be repeated."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tests.torture.faults import COMBINATIONS, OF_THE_SERVER, SHORT_TIMEOUT
from tests.torture.marks import Phase, Point, Trap
from tests.torture.shapes import SHAPES, Shape

MOST_DRAWS = 6
"""How often a round is drawn again because its fault missed its phase."""


@dataclass(frozen=True)
class Plan:
    """What a round does, drawn from the seed and its number alone."""

    fault: str
    phase: Phase
    shape: Shape
    trap: Trap
    delay: float
    """Seconds from the report of the trap to the fault, where the process does not wait."""
    campaign: int
    """Which of the shape's campaigns is disturbed."""
    timeout: float
    before: str = ""
    """What ends the run whose recovery is disturbed."""
    again: str = ""
    """What is done to the run after the disturbed one, where it does not simply go on."""

    @classmethod
    def draw(cls, seed: int, number: int, draw: int, only: str | None = None) -> Plan:
        """The plan of a round; `draw` counts the tries of which the fault missed its phase."""
        shapes = [shape for shape in SHAPES if shape.name == only] or SHAPES
        pairs = [pair for pair in COMBINATIONS if only in pair] or list(COMBINATIONS)
        random.Random(seed).shuffle(pairs)
        fault, phase = pairs[(number - 1) % len(pairs)]
        rng = random.Random(f"{seed}/{number}/{draw}")
        point: Point = rng.choice(("start", "middle", "end", "anywhere"))
        if fault in OF_THE_SERVER or (phase in ("calls", "checkpoint") and point == "middle"):
            point = "start"
        if phase == "checkpoint" and point == "anywhere" and draw:
            point = "start"  # most are over before a signal comes
        last_try = draw >= MOST_DRAWS - 2
        if last_try:
            point = "start"
        nth = {"commit": rng.randint(1, 4), "checkpoint": rng.randint(1, 2), "calls": rng.randint(5, 120)}.get(phase, 1)
        slow = fault in ("SIGSTOP", "late replies")
        if fault == "late duplicates":  # they need trials that go on after their first step
            shapes = [shape for shape in shapes if not shape.budgeted] or shapes
            point, nth = ("start", nth // 4 + 1) if phase == "calls" else (point, nth)
        shape = rng.choice(shapes)
        shape = replace(shape, speed=300.0 if slow else rng.choice((80.0, 150.0, 300.0)))
        return cls(
            fault,
            phase,
            shape,
            Trap(phase, point, 1 if last_try else nth, 2 if fault == "late duplicates" else 1),
            rng.uniform(0.0, 0.004) if phase != "checkpoint" else rng.uniform(0.0, 0.015),
            rng.randrange(len(shape.campaigns)),
            SHORT_TIMEOUT if slow else shape.timeout,
            rng.choice(("SIGKILL", "disk full")) if phase == "recovery" else "",
            rng.choice(("SIGKILL", "SIGKILL", "SIGTERM", "SIGTERM twice")) if rng.random() < 0.3 else "",
        )
