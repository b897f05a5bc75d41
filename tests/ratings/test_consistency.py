"""Consistency of judges, against hand-made cases and against the formula written out in plain loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.battles import Battles
from venire.ratings.consistency import JudgeConsistency, consistency
from venire.ratings.merging import merge_orders

Table = Callable[..., Battles]


def only(battles: Battles, **options: Any) -> JudgeConsistency:
    found = consistency(battles, **options)
    assert len(found.judges) == 1
    return found.judges[0]


def test_one_matchup_by_hand(table: Table) -> None:
    """u is 1 (both orders agree), 0.75 (a win and a tie) and 0.5 (a flip): p = 0.75, decisive (1 + 1 + 0.5) / 3."""
    rows = [
        ("a", "b", "first", "j", "x"),
        ("b", "a", "second", "j", "x"),
        ("a", "b", "tie", "j", "y"),
        ("b", "a", "second", "j", "y"),
        ("a", "b", "first", "j", "z"),
        ("b", "a", "first", "j", "z"),
    ]
    found = only(table(rows))
    assert found.consistency == pytest.approx(1 - 4 * 0.75 * 0.25)
    assert found.decisive == pytest.approx(1 - 4 * (5 / 6) * (1 / 6))
    assert (found.ties, found.flips, found.first) == pytest.approx((1 / 6, 1 / 3, 3 / 5))
    assert (found.verdicts, found.matchups, found.readable) == (6, 1, 1.0)


def test_repeats_are_averaged_within_an_order_before_the_orders_are(table: Table) -> None:
    """Three repeats one way and one the other weigh the same: u = (2/3 + 0) / 2."""
    rows = [("a", "b", verdict, "j", "x", n) for n, verdict in enumerate(["first", "first", "second"])]
    found = only(table([*rows, ("b", "a", "first", "j", "x", 0)]))
    assert found.consistency == pytest.approx(1 - 4 * (1 / 3) * (2 / 3))


def test_instructions_weigh_the_same_whatever_was_readable(table: Table) -> None:
    rows = [("a", "b", "first", "j", "x"), ("b", "a", None, "j", "x"), ("a", "b", "second", "j", "y")]
    found = only(table([*rows, ("b", "a", "first", "j", "y")]))
    assert found.consistency == pytest.approx(0.0)
    assert found.readable == pytest.approx(0.75)
    assert found.flips == 0.0


def test_matchups_weigh_the_same_whatever_their_size(table: Table) -> None:
    rows = [("a", "b", "first", "j", item) for item in "pqrstu"] + [("a", "c", "tie", "j", "p")]
    assert only(table(rows)).consistency == pytest.approx(0.5)
    assert only(table(rows)).decisive == pytest.approx(1.0)
    assert only(table(rows)).decisive_matchups == 1


def test_a_judge_of_ties_alone_is_inconsistent_and_has_no_decisive_score(table: Table) -> None:
    found = only(table([("a", "b", "tie", "j", item) for item in "xyz"]))
    assert (found.consistency, found.decisive, found.first, found.ties) == (0.0, None, None, 1.0)
    assert (found.decisive_lo, found.decisive_hi) == (None, None)


def test_a_judge_nobody_could_read_has_no_score(table: Table) -> None:
    found = only(table([("a", "b", None), ("b", "a", None)]))
    assert (found.consistency, found.readable, found.ties, found.verdicts) == (None, 0.0, None, 0)


def test_without_orders_there_is_no_first_place_and_no_flip(table: Table) -> None:
    found = only(table([("a", "b", "first", "j", "x"), ("b", "a", "second", "j", "y")], ordered=False))
    assert (found.consistency, found.first, found.flips) == (1.0, None, None)


def test_without_instructions_verdicts_are_averaged(table: Table) -> None:
    rows = [("a", "b", "first")] * 3 + [("a", "b", "second")]
    found = consistency(table(rows, named=False))
    assert found.judges[0].consistency == pytest.approx(1 - 4 * 0.75 * 0.25)
    assert (found.drawn, found.units) == ("battle", 4)


def test_own_family_is_left_out_unless_wanted(table: Table) -> None:
    rows = [("a", "b", "first"), ("a", "c", "tie"), ("b", "c", None)]
    families = {"a": "f", "b": "g", "c": "g"}
    kept = only(table(rows), families=families, judge_families={"j": "f"})
    assert (kept.consistency, kept.own_family, kept.readable) == (None, 2, 0.0)
    everything = only(table(rows), families=families, judge_families={"j": "f"}, own_family=True)
    assert (everything.consistency, everything.own_family) == (0.5, 0)
    stranger = only(table(rows), families=families, judge_families={"j": "h"})
    assert (stranger.consistency, stranger.own_family) == (0.5, 0)


def test_a_judge_that_is_a_contestant_has_its_own_family(table: Table) -> None:
    rows = [("a", "b", "first", "a", "x"), ("b", "c", "tie", "a", "x")]
    assert only(table(rows), families={"a": "f"}).own_family == 1
    assert only(table(rows)).own_family == 0


verdicts = st.sampled_from(["first", "second", "tie", None])
showings = st.tuples(
    st.sampled_from([(x, y) for x in "abc" for y in "abc" if x != y]),
    st.sampled_from("jk"),
    st.sampled_from("xyz"),
    st.integers(0, 1),
)
tables = st.dictionaries(showings, verdicts, min_size=1, max_size=60).map(
    lambda found: [(*models, verdict, *rest) for (models, *rest), verdict in found.items()]
)


def in_loops(rows: list[tuple[Any, ...]], judge: str, ties: bool) -> dict[Any, dict[str, float]]:
    """A's share by matchup and instruction, as a person reads the definition."""
    shown: dict[Any, list[float]] = defaultdict(list)
    for first, second, verdict, who, item, _ in rows:
        if who == judge and verdict is not None and (ties or verdict != "tie"):
            a, b = sorted((first, second))
            value = {"first": 1.0, "tie": 0.5, "second": 0.0}[verdict]
            shown[(a, b), item, first == a].append(value if first == a else 1.0 - value)
    orders: dict[Any, list[float]] = defaultdict(list)
    for (pair, item, _), values in shown.items():
        orders[pair, item].append(sum(values) / len(values))
    matchups: dict[Any, dict[str, float]] = defaultdict(dict)
    for (pair, item), values in orders.items():
        matchups[pair][item] = sum(values) / len(values)
    return matchups


def plainly(matchups: list[list[float]]) -> float | None:
    shares = [sum(values) / len(values) for values in matchups if values]
    return 1 - 4 * sum(p * (1 - p) for p in shares) / len(shares) if shares else None


def unbiased(matchups: list[list[float]]) -> float | None:
    """1 - 4 * mean (p (1 - p) + v), v the squared error of p, over matchups with two instructions or more."""
    spreads = []
    for values in matchups:
        if (k := len(values)) > 1:
            p = sum(values) / k
            spreads.append(p * (1 - p) + sum((u - p) ** 2 for u in values) / (k * (k - 1)))
    return 1 - 4 * sum(spreads) / len(spreads) if spreads else None


@settings(deadline=None, max_examples=100)
@given(rows=tables, data=st.data())
def test_figures_and_intervals_are_those_of_the_definition(
    table: Table, rows: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    found = consistency(table(data.draw(st.permutations(rows))), replicates=25, seed=4)
    assert found == consistency(table(rows), replicates=25, seed=4)
    items = sorted({row[4] for row in rows if row[2] is not None})
    draws = np.random.default_rng(4).multinomial(len(items), [1 / len(items)] * len(items), 25) if items else []
    for row in found.judges:
        for ties, score, lo, hi in (
            (True, row.consistency, row.consistency_lo, row.consistency_hi),
            (False, row.decisive, row.decisive_lo, row.decisive_hi),
        ):
            seen = list(in_loops(rows, row.judge, ties).values())
            assert score == pytest.approx(plainly([list(m.values()) for m in seen]), abs=1e-12)
            assert score is None or -1e-12 <= score <= 1 + 1e-12
            several = [m for m in seen if len(m) > 1]
            centre = unbiased([list(m.values()) for m in several])
            if ties:
                assert row.corrected == pytest.approx(centre, abs=1e-9)
            drawn = [
                unbiased(
                    [
                        [m[i] for i, times in zip(items, draw, strict=True) if i in m for _ in range(times)]
                        for m in several
                    ]
                )
                for draw in draws
            ]
            known = [value for value in drawn if value is not None]
            if len(known) > 1:
                truth = plainly([list(m.values()) for m in several])
                assert centre is not None
                assert truth is not None
                bounds = np.clip(centre - (np.quantile(known, [0.975, 0.025]) - truth), 0, 1)
                assert (lo, hi) == pytest.approx(tuple(bounds), abs=1e-9)
            else:
                assert (lo, hi) == (None, None)


def test_all_judges_see_the_same_drawn_instructions(table: Table) -> None:
    """Differences between judges mean something only on the same draws."""
    rows = [("a", "b", ("first", "second")[n % 3 == 0], judge, f"i{n}") for n in range(12) for judge in ("j", "k")]
    first, second = consistency(table([*rows, ("a", "c", "tie", "k", "i0")])).judges
    alone = only(table([row for row in rows if row[3] == "j"]))
    assert (first.consistency_lo, first.consistency_hi) == (alone.consistency_lo, alone.consistency_hi)
    assert (first.decisive_lo, first.decisive_hi) == (second.decisive_lo, second.decisive_hi)
    assert first.decisive_lo != first.decisive_hi


def test_one_instruction_allows_no_interval(table: Table) -> None:
    found = only(table([("a", "b", "first"), ("b", "a", "first"), ("a", "c", "first")]))
    assert found.consistency == pytest.approx(0.5)
    assert found.consistency_lo is None


def test_flips_counted_here_are_those_of_the_judgments(table: Table) -> None:
    battles = table([("a", "b", "first"), ("b", "a", "first"), ("a", "c", "tie"), ("c", "a", "first")])
    assert only(battles).flips == merge_orders(battles).flips / 2
