"""Checks of a board's basis: parsed replies, completeness, coverage of pairs, and stability of its positions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.arena.wording import few
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import merge_orders, select_battles
from venire.ratings.data.result import Ratings
from venire.ratings.diagnostics.pair_coverage import PairCoverage, pair_coverage
from venire.ratings.diagnostics.stability import TieRule, rating_path, tie_sensitivity, volatility
from venire.ratings.diagnostics.unparsed import UnparsedShare, unparsed_replies
from venire.ratings.inference.ranking import ranking
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import restrict_models
from venire.ratings.pairwise.covariance import FEW_CLUSTERS
from venire.reports.audit.finding import CLEAR, Case, CheckResult, check
from venire.reports.wording import counted

BALANCE = 2.0
"""Standard errors twice those of an even design: three of four verdicts were spent where they do not help."""

WIDE = 50.0
"""Half-width of an interval, in Elo points, below which an uneven design is harmless: a win share of 0.57, not 0.5."""

SEPARATED = 0.5
"""Share of separated pairs of models below which most of the order is a guess."""

STAYS = 0.8
"""Share of bootstrapped boards that keep the leader. A lead of 2.5 standard errors is below it in 5 % of data sets."""

_MAX_MODELS = 500
"""Number of models above which computing the errors of all pairs takes too long to do by default."""

UNREAD = 0.05
"""Share of a judge's verdicts: if all missing verdicts favour one side, they move a win share by half of this."""

UNEVEN = 0.02
"""Points by which a model may lose more verdicts than the other models of the same judges."""

COMPLETE = 0.95
"""Share of the planned verdicts that exist; plans do not run in random order, so the missing part is not random."""

_MAX_SHOWN = 20


def largest_group(case: Case) -> tuple[Comparisons, Ratings]:
    """The largest set of models that can be rated on one scale, with its ratings and their errors.

    Raises `InputError` where no two models can be rated together.
    """
    data = case.judgments.comparisons()
    groups = data.wins.strong_components()
    group = max(groups, key=len, default=np.zeros(0, dtype=np.intp))
    if len(group) < 2:
        raise InputError("no two models beat one another, by any chain: there are no ratings to look at")
    inside = restrict_models(data, group)
    return inside, bradley_terry(inside, errors="none" if len(group) > _MAX_MODELS else None)


@check("connectivity", "at most", 1, "Do verdicts join all models on one scale?")
def check_connectivity(case: Case) -> CheckResult:
    """Whether wins connect all models in both directions, and which pairs or models the connection depends on."""
    found = pair_coverage(case.judgments.comparisons())
    groups = len(found.groups)
    details = {
        "groups": [list(group) for group in found.groups],
        "islands": found.islands,
        "bridges": [list(pair) for pair in found.bridges],
        "hinges": list(found.hinges),
    }
    if groups > 1:
        alone = sum(len(group) == 1 for group in found.groups)
        what = f"{found.islands} islands never met" if found.islands > 1 else "wins lead one way only between them"
        says = f"{groups} groups of models, {alone} of them single models: {what}; no common scale exists"
    elif len(found.hinges) == 1 and len(found.bridges) == found.models - 1 > 1:
        says = f"wins join all {found.models} models, each by its battles with {found.hinges[0]} alone"
    elif found.bridges:
        one, two = found.bridges[0]
        more = f" and {len(found.bridges) - 1} more" if len(found.bridges) > 1 else ""
        says = f"wins join all {found.models} models; {one} against {two}{more} hold parts together alone"
    elif found.hinges:
        says = f"wins join all {found.models} models; all hang on {few(found.hinges)}"
    else:
        says = f"wins join all {found.models} models, and no single pair or model holds them together"
    return CheckResult(groups > 1, groups, says, details)


@check("coverage", "at most", BALANCE, "Are battles spread evenly over pairs of models?", unless="certain enough")
def check_coverage(case: Case) -> CheckResult:
    """Whether the spread of battles estimates the worst difference about as well as their number allows."""
    data = case.judgments.comparisons()
    found = pair_coverage(data)
    details: dict[str, Any] = {
        "pairs": found.seen,
        "possible": found.possible,
        "fewest_of_model": list(found.fewest_of_model),
        "fewest_of_pair": list(found.fewest_of_pair),
    }
    seen = f"{found.seen} of {found.possible} pairs met; fewest judgments: {found.fewest_of_model[0]}"
    seen += f" ({found.fewest_of_model[1]:g})"
    if found.worst is None or not np.isfinite(found.balance):
        return CheckResult(None, None, f"{seen}; models do not all hang together", details)
    half = _half_width(case, data, found)
    details |= {"balance": found.balance, "worst": list(found.worst), "half_width": half}
    between = f"{found.worst[0]} against {found.worst[1]}"
    worry = found.balance > BALANCE and (half is None or half > WIDE)
    says = f"{seen}; the error of {between}"
    says += f" (half interval {half:.0f} Elo)" if half is not None else ""
    says += f" is {found.balance:.1f} times that of an even design"
    return CheckResult(worry, found.balance, says, details)


def _half_width(case: Case, data: Comparisons, found: PairCoverage) -> float | None:
    """Half-width of the interval of the worst difference in Elo points; None where there is no interval."""
    if len(found.groups) > 1 or found.worst is None or found.models > _MAX_MODELS:
        return None
    ratings = bradley_terry(data)
    if ratings.covariance is None:
        return None
    one, two = (ratings.models.index(name) for name in found.worst)
    spread = ratings.covariance
    error = float(np.sqrt(max(0.0, spread[one, one] + spread[two, two] - 2.0 * spread[one, two])))
    half = POINTS_PER_LOGIT * ratings.quantile(case.options.level) * error
    return half if np.isfinite(half) else None


@check(
    "instructions",
    "at least",
    FEW_CLUSTERS,
    "Are there enough instructions for the intervals?",
    calls=("instructions",),
)
def check_instructions(case: Case) -> CheckResult:
    """Whether there are enough instructions for standard errors clustered by instruction."""
    data = case.judgments.comparisons()
    if data.cluster is None:
        says = "rows are not known to share instructions: errors take each for independent, and are too small if not"
        return CheckResult(None, None, says)
    if not len(data):
        raise InputError("there is no judgment that could be read")
    there = np.bincount(data.cluster)
    there = there[there > 0]
    units, models = len(there), len(data.models)
    unit = "judge" if case.judgments.clustering == "judge" else "instruction"
    details = {
        f"{unit}s": units,
        "models": models,
        "largest_share": float(there.max(initial=0) / max(len(data), 1)),
    }
    says = counted(units, unit)
    if units < FEW_CLUSTERS:
        says += f": intervals are too narrow, and the next {unit}s may say something else"
    elif units <= models:
        says += f" for {models} models: some differences between several models come out with no error"
    else:
        says += f" for {models} models, the largest with {details['largest_share']:.1%} of judgments"
    return CheckResult(units < FEW_CLUSTERS, units, says, details)


@check("separation", "at least", SEPARATED, "Are neighbours on the board distinguished?")
def check_separation(case: Case) -> CheckResult:
    """How many pairs of models the data separate, with all claims jointly at the level."""
    data, ratings = largest_group(case)
    if ratings.covariance is None or not np.isfinite(ratings.covariance).all():
        why = ratings.diagnostics.get("errors_reason") or f"more than {_MAX_MODELS} models: errors are not made unasked"
        raise InputError(str(why))
    found = ranking(ratings, level=case.options.level, seed=case.options.seed)
    size = len(data.models)
    share = float(found.separated.sum() / (size * (size - 1) / 2))
    order = sorted(range(size), key=lambda code: found.rank[code])
    neighbours = sum(bool(found.separated[one, two]) for one, two in pairwise(order))
    leader = data.models[order[0]]
    tied = [name for name in found.tied(leader) if name != leader]
    says = f"{share:.0%} of pairs are told apart, {neighbours} of {size - 1} neighbours"
    says += f"; {leader} is not told apart from {few(tied)}" if tied else f"; {leader} stands above all others"
    details = {"pairs": share, "neighbours": neighbours, "tied_with_first": tied, "tiers": int(found.tier.max())}
    return CheckResult(share < SEPARATED, share, says, details)


@check("first-place", "at least", STAYS, "Would other instructions name the same leader?", calls=("instructions",))
def check_first_place(case: Case) -> CheckResult:
    """How often the leader leads when instructions are resampled (bootstrap)."""
    data, ratings = largest_group(case)
    found = volatility(data, ratings, replicates=case.options.replicates or _draws(data), seed=case.options.seed)
    says = f"{found.leader} leads in {found.stays:.0%} of {found.draws} redrawn sets of {found.unit}"
    says += f", {found.next_leader} in {found.next_leads:.0%}" if found.next_leads > 0.0 else ""
    says += f"; the first {len(found.top)} move {found.moved:.1f} places"
    details: dict[str, Any] = {
        "leader": found.leader,
        "next": found.next_leader,
        "next_leads": found.next_leads,
        "keeps_place": dict(found.top),
        "moved": found.moved,
        "units": found.units,
        "without_estimate": found.without_estimate,
    }
    if found.without_estimate:
        says += f"; {found.without_estimate} of them by who beat whom, as they have no common estimate"
    if case.seconds is not None and np.isfinite(case.seconds).any():
        details["path"] = _path(case)
    return CheckResult(found.stays < STAYS, found.stays, says, details)


def _draws(data: Comparisons) -> int:
    """Default number of bootstrap draws: with many models a draw costs more, and a share needs no more than this."""
    return 1000 if len(data.models) <= 100 else 200


def _path(case: Case) -> list[dict[str, Any]]:
    """The leader after each tenth of the verdicts, in the order of their times."""
    assert case.seconds is not None
    known = np.sort(case.seconds[np.isfinite(case.seconds)])
    ends = known[np.maximum(np.arange(1, 11) * len(known) // 10, 1) - 1]
    rows: list[NDArray[np.bool_]] = [case.seconds <= end for end in ends]
    merged = (
        merge_orders(select_battles(case.battles, some), case.options.merge, flips=case.options.flips) for some in rows
    )
    path = rating_path([one.comparisons() for one in merged])
    return [
        {"judgments": number, "leader": leader, "elo": None if leader is None else round(float(np.max(elo)), 1)}
        for number, leader, elo in zip(path.judgments, path.leader, path.elo, strict=True)
    ]


@check("tie-rule", "at most", 0, "Does the order depend on what a tie counts?", calls=("ties", "flips"))
def check_ties(case: Case) -> CheckResult:
    """Whether the rule for counting ties and flips reverses an order of separated models."""
    options, battles = case.options, case.battles
    data, _ = largest_group(case)
    kept = np.isin(battles.models, data.models)
    inside = kept[battles.model_a] & kept[battles.model_b]
    battles = select_battles(battles, inside)
    found = tie_sensitivity(battles, merge=options.merge, flips=options.flips, level=options.level)
    there = [rule for rule in found.rules if rule.reason is None]
    details = {
        "ties": found.ties,
        "flips": found.flips,
        "leader": found.leader,
        "rules": [_rule(rule) for rule in found.rules],
    }
    if not found.rules:
        return CheckResult(False, 0, "there are no ties and no flips: no rule for them matters", details)
    if not there:
        raise InputError("; ".join(f"{rule.rule}: {rule.reason}" for rule in found.rules))
    worst = max(there, key=lambda rule: (len(rule.contradicted), rule.leader != found.leader, rule.moved))
    says = f"ties {found.ties:.0%}, flips {found.flips:.0%} of judgments; with {worst.rule}"
    says += f" {worst.leader} leads in place of {found.leader}," if worst.leader != found.leader else ""
    says += f" {worst.mover} moves {counted(worst.moved, 'place')}" if worst.moved else " no model moves"
    if worst.contradicted:
        says += f", and {len(worst.contradicted)} clear orders turn round, as {' over '.join(worst.contradicted[0])}"
    else:
        says += "; no order that is told apart turns round"
    return CheckResult(bool(worst.contradicted), len(worst.contradicted), says, details)


def _rule(rule: TieRule) -> dict[str, Any]:
    return {
        "rule": rule.rule,
        "leader": rule.leader,
        "moved": rule.moved,
        "mover": rule.mover,
        "shift": rule.shift,
        "contradicted": [list(pair) for pair in rule.contradicted],
        "reason": rule.reason,
    }


@check("unread", "at most", UNREAD, "Could the judges' replies be read?", unless="chance", calls=("unreadable",))
def check_unparsed(case: Case) -> CheckResult:
    """Whether the replies of some judge were often unreadable."""
    _require_verdicts(case)
    found = unparsed_replies(case.battles, level=1.0 - CLEAR)
    worst = max(found.judges, key=lambda row: (row.lo, row.share))
    says = f"{_percent(found.share)} of {found.verdicts} verdicts were not read"
    if found.share:
        says += f"; of {worst.name}'s {_percent(worst.share)} ({_statuses(worst)})" if len(found.judges) > 1 else ""
        says += f" ({_statuses(worst)})" if len(found.judges) == 1 else ""
    details = {
        "share": found.share,
        "judges_p": found.judges_p,
        "judges": [_unparsed_row(row) for row in found.judges[:_MAX_SHOWN]],
    }
    # where nothing at all was read, few verdicts are no excuse
    return CheckResult(worst.lo > UNREAD or found.share == 1.0, worst.share, says, details)


@check(
    "unread-by-model",
    "at most",
    UNEVEN,
    "Does one model lose more verdicts to unreadable replies than others?",
    unless="chance",
    calls=("unreadable",),
)
def check_unparsed_by_model(case: Case) -> CheckResult:
    """Whether some models lose more verdicts to unreadable replies than others with the same judges."""
    _require_verdicts(case)
    found = unparsed_replies(case.battles)
    if not found.share:
        return CheckResult(False, 0.0, "every verdict was read", {})
    if len(found.models) < 3:
        raise InputError("every verdict shows both models: which of them is behind those not read cannot be told")
    worst = max(found.models, key=lambda row: (row.share - (row.expected or 0.0), row.name))
    apart = worst.share - (worst.expected or 0.0)
    worry = found.p_value < CLEAR and apart > UNEVEN
    says = f"{worst.name} loses {_percent(worst.share)} of its verdicts ({_statuses(worst)}), "
    says += f"{_percent(worst.expected or 0.0)} expected of its judges (p of any model {found.p_value:.3f})"
    details = {"p": found.p_value, "models": [_unparsed_row(row) for row in found.models[:_MAX_SHOWN]]}
    return CheckResult(worry, apart, says, details)


@check("complete", "at least", COMPLETE, "Are all planned verdicts there?", calls=("failed", "pending"))
def check_complete(case: Case) -> CheckResult:
    """Whether the planned verdicts were given."""
    if not case.planned:
        raise InputError("how many verdicts were to be had is known of judges of pairs in a store alone")
    there = len(case.battles.label)
    share = min(1.0, there / case.planned)
    says = f"{there:,} of {case.planned:,} planned verdicts are there"
    says += ": what is missing is not a sample" if share < COMPLETE else ""
    return CheckResult(share < COMPLETE, share, says, {"there": there, "planned": case.planned})


def _require_verdicts(case: Case) -> None:
    if not len(case.battles.status):
        raise InputError("there are no verdicts yet")


def _unparsed_row(row: UnparsedShare) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": row.name, "verdicts": row.verdicts, "share": row.share, "statuses": row.statuses}
    return shown if row.expected is None else {**shown, "expected": row.expected, "z": row.z}


def _statuses(row: UnparsedShare) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in row.statuses.items()) or "none"


def _percent(share: float) -> str:
    return f"{share:.1%}"
