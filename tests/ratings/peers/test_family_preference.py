"""Whether judges favour their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.ratings.conftest import make_table
from tests.ratings.simulated import campaign
from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.data.judgments import merge_orders
from venire.ratings.data.models import own_models
from venire.ratings.peers.self_preference import family_preference


def of_judges(battles: Battles, **own: str) -> NDArray[np.bool_]:
    """A table of own models from judges ("judge_0") and names of their models, apart by spaces."""
    kin = {name.replace("_", " "): models.split() for name, models in own.items()}
    return np.array([[model in kin.get(judge, ()) for model in battles.models] for judge in battles.judges])


def favoured(battles: Battles, judge: int, models: tuple[int, ...], share: float) -> Battles:
    label, rng = battles.label.copy(), np.random.default_rng(9)
    mine = (battles.judge == judge) & (rng.random(len(label)) < share)
    label[mine & np.isin(battles.model_a, models) & ~np.isin(battles.model_b, models)] = 1
    label[mine & np.isin(battles.model_b, models) & ~np.isin(battles.model_a, models)] = -1
    return replace(battles, label=label)


def test_favour_is_found_and_a_strong_family_alone_is_none() -> None:
    battles = campaign(2, strength=[2.0, 1.5, 0.0, 0.0, -0.5, -1.0], instructions=150, judges=4)
    own = of_judges(battles, judge_0="m00 m01", judge_1="m02")
    honest = family_preference(merge_orders(battles), own)
    assert [one.judge for one in honest] == ["judge 0", "judge 1"]
    assert all(one.excess.beyond(0.0) < 3.0 for one in honest)
    assert (honest[0].own or 0.0) > 0.75
    bent = family_preference(merge_orders(favoured(battles, 1, (2,), 0.3)), own)
    assert bent[1].excess.beyond(0.0) > 4.0
    assert 0.05 < (bent[1].excess.value or 0.0) < 0.25
    assert bent[1].excess.value == pytest.approx((bent[1].own or 0.0) - (bent[1].others or 0.0))


def test_judges_of_the_same_family_do_not_vouch_for_each_other() -> None:
    battles = favoured(favoured(campaign(3, instructions=80), 0, (2,), 0.5), 1, (2,), 0.5)
    alone = family_preference(merge_orders(battles), of_judges(battles, judge_0="m02"))[0]
    together = family_preference(merge_orders(battles), of_judges(battles, judge_0="m02", judge_1="m02"))[0]
    assert (together.excess.value or 0.0) > (alone.excess.value or 0.0)


def test_battles_within_the_family_do_not_count() -> None:
    rows = [("a", "b", "first", "j", "x"), ("a", "b", "second", "k", "x"), ("a", "c", "first", "j", "x")]
    rows += [("a", "c", "second", "k", "x")]
    battles = make_table(rows)
    (found,) = family_preference(merge_orders(battles), of_judges(battles, j="a b"))
    assert (found.own, found.others, found.excess.n) == (1.0, 0.0, 1)


def test_without_kin_or_without_others_there_is_nothing_to_say() -> None:
    battles, alone = campaign(1), campaign(1, judges=1)
    with pytest.raises(InputError, match="nobody can favour its own"):
        family_preference(merge_orders(battles), of_judges(battles))
    with pytest.raises(InputError, match="no other judge saw"):
        family_preference(merge_orders(alone), of_judges(alone, judge_0="m00"))


def test_recorded_judges_of_their_own_answers(shared_data: Path) -> None:
    path = shared_data / "vicuna80_peers" / "judgments.parquet"
    with duckdb.connect() as connection:
        sql = "SELECT first, second, verdict, judge, instruction_id, repeat FROM read_parquet(?) WHERE repeat = 1"
        judgments = merge_orders(make_table(connection.execute(sql, [str(path)]).fetchall()))
    found = {one.judge: one for one in family_preference(judgments, own_models(judgments.judges, judgments.models))}
    assert found["gpt-4"].excess.value == pytest.approx(0.1330, abs=1e-4)
    assert found["gpt-4"].excess.beyond(0.0) > 10.0
    assert found["claude-v1"].excess.beyond(0.0) < 1.0
