"""The methods that rate models, by name: what each needs, what it may be told, and how its intervals are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.apart import Rated, joined
from venire.ratings.bradley_terry import NotConvergedError, bradley_terry
from venire.ratings.comparisons import Comparisons
from venire.ratings.covariates import covariates
from venire.ratings.elo import online_elo
from venire.ratings.existence import groups_of
from venire.ratings.intervals import finished
from venire.ratings.m_elo import m_elo
from venire.ratings.merging import Judgments, merge_orders
from venire.ratings.options import Options
from venire.ratings.soft_elo import RIDGE, hard_elo, human_elo, soft_elo
from venire.ratings.ties import davidson, rao_kupper
from venire.ratings.trueskill import trueskill
from venire.ratings.win_rate import WinRates, win_rate, win_rate_balanced
from venire.ratings.wins import win_counts

__all__ = ["METHODS", "Method", "merged", "missing", "rate", "unrated", "untaken"]


@dataclass(frozen=True, slots=True)
class Method:
    """One method: `takes` names options beyond those that all take, `needs` columns that a
    table must have, `rates` says whether models get ratings."""

    run: Callable[[Battles, Judgments, Options], Rated]
    purpose: str
    takes: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    rates: bool = True


_EVERYBODY = frozenset({"merge", "flips", "seed", "level", "replicates", "anchors"})
_FEW_SHUFFLES = 10
"""Orders of one bootstrap replicate: the replicates differ by more than their orders do."""

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
    return tuple(name for name in options.changed() if name not in METHODS[method].takes | _EVERYBODY)


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


def unrated(data: Comparisons, reasons: Mapping[str, str]) -> Rated:
    """A table of models without any rating, and why."""
    size = len(data.models)
    return joined(data, [np.array([code]) for code in range(size)], _never, lambda code: reasons[data.models[code]])


def _never(_: Comparisons) -> Rated:
    raise AssertionError("a model alone is not fitted")


def _bradley_terry(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Ties by choice; models that no chain of wins joins are rated apart, unless a ridge joins them."""
    data = judgments.comparisons()
    if options.ties == "drop":
        data = data.select(data.y != 0.5)
    return _apart(data, options, _bradley_terry_of)


def _bradley_terry_of(data: Comparisons, options: Options) -> Rated:
    ridge, anchors = options.ridge or 0.0, {name: elo for name, elo in options.anchors.items() if name in data.models}
    if options.ties in ("rao-kupper", "davidson"):
        if not np.isin(data.y, (0.0, 0.5, 1.0)).all():
            raise InputError(
                f"--ties {options.ties} needs judgments that are a win, a tie or a loss; a tie in one order and a win "
                "in the other are half a win here: add --merge strict, which counts them as ties"
            )
        fit = rao_kupper if options.ties == "rao-kupper" else davidson
        found = fit(data, ridge=ridge, anchors=anchors)
        more = {"tie": found.tie, "tie_se": found.tie_se}
        return finished(
            found.ratings,
            data,
            options,
            refit=lambda rows: fit(data.select(rows), ridge=ridge, anchors=anchors).ratings,
            more=more,
        )
    errors = "none" if options.replicates else options.errors
    return finished(bradley_terry(data, ridge=ridge, anchors=anchors, errors=errors), data, options, ridge=ridge)


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
    return _apart(judgments.comparisons(), options, lambda part, told: finished(m_elo(part), part, told))


def _with_covariates(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """One row a verdict, so that position can be a covariate; flips stay as the two verdicts that they are."""
    rows = merge_orders(battles, "none")
    data, names, ridge = rows.comparisons(), options.covariates, options.ridge or 0.0
    table = np.column_stack([_column(rows, name) for name in names])
    found = covariates(data, table, names, ridge=ridge, errors="none" if options.replicates else options.errors)
    lo, hi = found.interval(options.level)
    figures = (found.coefficients, found.se, lo, hi, found.p_values)
    told: dict[str, Any] = {
        "covariates": [
            dict(zip(("name", "coefficient", "se", "lo", "hi", "p"), (name, *map(_finite, row)), strict=True))
            for name, row in zip(found.names, zip(*(one.tolist() for one in figures), strict=True), strict=True)
        ],
        "kendall_without": found.kendall,
        "log_likelihood_without": found.plain_log_likelihood,
        "flips_as": "two verdicts",
    }
    return finished(
        found.ratings,
        data,
        options,
        refit=lambda drawn: covariates(data.select(drawn), table[drawn], names, ridge=ridge, errors="none").ratings,
        figures={"elo_without": found.plain.elo},
        more=told,
    )


def _column(rows: Judgments, name: str) -> NDArray[np.float64]:
    if name == "position":
        if rows.first is None:
            raise InputError("position is not known: the table does not say which completion was shown first")
        return rows.first.astype(np.float64)
    if name not in rows.features:
        raise InputError(f"there is no covariate {name!r}; there are: {', '.join(['position', *rows.features])}")
    return rows.features[name]


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    data, seed = judgments.comparisons(), options.seed
    found = online_elo(data, seed=seed)
    return finished(
        found.ratings,
        data,
        options,
        refit=lambda rows: online_elo(data.select(rows), seed=seed, shuffles=_FEW_SHUFFLES).ratings,
        figures={"shuffle_sd": found.sd},
    )


def _trueskill(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    data, seed = judgments.comparisons(), options.seed
    found = trueskill(data, seed=seed)
    return finished(
        found.ratings,
        data,
        options,
        refit=lambda rows: trueskill(data.select(rows), seed=seed, shuffles=_FEW_SHUFFLES).ratings,
        figures={"mu": found.mu, "sigma": found.sigma},
        more={"ties_left_out": found.ties},
    )


def _win_rate(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    return _rates(win_rate, judgments, options)


def _win_rate_balanced(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    return _rates(win_rate_balanced, judgments, options)


def _rates(rates: Callable[[Comparisons], WinRates], judgments: Judgments, options: Options) -> Rated:
    data = judgments.comparisons()
    found = rates(data)
    return finished(
        found.ratings,
        data,
        options,
        refit=lambda rows: rates(data.select(rows)).ratings,
        figures={"win_rate": found.rate, "win_rate_se": found.se},
    )


def _human_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    data, human, ridge = judgments.comparisons(), _known(judgments.human), _ridge(options)
    return finished(
        human_elo(data, human, ridge=ridge),
        data,
        options,
        refit=lambda rows: human_elo(data.select(rows), human[rows], ridge=ridge),
    )


def _hard_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    data, ridge = judgments.comparisons(), _ridge(options)
    return finished(hard_elo(data, ridge=ridge), data, options, ridge=ridge)


def _soft_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    data, ridge = judgments.comparisons(), _ridge(options)
    score, human = _known(judgments.score), _known(judgments.human)
    found = soft_elo(data, score, human, ridge=ridge)
    return finished(
        found.ratings,
        data,
        options,
        refit=lambda rows: soft_elo(data.select(rows), score[rows], human[rows], ridge=ridge).ratings,
        more={"beta": found.beta, "n_fit": found.n_fit, "ece": found.ece, "notes": list(found.warnings)},
    )


def _ridge(options: Options) -> float:
    return RIDGE if options.ridge is None else options.ridge


def _known(column: NDArray[np.float64] | None) -> NDArray[np.float64]:
    assert column is not None, "`needs` has seen to it"
    return column


def _consistency(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Models are not rated: judges are, beside every method's board, and this is the board of them alone."""
    return unrated(replace(judgments.comparisons().select(np.zeros(len(judgments), dtype=np.bool_)), models=()), {})


METHODS: dict[str, Method] = {
    "bradley-terry": Method(
        _bradley_terry, "maximum likelihood of P = sigma(R_A - R_B)", frozenset({"ridge", "errors", "ties"})
    ),
    "covariates": Method(
        _with_covariates,
        "the same, with length, style or position accounted for",
        frozenset({"ridge", "errors", "covariates"}),
    ),
    "soft-elo": Method(_soft_elo, "the same on calibrated probabilities", frozenset({"ridge"}), ("score", "human")),
    "hard-elo": Method(_hard_elo, "the same on verdicts, with a slight ridge", frozenset({"ridge"})),
    "human-elo": Method(_human_elo, "the same on what people said", frozenset({"ridge"}), ("human",)),
    "m-elo": Method(_m_elo, "Bradley-Terry under its other name"),
    "elo": Method(_elo, "online Elo, mean over shuffled orders"),
    "trueskill": Method(_trueskill, "TrueSkill without draws, mean over shuffled orders"),
    "win-rate": Method(_win_rate, "share of battles won, a tie counting half"),
    "win-rate-balanced": Method(_win_rate_balanced, "mean over opponents of the share won against each"),
    "consistency": Method(_consistency, "judges alone: how firmly each decides", rates=False),
}
