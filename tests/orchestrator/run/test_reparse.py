"""Replies on record are read again without a call: the same rules, the same verdicts, and nothing is overwritten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.stores import open_with
from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import (
    CampaignSettings,
    DataSettings,
    JudgeSettings,
    LaneSettings,
    Limits,
    PhaseSettings,
    PlanSettings,
    RouteSettings,
    TokenPrice,
)
from venire.arena.clock import VirtualClock
from venire.arena.errors import CallError, Fault, InputError, TransientError
from venire.arena.records import Completion, Instruction, Rating, Reply, Request, Status
from venire.judges.parsing import choices
from venire.orchestrator.planning.plan import plan_campaign
from venire.orchestrator.recording.ending import Ending
from venire.orchestrator.run.campaign import run_campaign
from venire.orchestrator.run.reparse import Reread, reparse
from venire.orchestrator.run.run_setup import RunSetup
from venire.storage.read import frames
from venire.storage.store.store import Commit, Store

MODELS = ("ash", "birch", "cedar")
INSTRUCTIONS = 8
TRIALS = 3 * INSTRUCTIONS * 2
PRICE = TokenPrice(1_000_000_000, 2_000_000_000)
REASONS = Reply("Some reasons.", input_tokens=100, output_tokens=50, raw="{}")

Answer = Reply | CallError
Script = tuple[Answer, ...]

SCRIPTS: tuple[Script, ...] = (
    (REASONS, Reply("1")),
    (REASONS, Reply("**2**")),
    (REASONS, Reply("0\nBoth say the same.")),
    (TransientError("busy", Fault.TRANSIENT, status=503), REASONS, Reply("I prefer the first."), Reply("1")),
    (REASONS, Reply("Hard to say."), Reply("Still hard to say.")),
    (Reply(""),),
    (Reply("", "content_filter"),),
    (Reply("I will not.", "refusal"),),
    (REASONS, Reply("The first one, becau", "length"), Reply("1")),
    (REASONS, Reply("Well", "length")),
    (CallError("filtered", Fault.FILTERED, status=400),),
    (REASONS, CallError("filtered", Fault.FILTERED, status=400)),
    (REASONS, Reply("Hard to say."), CallError("too long", Fault.TOO_LONG, status=400)),
    (REASONS, TransientError("busy", Fault.RATE_LIMITED, status=429), CallError("too long", Fault.TOO_LONG)),
    (REASONS, Reply("Hard to say."), Reply("No.", "refusal")),
)
"""What a provider may say to a trial, one answer a call."""


class Scripted:
    """Gives each trial one of the scripts, in turn, as far as its conversation goes."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = scripts
        self.left: dict[str, list[Answer]] = {}
        self.sent = 0

    def encode(self, model: str, request: Request) -> bytes:
        return orjson.dumps([model, list(request.messages), request.seed])

    on_limits: Callable[[Limits, float], None] | None = None

    def limits_key(self, model: str) -> tuple[str, ...]:
        return ("fake", model)

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        self.sent += 1
        await asyncio.sleep(1)
        trial = idempotency_key.rpartition("-")[0]
        script = self.left.setdefault(trial, list(self.scripts[len(self.left) % len(self.scripts)]))
        answer = script.pop(0)
        if isinstance(answer, CallError):
            raise answer
        return answer

    async def check(self) -> str | None:
        return None

    async def close(self) -> None:
        return None


def judge(name: str) -> JudgeSettings:
    lane = LaneSettings((RouteSettings("openai", "http://127.0.0.1:9/v1", None, name),), concurrency=3, max_attempts=3)
    return JudgeSettings(name, name, "two-stage", {"max_tokens": "50", "repair": "1"}, lane, PRICE)


def campaign(*judges: str, name: str = "c", budget: BudgetSettings | None = None) -> CampaignSettings:
    asked = tuple(map(judge, judges or ("judge",)))
    plan = PlanSettings((PhaseSettings("all-pairs", matchups=None),))
    return CampaignSettings(
        name, 1, Path("c.toml"), Path("c.duckdb"), DataSettings(), plan, asked, budget or BudgetSettings(), "", name
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    questions = [Instruction(f"q{n}", (f"Question {n}?",)) for n in range(INSTRUCTIONS)]
    answers = [Completion(m, f"q{n}", f"{m} says {n}") for m in MODELS for n in range(INSTRUCTIONS)]
    ratings = [Rating(model, 1000.0 + n) for n, model in enumerate(MODELS)]
    with open_with(tmp_path / "c.duckdb", questions, answers, ratings, clock=VirtualClock()) as opened:
        yield opened


def run(store: Store, asked: CampaignSettings, *scripts: Script) -> Ending:
    clock = store.clock
    assert isinstance(clock, VirtualClock)
    planned = plan_campaign(store, asked)
    provider = Scripted(*scripts)
    settings = {one.lane.routes[0].identity: provider for one in asked.judges}
    prices = {one.name: PRICE for one in asked.judges}

    async def go() -> Ending:
        done = await run_campaign(store, asked, planned, settings, prices, RunSetup(clock, inline=True))
        return done.ending

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return runner.run(go())


def rows(store: Store, query: str) -> list[tuple[Any, ...]]:
    with store.cursor() as cursor:
        return cursor.execute(query).fetchall()


def verdicts(store: Store, reading: int) -> list[tuple[Any, ...]]:
    columns = "trial, status, rule, label, score, cost"
    return rows(store, f"select {columns} from verdict where reading = {reading} order by trial")


def words(found: Reread) -> dict[tuple[tuple[int, int | None], tuple[int, int | None]], int]:
    return {(one.earlier[:2], one.now[:2]): one.verdicts for one in found.comparison.changes}


Release = Callable[..., None]


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Release:
    """Makes this Venire a later one whose parser reads choices otherwise."""

    def later(read: Callable[[str], tuple[int, str] | None], name: str = "rules-2") -> None:
        monkeypatch.setattr("venire.judges.protocols.two_stage.read_choice", read)
        for module in ("venire.judges.parsing", "venire.orchestrator.run.campaign"):
            monkeypatch.setattr(f"{module}.PARSER", name)

    return later


def generous(text: str) -> tuple[int, str] | None:
    """Reads what rules-1 reads, and one sentence more."""
    return (1, "prefer") if text == "I prefer the first." else choices.read_choice(text)


def strict(text: str) -> tuple[int, str] | None:
    """Reads a bare number alone, under another name."""
    return (int(text), "digit") if text in ("0", "1", "2") else None


def test_verdicts_are_rebuilt_from_attempts_bit_for_bit(store: Store, release: Release) -> None:
    assert run(store, campaign(), *SCRIPTS) is Ending.COMPLETE
    before = verdicts(store, 1)
    assert len(before) == TRIALS
    assert {row[1] for row in before} == set(map(int, Status)), "every status occurs"
    assert {row[3] for row in before} == {1, 0, -1, None}
    found = reparse(store, [1])
    assert (found.comparison.verdicts, found.comparison.same, found.comparison.unasked) == (TRIALS, TRIALS, 0)
    assert found.comparison.changes == found.comparison.rules == ()
    release(choices.read_choice)  # the same rules under another name: written, so that it can be compared in full
    assert reparse(store, [1]).reading == 2
    assert verdicts(store, 2) == before == verdicts(store, 1)


def test_nothing_changed_writes_nothing(store: Store) -> None:
    run(store, campaign(), *SCRIPTS)
    batch = store.batch
    found = reparse(store, [1])
    assert (found.reading, found.changed) == (None, False)
    assert store.batch == batch
    assert rows(store, "select count(*), count(distinct reading) from verdict") == [(TRIALS, 1)]


def test_a_changed_parser_appends_a_reading_that_counts_and_keeps_the_earlier_one(
    store: Store, release: Release
) -> None:
    run(store, campaign(), *SCRIPTS)
    before, board = verdicts(store, 1), frames.battles(store, 1)
    release(strict)
    found = reparse(store, [1])
    assert found.reading == 2
    assert found.comparison.same < TRIALS
    assert verdicts(store, 1) == before
    after = verdicts(store, 2)
    assert [(row[0], row[5]) for row in after] == [(row[0], row[5]) for row in before], (
        "each trial, at its earlier cost"
    )
    changed = sum(a[1:4] != b[1:4] for a, b in zip(before, after, strict=True))
    assert found.comparison.verdicts - found.comparison.same == changed > 0
    assert {row[2] for row in after} == {"digit", ""}
    now = frames.battles(store, 1)
    assert sum(now.status == Status.OK) < sum(board.status == Status.OK), "ratings use the new reading"
    assert rows(store, "select parser from reading order by id") == [("rules-1",), ("rules-2",)]
    assert reparse(store, [1]).changed is False, "a second time nothing changed"
    assert rows(store, "select count(*) from reading") == [(2,)]


def test_what_changed_is_counted_by_kind_and_shown_by_example(store: Store, release: Release) -> None:
    better = (REASONS, Reply("I prefer the first."), Reply("2"))
    run(store, campaign(), better, (REASONS, Reply("1")), (REASONS, Reply("0")))  # three: each meets both orders
    release(generous)
    found = reparse(store, [1], write=False)
    third = TRIALS // 3
    assert sum(words(found).values()) == third
    assert set(words(found)) == {((0, 1), (0, -1)), ((0, -1), (0, 1))}
    assert found.comparison.rules == (("bare", "prefer", third),)
    assert len(found.comparison.examples) == 10
    for one in found.comparison.examples:
        assert (one.judge, one.repeat) == ("judge", 1)
        assert one.instruction.startswith("q")
        swapped = one.models[0] > one.models[1]
        assert one.now == (0, -1 if swapped else 1, True), "the first that was shown is preferred now"
        assert one.earlier == (0, -one.now[1] if one.now[1] else None, True)
    assert {one.now for one in found.comparison.examples} == {(0, 1, True), (0, -1, True)}, "of each kind of change"


def test_a_dry_run_writes_nothing(store: Store, release: Release) -> None:
    run(store, campaign(), *SCRIPTS)
    release(strict)
    batch = store.batch
    found = reparse(store, [1], write=False)
    assert (found.reading, found.changed) == (None, True)
    assert store.batch == batch
    assert rows(store, "select count(*) from reading") == [(1,)]
    assert reparse(store, [1]).comparison == found.comparison


def test_a_verdict_that_is_read_a_step_earlier_leaves_the_rest_of_the_replies_aside(
    store: Store, release: Release
) -> None:
    run(store, campaign(), (REASONS, Reply("I prefer the first."), Reply("2")))
    release(generous)
    assert reparse(store, [1]).comparison.unasked == 0
    assert {row[2] for row in verdicts(store, 2)} == {"prefer"}


def test_a_step_that_is_not_on_record_is_counted_and_not_asked(store: Store, release: Release) -> None:
    run(store, campaign(), (REASONS, Reply("**1**")), (REASONS, Reply("1")))
    release(strict)
    found = reparse(store, [1])
    assert found.comparison.unasked == TRIALS // 2
    after = verdicts(store, 2)
    assert sum(row[1:4] == (Status.UNREADABLE, "", None) for row in after) == TRIALS // 2
    assert run(store, campaign()) is Ending.COMPLETE, "and nothing is left to ask"


def test_another_parser_that_reads_the_same_is_written_down_as_such_once(store: Store, release: Release) -> None:
    run(store, campaign(), *SCRIPTS)
    release(choices.read_choice)
    found = reparse(store, [1])
    assert (found.comparison.same, found.reading) == (TRIALS, 2)
    assert reparse(store, [1]).reading is None


def test_a_run_goes_on_under_the_newest_reading_of_its_parser(store: Store, release: Release) -> None:
    run(store, campaign(budget=BudgetSettings(calls=20)), *SCRIPTS)
    settled = frames.progress(store, 1).settled
    read_by_1 = choices.read_choice
    release(strict)
    assert reparse(store, [1]).reading == 2
    release(read_by_1, "rules-1")
    assert reparse(store, [1]).reading == 3
    assert verdicts(store, 3) == verdicts(store, 1)
    assert run(store, campaign(), *SCRIPTS) is Ending.COMPLETE
    assert len(verdicts(store, 3)) == TRIALS > settled == len(verdicts(store, 1))
    assert rows(store, "select count(*) from reading") == [(3,)]
    assert reparse(store, [1]).changed is False


def test_only_what_is_in_force_for_the_campaigns_named_is_read_and_a_shared_trial_once(
    store: Store, release: Release
) -> None:
    run(store, campaign("one"), *SCRIPTS)
    run(store, campaign("one", "two", name="both"), *SCRIPTS)
    assert reparse(store, [1]).comparison.verdicts == TRIALS
    assert reparse(store, [2]).comparison.verdicts == 2 * TRIALS
    assert reparse(store, [1, 2]).comparison.verdicts == 2 * TRIALS
    assert reparse(store, []).comparison.verdicts == 0
    release(strict)
    assert reparse(store, [1]).reading == 2
    assert len(verdicts(store, 2)) == TRIALS
    assert reparse(store, [2]).reading == 3, "the other judge's verdicts were not read by this parser yet"
    assert reparse(store, [1, 2]).changed is False


def test_an_interrupted_reading_is_not_in_force_in_part(
    store: Store, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(store, campaign(), *SCRIPTS)
    board = frames.battles(store, 1)
    release(strict)
    real = Commit.run

    def interrupted(self: Commit, name: str, /, **parameters: Any) -> None:
        real(self, name, **parameters)
        if name == "keep_reading":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Commit, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reparse(store, [1])
    assert rows(store, "select count(*) from reading") == [(1,)]
    assert rows(store, "select count(*) from verdict") == [(TRIALS,)]
    assert (frames.battles(store, 1).status == board.status).all()
    assert reparse(store, [1]).reading == 2, "and it can be done again"


def test_prompts_that_changed_since_do_not_hinder(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run(store, campaign(), *SCRIPTS)
    from venire.judges import PROTOCOLS

    other = replace(PROTOCOLS["two-stage"], prompts=("reasons",))
    monkeypatch.setattr("venire.orchestrator.run.reparse.PROTOCOLS", {**PROTOCOLS, "two-stage": other})
    assert reparse(store, [1]).comparison.same == TRIALS


def test_a_protocol_that_is_not_known_today_is_refused_by_name(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run(store, campaign(), *SCRIPTS)
    from venire.judges import PROTOCOLS

    monkeypatch.setattr("venire.orchestrator.run.reparse.PROTOCOLS", {"other": PROTOCOLS["two-stage"]})
    with pytest.raises(
        InputError, match="judge was asked by the protocol 'two-stage', which this Venire does not have"
    ):
        reparse(store, [1])


def test_a_long_campaign_is_read_in_chunks_in_which_none_is_lost(
    store: Store, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(store, campaign(), *SCRIPTS)
    before = verdicts(store, 1)
    monkeypatch.setattr("venire.orchestrator.run.reparse._CHUNK", 7)
    release(choices.read_choice)
    told: list[tuple[int, int]] = []
    reparse(store, [1], progress=lambda done, of: told.append((done, of)))
    assert told == [(min(done, TRIALS), TRIALS) for done in range(7, TRIALS + 7, 7)]
    assert verdicts(store, 2) == before
