"""How long the demo's own campaign takes with its faults on, beside what its plan says. On the virtual clock.

It once took six times as long, at one to five calls in flight of 64, and no test noticed.
"""

from __future__ import annotations

import random
from importlib.resources import files
from pathlib import Path

import pytest

from venire.arena.battles import Statistics
from venire.arena.clock import VirtualClock
from venire.configs.loading import load_campaign
from venire.session import Embedded, Session, even_faults


@pytest.mark.parametrize("seed", [0, 1])
def test_the_demo_takes_little_longer_than_its_plan_says_and_is_never_slowed(tmp_path: Path, seed: int) -> None:
    room = files("venire.configs.demo")
    for name in ("campaign.toml", "instructions.jsonl", "completions.jsonl", "elo.csv"):
        (tmp_path / name).write_text(room.joinpath(name).read_text(encoding="utf-8"), encoding="utf-8")
    random.seed(seed)  # of the waits before retries
    seen: list[Statistics] = []
    with Session(load_campaign(tmp_path / "campaign.toml"), clock=VirtualClock()) as session:
        planned = max(one.seconds or 0.0 for one in session.forecast())
        summary = session.run(embedded=Embedded(150, even_faults(0.05), direct=True), progress=seen.append)
    assert summary.statistics.retries > 50, "faults are on"
    assert summary.statistics.elapsed <= 1.35 * planned
    assert not any(now.slowed for now in seen)
