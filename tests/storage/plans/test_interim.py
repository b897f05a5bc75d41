"""What was known after a round is read back as it was."""

from __future__ import annotations

import json
import math
from typing import Any

from venire.arena.planning import InterimAnalysis, InterimRating
from venire.storage.plans import plans, trial_states

NOT_KNOWN = InterimRating("b", None, None, None, None, None, None, 0, starved=True)
LOOK = InterimAnalysis(
    12, 24, 3, 10**12,
    (InterimRating("a", 1012.25, 0.1 + 0.2, 990.0, 1030.5, 980.0, 1040.0, 7), NOT_KNOWN), 31.5, 2, 0.9,
    "enough is known", ("few instructions",),
)  # fmt: skip


def rounds(house: Any, *phases: str, follows: bool = True) -> list[Any]:
    """A round of two trials for each phase; all trials that there are."""
    house.fill(("ant", "bee"), ("q1", "q2", "q3"))
    trials: list[Any] = house.trials([house.register()["j"]], [("ant", "bee")], ["q1", "q2", "q3"])
    for number, phase in enumerate(phases):
        part = iter(trials[2 * number : 2 * number + 2])
        later = follows and number > 0
        plans.append_round(house.store, 1, part, policy="p", seed=1, equal_texts=[0], phase=phase, follows=later)
    return trials


def test_a_look_is_read_back_to_the_last_digit(house: Any) -> None:
    rounds(house, "first", "second")
    plans.add_interim(house.store, 1, 1, LOOK, settled=4)
    plans.add_interim(house.store, 1, 2, InterimAnalysis(1, 2, 3, 4))
    assert plans.interim_analyses(house.store, 1) == ((1, LOOK), (2, InterimAnalysis(1, 2, 3, 4)))
    assert plans.last_interim(house.store, 1) == (2, 0, InterimAnalysis(1, 2, 3, 4))
    columns = house.store.connection.execute(
        "select round, settled, battles, verdicts, nano, stop from look"
    ).fetchall()
    assert columns == [(1, 4, 12, 24, 10**12, "enough is known"), (2, 0, 1, 2, 4, None)]


def test_what_is_no_number_or_without_end_is_not_known(house: Any) -> None:
    rounds(house, "first")
    wild = InterimRating("a", math.nan, math.inf, -math.inf, math.inf, math.nan, math.inf, 1)
    plans.add_interim(house.store, 1, 1, InterimAnalysis(1, 1, 1, 1, (wild,), math.inf))
    ((_, found),) = plans.interim_analyses(house.store, 1)
    assert found == InterimAnalysis(1, 1, 1, 1, (InterimRating("a", None, None, None, None, None, None, 1),), None)
    ((figures,),) = house.store.connection.execute("select figures from look").fetchall()
    assert "NaN" not in figures
    assert "Infinity" not in figures
    json.loads(figures)


def test_looks_at_a_plan_out_of_force_are_kept_and_not_told(house: Any) -> None:
    rounds(house, "first", "second", follows=False)
    plans.add_interim(house.store, 1, 1, LOOK)
    assert plans.interim_analyses(house.store, 1) == ()
    assert plans.last_interim(house.store, 1) is None
    plans.add_interim(house.store, 1, 2, LOOK)
    assert plans.interim_analyses(house.store, 1) == ((2, LOOK),)


def test_rounds_that_follow_stay_in_force_together_and_plan_nothing_twice(house: Any) -> None:
    trials = rounds(house, "first", "second")
    more: dict[str, Any] = {"policy": "p", "seed": 1, "equal_texts": [0], "phase": None, "follows": True}
    assert plans.append_round(house.store, 1, iter(trials), **more) == 2
    found = plans.rounds(house.store, 1)
    assert [(one.number, one.phase, one.trials) for one in found] == [(1, "first", 2), (2, "second", 2), (3, "plan", 2)]
    assert len(set(house.column("select trial from planned"))) == 6
    assert len(trial_states.pending_trials(house.store, 1).trials) == 6
