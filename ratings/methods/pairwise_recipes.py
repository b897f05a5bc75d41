"""Recipes of ratings from pairs, from judgments to a rated table; `methods` lists them by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.data.result import Rated, Ratings
from venire.ratings.data.validation import finite_or_none
from venire.ratings.diagnostics.lack_of_fit import with_lack_of_fit
from venire.ratings.inference.intervals import anchor_shift, errors_for, with_intervals
from venire.ratings.inference.options import Options
from venire.ratings.methods.findings import (
    Components,
    CovariateEffect,
    CovariateEffects,
    FlipsAs,
    Lapse,
    MethodNotes,
    TieParameter,
    TiesLeftOut,
)
from venire.ratings.methods.methods import JUDGE_OPTIONS, Method
from venire.ratings.pairwise.balanced_pairs import balanced_pairs
from venire.ratings.pairwise.bradley_terry import bradley_terry, m_elo
from venire.ratings.pairwise.components import rate_groups, unrated, weak_components
from venire.ratings.pairwise.covariates import covariates
from venire.ratings.pairwise.online import online_elo, trueskill
from venire.ratings.pairwise.solvers import NotConvergedError
from venire.ratings.pairwise.ties import NoTieParameterError, davidson, rao_kupper
from venire.ratings.pairwise.win_rate import WinRates, win_rate, win_rate_balanced

_ROW = "row"
"""The feature in which judgments keep the mean number of their rows."""

_FEW_SHUFFLES = 10
"""Shuffled orders per bootstrap replicate: replicates differ by more than their orders do."""


def by_bradley_terry(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Bradley-Terry by component, with a choice of tie rules; a ridge connects the components.

    A group whose tie parameter is not finite is not rated, and the reason is given. Raises `InputError` for ties as an
    outcome on judgments that are not a win, tie or loss.
    """
    data = judgments.comparisons()
    if options.ties == "drop":
        data = data.select(data.y != 0.5)
    return rate_by_component(data, options, lambda part: _bradley_terry_of(part, options))


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
        return with_intervals(
            found.ratings,
            data,
            options,
            refit=lambda rows: fit(data.select(rows), ridge=ridge, anchors=anchors).ratings,
            findings=[TieParameter(found.tie, found.tie_se)],
        )
    ratings = bradley_terry(data, ridge=ridge, anchors=anchors, errors=errors_for(data, options))
    if options.pairs == "all":
        ratings = with_lack_of_fit(ratings, data, ridge=ridge, anchors=anchors)
    return with_intervals(ratings, data, options, ridge=ridge)


def rate_by_component(data: Comparisons, options: Options, rate_group: Callable[[Comparisons], Rated]) -> Rated:
    """Rate each strongly connected component by `rate_group`; a ridge connects them all."""
    counts = data.wins
    held = np.isin(data.models, list(options.anchors))
    groups = counts.strong_components(held)

    def rate_one(part: Comparisons) -> Rated:
        try:
            return rate_group(part)
        except (NotConvergedError, NoTieParameterError) as error:
            return unrated(part, dict.fromkeys(part.models, str(error)))

    between = 0
    if options.ridge or len(groups) < 2:
        found = rate_one(data)
    else:
        wins = np.bincount(counts.first, counts.won, len(data.models))
        wins += np.bincount(counts.second, counts.lost, len(data.models))
        played = counts.played
        found = rate_groups(
            data, groups, rate_one, lambda code: _unrated_reason(float(wins[code]), float(played[code]))
        )
        between = len(data) - sum(int(fit["judgments"]) for fit in found.fits)
    return replace(found, findings=(*found.findings, Components(weak_components(counts), between)))


def _unrated_reason(won: float, played: float) -> str:
    """The reason why a model that is alone in its group has no finite rating."""
    if played == 0.0:
        return "took part in no readable judgment"
    if won == played:
        return "won every judgment it took part in: no finite rating exists"
    if won == 0.0:
        return "lost every judgment it took part in: no finite rating exists"
    return "no chain of wins leads both to it and back from it: no finite rating exists"


def by_balanced_pairs(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Bradley-Terry ratings as if all pairs had been asked equally often, by a curve that fits other judges too.

    Models not connected by chains of wins are rated by component.
    """

    def rate_group(part: Comparisons) -> Rated:
        found = balanced_pairs(part)

        def refit(rows: NDArray[np.intp]) -> Ratings:
            return balanced_pairs(part.select(rows)).ratings

        return with_intervals(found.ratings, part, options, refit=refit, findings=[Lapse(found.lapse)])

    return rate_by_component(judgments.comparisons(), options, rate_group)


def by_m_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """m-ELO: Bradley-Terry on halved ties, without ridge."""

    def rate_group(part: Comparisons) -> Rated:
        return with_intervals(m_elo(part, errors=errors_for(part, options)), part, options)

    return rate_by_component(judgments.comparisons(), options, rate_group)


def by_covariates(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Covariates, with one row per verdict, so that position can be a covariate; a flip stays two verdicts.

    Raises `InputError` for an unknown covariate, and as `covariates` does.
    """
    rows = merge_orders(battles, "none")
    data, names, ridge = rows.comparisons(), options.covariates, options.ridge or 0.0
    table = np.column_stack([_column(rows, name) for name in names])
    found = covariates(data, table, names, ridge=ridge, errors=errors_for(data, options))
    lo, hi = found.interval(options.level)
    figures = (found.coefficients, found.se, lo, hi, found.p_values)
    effects = tuple(
        CovariateEffect(name, *map(finite_or_none, row))
        for name, row in zip(found.names, zip(*(figure.tolist() for figure in figures), strict=True), strict=True)
    )
    return with_intervals(
        found.ratings,
        data,
        options,
        refit=lambda drawn: covariates(data.select(drawn), table[drawn], names, ridge=ridge, errors="none").ratings,
        figures={"elo_without": found.plain.elo + anchor_shift(found.plain, options.anchors)},
        findings=[CovariateEffects(effects, found.kendall, found.plain_log_likelihood), FlipsAs("two verdicts")],
    )


def _column(rows: Judgments, name: str) -> NDArray[np.float64]:
    if name == "position":
        if rows.first is None:
            raise InputError("position is not known: the table does not say which completion was shown first")
        return rows.first.astype(np.float64)
    if name not in rows.features:
        raise InputError(f"there is no covariate {name!r}; {suggest(name, ['position', *rows.features])}")
    return rows.features[name]


def by_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Online Elo over shuffled orders; `shuffle_sd` is the standard deviation between orders.

    With `order` "given" it is one pass over judgments in the order of their first verdicts.
    """
    seed, order, k = options.seed, options.order, options.k
    if order == "given":
        # Merging sorts rows by name, so their numbers go with them; a feature of A less B turns with the sides.
        numbered = replace(battles, features={_ROW: np.arange(len(battles.status), dtype=np.float64)})
        judgments = merge_orders(numbered, options.merge, flips=options.flips)
        judgments = judgments.select(np.argsort(np.abs(judgments.features[_ROW]), kind="stable"))
    data = judgments.comparisons()
    found = online_elo(data, k=k, seed=seed, order=order)
    return with_intervals(
        found.ratings,
        data,
        options,
        refit=lambda rows: online_elo(data.select(rows), seed=seed, k=k, shuffles=_FEW_SHUFFLES, order=order).ratings,
        figures={"shuffle_sd": found.sd},
    )


def by_trueskill(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """TrueSkill over shuffled orders; ties are left out and counted."""
    data, seed = judgments.comparisons(), options.seed
    found = trueskill(data, seed=seed)
    return with_intervals(
        found.ratings,
        data,
        options,
        refit=lambda rows: trueskill(data.select(rows), seed=seed, shuffles=_FEW_SHUFFLES).ratings,
        figures={"mu": found.mu, "sigma": found.sigma},
        findings=[TiesLeftOut(found.ties)],
    )


def by_win_rate(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Shares of battles won, with their errors, and log odds of these as ratings."""
    return _rates(win_rate, judgments, options)


def by_win_rate_balanced(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Means over opponents of the share won against each, and log odds of these as ratings."""
    return _rates(win_rate_balanced, judgments, options)


def _rates(rates: Callable[[Comparisons], WinRates], judgments: Judgments, options: Options) -> Rated:
    data = judgments.comparisons()
    found, parts = rates(data), weak_components(data.wins)
    lo, hi = found.interval(options.level)
    apart = f"the models fall into {parts} parts that never met: rates of different parts do not compare"
    return with_intervals(
        found.ratings,
        data,
        options,
        refit=lambda rows: rates(data.select(rows)).ratings,
        figures={"win_rate": found.rate, "win_rate_se": found.se, "win_rate_lo": lo, "win_rate_hi": hi},
        findings=[MethodNotes((apart,))] if parts > 1 else (),
    )


def by_consistency(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """The board of judges only: every method measures judges in addition to its board; no models are rated here."""
    return unrated(replace(judgments.comparisons().select(np.zeros(len(judgments), dtype=np.bool_)), models=()), {})


BRADLEY_TERRY = Method(
    by_bradley_terry, "maximum likelihood of P = sigma(R_A - R_B)", frozenset({"ridge", "errors", "ties", "pairs"})
)
BALANCED_PAIRS = Method(by_balanced_pairs, "the same as if every pair had been asked alike, whatever a policy asked")
COVARIATES = Method(
    by_covariates,
    "the same, with length, style or position accounted for",
    frozenset({"ridge", "errors", "covariates"}),
    ignores=frozenset({"merge", "flips"}),
)
M_ELO = Method(by_m_elo, "Bradley-Terry under its other name", frozenset({"errors"}))
# Sequential updates do not support weights.
ELO = Method(
    by_elo, "online Elo, mean over shuffled orders", frozenset({"order", "k"}), ignores=frozenset({"judge_weights"})
)
TRUESKILL = Method(
    by_trueskill, "TrueSkill without draws, mean over shuffled orders", ignores=frozenset({"judge_weights"})
)
WIN_RATE = Method(by_win_rate, "share of battles won, a tie counting half")
WIN_RATE_BALANCED = Method(by_win_rate_balanced, "mean over opponents of the share won against each")
CONSISTENCY = Method(
    by_consistency,
    "judges alone: how firmly each decides",
    ignores=frozenset({"merge", "flips", "anchors"}) | JUDGE_OPTIONS,
    rates=False,
)
