"""What a reader needs to doubt a board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any, get_args

import numpy as np

from venire.arena.battles import Ballots, Battles
from venire.arena.records import Status
from venire.ratings.agreement.chance_corrected import FEWEST_DRAWN, Coefficient
from venire.ratings.agreement.people_agreement import JudgeAndPeople, people_agreement
from venire.ratings.agreement.reference import Agreement, agreement
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.data.models import model_of_judge
from venire.ratings.data.result import Rated
from venire.ratings.data.statistics import FEWEST_FOR_CORRELATION
from venire.ratings.data.validation import finite_or_none
from venire.ratings.diagnostics.pair_coverage import pair_coverage
from venire.ratings.inference.options import Options
from venire.ratings.judges.consistency import Consistency
from venire.ratings.judges.elo_from_consistency import Score, elo_from_consistency
from venire.ratings.judges.order_agreement import order_agreement
from venire.ratings.methods.methods import select_verdicts
from venire.ratings.pairwise.components import largest_group, ranked_values
from venire.ratings.peers.peer_evaluation import PeerRow, peer_evaluation
from venire.ratings.voting.kemeny import kemeny_young
from venire.reports.wording import coins_text

_SAME_UNIT = 1.5
"""Ratings spread this many times as wide as the reference's, or as narrow, are in another unit than it."""


_SECONDS = 1.0
"""Time limit for each of the board's two orders of all models; the board reports what is not proved by then."""


_UNBOUNDED = (
    f"no interval of a kappa or an alpha over fewer than {FEWEST_DRAWN} instructions, nor an end where drawn votes "
    "leave it undefined: two votes that agree would bound it by 1 and 1"
)


def pair_facts(judgments: Judgments) -> dict[str, float | int | None]:
    """How many pairs were asked of how many, and their coverage: 1 where all were asked equally often."""
    data = judgments.comparisons()
    possible = len(data.models) * (len(data.models) - 1) // 2
    if not len(data):
        return {"asked": 0, "possible": possible, "coverage": None}
    found = pair_coverage(data)
    return {"asked": found.seen, "possible": possible, "coverage": finite_or_none(found.balance)}


def count_facts(battles: Battles, judgments: Judgments, rated: Rated, options: Options) -> dict[str, Any]:
    """Counts of the ratings' input: judgments, or verdicts where a method counts a flip as two; flips in both cases."""
    flips_as = rated.diagnostics.get("flips_as", options.flips)
    rows = merge_orders(select_verdicts(battles, options), "none") if flips_as == "two verdicts" else judgments
    return {
        "merge": rows.merge if rows.merged else "none",
        "flips_as": flips_as,
        "judgments": len(rows),
        "statuses": {status.name.lower(): int(np.count_nonzero(battles.status == status)) for status in Status},
        "ties": rows.ties,
        "flips": judgments.flips,
        "one_order": rows.one_order,
        "unreadable": rows.unreadable,
        **({} if battles.ballots is None else {"ballots": len(battles.ballots)}),
        **_voices(battles, options),
    }


def _voices(battles: Battles, options: Options) -> dict[str, Any]:
    """Number of excluded verdicts, and the weights of judges; empty where every verdict counts once."""
    found: dict[str, Any] = {}
    if options.own_votes == "exclude":
        kept = select_verdicts(battles, replace(options, judge_weights={}))
        found["own_left_out"] = len(battles.status) - len(kept.status)
    if options.judge_weights:
        found["judge_weights"] = dict(sorted(options.judge_weights.items()))
    return found


def error_facts(rated: Rated, options: Options, judges: Consistency, judgments: Judgments) -> dict[str, Any]:
    """How intervals were computed: those of ratings, by bootstrap or not, and those of judges, by jackknife."""
    degrees, units = rated.ratings.degrees, "clusters" if judgments.clusters else "instructions"
    # Independent rows are resampled one by one, but a ballot is resampled as a whole.
    drawn = units if judgments.clustered else "ballots"
    return {
        "errors": rated.ratings.errors.replace("instructions", drawn),
        "cluster": units,
        "level": options.level,
        "degrees": finite_or_none(degrees),
        "bootstrap": {
            "replicates": options.replicates,
            "without_estimate": rated.without_estimate,
            "seed": options.seed,
        },
        "jackknife": {"unit": judges.left_out, "units": judges.units, "level": judges.level},
    }


def agreement_with(rated: Rated, reference: Mapping[str, float] | None, level: float) -> Agreement:
    """Agreement with the reference within the largest rated group: differences between groups are unknown.

    For an order, negated places are compared with the reference, so that higher is better.
    """
    group = largest_group(rated)
    if not reference:
        return Agreement(None, None, None, 0, "no reference ratings are known")
    if group is None:
        return Agreement(None, None, None, 0, "no model could be rated")
    return agreement(ranked_values(rated), reference, level=level)


def agreement_facts(met: Agreement, origin: str | None, rated: Rated) -> dict[str, Any] | None:
    if met.spread is None:
        return None
    placed = rated.position is not None  # places are not ratings: only their order can agree
    same = not placed and 1.0 / _SAME_UNIT <= met.spread <= _SAME_UNIT
    known = {name: interval for name, interval in met.intervals.items() if name in ("pearson", "spearman", "kendall")}
    figures: dict[str, Any] = {
        "pearson": None if placed else met.pearson,
        "spearman": met.spearman,
        "kendall": met.kendall,
        "mae": met.mae if same else None,
        "mae_line": None if placed else met.mae_line,
        "spread": None if placed else met.spread,
        "models": met.models,
        "intervals": {name: list(one) for name, one in known.items() if name != "pearson" or not placed},
        "level": met.level,
    }
    group = largest_group(rated)
    if len(rated.groups) > 1 and group is not None:
        figures["group"] = group
    return {**figures, "verdicts": origin}


def elo_facts(judges: Consistency, elo: Mapping[str, float], origin: str | None) -> dict[str, Any]:
    """How well each score of the judges predicts their own Elo; empty where too few judges have an Elo."""
    if sum(row.judge in elo for row in judges.judges) < FEWEST_FOR_CORRELATION:
        return {}
    found = [elo_from_consistency(judges, elo, score=score) for score in get_args(Score)]
    return {"elo_from_consistency": [{**asdict(one), "verdicts": origin} for one in found]}


def coin_facts(battles: Battles, options: Options) -> dict[str, Any]:
    """The judges of the board that nothing shows to decide better than a coin; empty where there is none."""
    coins = [one for one in order_agreement(select_verdicts(battles, options), level=options.level) if one.is_coin]
    return {"coins": {"judges": [asdict(one) for one in coins], "says": coins_text(coins)}} if coins else {}


def people_facts(judgments: Judgments, people: Battles | None, options: Options) -> dict[str, Any]:
    """Agreement of judges with people's votes, as plain JSON values; empty where there are none."""
    if people is None or not (len(people.label) and judgments.instructions):
        return {}
    found = people_agreement(judgments, people, seed=options.seed)
    each = [one.kappa for one in (*found.judges, *found.annotators, *([found.together] if found.together else ()))]
    unbounded = any(one.value is not None and None in (one.lo, one.hi) for one in (*each, found.alpha, found.among))
    return {
        "people": {
            "judges": [{"judge": one.judge, **_beside_people(one)} for one in found.judges],
            "each": [{"annotator": one.judge, **_beside_people(one)} for one in found.annotators],
            "together": None if found.together is None else _beside_people(found.together),
            "alpha": coefficient_json(found.alpha),
            "alpha_among_people": coefficient_json(found.among),
            **({"note": _UNBOUNDED} if unbounded else {}),
        }
    }


def _beside_people(one: JudgeAndPeople) -> dict[str, Any]:
    return {
        "battles": one.battles,
        "votes": one.votes,
        "decided": one.decided,
        "agreement": one.agreement,
        "agreement_lo": one.agreement_lo,
        "agreement_hi": one.agreement_hi,
        "kappa": coefficient_json(one.kappa),
    }


def coefficient_json(found: Coefficient) -> dict[str, Any]:
    """A coefficient of agreement with its interval, as plain JSON values."""
    return {"value": found.value, "lo": found.lo, "hi": found.hi, "items": found.items}


def peer_facts(judgments: Judgments, ballots: Ballots | None, peers: Mapping[str, str], level: float) -> dict[str, Any]:
    """`peers` as plain JSON values, where at least two judges are models and one of them judged itself; else empty."""
    own = model_of_judge(judgments.judges, judgments.models, peers)
    there = own[np.unique(judgments.judge)]
    judge = own[judgments.judge]
    itself = (judge == judgments.model_a) | (judge == judgments.model_b)
    if np.count_nonzero(there >= 0) < 2 or not itself.any():
        return {}
    given = judgments if ballots is None else ballots
    found = peer_evaluation(given, partial(kemeny_young, seconds=_SECONDS), peers=peers, micro=False, level=level)
    return {
        "peers": {
            "unit": found.unit,
            "level": found.level,
            "left_out": found.left_out,
            "held": list(found.held),
            "models": [_peer_row(one) for one in found.models],
            "warnings": list(found.warnings),
        }
    }


def _peer_row(one: PeerRow) -> dict[str, Any]:
    gap, odds = one.gap, one.odds
    return {
        "model": one.model,
        "judges": list(one.judges),
        "self_evaluation": one.self_evaluation,
        "peer_evaluation": one.peer_evaluation,
        "se_minus_pe": gap.value,
        "se_minus_pe_se": gap.se,
        "se_minus_pe_lo": gap.lo,
        "se_minus_pe_hi": gap.hi,
        "instructions": gap.instructions,
        "own_odds": odds.value,
        "own_odds_se": odds.se,
        "own_odds_lo": odds.lo,
        "own_odds_hi": odds.hi,
        "own_odds_reason": odds.reason,
        "slope": odds.slope,
        "sie": one.sie,
        "sfe": one.sfe,
        "sie_minus_sfe": one.moved,
    }
