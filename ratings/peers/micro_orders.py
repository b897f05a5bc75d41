"""Orders instruction by instruction, and positions on the ballots of single judges: what peers are measured by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Ballots
from venire.arena.errors import InputError
from venire.ratings.data.ballots import ballot_votes, ballots_from_judgments, select_ballots, without_own
from venire.ratings.data.judgments import Judgments, combine_keys
from venire.ratings.data.models import model_of_judge
from venire.ratings.data.statistics import ranks
from venire.ratings.data.validation import code_integers
from venire.ratings.data.votes import Order, Votes, votes

__all__ = [
    "Aggregate",
    "Placings",
    "by_judge",
    "complete",
    "order_by",
    "orders_by_instruction",
    "placings",
    "self_free",
]

Aggregate = Callable[[Votes], Order]
"""What makes one order of many votes: `kemeny.kemeny_young`, or another voting method."""


@dataclass(frozen=True, slots=True, eq=False)
class Placings:
    """Positions by one judge on one instruction (rows): the mean over repeats.

    `position` (rows, models) is 1 for the best; tied models share the mean of their places, models that were not ranked
    those below, and NaN is a model that was not shown. `weight` (rows,) is what the judge's ballots count there.
    """

    judge: NDArray[np.int32]
    instruction: NDArray[np.int32]
    position: NDArray[np.float64]
    weight: NDArray[np.float64]


def placings(given: Ballots) -> Placings:
    """The positions that each judge gave on each instruction, ballots of weight 0 left out."""
    counted = np.ones(len(given)) if given.weight is None else given.weight
    if not (counted > 0.0).all():
        given, counted = select_ballots(given, counted > 0.0), counted[counted > 0.0]
    table = np.where(np.isinf(given.rank), len(given.models) + 1.0, given.rank)
    there = ~np.isnan(table)
    # What is not there is ranked behind all that is, where it changes no position.
    places = np.where(there, ranks(np.where(there, table, np.inf)), 0.0) if len(given) else table
    _, first, group = np.unique(
        combine_keys(given.judge, given.instruction + 1), return_index=True, return_inverse=True
    )
    sums, total = np.zeros((2, len(first), len(given.models)))
    np.add.at(sums, group, counted[:, None] * places)
    np.add.at(total, group, counted[:, None] * there)
    mean = np.where(total > 0.0, sums / np.where(total > 0.0, total, 1.0), np.nan)
    weight = np.bincount(group, counted, len(first)) / np.maximum(np.bincount(group, minlength=len(first)), 1)
    return Placings(given.judge[first], given.instruction[first], mean, weight)


def complete(given: Judgments) -> tuple[Ballots | None, int, int]:
    """The ballots that judgments of pairs make, how many lack a pair, of how many (judge,
    instruction, repeat).

    None where all of them do.
    """
    groups, _ = code_integers(combine_keys(given.judge, given.instruction + 1, given.repeat))
    try:
        found = ballots_from_judgments(given)
    except InputError:  # it raises for nothing else
        return None, len(groups), len(groups)
    return found, len(groups) - len(found), len(groups)


def by_judge(given: Judgments | Ballots) -> dict[str, NDArray[np.float64]]:
    """Positions (instructions, models) that each judge gave, NaN where it gave none; judges without any are left out.

    A judge of pairs gave positions where it judged all pairs of an instruction, by the points that it gave.
    """
    if not isinstance(given, Ballots):
        whole, _, _ = complete(given)
        if whole is None:
            return {}
        given = whole
    seen, size = placings(given), max(len(given.instructions), 1)
    found = {}
    for code, name in enumerate(given.judges):
        rows = seen.judge == code
        if rows.any():
            found[name] = np.full((size, len(given.models)), np.nan)
            found[name][seen.instruction[rows] if given.instructions else 0] = seen.position[rows]
    return found


def order_by(aggregate: Aggregate, given: Judgments | Ballots) -> Order:
    """One order of all models by all that was said."""
    return aggregate(ballot_votes(given) if isinstance(given, Ballots) else votes(given.comparisons()))


def orders_by_instruction(aggregate: Aggregate, given: Judgments | Ballots) -> NDArray[np.float64]:
    """Positions (instructions, models) in one order an instruction; NaN for a model that it does not have.

    Where no instruction is named, all is of one.
    """
    code, size = given.instruction, len(given.instructions)
    if not size:
        return order_by(aggregate, given).position[None, :]
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=size))
    found = np.full((size, len(given.models)), np.nan)
    data = None if isinstance(given, Ballots) else given.comparisons()
    for number, rows in enumerate(np.split(order, ends[:-1])):
        if not len(rows):
            continue
        if isinstance(given, Ballots):
            said = ballot_votes(select_ballots(given, rows))
        elif data is not None:
            said = votes(data.select(rows))
        found[number] = aggregate(said).position
    return found


def self_free(given: Judgments | Ballots, peers: Mapping[str, str]) -> Judgments | Ballots:
    """The same without what judges said of themselves; `peers` says which model a judge of another name is."""
    if isinstance(given, Ballots):
        return without_own(given, peers)
    own = model_of_judge(given.judges, given.models, peers)[given.judge]
    return given.select((own != given.model_a) & (own != given.model_b))
