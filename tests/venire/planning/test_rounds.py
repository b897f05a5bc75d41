"""A plan in rounds: what is asked next hangs on what is in the store alone, wherever a run was stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import venire
from tests.forked import Forked
from tests.parameters import slow_after
from venire.arena.clock import VirtualClock
from venire.arena.errors import CallError, Fault, InputError, StoreError
from venire.arena.records import Reply
from venire.embedded import Embedded
from venire.feedback import RatingFeedback
from venire.forecasts.intervals import PlanIntervals, plan_intervals
from venire.orchestrator.recording.ending import CampaignSummary, Ending
from venire.orchestrator.recording.events import Event, Events
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import rate
from venire.simulation.direct import DirectProvider
from venire.storage.care import checking
from venire.storage.plans import plans
from venire.storage.read import frames
from venire.storage.store.store import Store
from venire.storage.transfer.merging import merge

FILE = """\
name = "small"
seed = 5

[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
{elo}
{plan}

{judges}
{more}
"""
PHASES = """
[plan]
instructions = 8
[[plan.phase]]
name = "screen"
policy = "balanced"
battles = 20
[[plan.phase]]
name = "refine"
policy = "information"
round = 10
battles = 20
"""
SCREEN = "[plan]\ninstructions = 8\n[[plan.phase]]\nname = 'screen'\npolicy = 'balanced'\nbattles = 30\n"
JUDGE = '[[judge]]\nname = "{0}"\nmodel = "simulated/{0}@1"\nprotocol = "{1}"\nconcurrency = 8\n{2}\n'

Write = Callable[..., Path]


@pytest.fixture
def write(folder: Path) -> Write:
    """Writes a campaign file on the demo's tables, with one judge who is asked once about a battle."""

    def campaign(
        plan: str = PHASES, *, name: str = "small", judges: str = "", more: str = "", elo: bool = True
    ) -> Path:
        path = folder / f"{name}.toml"
        asked = judges or JUDGE.format("gpt-4-0613", "binary", "")
        data = 'elo = "elo.csv"' if elo else ""
        path.write_text(FILE.format(plan=plan, judges=asked, more=more, elo=data), encoding="utf-8")
        return path

    return campaign


def go(path: Path, **options: Any) -> CampaignSummary:
    with venire.Session(venire.load_campaign(path), clock=VirtualClock()) as session:
        return session.run(embedded=Embedded(direct=True), **options)


def planned(path: Path) -> list[tuple[Any, ...]]:
    """Everything that was decided, and what came of it: rounds with their designs, their trials, and verdicts."""
    with venire.open_store(venire.load_campaign(path).store) as store:
        rows = store.connection.execute(
            "select p.round, p.ordinal, hex(t.trial_key), v.label from plan p join trial t on t.id = p.trial "
            "left join settled v on v.trial = t.id order by all"
        ).fetchall()
        return [*((one.phase, one.policy, one.trials, one.design) for one in plans.rounds(store, 1)), *rows]


def seen(path: Path) -> list[tuple[int, int, str | None]]:
    with venire.open_store(venire.load_campaign(path).store) as store:
        return [(number, analysis.battles, analysis.stop) for number, analysis in plans.interim_analyses(store, 1)]


def runs(path: Path) -> list[tuple[str, str]]:
    """What the store says of runs that began and ended."""
    with venire.open_store(venire.load_campaign(path).store) as store:
        return store.connection.execute(
            "select kind, detail from event where kind like 'run%' order by batch"
        ).fetchall()


@pytest.fixture
def run_command(request: pytest.FixtureRequest) -> Any:
    """Runs a command, as `venire` does, which is the package's name here."""
    return request.getfixturevalue("venire")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    """What is planned and judged by a run that nothing stops."""
    folder = tmp_path_factory.mktemp("whole")
    for name in ("instructions.jsonl", "completions.jsonl", "elo.csv"):
        shutil.copy(str(files("venire.configs.demo").joinpath(name)), folder / name)
    path = folder / "small.toml"
    path.write_text(
        FILE.format(plan=PHASES, judges=JUDGE.format("gpt-4-0613", "binary", ""), more="", elo='elo = "elo.csv"'),
        encoding="utf-8",
    )
    assert go(path).ending is Ending.COMPLETE
    return planned(path)


@pytest.fixture
def undisturbed(whole: list[tuple[Any, ...]], write: Write) -> tuple[list[tuple[Any, ...]], Path]:
    """The same, and a campaign of which nothing is planned yet."""
    return whole, write()


def test_phases_follow_each_other_and_every_verdict_knows_its_round_and_phase(write: Write) -> None:
    path = write()
    told: list[tuple[int, str, int]] = []
    summary = go(path, on_analysis=lambda number, phase, analysis: told.append((number, phase, analysis.battles)))
    assert (summary.ending, summary.stopped) == (Ending.COMPLETE, "all 40 battles of the plan are judged")
    assert (summary.statistics.planned, summary.statistics.round, summary.statistics.phase) == (80, 3, "refine")
    assert told == [(1, "screen", 20), (2, "refine", 30), (3, "refine", 40)]
    assert [(one[0], one[1]) for one in seen(path)] == [(1, 20), (2, 30), (3, 40)]
    assert runs(path) == [
        ("run started", '{"missing": 40}'),
        ("run ended", '{"calls": 80}'),
    ]  # of the run, not of rounds
    with venire.open_store(venire.load_campaign(path).store) as store:
        found = store.connection.execute("select round, phase, count(*) from battle group by all order by 1").fetchall()
        assert found == [(1, "screen", 40), (2, "refine", 20), (3, "refine", 20)]
        designs = [json.loads(one.design) for one in plans.rounds(store, 1)]
    assert {len(one["why"]) for one in designs} == {20, 10}
    assert all(gain > 0 for one in designs[1:] for gain in one["gains"] if gain is not None)
    before, again = seen(path), go(path)  # what is complete asks and looks no more
    assert (again.ending, again.statistics.calls, again.stopped) == (Ending.COMPLETE, 0, summary.stopped)
    assert seen(path) == before


def interrupted_at(calls: int) -> Events:
    """Events whose observer asks the run to stop, as Ctrl-C does, when so many trials are settled."""
    settled: list[Event] = []

    def watch(event: Event) -> None:
        if event.name == "trial.settled":
            settled.append(event)
            if len(settled) == calls:
                signal.raise_signal(signal.SIGINT)

    return Events(VirtualClock(), [watch])


@pytest.mark.parametrize("calls", [40, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 39, 41, 65))])
def test_a_run_that_is_interrupted_goes_on_with_the_same_plan(
    calls: int, undisturbed: tuple[list[tuple[Any, ...]], Path]
) -> None:
    expected, path = undisturbed
    assert go(path, events=interrupted_at(calls)).ending is Ending.INTERRUPTED
    assert planned(path) != expected
    store = venire.load_campaign(path).store
    earlier, merged = store.with_name("earlier.duckdb"), store.with_name("merged.duckdb")
    shutil.copyfile(store, earlier)
    assert go(path).ending is Ending.COMPLETE
    assert planned(path) == expected
    merge([earlier, store], merged)  # rounds and interim analyses that both have stand there once
    merged.replace(store)
    assert planned(path) == expected
    assert [number for number, *_ in seen(path)] == [1, 2, 3]
    assert go(path).statistics.calls == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "turn"),
    [
        ("after the look", 1),
        ("half of the plan", 2),
        *(
            pytest.param(place, turn, marks=pytest.mark.slow)
            for place in ("before the look", "after the look", "half of the plan", "after the plan")
            for turn in (1, 2)
        ),
    ],
)
def test_a_run_that_dies_while_a_round_is_planned_goes_on_with_the_same_plan(
    place: str, turn: int, undisturbed: tuple[list[tuple[Any, ...]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, path = undisturbed
    turns = [0]
    add, append = plans.add_interim, plans.append_round

    def die() -> None:
        turns[0] += 1
        if turns[0] == turn:
            raise StoreError("gone")

    def half(rows: Iterator[Any]) -> Iterator[Any]:
        yield from islice(rows, 12)
        die()
        yield from rows

    def analysed(*given: Any) -> None:
        if place == "before the look":
            die()
        add(*given)
        if place == "after the look":
            die()

    def appended(store: Store, campaign: int, rows: Iterator[Any], **more: Any) -> int:
        if not more["follows"]:
            return append(store, campaign, rows, **more)
        count = append(store, campaign, half(rows) if place == "half of the plan" else rows, **more)
        if place == "after the plan":
            die()
        return count

    with monkeypatch.context() as patched:
        patched.setattr(plans, "_CHUNK", 5)
        patched.setattr(plans, "add_interim", analysed)
        patched.setattr(plans, "append_round", appended)
        with pytest.raises(StoreError, match="gone"):
            go(path)
    assert planned(path) != expected
    assert go(path).ending is Ending.COMPLETE
    assert planned(path) == expected
    assert checking.check(venire.load_campaign(path).store).sound


def test_a_rule_stops_a_campaign_and_says_why(write: Write) -> None:
    plan = "[plan]\ninstructions = 8\npolicy = 'balanced'\nround = 10\n[plan.stop]\nbattles = 15\n"
    path = write(plan)
    summary = go(path)
    assert summary.ending is Ending.COMPLETE
    assert summary.stopped is not None
    assert "15" in summary.stopped
    assert [one[1] for one in seen(path)] == [10, 15]
    assert seen(path)[-1][2] == summary.stopped
    assert go(path).statistics.calls == 0


def test_without_a_rule_what_needs_to_see_nothing_is_planned_at_once(write: Write) -> None:
    path = write("[plan]\ninstructions = 8\npolicy = 'balanced'\nround = 10\nbattles = 35\n")
    go(path)
    assert [one[:2] for one in seen(path)] == [(1, 35)]


@pytest.mark.slow
def test_a_drawn_order_is_one_and_hangs_on_the_trial_alone(write: Write) -> None:
    plan = "[plan]\ninstructions = 8\norders = 'random'\npolicy = 'balanced'\nbattles = {}\n"

    def orders(path: Path) -> dict[tuple[Any, ...], bool]:
        go(path)
        with venire.open_store(venire.load_campaign(path).store) as store:
            rows = store.connection.execute("select model_a, model_b, instruction_id, swapped from battle").fetchall()
            return {row[:3]: row[3] for row in rows}

    many, few = orders(write(plan.format(100), name="many")), orders(write(plan.format(40), name="few"))
    assert (len(many), len(few)) == (100, 40)
    assert 30 < sum(many.values()) < 70
    shared = many.keys() & few.keys()
    assert shared
    assert all(many[one] == few[one] for one in shared)


def test_a_round_is_cut_to_what_the_budget_pays_for_and_no_battle_is_left_half_judged(write: Write) -> None:
    path = write("[plan]\ninstructions = 16\npolicy = 'balanced'\nround = 40\n", more="[budget]\ncalls = 101\n")
    summary = go(path)
    assert summary.ending is Ending.COMPLETE
    assert summary.stopped == "the budget covers no further battle"
    assert (summary.progress.planned, summary.progress.missing, summary.statistics.calls) == (100, 0, 100)
    assert [one[1] for one in seen(path)] == [40, 50]


@pytest.mark.slow
def test_a_plan_that_the_budget_ends_early_says_so_and_goes_on_with_a_larger_one(write: Write) -> None:
    plan = "[plan]\ninstructions = 16\npolicy = 'information'\nround = 40\nbattles = 120\n"
    judge = JUDGE.format("gpt-4-0613", "binary", "price = { input = 1.0, output = 2.0 }")
    path = write(plan, judges=judge, more="[budget]\nmoney = 0.03\n")
    summary = go(path)
    assert (summary.ending, summary.stopped) == (Ending.BUDGET, "the budget covers no further battle")
    assert summary.progress.missing == 0
    assert 10 < summary.progress.planned / 2 < 120
    assert summary.statistics.spent < 30_000_000
    path = write(plan, judges=judge, more="[budget]\nmoney = 1.0\n")
    with venire.Session(venire.load_campaign(path), amend=True, clock=VirtualClock()) as session:
        further = session.run(embedded=Embedded(direct=True))
    assert further.ending is Ending.COMPLETE
    assert further.progress.planned == 240


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "method"), [("balanced", "bradley-terry"), ("information", "even-pairs")])
def test_a_campaign_is_looked_at_and_rated_by_what_does_not_hang_on_the_pairs_that_its_policy_chose(
    write: Write, policy: str, method: str
) -> None:
    path = write(f"[plan]\ninstructions = 16\npolicy = '{policy}'\nround = 60\nbattles = 120\n")
    go(path)
    with venire.open_store(venire.load_campaign(path).store) as store:
        _, analysis = plans.interim_analyses(store, 1)[-1]
        board = rate(frames.battles(store, 1), method, Options())
    there = dict(zip(board.ratings.models, board.ratings.elo.tolist(), strict=True))
    rated = [one for one in analysis.models if one.elo is not None]
    assert len(rated) > 2
    for one in rated:
        assert one.elo == pytest.approx(there[one.model], abs=1e-6)
    store_path = venire.load_campaign(path).store
    board = venire.rate(store_path)
    assert board.method == method
    assert {row.model: row.elo for row in board.models} == pytest.approx(there, abs=1e-6)
    assert ("rated as if all" in str(board.diagnostics.notes)) == (method == "even-pairs")
    other = venire.rate(store_path, options=Options(ties="drop"))  # which even-pairs does not take
    assert other.method == "bradley-terry"
    assert ("looks are by --method even-pairs" in str(other.diagnostics.notes)) == (method == "even-pairs")


@pytest.mark.slow
def test_judges_are_matched_by_what_the_others_said_where_gaps_come_from_verdicts(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    judges = "".join(JUDGE.format(name, "binary", "") for name in ("gpt-4-0613", "claude-3-opus", "vicuna-13b"))
    plan = SCREEN + "[[plan.phase]]\nname = 'judge'\npolicy = 'widest-gap'\nmatchups = 5\ncoverage = 1.0\n"
    path = write(plan, judges=judges)
    heard: list[tuple[str, ...]] = []
    estimate = RatingFeedback.estimate

    def noted(self: RatingFeedback, battles: Any) -> Any:
        heard.append(battles.judges)
        return estimate(self, battles)

    monkeypatch.setattr(RatingFeedback, "estimate", noted)
    lines = (path.parent / "elo.csv").read_text(encoding="utf-8").splitlines()
    (path.parent / "elo.csv").write_text("\n".join(lines[:-1]), encoding="utf-8")  # one model has none
    summary = go(path)
    assert summary.ending is Ending.COMPLETE
    with venire.open_store(venire.load_campaign(path).store) as store:
        designs = [json.loads(one.design) for one in plans.rounds(store, 1)]
        rows = store.connection.execute("select distinct round, judge from battle where phase = 'judge'").fetchall()
    names = ["claude-3-opus", "gpt-4-0613", "vicuna-13b"]
    assert [one["judges"] for one in designs] == [[], *([name] for name in names)]
    assert sorted(rows) == [(2, names[0]), (3, names[1]), (4, names[2])]
    assert heard == [tuple(one for one in names if one != name) for name in names]


def test_gaps_are_refused_where_they_would_come_from_the_only_judge(write: Write) -> None:
    plan = SCREEN + "[[plan.phase]]\nname = 'judge'\npolicy = 'widest-gap'\nmatchups = 5\ncoverage = 1.0\n"
    with pytest.raises(InputError, match=r"'judge': policy 'widest-gap' needs Elo.*only judge.*add another judge"):
        go(write(plan, elo=False))


def test_what_a_later_phase_cannot_do_is_refused_before_anything_is_paid(write: Write) -> None:
    plan = SCREEN + "[[plan.phase]]\nname = 'judge'\npolicy = 'random'\nmatchups = 3\n"
    with pytest.raises(InputError, match=r"'judge': .*matchups = 3 cannot connect 6 models"):
        go(write(plan))


def test_a_crossed_phase_plans_nothing_twice_and_counts_no_battle_twice(write: Write) -> None:
    screen = SCREEN.replace("instructions = 8", "instructions = 4")
    path = write(screen + "[[plan.phase]]\nname = 'all'\npolicy = 'all-pairs'\n")
    summary = go(path)
    assert summary.progress.planned == 2 * 15 * 4
    with venire.open_store(venire.load_campaign(path).store) as store:
        assert [one.trials for one in plans.rounds(store, 1)] == [60, 60]
    assert checking.check(venire.load_campaign(path).store).sound


def test_limits_hold_across_rounds(write: Write) -> None:
    judge = JUDGE.format("gpt-4-0613", "binary", "requests_per_minute = 30")
    sent: list[float] = []
    clock = VirtualClock()

    def watch(event: Event) -> None:
        if event.name == "call.sent":
            sent.append(clock.monotonic())

    with venire.Session(venire.load_campaign(write(judges=judge)), clock=clock) as session:
        session.run(embedded=Embedded(direct=True), events=Events(clock, [watch]))
    assert len(sent) == 80
    most = max(sum(start <= one < start + 60.0 for one in sent) for start in sent)
    assert 20 <= most <= 30


def test_commands_tell_rounds_looks_and_why_it_ended(write: Write, run_command: Any) -> None:
    path = write()
    said = run_command("plan", path)
    assert "20 battles of the first" in said.out
    assert "x 2 orders" in said.out
    assert "refine: information, 20 battles" in said.out
    assert "rounds of 10" in said.out
    facts = run_command("plan", path, "--json").json()["plan"]
    assert [one["battles"] for one in facts["rounds"]] == [20]
    assert [one["name"] for one in facts["phases"]] == ["screen", "refine"]
    done = run_command("run", path, "--yes")
    assert done.code == 0
    assert "round 2 (refine): 30 battles" in done.err
    assert done.err.splitlines()[-2:] == [
        "complete: all 40 battles of the plan are judged",
        next(line for line in done.err.splitlines() if line.startswith("When not to believe it: venire audit ")),
    ]
    store = venire.load_campaign(path).store
    assert "round 3, phase refine (information)" in run_command("status", store).out
    found = run_command("status", store, "--json").json()["campaigns"][0]["plan"]
    assert [one["round"] for one in found["looks"]] == [1, 2, 3]
    assert len(found["looks"][-1]["models"]) == 6


def rounds(path: Path) -> list[tuple[str, int]]:
    with venire.open_store(venire.load_campaign(path).store) as store:
        return [(one.phase, one.trials) for one in plans.rounds(store, 1)]


def go_amended(path: Path) -> CampaignSummary:
    with venire.Session(venire.load_campaign(path), amend=True, clock=VirtualClock()) as session:
        return session.run(embedded=Embedded(direct=True))


@pytest.mark.slow
def test_rounds_that_were_paid_stay_when_budget_rules_or_later_phases_change(write: Write) -> None:
    # planned anew from what little is left, a raised budget would lose most of what was paid
    plan = "[plan]\ninstructions = 16\npolicy = 'information'\nround = 20\nbattles = {}\n{}"
    judge = JUDGE.format("gpt-4-0613", "binary", "price = {{ input = {}, output = 2.0 }}")
    path = write(plan.format(60, ""), judges=judge.format("1.0"), more="[budget]\nmoney = 0.012\n")
    calls = go(path).statistics.calls
    before = rounds(path)
    write(plan.format(60, ""), judges=judge.format("1.0"), more="[budget]\nmoney = 0.013\n")
    calls += go_amended(path).statistics.calls
    assert rounds(path)[: len(before)] == before
    write(plan.format(70, "[plan.stop]\nbattles = 50\n"), judges=judge.format("0.9"))
    calls += go_amended(path).statistics.calls
    assert sum(trials for _, trials in rounds(path)) == calls == 100
    head = "[plan]\ninstructions = 16\n[[plan.phase]]\nname = 'plan'\npolicy = 'information'\nbattles = 50\n"
    write(head + "[[plan.phase]]\nname = 'more'\npolicy = 'balanced'\nbattles = 10\n", judges=judge.format("0.9"))
    calls += go_amended(path).statistics.calls
    assert rounds(path)[-1] == ("more", 20)
    assert sum(trials for _, trials in rounds(path)) == calls == 120


def test_a_rule_that_holds_by_now_is_heard_before_another_round_is_paid(write: Write) -> None:
    plan = "[plan]\ninstructions = 16\npolicy = 'information'\nround = 20\n"
    path = write(plan, more="[budget]\ncalls = 40\n")
    assert go(path).statistics.calls == 40
    write(plan + "[plan.stop]\nbattles = 20\n", more="[budget]\ncalls = 800\n")
    summary = go_amended(path)
    assert (summary.ending, summary.statistics.calls) == (Ending.COMPLETE, 0)
    assert "20" in str(summary.stopped)


@pytest.mark.parametrize(
    ("policy", "said"),
    slow_after(1, ("policy = 'random'\nmatchups = 3", "cannot connect"), ("policy = 'widest-gap'", "needs Elo")),
)
def test_a_later_phase_that_cannot_be_is_refused_when_it_is_added(policy: str, said: str, write: Write) -> None:
    path = write(SCREEN)
    elo = path.parent / "elo.csv"
    lines = elo.read_text(encoding="utf-8").splitlines()
    elo.write_text("\n".join(lines[:-1]), encoding="utf-8")
    go(path)
    write(SCREEN + f"[[plan.phase]]\nname = 'judge'\n{policy}\n")
    with pytest.raises(InputError, match=said):
        go_amended(path)


@pytest.mark.slow
def test_what_was_judged_costs_nothing_in_a_plan_that_is_made_anew(write: Write) -> None:
    """The danger: with the budget spent a new plan was cut to one battle, though all it wanted was judged and paid."""
    plan = "[plan]\ninstructions = 16\npolicy = '{}'\nround = 30\nbattles = 60\n{}"
    judge = JUDGE.format("gpt-4-0613", "binary", "price = { input = 1.0, output = 2.0 }")
    path = write(plan.format("balanced", ""), judges=judge, more="[budget]\ncalls = 62\n")
    assert go(path).statistics.calls == 62
    write(plan.format("information", ""), judges=judge, more="[budget]\ncalls = 50\n")
    summary = go_amended(path)
    assert (summary.ending, summary.statistics.calls) == (Ending.BUDGET, 0)
    assert rounds(path) == [("plan", 60)]
    assert summary.progress.settled == 60
    with venire.Session(venire.load_campaign(path), clock=VirtualClock()) as session:
        widths = plan_intervals(session, session.forecast())
    assert isinstance(widths, PlanIntervals)
    assert widths.covered == 0.5
    assert widths.each * 62 == pytest.approx(widths.paid)  # of what was paid, also for the plan before
    write(plan.format("balanced", "repeats = 2"), judges=judge, more="[budget]\ncalls = 102\n")
    assert go_amended(path).statistics.calls == 40  # the second repeat of 20 battles, of 30 that are judged once
    assert rounds(path) == [("plan", 80)]


@pytest.fixture
def refused_after(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many more calls of a judge are answered before its key is refused, by the name of its model."""
    left: dict[str, int] = {}
    send = DirectProvider.send

    async def refusing(self: DirectProvider, body: bytes, idempotency_key: str) -> Reply:
        for name in left:
            if name.encode() in body:
                left[name] -= 1
                if left[name] < 0:
                    raise CallError("the key was refused", Fault.AUTHENTICATION, status=401)
        return await send(self, body, idempotency_key)

    monkeypatch.setattr(DirectProvider, "send", refusing)
    return left


@pytest.mark.parametrize("answered", [pytest.param(0, marks=pytest.mark.slow), 25])
def test_a_judge_whose_lane_closes_leaves_the_others_to_go_on_and_is_asked_later(
    answered: int, write: Write, refused_after: dict[str, int]
) -> None:
    """The danger: a key that was refused at night ended the whole campaign with its first round."""
    judges = JUDGE.format("claude-3-opus", "binary", "") + JUDGE.format("gpt-4-0613", "binary", "")
    path = write(judges=judges)
    refused_after["claude-3-opus"] = answered
    summary = go(path)
    assert (summary.ending, summary.stopped) == (Ending.LANE_CLOSED, "all 40 battles of the plan are judged")
    assert list(summary.closed_lanes.values()) == ["the key was refused"]
    assert rounds(path) == [("screen", 80), ("refine", 40), ("refine", 40)]
    assert summary.progress.settled == 80 + answered
    before = planned(path)
    refused_after.clear()
    again = go(path)
    assert (again.ending, again.statistics.calls) == (Ending.COMPLETE, 80 - answered)
    assert [row[:3] for row in planned(path)] == [row[:3] for row in before]  # nothing is decided anew


def test_a_run_ends_with_the_round_where_every_judge_is_refused(write: Write, refused_after: dict[str, int]) -> None:
    refused_after["gpt-4-0613"] = 10
    summary = go(write())
    assert (summary.ending, summary.stopped, summary.progress.settled) == (Ending.LANE_CLOSED, None, 10)
    assert summary.progress.planned == 40


def test_the_end_of_a_run_names_the_judge_that_was_not_reached(
    write: Write, refused_after: dict[str, int], run_command: Any
) -> None:
    judges = JUDGE.format("claude-3-opus", "binary", "") + JUDGE.format("gpt-4-0613", "binary", "")
    refused_after["claude-3-opus"] = 0
    path = write(SCREEN, judges=judges)
    done = run_command("run", path, "--yes")
    assert done.code == 1
    assert "stopped: all 30 battles" in done.err
    assert "stopped: all 30 battles" in run_command("status", path.with_suffix(".duckdb")).out
    assert "judge 'claude-3-opus', openai simulated/claude-3-opus@1:" in " ".join(done.err.split())
    assert "60 of 120" in " ".join(done.err.split())


def test_a_policy_that_changes_is_planned_anew(write: Write) -> None:
    plan = "[plan]\ninstructions = 8\npolicy = '{}'\nround = 10\nbattles = 10\n"
    path = write(plan.format("information"))
    go(path)
    write(plan.format("balanced"))
    go_amended(path)
    with venire.open_store(venire.load_campaign(path).store) as store:
        assert [one.policy for one in plans.rounds(store, 1)] == ["balanced"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "budget"),
    [
        # its calls are used up by repairs in the midst of a round
        (SCREEN + "[[plan.phase]]\nname = 'more'\npolicy = 'information'\nround = 5\nbattles = 5\n", "calls = 60"),
        # what is left covers a common battle, and not the one that is chosen next
        ("[plan]\ninstructions = 16\npolicy = 'information'\nround = 20\nbattles = 35\n", "money = 0.012"),
    ],
)
def test_a_judge_that_cannot_pay_leaves_the_others_to_go_on(plan: str, budget: str, write: Write) -> None:
    price = "price = { input = 1.0, output = 2.0 }"
    judges = JUDGE.format("claude-3-opus", "binary", price) + JUDGE.format("gpt-4-0613", "binary", "")
    path = write(plan, judges=judges, more=f"[budget.judge.claude-3-opus]\n{budget}\n")
    elo = path.parent / "elo.csv"
    lines = elo.read_text(encoding="utf-8").splitlines()
    elo.write_text("\n".join(lines[:-1]), encoding="utf-8")  # of whom the simulated judges make nothing: repairs
    summary = go(path)
    assert summary.stopped == "all 35 battles of the plan are judged"
    with venire.open_store(venire.load_campaign(path).store) as store:
        found = dict(store.connection.execute("select judge, count(*) from battle group by all").fetchall())
    assert found["gpt-4-0613"] == 70
    assert 0 < found["claude-3-opus"] < 70
    assert go(path).statistics.calls == 0


CHILD = """
import sys
from pathlib import Path
import venire
from venire.arena.clock import VirtualClock
from venire.embedded import Embedded
with venire.Session(venire.load_campaign(Path(sys.argv[1])), clock=VirtualClock()) as session:
    session.run(embedded=Embedded(direct=True), group_rows=5)
"""


@pytest.mark.slow
def test_a_run_that_is_killed_anywhere_goes_on_with_the_same_plan(
    undisturbed: tuple[list[tuple[Any, ...]], Path],
) -> None:
    expected, path = undisturbed
    store, child = venire.load_campaign(path).store, [sys.executable, "-c", CHILD, str(path)]
    for turn in range(25):
        process = Forked(child)
        try:
            process.wait(0.2 * 1.2**turn)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode == 0:
            break
    assert process.returncode == 0
    assert turn > 3
    assert planned(path) == expected
    assert checking.check(store).sound
