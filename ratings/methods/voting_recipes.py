"""Recipes of methods that take votes or ballots, from judgments to a rated table; `methods` lists them by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.ratings.data.ballots import ballot_votes, paired_ballots
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.result import Rated, Ratings
from venire.ratings.data.votes import Order, Votes, votes
from venire.ratings.inference.intervals import errors_for, with_intervals
from venire.ratings.inference.options import Options
from venire.ratings.methods.findings import ContradictedVotes, MethodNotes
from venire.ratings.methods.methods import Method
from venire.ratings.methods.pairwise_recipes import rate_by_component
from venire.ratings.pairwise.components import weak_components
from venire.ratings.pairwise.plackett_luce import plackett_luce
from venire.ratings.voting.kemeny import kemeny_young
from venire.ratings.voting.order_intervals import OrderDraws, OrderRefit, PositionIntervals, redrawn_positions
from venire.ratings.voting.rules import (
    borda,
    copeland,
    markov,
    median_rank,
    minimax,
    order_by_score,
    ranked_pairs,
    schulze,
)

_NO_VOTES = "took part in no readable judgment"
_MAX_COUNTED = 2**53
"""Largest number of orders that is given exactly: JSON readers support no larger integers."""
_NO_ANCHORS = frozenset({"anchors"})


def by_kemeny(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Kemeny-Young; all bootstrap draws together get as many seconds as the order itself."""
    (data, whole, drawn), unproved = _votes(battles, judgments), []

    def refit(rows: NDArray[np.intp]) -> Order:
        found = kemeny_young(drawn(rows), seconds=options.seconds / options.replicates)
        unproved.append(not found.proved)
        return found

    order = kemeny_young(whole, seconds=options.seconds)
    found = with_rank_intervals(order, data, options, refit=refit, notes=_kemeny_notes(order, options.seconds))
    if not any(unproved):
        return found
    late = f"the orders of {sum(unproved)} of {len(unproved)} draws are not proved: intervals of ranks may be too wide"
    noted = [replace(one, notes=(*one.notes, late)) if isinstance(one, MethodNotes) else one for one in found.findings]
    return replace(found, findings=tuple(noted))


def by_votes(method: Callable[[Votes], Order], battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Any method that takes only pairwise votes."""
    data, whole, drawn = _votes(battles, judgments)
    return with_rank_intervals(method(whole), data, options, refit=lambda rows: method(drawn(rows)))


def _votes(battles: Battles, judgments: Judgments) -> tuple[Comparisons, Votes, Callable[[NDArray[np.intp]], Votes]]:
    """The rows to resample, their votes, and a function that gives the votes of a draw, by position.

    On ballots two unranked models have half a vote each, which pairwise judgments leave out: without it, the fewer
    ballots rank a model, the fewer votes its share would be based on.
    """
    if battles.ballots is None:
        data = judgments.comparisons()
        return data, votes(data), lambda rows: votes(data.select(rows))
    found = paired_ballots(battles, judgments)
    return found.data, ballot_votes(found.ballots), lambda rows: ballot_votes(found.resample(rows))


def with_rank_intervals(
    order: Order,
    data: Comparisons,
    options: Options,
    *,
    refit: OrderRefit | None = None,
    notes: Sequence[str] = (),
) -> Rated:
    """An order as leaderboard entries: positions without Elo points, since an order is not a scale.

    Under `options.replicates` rows, or whole clusters if there are any, are resampled, and `refit` orders the models by
    each draw; without either there are no intervals of ranks. `notes` are among the findings.
    """
    size, known = len(order.models), np.isfinite(order.position)
    drawn, places, errors = None, None, "none"
    if options.replicates and refit is not None:
        drawn = redrawn_positions(data, refit, order, replicates=options.replicates, seed=options.seed)
        places = drawn.places(options.level)
        errors = f"bootstrap over {drawn.units} {'instructions' if drawn.unit == 'cluster' else 'battles'}"
    nothing, blank = np.zeros(size, dtype=np.int64), np.full(size, np.nan)
    places = places or PositionIntervals(nothing, nothing, nothing, blank)
    figures = {"position": order.position}
    if order.score is not None:
        figures[order.unit or "score"] = order.score
    return Rated(
        ratings=Ratings(
            method=order.method,
            models=order.models,
            logits=blank,
            battles=data.played,
            gauge="order",
            errors=errors,
            score=order.score,
            unit=order.unit,
        ),
        lo=blank,
        hi=blank,
        se=blank,
        rank_lo=places.lo,
        rank_hi=places.hi,
        tier=places.tier,
        best=places.best,
        group=known.astype(np.int64),
        groups=(tuple(name for name, there in zip(order.models, known.tolist(), strict=True) if there),),
        reasons={name: _NO_VOTES for name, there in zip(order.models, known.tolist(), strict=True) if not there},
        figures=figures,
        fits=(
            {"group": 1, "models": int(known.sum()), "judgments": len(data), **_errors_reason(order, options, drawn)},
        ),
        without_estimate=0 if drawn is None else drawn.without_estimate,
        findings=(contradicted_votes(order), MethodNotes((*_component_notes(data, known), *notes))),
        position=order.position,
    )


def _kemeny_notes(order: Order, seconds: float) -> list[str]:
    if not order.proved:
        return [
            f"not proved within {seconds:g} s: this order contradicts {order.cost:g} of weight, and no order less than "
            f"{order.lower_bound:g}"
        ]
    if order.optimal_orders is None:
        return ["other orders may cost the same: too many models have majorities in circles, or ties, to count them"]
    if order.optimal_orders > 1:
        return ["several orders cost the same: positions are means over all of them"]
    return []


def _component_notes(data: Comparisons, known: NDArray[np.bool_]) -> list[str]:
    parts = weak_components(data.wins) - int(np.count_nonzero(~known))
    apart = f"the models fall into {parts} parts that never met: the order between models of two parts means nothing"
    return [apart] if parts > 1 else []


def _errors_reason(order: Order, options: Options, drawn: OrderDraws | None) -> dict[str, str]:
    """The reason why ranks have no intervals, if they have none."""
    if drawn is None:
        return {"errors_reason": f"no rank intervals: {order.method} has none by formula; --bootstrap 200 draws them"}
    if drawn.units < 2:
        return {"errors_reason": "no errors: all judgments are of one cluster, so nothing can be drawn again"}
    return {}


def contradicted_votes(order: Order) -> ContradictedVotes:
    """What an order costs, without a number of equal orders that JSON readers cannot hold."""
    count = order.optimal_orders
    return ContradictedVotes(
        order=tuple(order.order),
        cost=order.cost,
        lower_bound=order.lower_bound,
        proved=order.proved,
        optimal_orders=count if count is None or count <= _MAX_COUNTED else None,
    )


KEMENY = Method(
    by_kemeny,
    "the order that contradicts the least votes, exact",
    frozenset({"seconds"}),
    ignores=_NO_ANCHORS,
    orders=True,
)


def _voting_method(order: Callable[[Votes], Order], purpose: str) -> Method:
    """A method that takes only pairwise votes."""
    return Method(partial(by_votes, order), purpose, ignores=_NO_ANCHORS, orders=True)


BORDA = _voting_method(borda, "an order by the share of votes that prefer a model")
COPELAND = _voting_method(copeland, "an order by the share of opponents that a majority puts below")
MINIMAX = _voting_method(minimax, "an order by the worst defeat")
RANKED_PAIRS = _voting_method(ranked_pairs, "an order by majorities, the largest first, that close no cycle")
SCHULZE = _voting_method(schulze, "an order by the strongest paths of majorities")
MARKOV = _voting_method(markov, "an order by where a walk that follows votes spends its time")


def by_median_rank(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """An order by the median position of each model; raises `InputError` where there are no ballots."""
    found = paired_ballots(battles, judgments)

    def refit(rows: NDArray[np.intp]) -> Order:
        return median_rank(found.resample(rows))

    return with_rank_intervals(median_rank(found.ballots), found.data, options, refit=refit, notes=found.notes)


def by_plackett_luce(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Plackett-Luce by component: models not connected by chains of "above" are rated apart, unless a ridge is used.

    Models rated together form an order, and the votes that it contradicts are counted as for other orders. Raises
    `InputError` where there are no ballots.
    """
    found, ridge = paired_ballots(battles, judgments), options.ridge or 0.0

    def rate_group(part: Comparisons) -> Rated:
        inside = found.restrict(part.models)
        anchors = {name: elo for name, elo in options.anchors.items() if name in part.models}

        def refit(rows: NDArray[np.intp]) -> Ratings:
            return plackett_luce(inside.resample(rows), ridge=ridge, anchors=anchors, errors="none")

        errors = errors_for(part, options)
        ratings = plackett_luce(inside.ballots, ridge=ridge, anchors=anchors, errors=errors, crossed=part.crossed)
        return with_intervals(ratings, part, options, refit=refit)

    rated = rate_by_component(found.data, options, rate_group)
    findings = [*rated.findings, MethodNotes(tuple(found.notes))]
    if len(rated.groups) == 1:
        order = order_by_score("plackett-luce", ballot_votes(found.ballots), rated.ratings.logits, "logit")
        findings.append(contradicted_votes(order))
    return replace(rated, findings=tuple(findings))


MEDIAN_RANK = Method(
    by_median_rank,
    "an order by the median place on ballots",
    needs=("ballots",),
    ignores=frozenset({"anchors"}),
    orders=True,
)
PLACKETT_LUCE = Method(
    by_plackett_luce,
    "maximum likelihood of ballots: the best of all, then of the others, and so on",
    frozenset({"ridge", "errors"}),
    ("ballots",),
)
