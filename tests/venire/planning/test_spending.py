"""A run and its status say what was expected to be spent beside what was."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from venire.render.status import show_spending

Write = Callable[..., Path]
Venire = Callable[..., Any]

PRICED = "price = { input = 2.5, output = 10 }"


def told(venire: Venire, file: Path) -> Any:
    return venire("status", file.parent / "small.duckdb", "--json").json()["campaigns"][0]["forecast"]


@pytest.mark.slow
def test_what_was_expected_stands_beside_what_was_paid(write_campaign: Write, venire: Venire) -> None:
    file = write_campaign(judge=PRICED, instructions=2, more="[budget]\ncalls = 60")
    planned = venire("plan", file, "--json").json()
    assert told(venire, file) is None
    first = venire("run", file, "--yes")
    assert first.code == 3
    found = told(venire, file)
    assert found["expected"] == sum(row["expected"] for row in planned["judges"])
    assert found["trials"] == planned["trials"] == 120
    share = found["settled_since"] / 120
    assert 0.1 < share < 0.6
    assert found["expected_so_far"] == pytest.approx(share * found["expected"], abs=1)
    assert found["low_so_far"] < found["paid_so_far"] < found["high_so_far"]
    assert "trials since the first forecast" in first.err
    assert "trials since the first forecast" in venire("status", file.parent / "small.duckdb").out


@pytest.mark.slow
def test_the_first_forecast_is_kept_and_an_amended_plan_has_its_own(write_campaign: Write, venire: Venire) -> None:
    file = write_campaign(judge=PRICED, instructions=2, more="[budget]\ncalls = 60")
    assert venire("run", file, "--yes").code == 3
    before = told(venire, file)
    assert venire("run", file, "--yes").code == 3  # nothing is left to spend
    assert told(venire, file) == before
    file.write_text(
        file.read_text().replace("instructions = 2", "instructions = 1").replace("calls = 60", "calls = 90")
    )
    assert venire("run", file, "--yes", "--amend").code in (0, 3)
    after = told(venire, file)
    assert after["trials"] < before["trials"]
    assert after["whole"] >= after["expected"]


@pytest.mark.parametrize(("paid", "says"), [(50, "below the forecast"), (100, None), (200, "beyond the forecast")])
def test_what_is_off_the_forecast_is_called_so(paid: int, says: str | None) -> None:
    out = io.StringIO()
    nano = {"low": 80, "expected": 100, "high": 130, "paid": paid}
    facts = {f"{name}_so_far": cents * 10_000_000 for name, cents in nano.items()}
    show_spending(Console(file=out, width=200), facts | {"settled_since": 40, "expected": 10**9})
    assert "40 trials since the first" in out.getvalue()
    assert "cost $1.00 ($0.8000 to $1.30)" in out.getvalue()
    assert ("the forecast\n" in out.getvalue()) == (says is not None)
    assert says is None or says in out.getvalue()


def test_the_forecast_of_a_shard_is_of_its_own_trials(write_campaign: Write, venire: Venire) -> None:
    """Held against all trials of the plan, half of them would always have been half as dear as was said."""
    file = write_campaign(judge=PRICED)
    assert venire("run", file, "--shard", "1/2", "--yes").code == 0
    found = venire("status", file.parent / "small.shard-1-of-2.duckdb", "--json").json()["campaigns"][0]["forecast"]
    assert found["settled_since"] == found["trials"] > 0
    assert found["expected_so_far"] == found["expected"]
