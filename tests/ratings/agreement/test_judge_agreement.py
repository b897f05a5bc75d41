"""How judges agree with one another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from tests.ratings.conftest import make_table
from tests.ratings.simulated import campaign
from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.agreement.judge_agreement import judge_agreement
from venire.ratings.data.judgments import merge_orders


def spoiled(battles: Battles, judge: int, like: int | None, share: float) -> Battles:
    """One judge copies another in a share of its verdicts, or draws lots in them."""
    rng = np.random.default_rng(7)
    label = battles.label.copy()
    mine = np.flatnonzero((battles.judge == judge) & (rng.random(len(label)) < share))
    if like is None:
        label[mine] = rng.choice([-1, 1], len(mine))
    else:
        # The rows of a battle stand judge by judge, two orders each.
        label[mine] = battles.label[mine + 2 * (like - judge)]
    return replace(battles, label=label)


def test_agreement_by_hand() -> None:
    """Three battles of ten each, so that there are enough: j and k agree on two of three."""
    rows = []
    for n in range(10):
        for k, (one, other) in enumerate((("first", "first"), ("second", "second"), ("first", "second"))):
            rows += [("a", "b", one, "j", f"{n} {k}"), ("a", "b", other, "k", f"{n} {k}")]
    found = judge_agreement(merge_orders(make_table(rows)), replicates=0)
    assert [one.agreement for one in found.judges] == pytest.approx([1 / 3, 1 / 3])
    assert all(one.behind is None and one.behind_lo is None for one in found.judges)
    assert found.pairs == ()
    assert found.alpha.items == 30


def test_agreement_where_judges_saw_different_battles() -> None:
    """Against loops over battles: each judge beside the mean of those others that saw the battle."""
    battles = campaign(8, judges=4, instructions=60)
    seen = np.random.default_rng(0).random(len(battles.label) // 2).repeat(2) < 0.5
    names = ("model_a", "model_b", "judge", "instruction", "repeat", "swapped", "status", "label")
    judgments = merge_orders(replace(battles, **{name: getattr(battles, name)[seen] for name in names}))
    sides: dict[tuple[int, int, int], dict[int, float]] = {}
    for a, b, unit, judge, y in zip(
        judgments.model_a, judgments.model_b, judgments.instruction, judgments.judge, judgments.y, strict=True
    ):
        sides.setdefault((int(a), int(b), int(unit)), {})[int(judge)] = 2.0 * float(y) - 1.0
    found = {one.judge: one.agreement for one in judge_agreement(judgments, replicates=0).judges}
    for judge in range(4):
        pairs = [
            (said[judge], float(np.mean([side for other, side in said.items() if other != judge])))
            for said in sides.values()
            if judge in said and len(said) > 1
        ]
        own, rest = np.array(pairs).T
        assert found[f"judge {judge}"] == pytest.approx(own @ rest / np.sqrt(own @ own * (rest @ rest)))


def test_a_judge_that_draws_lots_is_behind_all_others() -> None:
    battles = spoiled(campaign(1, judges=5, instructions=100, ties=0.0), 3, None, 1.0)
    found = judge_agreement(merge_orders(battles))
    odd, rest = found.judges[0], found.judges[1:]
    assert odd.judge == "judge 3"
    assert abs(odd.agreement) < 0.12
    assert odd.behind_lo is not None
    assert odd.behind_lo > 0.2
    assert all((one.behind_lo or 0.0) <= 0.0 for one in rest)


def test_two_judges_that_share_more_than_all_do_are_named() -> None:
    battles = spoiled(campaign(2, judges=5, instructions=100, ties=0.0), 4, 1, 0.6)
    first = judge_agreement(merge_orders(battles)).pairs[0]
    assert first.judges == ("judge 1", "judge 4")
    assert first.excess_lo is not None
    assert first.excess > 0.1 > first.excess_lo > 0.05
    assert first.excess == pytest.approx(first.agreement - first.expected)


def test_judges_that_are_good_and_bad_are_not_alike_for_it() -> None:
    """Unequal judges of one quality: products of what each has of it explain all pairs."""
    battles = campaign(3, judges=6, instructions=300, ties=0.0)
    for judge, share in ((3, 0.5), (4, 0.7), (5, 0.8)):
        battles = spoiled(battles, judge, None, share)
    found = judge_agreement(merge_orders(battles))
    assert max(abs(pair.excess) for pair in found.pairs) < 0.07
    assert all((pair.excess_lo or 0.0) <= 0.0 for pair in found.pairs)


def test_a_judge_agrees_with_itself_as_its_noise_allows() -> None:
    sure = campaign(4, judges=2, repeats=3, strength=[9.0, 5.0, 1.0, -3.0, -7.0, -11.0], ties=0.0, noise=0.0)
    lots = spoiled(sure, 1, None, 1.0)
    found = {one.judge: one.again for one in judge_agreement(merge_orders(lots)).judges}
    assert found["judge 0"] == pytest.approx(1.0, abs=0.06)
    assert found["judge 1"] == pytest.approx(0.0, abs=0.1)


def test_turned_sides_and_shuffled_rows_change_nothing() -> None:
    battles = campaign(5, judges=4)
    order = np.random.default_rng(0).permutation(len(battles.label))
    names = ("judge", "instruction", "repeat", "status")
    other = replace(
        battles,
        model_a=battles.model_b[order],
        model_b=battles.model_a[order],
        swapped=~battles.swapped[order],
        label=-battles.label[order],
        **{name: getattr(battles, name)[order] for name in names},
    )
    one, two = judge_agreement(merge_orders(battles)), judge_agreement(merge_orders(other))
    assert one.judges == two.judges
    assert one.pairs == two.pairs
    renamed = tuple(f"m{9 - code}" for code in range(6))
    three = judge_agreement(merge_orders(replace(battles, models=renamed)))
    for before, after in zip(one.judges, three.judges, strict=True):
        assert before.agreement == pytest.approx(after.agreement)


def test_judges_without_battles_in_common_are_left_out_or_refused() -> None:
    with pytest.raises(InputError, match="fewer than two judges saw 30 battles"):
        judge_agreement(merge_orders(campaign(1, judges=1)))
    battles = campaign(1, judges=3)
    few = (battles.judge < 2) | (battles.instruction < 3)
    names = ("model_a", "model_b", "judge", "instruction", "repeat", "swapped", "status", "label")
    found = judge_agreement(merge_orders(replace(battles, **{name: getattr(battles, name)[few] for name in names})))
    assert found.left_out == ("judge 2",)


def test_recorded_judges_of_one_family_are_alike_and_one_judge_is_odd(shared_data: Path) -> None:
    path = shared_data / "devbench_repeats" / "judgments.parquet"
    with duckdb.connect() as connection:
        sql = "SELECT first, second, verdict, judge, instruction_id, repeat FROM read_parquet(?)"
        found = judge_agreement(merge_orders(make_table(connection.execute(sql, [str(path)]).fetchall())))
    assert found.judges[0].judge == "claude-3-haiku-20240307"
    assert found.judges[0].agreement == pytest.approx(0.1729, abs=1e-4)
    assert found.pairs[0].judges == ("gpt-3.5-turbo-0125", "gpt-3.5-turbo-1106")
    assert found.pairs[0].excess == pytest.approx(0.399, abs=1e-3)


def test_without_a_judgment_there_is_no_agreement_in_words() -> None:
    rows = campaign(1)
    nothing = merge_orders(replace(rows, status=np.ones_like(rows.status)))
    with pytest.raises(InputError, match="no judgment that could be read"):
        judge_agreement(nothing)
