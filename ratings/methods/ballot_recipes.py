"""How methods that need whole ballots go from them, or from judgments of all pairs, to what a leaderboard shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.ratings.data.ballots import ballot_votes
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.counted_ballots import counted
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.result import Ratings
from venire.ratings.data.votes import Order
from venire.ratings.inference.intervals import errors_for, finished
from venire.ratings.inference.options import Options
from venire.ratings.methods.method import Method
from venire.ratings.methods.pairwise_recipes import rated_apart
from venire.ratings.methods.voting_recipes import order_facts, ordered
from venire.ratings.pairwise.apart import Rated
from venire.ratings.pairwise.plackett_luce import plackett_luce
from venire.ratings.voting.majorities import by_score
from venire.ratings.voting.median_rank import median_rank

__all__ = [
    "MEDIAN_RANK",
    "PLACKETT_LUCE",
    "by_median_rank",
    "by_plackett_luce",
]


def by_median_rank(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """An order by the median place of each model; raises `InputError` where there are no ballots to be had."""
    found = counted(battles, judgments)

    def refit(rows: NDArray[np.intp]) -> Order:
        return median_rank(found.drawn(rows))

    return ordered(median_rank(found.ballots), found.data, options, refit=refit, notes=found.notes)


def by_plackett_luce(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Plackett-Luce; models that no chain of "above" joins are rated apart, unless a ridge joins them.

    Models rated together make an order, and what it contradicts is told as of other orders.

    Raises `InputError` where there are no ballots to be had.
    """
    found, ridge = counted(battles, judgments), options.ridge or 0.0

    def rate_group(part: Comparisons, told: Options) -> Rated:
        inside = found.among(part.models)
        anchors = {name: elo for name, elo in told.anchors.items() if name in part.models}

        def refit(rows: NDArray[np.intp]) -> Ratings:
            return plackett_luce(inside.drawn(rows), ridge=ridge, anchors=anchors, errors="none")

        ratings = plackett_luce(inside.ballots, ridge=ridge, anchors=anchors, errors=errors_for(part, told))
        return finished(ratings, part, told, refit=refit)

    rated = rated_apart(found.data, options, rate_group)
    facts = {**rated.diagnostics, "notes": list(found.notes)}
    if len(rated.groups) == 1:
        order = by_score("plackett-luce", ballot_votes(found.ballots), rated.ratings.logits, "logit")
        facts |= order_facts(order, list(found.notes))
    return replace(rated, diagnostics=facts)


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
