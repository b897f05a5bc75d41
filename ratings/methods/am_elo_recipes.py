"""Recipes of am-ELO and Stable Arena, from judgments to a rated table; `methods` lists them by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import AmElo, am_elo
from venire.ratings.am_elo.stable_arena import NobodyLeftError, StableArena, stable_arena
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.data.result import Rated, Ratings
from venire.ratings.inference.intervals import Refit, errors_for, with_intervals
from venire.ratings.inference.options import Options
from venire.ratings.methods.findings import (
    AbilityLikelihood,
    AbilitySign,
    DroppedJudges,
    FlipsAs,
    JudgesWithoutAbility,
    MethodNotes,
)
from venire.ratings.methods.methods import ABILITY_OPTIONS, Method
from venire.ratings.pairwise.components import unrated
from venire.ratings.pairwise.covariance import Errors
from venire.ratings.pairwise.solvers import NotConvergedError


def by_am_elo(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """am-ELO: a rating for each model and an ability for each judge; models without a finite rating are named.

    With habits one row is a verdict, so a flip counts as two verdicts. Raises `InputError` for a habit that the table
    cannot show, and as `am_elo` does.
    """
    data, first, flips = rows_to_fit(battles, judgments, options)
    try:
        found = _fit(data, first, options, errors_for(data, options))
    except NotConvergedError as error:
        return unrated(data, dict.fromkeys(data.models, str(error)))
    once = replace(options, restarts=0)

    def refit(rows: NDArray[np.intp]) -> Ratings:
        return _fit(data.select(rows), None if first is None else first[rows], once, "none").ratings

    return with_abilities(found, data, options, refit=refit, findings=flips)


def rows_to_fit(
    battles: Battles, judgments: Judgments, options: Options
) -> tuple[Comparisons, NDArray[np.float64] | None, tuple[FlipsAs, ...]]:
    """Rows to fit abilities from, the presentation order where it is fitted, and what a flip counts as.

    Raises `InputError` where a habit needs data that the table lacks.
    """
    if not options.habits:
        return judgments.comparisons(), None, ()
    if unheard := sorted({"merge", "flips"} & set(options.changed())):
        raise InputError(
            f"habits are fitted from single verdicts, so that {' and '.join(unheard)} says nothing: leave it out"
        )
    rows = merge_orders(battles, "none")
    if "ties" in options.habits and not np.isin(rows.y, (0.0, 0.5, 1.0)).all():
        raise InputError("a habit of ties needs verdicts that are a win, a tie or a loss; this table has shares")
    if "position" not in options.habits:
        return rows.comparisons(), None, (FlipsAs("two verdicts"),)
    if rows.first is None:
        raise InputError("a habit of place is not known: the table does not say which completion was shown first")
    return rows.comparisons(), rows.first.astype(np.float64), (FlipsAs("two verdicts"),)


def _fit(data: Comparisons, first: NDArray[np.float64] | None, options: Options, errors: Errors | None) -> AmElo:
    return am_elo(
        data,
        ridge=options.ridge or 0.0,
        ability_ridge=options.ability_ridge,
        restarts=options.restarts,
        seed=options.seed,
        habits=options.habits,
        first=first,
        errors=errors,
    )


def with_abilities(
    found: AmElo,
    data: Comparisons,
    options: Options,
    *,
    refit: Refit,
    findings: Sequence[object] = (),
) -> Rated:
    """A fit as leaderboard entries: ratings with intervals, and the estimates for each judge."""
    if not np.isfinite(found.ratings.logits).any():
        blank = unrated(data, found.ratings.diagnostics["no_estimate"])
        return replace(blank, findings=(AbilitySign(found.sign), *findings))
    facts = dict(found.ratings.diagnostics)
    restarts, sign, separated, no_ability = (
        facts.pop(name) for name in ("restarts", "sign", "separated", "no_ability")
    )
    of_judges = (
        AbilityLikelihood(found.loglik, restarts),
        AbilitySign(sign),
        JudgesWithoutAbility(tuple(separated), no_ability),
    )
    ratings = replace(found.ratings, diagnostics=facts)
    rated = with_intervals(ratings, data, options, refit=refit, findings=(*of_judges, *findings))
    lo, hi = found.ability_interval(options.level)
    figures = {"ability": found.ability, "ability_se": found.ability_se, "ability_lo": lo, "ability_hi": hi}
    for name, values in (("position", found.position), ("ties", found.ties)):
        errors = found.position_se if name == "position" else found.ties_se
        if values is not None and errors is not None:
            figures |= {f"ability_{name}": values, f"ability_{name}_se": errors}
    return replace(rated, judges=found.judges, judge_figures=figures)


def by_stable_arena(battles: Battles, judgments: Judgments, options: Options) -> Rated:
    """Stable Arena: am-ELO without the judges listed in `dropped`, with the ability for which each was dropped.

    If no judge may stay, no model is rated, and the reason is given. Each bootstrap draw selects judges again. Raises
    `InputError` as `by_am_elo` does.
    """
    data, first, flips = rows_to_fit(battles, judgments, options)
    # Errors are computed even where replicates replace them: they determine whether the sign is decided.
    kind = errors_for(data, replace(options, replicates=0))
    try:
        found = _fit_stable(data, first, options, kind)
    except (NobodyLeftError, NotConvergedError) as error:
        return unrated(data, dict.fromkeys(data.models, str(error)))
    once = replace(options, restarts=0)

    def refit(rows: NDArray[np.intp]) -> Ratings:
        return _fit_stable(data.select(rows), None if first is None else first[rows], once, "none").fit.ratings

    rated = with_abilities(found.fit, data, options, refit=refit, findings=(*flips, *_dropped_judges(found)))
    if not rated.judges:
        return rated
    assert data.judge is not None, "am-ELO has seen to it"
    gone = np.isin(data.judges, [one.judge for one in found.dropped])
    counted = len(data) - int(np.count_nonzero(gone[data.judge]))
    unknown = {name: why for name, why in found.fit.reasons.items() if not gone[data.judges.index(name)]}
    return replace(
        rated,
        fits=({**rated.fits[0], "judgments": counted, "no_ability": unknown},),
        findings=tuple(
            replace(one, no_ability=unknown) if isinstance(one, JudgesWithoutAbility) else one for one in rated.findings
        ),
        judge_figures={**rated.judge_figures, "ability": found.ability},
    )


def _fit_stable(
    data: Comparisons, first: NDArray[np.float64] | None, options: Options, errors: Errors | None
) -> StableArena:
    return stable_arena(
        data,
        least_verdicts=options.least_verdicts,
        least_ability=options.least_ability,
        until_stable=options.until_stable,
        first=first,
        ridge=options.ridge or 0.0,
        ability_ridge=options.ability_ridge,
        restarts=options.restarts,
        seed=options.seed,
        habits=options.habits,
        errors=errors,
    )


def _dropped_judges(found: StableArena) -> tuple[object, ...]:
    """Judges left out with the reason, those with an ability first: a crowd has many judges with few verdicts."""
    dropped = DroppedJudges(tuple(sorted(found.dropped, key=lambda one: one.at_pass == 0)), found.passes)
    return (dropped,) if found.stopped is None else (dropped, MethodNotes((found.stopped,)))


AM_ELO = Method(by_am_elo, "the same with an ability for each judge: P = sigma(theta_k (R_A - R_B))", ABILITY_OPTIONS)
STABLE_ARENA = Method(
    by_stable_arena,
    "am-ELO without judges that gave few verdicts or judge no better than by chance",
    ABILITY_OPTIONS | {"least_verdicts", "least_ability", "until_stable"},
)
