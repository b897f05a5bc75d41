"""Between rounds the planner is given finite numbers, and the user what is known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ratings.simulated import campaign
from venire.arena.battles import Battles
from venire.arena.campaigns import StopSettings
from venire.arena.errors import InputError
from venire.arena.planning import Steering
from venire.feedback import RatingFeedback
from venire.ratings.data.judgments import select_battles
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import rate


def steerer(table: Battles, *more: str) -> Steering:
    return RatingFeedback((*table.models, *more), StopSettings(half_width=50.0))


def test_estimates_are_finite_for_every_model_with_a_verdict() -> None:
    table = campaign(1, instructions=2, battles=2)
    found = steerer(table, "zz").estimate(table)
    met = np.isin(np.arange(7), np.concatenate([table.model_a, table.model_b]))
    assert found.models == (*table.models, "zz")
    assert np.isfinite(found.logits[met]).all()
    assert np.isnan(found.logits[~met]).all()
    assert (found.se[met] > 0.0).all()
    assert (found.se[met] < 1.0).all()
    assert np.isnan(found.se[~met]).all()
    assert found.judges.keys() == {"judge 0", "judge 1", "judge 2"}
    assert any(one.elo is None for one in steerer(table).analyse(table, 0).models)


def test_before_the_first_verdict_nothing_is_known() -> None:
    table = campaign(2)
    found = steerer(table).estimate(select_battles(table, np.zeros(0, dtype=np.intp)))
    assert found.models == table.models
    assert np.isnan(found.logits).all()
    assert np.isnan(found.se).all()
    assert found.judges == {}


def test_with_many_verdicts_estimates_are_the_ratings_looked_at() -> None:
    table = campaign(3, instructions=800)
    elo = np.array([one.elo for one in steerer(table).analyse(table, 0).models], dtype=np.float64)
    logits = steerer(table).estimate(table).logits
    assert np.allclose(logits - logits.mean(), (elo - 1000.0) * np.log(10.0) / 400.0, atol=0.01)


def test_a_look_knows_what_was_spent_and_stops_by_its_rule() -> None:
    table = campaign(4, instructions=800)
    now = steerer(table).analyse(table, 123)
    assert now.nano == 123
    assert now.stop is not None
    assert now.half_width is not None
    assert now.half_width < 50.0


def test_a_rule_that_can_never_hold_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(InputError, match="top is 3, of 3 models"):
        RatingFeedback(("a", "b", "c"), StopSettings(top=3))


def test_looks_at_pairs_that_a_policy_chose_are_those_of_all_pairs_alike() -> None:
    table = campaign(5, instructions=100)
    for even, method in ((False, "bradley-terry"), (True, "even-pairs")):
        board = rate(table, method, Options())
        rows = RatingFeedback(table.models, StopSettings(), even).analyse(table, 0).models
        assert np.allclose([one.elo or 0.0 for one in rows], board.ratings.elo, rtol=0.0, atol=1e-9)
        assert np.allclose([one.se or 0.0 for one in rows], board.se, rtol=0.0, atol=1e-9)
        assert all((one.high or 0.0) - (one.elo or 0.0) >= 1.96 * (one.se or 0.0) for one in rows)
