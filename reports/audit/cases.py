"""Make an audit from a store or a table: as `venire rate`, with the times of verdicts and the plan as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.keywords import spelled_out
from venire.ratings.data.judgments import canonical, select_battles
from venire.ratings.data.models import own_models
from venire.ratings.inference.options import Options, option_names
from venire.ratings.methods.methods import merge_selected
from venire.reports.audit.audit import Audit, chosen_checks
from venire.reports.audit.audit import audit as audit_case
from venire.reports.audit.finding import Case
from venire.reports.board.rate import read
from venire.reports.board.source import Rateable, SourceKeywords, VerdictSource, verdict_source
from venire.reports.board.stored import choose_campaign, in_order_of, styles
from venire.reports.board.verdicts import DEFAULT_METHOD, Verdicts
from venire.storage.read import frames
from venire.storage.store.store import Store


@spelled_out(SourceKeywords, VerdictSource)
def audit(
    source: Rateable,
    *,
    options: Options | None = None,
    checks: Sequence[str] = (),
    **reading: Unpack[SourceKeywords],
) -> Audit:
    """Audit a store's campaign (the only one, unless named), or files or a table of verdicts.

    `checks` are names of `reports.audit.audit.CHECKS`, by default all; the other arguments are as in `venire.rate`.
    Raises InputError as `venire.rate` does, for an unknown check and for an option that no check uses.

    >>> audit("campaign.duckdb", checks=["connectivity"]).findings[0].worry
    False
    """
    return audited(verdict_source(source, **reading), options, checks)


def audited(
    source: VerdictSource, options: Options | None = None, checks: Sequence[str] = (), *, own_seed: bool = False
) -> Audit:
    """The audit of a `VerdictSource`; with `own_seed`, or without options, the seed is the campaign's."""
    chosen_checks(checks)  # before verdicts are read
    chosen = options or Options()
    with source.opened():
        verdicts = read(source, chosen.covariates)
        verdicts.refuse_grades_alone()
        case = case_of(source, verdicts, replace(chosen, seed=verdicts.seed) if own_seed or options is None else chosen)
    evidence = verdicts.evidence(case.battles, DEFAULT_METHOD, replace(case.options, covariates=()))
    if case.seconds is not None:
        evidence = replace(evidence, in_time=partial(in_order_of, case.battles, case.seconds, case.battles.peers))
    note = "; ".join(filter(None, (verdicts.note, *verdicts.left_out_texts(case.options)))) or None
    return audit_case(
        case, origins=verdicts.origins, checks=checks, source=verdicts.source, note=note, evidence=evidence
    )


def case_of(source: VerdictSource, verdicts: Verdicts, options: Options) -> Case:
    """The verdicts of a source as input of checks: in canonical form, merged, with times and plan if a store has them.

    Raises InputError for options that no check uses, and for verdicts that cannot be merged.
    """
    _refuse(options)
    with source.opened() as store:
        if store is None:
            return _case(verdicts.battles, verdicts, options)
        return case_of_campaign(store, choose_campaign(store, source.campaign), verdicts, options)


def case_of_campaign(
    store: Store, campaign: frames.CampaignRow, verdicts: Verdicts, options: Options | None = None
) -> Case:
    """The verdicts of a campaign of an open store as input of checks; without options, with the campaign's seed.

    Raises InputError for a campaign that has grades alone.
    """
    verdicts.refuse_grades_alone()
    options = options or Options(seed=verdicts.seed)
    if verdicts.battles.ballots is not None:
        return _case(verdicts.battles, verdicts, options)
    return _timed_case(store, campaign, verdicts, options)


def _timed_case(store: Store, campaign: frames.CampaignRow, verdicts: Verdicts, options: Options) -> Case:
    """With the times of the verdicts, and how many were planned."""
    battles = verdicts.battles
    timed = frames.battles_in_time(store, campaign.id)
    kept = verdicts.kept(timed.battles)
    features = dict(timed.battles.features)
    kin = verdicts.families, verdicts.judge_families
    if own_models(timed.battles.judges, timed.battles.models, battles.peers, *kin).any():
        features = {**styles(store, campaign.id, timed.shown), **features}
    battles = replace(
        timed.battles, features=features, clustering=battles.clustering, peers=battles.peers, people=battles.people
    )
    battles, seconds = select_battles(battles, kept), timed.seconds[kept]
    known = None if bool(np.isnan(seconds).all()) else seconds
    return _case(battles, verdicts, options, known, timed.planned - int(np.count_nonzero(~kept)))


def _case(
    battles: Battles,
    verdicts: Verdicts,
    options: Options,
    seconds: NDArray[np.float64] | None = None,
    planned: int | None = None,
) -> Case:
    battles = canonical(battles)
    return Case(
        battles=battles,
        judgments=merge_selected(battles, options),
        options=options,
        families=verdicts.families,
        judge_families=verdicts.judge_families,
        seconds=seconds,
        planned=planned,
    )


_HEARD = frozenset({"merge", "flips", "level", "seed", "replicates", "covariates"})


def _refuse(options: Options) -> None:
    if unheard := [name for name in options.changed() if name not in _HEARD]:
        raise InputError(f"an audit does not take {option_names(unheard)}: leave it out")
