"""Median rank: the place in the middle of those that the ballots give a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Ballots
from venire.ratings.data.ballots import ballot_votes
from venire.ratings.data.votes import Order
from venire.ratings.pairwise.plackett_luce import ranked_places
from venire.ratings.voting.majorities import by_score

__all__ = ["median_rank", "weighted_median"]

Vector = NDArray[np.float64]


def median_rank(ballots: Ballots) -> Order:
    """By the median, by weight, of a model's places over the ballots that show it; 1 is the best.

    Source: Bassett and Persky, Robust Voting (1999). Tied models share the mean of their places, unranked ones that of
    the places left. A place on a ballot of fewer models than there are is stretched to the whole field, so that the
    middle stays the middle: `1/2 + models (place - 1/2) / shown`. Medians that are equal stay so: there are few values
    for them, and many ties. Ballots that rank nothing, or show one model, say nothing.
    """
    field = ranked_places(ballots.rank)
    says = (field.ranked > 0) & (field.shown > 1)
    size = len(ballots.models)
    middle = (field.start + field.end) / 2.0
    place = 0.5 + size * middle / np.maximum(field.shown, 1)
    weight = np.ones(len(ballots)) if ballots.weight is None else ballots.weight
    counted = field.there & says & (weight > 0.0)
    model, value = field.model[counted], place[counted]
    share = np.broadcast_to(weight, counted.shape)[counted]
    median = np.full(size, np.nan)
    for code in np.unique(model).tolist():
        own = model == code
        median[code] = weighted_median(value[own], share[own])
    return by_score("median-rank", ballot_votes(ballots), median, "median place", key=-median)


def weighted_median(values: Vector, weight: Vector) -> float:
    """The value (n,) with half of the weight, above 0, on either side; the mean of two where the half falls between."""
    rising = np.argsort(values, kind="stable")
    ahead, half = np.cumsum(weight[rising]), 0.5 * float(weight.sum())
    slack = 1e-9 * half
    low = int(np.searchsorted(ahead, half - slack))
    high = int(np.searchsorted(ahead, half + slack))
    return 0.5 * float(values[rising[low]] + values[rising[min(high, len(values) - 1)]])
