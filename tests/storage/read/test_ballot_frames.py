"""What ratings are handed of judges of lists: places in model terms, whatever the order shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from venire.arena.keys import respondent_key, trial_key
from venire.arena.records import Origin, PlannedTrial, Respondent, Status
from venire.storage.plans import plans
from venire.storage.read import frames

NAN, BELOW = float("nan"), float("inf")


def listed(house: Any, judge: int, instruction: str, models: str, repeat: int = 1) -> PlannedTrial:
    """A trial that shows these models' answers in this order."""
    answers = plans.catalogue(house.store, sorted(models))
    number, key = answers.instructions[instruction]
    shown = [answers.completions[model, instruction] for model in models]
    digest = respondent_key(Respondent(str(judge), "listwise", Origin.REAL))
    keys = tuple(one[1] for one in shown)
    return PlannedTrial(trial_key(digest, key, keys, repeat), 1, judge, number, tuple(one[0] for one in shown), repeat)


def verdict(trial: int, places: list[int] | None, status: Status = Status.OK) -> tuple[Any, ...]:
    return (trial, 0, status, "all", None, None, None, places, False, False, 0)


def test_places_are_those_of_models_and_what_was_not_read_ranks_nothing(filled: Any) -> None:
    judges = filled.register(("k", "j"))
    trials = [
        listed(filled, judges["k"], "q2", "zab"),
        listed(filled, judges["k"], "q1", "bza"),
        listed(filled, judges["j"], "q2", "ab", repeat=2),
        listed(filled, judges["j"], "q1", "abz"),
        listed(filled, judges["j"], "q3", "abz"),
    ]
    numbers = filled.plan(trials)
    said = [([3, 1, 2], Status.OK), ([1, 0, 0], Status.OK), ([2, 1], Status.OK), (None, Status.REFUSED)]
    filled.write("verdict", *(verdict(number, *one) for number, one in zip(numbers, said, strict=False)))
    found, status = frames.ballots(filled.store, filled.number())
    assert (found.models, found.judges, found.instructions) == (("a", "b", "z"), ("j", "k"), ("q1", "q2"))
    assert (found.judge.tolist(), found.instruction.tolist()) == ([0, 0, 1, 1], [0, 1, 0, 1])
    assert (found.repeat.tolist(), status.tolist()) == ([1, 2, 1, 1], [Status.REFUSED, 0, 0, 0])
    np.testing.assert_array_equal(found.rank, [[BELOW, BELOW, BELOW], [2, 1, NAN], [BELOW, 1, BELOW], [1, 2, 3]])
    kinds = {name: getattr(found, name).dtype for name in ("judge", "instruction", "repeat", "rank")}
    assert kinds == {"judge": np.int32, "instruction": np.int32, "repeat": np.int32, "rank": np.float64}
    assert status.dtype == np.int8


def test_a_campaign_without_ballots_has_none(filled: Any) -> None:
    filled.register(("j",))
    found, status = frames.ballots(filled.store, filled.number())
    assert (len(found), len(status), found.models) == (0, 0, ())
