"""Verdicts of a store's campaign, with the store's data on its models and judges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import EDIT, GENERATE
from venire.arena.registry import POLICIES, PROTOCOLS
from venire.arena.wording import suggest
from venire.ratings.data.ballots import to_battles
from venire.ratings.data.judgments import select_battles
from venire.ratings.data.models import model_of_judge
from venire.ratings.data.style import FAMILY, STYLE_NAMES, same_family, style_covariates
from venire.reports.board.people import with_people
from venire.reports.board.stored_grades import graders, read_grades
from venire.reports.board.verdicts import DEFAULT_METHOD, Verdicts
from venire.reports.chart_data import Cost, Costs
from venire.storage.plans import plans
from venire.storage.read import frames
from venire.storage.read.judge_quality import completion_costs, judge_readability
from venire.storage.store.opening import reading
from venire.storage.store.store import Store

PLACING = "place "
"""Prefix of the names of placement campaigns, which are never chosen without being named."""


def read_stored(store: Store, campaign: frames.CampaignRow, human: str | None = None) -> Verdicts:
    """The verdicts of one campaign of an open store, with the votes of the people named, or of its only group.

    Raises InputError for a group that the store does not have, with those that it has.
    """
    return with_people(store, read_campaign(store, campaign), human)


def read_campaign(store: Store, campaign: frames.CampaignRow, features: Sequence[str] = ()) -> Verdicts:
    """The verdicts of one campaign of an open store, with the store's data on its models and judges.

    Ballots become pairs; if there are judges of pairs as well, ballots are kept separate. A campaign whose judges
    grade single completions has no battles. Raises InputError for a campaign without judges of any kind, and for
    covariates of ballots.
    """
    judges = frames.judges(store, campaign.id)
    shapes = {judge.name: PROTOCOLS[judge.protocol].shape for judge in judges if judge.protocol in PROTOCOLS}
    of_lists = [judge for judge in judges if judge.name in shapes and shapes[judge.name].ranks]
    pairs = not shapes or any(shape.pairwise for shape in shapes.values())
    if not pairs and not of_lists and not graders(judges):
        raise InputError(f"campaign {campaign.name!r} has no judge whose verdicts say anything of models")
    if features and not pairs:
        kind = "ballots" if of_lists else "grades"
        raise InputError(f"campaign {campaign.name!r} has {kind} alone, which have no covariates: leave them out")
    families = frames.families(store)
    judge_families = {judge.name: judge.family for judge in judges if judge.family is not None}
    ballots = _campaign_ballots(store, campaign) if of_lists else None
    if ballots is not None and not pairs:
        battles = ballots
        peers = _judging_models(store, judges, battles.models)
    else:
        battles, shown = frames.battles_shown(store, campaign.id)
        peers = _judging_models(store, judges, battles.models)
        itself = (model_of_judge(battles.judges, battles.models, peers) >= 0).any()
        names = features or (STYLE_NAMES if itself else ())  # what a judge likes in its own answers besides itself
        known = families, judge_families
        battles = replace(battles, features=_covariates(store, campaign.id, battles, shown, names, *known))
    origins = {judge.origin for judge in judges}
    return Verdicts(
        replace(battles, peers=peers, clustering="crossed"),
        origins=origins,
        reference=frames.elos(store),
        families=families,
        judge_families=judge_families,
        judge_elo={judge.name: judge.elo for judge in judges if judge.elo is not None},
        judge_models={judge.name: judge.model for judge in judges},
        seed=campaign.seed,
        ballots=replace(ballots, peers=_judging_models(store, judges, ballots.models), clustering="crossed")
        if ballots is not None and pairs
        else None,
        note=_ballots_left_out(of_lists) if of_lists and pairs else None,
        method="even-pairs" if pairs and _chose(store, campaign) else DEFAULT_METHOD,
        grades=read_grades(store, campaign, origins, battles.models),
        edited=frames.edited_battles(store, campaign.id) if pairs else {},
        in_time=partial(_in_time, store.path.resolve(), campaign.id, peers) if pairs else None,
        costs=partial(_costs, store.path.resolve(), campaign.id),
    )


def choose_campaign(store: Store, name: str | None) -> frames.CampaignRow:
    """The named campaign, or the only one that judges and does not place a model on another campaign's board.

    A campaign that rates models comes before those that only grade completions, whose grades its board shows too.
    Raises InputError that lists the existing campaigns.
    """
    there = [one for one in frames.campaigns(store) if not _generates(store, one)]
    if not there:
        raise InputError(f"the store {store.path} has no campaign yet: `venire run FILE` starts one")
    names = [one.name for one in there]
    if name is None:
        boards = [one for one in there if not one.name.startswith(PLACING)]
        rated = [one for one in boards if _rates_models(store, one)]
        there = next((those for those in (boards, rated) if len(those) == 1), there)
        if len(there) > 1:
            listed = ", ".join(names)
            raise InputError(f"the store {store.path} has several campaigns, name one with --campaign: {listed}")
        return there[0]
    for one in there:
        if one.name == name:
            return one
    raise InputError(f"the store {store.path} has no campaign {name!r}; {suggest(name, names)}")


def select_in_campaign(
    store: Store, verdicts: Verdicts, *, judges: Collection[str] = (), category: str | None = None
) -> Verdicts:
    """The verdicts of some judges (none named: of all), or on the instructions of one category, of a store's campaign.

    Raises InputError where there are none.
    """
    battles = verdicts.battles
    if battles.ballots is not None:
        raise InputError("ballots are rated together: leave judge and category out")
    rows = np.ones(len(battles.label), dtype=np.bool_)
    if judges:
        rows &= np.array([name in judges for name in battles.judges], dtype=np.bool_)[battles.judge]
    if category is not None:
        wanted = {name for name, kind in store.read("instruction_categories") if kind == category}
        rows &= np.array([name in wanted for name in battles.instructions], dtype=np.bool_)[battles.instruction]
    if not rows.any():
        raise InputError("no verdict is of these judges and this category")
    kept = select_battles(battles, rows)
    return replace(verdicts, battles=kept, grades=None, edited={}, ballots=None, note=None, in_time=None)


def in_order_of(battles: Battles, seconds: NDArray[np.float64], peers: Mapping[str, str]) -> Battles:
    """Verdicts in the order of their times (rows,), without covariates; those without a time are last."""
    rows = select_battles(battles, np.argsort(seconds, kind="stable"))
    return replace(rows, features={}, peers=peers)


def styles(
    store: Store, campaign: int, shown: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> dict[str, NDArray[np.float64]]:
    """The covariates of style of battles (rows,), by name, from the completions of A and of B that were `shown`."""
    texts = frames.battle_texts(store, campaign)
    table = style_covariates(*([texts[one] for one in side.tolist()] for side in shown))
    return {name: table[:, place] for place, name in enumerate(STYLE_NAMES)}


def _in_time(path: Path, campaign: int, peers: Mapping[str, str]) -> Battles:
    """The verdicts of a store's campaign in the order in which they were given."""
    with reading(path) as store:
        timed = frames.battles_in_time(store, campaign)
    return in_order_of(timed.battles, timed.seconds, peers)


def _costs(path: Path, campaign: int) -> Costs:
    """What a campaign's verdicts cost by judge, and completions that contestants wrote for the store by model."""
    with reading(path) as store:
        models = [Cost(one.model, one.nano, one.completions, one.deviation) for one in completion_costs(store)]
        judges = tuple(Cost(one.judge, one.cost, one.settled) for one in judge_readability(store, campaign))
    return Costs(judges, tuple(models))


def _chose(store: Store, campaign: frames.CampaignRow) -> bool:
    """Whether a policy chose pairs of the board by what was known of the models."""
    if campaign.name.startswith(PLACING):
        return False
    return any(POLICIES[one.policy].adaptive for one in plans.rounds(store, campaign.id) if one.policy in POLICIES)


def _generates(store: Store, campaign: frames.CampaignRow) -> bool:
    """Whether a campaign asks contestants or editors and has no judges."""
    asked = frames.judges(store, campaign.id)
    return bool(asked) and all(one.protocol in (GENERATE, EDIT) for one in asked)


def _rates_models(store: Store, campaign: frames.CampaignRow) -> bool:
    """Whether any judge of a campaign sets one model above another, and does not grade each by itself."""
    judges = frames.judges(store, campaign.id)
    return len(graders(judges)) < len(judges)


def _covariates(
    store: Store,
    campaign: int,
    battles: Battles,
    shown: tuple[NDArray[np.int64], NDArray[np.int64]],
    names: Sequence[str],
    families: Mapping[str, str],
    judge_families: Mapping[str, str],
) -> dict[str, NDArray[np.float64]]:
    """The named covariates of battles (rows,): of style, from the texts that were shown, and of family.

    `position` follows from the order shown and needs no column. Raises InputError for any other name.
    """
    known = (*STYLE_NAMES, FAMILY, "position")
    if strange := [name for name in names if name not in known]:
        raise InputError(f"a store knows no covariate {strange[0]!r}; {suggest(strange[0], known)}")
    found: dict[str, NDArray[np.float64]] = {}
    if set(names) & set(STYLE_NAMES):
        table = styles(store, campaign, shown)
        found = {name: table[name] for name in names if name in STYLE_NAMES}
    if FAMILY in names:
        own = [judge_families.get(judge, families.get(judge)) for judge in battles.judges]
        of_model = [families.get(model) for model in battles.models]
        sides = ([of_model[code] for code in side.tolist()] for side in (battles.model_a, battles.model_b))
        found[FAMILY] = same_family([own[code] for code in battles.judge.tolist()], *sides)
    return found


def _campaign_ballots(store: Store, campaign: frames.CampaignRow) -> Battles:
    """The ballots of a campaign as pairs; pairs of an unreadable ballot have its status."""
    return to_battles(*frames.ballots(store, campaign.id))


def _ballots_left_out(judges: Collection[frames.JudgeRow]) -> str:
    """The note on ballot judges in a campaign that also judges pairs."""
    names = sorted(judge.name for judge in judges)
    more = " and others" if len(names) > 5 else ""
    return (
        f"pairs are rated here, and the ballots of {', '.join(names[:5])}{more} left out: methods that need ballots "
        "take those alone"
    )


def _judging_models(store: Store, judges: Collection[frames.JudgeRow], models: Collection[str]) -> dict[str, str]:
    """The model that each judge is, by the judge's name: the same model, or the one whose answers it wrote."""
    writers: dict[str, set[str]] = {}
    for one in frames.campaigns(store):
        for row in frames.judges(store, one.id):
            if row.protocol == GENERATE and row.name in models:
                writers.setdefault(row.model, set()).add(row.name)
    found = {}
    for judge in judges:
        if judge.model in models:
            found[judge.name] = judge.model
        elif len(wrote := writers.get(judge.model, set())) == 1:  # several settings of one model are ambiguous
            found[judge.name] = next(iter(wrote))
    return {judge: model for judge, model in found.items() if judge != model}
