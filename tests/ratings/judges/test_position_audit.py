"""One battle many times in each order: what the place does to the verdict."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from pathlib import Path

import duckdb
import pytest

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.judges.position import position_audit, position_audits

Table = Callable[..., Battles]


def asked(first_order: str, second_order: str) -> tuple[list[float], list[bool]]:
    """Verdicts for A (`a`), B (`b`) or a tie (`t`), A shown first and then B."""
    value = {"a": 1.0, "b": 0.0, "t": 0.5}
    return (
        [value[letter] for letter in first_order + second_order],
        [False] * len(first_order) + [True] * len(second_order),
    )


def test_an_audit_by_hand() -> None:
    """A wins 8 of 10 when first and 3 of 9 when second, with one tie."""
    found = position_audit(*asked("aaaaaaaabb", "aaabbbbbbt"))
    assert (found.won, found.lost, found.ties) == ((8, 3), (2, 6), (0, 1))
    assert found.first == pytest.approx((0.8, 6 / 9))
    assert found.flip_rate == pytest.approx((8 * 6 + 2 * 3) / 100)
    mean = (0.8 + 1 / 3) / 2
    assert found.between_orders == pytest.approx((0.8 - 1 / 3) ** 2 / (4 * mean * (1 - mean)))
    chances = [comb(10, k) * comb(9, 11 - k) / comb(19, 11) for k in range(2, 11)]
    seen = comb(10, 8) * comb(9, 3) / comb(19, 11)
    assert found.p_value == pytest.approx(sum(chance for chance in chances if chance <= seen * (1 + 1e-7)))


def test_a_judge_of_places_alone_has_all_its_variance_between_the_orders() -> None:
    found = position_audit(*asked("a" * 10, "b" * 10))
    assert (found.first, found.flip_rate, found.between_orders) == ((1.0, 1.0), 1.0, 1.0)
    assert found.p_value == pytest.approx(2 / comb(20, 10))


def test_a_judge_that_always_names_one_model_has_no_variance_to_share_out() -> None:
    found = position_audit(*asked("a" * 10, "a" * 10))
    assert (found.flip_rate, found.between_orders, found.p_value) == (0.0, None, 1.0)


def test_ties_alone_say_nothing() -> None:
    found = position_audit(*asked("ttt", "ttt"))
    assert (found.first, found.between_orders, found.p_value, found.flip_rate) == ((None, None), None, None, 0.0)
    assert "none" in found.summary()


def test_one_order_alone_says_nothing_of_the_other() -> None:
    found = position_audit(*asked("aab", ""))
    assert (found.flip_rate, found.p_value, found.between_orders) == (None, None, None)
    assert found.first == pytest.approx((2 / 3, None))


def test_battles_with_enough_repeats_are_audited_one_by_one(table: Table) -> None:
    rows = [("b", "a", verdict, "j", "x", n) for n, verdict in enumerate(["first", "first", "tie"])]
    rows += [("a", "b", verdict, "j", "x", n) for n, verdict in enumerate(["first", "second", None])]
    rows += [("a", "b", "first", "j", "y", 0), ("b", "a", "first", "j", "y", 0)]
    (found,) = position_audits(table(rows))
    assert (found.judge, found.model_a, found.model_b, found.instruction) == ("j", "a", "b", "x")
    assert (found.audit.won, found.audit.lost, found.audit.ties) == ((1, 0), (1, 2), (0, 1))
    assert len(position_audits(table(rows), least=1)) == 2


def test_swapping_models_swaps_orders_and_winners() -> None:
    y, swapped = asked("aaabt", "abbbb")
    found = position_audit(y, swapped)
    turned = position_audit([1 - value for value in y], [not back for back in swapped])
    assert turned.won == found.lost[::-1]
    assert turned.first == found.first[::-1]
    assert (turned.flip_rate, turned.p_value) == pytest.approx((found.flip_rate, found.p_value))
    assert turned.between_orders == pytest.approx(found.between_orders)


def test_bad_columns_are_named(table: Table) -> None:
    with pytest.raises(InputError, match="one value of each a verdict"):
        position_audit([1.0], [True, False])
    with pytest.raises(InputError, match="outcome, row 1"):
        position_audit([1.0, 2.0], [True, False])
    with pytest.raises(InputError, match="which completion came first"):
        position_audits(table([("a", "b", "first")], ordered=False))


def test_audits_of_recorded_repeats_add_up_to_the_flips_on_record(shared_data: Path, table: Table) -> None:
    """Three repeats in each order, no ties: the mean over battles of first shares is the judge's first share."""
    path = shared_data / "devbench_repeats" / "judgments.parquet"
    with duckdb.connect() as connection:
        sql = "SELECT first, second, verdict, judge, instruction_id, repeat FROM read_parquet(?)"
        audits = position_audits(table(connection.execute(sql, [str(path)]).fetchall()))
    assert len(audits) == 9 * 72
    for judge, first in (("claude-3-haiku-20240307", 0.1019), ("gpt-4-0613", 0.5347), ("gemini-pro", 0.5486)):
        mine = [found.audit for found in audits if found.judge == judge]
        assert len(mine) == 72
        shares = [share for audit in mine for share in audit.first if share is not None]
        assert sum(shares) / len(shares) == pytest.approx(first, abs=1e-4)
