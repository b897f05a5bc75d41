"""The board that a new model is placed on, and the placement campaign of `venire place`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

import numpy as np

from venire.arena.battles import Battles
from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import CampaignSettings, DataSettings, PhaseSettings, PlanSettings, StopSettings, TokenPrice
from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_with
from venire.arena.records import Origin, Rating
from venire.arena.wording import suggest
from venire.configs.loading import campaign_of
from venire.embedded import is_embedded
from venire.orchestrator.policies import POLICIES
from venire.placement.settings import PlaceSettings
from venire.prices import judge_price
from venire.ratings.data.judgments import Judgments, merge_orders, select_battles
from venire.ratings.data.validation import check_level
from venire.ratings.design.placement import fit_board
from venire.ratings.pairwise.components import SeparatedError
from venire.ratings.soft_elo.conformal import conformal_rank
from venire.reports.board.stored import PLACING, choose_campaign
from venire.storage.plans import plans
from venire.storage.read import frames
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing


@dataclass(frozen=True)
class PlacementBoard:
    """The data before a model is placed: the verdicts of a campaign, and people's ratings of its models."""

    campaign: str
    battles: Battles
    elo: Mapping[str, float]
    families: Mapping[str, str]
    origins: tuple[Origin, ...]

    @cached_property
    def judgments(self) -> Judgments:
        """The verdicts with both orders merged."""
        return merge_orders(self.battles)


@dataclass(frozen=True)
class PreparedPlacement:
    """A placement that is ready to run: its campaign and its board."""

    settings: PlaceSettings
    campaign: CampaignSettings
    board: PlacementBoard
    already: int
    """Number of the model's judgments in the board's campaign, which count too."""


def prepare(settings: PlaceSettings) -> PreparedPlacement:
    """Read the board of a store and make the campaign that places a model on it.

    If a file of completions is named, it is imported first. Raises InputError for anything that prevents the placement:
    the model, the campaign, judges, instructions, or a store that another process holds.
    """
    _check(settings)
    with open_store(settings.store, create=False) as store:
        if settings.completions is not None:
            importing.add_file(store, settings.completions, "completions", {}, model=settings.model)
        _take_elo(store, settings)
        row = choose_campaign(store, settings.campaign)
        known = plans.find_campaign(store, row.name)
        assert known is not None  # it was chosen among the existing campaigns
        base = campaign_of(settings.store.absolute().with_suffix(".toml"), known.text)
        campaign = _judged_by(settings, base, row.name)
        names = tuple(one.name for one in campaign.judges)
        board = _board(store, row, names)
        opponents = _opponents(store, settings, board)
        missing = _endless(settings, campaign)
        if settings.model not in frames.elos(store) and any(map(is_embedded, campaign.judges)):
            missing.append(
                f"the judges of {row.name!r} are simulated, and need the Elo of {settings.model!r}, which is not "
                f"known: give it with {setting('elo')}, such as {setting_with('elo', 1000)}"
            )
        if missing:
            raise InputError("; and ".join(missing))
    model = settings.model
    already = 0
    if model in board.judgments.models:
        code = board.judgments.models.index(model)
        already = int(((board.judgments.model_a == code) | (board.judgments.model_b == code)).sum())
    return PreparedPlacement(settings, _placement_campaign(settings, campaign, row.name, opponents), board, already)


def _endless(settings: PlaceSettings, campaign: CampaignSettings) -> list[str]:
    """What a placement without a limit lacks: every battle of the model with everybody would be asked."""
    if settings.battles is not None or settings.half_width is not None:
        return []
    free = all(judge_price(campaign, judge) == TokenPrice(0, 0) for judge in campaign.judges)
    if free and settings.money is not None:
        return [
            f"its judges cost nothing, so that {setting('budget')} limits nothing: give {setting('battles')} or "
            f"{setting('half_width')}"
        ]
    if settings.money is None:
        limits = f"{'' if free else setting('budget') + ', '}{setting('battles')} or {setting('half_width')}"
        return [f"nothing says when the placement is enough: give {limits}"]
    return []


def _take_elo(store: Store, settings: PlaceSettings) -> None:
    """Keep the Elo that is given for the model. Raises InputError where the store has another."""
    if settings.elo is None:
        return
    known = frames.elos(store).get(settings.model)
    if known is not None and known != settings.elo:
        raise InputError(
            f"{setting('elo')} {settings.elo:g}: {settings.store} has {known:g} for {settings.model!r}: leave "
            f"{setting('elo')} out, or change the rating there (`venire import table PATH --kind elo`)"
        )
    importing.add(store, [Rating(settings.model, settings.elo)])


def _check(settings: PlaceSettings) -> None:
    policy = POLICIES.get(settings.policy)
    if policy is None or policy.crossed:
        able = [name for name, one in POLICIES.items() if not one.crossed]
        raise InputError(
            f"{setting('policy')} {settings.policy}: no policy that chooses battles; {suggest(settings.policy, able)}"
        )
    if settings.money is not None and settings.money <= 0:
        raise InputError(
            f"{setting('budget')} is 0: a placement asks judges; give dollars, such as "
            f"{setting_with('budget', Decimal('1.00'))}"
        )
    check_level(settings.level)
    conformal_rank(0, settings.alpha)  # refuses an invalid alpha
    if settings.elo is not None and not abs(settings.elo) <= 100_000:
        raise InputError(
            f"{setting('elo')} {settings.elo:g}: give a number of Elo points from -100000 to 100000, such as 1000"
        )
    if settings.half_width is not None and not settings.half_width > 0.0:
        raise InputError(f"{setting('half_width')} {settings.half_width:g}: give Elo points above 0, such as 25")
    if settings.completions is not None and not settings.completions.is_file():
        raise InputError(f"{settings.completions}: no such file of completions")


def _judged_by(settings: PlaceSettings, base: CampaignSettings, name: str) -> CampaignSettings:
    """The board's campaign with the judges to ask again: the named judges, by default those of pairs."""
    able = [one for one in base.judges if one.recorded is None and one.shape.pairwise]
    if not able:
        raise InputError(
            f"campaign {name!r} has no judge of pairs that can be asked: its verdicts are on record, or of lists"
        )
    if unknown := sorted(set(settings.judges) - {one.name for one in able}):
        raise InputError(
            f"{setting('judges')} {unknown[0]}: campaign {name!r} asks {', '.join(judge.name for judge in able)}"
        )
    chosen = tuple(one for one in able if not settings.judges or one.name in settings.judges)
    return replace(base, judges=chosen)


def _board(store: Store, row: frames.CampaignRow, judges: tuple[str, ...]) -> PlacementBoard:
    battles = frames.battles(store, row.id)
    chosen = [code for code, name in enumerate(battles.judges) if name in judges]
    battles = select_battles(battles, np.isin(battles.judge, chosen))
    if not len(battles.label):
        raise InputError(
            f"campaign {row.name!r} has no verdicts by {', '.join(judges)} yet: judge the board first (`venire run`)"
        )
    origins = tuple(sorted({one.origin for one in frames.judges(store, row.id) if one.name in judges}))
    return PlacementBoard(row.name, battles, frames.elos(store), frames.families(store), origins)


def _opponents(store: Store, settings: PlaceSettings, board: PlacementBoard) -> tuple[str, ...]:
    """The board's rated models that share instructions with the new one. Raises InputError naming what is missing."""
    there = {one.model for one in importing.contestants(store)}
    model = settings.model
    if model not in there:
        known = model in board.judgments.models or model in frames.elos(store)
        raise InputError(
            f"{model!r} has no completions in {settings.store}{'' if known else ', which does not know it'}: give them "
            f"with {setting('completions')} FILE (columns instruction_id or prompt, and completion or response); it "
            f"has those of {', '.join(sorted(there)[:8])}{' ...' if len(there) > 8 else ''}"
        )
    try:
        rated = fit_board(with_model(board.judgments, model).comparisons(), model)
    except SeparatedError as error:
        raise InputError(
            f"{board.campaign!r} is no board to place a model on yet: {error}. A model that won or lost everything is "
            "a group of its own: judge the board on more instructions"
        ) from None
    names = [name for name, logit in zip(rated.models, rated.logits.tolist(), strict=True) if math.isfinite(logit)]
    answers = plans.catalogue(store, [*names, model])
    own = {name for name in answers.instructions if (model, name) in answers.completions}
    shared = tuple(
        name for name in names if name in there and all((name, one) in answers.completions for one in own)
    ) or tuple(name for name in names if any((name, one) in answers.completions for one in own))
    if not shared:
        raise InputError(
            f"{model!r} and the models on the board answered no instruction in common: import its completions to "
            "theirs (instruction_id, or the prompt where there is none, must be the same)"
        )
    return shared


def with_model(judgments: Judgments, model: str) -> Judgments:
    """The judgments with the model among the names, even if it has no judgment yet."""
    return judgments if model in judgments.models else replace(judgments, models=(*judgments.models, model))


def _placement_campaign(
    settings: PlaceSettings, base: CampaignSettings, board: str, opponents: tuple[str, ...]
) -> CampaignSettings:
    """The campaign of a placement.

    The name contains what distinguishes placements. It leaves out money, stopping rules and the size of rounds, so that
    the same command with larger limits resumes the previous placement.
    """
    apart = [] if settings.policy == "information" else [settings.policy]
    apart += [f"seed {settings.seed}"] if settings.seed else []
    apart += [f"by {', '.join(settings.judges)}"] if settings.judges else []
    apart += [f"{settings.instructions} instructions"] if settings.instructions else []
    name = f"{PLACING}{settings.model}" + (f" ({'; '.join(apart)})" if apart else "")
    phase = PhaseSettings(
        policy=settings.policy,
        name="place",
        # what is asked, readable or not: the rule to stop counts readable battles
        battles=settings.battles,
        round=settings.round_size,
        purpose="place",
        place=settings.model,
    )
    described = {
        "place": settings.model,
        "board": board,
        "policy": settings.policy,
        "seed": settings.seed,
        "instructions": settings.instructions,
        "judges": [[one.name, one.model, one.protocol, dict(one.options)] for one in base.judges],
    }
    return replace(
        base,
        name=name,
        seed=settings.seed,
        store=settings.store.absolute(),
        data=DataSettings(models=tuple(sorted({*opponents, settings.model}))),
        plan=PlanSettings(
            phases=(phase,),
            instructions=settings.instructions,
            repeats=base.plan.repeats,
            orders=base.plan.orders,
            stop=StopSettings(battles=settings.battles, half_width=settings.half_width, level=settings.level),
        ),
        budget=BudgetSettings(money=settings.money),
        judge_budgets={},
        model_budgets={},
        contestants=(),
        text=f"# {name}: as the campaign below, by `venire place`\n{base.text}",
        settings=json.dumps(described, sort_keys=True),
    )
