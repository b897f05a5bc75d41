"""What is left of a plan is what the schema's views say, and finding it takes little memory."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from venire.storage.plans import trial_states
from venire.storage.read import frames
from venire.storage.store import store
from venire.storage.transfer import importing

linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")

PLAN = """
import sys
from itertools import combinations, islice
from pathlib import Path
from venire.arena.campaigns import *
from venire.arena.records import *
from venire.orchestrator.planning.expand import NumberedRespondent, expand
from venire.orchestrator.designs import RoundDesign
from venire.storage.transfer import importing
from venire.storage.plans import plans
from venire.storage.plans import trial_states
from venire.storage.store.opening import open_store

models = [f"model-{n:02}" for n in range(20)]
questions = [f"q{n}" for n in range(int(sys.argv[2]) // 1_000)]
with open_store(sys.argv[1]) as store:
    importing.add(store, (Instruction(q, (f"What of {q}?",)) for q in questions))
    importing.add(store, (Completion(m, q, f"{m} says this of {q}. " * 20) for m in models for q in questions))
    lane = LaneSettings((RouteSettings("openai", None, None, "m"),))
    judges = tuple(JudgeSettings(f"j{n}", f"m{n}", "two-stage", {}, lane) for n in range(5))
    campaign = CampaignSettings(
        "c", 7, Path("c.toml"), store.path, DataSettings(), PlanSettings(), judges, BudgetSettings(), "", "{}"
    )
    pairs = [(judge, Respondent(judge.model, "two-stage", Origin.REAL)) for judge in judges]
    _, numbers = plans.register(store, campaign, pairs, [])
    matchups = tuple(Matchup(a, b, 100.0) for a, b in islice(combinations(models, 2), 100))
    design = RoundDesign(matchups, tuple(questions), tuple(models), ())
    asked = [NumberedRespondent.of(numbers[judge.name], respondent) for judge, respondent in pairs]
    stream = expand(design, plans.catalogue(store, models), asked, [0])
    print(plans.append_round(store, 1, stream, policy="p", seed=7, equal_texts=[0]))
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
    print(len(trial_states.pending_trials(store, 1).trials))
    with store.commit() as commit:
        store.connection.execute(
            "insert into verdict by name select id trial, 1 reading, 0 status, 'r' as rule, 1 label, 0 as cost, "
            "false answered, false flagged, "
            f"{commit.batch} batch from trial where id % 50 = 0")
        commit.written += 1
"""

RESUME = """
import sys
from venire import session  # what a run imports
from venire.render import outcome
from venire.storage.read import frames
from venire.storage.plans import plans
from venire.storage.plans import trial_states
from venire.storage.store.opening import open_store

with open_store(sys.argv[1]) as store:
    print(frames.progress(store, 1).missing)
    trial_states.pending_texts(store, 1)
    frames.judge_progress(store, 1)
    left = trial_states.pending_trials(store, 1)
    print(len(left.trials), len(trial_states.load(store, left.trials[:500])))
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
    print("scipy" in sys.modules or "litellm" in sys.modules)
"""


def test_what_is_left_is_what_the_views_say_in_plan_order(filled: Any) -> None:
    judges = filled.register(("j", "k"))
    numbers = filled.plan(filled.trials(list(judges.values()), [("a", "b"), ("a", "z")], ("q1", "q2", "q3")))
    filled.register(("j",), name="other")
    filled.plan(filled.trials([judges["j"]], [("a", "b"), ("b", "z")], ("q3", "q1")), name="other")
    shuffled = np.random.default_rng(3).permutation(numbers).tolist()
    filled.write("verdict", *(filled.verdict(trial) for trial in shuffled[:7]), filled.verdict(shuffled[0], reading=2))
    filled.write("failure", *((trial, 1, 3, False) for trial in shuffled[5:10]))
    filled.write("failure", (shuffled[9], 1, 3, True))
    for campaign in (1, 2):
        left = trial_states.pending_trials(filled.store, campaign)
        expected = filled.all(
            "select m.trial, t.respondent from missing m join trial t on t.id = m.trial where m.campaign = $1 "
            "order by m.round, m.ordinal",
            campaign,
        )
        assert list(zip(left.trials.tolist(), left.respondents.tolist(), strict=True)) == expected
        progress = frames.progress(filled.store, campaign)
        assert progress.missing == len(expected)
        by_judge = frames.judge_progress(filled.store, campaign)
        assert sum(one.planned for one in by_judge.values()) == progress.planned
        assert sum(one.settled for one in by_judge.values()) == progress.settled
        assert sum(one.failed for one in by_judge.values()) == progress.failed
    assert frames.progress(filled.store, 1) == frames.Progress(24, 7, 2)


def test_the_order_is_the_plans_where_rows_lie_in_another(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both within a range of rows and from one range to the next."""
    judges = filled.register()
    numbers = filled.plan(filled.trials(list(judges.values()), [("a", "b"), ("a", "z")], ("q1", "q2", "q3")))
    with filled.store.cursor() as cursor:
        cursor.execute("create temp table turned as select * from plan order by ordinal desc")
        cursor.execute("delete from plan")
        cursor.execute("insert into plan select * from turned order by ordinal desc")
    for at_once in (1, 5, 1 << 17):
        monkeypatch.setattr(trial_states, "_AT_ONCE", at_once)
        assert trial_states.pending_trials(filled.store, 1).trials.tolist() == numbers


def test_a_file_that_was_read_before_is_not_read_again_and_a_changed_one_is(house: Any, tmp_path: Path) -> None:
    path = tmp_path / "instructions.csv"
    path.write_text("instruction_id,instruction\nq1,What?\n", encoding="utf-8")
    assert importing.add_file(house.store, path, "instructions", {}) == importing.Added(instructions=1)
    assert importing.add_file(house.store, path, "instructions", {}) == importing.Added(known=1)
    assert house.one("select count(*) from event") == (1,)
    path.write_text("instruction_id,instruction\nq1,What?\nq2,Why?\n", encoding="utf-8")
    assert importing.add_file(house.store, path, "instructions", {}) == importing.Added(instructions=1, known=1)
    assert house.one("select count(*) from event") == (2,)


def test_shedding_leaves_a_store_that_is_being_written_alone(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The danger: a commit that meets the low limit fails for want of memory."""
    monkeypatch.setattr(store, "_SMALL_BYTES", 0)
    limit = "select value from duckdb_settings() where name = 'memory_limit'"
    before = house.one(limit)
    asked: list[str] = []

    class Watched:
        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

        def execute(self, sql: str, *parameters: Any) -> Any:
            asked.append(sql)
            return self._connection.execute(sql, *parameters)

    real, house.store.connection = house.store.connection, Watched(house.store.connection)
    with house.store.commit():
        asked.clear()
        house.store.release_memory()
        assert asked == []
    asked.clear()
    house.store.release_memory()
    assert asked[0] == "set memory_limit = '8MB'"
    house.store.connection = real
    assert house.one(limit) == before


def _resumed(path: Path, trials: int, in_process: Callable[..., subprocess.Popen[str]]) -> tuple[float, float]:
    """Peak megabytes of planning, and of finding what is left in a process of its own.

    The peaks are the processes' own: what getrusage tells includes the process that started it.
    """
    said, wrong = in_process(PLAN, path, trials, anew=True).communicate(timeout=500)
    assert said, wrong
    planned, kilobytes, pending = map(int, said.split())
    assert (planned, pending) == (trials, trials)
    said, wrong = in_process(RESUME, path, anew=True).communicate(timeout=100)
    assert said, wrong
    missing, left, loaded, resumed, needless = said.split()
    assert (int(missing), int(left), int(loaded), needless) == (trials * 49 // 50, trials * 49 // 50, 500, "False")
    return kilobytes / 1024, int(resumed) / 1024


@pytest.mark.slow
@linux
def test_what_is_left_of_100_000_trials_is_found_in_less_than_168_mb(
    path: Path, in_process: Callable[..., subprocess.Popen[str]]
) -> None:
    """Without any trials it is 132 MB, most of it NumPy, DuckDB and the HTTP library themselves."""
    assert _resumed(path, 100_000, in_process)[1] < 168


@pytest.mark.slow
@pytest.mark.timeout(600)
@linux
def test_a_million_trials_are_planned_in_less_than_300_mb_and_resumed_in_less_than_212(
    path: Path, in_process: Callable[..., subprocess.Popen[str]]
) -> None:
    planning, resuming = _resumed(path, 1_000_000, in_process)
    assert planning < 300
    assert resuming < 212  # of which 12 are the library that calls are sent by


def test_a_store_that_is_small_has_nothing_to_shed(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house.store, "connection", None)
    house.store.release_memory()


def test_shedding_on_a_full_disk_is_no_error(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB writes what it must not forget to a temporary file."""
    monkeypatch.setattr(store, "_SMALL_BYTES", 0)

    class Full:
        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def execute(self, sql: str) -> Any:
            if "8MB" in sql:
                raise duckdb.IOException("No space left on device")
            return self._connection.execute(sql)

    real, house.store.connection = house.store.connection, Full(house.store.connection)
    house.store.release_memory()
    house.store.connection = real
    (limit,) = house.one("select value from duckdb_settings() where name = 'memory_limit'")
    assert not limit.startswith("7")


def test_what_was_paid_is_the_same_however_it_is_read(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = filled.register(("j", "k"))
    made = filled.plan(filled.trials(sorted(numbers.values()), [("a", "b")], ["q1", "q2", "q3"]))
    rows = [
        filled.attempt(trial, step, number, campaign=campaign, cost=cost, reserved=900, reserved_tokens=70, text=text)
        for campaign in (1, 2)
        for trial in made
        for step, number, cost, text in (
            (1, 1, None, None),
            (1, 2, 40, "said"),
            (2, 1, None, "uncounted"),
            (2, 2, 0, None),
        )
    ]
    filled.write("attempt", *rows)
    whole = trial_states.paid(filled.store, 1)
    monkeypatch.setattr(trial_states, "_AT_ONCE", 5)
    assert trial_states.paid(filled.store, 1) == whole
    each = len(made) // 2
    told = {(one.model, one.calls, one.nano, one.tokens) for one in whole}
    assert told == {
        (f"model of {name}", 4 * each, each * (900 + 40 + 900), each * (70 + 15 + 15)) for name in ("j", "k")
    }
    assert sum(one.nano for one in whole) == filled.store.rows("spend", campaign=1)[0][0]
