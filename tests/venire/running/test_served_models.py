"""A model that changed behind its name while a campaign ran is told of, with when and how often."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from venire.simulation import wire_forms
from venire.simulation.server import JudgeServer

Venire = Callable[..., Any]
Write = Callable[..., Path]
Serve = Callable[..., AbstractContextManager[JudgeServer]]
Script = Callable[[Callable[[int], tuple[str | None, str]]], None]

TRIALS = 15 * 2 * 2
ONE = '[[judge]]\nname = "j"\nmodel = "simulated/gpt-4-0613@1"\nbase_url = "{url}"\nconcurrency = 1\nmax_attempts = 1\n'
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d(?: to (?:\d{4}-\d\d-\d\d )?\d\d:\d\d)? UTC"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Lets the judge server say, at its n-th answer, which model served it and under which fingerprint."""
    real = wire_forms.completion_body

    def set_up(served: Callable[[int], tuple[str | None, str]]) -> None:
        numbers = itertools.count(1)

        def body(reply: Any, **fields: Any) -> bytes:
            model, fingerprint = served(next(numbers))
            return real(reply, **{**fields, "model": model, "fingerprint": fingerprint})

        monkeypatch.setattr(wire_forms, "completion_body", body)

    return set_up


@pytest.fixture
def run(venire: Venire, write_campaign: Write, serve: Serve) -> Iterator[Callable[[], tuple[Any, Any, Any]]]:
    """Runs a campaign of one judge; how the run ended, and its status as text and as JSON."""
    with serve() as judge:
        path = write_campaign(judges=ONE.format(url=judge.base_url))

        def go() -> tuple[Any, Any, Any]:
            done = venire("run", path, "--yes")
            assert done.code == 0, done.err
            store = path.with_suffix(".duckdb")
            return done, venire("status", store), venire("status", store, "--json").json()["campaigns"][0]["served"]

        yield go


def test_a_served_model_that_changes_is_told_of_at_the_end_of_a_run_and_in_its_status(
    run: Callable[[], tuple[Any, Any, Any]], script: Script
) -> None:
    script(lambda n: ("gpt-4-0613-july" if n <= 80 else "gpt-4-0613-new", "fp_1"))
    done, status, served = run()
    late = 2 * TRIALS - 80
    warning = (
        rf"drift: judge j was served by gpt-4-0613-july \(80 replies, {TIME}\) "
        rf"and by gpt-4-0613-new \({late} replies, {TIME}\)\n"
    )
    assert re.search(warning, done.err)
    assert re.search(warning, status.out)
    assert "fingerprint" not in status.out
    (judge,) = served
    assert (judge["judge"], judge["drift"]) == ("j", True)
    assert [(one["name"], one["replies"]) for one in judge["models"]] == [
        ("gpt-4-0613-july", 80),
        ("gpt-4-0613-new", late),
    ]
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", one[key]) for one in judge["models"] for key in ("first", "last")
    )
    again, _, _ = run()
    assert re.search(warning, again.err), "a board is shown, and what it rests on changed"


@pytest.mark.slow
def test_one_model_and_many_fingerprints_are_a_quiet_line_and_no_drift(
    run: Callable[[], tuple[Any, Any, Any]], script: Script
) -> None:
    script(lambda n: ("gpt-4-0613", f"fp_{n // 25}"))
    done, status, served = run()
    for said in (done.err, status.out):
        assert "drift:" not in said
        assert f"judge j: 5 fingerprints, the newest fp_{2 * TRIALS // 25}\n" in said
    assert (served[0]["drift"], served[0]["fingerprints"]) == (False, 5)


def test_a_provider_that_names_no_model_is_no_drift(run: Callable[[], tuple[Any, Any, Any]], script: Script) -> None:
    script(lambda n: ("gpt-4-0613" if n % 2 else None, ""))
    done, status, served = run()
    assert "drift:" not in done.err + status.out
    assert (served[0]["drift"], served[0]["models"][0]["replies"]) == (False, TRIALS)


def test_without_drift_nothing_is_said(run: Callable[[], tuple[Any, Any, Any]]) -> None:
    done, status, _ = run()
    assert "drift:" not in done.err + status.out
    assert "fingerprint" not in done.err + status.out
