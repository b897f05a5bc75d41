"""What a leaderboard is told of an order: places and no Elo, with what was proved and what is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.ratings.elections import ballot_table
from tests.ratings.pairwise.test_plackett_luce import drawn
from venire.arena.battles import Ballots, Battles
from venire.arena.errors import InputError
from venire.ratings.data.ballots import ballot_votes, ballots, to_battles
from venire.ratings.data.result import Rated
from venire.ratings.data.votes import Order, Votes, contradicted, pair_bound, votes
from venire.ratings.inference.options import Options
from venire.ratings.methods import voting_recipes as vote_recipes
from venire.ratings.methods.findings import ContradictedVotes, MethodNotes
from venire.ratings.methods.methods import METHODS, merge_selected, missing_data, rate
from venire.ratings.pairwise.plackett_luce import plackett_luce
from venire.ratings.voting.kemeny import kemeny_young
from venire.ratings.voting.rules import median_rank

Table = Callable[..., Battles]

VOTING = {name: method.run.args[0] for name, method in METHODS.items() if isinstance(method.run, partial)}
"""Methods of pairwise votes alone, and the rule that each applies."""
CIRCLE = [("a", "b", "first", "j", "x"), ("b", "c", "first", "j", "y"), ("c", "a", "first", "j", "z")]


def kemeny(battles: Battles, **told: Any) -> Rated:
    return rate(battles, "kemeny", Options(**told))


def cost_of(found: Rated) -> ContradictedVotes:
    order = found.finding(ContradictedVotes)
    assert order is not None
    return order


def notes_of(found: Rated) -> tuple[str, ...]:
    notes = found.finding(MethodNotes)
    assert notes is not None
    return notes.notes


def chain(instructions: int) -> list[tuple[Any, ...]]:
    """a over b over c over d on every instruction."""
    pairs = [(one, other) for one in "abcd" for other in "abcd" if one < other]
    return [(*pair, "first", "j", f"i{item}") for item in range(instructions) for pair in pairs]


def test_models_have_places_and_neither_elo_nor_intervals_of_it(table: Table) -> None:
    found = kemeny(table(chain(3)))
    assert found.position is not None
    assert found.position.tolist() == found.figures["position"].tolist() == [1.0, 2.0, 3.0, 4.0]
    for column in (found.ratings.logits, found.lo, found.hi, found.se, found.best):
        assert np.isnan(column).all()
    assert not found.rank_lo.any()
    assert found.fits[0]["errors_reason"] == "no rank intervals: kemeny has none by formula; --bootstrap 200 draws them"
    assert (found.ratings.method, found.ratings.gauge, found.ratings.errors) == ("kemeny", "order", "none")
    assert found.ratings.battles.tolist() == [9.0] * 4
    assert found.groups == (("a", "b", "c", "d"),)


def test_the_diagnostics_say_what_was_proved(table: Table) -> None:
    assert kemeny(table(chain(3))).findings == (
        ContradictedVotes(("a", "b", "c", "d"), cost=0.0, lower_bound=0.0, proved=True, optimal_orders=1),
        MethodNotes(()),
    )


def test_several_best_orders_are_said(table: Table) -> None:
    found = kemeny(table(CIRCLE))
    assert found.figures["position"].tolist() == [2.0, 2.0, 2.0]
    assert cost_of(found).optimal_orders == 3
    assert list(notes_of(found)) == ["several orders cost the same: positions are means over all of them"]


def test_ranks_come_from_instructions_drawn_again(table: Table) -> None:
    found = kemeny(table(chain(6)), replicates=20)
    assert found.ratings.errors == "bootstrap over 6 instructions"
    assert found.rank_lo.tolist() == found.rank_hi.tolist() == found.tier.tolist() == [1, 2, 3, 4]
    assert found.best.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert "errors_reason" not in found.fits[0]
    alone = kemeny(table(CIRCLE[:1]), replicates=20)
    assert alone.fits[0]["errors_reason"].startswith("no errors: all judgments are of one cluster")
    free = kemeny(table(CIRCLE, named=False), replicates=20)
    assert free.ratings.errors == "bootstrap over 3 battles"
    assert 0 < free.without_estimate < 20


def test_parts_that_never_met_are_in_one_order_that_says_so(table: Table) -> None:
    rows = [("a", "b", "first"), ("x", "y", "second"), ("silent", "a", None)]
    found = kemeny(table(rows))
    apart = "the models fall into 2 parts that never met: the order between models of two parts means nothing"
    assert notes_of(found)[0] == apart
    assert found.reasons == {"silent": "took part in no readable judgment"}
    names = found.ratings.models
    assert found.group.tolist() == [int(name != "silent") for name in names]
    assert np.isnan(found.figures["position"][names.index("silent")])
    assert cost_of(found).order[-1] == "silent"


def test_more_orders_than_a_reader_of_json_can_count_are_not_numbered(table: Table) -> None:
    rows = [(f"m{one:02}", f"m{other:02}", "tie") for one in range(25) for other in range(one)]
    found = kemeny(table(rows))
    assert cost_of(found).optimal_orders is None
    assert set(found.figures["position"].tolist()) == {13.0}
    assert "several orders" in notes_of(found)[0]


def test_a_large_block_says_that_others_may_cost_the_same(table: Table) -> None:
    rows = [(f"m{code:02}", f"m{(code + 1) % 25:02}", "first") for code in range(25)]
    found = kemeny(table(rows))
    assert (cost_of(found).cost, cost_of(found).proved) == (1.0, True)
    assert notes_of(found)[0].startswith("other orders may cost the same")


def unproved(votes: Votes, *, seconds: float) -> Order:
    order = tuple(range(len(votes.models)))[::-1]
    return Order(
        method="kemeny",
        models=votes.models,
        order=tuple(votes.models[code] for code in order),
        position=np.arange(len(order), 0.0, -1.0),
        cost=contradicted(votes.weight, order),
        lower_bound=pair_bound(votes.weight),
        proved=False,
    )


def test_time_that_ran_out_is_said_of_the_order_and_of_the_draws(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vote_recipes, "kemeny_young", unproved)
    found = kemeny(table(chain(3)), replicates=4, seconds=2.0)
    assert list(notes_of(found)) == [
        "not proved within 2 s: this order contradicts 18 of weight, and no order less than 0",
        "the orders of 4 of 4 draws are not proved: intervals of ranks may be too wide",
    ]


def test_all_draws_together_may_take_as_long_as_the_order(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []

    def noted(votes: Votes, *, seconds: float) -> Order:
        told.append(seconds)
        return unproved(votes, seconds=seconds)

    monkeypatch.setattr(vote_recipes, "kemeny_young", noted)
    kemeny(table(chain(3)), replicates=4, seconds=2.0)
    assert told == [2.0, 0.5, 0.5, 0.5, 0.5]


def test_a_method_with_a_score_shows_it_under_its_unit(table: Table) -> None:
    def by_name(votes: Votes) -> Order:
        size = len(votes.models)
        places = np.arange(1.0, size + 1.0)
        return Order("by name", votes.models, votes.models, places, 6.0, 0.0, False, score=9.0 - places, unit="points")

    battles = table(chain(2))
    found = vote_recipes.by_votes(by_name, battles, merge_selected(battles, Options()), Options(replicates=5))
    assert found.figures["points"].tolist() == [8.0, 7.0, 6.0, 5.0]
    assert (found.ratings.unit, cost_of(found).proved) == ("points", False)
    assert found.rank_hi.tolist() == [1, 2, 3, 4]
    assert notes_of(found) == ()


@pytest.mark.parametrize("ranked", [5, 2])
def test_verdicts_made_from_ballots_put_models_in_the_order_of_the_ballots(ranked: int) -> None:
    """Two that a ballot leaves unranked are no verdict, and half a vote to each."""
    rng = np.random.default_rng(ranked)
    judge, instruction, model = (column.ravel() for column in np.indices((3, 6, 5)))
    rank = np.argsort(rng.random((18, 5)), axis=1).ravel() + 1.0
    told = ballots(judge, instruction, model, np.where(rank <= ranked, rank, np.nan))
    whole = ballot_votes(told)
    battles = to_battles(told)
    made = votes(merge_selected(battles, Options()).comparisons())
    assert made.models == whole.models
    assert made.weight - made.weight.T == pytest.approx(whole.weight - whole.weight.T)
    assert (made.weight == pytest.approx(whole.weight)) == (ranked == 5)
    found, order = kemeny(battles), kemeny_young(whole)
    assert cost_of(found).order == tuple(order.order)
    assert found.figures["position"] == pytest.approx(order.position)
    assert cost_of(found).optimal_orders == order.optimal_orders
    assert cost_of(found).cost == pytest.approx(order.cost)
    assert cost_of(found).lower_bound == pytest.approx(order.lower_bound)


def short_ballots() -> Ballots:
    """Of six models, three a ballot: `always` is the last of them each time, `often` the first on 12 of 25 or unranked.

    The share of all votes is 0.6 for `always` and 0.58 for `often`; of the votes on pairs with a ranked model 0.6 and
    0.61.
    """
    rows = []
    for number in range(25):
        rest = [f"m{(number + step) % 4}" for step in range(4)]
        ranked = ["often", rest[0], "always"] if number < 12 else [rest[0], rest[1], "always"]
        rows += [(number, name, 1.0 + ranked.index(name)) for name in ranked]
        rows += [(number, name, np.nan) for name in {"often", *rest} - set(ranked)]
    asked, model, rank = zip(*rows, strict=True)
    return ballots(None, list(asked), list(model), rank)


@pytest.mark.parametrize("method", sorted({*VOTING, "kemeny", "median-rank"}))
def test_every_order_of_short_ballots_is_by_all_their_votes(method: str) -> None:
    """A share among the pairs with a ranked model flatters whoever is rarely ranked."""
    told = short_ballots()
    whole = ballot_votes(told)
    found = rate(to_battles(told), method, Options())
    codes = [whole.models.index(name) for name in cost_of(found).order]
    assert cost_of(found).cost == pytest.approx(contradicted(whole.weight, codes))
    if method in VOTING:
        run = VOTING[method]
        assert found.position == pytest.approx(run(whole).position)
        assert found.ratings.score == pytest.approx(run(whole).score)
    if method == "borda":
        order = cost_of(found).order
        assert order.index("always") < order.index("often")


def test_a_draw_of_ballots_takes_them_whole_with_their_weights() -> None:
    told = replace(short_ballots(), weight=np.arange(1.0, 26.0))
    seen: list[Votes] = []

    def borda(votes: Votes) -> Order:
        seen.append(votes)
        return vote_recipes.borda(votes)

    battles = to_battles(told)
    found = vote_recipes.by_votes(borda, battles, merge_selected(battles, Options()), Options(replicates=3))
    assert found.ratings.errors == "bootstrap over 25 instructions"
    assert len(seen) == 4
    assert seen[0].weight == pytest.approx(ballot_votes(told).weight)
    for one in seen[1:]:
        pairs = one.weight + one.weight.T
        assert np.allclose(pairs[~np.eye(6, dtype=bool)], pairs[0, 1])


def test_no_verdict_at_all_is_an_empty_order(table: Table) -> None:
    found = kemeny(table([("a", "b", None)]), replicates=5)
    assert found.groups == ((),)
    assert set(found.reasons) == {"a", "b"}


def test_an_anchor_means_nothing_to_an_order(table: Table) -> None:
    with pytest.raises(InputError, match="kemeny does not take anchors"):
        kemeny(table(chain(1)), anchors={"a": 1000.0})


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
    order, best = cost_of(found), cost_of(rate(to_battles(given), "kemeny", Options()))
    falling = np.argsort(-found.ratings.logits)
    assert order.order == tuple(given.models[code] for code in falling)
    assert order.cost == contradicted(ballot_votes(given).weight, falling) >= best.cost
    assert order.proved == (order.cost == order.lower_bound)
    assert order.optimal_orders is None


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
    assert list(notes_of(found)) == ["20 ballots are made of judgments of all pairs"]


def test_a_judge_that_lacks_a_pair_is_left_out_and_counted(table: Table) -> None:
    rows = judged(drawn(6, 1), range(6))
    rows = [row for row in rows if row[4] != "i0" or {*row[:2]} != {"m0", "m1"}]
    found = rate(table(rows), "median-rank", Options())
    assert notes_of(found)[0] == (
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
    alone = rate(replace(given, clustering="none"), "plackett-luce", Options())
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
