"""Consistency of judges, against hand-made cases and against the formula written out in plain loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.data.judgments import merge_orders
from venire.ratings.judges.consistency import JudgeConsistency, consistency
from venire.ratings.judges.matchups import dense_codes

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
    assert (found.left_out, found.units) == ("battle", 4)


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
    for first, second, verdict, who, item, *_ in rows:
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


def jackknife(matchups: list[dict[str, float]], level: float = 0.95) -> tuple[float | None, float | None]:
    """The interval by leaving out one instruction at a time, about the square root of the spread, in plain loops."""
    several = [m for m in matchups if len(m) > 1]
    items = sorted({item for m in matchups for item in m})
    left = [unbiased([[m[i] for i in m if i != gone] for m in several]) for gone in items]
    known = [value for value in left if value is not None]
    if len(known) < max(2, len(left)):  # what hangs on one instruction may be anything without it
        return None, None
    k, mean = len(known), sum(known) / len(known)
    floor = 4 / len(several) / (sum(map(len, several)) / len(several))
    error = max(((k - 1) / k * sum((value - mean) ** 2 for value in known)) ** 0.5, floor)
    centre = unbiased([list(m.values()) for m in several])
    assert centre is not None
    root = max(1 - centre, floor / 2) ** 0.5
    reach = t.ppf((1 + level) / 2, (k - 1) / 2) * error / (2 * root)
    lo, hi = 1 - (root + reach) ** 2, 1 - max(root - reach, 0) ** 2
    return min(max(lo, 0.0), 1.0), min(max(hi, min(floor, 1.0)), 1.0)


@given(rows=tables, data=st.data())
def test_figures_and_intervals_are_those_of_the_definition(
    table: Table, rows: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    found = consistency(table(data.draw(st.permutations(rows))))
    assert found == consistency(table(rows))
    for row in found.judges:
        for ties, score, corrected, *bounds in (
            (True, row.consistency, row.corrected, row.consistency_lo, row.consistency_hi),
            (False, row.decisive, row.decisive_corrected, row.decisive_lo, row.decisive_hi),
        ):
            seen = list(in_loops(rows, row.judge, ties).values())
            assert score == pytest.approx(plainly([list(m.values()) for m in seen]), abs=1e-12)
            assert score is None or -1e-12 <= score <= 1 + 1e-12
            assert corrected == pytest.approx(unbiased([list(m.values()) for m in seen]), abs=1e-9)
            assert tuple(bounds) == pytest.approx(jackknife(seen), abs=1e-9)


def test_a_judge_without_any_disagreement_has_an_interval_with_room_below(table: Table) -> None:
    """The danger: 1.00 to 1.00, which says that no instruction can ever be decided otherwise."""
    rows = [
        (x, y, "first" if x < y else "second", "j", f"i{n}")
        for n in range(15)
        for x in "abcd"
        for y in "abcd"
        if x != y
    ]
    found = only(table(rows))
    assert (found.consistency, found.corrected, found.consistency_hi) == (1.0, 1.0, 1.0)
    assert found.consistency_lo is not None
    assert 0.5 < found.consistency_lo < 0.95


def test_alike_verdicts_of_a_table_without_instructions_are_left_out_one_by_one(table: Table) -> None:
    rows = [("a", "b", "first")] * 30 + [("a", "b", "second")] * 10
    alone = [(*row, "j", f"i{n}") for n, row in enumerate(rows)]
    given, named = only(table(rows, named=False)), only(table(alone))
    assert (given.consistency_lo, given.consistency_hi) == pytest.approx((named.consistency_lo, named.consistency_hi))


def test_one_instruction_allows_no_interval(table: Table) -> None:
    found = only(table([("a", "b", "first"), ("b", "a", "first"), ("a", "c", "first")]))
    assert found.consistency == pytest.approx(0.5)
    assert found.consistency_lo is None


def test_flips_counted_here_are_those_of_the_judgments(table: Table) -> None:
    battles = table([("a", "b", "first"), ("b", "a", "first"), ("a", "c", "tie"), ("c", "a", "first")])
    assert only(battles).flips == merge_orders(battles).flips / 2


def wide(judges: str = "jk", items: int = 12, seed: int = 0) -> list[tuple[Any, ...]]:
    """Verdicts of judges on all pairs of four models in both orders; every later judge is more of a coin."""
    rng = np.random.default_rng(seed)
    rows = []
    for place, judge in enumerate(judges):
        for x, y in ((x, y) for x in "abcd" for y in "abcd" if x != y):
            for item in range(items):
                chance = 1 / (1 + np.exp(-(2.0 - place) * (ord(y) - ord(x))))
                verdict = "tie" if rng.random() < 0.15 else "first" if rng.random() < chance else "second"
                rows.append((x, y, verdict, judge, f"i{item:02}"))
    return rows


def test_the_corrected_figure_is_right_on_average_whatever_the_number_of_instructions(table: Table) -> None:
    """A coin: plain consistency is 1 / (2k) on average with two orders of k instructions, corrected is 0."""
    rng = np.random.default_rng(5)
    for k in (2, 5):
        plain, corrected = [], []
        for _ in range(60):
            rows = [
                (x, y, ("first", "second")[int(rng.integers(2))], "j", f"i{item}")
                for item in range(k)
                for a, b in ((f"m{n}", f"n{n}") for n in range(15))
                for x, y in ((a, b), (b, a))
            ]
            found = only(table(rows))
            plain.append(found.consistency)
            corrected.append(found.corrected)
        assert np.mean(np.array(plain, dtype=float)) == pytest.approx(1 / (2 * k), abs=0.03)
        assert np.mean(np.array(corrected, dtype=float)) == pytest.approx(0.0, abs=0.03)


def test_single_battles_are_taken_on_their_own(table: Table) -> None:
    """Unit battle: u is 1, 0.75 and 0.5, so that the mean of u (1 - u) is (0 + 3/16 + 1/4) / 3."""
    rows = [
        ("a", "b", "first", "j", "x"),
        ("b", "a", "second", "j", "x"),
        ("a", "b", "tie", "j", "y"),
        ("b", "a", "second", "j", "y"),
        ("a", "b", "first", "j", "z"),
        ("b", "a", "first", "j", "z"),
    ]
    found = only(table(rows), unit="battle")
    assert found.consistency == pytest.approx(1 - 4 * (3 / 16 + 1 / 4) / 3)
    assert (found.corrected, found.matchups) == (None, 1)
    assert found.consistency_lo is not None
    assert found.consistency_hi is not None
    assert found.consistency_lo <= found.consistency <= found.consistency_hi


@pytest.mark.parametrize(("weights", "power"), [("gap", 1), ("gap-squared", 2)])
def test_matchups_are_weighed_by_their_gap(table: Table, weights: Any, power: int) -> None:
    elo = {"a": 1200.0, "b": 1100.0, "c": 1050.0, "d": 900.0}
    rows = wide("j")
    found = only(table(rows), weights=weights, elo=elo)
    above = below = 0.0
    for (a, b), values in in_loops(rows, "j", ties=True).items():
        weight, p = abs(elo[a] - elo[b]) ** power, sum(values.values()) / len(values)
        above, below = above + weight * p * (1 - p), below + weight
    assert found.consistency == pytest.approx(1 - 4 * above / below)


def test_the_optimal_weight_is_that_of_the_definition(table: Table) -> None:
    """n * gap / (2 pbar - 1), pbar with all judges; matchups that the judges decide against the gap are left out."""
    elo = {"a": 1200.0, "b": 1100.0, "c": 1110.0, "d": 900.0}
    rows = [row for row in wide("jk") if row[3] == "k" or row[4] < ("i03" if "d" in row[:2] else "i06")]
    found = consistency(table(rows), weights="optimal", elo=elo).judges[0]
    mine, others = in_loops(rows, "j", ties=True), in_loops(rows, "k", ties=True)
    above = below = 0.0
    used = 0
    for (a, b), values in mine.items():
        pooled = [*values.values(), *others[a, b].values()]
        lean, gap = 2 * sum(pooled) / len(pooled) - 1, (elo[a] - elo[b]) * np.log(10) / 400
        if lean * gap > 0:
            weight, p = len(values) * gap / lean, sum(values.values()) / len(values)
            above, below, used = above + weight * p * (1 - p), below + weight, used + 1
    assert found.consistency == pytest.approx(1 - 4 * above / below)
    assert (found.matchups, used) == (5, 5)


def test_matchups_whose_gap_nobody_knows_have_no_weight(table: Table) -> None:
    found = only(table(wide("j")), weights="gap", elo={"a": 1100.0, "b": 1000.0})
    assert found.matchups == 1
    assert only(table(wide("j")), weights="gap").consistency is None


def test_matchups_are_left_out_with_all_their_verdicts(table: Table) -> None:
    rows = wide("j")
    found = consistency(table(rows), interval="matchups", level=0.8)
    assert (found.left_out, found.units) == ("matchup", 6)
    spreads = []
    for values in in_loops(rows, "j", ties=True).values():
        u = np.array(list(values.values()))
        spreads.append(u.mean() * (1 - u.mean()) + u.var(ddof=1) / len(u))
    scores = 1 - 4 * np.array(spreads)
    error = max(scores.std(ddof=1) / np.sqrt(6), 4 / 6 / 12)  # the jackknife of a mean, and one more disagreement
    root, reach = np.sqrt(1 - scores.mean()), t.ppf(0.9, 2.5) * error / (2 * np.sqrt(1 - scores.mean()))
    row = found.judges[0]
    assert row.corrected == pytest.approx(scores.mean())
    expected = (1 - (root + reach) ** 2, 1 - (root - reach) ** 2)
    assert (row.consistency_lo, row.consistency_hi) == pytest.approx(expected)


def test_a_difference_of_judges_is_surer_than_their_own_figures(table: Table) -> None:
    """Both judges rest on the same instructions: what an instruction does to both cancels in their difference."""
    rng = np.random.default_rng(1)
    clear = rng.random(40) < 0.6
    rows = []
    for item in range(40):
        for judge in "jk":
            for x, y in (("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")):
                right = clear[item] or rng.random() < 0.5
                rows.append((x, y, "first" if right == (x < y) else "second", judge, f"i{item}"))
    found = consistency(table(rows))
    first, second = found.judges
    assert first.consistency is not None
    assert second.consistency is not None
    point, lo, hi = found.difference("j", "k")
    assert point == pytest.approx(first.consistency - second.consistency)
    assert lo < point < hi
    widths = [(row.consistency_hi or 0.0) - (row.consistency_lo or 0.0) for row in found.judges]
    assert hi - lo < 0.8 * np.hypot(*widths)
    back = found.difference("k", "j")
    assert back == pytest.approx((-point, -hi, -lo))
    assert found.difference("j", "j") == (0.0, 0.0, 0.0)
    assert found.difference("j", "k", "corrected")[1:] == pytest.approx((lo, hi))
    with pytest.raises(InputError, match="level is 95"):
        found.difference("j", "k", level=95)
    narrow = found.difference("j", "k", "decisive", level=0.5)
    assert narrow[2] - narrow[1] < hi - lo


def test_the_corrected_figure_lies_in_the_interval_where_the_plain_one_leans_high(table: Table) -> None:
    """Three instructions a matchup: nearly every matchup looks decided, and the interval knows better."""
    rng = np.random.default_rng(0)
    rows = [
        (f"m{n}", f"n{n}", ("first", "second")[int(rng.integers(2))], "j", f"i{item}")
        for n in range(100)
        for item in rng.choice(19, size=3, replace=False)
    ]
    found = only(table(rows))
    assert found.consistency is not None
    assert found.consistency_hi is not None
    assert found.corrected is not None
    assert found.consistency > found.consistency_hi > found.corrected


def test_a_slope_at_its_ceiling_is_noted(table: Table) -> None:
    rows = [(x, y, "first" if x < y else "second", "j", f"i{n}") for n in range(5) for x, y in (("a", "b"), ("b", "a"))]
    found = only(table(rows), elo={"a": 1100.0, "b": 1000.0})
    assert (found.discrimination_ml, found.discrimination_ml_se) == (None, None)
    assert found.discrimination is not None
    assert found.note is not None
    assert "ceiling" in found.note
    floor = only(table(rows), elo={"a": 1000.0, "b": 1100.0})
    assert "floor" in str(floor.note)


def test_outcomes_take_the_place_of_labels(table: Table) -> None:
    battles = table([("a", "b", "first", "j", "x"), ("a", "b", "first", "j", "y")], ordered=False)
    stated = replace(battles, outcome=np.array([0.7, 1.0]))
    assert only(stated).consistency == pytest.approx(1 - 4 * 0.85 * 0.15)


def test_two_verdicts_on_one_showing_are_refused(table: Table) -> None:
    with pytest.raises(InputError, match="give each its own repeat number"):
        consistency(table([("a", "b", "first", "j", "x"), ("a", "b", "second", "j", "x")]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unit": "pair"}, "unit is 'pair'; .*here are: matchup, battle"),
        ({"interval": "rows"}, "interval is 'rows'; .*here are: instructions, matchups"),
        ({"weights": "much"}, "weights is 'much'; .*here are: even"),
        ({"level": 95}, "level is 95; give a share"),
    ],
)
def test_unknown_words_are_refused(table: Table, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        consistency(table([("a", "b", "first")]), **options)


@pytest.mark.parametrize(
    ("judge", "score", "words"), [("x", "decisive", "no judge 'x'"), ("j", "ties", "score is 'ties'")]
)
def test_differences_of_what_is_not_there_are_refused(table: Table, judge: str, score: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        consistency(table([("a", "b", "first")])).difference("j", judge, score)


def test_dense_and_sparse_codes_agree() -> None:
    key = np.random.default_rng(0).integers(0, 10**6, 500)
    few, found = dense_codes(key, 10**6)
    many, same = dense_codes(key, 10**12)
    assert few.tolist() == many.tolist()
    assert found.tolist() == same.tolist()
