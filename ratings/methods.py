"""The methods that rate models, by name: what each needs, what it may be told, and how its intervals are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.apart import Rated
from venire.ratings.merging import Judgments, merge_orders
from venire.ratings.options import Options

__all__ = ["METHODS", "Method", "merged", "missing", "rate", "unrated"]


@dataclass(frozen=True, slots=True)
class Method:
    """One method: `takes` names options beyond those that all take, `needs` columns that a table must have."""

    run: Callable[[Battles, Judgments, Options], Rated]
    purpose: str
    takes: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()


_EVERYBODY = frozenset({"merge", "flips", "seed", "level", "replicates"})
_COLUMNS = {
    "score": "the judge's score difference (a column score_difference, or a protocol that scores)",
    "human": "what people said (a column human_winner)",
    "features": "covariates (name them with --covariate)",
}


def merged(battles: Battles, options: Options) -> Judgments:
    """The judgments that an option's merge and treatment of flips make of verdicts; raises as `merge_orders` does."""
    return merge_orders(battles, options.merge, flips=options.flips)


def missing(battles: Battles, method: str) -> str | None:
    """What a table lacks for a method, in words; None where nothing."""
    lacking = [name for name in METHODS[method].needs if not _has(battles, name)]
    return "; ".join(_COLUMNS[name] for name in lacking) or None


def rate(battles: Battles, method: str, options: Options) -> Rated:
    """Rate the models of a table of verdicts by one method.

    Raises `InputError` for an unknown method, an option that it does not take and a column that the table lacks.
    """
    if method not in METHODS:
        raise InputError(f"method is {method!r}; choose one of {', '.join(METHODS)}")
    chosen = METHODS[method]
    if unknown := [name for name in options.changed() if name not in chosen.takes | _EVERYBODY]:
        raise InputError(f"{method} does not take {', '.join(unknown)}: leave it out, or choose another method")
    if lacking := missing(battles, method):
        raise InputError(f"{method} needs {lacking}")
    return chosen.run(battles, merged(battles, options), options)
