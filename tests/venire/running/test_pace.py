"""How long the demo's own campaign takes with its faults on, beside what its plan says. On the virtual clock.

It once took six times as long, at one to five calls in flight of 64, and no test noticed.
"""

from __future__ import annotations

import random
from importlib.resources import files
from pathlib import Path
from statistics import median

import pytest

from venire.arena.battles import Statistics
from venire.arena.clock import VirtualClock
from venire.configs.loading import load_campaign
from venire.embedded import Embedded, even_faults
from venire.session import Session


@pytest.mark.slow
def test_the_demo_takes_little_longer_than_its_plan_says_and_is_never_slowed(tmp_path: Path) -> None:
    """The last calls that failed more than once wait for a drawn time: the median of three runs counts."""
    room, whole = files("venire.configs.demo"), []
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        for name in ("campaign.toml", "instructions.jsonl", "completions.jsonl", "elo.csv"):
            (folder / name).write_text(room.joinpath(name).read_text(encoding="utf-8"), encoding="utf-8")
        random.seed(seed)  # of the waits before retries
        seen: list[Statistics] = []
        with Session(load_campaign(folder / "campaign.toml"), clock=VirtualClock()) as session:
            planned = max(one.seconds or 0.0 for one in session.forecast().judges)
            summary = session.run(embedded=Embedded(150, even_faults(0.05), direct=True), progress=seen.append)
        assert summary.statistics.retries > 50, "faults are on"
        assert not any(now.slowed for now in seen)
        whole.append(summary.statistics.elapsed / planned)
        assert next(now.elapsed for now in seen if now.settled >= 0.95 * now.planned) <= 1.1 * planned
    assert median(whole) <= 1.45
