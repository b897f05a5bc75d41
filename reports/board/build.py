"""Make a board: rate the models and measure the judges of one table of verdicts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import get_args

import numpy as np

from venire.arena.battles import Ballots, Battles
from venire.arena.errors import InputError
from venire.arena.records import Origin, Status
from venire.ratings.agreement.people_agreement import PeopleAgreement, people_agreement
from venire.ratings.agreement.reference import Agreement, agreement
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.data.models import model_of_judge
from venire.ratings.data.result import Rated
from venire.ratings.data.statistics import FEWEST_FOR_CORRELATION
from venire.ratings.data.validation import finite_or_none
from venire.ratings.diagnostics.pair_coverage import pair_coverage
from venire.ratings.inference.options import Options
from venire.ratings.judges.consistency import Consistency, consistency
from venire.ratings.judges.elo_from_consistency import EloFromConsistency, Score, elo_from_consistency
from venire.ratings.judges.order_agreement import order_agreement
from venire.ratings.methods.findings import FlipsAs
from venire.ratings.methods.methods import METHODS, merge_selected, rate, select_verdicts
from venire.ratings.pairwise.components import largest_group, ranked_values, unrated
from venire.ratings.peers.peer_evaluation import PeerEvaluation, peer_evaluation
from venire.ratings.voting.kemeny import kemeny_young
from venire.reports.board.board import Board
from venire.reports.board.diagnostics import (
    BootstrapDraws,
    Diagnostics,
    InputCounts,
    JudgeJackknife,
    PairsAsked,
    ReferenceAgreement,
)
from venire.reports.board.model_rows import model_rows, outside_ratings
from venire.reports.chart_data import ChartSource
from venire.reports.wording import alike_text, estimand_text

_SAME_UNIT = 1.5
"""Ratings spread this many times as wide as the reference's, or as narrow, are in another unit than it."""

_WIDER = 1.005
"""Errors that lack of fit widens by more than this are said to include it."""

_SECONDS = 1.0
"""Time limit for each of the board's two orders of all models; the board reports what is not proved by then."""


def build(
    battles: Battles,
    *,
    reference: Mapping[str, float] | None = None,
    origins: Collection[Origin],
    method: str = "bradley-terry",
    options: Options | None = None,
    families: Mapping[str, str] | None = None,
    judge_families: Mapping[str, str] | None = None,
    judge_elo: Mapping[str, float] | None = None,
) -> Board:
    """Rate the models and measure the judges of one table of verdicts.

    `reference` holds known Elo points by model, `origins` the origins of the verdicts, `families` and
    `judge_families` the family of each model and judge, `judge_elo` the known Elo of the judges themselves. Where
    no common estimate exists, each group of models is rated separately and the diagnostics name the groups; a model
    alone in its group has no Elo. Raises `InputError` for verdicts of several origins or of none, for an unknown
    method, an option that it does not take or a column that it lacks, and for a table that cannot be read.
    """
    chosen, known = options or Options(), reference or {}
    origin = _one_origin(battles, origins)
    selected = select_verdicts(battles, chosen)
    judgments = merge_selected(battles, chosen)
    rated = rate(battles, method, chosen) if len(judgments) else _nothing(judgments)
    judges = consistency(battles, families=families, judge_families=judge_families, elo=reference, level=chosen.level)
    met = _agreement(rated, known, chosen.level)
    measured = judges.judges if len(battles.status) else ()
    about = _about(rated, judgments, method, origin, chosen)
    coins = tuple(one for one in order_agreement(selected, level=chosen.level) if one.is_coin)
    return Board(
        method=method,
        gauge=rated.ratings.gauge,
        verdicts=origin,
        models=model_rows(judgments, rated, known, outside_ratings(judgments, rated, chosen.level)),
        judges=measured,
        judge_figures=_judge_figures(rated, [row.judge for row in measured]),
        ordered=rated.position is not None,
        evidence=ChartSource(battles, method, chosen),
        diagnostics=Diagnostics(
            reason=None if len(judgments) else "there is no readable verdict to rate from",
            counts=_counts(battles, selected, judgments, rated, chosen),
            errors=about.errors,
            cluster=about.cluster,
            estimand=about.estimand,
            level=chosen.level,
            degrees=finite_or_none(rated.ratings.degrees),
            bootstrap=BootstrapDraws(chosen.replicates, rated.without_estimate, chosen.seed),
            jackknife=JudgeJackknife(judges.left_out, judges.units, judges.level),
            groups=rated.groups,
            pairs=_pairs(judgments),
            fits=rated.fits,
            no_estimate=dict(rated.reasons),
            findings=rated.findings,
            alike=alike_text(battles.models),
            agreement=_reference_agreement(met, origin, rated),
            agreement_reason=met.reason,
            elo_from_consistency=_judges_by_elo(judges, judge_elo or {}),
            people_agreement=_people_agreement(judgments, battles.people),
            coins=coins,
            peers=_peers(judgments, selected.ballots, battles.peers, chosen.level),
        ),
    )


def _one_origin(battles: Battles, origins: Collection[Origin]) -> str | None:
    words = sorted({origin.value for origin in origins})
    if len(words) > 1:
        raise InputError(f"the verdicts are of several origins ({', '.join(words)}); rate one origin at a time")
    if not words and len(battles.status):
        raise InputError("the origin of the verdicts is not given; name it: real, simulated, recorded or people")
    return words[0] if words else None


def _nothing(judgments: Judgments) -> Rated:
    return unrated(judgments.comparisons(), dict.fromkeys(judgments.models, "took part in no readable judgment"))


def _judge_figures(rated: Rated, judges: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """The method's figures of judges, by figure and by judge; infinite values stay distinct from unknown values."""
    return {
        name: dict.fromkeys(judges)
        | {
            judge: None if math.isnan(value) else value
            for judge, value in zip(rated.judges, column.tolist(), strict=True)
            if judge in set(judges)
        }
        for name, column in rated.judge_figures.items()
    }


def _counts(battles: Battles, selected: Battles, judgments: Judgments, rated: Rated, options: Options) -> InputCounts:
    own = rated.finding(FlipsAs)
    rows = judgments if own is None else merge_orders(selected, "none")
    left_out = None
    if options.own_votes == "exclude":
        kept = select_verdicts(battles, replace(options, judge_weights={})) if options.judge_weights else selected
        left_out = len(battles.status) - len(kept.status)
    return InputCounts(
        merge=rows.merge if rows.merged else "none",
        flips_as=options.flips if own is None else own.flips_as,
        judgments=len(rows),
        statuses={status.name.lower(): int(np.count_nonzero(battles.status == status)) for status in Status},
        ties=rows.ties,
        flips=judgments.flips,
        one_order=rows.one_order,
        unreadable=rows.unreadable,
        ballots=None if battles.ballots is None else len(battles.ballots),
        own_left_out=left_out,
        judge_weights=dict(sorted(options.judge_weights.items())) if options.judge_weights else None,
    )


@dataclass(frozen=True, slots=True)
class _IntervalsAbout:
    """What errors of ratings are called, what they are clustered by, and what their intervals are about."""

    errors: str
    cluster: str
    estimand: str | None


def _about(rated: Rated, judgments: Judgments, method: str, origin: str | None, options: Options) -> _IntervalsAbout:
    """Declared by what was clustered: by instruction, the column of a table, respondents or both."""
    errors = rated.ratings.errors
    respondents = "people" if METHODS[method].of_people or origin == Origin.PEOPLE.value else "judges"
    unit = "clusters" if judgments.clusters else "instructions"
    unit = respondents if judgments.clustering == "judge" else unit
    # Independent rows are resampled one by one, but a ballot is resampled as a whole.
    named = errors.replace("instructions", "ballots" if judgments.clustering == "none" else unit)
    widened = any((fit.get("lack_of_fit") or {}).get("widened", 1.0) > _WIDER for fit in rated.fits)
    crossed, over = errors == "two-way", named.rpartition(" ")[2]
    about = None
    if errors != "none" and (rated.position is not None or not np.isnan(np.stack([rated.lo, rated.hi])).all()):
        over = over if named.startswith("bootstrap") else "battles" if errors in ("sandwich", "hessian") else unit
        pairs = "given" if options.pairs == "given" else "all" if widened else None
        about = estimand_text(over, respondents, len(judgments.judges), crossed=crossed, pairs=pairs)
    return _IntervalsAbout(
        errors=named + (", with lack of fit between pairs" if widened else ""),
        cluster=f"{unit} and {respondents}" if crossed else unit,
        estimand=about,
    )


def _pairs(judgments: Judgments) -> PairsAsked:
    data = judgments.comparisons()
    possible = len(data.models) * (len(data.models) - 1) // 2
    if not len(data):
        return PairsAsked(0, possible, None)
    found = pair_coverage(data)
    return PairsAsked(found.seen, possible, finite_or_none(found.balance))


def _agreement(rated: Rated, reference: Mapping[str, float], level: float) -> Agreement:
    """Agreement with the reference within the largest rated group: differences between groups are unknown.

    For an order, negated places are compared with the reference, so that higher is better.
    """
    if not reference:
        return Agreement(None, None, None, 0, "no reference ratings are known")
    if largest_group(rated) is None:
        return Agreement(None, None, None, 0, "no model could be rated")
    return agreement(ranked_values(rated), reference, level=level)


def _reference_agreement(met: Agreement, origin: str | None, rated: Rated) -> ReferenceAgreement | None:
    """The figures that have a meaning; of an order those of ranks alone, as places are not ratings."""
    if met.spread is None:
        return None
    ordered, kinds = rated.position is not None, ("pearson", "spearman", "kendall")
    same = not ordered and 1.0 / _SAME_UNIT <= met.spread <= _SAME_UNIT
    return ReferenceAgreement(
        pearson=None if ordered else met.pearson,
        spearman=met.spearman,
        kendall=met.kendall,
        mae=met.mae if same else None,
        mae_line=None if ordered else met.mae_line,
        spread=None if ordered else met.spread,
        models=met.models,
        intervals={
            name: interval
            for name, interval in met.intervals.items()
            if name in kinds and (name != "pearson" or not ordered)
        },
        level=met.level,
        group=largest_group(rated) if len(rated.groups) > 1 else None,
        verdicts=origin,
    )


def _judges_by_elo(judges: Consistency, elo: Mapping[str, float]) -> tuple[EloFromConsistency, ...]:
    """How well each score of the judges predicts their own Elo; empty where too few judges have an Elo."""
    if sum(row.judge in elo for row in judges.judges) < FEWEST_FOR_CORRELATION:
        return ()
    return tuple(elo_from_consistency(judges, elo, score=score) for score in get_args(Score))


def _people_agreement(judgments: Judgments, people: Battles | None) -> PeopleAgreement | None:
    if people is None or not (len(people.label) and judgments.instructions):
        return None
    return people_agreement(judgments, people)


def _peers(
    judgments: Judgments, ballots: Ballots | None, peers: Mapping[str, str], level: float
) -> PeerEvaluation | None:
    """What models that judge say of themselves; None unless two judges are models and one of them judged itself."""
    own = model_of_judge(judgments.judges, judgments.models, peers)
    there = own[np.unique(judgments.judge)]
    judge = own[judgments.judge]
    itself = (judge == judgments.model_a) | (judge == judgments.model_b)
    if np.count_nonzero(there >= 0) < 2 or not itself.any():
        return None
    given = judgments if ballots is None else ballots
    return peer_evaluation(given, partial(kemeny_young, seconds=_SECONDS), peers=peers, micro=False, level=level)
