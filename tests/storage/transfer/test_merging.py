"""Stores put together: what is the same counts once, what was paid is kept, and what contradicts is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.stores import rows_of
from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import (
    CampaignSettings,
    DataSettings,
    JudgeSettings,
    LaneSettings,
    PlanSettings,
    RouteSettings,
)
from venire.arena.errors import InputError, StoreError, StoreHeldError
from venire.arena.keys import prompt_digest, respondent_key, trial_key
from venire.arena.records import Battle, Completion, Instruction, Origin, PlannedTrial, Rating, Respondent
from venire.storage.care.checking import check
from venire.storage.plans import plans
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing, merging
from venire.storage.transfer.merging import Merged, merge

START = datetime(2026, 1, 1, tzinfo=UTC)
JUDGE = Respondent("m", "two-stage", Origin.REAL, prompts=(prompt_digest("Judge."),))
PRICE = 40
_MADE: dict[tuple[Any, ...], bytes] = {}
"""Stores made once, by how many lay beside them and what is in them: those of one test have their own identities."""


class Kept:
    """A store under construction: models a, b and c answer some instructions, and one judge is to see all pairs."""

    def __init__(
        self,
        path: Path,
        instructions: Sequence[str] = ("q1", "q2"),
        *,
        models: Sequence[str] = ("a", "b", "c"),
        settings: str = '{"store":null}',
        name: str = "c",
        more: Sequence[Instruction | Completion | Rating] = (),
    ) -> None:
        self._path = path
        self._open: Store | None = None
        nth = len(list(path.parent.glob("*.duckdb")))
        made = (nth, tuple(instructions), tuple(models), settings, name, JUDGE)
        if made in _MADE:
            path.write_bytes(_MADE[made])
        else:
            self._make(instructions, models, settings, name)
            _MADE[made] = self.path.read_bytes()
        for record in more:
            importing.add(self.store, [record])

    def _make(self, instructions: Sequence[str], models: Sequence[str], settings: str, name: str) -> None:
        importing.add(self.store, [Instruction(one, (f"What of {one}?",)) for one in instructions])
        importing.add(self.store, [Completion(m, i, f"{m} says this of {i}") for m in models for i in instructions])
        self.plan(self.store, instructions, models, name, settings)
        with self.store.commit() as commit:
            commit.run("insert_lane", name="l", provider="openai", endpoint="http://127.0.0.1/v1")
            commit.run("insert_reading", parser="first", now=START)

    @property
    def store(self) -> Store:
        """The store, open."""
        if self._open is None:
            self._open = open_store(self._path)
        return self._open

    @property
    def path(self) -> Path:
        """Where it lies, closed."""
        if self._open is not None:
            self._open.close()
            self._open = None
        return self._path

    @staticmethod
    def plan(store: Store, instructions: Sequence[str], models: Sequence[str], name: str, settings: str) -> None:
        lane = LaneSettings((RouteSettings("openai", None, None, "m"),))
        judge = JudgeSettings("j", "m", "two-stage", {}, lane)
        campaign = CampaignSettings(
            name,
            7,
            Path("c.toml"),
            store.path,
            DataSettings(),
            PlanSettings(),
            (judge,),
            BudgetSettings(),
            "#",
            settings,
        )
        _, numbers = plans.register(store, campaign, [(judge, JUDGE)], [("judge", prompt_digest("Judge."), "Judge.")])
        answers = plans.catalogue(store, models)
        trials = []
        for one in instructions:
            number, key = answers.instructions[one]
            for a, b in [(a, b) for a in models for b in models if a < b]:
                first, second = answers.completions[a, one], answers.completions[b, one]
                for swapped in (False, True):
                    shown = (second[1], first[1]) if swapped else (first[1], second[1])
                    digest = trial_key(respondent_key(JUDGE), key, shown, 1)
                    ids = (second[0], first[0]) if swapped else (first[0], second[0])
                    battle = Battle(answers.models[a], answers.models[b], swapped, 10.0)
                    trials.append(PlannedTrial(digest, 1, numbers["j"], number, ids, 1, battle))
        known = plans.find_campaign(store, name)
        assert known is not None
        design = json.dumps({"instructions": list(instructions)})
        plans.append_round(store, known.id, iter(trials), policy="p", seed=7, equal_texts=[0], design=design)

    def call(
        self,
        trial: int,
        step: int,
        seconds: float,
        *,
        number: int = 1,
        text: str | None = "said",
        cost: int | None = PRICE,
        campaign: int = 1,
    ) -> Kept:
        """One call on record, answered unless `text` is None."""
        told = text is not None
        row = (campaign, trial, step, number, 1, START + timedelta(seconds=seconds), 250, int(not told), 200, None, 0)
        row += ("stop" if told else None, 10, 0, 5, 0, 100, cost, "m-1", "", b"d" * 16, text, "", "")
        return self.write("attempt", row)

    def verdict(self, trial: int, label: int = 1, *, cost: int = 2 * PRICE) -> Kept:
        return self.write("verdict", (trial, 1, 0, "rule", label, None, None, None, False, False, cost))

    def settle(self, trial: int, seconds: float, label: int = 1) -> Kept:
        """Both steps answered, a second apart, and the verdict."""
        return self.call(trial, 1, seconds).call(trial, 2, seconds + 1).verdict(trial, label)

    def fail(self, trial: int, seconds: float, *, cleared: bool = False) -> Kept:
        if not cleared:
            self.call(trial, 1, seconds, text=None, cost=None)
        return self.write("failure", (trial, 1, 1, cleared))

    def write(self, table: str, row: tuple[Any, ...]) -> Kept:
        with self.store.commit() as commit:
            columns = [one for one in self.store.connection.table(table).columns if one != "batch"]
            given = dict(zip([one for one in columns if one not in _LATER], row, strict=True))
            commit.append(table, [tuple(given.get(one) for one in columns)])
        return self

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        return rows_of(self.path, sql)


_LATER = ("batch", "reserved_tokens", "structured", "logprobs", "cut")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def two(folder: Path) -> tuple[Kept, Kept]:
    """The same campaign in two stores, none of it asked."""
    return Kept(folder / "a.duckdb"), Kept(folder / "b.duckdb")


def put(folder: Path, *stores: Kept | Path, sound: bool = True) -> Merged:
    """The stores put together, which leaves them byte for byte as they were, and sound where that is looked at."""
    paths = [one.path if isinstance(one, Kept) else one for one in stores]
    before = [path.read_bytes() for path in paths]
    merged = merge(paths, folder / f"out{len(list(folder.glob('out*')))}.duckdb")
    assert [path.read_bytes() for path in paths] == before
    assert not sound or check(Path(merged.path), full=True).sound
    return merged


def facts(merged: Merged) -> tuple[Any, ...]:
    """What does not depend on the order of the sources."""
    queries = (
        "select * exclude (trial) from battle order by all",
        "select (select count(*) from missing), (select count(*) from failed)",
        "select t.trial_key, step, number, sent_at, text from attempt join trial t on t.id = trial order by all",
    )
    with duckdb.connect(merged.path, read_only=True) as connection:
        found = [connection.execute(one).fetchall() for one in queries]
    return merged.rows, merged.doubles, merged.mixed, merged.paid, found


def both_ways(folder: Path, a: Kept, b: Kept | Path) -> Merged:
    """A and B, which is the same as B and A."""
    merged = put(folder, a, b)
    assert facts(merged) == facts(put(folder, b, a, sound=False))
    return merged


@dataclass(frozen=True)
class Together:
    """Two stores put together."""

    merged: Merged
    ids: dict[int, int]
    """Of each trial of the first store, its number in the merged one."""

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query, in which `{1}` is what the first trial is called now."""
        return rows_of(Path(self.merged.path), sql.format(*[0, *(self.ids[one] for one in sorted(self.ids))]))


def together(folder: Path, first: Kept, other: Kept | Path) -> Together:
    """The stores put together, the other one named first where it is a copy of the first."""
    merged = put(folder, *((first, other) if isinstance(other, Kept) else (other, first)))
    now = dict(rows_of(Path(merged.path), "select trial_key, id from trial"))
    return Together(merged, {one: now[key] for one, key in first.ask("select id, trial_key from trial")})


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Together:
    """Two stores of one campaign that asked it for themselves; each trial has a story of its own."""
    folder = tmp_path_factory.mktemp("apart")
    a, b = Kept(folder / "a.duckdb"), Kept(folder / "b.duckdb")
    a.settle(1, 100, label=1).settle(2, 0)
    b.settle(1, 0, label=-1)
    a.call(3, 1, 0).call(3, 2, 50).verdict(3, 1)
    b.call(3, 1, 10).call(3, 2, 20).verdict(3, -1)
    a.settle(4, 10)
    b.call(4, 1, 0)
    a.settle(5, 0).fail(6, 10).fail(7, 11)
    a.call(8, 1, 30, text=None).write(
        "verdict", (8, 1, 4, "rule", None, None, None, None, False, False, PRICE)
    )  # filtered: settled, unanswered
    b.fail(5, 5).call(6, 1, 20).fail(8, 6)
    b.settle(9, 5, label=-1).call(10, 1, 20)
    return together(folder, a, b)


def test_what_each_store_has_is_in_the_merged_one_and_paid_once(apart: Together) -> None:
    merged = apart.merged
    assert merged.rows["trials"] == 12
    assert (merged.rows["planned"], merged.rows["attempts"], merged.rows["verdicts"]) == (12, 24, 7)
    assert merged.paid == {"c": 20 * PRICE + 400}
    assert merged.shared_attempts == 0
    assert [one.paid for one in merged.sources] == [11 * PRICE + 200, 9 * PRICE + 200]
    assert apart.ask("select count(*) from missing") == [(4,)]


def test_two_answers_to_one_step_are_kept_and_the_first_sent_is_the_reply(apart: Together) -> None:
    assert apart.merged.doubles == 2 + 2 + 1
    assert apart.ask("select winner, cost from battle where trial = {1}") == [("model_b", 4 * PRICE)]
    assert apart.ask("select step, number, sent_at from attempt where trial = {1} order by step, number") == [
        (step, number, START + timedelta(seconds=seconds + step - 1))
        for step in (1, 2)
        for number, seconds in ((1, 0), (2, 100))
    ]
    assert apart.ask("select sent_at from reply where trial = {1} order by step")[0][0] == START


def test_a_settled_trial_with_replies_of_both_stores_is_counted_and_named(apart: Together) -> None:
    """As is one that was settled in one store, where an unfinished conversation in the other had begun first."""
    assert apart.merged.mixed == 2
    ((detail,),) = apart.ask("select detail from event where kind = 'merged'")
    assert sorted(json.loads(detail)["mixed_trials"]) == sorted([apart.ids[3], apart.ids[4]])
    assert apart.ask("select winner from battle where trial = {3}") == [("model_b",)]


def test_what_is_settled_in_one_store_is_not_failed_in_the_merged_one(apart: Together) -> None:
    assert apart.ask("select trial from failed") == [(apart.ids[7],)]
    assert apart.merged.rows["failed"] == 1
    assert apart.ask("select nano, unknown from spend") == [(20 * PRICE + 400, 400)]


@pytest.fixture(scope="module")
def went_on(tmp_path_factory: pytest.TempPathFactory) -> Together:
    """A store's backup, and the store that went on."""
    folder = tmp_path_factory.mktemp("went-on")
    a = Kept(folder / "a.duckdb")
    a.settle(1, 0).call(2, 1, 5).fail(3, 0)
    for number in (1, 2):
        a.call(4, 1, 0, number=number, text=None, cost=None)
    backup = folder / "backup.duckdb"
    backup.write_bytes(a.path.read_bytes())
    a.call(2, 2, 7).verdict(2).fail(3, 0, cleared=True)
    a.call(4, 1, 0, number=3, text=None, cost=None)
    return together(folder, a, backup)


def test_a_backup_and_the_store_that_went_on_are_that_store(went_on: Together) -> None:
    merged = went_on.merged
    assert (merged.doubles, merged.mixed, merged.shared_attempts) == (0, 0, 3 + 1 + 2)
    assert merged.rows["verdicts"] == 2
    assert merged.paid == {"c": 4 * PRICE + 100 + 300}


def test_of_a_failure_and_its_clearing_the_later_counts(went_on: Together) -> None:
    assert went_on.merged.rows["failed"] == 0


def test_calls_that_a_killed_run_announced_are_alike_and_each_counts(went_on: Together) -> None:
    """The danger: unanswered calls differ in nothing but their number; taken for one, money is forgotten."""
    assert went_on.ask("select count(*) from attempt where trial = {4}") == [(3,)]


@pytest.mark.slow
def test_it_does_not_matter_which_store_is_named_first(folder: Path, two: tuple[Kept, Kept]) -> None:
    a, b = two
    a.settle(1, 100, label=1).call(2, 1, 0).call(2, 2, 50).verdict(2, 1).settle(3, 10)
    b.settle(1, 0, label=-1).call(2, 1, 10).call(2, 2, 20).verdict(2, -1).call(3, 1, 0)
    a.settle(4, 0).fail(5, 10).fail(6, 11).settle(7, 12).fail(9, 0).fail(10, 40)
    b.fail(4, 5).call(5, 1, 20).settle(8, 5, label=-1).call(9, 1, 20).fail(10, 30).fail(10, 30, cleared=True)
    merged = both_ways(folder, a, b)
    assert (merged.doubles, merged.mixed) == (5, 2)


@pytest.mark.slow
def test_a_store_with_itself_or_with_its_copy_is_itself(folder: Path, two: tuple[Kept, Kept]) -> None:
    a, _ = two
    a.settle(1, 0).fail(2, 5).call(3, 1, 9)
    copy = folder / "copy.duckdb"
    copy.write_bytes(a.path.read_bytes())
    alone, thrice = put(folder, a, a, sound=False), put(folder, copy, a, a)
    assert facts(alone) == facts(thrice)
    tables = ("trial", "plan", "round", "attempt", "verdict", "failure", "completion", "campaign_judge")
    counts = ", ".join(f"(select count(*) from {table}) as {table}" for table in tables)
    before = a.ask(f"select store_id, {counts} from store")
    for merged in (alone, thrice):
        assert rows_of(Path(merged.path), f"select store_id, {counts} from store") == before
    assert thrice.shared_attempts == 4


@pytest.mark.slow
def test_three_stores_are_the_same_in_one_step_or_in_two(folder: Path, two: tuple[Kept, Kept]) -> None:
    a, b = two
    third = Kept(folder / "third.duckdb", ("q2", "q3"), name="d")
    a.settle(1, 0).settle(7, 3)
    b.settle(1, 20, label=-1).fail(9, 7)
    third.settle(1, 1).settle(8, 9)
    at_once = put(folder, a, b, third)
    in_two = put(folder, Path(put(folder, third, a).path), b)
    assert facts(at_once) == facts(in_two)
    assert at_once.rows["trials"] == 18
    assert at_once.rows["planned"] == 24
    assert at_once.paid == {"c": 8 * PRICE - 2 * PRICE + 100, "d": 4 * PRICE}
    again = put(folder, Path(at_once.path), Path(in_two.path), a)
    assert facts(again) == facts(at_once)


def test_plans_of_one_campaign_over_other_data_are_both_in_force_and_plan_no_trial_twice(folder: Path) -> None:
    a = Kept(folder / "a.duckdb", ("q1", "q2"))
    b = Kept(folder / "b.duckdb", ("q2", "q3"))
    merged = put(folder, a, b)
    path = Path(merged.path)
    assert merged.rows["planned"] == 18
    assert rows_of(path, "select number, trials from round order by number") == [(1, 12), (2, 6)]
    assert rows_of(path, "select count(*), count(distinct trial) from missing") == [(18, 18)]
    assert rows_of(path, "select in_force from campaign") == [(1,)]


def plan_lists(kept: Kept, question: str) -> None:
    """A further round: trials of no answer, of one, and of three in two orders."""
    answers = plans.catalogue(kept.store, ("a", "b", "c"))
    known = plans.find_campaign(kept.store, "c")
    assert known is not None
    number, key = answers.instructions[question]
    trials = []
    for models in ((), ("b",), ("c", "a", "b"), ("b", "c", "a")):
        shown = [answers.completions[model, question] for model in models]
        digest = trial_key(respondent_key(JUDGE), key, [one[1] for one in shown], 1)
        trials.append(PlannedTrial(digest, 1, 1, number, tuple(one[0] for one in shown), 1))
    plans.append_round(kept.store, known.id, iter(trials), policy="lists", seed=7, equal_texts=[0], design="{}")


def test_trials_of_any_number_of_answers_show_what_they_showed(folder: Path) -> None:
    """The danger: completions have other numbers in the merged store, and a list in another order is another trial."""
    a, b = Kept(folder / "a.duckdb", ("q1", "q2")), Kept(folder / "b.duckdb", ("q3", "q2"))
    for kept, question in ((a, "q1"), (a, "q2"), (b, "q3"), (b, "q2")):
        plan_lists(kept, question)
    merged = put(folder, a, b)
    shown = """select i.external_id, coalesce((select string_agg(m.name, '' order by s.place)
        from (select unnest(t.shown) completion, generate_subscripts(t.shown, 1) place) s
        join completion c on c.id = s.completion and c.instruction = t.instruction join model m on m.id = c.model), '')
      from trial t join instruction i on i.id = t.instruction where t.model_a is null order by all"""
    lists = sorted(["", "b", "cab", "bca"])
    assert rows_of(Path(merged.path), shown) == [(question, one) for question in ("q1", "q2", "q3") for one in lists]
    assert rows_of(Path(merged.path), "select count(*), count(distinct trial_key) from trial") == [(18 + 12, 18 + 12)]


def test_stores_with_the_same_trials_of_which_each_plans_others_plan_all_of_them(folder: Path) -> None:
    """The danger: trials that are the same in the same order are taken for a plan that is the same."""
    a, b = Kept(folder / "a.duckdb", settings='{"x":1}'), Kept(folder / "b.duckdb", settings='{"x":1}')
    for kept, question in ((a, "q1"), (b, "q2")):
        Kept.plan(kept.store, (question,), ("a", "b", "c"), "c", '{"x":2}')
    path = Path(put(folder, a, b).path)
    assert rows_of(path, "select count(*), count(distinct trial) from missing") == [(12, 12)]


@pytest.mark.slow
def test_rounds_that_are_out_of_force_stay_so(folder: Path) -> None:
    a = Kept(folder / "a.duckdb", ("q1", "q2"), settings='{"x":1}')
    with open_store(a.path) as store:
        Kept.plan(store, ("q2",), ("a", "b", "c"), "c", '{"x":2}')
    b = Kept(folder / "b.duckdb", ("q2",), settings='{"x":2}')
    path = Path(both_ways(folder, a, b).path)
    assert rows_of(path, "select count(*) from missing") == [(6,)]
    assert rows_of(path, "select count(*), (select in_force from campaign) from round") == [(2, 2)]


@pytest.mark.slow
def test_ratings_and_families_fill_up_and_must_agree(folder: Path) -> None:
    a = Kept(folder / "a.duckdb", more=[Rating("a", 1200.0)])
    b = Kept(folder / "b.duckdb", more=[Rating("b", 1100.0)])
    path = Path(both_ways(folder, a, b).path)
    assert rows_of(path, "select name, elo from model order by name") == [("a", 1200.0), ("b", 1100.0), ("c", None)]
    other = Kept(folder / "c.duckdb", more=[Rating("a", 1300.0)])
    with pytest.raises(InputError, match=r"c\.duckdb: model 'a' has Elo 1300\.0, and 1200\.0 in another store"):
        merge([a.path, other.path], folder / "never.duckdb")
    with open_store(a.path) as store:
        importing.set_families(store, {"c": "house"})
    with open_store(b.path) as store:
        importing.set_families(store, {"c": "other"})
    with pytest.raises(InputError, match="model 'c' has family other, and house in another store"):
        merge([a.path, b.path], folder / "never.duckdb")


@pytest.mark.slow
def test_reference_answers_fill_up(folder: Path) -> None:
    a = Kept(folder / "a.duckdb", more=[Instruction("x", ("Same text",)), Instruction("y", ("And this",), "So.")])
    b = Kept(folder / "b.duckdb", more=[Instruction("x", ("Same text",), "This."), Instruction("y", ("And this",))])
    path = Path(both_ways(folder, a, b).path)
    told = "select external_id, reference from instruction where reference is not null order by 1"
    assert rows_of(path, told) == [("x", "This."), ("y", "So.")]


@pytest.mark.slow
def test_what_contradicts_is_refused_by_name_and_nothing_is_left(folder: Path) -> None:
    a = Kept(folder / "a.duckdb")
    cases = {
        "instruction 'x' has another text": [Instruction("x", ("One text",))],
        "instruction 'y' has the text of 'x'": [Instruction("y", ("Same text",))],
        "instruction 'x' has another reference answer": [Instruction("x", ("Same text",), "That.")],
        "the answer of 'd' to instruction 'q1' has another text": [Completion("d", "q1", "so")],
    }
    with open_store(a.path) as store:
        importing.add(store, [Instruction("x", ("Same text",), "This.")])
        importing.add(store, [Completion("d", "q1", "thus")])
    for number, (told, records) in enumerate(cases.items()):
        other = Kept(folder / f"other{number}.duckdb", more=records)
        with pytest.raises(InputError, match=told):
            merge([a.path, other.path], folder / "never.duckdb")
    changed = Kept(folder / "changed.duckdb", settings='{"store":null,"seed":2}')
    with pytest.raises(InputError, match="campaign 'c' has other settings than in another store"):
        merge([a.path, changed.path], folder / "never.duckdb")
    moved = Kept(folder / "moved.duckdb", settings='{"store":"elsewhere.duckdb"}')
    assert put(folder, a, moved, sound=False).rows["planned"] == 12
    assert [one.name for one in folder.iterdir() if "never" in one.name] == []


def test_a_judge_that_was_asked_in_other_words_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = Kept(folder / "a.duckdb")
    other = Respondent("m", "two-stage", Origin.REAL, prompts=(prompt_digest("Judge!"),))
    monkeypatch.setitem(globals(), "JUDGE", other)
    b = Kept(folder / "b.duckdb")
    with pytest.raises(InputError, match="campaign 'c' asks judge 'j' with other prompts"):
        merge([a.path, b.path], folder / "never.duckdb")


@pytest.mark.slow
def test_the_order_of_readings_is_that_in_which_they_were_made(folder: Path, two: tuple[Kept, Kept]) -> None:
    a, b = two
    a.settle(1, 0)
    with open_store(b.path) as store, store.commit() as commit:
        commit.run("insert_reading", parser="later", now=START + timedelta(days=1))
    b.call(1, 1, 0).call(1, 2, 1).write("verdict", (1, 2, 0, "rule", 0, None, None, None, False, False, 2 * PRICE))
    merged = both_ways(folder, a, b)
    assert rows_of(Path(merged.path), "select id, parser from reading order by id") == [(1, "first"), (2, "later")]
    assert rows_of(Path(merged.path), "select winner from battle") == [("tie",)]
    assert merged.rows["verdicts"] == 2


@pytest.mark.slow
def test_a_log_beside_a_store_is_read_and_left(
    folder: Path, two: tuple[Kept, Kept], in_process: Callable[..., subprocess.Popen[str]]
) -> None:
    script = """
import os, sys
from venire.arena.records import Rating
from venire.storage.transfer import importing
from venire.storage.store.opening import open_store
store = open_store(sys.argv[1])
importing.add(store, [Rating("a", 900.0)])
os._exit(0)
"""
    a, b = two
    in_process(script, a.path).communicate(timeout=60)
    log = a.path.with_name(f"{a.path.name}.wal")
    before = log.read_bytes()
    merged = put(folder, a, b)
    assert log.read_bytes() == before
    assert rows_of(Path(merged.path), "select elo from model where name = 'a'") == [(900.0,)]


def test_stores_that_are_open_unsound_missing_or_alone_are_refused(folder: Path, two: tuple[Kept, Kept]) -> None:
    a, b = two
    out = folder / "never.duckdb"
    with open_store(b.path), pytest.raises(StoreHeldError):
        merge([a.path, b.path], out)
    with pytest.raises(InputError, match="needs two stores or more"):
        merge([a.path], out)
    with pytest.raises(InputError, match="there is no store"):
        merge([a.path, folder / "nowhere.duckdb"], out)
    with pytest.raises(InputError, match=r"is there already: name another file$"):
        merge(
            [a.path, b.path], folder / "c.duckdb" if (folder / "c.duckdb").exists() else Kept(folder / "c.duckdb").path
        )
    with pytest.raises(InputError, match="is the store itself"):
        merge([a.path, b.path], a.path)
    with duckdb.connect(str(b.path)) as connection:
        connection.execute("update plan set trial = 999 where ordinal = 0")
    with pytest.raises(StoreError, match=r"b\.duckdb is not sound: .*every planned trial is there"):
        merge([a.path, b.path], out)
    assert [one.name for one in folder.iterdir() if "never" in one.name] == []


def test_money_that_does_not_add_up_makes_no_store(
    folder: Path, two: tuple[Kept, Kept], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = two
    a.settle(1, 0)
    real = merging.query
    monkeypatch.setattr(
        merging, "query", lambda name: "select 1, 5::bigint" if name == "merge_shared_paid" else real(name)
    )
    with pytest.raises(StoreError, match="would account for 80 of 75 nano-dollars"):
        merge([a.path, b.path], folder / "never.duckdb")
    assert [one.name for one in folder.iterdir() if "never" in one.name] == []


@pytest.mark.slow
def test_calls_of_one_store_keep_their_order_through_a_clock_that_was_set_back(
    folder: Path, two: tuple[Kept, Kept]
) -> None:
    a, b = two
    a.call(1, 1, 100, number=1, text="first").call(1, 1, 50, number=2, text="second")
    b.call(1, 1, 70, number=1, text="elsewhere")
    path = Path(both_ways(folder, a, b).path)
    calls = rows_of(path, "select text from attempt order by number")
    assert calls == [("elsewhere",), ("first",), ("second",)]


def test_a_store_with_batches_out_is_not_merged(tmp_path: Path) -> None:
    paths = [Kept(tmp_path / f"{name}.duckdb").path for name in "ab"]
    with duckdb.connect(str(paths[1])) as store:
        store.execute("insert into lane values (7, 'a route', 'openai', 'x')")
        store.execute("insert into submission values (1, 1, 'venire-1', 7, 0, 9, 'd'::blob, 0, 0, now(), 1)")
        store.execute("update ledger set written = written + (batch = 1)::int, running = running + 1")
    with pytest.raises(InputError, match=r"1 batches are out \(venire-1\): run their campaigns to collect them"):
        merge(paths, tmp_path / "out.duckdb")
    assert not (tmp_path / "out.duckdb").exists()
    with duckdb.connect(str(paths[1])) as store:
        store.execute("insert into submission_event values (1, now(), 'collected', 'batch_1', '', 1)")
        store.execute("update ledger set written = written + (batch = 1)::int, running = running + 1")
    merge(paths, tmp_path / "out.duckdb")
    with duckdb.connect(str(tmp_path / "out.duckdb")) as store:
        assert store.execute("select count(*) from submission").fetchall() == [(0,)]
