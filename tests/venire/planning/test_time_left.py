"""The time left of a whole plan, beside the time that it really took."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from venire.arena.battles import Statistics
from venire.arena.clock import VirtualClock
from venire.configs.loading import load_campaign
from venire.embedded import Embedded
from venire.session import Session
from venire.wording import time_left

JUDGES = """\
[[judge]]
name = "gpt-4-0613"
model = "simulated/gpt-4-0613@1"
requests_per_minute = 60
price = { input = 1.0, output = 4.0 }
[[judge]]
name = "claude-3-opus"
model = "simulated/claude-3-opus@1"
requests_per_minute = 30
price = { input = 1.0, output = 4.0 }
"""


def standings(path: Path) -> list[Statistics]:
    """The counters of a run on a clock that jumps, as they were shown."""
    found: list[Statistics] = []
    with Session(load_campaign(path), clock=VirtualClock()) as session:
        session.run(environ={}, embedded=Embedded(direct=True), progress=found.append)
    return found


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("battles = 80\n", "left of the whole plan (round 2 of about 4)"),
        ("battles = 80\n[plan.stop]\nhalf_width = 1.0\n", "left of the whole plan (round 2 of at most 4)"),
        ("battles = 2000\n[budget]\nmoney = 0.4\n", "until the budget is spent"),
    ],
)
def test_what_is_said_to_be_left_of_rounds_is_what_they_take(
    write_campaign: Callable[..., Path], more: str, words: str
) -> None:
    path = write_campaign(judges=JUDGES, instructions=16)
    text = path.read_text().replace('policy = "all-pairs"', 'policy = "information"\nround = 20')
    path.write_text(text.replace("instructions = 16\n", f"instructions = 16\n{more}"))
    shown = standings(path)
    end = shown[-1].elapsed
    second = [one for one in shown if one.round == 2 and one.seconds_left is not None]
    assert any(words in time_left(one) for one in second)
    for one in second:
        assert one.seconds_left == pytest.approx(end - one.elapsed, rel=0.3, abs=20.0)
