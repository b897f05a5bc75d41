"""What the registry knows of a rating method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from venire.arena.battles import Battles
from venire.ratings.data.judgments import Judgments
from venire.ratings.inference.options import Options
from venire.ratings.pairwise.apart import Rated

__all__ = ["ABILITY_OPTIONS", "JUDGE_OPTIONS", "Method"]

ABILITY_OPTIONS = frozenset({"ridge", "errors", "restarts", "habits", "ability_ridge"})
"""Options of methods that fit an ability for each judge."""
JUDGE_OPTIONS = frozenset({"judge_weights", "own_votes"})
"""Options that mean nothing where what people said is rated: it has no judge."""


@dataclass(frozen=True, slots=True)
class Method:
    """A rating method, an entry of `registry.METHODS`.

    `run` rates the models of a table: from the verdicts, the judgments that they come to and the options. `purpose` is
    a line for `venire rate --help`. `takes` names options beyond those that most take, `ignores` those of these that
    mean nothing to it. `needs` are columns that a table must have. `rates` says whether models are rated; else judges
    alone are measured. `orders` says that models get places in an order, and no ratings.
    """

    run: Callable[[Battles, Judgments, Options], Rated]
    purpose: str
    takes: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    ignores: frozenset[str] = frozenset()
    rates: bool = True
    orders: bool = False
