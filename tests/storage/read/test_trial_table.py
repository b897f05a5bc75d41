"""The table of trials says what SQL on the store says, page by page in any order, and goes on where it grows."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.storage.conftest import START, House
from venire.arena.errors import InputError
from venire.storage.read.activity import calls_over_time, judge_activity, pairwise_agreement, route_activity
from venire.storage.read.trial_details import completions, instruction, trial_details
from venire.storage.read.trial_table import ANSWER_ORDERS, ORDERS, STATUSES, TrialFilter, TrialTable, parquet_parts
from venire.storage.store.opening import open_store

MODELS = ("apple", "birch", "cedar")
QUESTIONS = ("q1", "q2", "q3")
LATENCY = 6
"""Place of the column in a row of `attempt`."""


@contextmanager
def two_judges(path: Path) -> Iterator[tuple[House, TrialTable, list[int]]]:
    """Two judges on three models and three instructions: the second judge prefers whatever is shown first."""
    with open_store(path) as store:
        house = House(store)
        house.fill(MODELS, QUESTIONS)
        numbers = house.register(("one", "two"))
        pairs = [("apple", "birch"), ("apple", "cedar"), ("birch", "cedar")]
        trials = house.plan(house.trials(list(numbers.values()), pairs, QUESTIONS))
        with store.commit() as commit:
            commit.run("insert_lane", name="route", provider="openai", endpoint="http://127.0.0.1:9/v1")
        asked = {
            trial: (judge, swapped) for trial, judge, swapped in house.all("select id, respondent, swapped from trial")
        }
        attempts, verdicts = [], []
        for place, trial in enumerate(trials[:-1]):  # one is left to ask
            text = f"reasons {trial}" + (" heliotrope" if place == 5 else "")
            retried = place % 7 == 3
            if retried:
                attempts.append(house.attempt(trial, text=None, seconds=place))
            answered = list(house.attempt(trial, number=2 if retried else 1, text=text, seconds=place + 0.5))
            answered[LATENCY] = 100 * (place % 4)
            attempts.append(tuple(answered))
            judge, swapped = asked[trial]
            verdicts.append(house.verdict(trial, 1 if judge == numbers["one"] or not swapped else -1))
        house.write("attempt", *attempts)
        house.write("verdict", *verdicts)
        table = TrialTable(store, house.number())
        table.refresh()
        yield house, table, trials


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, TrialTable, list[int]]]:
    """The store of two judges, for tests that only read it."""
    with two_judges(tmp_path_factory.mktemp("judged") / "judged.duckdb") as made:
        yield made


def everything(table: TrialTable, wanted: TrialFilter, **how: Any) -> list[int]:
    """All trials of a filter, page by page, eleven rows each."""
    found: list[int] = []
    after = None
    while True:
        page = table.page(wanted, limit=11, after=after, **how)
        found += [row.trial for row in page.rows]
        if not page.after:
            return found
        after = page.rows[-1].sort_key, page.rows[-1].trial


def test_every_planned_trial_is_there_once_in_every_order(judged: tuple[House, TrialTable, list[int]]) -> None:
    _, table, trials = judged
    for order in ORDERS:
        for descending in (False, True):
            found = everything(table, TrialFilter(), order=order, descending=descending)
            assert sorted(found) == sorted(trials), order


def test_pages_go_back_as_they_came(judged: tuple[House, TrialTable, list[int]]) -> None:
    _, table, _ = judged
    first = table.page(TrialFilter(), order="latency", descending=True, limit=4)
    last = first.rows[-1]
    second = table.page(TrialFilter(), order="latency", descending=True, limit=4, after=(last.sort_key, last.trial))
    start = second.rows[0]
    back = table.page(TrialFilter(), order="latency", descending=True, limit=4, before=(start.sort_key, start.trial))
    assert [row.trial for row in back.rows] == [row.trial for row in first.rows]
    assert (first.before, second.before) == (False, True)
    assert not back.before


def test_filters_agree_with_sql_and_combine(judged: tuple[House, TrialTable, list[int]]) -> None:
    house, table, trials = judged
    ids = dict(house.all("select name, id from model"))
    by_two = "select t.id from trial t join campaign_judge j on j.respondent = t.respondent where j.name = 'two'"
    assert everything(table, TrialFilter(judge="two")) == house.column(f"{by_two} order by 1")
    assert everything(table, TrialFilter(status="pending")) == [trials[-1]]
    assert everything(table, TrialFilter(model=ids["apple"], opponent=ids["cedar"], judge="two")) == house.column(
        f"{by_two} and t.model_a = $1 and t.model_b = $2 order by 1", ids["apple"], ids["cedar"]
    )
    retried = house.column("select trial from attempt where fault <> 0 order by 1")
    assert everything(table, TrialFilter(retried=True)) == retried
    assert table.count(TrialFilter(retried=False)) == len(trials) - len(retried)
    # the second judge follows the place: each of its battles flips, but the one that has a single order
    assert table.count(TrialFilter(flipped=True)) == table.count(TrialFilter(judge="two")) - 2
    assert table.count(TrialFilter(flipped=True, judge="one")) == 0
    wins = house.column("select trial from verdict join trial on id = trial where label = 1 and model_a = $1", 1)
    assert sorted(wins) == everything(table, TrialFilter(winner=1, model=1))
    assert table.count(TrialFilter(winner=0)) == 0


def test_battle_by_battle_each_stands_together_and_what_calls_came_to_is_known(
    judged: tuple[House, TrialTable, list[int]],
) -> None:
    house, table, trials = judged
    found = everything(table, TrialFilter(), order="battle")
    battles = [table.battle(trial) for trial in found]
    assert found == [trial for battle in dict.fromkeys(battles) for trial in sorted(battle)]
    assert [one.battle for one in table.page(TrialFilter(), order="battle").rows] == [min(battle) for battle in battles]
    assert table.statuses(TrialFilter()) == {"ok": len(trials) - 1, "pending": 1}
    (retried, *_) = house.column("select trial from attempt where fault <> 0 order by 1")
    starts = table.replies([trials[0], retried, trials[-1]], 7)
    assert starts.keys() == {trials[0], retried}
    assert (starts[trials[0]].reply, starts[trials[0]].fault) == ("reasons", None)
    assert (starts[retried].reply, bool(starts[retried].fault)) == ("reasons", True)


def test_answers_of_a_model_stand_by_their_wins_part_by_part(judged: tuple[House, TrialTable, list[int]]) -> None:
    house, table, _ = judged
    model = dict(house.all("select name, id from model"))["birch"]
    for order in ANSWER_ORDERS:
        whole = table.answers(model, order=order, limit=10)
        parts = [table.answers(model, order=order, limit=1, after=after)[0] for after in range(len(whole))]
        assert list(whole) == parts
        assert {one.instruction for one in whole} == set(QUESTIONS)
        for one in whole:
            wanted = TrialFilter(model=model, instruction=one.number)
            assert one.wins == table.count(replace(wanted, winner=model)) + table.count(replace(wanted, winner=0)) / 2
            assert one.verdicts == table.count(replace(wanted, status="ok"))
            assert one.trial == min(everything(table, wanted))
            assert one.start
    shares = [one.share for one in table.answers(model, order="best", limit=10)]
    assert shares == sorted(shares, key=lambda share: -(share or 0.0))


def test_an_unknown_status_or_order_is_refused(judged: tuple[House, TrialTable, list[int]]) -> None:
    _, table, _ = judged
    with pytest.raises(InputError, match=r"no status 'odd'; there are: ok"):
        table.count(TrialFilter(status="odd"))
    with pytest.raises(InputError, match="not sorted by 'odd'"):
        table.page(TrialFilter(), order="odd")
    assert len(STATUSES) == 8


def test_judges_disagree_and_the_repeats_of_one_do_not(house: House) -> None:
    house.fill(MODELS[:2], QUESTIONS[:2])
    numbers = house.register(("one", "two"))
    trials = house.plan(house.trials(list(numbers.values()), [("apple", "birch")], QUESTIONS[:2]))
    # on q1 the judges prefer different sides; on q2 the first does so with itself, in another repeat
    with house.store.commit() as commit:
        house.store.connection.execute("update trial set repeat = 2 where id = $1", [trials[5]])
        commit.written += 1
    labels = {0: 1, 1: 1, 2: -1, 3: -1, 4: 1, 5: -1, 6: 0, 7: 0}
    house.write("verdict", *[house.verdict(trials[place], label) for place, label in labels.items()])
    table = TrialTable(house.store, house.number())
    table.refresh()
    assert everything(table, TrialFilter(disagree=True)) == trials[:4]


def test_limits_keep_what_is_equal_to_them(judged: tuple[House, TrialTable, list[int]]) -> None:
    house, table, _ = judged
    for latency in (0.1, 0.2, 0.3):
        expected = house.one(
            "select count(*) from (select trial from attempt group by trial having sum(latency_ms) <= $1)",
            round(1000 * latency),
        )[0]
        assert table.count(TrialFilter(max_latency=latency)) - table.count(TrialFilter(status="pending")) == expected


def test_values_of_a_filter_are_never_sql(judged: tuple[House, TrialTable, list[int]]) -> None:
    _, table, _ = judged
    assert table.count(TrialFilter(judge="x' or true --", category="'; drop table trial; --")) == 0


def test_neighbours_are_those_of_the_filter(judged: tuple[House, TrialTable, list[int]]) -> None:
    _, table, _ = judged
    wanted = TrialFilter(judge="two")
    order = everything(table, wanted)
    found = table.neighbours(wanted, order="trial", descending=False, trial=order[3], without=[order[3], order[4]])
    assert found == (order[2], order[5])
    assert table.neighbours(wanted, order="trial", descending=True, trial=order[0], without=[]) == (order[1], None)


@pytest.mark.parametrize("near", [1, 2_000])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_neighbours_are_beside_it_in_every_order(
    judged: tuple[House, TrialTable, list[int]],
    monkeypatch: pytest.MonkeyPatch,
    order: str,
    descending: bool,
    near: int,
) -> None:
    monkeypatch.setattr("venire.storage.read.trial_table._NEAR", near)
    _, table, _ = judged
    wanted = TrialFilter(judge="two")
    rows = [row.trial for row in table.page(wanted, order=order, descending=descending, limit=1000).rows]
    beside = list(zip([None, *rows], rows, [*rows[1:], None], strict=False))
    for before, trial, after in [beside[0], *beside[1:-1:4], beside[-1]]:
        found = table.neighbours(wanted, order=order, descending=descending, trial=trial, without=[trial])
        assert found == (before, after), f"beside trial {trial}"


def test_neighbours_of_a_battle_are_found_among_those_that_are_near(
    judged: tuple[House, TrialTable, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The danger: each battle's page reads the whole table twice more."""
    _, table, trials = judged
    asked, run = [], table._run
    monkeypatch.setattr(table, "_run", lambda name, **values: asked.append(name) or run(name, **values))
    mine = table.battle(trials[len(trials) // 2])
    for order in ("trial", "battle"):
        found = table.neighbours(TrialFilter(), order=order, descending=False, trial=mine[0], without=mine)
        assert None not in found
    assert "trial_neighbour" not in asked


def test_a_battle_has_both_orders_and_all_judges(judged: tuple[House, TrialTable, list[int]]) -> None:
    house, table, trials = judged
    found = table.battle(trials[0])
    assert len(found) == 4
    asked = house.all("select distinct instruction, model_a, model_b from trial where id in (select unnest($1))", found)
    assert len(asked) == 1
    assert table.battle(10**9) == ()


def test_a_search_is_newest_first_and_ends(judged: tuple[House, TrialTable, list[int]]) -> None:
    _, table, trials = judged
    part = table.search("REASONS", TrialFilter(), below=None, seconds=5.0, limit=4)
    rows = [hit.row for hit in part.hits]
    assert rows == sorted(rows, reverse=True)
    assert part.next == rows[-1]
    rest = table.search("reasons", TrialFilter(), below=part.next, seconds=5.0, limit=1000)
    assert rest.next is None
    assert rest.searched == rest.rows
    assert {hit.trial for hit in (*part.hits, *rest.hits)} == set(trials[:-1])
    found = table.search("heliotrope", TrialFilter(judge="one"), below=None, seconds=5.0, limit=9).hits
    other = table.search("heliotrope", TrialFilter(judge="two"), below=None, seconds=5.0, limit=9).hits
    assert len(found) + len(other) == 1
    assert table.search("100%_wildcard", TrialFilter(), below=None, seconds=5.0, limit=9).hits == ()
    assert [hit.instruction for hit in table.search_texts("of q2", completions=False, limit=9)] == ["q2"]
    assert len(table.search_texts("birch says", completions=True, limit=9)) == 3


def test_rows_come_anew_when_verdicts_have_come_in(path: Path) -> None:
    with two_judges(path) as (house, table, trials):
        assert table.is_current
        house.write("attempt", house.attempt(trials[-1], text="late"))
        house.write("verdict", house.verdict(trials[-1], label=0))
        assert not table.is_current
        fresh = TrialTable(house.store, house.number())
        fresh.refresh()
        assert fresh.count(TrialFilter(status="pending")) == 0
        assert fresh.count(TrialFilter(winner=0)) == 1


def test_details_hold_attempts_in_order_and_models_as_shown(judged: tuple[House, TrialTable, list[int]]) -> None:
    house, _, trials = judged
    retried = house.one("select trial from attempt where fault <> 0 order by 1 limit 1")[0]
    (found,) = trial_details(house.store, house.number(), [retried])
    assert [(one.step, one.number, one.fault) for one in found.attempts] == [(1, 1, 1), (1, 2, 0)]
    shown = completions(house.store, found)
    assert [one.model for one in shown] == list(reversed(found.models) if found.swapped else found.models)
    assert instruction(house.store, found.instruction).turns == (f"What of {shown[0].text.split()[-1]}?",)
    assert trial_details(house.store, house.number(), []) == ()
    assert trial_details(house.store, house.number(), [trials[-1]])[0].status == "pending"
    with pytest.raises(InputError, match="no instruction 99"):
        instruction(house.store, 99)


def test_what_a_winner_is_called(judged: tuple[House, TrialTable, list[int]]) -> None:
    house, _, trials = judged
    for one in trial_details(house.store, house.number(), trials[:4]):
        a, b = sorted(one.models)
        label = house.one("select label from verdict where trial = $1", one.id)[0]
        assert one.winner == (a if label == 1 else b)


def test_activity_adds_up(judged: tuple[House, TrialTable, list[int]]) -> None:
    house, table, trials = judged
    judges = judge_activity(table)
    assert [one.judge for one in judges] == ["one", "two"]
    assert sum(one.planned for one in judges) == len(trials)
    assert sum(one.pending for one in judges) == 1
    assert sum(one.flips for one in judges) == table.count(TrialFilter(flipped=True)) // 2
    (route,) = route_activity(house.store, house.number())
    assert route.calls == house.one("select count(*) from attempt")[0]
    assert route.calls - route.answered == sum(route.faults.values())
    spans = calls_over_time(house.store, house.number())
    assert sum(sum(one.calls.values()) for one in spans) == route.calls
    assert START - timedelta(days=1) < spans[0].start < spans[0].end
    (agreed,) = pairwise_agreement(table)
    assert (agreed.one, agreed.other) == ("one", "two")
    # both orders of the second judge cancel out: it prefers neither side, but where one order is missing
    assert agreed.battles <= 1


def test_parquet_holds_the_rows_with_their_types(tmp_path: Any) -> None:
    import duckdb

    rows = [{"trial": 1, "judge": "a", "score": None, "flipped": True}, {"trial": 2, "judge": "b,\n", "score": 0.5}]
    lines = iter([b"".join(json.dumps(row).encode() + b"\n" for row in rows)])
    out = io.BytesIO(b"".join(parquet_parts(lines, ["trial", "judge", "score", "flipped"])))
    path = tmp_path / "rows.parquet"
    path.write_bytes(out.getvalue())
    with duckdb.connect() as connection:
        found = connection.execute(f"from '{path}'").fetchall()
        kinds = [row[1] for row in connection.execute(f"describe from '{path}'").fetchall()]
    assert found == [(1, "a", None, True), (2, "b,\n", 0.5, None)]
    assert kinds == ["BIGINT", "VARCHAR", "DOUBLE", "BOOLEAN"]
