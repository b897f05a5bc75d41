"""The methods that rate models, by name: what each needs, what it may be told, and how its intervals are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.apart import Rated, joined
from venire.ratings.bradley_terry import NotConvergedError, bradley_terry
from venire.ratings.comparisons import Comparisons
from venire.ratings.covariates import covariates, position
from venire.ratings.elo import online_elo
from venire.ratings.existence import groups_of
from venire.ratings.intervals import finished
from venire.ratings.m_elo import m_elo
from venire.ratings.merging import Judgments, merge_orders
from venire.ratings.options import Options
from venire.ratings.soft_elo import RIDGE, hard_elo, human_elo, soft_elo
from venire.ratings.ties import davidson, rao_kupper
from venire.ratings.trueskill import trueskill
from venire.ratings.win_rate import win_rate, win_rate_balanced
from venire.ratings.wins import win_counts

__all__ = ["METHODS", "Method", "merged", "missing", "rate", "unrated"]


@dataclass(frozen=True, slots=True)
class Method:
    """One method: `takes` names options beyond those that all take, `needs` columns that a
    table must have, `rates` says whether models get ratings."""

    run: Callable[[Battles, Judgments, Options], Rated]
    purpose: str
    takes: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    rates: bool = True


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


def unrated(data: Comparisons, reasons: Mapping[str, str]) -> Rated:
    """A table of models without any rating, and why."""
    size = len(data.models)
    return joined(data, [np.array([code]) for code in range(size)], _never, lambda code: reasons[data.models[code]])


def _never(_: Comparisons) -> Rated:
    raise AssertionError("a model alone is not fitted")


def _has(battles: Battles, name: str) -> bool:
    return bool(battles.features) if name == "features" else getattr(battles, name) is not None


def _bradley_terry(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Ties by choice; models that no chain of wins joins are rated apart, unless a ridge joins them."""
    data = judgments.comparisons()
    if options.ties == "drop":
        data = data.select(data.y != 0.5)
    return _apart(data, options, _bradley_terry_of)


def _bradley_terry_of(data: Comparisons, options: Options) -> Rated:
    anchors = {name: elo for name, elo in options.anchors.items() if name in data.models}
    if options.ties in ("rao-kupper", "davidson"):
        fit = rao_kupper if options.ties == "rao-kupper" else davidson
        found = fit(data, ridge=options.ridge or 0.0, anchors=anchors)
        return finished(found.ratings, data, options)
    errors = "none" if options.replicates else options.errors
    return finished(bradley_terry(data, ridge=options.ridge or 0.0, anchors=anchors, errors=errors), data, options)


def _apart(data: Comparisons, options: Options, rate_group: Callable[[Comparisons, Options], Rated]) -> Rated:
    counts = win_counts(data)
    held = np.isin(data.models, list(options.anchors))
    groups = groups_of(counts, held)

    def rate_one(part: Comparisons) -> Rated:
        try:
            return rate_group(part, options)
        except NotConvergedError as error:
            return unrated(part, dict.fromkeys(part.models, str(error)))

    if options.ridge or len(groups) < 2:
        return rate_one(data)
    wins = np.bincount(counts.first, counts.won, len(data.models)) + np.bincount(
        counts.second, counts.lost, len(data.models)
    )
    played = counts.played
    return joined(data, groups, rate_one, lambda code: _alone(float(wins[code]), float(played[code])))


def _alone(won: float, played: float) -> str:
    """Why a model that shares its group with no other has no finite rating."""
    if played == 0.0:
        return "took part in no readable judgment"
    if won == played:
        return "won every judgment it took part in: no finite rating exists"
    if won == 0.0:
        return "lost every judgment it took part in: no finite rating exists"
    return "no chain of wins leads both to it and back from it: no finite rating exists"


def _m_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    return _apart(judgments.comparisons(), options, lambda part, told: finished(m_elo(part), part, told, m_elo))


def _with_covariates(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """One row a verdict, so that position can be a covariate; flips stay as the two verdicts that they are."""
    rows = merge_orders(battles, "none")
    columns = {name: position(~rows.first) if name == "position" else rows.features[name] for name in options.covariates}
    found = covariates(
        rows.comparisons(),
        np.column_stack(list(columns.values())),
        tuple(columns),
        ridge=options.ridge or 0.0,
        errors=options.errors,
    )
    lo, hi = found.interval(options.level)
    told: dict[str, Any] = {
        "covariates": [
            {"name": name, "coefficient": w, "se": se, "lo": low, "hi": high, "p": p}
            for name, w, se, low, high, p in zip(
                found.names, *(c.tolist() for c in (found.coefficients, found.se, lo, hi, found.p_values)), strict=True
            )
        ],
        "kendall_without": found.kendall,
        "log_likelihood_without": found.plain_log_likelihood,
    }
    return finished(found.ratings, rows.comparisons(), options, figures={"elo_without": found.plain.elo}, more=told)


def _elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    data = judgments.comparisons()
    found = online_elo(data, seed=options.seed)
    return finished(found.ratings, data, options, figures={"shuffle_sd": found.sd})


def _human_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    data = judgments.comparisons()
    return finished(human_elo(data, judgments.human, ridge=options.ridge or RIDGE), data, options)


def _hard_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    data = judgments.comparisons()
    return finished(hard_elo(data, ridge=options.ridge or RIDGE), data, options)


def _soft_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    data = judgments.comparisons()
    found = soft_elo(data, judgments.score, judgments.human, ridge=options.ridge or RIDGE)
    return finished(found.ratings, data, options, more={"notes": list(found.warnings)})


_FAMILY = frozenset({"ridge", "anchors", "errors"})

METHODS: dict[str, Method] = {
    "bradley-terry": Method(_bradley_terry, "maximum likelihood of P = sigma(R_A - R_B)", _FAMILY | {"ties"}),
    "covariates": Method(
        _with_covariates,
        "the same, with length, style or position accounted for",
        frozenset({"ridge", "errors", "covariates"}),
        ("features",),
    ),
    "soft-elo": Method(_soft_elo, "the same on calibrated probabilities", frozenset({"ridge"}), ("score", "human")),
    "hard-elo": Method(_hard_elo, "the same on verdicts, with a slight ridge", frozenset({"ridge"})),
    "human-elo": Method(_human_elo, "the same on what people said", frozenset({"ridge"}), ("human",)),
    "m-elo": Method(_m_elo, "Bradley-Terry under its other name"),
    "elo": Method(_elo, "online Elo, mean over shuffled orders"),
}
