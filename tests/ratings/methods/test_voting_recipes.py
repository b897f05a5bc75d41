"""What a leaderboard is told of an order: places and no Elo, with what was proved and what is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from venire.arena.battles import Ballots, Battles
from venire.arena.errors import InputError
from venire.ratings.data.ballots import ballot_votes, ballots, to_battles
from venire.ratings.data.result import Rated
from venire.ratings.data.votes import Order, Votes, contradicted, pair_bound, votes
from venire.ratings.inference.options import Options
from venire.ratings.methods import voting_recipes as vote_recipes
from venire.ratings.methods.methods import METHODS, merge_selected, rate
from venire.ratings.voting.kemeny import kemeny_young

Table = Callable[..., Battles]

VOTING = {name: method.run.args[0] for name, method in METHODS.items() if isinstance(method.run, partial)}
"""Methods of pairwise votes alone, and the rule that each applies."""
CIRCLE = [("a", "b", "first", "j", "x"), ("b", "c", "first", "j", "y"), ("c", "a", "first", "j", "z")]


def kemeny(battles: Battles, **told: Any) -> Rated:
    return rate(battles, "kemeny", Options(**told))


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
    facts = kemeny(table(chain(3))).diagnostics
    assert facts == {
        "order": ["a", "b", "c", "d"],
        "cost": 0.0,
        "lower_bound": 0.0,
        "proved": True,
        "optimal_orders": 1,
        "notes": [],
    }


def test_several_best_orders_are_said(table: Table) -> None:
    found = kemeny(table(CIRCLE))
    assert found.figures["position"].tolist() == [2.0, 2.0, 2.0]
    assert found.diagnostics["optimal_orders"] == 3
    assert found.diagnostics["notes"] == ["several orders cost the same: positions are means over all of them"]


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
    assert found.diagnostics["notes"][0] == apart
    assert found.reasons == {"silent": "took part in no readable judgment"}
    names = found.ratings.models
    assert found.group.tolist() == [int(name != "silent") for name in names]
    assert np.isnan(found.figures["position"][names.index("silent")])
    assert found.diagnostics["order"][-1] == "silent"


def test_more_orders_than_a_reader_of_json_can_count_are_not_numbered(table: Table) -> None:
    rows = [(f"m{one:02}", f"m{other:02}", "tie") for one in range(25) for other in range(one)]
    found = kemeny(table(rows))
    assert found.diagnostics["optimal_orders"] is None
    assert set(found.figures["position"].tolist()) == {13.0}
    assert "several orders" in found.diagnostics["notes"][0]


def test_a_large_block_says_that_others_may_cost_the_same(table: Table) -> None:
    rows = [(f"m{code:02}", f"m{(code + 1) % 25:02}", "first") for code in range(25)]
    found = kemeny(table(rows))
    assert (found.diagnostics["cost"], found.diagnostics["proved"]) == (1.0, True)
    assert found.diagnostics["notes"][0].startswith("other orders may cost the same")


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
    assert found.diagnostics["notes"] == [
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
    assert (found.ratings.unit, found.diagnostics["proved"]) == ("points", False)
    assert found.rank_hi.tolist() == [1, 2, 3, 4]
    assert found.diagnostics["notes"] == []


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
    assert found.diagnostics["order"] == list(order.order)
    assert found.figures["position"] == pytest.approx(order.position)
    assert found.diagnostics["optimal_orders"] == order.optimal_orders
    assert found.diagnostics["cost"] == pytest.approx(order.cost)
    assert found.diagnostics["lower_bound"] == pytest.approx(order.lower_bound)


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
    codes = [whole.models.index(name) for name in found.diagnostics["order"]]
    assert found.diagnostics["cost"] == pytest.approx(contradicted(whole.weight, codes))
    if method in VOTING:
        run = VOTING[method]
        assert found.position == pytest.approx(run(whole).position)
        assert found.ratings.score == pytest.approx(run(whole).score)
    if method == "borda":
        order = found.diagnostics["order"]
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
    for drawn in seen[1:]:
        pairs = drawn.weight + drawn.weight.T
        assert np.allclose(pairs[~np.eye(6, dtype=bool)], pairs[0, 1])


def test_no_verdict_at_all_is_an_empty_order(table: Table) -> None:
    found = kemeny(table([("a", "b", None)]), replicates=5)
    assert found.groups == ((),)
    assert set(found.reasons) == {"a", "b"}


def test_an_anchor_means_nothing_to_an_order(table: Table) -> None:
    with pytest.raises(InputError, match="kemeny does not take anchors"):
        kemeny(table(chain(1)), anchors={"a": 1000.0})
