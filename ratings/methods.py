"""The methods that rate models, by name: what each needs, and what it may be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings import recipes, soft_recipes
from venire.ratings.apart import Rated
from venire.ratings.merging import Judgments, merge_orders
from venire.ratings.options import Options

__all__ = ["METHODS", "Method", "merged", "missing", "rate", "untaken"]


@dataclass(frozen=True, slots=True)
class Method:
    """One method: `takes` names options beyond those that most take, `deaf` those of these that it does not hear.

    `needs` are columns that a table must have. `rates` says whether models get ratings; else judges alone are measured.
    """

    run: Callable[[Battles, Judgments, Options], Rated]
    purpose: str
    takes: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    deaf: frozenset[str] = frozenset()
    rates: bool = True


_MOST = frozenset({"merge", "flips", "seed", "level", "replicates", "anchors"})
_COLUMNS = {
    "score": "the judge's score difference (a column score_difference, or a protocol that scores)",
    "human": "what people said (a column human_winner)",
}


def merged(battles: Battles, options: Options) -> Judgments:
    """The judgments that an option's merge and treatment of flips make of verdicts; raises as `merge_orders` does."""
    return merge_orders(battles, options.merge, flips=options.flips)


def missing(battles: Battles, method: str, options: Options | None = None) -> str | None:
    """What a table or the options lack for a method, in words; None where nothing."""
    if method == "covariates" and options is not None and not options.covariates:
        return "names: --covariate NAME, for columns of the table, or position"
    lacking = [name for name in METHODS[method].needs if getattr(battles, name) is None]
    return "; ".join(_COLUMNS[name] for name in lacking) or None


def untaken(method: str, options: Options) -> tuple[str, ...]:
    """Options that were changed and mean nothing to a method."""
    chosen = METHODS[method]
    heard = (chosen.takes | _MOST) - chosen.deaf
    return tuple(name for name in options.changed() if name not in heard)


def rate(battles: Battles, method: str, options: Options) -> Rated:
    """Rate the models of a table of verdicts by one method.

    Raises `InputError` for an unknown method, an option that it does not take and a column that the table lacks.
    """
    if method not in METHODS:
        raise InputError(f"method is {method!r}; choose one of {', '.join(METHODS)}")
    chosen = METHODS[method]
    if unknown := untaken(method, options):
        raise InputError(f"{method} does not take {', '.join(unknown)}: leave it out, or choose another method")
    if lacking := missing(battles, method, options):
        raise InputError(f"{method} needs {lacking}")
    if strange := sorted(set(options.anchors) - set(battles.models)):
        raise InputError(f"there is no model {strange[0]!r} to anchor; there are: {', '.join(battles.models[:20])}")
    return chosen.run(battles, merged(battles, options), options)


METHODS: dict[str, Method] = {
    "bradley-terry": Method(
        recipes.by_bradley_terry, "maximum likelihood of P = sigma(R_A - R_B)", frozenset({"ridge", "errors", "ties"})
    ),
    "covariates": Method(
        recipes.with_covariates,
        "the same, with length, style or position accounted for",
        frozenset({"ridge", "errors", "covariates"}),
        deaf=frozenset({"merge", "flips"}),
    ),
    "soft-elo": Method(
        soft_recipes.by_soft_elo,
        "the same on calibrated probabilities, with conformal intervals",
        frozenset({"ridge", "errors"}),
        ("score", "human"),
    ),
    "hard-elo": Method(
        soft_recipes.by_hard_elo, "the same on verdicts, with a slight ridge", frozenset({"ridge", "errors"})
    ),
    "human-elo": Method(
        soft_recipes.by_human_elo, "the same on what people said", frozenset({"ridge", "errors"}), ("human",)
    ),
    "m-elo": Method(recipes.by_m_elo, "Bradley-Terry under its other name", frozenset({"errors"})),
    "elo": Method(recipes.by_elo, "online Elo, mean over shuffled orders"),
    "trueskill": Method(recipes.by_trueskill, "TrueSkill without draws, mean over shuffled orders"),
    "win-rate": Method(recipes.by_win_rate, "share of battles won, a tie counting half"),
    "win-rate-balanced": Method(recipes.by_win_rate_balanced, "mean over opponents of the share won against each"),
    "consistency": Method(
        recipes.by_consistency,
        "judges alone: how firmly each decides",
        deaf=frozenset({"merge", "flips", "anchors"}),
        rates=False,
    ),
}
