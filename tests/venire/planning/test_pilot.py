"""`venire plan --pilot` asks a few trials of the plan first, once, and forecasts the rest from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.venire.conftest import JUDGE
from venire.arena.errors import CallError, Fault
from venire.arena.records import Reply
from venire.judges.providers.openai import OpenAIProvider
from venire.orchestrator.recording.ending import Ending

Write = Callable[..., Path]
Venire = Callable[..., Any]


@pytest.fixture(autouse=True)
def without_http() -> None:
    """A pilot learns how many tokens a server counts."""


PRICED = "price = { input = 2.5, output = 10 }"


def test_a_pilot_is_part_of_the_plan_and_says_what_the_rest_will_cost(
    write_campaign: Write, venire: Venire, settle: Callable[..., Ending]
) -> None:
    file = write_campaign(judge=PRICED, instructions=5)
    guessed = venire("plan", file, "--json").json()
    done = venire("plan", file, "--pilot", 12, "--yes", "--json")
    found = done.json()
    assert done.code == 0
    assert "pilot: 24 trials" in done.err
    assert [row["learnt"] for row in found["judges"]] == [12, 12]
    assert [row["learnt"] for row in guessed["judges"]] == [0, 0]
    assert found["progress"]["settled"] == 24
    assert found["progress"]["planned"] == guessed["progress"]["planned"]
    assert found["widths"]["design_effect"]["judgments"] > 8
    again = venire("plan", file, "--pilot", 12, "--json")
    assert "no pilot is needed" in again.err
    assert again.json()["spent"] == found["spent"] > 0
    assert settle(file) is Ending.COMPLETE
    after = venire("plan", file, "--json").json()
    low, high = (sum(row[side] for row in found["judges"]) for side in ("low", "high"))
    assert low <= after["spent"] - found["spent"] <= high


def test_nobody_is_asked_without_a_yes(write_campaign: Write, venire: Venire, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_campaign(judge=PRICED, instructions=4)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    done = venire("plan", file, "--pilot", 4)
    assert done.code == 2
    assert "8 trials of the plan" in done.err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda *words, **options: False)
    assert venire("plan", file, "--pilot", 4).code == 130
    assert json.loads(venire("plan", file, "--json").out)["progress"]["settled"] == 0


def test_the_money_to_agree_to_is_that_of_the_judges_who_are_asked(
    write_campaign: Write, venire: Venire, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda words, **options: bool(asked.append(words)))
    dear, free = (JUDGE.format(name=one, more=more) for one, more in (("gpt-4-0613", PRICED), ("bard", "free = true")))
    one, both = write_campaign(name="one.toml", judges=dear), write_campaign(name="both.toml", judges=dear + free)
    for file in (one, both):
        named = f'name = "{file.stem}"\nstore = "shared.duckdb"'
        file.write_text(file.read_text(encoding="utf-8").replace('name = "small"', named), encoding="utf-8")
    assert venire("plan", one, "--pilot", 4, "--yes").code == 0
    assert venire("plan", both, "--pilot", 4).code == 130
    assert asked == ["Ask 4 trials of the plan, about $0.00, at most about $0.00?"]


def test_a_pilot_of_which_every_call_fails_says_so(
    write_campaign: Write, venire: Venire, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(self: OpenAIProvider, body: bytes, idempotency_key: str) -> Reply:
        raise CallError("no such parameter", Fault.BAD_REQUEST, status=400)

    monkeypatch.setattr(OpenAIProvider, "send", refused)
    done = venire("plan", write_campaign(judge=PRICED), "--pilot", 4, "--yes")
    assert done.code == 1
    assert "0 of 8 trials, 8" in done.err
    assert "lane closed: openai simulated/gpt-4-0613@1" in done.err
    assert "Mend it" in done.err
    assert "trials failed" not in done.err, "the plan goes on with all of them once it is mended"


def test_a_pilot_that_a_budget_stops_says_so(write_campaign: Write, venire: Venire) -> None:
    file = write_campaign(judge=PRICED, instructions=4, more="[budget]\ncalls = 20")
    done = venire("plan", file, "--pilot", 12, "--yes")
    assert done.code == 3
    assert "did not end whole (budget" in done.err
