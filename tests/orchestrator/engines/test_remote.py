"""A campaign that several actors ask is the campaign that one process asks, whatever becomes of the actors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.demo import demo_key
from tests.ledgers import read_ledger
from tests.orchestrator.engines.conftest import HereCrew
from tests.parameters import slow_after
from tests.stores import rows_of
from venire.arena.battles import Statistics
from venire.arena.errors import InputError, VenireError
from venire.arena.records import Reply
from venire.configs.loading import load_campaign
from venire.embedded import even_faults
from venire.judges.providers.openai import OpenAIProvider
from venire.orchestrator.recording.ending import CampaignSummary, Ending
from venire.orchestrator.recording.events import Event, Events
from venire.session import Session
from venire.simulation.faults import Faults
from venire.simulation.ledger import LedgerEntry
from venire.simulation.server import JudgeServer, serve_in_thread
from venire.storage.care.checking import check

Write = Callable[..., Path]

_VERDICTS = """select lower(hex(t.trial_key)), v.status, v.rule, v.label, v.score, v.cost
  from verdict v join trial t on t.id = v.trial order by 1"""
_ATTEMPTS = """select lower(hex(t.trial_key)) || '-' || a.step, a.fault, a.cost, a.reserved, a.number
  from attempt a join trial t on t.id = a.trial"""


def asked(path: Path, crew: HereCrew | None = None, **named: Any) -> CampaignSummary:
    with Session(load_campaign(path), crew=crew) as session:
        return session.run(environ={}, **named)


@contextmanager
def provider(folder: Path, *, speed: float = 80.0, faults: Faults | None = None) -> Iterator[str]:
    """A simulated provider with a ledger in a folder; its address."""
    server = JudgeServer(demo_key(), speed=speed, faults=faults or Faults(), ledger_path=folder / "ledger.jsonl")
    with serve_in_thread(server) as served:
        yield f'base_url = "{served.base_url}"'


def ledger(folder: Path) -> list[LedgerEntry]:
    return read_ledger(folder / "ledger.jsonl")


def assert_sound(path: Path) -> None:
    store = path.with_suffix(".duckdb")
    wrong = [one for one in check(store).findings if one.count]
    assert not wrong, wrong


def assert_account(path: Path, entries: list[LedgerEntry]) -> None:
    """Every call of the ledger is in the store as often as it was asked; what is beyond has no answer."""
    kept = rows_of(path.with_suffix(".duckdb"), _ATTEMPTS)
    sent, stored = Counter(one.key for one in entries), Counter(request for request, *_ in kept)
    unanswered = Counter(request for request, fault, *_ in kept if fault == 8)
    assert not sent - stored
    assert not (stored - sent) - unanswered


def test_actors_leave_the_store_that_one_process_leaves(write: Write) -> None:
    one, many = write("one"), write("many")
    assert asked(one).ending is Ending.COMPLETE
    summary = asked(many, HereCrew(3))
    assert summary.ending is Ending.COMPLETE
    assert (summary.statistics.calls, summary.statistics.retries) == (120, 0)
    stores = one.with_suffix(".duckdb"), many.with_suffix(".duckdb")
    assert rows_of(stores[0], _VERDICTS) == rows_of(stores[1], _VERDICTS)
    assert sorted(rows_of(stores[0], _ATTEMPTS)) == sorted(rows_of(stores[1], _ATTEMPTS))
    assert_sound(many)


def test_every_actor_asks_and_no_more_calls_are_in_flight_than_configured(write: Write, tmp_path: Path) -> None:
    with provider(tmp_path) as address:
        path = write(judge=address)
        crew = HereCrew(4)
        assert asked(path, crew).ending is Ending.COMPLETE
    assert all(link.exchanges > 2 for link in crew.links)
    entries = ledger(tmp_path)
    assert len(entries) == 120
    assert max(one.ordinal - (one.answered or 0) for one in entries) <= 8
    assert_account(path, entries)


def test_a_killed_actor_costs_what_it_had_in_flight(write: Write, tmp_path: Path) -> None:
    one = write("one", instructions=4)
    asked(one)
    crew = HereCrew(3)
    killed: list[int] = []

    def look(now: Statistics) -> None:
        busiest = max(crew.made[0].actors, key=lambda actor: len(actor.out))
        if now.answered > 40 and len(busiest.out) > 1 and not killed:
            killed.append(len(busiest.out))
            busiest.link.lose()  # type: ignore[attr-defined]

    with provider(tmp_path, speed=80.0) as address:
        path = write(instructions=4, judge=address)
        summary = asked(path, crew, progress=look)
    assert summary.ending is Ending.COMPLETE
    (engine,) = crew.made
    kept = rows_of(path.with_suffix(".duckdb"), _ATTEMPTS)
    unanswered = [row for row in kept if row[1] == 8]
    assert engine.losses.leases == 1
    assert engine.losses.calls == len(unanswered) <= killed[0], "some may have been reported with the last exchange"
    assert engine.losses.reserved == sum(reserved for _, _, _, reserved, _ in unanswered)
    assert_account(path, ledger(tmp_path))
    assert_sound(path)
    verdicts = [[row[:5] for row in rows_of(one.with_suffix(".duckdb"), _VERDICTS)] for one in (one, path)]
    assert verdicts[0] == verdicts[1]


def test_answers_of_an_actor_that_was_silent_for_too_long_are_kept_and_paid(write: Write, tmp_path: Path) -> None:
    crew = HereCrew(3, lease_seconds=0.3)
    held: list[int] = []

    def look(now: Statistics) -> None:
        link = crew.links[0]
        if now.answered > 20 and len(crew.made[0].actors[0].out) > 1 and not held:
            link.passes.clear()
            held.append(now.answered)
        elif held and now.answered > held[0] + 80 and crew.made[0].losses.leases:
            link.passes.set()

    with provider(tmp_path, speed=150.0) as address:
        path = write(instructions=6, judge=address)
        summary = asked(path, crew, progress=look)
    assert summary.ending is Ending.COMPLETE
    (engine,) = crew.made
    assert engine.losses.late > 0
    assert engine.losses.late_cost > 0
    entries = ledger(tmp_path)
    twice = sum(number - 1 for number in Counter(one.key for one in entries).values())
    assert 0 < twice <= engine.losses.late, "what was asked again is paid for twice"
    kept = rows_of(path.with_suffix(".duckdb"), _ATTEMPTS)
    late = [row for row in kept if row[4] > 10_000]
    assert len(late) == engine.losses.late, "the reply of a step is the answer with the lowest number"
    assert_account(path, entries)
    assert_sound(path)


def test_an_actor_that_never_comes_back_does_not_hold_the_end_up(write: Write, tmp_path: Path) -> None:
    crew = HereCrew(2, lease_seconds=0.3)

    def look(now: Statistics) -> None:
        if now.answered > 20 and crew.made[0].actors[0].out:
            crew.links[0].passes.clear()

    with provider(tmp_path, speed=80.0) as address:
        path = write(instructions=3, judge=address)
        summary = asked(path, crew, progress=look)
    assert summary.ending is Ending.COMPLETE
    assert crew.links[0].kills >= 1, "what it may still report would come too late"
    assert_account(path, ledger(tmp_path))
    assert_sound(path)


def test_the_last_trials_of_a_lost_actor_are_asked_by_others(write: Write, tmp_path: Path) -> None:
    """The danger: they are being read anew, nobody counts them meanwhile, and the run takes itself for finished."""
    crew = HereCrew(3)

    def look(now: Statistics) -> None:
        under_way = crew.made[0]._round
        if under_way is None or not all(one.is_empty for one in under_way.leases.stocks.values()):
            return
        for link, actor in zip(crew.links, crew.made[0].actors, strict=True):
            if any(actor.leased.values()) and not any(one.kills for one in crew.links):
                link.lose()

    with provider(tmp_path, speed=40.0) as address:
        path = write(instructions=1, judge=address)
        summary = asked(path, crew, progress=look)
    assert sum(one.kills for one in crew.links) == 1
    assert (summary.ending, summary.progress.missing) == (Ending.COMPLETE, 0)
    assert_account(path, ledger(tmp_path))


def test_a_silent_actor_that_has_every_place_is_not_waited_for(write: Write, tmp_path: Path) -> None:
    """The danger: two calls in flight are allowed, a stopped actor has both, and nobody asks until it comes back."""
    path = write()
    crew = HereCrew(2, lease_seconds=0.3)

    def look(now: Statistics) -> None:
        for actor in crew.made[0].actors:
            link = crew.links[int(actor.name)]
            if now.answered > 10 and len(actor.out) == 2 and all(one.passes.is_set() for one in crew.links):
                link.passes.clear()

    with provider(tmp_path, speed=200.0) as address:
        text = path.read_text(encoding="utf-8").replace("concurrency = 8\n", f"concurrency = 2\n{address}\n")
        path.write_text(text, encoding="utf-8")
        summary = asked(path, crew, progress=look)
    assert summary.ending is Ending.COMPLETE
    assert not all(one.passes.is_set() for one in crew.links), "one of them had both places and was held up"
    assert_account(path, ledger(tmp_path))
    assert_sound(path)


def test_the_rest_of_a_budget_that_a_silent_actor_has_is_not_waited_for(write: Write, tmp_path: Path) -> None:
    crew = HereCrew(2, lease_seconds=0.3)

    def look(now: Statistics) -> None:
        if now.answered > 10 and crew.made[0].actors[0].out:
            crew.links[0].passes.clear()

    with provider(tmp_path, speed=200.0) as address:
        path = write(judge=address, more="[budget]\nmoney = 0.08")
        summary = asked(path, crew, progress=look)
    assert summary.ending is Ending.BUDGET
    ((spent,),) = rows_of(path.with_suffix(".duckdb"), "select nano from spend")
    assert spent <= 80_000_000
    assert_account(path, ledger(tmp_path))


@pytest.mark.parametrize(
    ("limit", "unit"), slow_after(1, ("money = 0.05", "money"), ("calls = 50", "calls"), ("tokens = 40_000", "tokens"))
)
def test_a_budget_holds_over_all_actors(write: Write, tmp_path: Path, limit: str, unit: str) -> None:
    with provider(tmp_path, speed=0.0) as address:
        path = write(judge=address, more=f"[budget]\n{limit}")
        summary = asked(path, HereCrew(3))
    assert summary.ending is Ending.BUDGET
    entries = ledger(tmp_path)
    assert 0 < len(entries) < 120
    if unit == "calls":
        assert len(entries) == 50
    ((spent,),) = rows_of(path.with_suffix(".duckdb"), "select nano from spend")
    assert spent <= 50_000_000 or unit != "money"
    assert_account(path, entries)


def test_faults_are_retried_by_actors_as_by_a_lane_of_this_process(write: Write, tmp_path: Path) -> None:
    faults = even_faults(0.2)
    with provider(tmp_path, speed=0.0, faults=faults) as address:
        path = write(judge=address)
        summary = asked(path, HereCrew(3))
    assert summary.ending is Ending.COMPLETE
    assert summary.statistics.retries > 0
    assert_account(path, ledger(tmp_path))
    assert_sound(path)


def test_a_stopped_run_goes_on_without_asking_anything_twice(write: Write, tmp_path: Path) -> None:
    stops: list[Callable[[], None]] = []

    def look(now: Statistics) -> None:
        if now.answered > 60 and stops:
            stops.pop()()

    with provider(tmp_path, speed=80.0) as address:
        path = write(instructions=4, judge=address)
        assert asked(path, HereCrew(3), progress=look, ready=stops.append).ending is Ending.INTERRUPTED
        assert asked(path).ending is Ending.COMPLETE
    entries = ledger(tmp_path)
    assert len(entries) == 240
    assert_account(path, entries)
    assert_sound(path)


def test_first_tries_of_a_resumed_run_are_no_retries(write: Write, tmp_path: Path) -> None:
    """The danger: what an earlier run had in flight is on record as unanswered, so a first try has a higher number."""
    stops: list[Callable[[], None]] = []

    def look(now: Statistics) -> None:
        if now.answered > 20 and now.in_flight and stops:
            stop = stops.pop()
            stop()
            stop()

    with provider(tmp_path, speed=80.0) as address:
        path = write(judge=address)
        assert asked(path, progress=look, ready=stops.append).ending is Ending.INTERRUPTED
        assert any(fault == 8 for _, fault, *_ in rows_of(path.with_suffix(".duckdb"), _ATTEMPTS))
        summary = asked(path, HereCrew(3))
    assert (summary.ending, summary.statistics.retries) == (Ending.COMPLETE, 0)


def test_a_key_that_an_actor_lacks_ends_the_run_with_a_sentence(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    with provider(tmp_path) as address:
        path = write(judge=f'{address}\nkey_variable = "SOME_KEY"')
        with Session(load_campaign(path), crew=HereCrew(2)) as session, pytest.raises(InputError) as raised:
            session.run(environ={"SOME_KEY": "sk-of-the-coordinator"})
    assert "where an actor asks" in str(raised.value)
    assert "SOME_KEY" in str(raised.value)
    assert "sk-of-the-coordinator" not in str(raised.value)
    assert not ledger(tmp_path)


def test_rounds_are_planned_from_what_actors_report(write: Write) -> None:
    rounds = '[[plan.phase]]\nname = "one"\npolicy = "information"\nbattles = 40\nround = 20\n'
    summaries = []
    for name, crew in (("here", None), ("there", HereCrew(3))):
        path = write(name, instructions=4)
        text = path.read_text(encoding="utf-8").replace('policy = "all-pairs"\n', "")
        path.write_text(text + rounds, encoding="utf-8")
        summaries.append(asked(path, crew))
        assert_sound(path)
    assert summaries[0].progress == summaries[1].progress
    assert summaries[1].statistics.round == 2


def test_what_calls_of_any_actor_cost_beyond_their_price_is_reserved_for_all(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = OpenAIProvider.send

    async def dear(self: OpenAIProvider, body: bytes, key: str) -> Reply:
        return (await send(self, body, key))._replace(cost=50_000_000)

    monkeypatch.setattr(OpenAIProvider, "send", dear)
    path, said = write(), []
    with provider(tmp_path) as address:
        path = write(judge=address)
        asked(path, HereCrew(3), warn=said.append)
    reserved = [one for _, _, _, one, _ in rows_of(path.with_suffix(".duckdb"), _ATTEMPTS)]
    assert max(reserved) == 50_000_000
    assert sum(one == 50_000_000 for one in reserved) > len(reserved) / 2
    assert len([one for one in said if "cannot cost more than" in one]) == 1
    assert_sound(path)


def test_observers_hear_of_calls_that_actors_make(write: Write) -> None:
    path = write(instructions=1)
    seen: list[Event] = []
    with Session(load_campaign(path), crew=HereCrew(2)) as session:
        session.run(environ={}, events=Events(session.clock, [seen.append]))
    names = Counter(event.name for event in seen)
    assert names["call.sent"] == names["call.ended"] == 60
    assert names["trial.settled"] == 30


def test_a_mistake_in_asking_ends_the_run_and_goes_round_no_actors(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The danger: each actor in turn gave the trial back and stopped, and calls were made without end."""
    send = OpenAIProvider.send

    async def broken(self: OpenAIProvider, body: bytes, key: str) -> Reply:
        await send(self, body, key)
        raise TypeError("a mistake")

    monkeypatch.setattr(OpenAIProvider, "send", broken)
    with provider(tmp_path) as address:
        path = write(judge=address)
        with pytest.raises(VenireError, match="stopped asking: TypeError: a mistake"):
            asked(path, HereCrew(2))
    assert len(ledger(tmp_path)) <= 16
    assert_account(path, ledger(tmp_path))
