"""From a campaign to its trials in the store: who is asked, what stays of an earlier plan, its rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from venire.arena.campaigns import CampaignSettings, JudgeSettings, TokenPrice
from venire.arena.planning import Estimates, Pick, Steering
from venire.arena.records import RECORDED, Respondent
from venire.judges import PROTOCOLS
from venire.orchestrator.costs.coverage import read_funds, refuse_uncovered
from venire.orchestrator.designs import PlannedCampaign, PlannedRound, RoundDesign, read_design
from venire.orchestrator.planning.amending import has_grown, may_have_grown, plan_stays, refuse_other_prompts
from venire.orchestrator.planning.expand import write_round
from venire.orchestrator.planning.first_round import first_round, texts_left_out
from venire.orchestrator.planning.inputs import PlanInputs, read_inputs, text_lengths
from venire.orchestrator.planning.oversized import OversizedText, may_be_oversized
from venire.orchestrator.planning.respondents import refuse_edited, refuse_written, respondents
from venire.orchestrator.planning.rounds import Rounds
from venire.storage.plans import plans
from venire.storage.plans.plans import KnownCampaign
from venire.storage.read import frames
from venire.storage.store.store import Store


def plan(
    store: Store,
    campaign: CampaignSettings,
    prices: Mapping[str, TokenPrice],
    steering: Callable[[PlannedCampaign], Steering],
    *,
    amend: bool = False,
    estimates: Estimates | None = None,
    spends: bool = False,
    battles: Sequence[Pick] | None = None,
    tables_grow: bool = False,
) -> tuple[PlannedCampaign, Rounds | None]:
    """Plan what a campaign asks now, and who plans its rounds; None where the first round is all.

    The plan in force stays where it may, else the first round is written; where all of that is judged already, the next
    round too. `prices` are by judge name, `steering` makes of the plan what reads its verdicts between two rounds,
    `estimates` is what is known of the models beforehand. With `spends`, budgets that cover nothing are refused. What
    is planned is `battles`, where they are given. `tables_grow`: see `may_have_grown`. Raises InputError for
    whatever makes a plan impossible.
    """
    planned = plan_campaign(
        store, campaign, amend=amend, prices=prices, estimates=estimates, battles=battles, tables_grow=tables_grow
    )
    if spends:
        refuse_uncovered(store, plans.known_campaign(store, campaign, respondents(campaign)), planned, prices)
    if campaign.asks_contestants:
        refuse_written(store, campaign, planned)
    if campaign.asks_editors:
        refuse_edited(store, campaign, planned)
    if not campaign.in_rounds:
        return planned, None
    rounds = Rounds(store, campaign, planned, steering(planned), prices)
    if not frames.progress(store, planned.id).missing:
        rounds()
    return rounds.planned, rounds


def plan_campaign(
    store: Store,
    campaign: CampaignSettings,
    *,
    amend: bool = False,
    prices: Mapping[str, TokenPrice] | None = None,
    estimates: Estimates | None = None,
    battles: Sequence[Pick] | None = None,
    tables_grow: bool = False,
) -> PlannedCampaign:
    """Register a campaign and write the first round of its plan, unless its plan in force stays (`plan_stays`).

    `prices` are by judge name, `estimates` what is known of the models beforehand; `battles` take the place of the plan
    in force. Raises InputError for whatever makes a plan impossible; nothing is planned then.
    """
    known = plans.known_campaign(store, campaign, respondents(campaign))
    grows = may_have_grown(known, amend=amend, tables=tables_grow)
    made = _new_plan(store, known, prices or {}, estimates, battles, grows=grows)
    if made is None:
        refuse_other_prompts(store, known)
    number, numbers = plans.register(store, campaign, known.judges, _prompts(known.judges), plan_stays=made is None)
    if made is not None:
        write_round(store, number, numbers, *made)
    rounds = tuple(
        PlannedRound(row.number, row.phase, row.policy, row.trials, row.equal_texts, read_design(row.design))
        for row in plans.rounds(store, number)
    )
    by_number = {numbers[judge.name]: judge for judge in campaign.judges}
    trials, equal = sum(round_.trials for round_ in rounds), sum(round_.equal_texts for round_ in rounds)
    return PlannedCampaign(number, by_number, rounds[0].design, trials, equal, rounds)


def _new_plan(
    store: Store,
    known: KnownCampaign,
    prices: Mapping[str, TokenPrice],
    estimates: Estimates | None,
    battles: Sequence[Pick] | None,
    *,
    grows: bool,
) -> tuple[PlanInputs, RoundDesign] | None:
    """The first round of a new plan, with what it is made from; None where the plan in force stays."""
    stays = battles is None and plan_stays(store, known)
    if stays and not grows:
        return None
    funds = read_funds(store, known, prices)
    inputs = read_inputs(store, known, funds, estimates=estimates, battles=battles)
    design = first_round(inputs, funds)
    return None if stays and not has_grown(store, known, design) else (inputs, design)


def _prompts(judges: Sequence[tuple[JudgeSettings, Respondent]]) -> list[tuple[str, bytes, str]]:
    """Name, digest and text of every prompt that these judges are sent."""
    return [prompt for judge, _ in judges for prompt in PROTOCOLS[judge.protocol].texts(judge.options)]


def left_out(
    store: Store, campaign: CampaignSettings, prices: Mapping[str, TokenPrice], battles: Sequence[Pick] | None = None
) -> tuple[OversizedText, ...]:
    """The texts that no budget covers and that a first round leaves out: of the instructions that it draws, or of
    `battles`, where they are given."""
    known = plans.known_campaign(store, campaign, respondents(campaign))
    funds = read_funds(store, known, prices)
    if not may_be_oversized(text_lengths(store), funds) or campaign.plan.phases[0].policy == RECORDED:
        return ()
    return texts_left_out(read_inputs(store, known, funds, battles=battles), funds)
