"""A campaign of simulated judges without HTTP: the same store, on a clock that jumps, and the same every time."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from venire.arena.campaigns import CampaignSettings
from venire.arena.clock import VirtualClock
from venire.configs.loading import load_campaign
from venire.embedded import Embedded
from venire.session import Session
from venire.simulation.faults import Faults
from venire.storage.store.store import Store

TIMES = {"sent_at", "latency_ms", "wait_ms", "batch"}
"""Columns that tell when something was, which the two ways may not have alike."""

ATTEMPTS = """
    select t.trial_key, a.* exclude (trial, campaign) from attempt a join trial t on t.id = a.trial
    order by t.trial_key, a.step, a.number
"""
VERDICTS = "select t.trial_key, v.* exclude (trial) from verdict v join trial t on t.id = v.trial order by t.trial_key"


def rows(store: Store, query: str, leave_out: frozenset[str] | set[str] = TIMES) -> list[dict[str, Any]]:
    """Rows of a query without times; of raw answers, the moment they tell is left out."""
    found = store.connection.execute(query)
    names = [column[0] for column in found.description]
    kept = []
    for row in found.fetchall():
        one = {name: value for name, value in zip(names, row, strict=True) if name not in leave_out}
        if one.get("raw"):
            one["raw"] = orjson.dumps({**orjson.loads(one["raw"]), "created": 0})
        kept.append(one)
    return kept


def fresh(file: Path) -> CampaignSettings:
    """The campaign with a store that nobody was asked for yet: of one file always a copy of the same, since a store's
    constant is in its prompts."""
    campaign = load_campaign(file)
    unasked = file.with_suffix(".unasked")
    if not unasked.exists():
        with Session(campaign):
            pass
        shutil.move(campaign.store, unasked)
    shutil.copy(unasked, campaign.store)
    random.seed(1)  # of the waits before retries
    return campaign


def asked(file: Path, *, direct: bool, **options: Any) -> tuple[Any, dict[str, list[dict[str, Any]]], float]:
    """How a campaign ended in a store that was fresh, what the store holds then, and the seconds on its clock."""
    clock = VirtualClock() if direct else None
    with Session(fresh(file), clock=clock) as session:
        summary = session.run(embedded=Embedded(direct=direct, **options))
        held = {
            "attempts": rows(session.store, ATTEMPTS),
            "verdicts": rows(session.store, VERDICTS),
            "exact": rows(session.store, "from attempt", set()),
        }
    return summary, held, clock.monotonic() if clock is not None else 0.0


MORE = 'protocol = "{protocol}"\n'


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["two-stage", pytest.param("criteria", marks=pytest.mark.slow), "listwise"])
def test_a_store_made_without_http_holds_what_one_made_over_http_does(
    protocol: str, write_campaign: Callable[..., Path]
) -> None:
    file = write_campaign(instructions=1, judge=MORE.format(protocol=protocol))
    over_http, there, _ = asked(file, direct=False)
    simulated, here, seconds = asked(file, direct=True)
    assert here["attempts"] == there["attempts"]
    assert here["verdicts"] == there["verdicts"]
    assert simulated.progress == over_http.progress
    assert simulated.statistics.calls == len(here["attempts"]) > 0
    assert seconds > 1.0


@pytest.mark.slow
def test_two_simulations_are_alike_to_the_last_bit_with_their_times_and_their_order(
    write_campaign: Callable[..., Path],
) -> None:
    file = write_campaign(instructions=2)
    faults = Faults(0.05, 0.05, 0.05, 0.05, 0.05)
    first, once, _ = asked(file, direct=True, faults=faults)
    second, again, _ = asked(file, direct=True, faults=faults)
    assert once["exact"] == again["exact"]
    assert first.statistics == second.statistics
    assert first.statistics.retries > 0


def test_calls_in_flight_are_waited_for_on_the_clock_and_the_disk_takes_no_time(
    write_campaign: Callable[..., Path],
) -> None:
    """Rows written in groups of four and of thousands: a clock that jumps while a disk is waited for would tell."""
    file = write_campaign(instructions=1)
    spans = []
    for group_rows in (4, 5000):
        with Session(fresh(file), clock=VirtualClock()) as session:
            summary = session.run(embedded=Embedded(direct=True), group_rows=group_rows)
            spans.append((summary.statistics.elapsed, rows(session.store, "select sent_at from attempt", set())))
    assert spans[0] == spans[1]
    assert spans[0][0] > 10.0


def test_no_server_is_started(write_campaign: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a server")

    monkeypatch.setattr("venire.simulation.server.serve_in_thread", refuse)
    before = threading.active_count()
    summary, _, _ = asked(write_campaign(instructions=1), direct=True)
    assert summary.progress.missing == 0
    assert threading.active_count() == before


def test_a_simulation_goes_on_where_it_stopped(write_campaign: Callable[..., Path]) -> None:
    """Over HTTP too: it is one campaign, whichever way its judges are asked."""
    whole, held, _ = asked(write_campaign(instructions=1), direct=True)
    asked(write_campaign(instructions=1, more="[budget]\ncalls = 20"), direct=True)
    with Session(load_campaign(write_campaign(instructions=1)), amend=True) as session:
        assert session.run().statistics.calls == whole.statistics.calls - 20
        assert rows(session.store, VERDICTS) == held["verdicts"]
