"""From ballots, or judgments of all pairs, to boards: what is drawn, clustered, left out and refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.ratings.elections import ballot_table
from tests.ratings.pairwise.test_plackett_luce import drawn
from venire.arena.battles import Ballots, Battles
from venire.arena.errors import InputError
from venire.ratings.data.ballots import ballot_votes, to_battles
from venire.ratings.data.votes import contradicted
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import METHODS, missing_data, rate
from venire.ratings.pairwise.plackett_luce import plackett_luce
from venire.ratings.voting.rules import median_rank

Table = Callable[..., Battles]
NEEDY = [name for name, method in METHODS.items() if "ballots" in method.needs]
METHODS_OF_VOTES = [*(name for name, method in METHODS.items() if method.orders and name not in NEEDY), *NEEDY]


def peers(ballots: int = 40, seed: int = 0) -> Ballots:
    return ballot_table(drawn(ballots, seed), instruction=np.arange(ballots) // 2)


def judged(rank: Any, instruction: Any) -> list[tuple[Any, ...]]:
    """The same as verdicts in both orders on every pair."""
    rows: list[tuple[Any, ...]] = []
    for ballot, asked in zip(np.asarray(rank), instruction, strict=True):
        for a in range(len(ballot)):
            for b in range(len(ballot)):
                if a != b and not np.isnan(ballot[a] + ballot[b]):
                    word = "first" if ballot[a] < ballot[b] else "second" if ballot[b] < ballot[a] else "tie"
                    rows.append((f"m{a}", f"m{b}", word, "j", f"i{asked}"))
    return rows


def test_ballots_are_rated_as_they_are() -> None:
    given = peers()
    found, known = rate(to_battles(given), "plackett-luce", Options()), plackett_luce(given)
    assert found.ratings.logits == pytest.approx(known.logits)
    assert found.ratings.covariance == pytest.approx(known.covariance)
    assert found.ratings.errors == "cluster"
    assert found.fits[0]["ballots"] == 40
    order = rate(to_battles(given), "median-rank", Options())
    assert order.position is not None
    assert order.position.tolist() == median_rank(given).position.tolist()


def test_an_order_by_plackett_luce_says_what_it_contradicts_as_other_orders_do() -> None:
    given = peers()
    found = rate(to_battles(given), "plackett-luce", Options())
    facts, best = found.diagnostics, rate(to_battles(given), "kemeny", Options()).diagnostics
    falling = np.argsort(-found.ratings.logits)
    assert facts["order"] == [given.models[code] for code in falling]
    assert facts["cost"] == contradicted(ballot_votes(given).weight, falling) >= best["cost"]
    assert facts["proved"] == (facts["cost"] == facts["lower_bound"])
    assert facts["optimal_orders"] is None


@pytest.mark.parametrize("method", NEEDY)
def test_judgments_of_all_pairs_make_the_same_ballots(table: Table, method: str) -> None:
    given = peers(20)
    single = replace(
        given, instruction=np.arange(20, dtype=np.int32), instructions=tuple(f"i{k:02}" for k in range(20))
    )
    known = rate(to_battles(single), method, Options())
    found = rate(table(judged(given.rank, range(20))), method, Options())
    assert found.ratings.logits == pytest.approx(known.ratings.logits, nan_ok=True)
    assert found.se == pytest.approx(known.se, nan_ok=True)
    assert found.diagnostics["notes"] == ["20 ballots are made of judgments of all pairs"]


def test_a_judge_that_lacks_a_pair_is_left_out_and_counted(table: Table) -> None:
    rows = judged(drawn(6, 1), range(6))
    rows = [row for row in rows if row[4] != "i0" or {*row[:2]} != {"m0", "m1"}]
    found = rate(table(rows), "median-rank", Options())
    assert found.diagnostics["notes"][0] == (
        "5 ballots are made of judgments of all pairs; 1 of a judge on an instruction lack a pair and are left out"
    )


@pytest.mark.parametrize("method", NEEDY)
def test_without_ballots_the_reason_is_said(table: Table, method: str) -> None:
    pair = [("a", "b", "first", "j", "x"), ("b", "a", "first", "j", "x")]
    for battles in (table(pair), table(judged(drawn(3, 0), range(3)), named=False), table([])):
        assert missing_data(battles, method) is not None
        with pytest.raises(InputError, match=f"{method} needs ballots .columns judge, instruction_id, model, rank"):
            rate(battles, method, Options())
    assert missing_data(to_battles(peers(2)), method) is None
    assert missing_data(table(judged(drawn(1, 0), [0])), method) is None


@pytest.mark.parametrize("method", NEEDY)
def test_names_in_any_order_are_the_same_election(method: str) -> None:
    given, place = peers(), np.array([3, 0, 4, 1, 2])
    turned = replace(given, models=tuple(given.models[code] for code in place), rank=given.rank[:, place])
    found, known = rate(to_battles(turned), method, Options()), rate(to_battles(given), method, Options())
    assert found.ratings.models == known.ratings.models
    assert found.ratings.logits == pytest.approx(known.ratings.logits, nan_ok=True)
    assert found.figures.get("position", np.zeros(5)).tolist() == known.figures.get("position", np.zeros(5)).tolist()


def test_errors_are_over_instructions_ballots_or_what_a_table_names() -> None:
    given = to_battles(peers())
    assert rate(given, "plackett-luce", Options()).fits[0]["clusters"] == 20
    alone = rate(replace(given, clustered=False), "plackett-luce", Options())
    assert (alone.fits[0]["clusters"], alone.ratings.errors) == (40, "sandwich")
    unnamed = rate(to_battles(ballot_table(drawn(40, 0))), "plackett-luce", Options())
    assert unnamed.ratings.se == pytest.approx(alone.ratings.se)
    half = replace(given, cluster=(given.instruction % 5).astype(np.int32), clusters=tuple("abcde"))
    assert rate(half, "plackett-luce", Options()).fits[0]["clusters"] == 5


def test_clusters_of_judgments_are_those_of_the_ballots_made_of_them(table: Table) -> None:
    battles = table(judged(drawn(12, 0), range(12)))
    named = replace(battles, cluster=(battles.instruction // 4).astype(np.int32), clusters=("x", "y", "z"))
    assert rate(named, "plackett-luce", Options()).fits[0]["clusters"] == 3


def test_ballots_keep_their_clusters_beside_judges_that_lack_a_pair(table: Table) -> None:
    rank = drawn(12, 0)
    rows = [row for row in judged(rank, range(12)) if row[4] != "i0" or {*row[:2]} != {"m0", "m1"}]
    battles = table(rows)
    named = replace(battles, cluster=(battles.instruction // 4).astype(np.int32), clusters=("x", "y", "z"))
    known = plackett_luce(ballot_table(rank[1:], instruction=np.arange(1, 12) // 4))
    assert rate(named, "plackett-luce", Options()).se == pytest.approx(400 / np.log(10) * known.se)


@pytest.mark.parametrize("method", NEEDY)
def test_whole_instructions_are_drawn_again(method: str) -> None:
    found = rate(to_battles(peers()), method, Options(replicates=30))
    assert found.ratings.errors == "bootstrap over 20 instructions"
    assert found.rank_lo.min() == 1
    assert np.all(found.rank_lo <= found.rank_hi)
    assert found.rank_hi.max() == 5


def test_drawn_errors_are_those_by_formula() -> None:
    battles = to_battles(peers(200))
    formula, drawn_again = (rate(battles, "plackett-luce", Options(replicates=count)) for count in (0, 150))
    assert drawn_again.se == pytest.approx(formula.se, rel=0.25)


def test_models_that_no_chain_joins_are_rated_apart_each_by_its_own_ballots() -> None:
    rank = np.array([[1, 2, 3, 4], [2, 1, 3, 4], [1, 2, 4, 3], [2, 1, 3, 4]], dtype=float)
    found = rate(to_battles(ballot_table(rank, instruction=[0, 1, 2, 3])), "plackett-luce", Options())
    assert found.groups == (("m0", "m1"), ("m2", "m3"))
    above, below = plackett_luce(ballot_table(rank[:, :2])), plackett_luce(ballot_table(rank[:, 2:]))
    assert found.ratings.logits == pytest.approx([*above.logits, *below.logits], abs=1e-12)
    assert below.logits[0] > above.logits[0] + 0.1
    assert rate(to_battles(ballot_table(rank)), "plackett-luce", Options(ridge=0.1)).groups == (
        ("m0", "m1", "m2", "m3"),
    )


def test_anchors_hold() -> None:
    found = rate(to_battles(peers()), "plackett-luce", Options(anchors={"m2": 1300.0}))
    assert found.ratings.elo[2] == pytest.approx(1300.0)
    assert found.ratings.gauge == "anchored: m2 = 1300"
    assert found.lo[2] == found.hi[2] == pytest.approx(1300.0)


@pytest.mark.parametrize("method", METHODS_OF_VOTES)
def test_every_method_of_votes_runs_by_its_name(table: Table, method: str) -> None:
    rows = judged(np.array([[1, 2, 3], [1, 2, 3], [1, 3, 2], [2, 1, 3]]), range(4))
    found = rate(table(rows), method, Options(replicates=5))
    assert found.ratings.method == method
    if METHODS[method].orders:
        assert found.position is not None
        assert found.position.tolist() == [1.0, 2.0, 3.0]
        assert np.isnan(found.ratings.logits).all()
        with pytest.raises(InputError, match="does not take anchors"):
            rate(table(rows), method, Options(anchors={"m0": 1000.0}))
    else:
        assert list(np.argsort(-found.ratings.logits)) == [0, 1, 2]
