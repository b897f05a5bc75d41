"""What so few instructions cannot tell is said before anything is paid for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parameters import slow_after

Venire = Callable[..., Any]
Write = Callable[..., Path]

SINGLE = "a single instruction: no rating or consistency will have an interval"
NEVER = "rules of [plan.stop] about widths and ranks need 20 instructions, and this plan has 2"


@pytest.mark.parametrize("verb", ["plan", "run"])
def test_a_single_instruction_is_warned_of_before_it_is_paid(verb: str, venire: Venire, write_campaign: Write) -> None:
    path = write_campaign(instructions=1)
    said = venire(verb, path)  # a run that nobody agrees to shows its plan, and asks nothing
    assert SINGLE in f"{said.out}{said.err}"
    path = write_campaign(instructions=2)
    said = venire(verb, path)
    assert "instruction:" not in f"{said.out}{said.err}"


@pytest.mark.parametrize(
    ("rule", "warned"),
    slow_after(2, ("half_width = 30", True), ("battles = 9", False), ("top = 2", True), ("ranks = true", True)),
)
def test_a_rule_that_so_few_instructions_never_reach_is_warned_of(
    rule: str, warned: bool, venire: Venire, write_campaign: Write
) -> None:
    path = write_campaign()
    text = path.read_text(encoding="utf-8").replace('"all-pairs"', "'balanced'\nround = 20\nbattles = 20")
    path.write_text(f"{text}[plan.stop]\n{rule}\n", encoding="utf-8")
    assert any(NEVER in one for one in venire("plan", path, "--json").json()["warnings"]) is warned
