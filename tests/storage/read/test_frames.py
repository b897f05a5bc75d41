"""What ratings and reports are handed: names in order, codes that fit them, sums that add up."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venire.arena.records import Origin, Status
from venire.storage.read import frames
from venire.storage.read.frames import CampaignSpending, JudgeRow, Progress
from venire.storage.store.opening import open_store
from venire.storage.transfer import importing

PAIRS = [("a", "b"), ("a", "z"), ("b", "z")]
QUESTIONS = ("q1", "q2", "q3")

Named = tuple[str, str, str, str, bool, int, int]


def named(house: Any, name: str = "c") -> list[Named]:
    """Every row of the arrays in words: model A, model B, judge, instruction, swapped, status, label."""
    found = frames.battles(house.store, house.number(name))
    columns = (found.model_a, found.model_b, found.judge, found.instruction, found.swapped, found.status, found.label)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return sorted(
        (found.models[a], found.models[b], found.judges[j], found.instructions[i], swapped, status, label)
        for a, b, j, i, swapped, status, label in rows
    )


@pytest.fixture
def planned(filled: Any) -> tuple[Any, list[int]]:
    """Judges j and k, one pair on one instruction in both orders by each: four trials, then 32 more."""
    judges = filled.register(("k", "j"))
    trials = filled.trials([judges["j"], judges["k"]], PAIRS, QUESTIONS)
    return filled, filled.plan(trials)


def test_names_are_sorted_and_every_code_stands_for_its_own_name(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.write("verdict", *(house.verdict(number, (n % 3) - 1) for n, number in enumerate(trials)))
    found = frames.battles(house.store, 1)
    assert (found.models, found.judges, found.instructions) == (("a", "b", "z"), ("j", "k"), QUESTIONS)
    assert found.ordered
    order = [
        (a, b, judge, name, swapped)
        for name in QUESTIONS
        for a, b in PAIRS
        for judge in "jk"
        for swapped in (False, True)
    ]
    assert named(house) == sorted((*row, 0, (n % 3) - 1) for n, row in enumerate(order))


def test_arrays_have_the_types_of_the_record(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.write("verdict", house.verdict(trials[0]), house.verdict(trials[1], None, status=1))
    found = frames.battles(house.store, 1)
    expected: dict[str, Any] = dict.fromkeys(("model_a", "model_b", "judge", "instruction", "repeat"), np.int32)
    expected |= {"status": np.int8, "label": np.int8, "swapped": np.bool_}
    assert {name: getattr(found, name).dtype for name in expected} == expected
    assert not any(np.ma.isMaskedArray(getattr(found, name)) for name in ("model_a", "status", "label", "swapped"))


def test_the_numbers_that_things_have_in_a_store_change_nothing(tmp_path: Path, house: Any) -> None:
    found = set()
    for turn, models in enumerate(permutations(("a", "b", "z"))):
        with open_store(tmp_path / f"{turn}.duckdb") as store:
            other = type(house)(store)
            other.fill(models, QUESTIONS if turn % 2 else QUESTIONS[::-1])
            judges = other.register(("j", "k") if turn % 3 else ("k", "j"))
            trials = other.trials([judges["j"], judges["k"]], PAIRS, QUESTIONS)
            numbers = other.plan(trials if turn % 2 else trials[::-1])
            in_order = numbers if turn % 2 else numbers[::-1]
            other.write("verdict", *(other.verdict(one, (n % 3) - 1) for n, one in enumerate(in_order)))
            found.add(tuple(named(other)))
    assert len(found) == 1


def test_only_models_judges_and_instructions_with_verdicts_are_named(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.write("verdict", house.verdict(trials[0]))
    found = frames.battles(house.store, 1)
    assert (found.models, found.judges, found.instructions) == (("a", "b"), ("j",), ("q1",))


def test_a_campaign_without_verdicts_has_empty_arrays(planned: tuple[Any, list[int]]) -> None:
    house, _ = planned
    found = frames.battles(house.store, 1)
    assert (found.models, found.judges, found.instructions) == ((), (), ())
    assert len(found.model_a) == len(found.label) == len(found.swapped) == 0


def test_scores_are_a_minus_b_where_there_are_any(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.write("verdict", house.verdict(trials[0], 1), house.verdict(trials[4], None, status=int(Status.REFUSED)))
    assert frames.battles(house.store, 1).score is None
    house.write("verdict", house.verdict(trials[1], -1, score=-2.5), house.verdict(trials[2], 0, score=0.0))
    found = frames.battles(house.store, 1)
    assert found.score is not None
    by_label = dict(
        zip(zip(found.label.tolist(), found.status.tolist(), strict=True), found.score.tolist(), strict=True)
    )
    assert (by_label[-1, 0], by_label[0, 0]) == (-2.5, 0.0)
    assert np.isnan([by_label[1, 0], by_label[0, int(Status.REFUSED)]]).all()


def test_a_label_is_a_minus_b_in_both_orders_and_in_the_view_a_winner(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.write(
        "verdict",
        house.verdict(trials[0], 1, score=2.5),
        house.verdict(trials[1], 1),  # the same battle with B shown first, and A the winner again
        house.verdict(trials[2], -1),
        house.verdict(trials[3], 0, score=0.0),
        house.verdict(trials[4], None, status=int(Status.REFUSED)),
    )
    assert named(house) == [
        ("a", "b", "j", "q1", False, 0, 1),
        ("a", "b", "j", "q1", True, 0, 1),
        ("a", "b", "k", "q1", False, 0, -1),
        ("a", "b", "k", "q1", True, 0, 0),
        ("a", "z", "j", "q1", False, int(Status.REFUSED), 0),
    ]
    columns = (
        "campaign, judge, instruction_id, model_a, model_b, swapped, repeat, status, winner, score_difference, cost"
    )
    assert house.all(f"select {columns} from battle order by trial") == [
        ("c", "j", "q1", "a", "b", False, 1, "ok", "model_a", 2.5, 80),
        ("c", "j", "q1", "a", "b", True, 1, "ok", "model_a", None, 80),
        ("c", "k", "q1", "a", "b", False, 1, "ok", "model_b", None, 80),
        ("c", "k", "q1", "a", "b", True, 1, "ok", "tie", 0.0, 80),
        ("c", "j", "q1", "a", "z", False, 1, "refused", None, None, 80),
    ]


def test_the_battle_view_has_a_word_for_every_status(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    rows = [house.verdict(trials[int(s)], 1 if s is Status.OK else None, status=int(s)) for s in Status]
    house.write("verdict", *rows)
    assert house.column("select status from battle order by trial") == [status.name.lower() for status in Status]


def test_a_newer_reading_of_a_trial_is_the_one_that_counts(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.write("verdict", house.verdict(trials[0], -1, reading=2))
    house.write("verdict", house.verdict(trials[0], 1, reading=1), house.verdict(trials[1], 1))
    house.write("verdict", house.verdict(trials[1], 0))
    assert [row[-1] for row in named(house)] == [-1, 0]
    assert frames.progress(house.store, 1) == Progress(36, 2, 0)


def test_a_campaign_shows_what_is_in_force_of_its_own_plan(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.register(("j",), name="other")
    house.plan(house.trials([2], PAIRS[:1], QUESTIONS[:1]), name="other")  # j has number 2: k came first
    house.write("verdict", *(house.verdict(number) for number in trials))
    assert len(named(house)) == 36
    assert named(house, "other") == [("a", "b", "j", "q1", swapped, 0, 1) for swapped in (False, True)]
    house.plan(house.trials([1], PAIRS[1:2], QUESTIONS[:1]))
    assert named(house) == [("a", "z", "k", "q1", swapped, 0, 1) for swapped in (False, True)]
    assert frames.progress(house.store, 1) == Progress(2, 2, 0)


def test_progress_adds_up(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    assert frames.progress(house.store, 1) == Progress(36, 0, 0)
    house.write("verdict", *(house.verdict(number) for number in trials[:5]))
    house.write("failure", *((number, 1, 3, False) for number in trials[4:8]))  # one settled after it had failed
    house.write("failure", (trials[7], 1, 3, True))
    found = frames.progress(house.store, 1)
    assert (found, found.missing) == (Progress(36, 5, 2), 29)
    assert found.missing == house.one("select count(*) from missing where campaign = 1")[0]


def test_accounts_add_up_and_count_unknown_costs_at_the_reservation(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    assert frames.campaign_spending(house.store, 1) == CampaignSpending()
    house.write(
        "attempt",
        house.attempt(trials[0], 1, 1, text=None, reserved=1_000, cost=None, waited=20),
        house.attempt(trials[0], 1, 2, reserved=1_000, cost=300, tokens=(11, 7), waited=5),
        house.attempt(trials[1], 1, 1, reserved=500, cost=None, tokens=(13, 2)),
        house.attempt(trials[2], 1, 1, text=None, reserved=500, cost=0),
        house.attempt(trials[3], 1, 1, campaign=2, cost=9_000),
    )
    found = frames.campaign_spending(house.store, 1)
    assert found == CampaignSpending(
        nano=1_800,
        known=300,
        unknown=1_500,
        calls=4,
        answered=2,
        wait_ms=25,
        input_tokens=24,
        output_tokens=9,
        unanswered=1_000,
        unanswered_calls=1,
    )
    assert found.nano == found.known + found.unknown
    assert frames.campaign_spending(house.store, 2).nano == 9_000


def test_accounts_hold_more_money_than_an_integer_of_32_bits(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    dear = 10**15  # a million dollars
    house.write("attempt", *(house.attempt(number, reserved=dear, cost=dear) for number in trials))
    assert frames.campaign_spending(house.store, 1).nano == 36 * dear


def test_judges_come_by_name_with_what_they_are(house: Any) -> None:
    house.register(("second", "first"))
    assert frames.judges(house.store, 1) == (
        JudgeRow("first", 2, "model of first", "two-stage", Origin.REAL, None, None),
        JudgeRow("second", 1, "model of second", "two-stage", Origin.REAL, None, None),
    )


def test_campaigns_come_in_the_order_they_were_started(planned: tuple[Any, list[int]]) -> None:
    house, _ = planned
    house.register(name="a later one")
    found = frames.campaigns(house.store)
    assert [(one.id, one.name, one.seed, one.planned) for one in found] == [
        (1, "c", 7, True),
        (2, "a later one", 7, False),
    ]
    assert all(one.started_at.endswith("+00") for one in found)


def test_ratings_and_families_are_told_where_they_are_known(filled: Any) -> None:
    importing.set_families(filled.store, {"z": "zs"})
    assert frames.families(filled.store) == {"z": "zs"}
    assert frames.elos(filled.store) == {}
