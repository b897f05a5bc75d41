"""A small campaign of a simulated judge in a folder, which contracts plan and run on a virtual clock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from venire.arena.campaigns import CampaignSettings
from venire.configs.loading import load_campaign

JUDGE = "simulated/gpt-4-0613@1"
_CAMPAIGN = """
name = "small"
[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.csv"
[plan]
policy = "all-pairs"
[[judge]]
name = "judge"
"""


def small_campaign(
    folder: Path, elo: dict[str, float], instructions: int, protocol: str = "two-stage", **judge: str
) -> CampaignSettings:
    """A campaign in an empty folder: models with their Elo, which all answer the instructions, and one judge.

    `judge` are lines of its table in place of those that make it a simulated one.
    """
    numbers = range(instructions)
    _write_lines(
        folder / "instructions.jsonl",
        [{"instruction_id": f"q{n}", "instruction": f"Question {n}?", "reference": f"{n}."} for n in numbers],
    )
    _write_lines(
        folder / "completions.jsonl",
        [
            {"instruction_id": f"q{n}", "model": model, "completion": f"The answer of {model} to question {n}."}
            for n in numbers
            for model in elo
        ],
    )
    rows = "".join(f"{model},{points}\n" for model, points in elo.items())
    (folder / "elo.csv").write_text(f"model,elo\n{rows}", encoding="utf-8")
    table = {"protocol": protocol, **(judge or {"model": JUDGE})}
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())
    (folder / "small.toml").write_text(_CAMPAIGN + lines, encoding="utf-8")
    return load_campaign(folder / "small.toml")


def _write_lines(path: Path, rows: Sequence[object]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
