"""From a campaign to its trials in the store: who is asked, what stays of an earlier plan, its rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from venire.arena.campaigns import CampaignSettings, JudgeSettings, TokenPrice
from venire.arena.planning import Estimates, Pick, Steering
from venire.arena.records import RECORDED, Respondent
from venire.judges import PROTOCOLS
from venire.orchestrator.costs.coverage import read_funds, refuse_uncovered
from venire.orchestrator.designs import PlannedCampaign, PlannedRound, read_design
from venire.orchestrator.planning.amending import has_grown, may_have_grown, plan_stays, refuse_other_prompts
from venire.orchestrator.planning.expand import write_round
from venire.orchestrator.planning.first_round import first_round, texts_left_out
from venire.orchestrator.planning.inputs import read_inputs
from venire.orchestrator.planning.oversized import OversizedText, may_be_oversized, text_lengths
from venire.orchestrator.planning.respondents import refuse_edited, refuse_written, respondents
from venire.orchestrator.planning.rounds import Rounds
from venire.storage.plans import plans
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
) -> tuple[PlannedCampaign, Rounds | None]:
    """Plan what a campaign asks now, and who plans its rounds; None where the first round is all.

    The plan in force stays where it may, else the first round is written; where all of that is judged already, the next
    round too. `prices` are by judge name, `steering` makes of the plan what reads its verdicts between two rounds,
    `estimates` is what is known of the models beforehand. With `spends`, budgets that cover nothing are refused. What
    is planned is `battles`, where they are given. Raises InputError for whatever makes a plan impossible.
    """
    planned = plan_campaign(store, campaign, amend=amend, prices=prices, estimates=estimates, battles=battles)
    if spends:
        refuse_uncovered(store, campaign, planned, respondents(campaign), prices)
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
) -> PlannedCampaign:
    """Register a campaign and write the first round of its plan, unless its plan in force stays (`plan_stays`).

    `prices` are by judge name, `estimates` what is known of the models beforehand; `battles` take the place of the plan
    in force. Raises InputError for whatever makes a plan impossible; nothing is planned then.
    """
    judges = respondents(campaign)
    known = plans.find_campaign(store, campaign.name)
    kept = known if battles is None and known is not None and plan_stays(store, campaign, known, judges) else None
    made = None
    if kept is None or may_have_grown(campaign, kept, amend=amend):
        funds = read_funds(store, campaign, judges, prices or {})
        inputs = read_inputs(store, campaign, judges, funds, estimates=estimates, battles=battles)
        design = first_round(inputs, funds)
        made = (inputs, design) if kept is None or has_grown(store, kept, design) else None
    if made is None and kept is not None:
        refuse_other_prompts(store, campaign, kept.id, judges)
    numbers = plans.register(store, campaign, judges, _prompts(judges), plan_stays=made is None)
    known = plans.find_campaign(store, campaign.name)
    assert known is not None  # registered above
    if made is not None:
        write_round(store, known.id, numbers, *made)
    rounds = tuple(
        PlannedRound(row.number, row.phase, row.policy, row.trials, row.equal_texts, read_design(row.design))
        for row in plans.rounds(store, known.id)
    )
    by_number = {numbers[judge.name]: judge for judge in campaign.judges}
    trials, equal = sum(one.trials for one in rounds), sum(one.equal_texts for one in rounds)
    return PlannedCampaign(known.id, by_number, rounds[0].design, trials, equal, rounds)


def _prompts(judges: Sequence[tuple[JudgeSettings, Respondent]]) -> list[tuple[str, bytes, str]]:
    """Name, digest and text of every prompt that these judges are sent."""
    return [prompt for judge, _ in judges for prompt in PROTOCOLS[judge.protocol].texts(judge.options)]


def left_out(
    store: Store, campaign: CampaignSettings, prices: Mapping[str, TokenPrice], battles: Sequence[Pick] | None = None
) -> tuple[OversizedText, ...]:
    """The texts that no budget covers and that a first round leaves out: of the instructions that it draws, or of
    `battles`, where they are given."""
    judges = respondents(campaign)
    funds = read_funds(store, campaign, judges, prices)
    if not may_be_oversized(text_lengths(store), funds) or campaign.plan.phases[0].policy == RECORDED:
        return ()
    return texts_left_out(read_inputs(store, campaign, judges, funds, battles=battles), funds)
