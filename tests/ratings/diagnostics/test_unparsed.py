"""Verdicts that were not read are counted, and it is seen whose they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.arena.records import Status
from venire.ratings.diagnostics.unparsed import unparsed_replies, wilson_lower_bound


def draw(seed: int, *, judge_loss: tuple[float, ...] = (0.02, 0.02), model_loss: float = 0.0) -> Battles:
    rng = np.random.default_rng(seed)
    size = 3000
    a = rng.integers(0, 5, size)
    b = (a + rng.integers(1, 5, size)) % 5
    judge = rng.integers(0, len(judge_loss), size)
    chance = np.array(judge_loss)[judge] + model_loss * ((a == 2) | (b == 2))
    lost = rng.random(size) < chance
    return Battles(
        models=tuple("abcde"),
        judges=tuple(f"j{code}" for code in range(len(judge_loss))),
        instructions=tuple(f"i{code}" for code in range(100)),
        model_a=a.astype(np.int32),
        model_b=b.astype(np.int32),
        judge=judge.astype(np.int32),
        instruction=rng.integers(0, 100, size).astype(np.int32),
        repeat=np.ones(size, dtype=np.int32),
        swapped=np.zeros(size, dtype=np.bool_),
        status=np.where(lost, Status.REFUSED, Status.OK).astype(np.int8),
        label=np.zeros(size, dtype=np.int8),
    )


def test_shares_are_counted_by_judge_model_and_status() -> None:
    battles = draw(0, judge_loss=(0.1, 0.0))
    found = unparsed_replies(battles)
    assert found.share == pytest.approx(float((battles.status == Status.REFUSED).mean()))
    assert [row.name for row in found.judges] == ["j0", "j1"]
    assert found.judges[0].statuses == {"refused": int((battles.status == Status.REFUSED).sum())}
    assert found.judges[1].statuses == {}
    assert found.judges_p < 1e-6
    assert sum(row.verdicts for row in found.models) == 2 * len(battles.status)


def test_a_model_that_loses_verdicts_is_named_and_chance_is_not() -> None:
    clean = [unparsed_replies(draw(seed)).p_value for seed in range(60)]
    assert sum(p < 0.05 for p in clean) <= 6
    planted = [unparsed_replies(draw(seed, model_loss=0.05)) for seed in range(10)]
    assert max(one.p_value for one in planted) < 0.01
    assert {one.models[0].name for one in planted} == {"c"}


def test_distances_of_clean_models_scatter_by_one_standard_error() -> None:
    z = [row.z for seed in range(60) for row in unparsed_replies(draw(seed, judge_loss=(0.1, 0.1))).models]
    assert np.std(np.array(z, dtype=float)) == pytest.approx(1.0, abs=0.12)


def test_a_model_that_happens_to_lose_none_of_a_few_is_not_told_apart() -> None:
    battles = draw(8, judge_loss=(0.0,))
    away = np.flatnonzero((battles.model_a != 2) & (battles.model_b != 2))[:8]
    status = battles.status.copy()
    status[away] = Status.UNREADABLE
    assert unparsed_replies(replace(battles, status=status)).p_value > 0.05


def test_a_judge_that_loses_more_and_sees_one_model_more_is_no_loss_of_the_model() -> None:
    battles = draw(4, judge_loss=(0.2, 0.0))
    often = (battles.model_a == 0) | (battles.model_b == 0)
    rng = np.random.default_rng(1)
    kept = ~(often & (battles.judge == 1)) | (rng.random(len(often)) < 0.2)
    skewed = Battles(
        battles.models,
        battles.judges,
        battles.instructions,
        *(
            getattr(battles, name)[kept]
            for name in ("model_a", "model_b", "judge", "instruction", "repeat", "swapped", "status", "label")
        ),
    )
    found = unparsed_replies(skewed)
    model = next(row for row in found.models if row.name == "a")
    assert model.share > 1.3 * found.share
    assert model.z is not None
    assert abs(model.z) < 3.0


def test_a_bound_of_a_share_is_wilson_s_and_few_verdicts_say_nothing() -> None:
    assert wilson_lower_bound(10, 100, 0.975) == pytest.approx(0.05523, abs=1e-4)
    assert wilson_lower_bound(10, 19, 0.99) == 0.0
    assert wilson_lower_bound(0, 50, 0.99) == 0.0
