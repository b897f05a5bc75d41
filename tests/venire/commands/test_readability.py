"""What is told of how much of a judge's replies could be read, and how often the order decided."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from venire.render.status import show_readability
from venire.storage.read.judge_quality import JudgeReadability

Venire = Callable[..., Any]
Write = Callable[..., Path]


def told(rows: list[JudgeReadability]) -> str:
    out = io.StringIO()
    show_readability(Console(file=out, width=200), rows, Path("campaign.duckdb"))
    return out.getvalue()


def test_a_judge_of_whom_too_little_can_be_read_is_called_out_by_name() -> None:
    good = JudgeReadability("good", "two-stage", 200, 180, 0, 100, 100, 100, 80, 80, 8, 0, 5_000_000_000)
    poor = JudgeReadability("poor", "direct", 110, 89, 10, 0, 0, 0, 0, 0, 0, 3, 0)
    unasked = JudgeReadability("unasked", "listwise", 4, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0)
    said = told([good, poor, unasked])
    rows = [line.split() for line in said.splitlines()]
    assert ["good", "two-stage", "200", "90.0%", "10.0%", "0", "$5.00"] in rows
    assert ["poor", "direct", "110", "89.0%", "-", "3", "$0.00"] in rows
    assert "judge poor (direct) only 89.0%" in said
    assert "judge good" in said
    assert "100.0% of the trials" in said
    assert "80.0% of those with B" in said
    assert "judge poor was" not in said
    assert "of judge unasked" not in said


def test_a_cost_of_nothing_has_no_column() -> None:
    free = JudgeReadability("free", "two-stage", 200, 190, 0, 100, 95, 100, 95, 80, 8, 0, 0)
    assert "$" not in told([free])
    assert "cost" not in told([free])


def test_nothing_is_told_of_a_campaign_without_verdicts() -> None:
    assert told([]) == ""


def test_a_run_and_the_status_tell_the_same_of_each_judge(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign(instructions=2)
    done = venire("run", path, "--yes")
    assert done.code == 0, done.err
    status = venire("status", path.with_suffix(".duckdb"), "--json").json()
    rows = [line.split() for line in done.err.splitlines()]
    for one in status["campaigns"][0]["judged"]:
        assert one["settled"] == one["a_first"] + one["b_first"] == 60
        flips = f"{one['flip_rate']:.1%}"
        assert [one["judge"], "two-stage", "60", f"{one['readable']:.1%}"] == next(
            row[:4] for row in rows if row[:2] == [one["judge"], "two-stage"]
        )
        assert flips in next(row for row in rows if row[:2] == [one["judge"], "two-stage"])
