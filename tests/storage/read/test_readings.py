"""A reading on its way in is beside the one in force, compared with it, and kept whole or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venire.arena.errors import Fault
from venire.storage.read import judge_quality
from venire.storage.read.readings import ReadingDraft, ReadVerdict, VerdictChange, last_faults

PAIRS = [("a", "b")]
QUESTIONS = ("q1", "q2", "q3")


@pytest.fixture
def judged(filled: Any) -> tuple[Any, list[int]]:
    """A store with six trials of one judge, all with a score of 1.5 for model A."""
    judge = filled.register()["j"]
    trials = filled.plan(filled.trials([judge], PAIRS, QUESTIONS))
    with filled.store.commit() as commit:
        commit.run("append_reading", parser="p-1", now=filled.store.clock.wall())
    filled.write("verdict", *(filled.verdict(trial, score=1.5) for trial in trials))
    return filled, trials


def read(
    trial: int, status: int, rule: str, label: int | None, score: float | None, *, unasked: bool = False
) -> ReadVerdict:
    return ReadVerdict(trial, status, rule, label, score, None, None, False, False, unasked)


def same(trial: int) -> ReadVerdict:
    return read(trial, 0, "rule", 1, 1.5)


def test_a_score_that_differs_is_a_difference_of_its_own(judged: tuple[Any, list[int]]) -> None:
    house, trials = judged
    with ReadingDraft(house.store, [1]) as draft:
        assert draft.trials().tolist() == trials
        draft.add([read(trials[0], 0, "rule", 1, 2.0), read(trials[1], 0, "other", 1, 1.5)])
        draft.add([read(trials[2], 1, "", None, None, unasked=True), *map(same, trials[3:])])
        found = draft.compare("p-1", examples=10)
    assert (found.verdicts, found.same, found.scores, found.unasked) == (6, 3, 1, 1)
    assert found.by_this_parser
    assert found.changes == (VerdictChange((0, 1, True), (1, None, True), 1),)
    assert sorted(found.rules) == [("rule", "", 1), ("rule", "other", 1)]
    assert [(one.judge, one.instruction, one.models) for one in found.examples] == [("j", "q2", ("a", "b"))]


def test_a_draft_that_is_not_kept_leaves_nothing_and_a_second_can_be_begun(judged: tuple[Any, list[int]]) -> None:
    house, trials = judged
    for _ in range(2):
        with ReadingDraft(house.store, [1]) as draft:
            draft.add([same(trial) for trial in trials])
    assert house.one("select count(*), max(reading) from verdict") == (6, 1)
    with ReadingDraft(house.store, [1]) as draft:
        draft.add([same(trial) for trial in trials])
        assert draft.keep("p-2") == 2
    assert house.all("select reading, count(*), sum(cost) from verdict group by all order by all") == [
        (1, 6, 480),
        (2, 6, 480),
    ]


def test_of_a_step_s_attempts_the_last_one_says_its_fault(judged: tuple[Any, list[int]]) -> None:
    house, (first, second, third, *_) = judged
    house.write(
        "attempt",
        house.attempt(first, 1, 1, text=None, fault=int(Fault.TRANSIENT)),
        house.attempt(first, 1, 2, text=None, fault=int(Fault.FILTERED)),
        house.attempt(second, 1, 1, text=None, fault=int(Fault.FILTERED)),
        house.attempt(second, 1, 2),
        house.attempt(third, 2, 1, text=None, fault=int(Fault.TOO_LONG)),
    )
    wanted = np.array([first, second], dtype=np.int64)
    assert last_faults(house.store, wanted) == {(first, 1): int(Fault.FILTERED)}


def test_what_another_campaign_paid_for_counts_as_served_to_each_that_plans_it(judged: tuple[Any, list[int]]) -> None:
    house, trials = judged
    house.write("attempt", *(house.attempt(trial, seconds=60.0 * n) for n, trial in enumerate(trials)))
    house.write("attempt", house.attempt(trials[0], number=2, text=None))
    judges = house.register(("k",), name="second")
    house.plan(house.trials([1], PAIRS, QUESTIONS[:1]), name="second")
    assert judges == {"k": 2}
    assert judge_quality.served_models(house.store, 2) == ()
    house.register(("renamed",), name="third")
    house.store.connection.execute("update campaign_judge set respondent = 1 where name = 'renamed'")
    house.plan(house.trials([1], PAIRS, QUESTIONS[:1]), name="third")
    assert judge_quality.served_models(house.store, 1) == (
        judge_quality.ServedModels(
            "j", (judge_quality.ServedModel("m-1", 6, "2026-01-01T00:00Z", "2026-01-01T00:05Z"),)
        ),
    )
    assert judge_quality.served_models(house.store, 3) == (
        judge_quality.ServedModels(
            "renamed", (judge_quality.ServedModel("m-1", 2, "2026-01-01T00:00Z", "2026-01-01T00:01Z"),)
        ),
    )
