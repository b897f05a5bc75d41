"""From a campaign to its plan: who judges, who is judged, and on what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from venire.arena.campaigns import CampaignSettings, JudgeSettings, PhaseSettings, TokenPrice
from venire.arena.errors import InputError
from venire.arena.keys import respondent_key
from venire.arena.planning import Estimates, PlanState
from venire.arena.records import Respondent, Shape
from venire.judges import PROTOCOLS
from venire.orchestrator.costs.budget import BudgetView, Paid, open_budgets
from venire.orchestrator.designs import PlannedCampaign, PlannedRound, RoundDesign, read_design, write_design
from venire.orchestrator.planning.amending import rounds_stay
from venire.orchestrator.planning.expand import expand
from venire.orchestrator.planning.first_round import choose_first, refuse_phases
from venire.orchestrator.planning.recorded import Recording
from venire.orchestrator.planning.respondents import respondents
from venire.storage.plans import plans, trial_states
from venire.storage.plans.plans import Answers
from venire.storage.read import frames
from venire.storage.store.store import Store

__all__ = [
    "budgets_left",
    "paid_so_far",
    "plan_campaign",
    "respondents",
    "write_round",
]


def plan_campaign(
    store: Store,
    campaign: CampaignSettings,
    *,
    amend: bool = False,
    prices: Mapping[str, TokenPrice] | None = None,
    estimates: Estimates | None = None,
) -> PlannedCampaign:
    """Register a campaign and write the first round of its plan, unless the plan in force is that of these settings.

    What was planned stays planned, whatever has come into the store since; but what the campaign's own contestants
    wrote since is planned as long as no judge was asked, and with `amend`. Rounds stay too where settings changed that
    shape none of them. `prices` are by judge name,
    `estimates` what is known of the models beforehand. Raises InputError for whatever makes a plan impossible; nothing
    is planned then.
    """
    judges = respondents(campaign)
    known = plans.find_campaign(store, campaign.name)
    planned = known is not None and known.planned and known.settings == campaign.settings
    budgets = budgets_left(store, campaign, judges)
    stays = known is not None and (planned or _goes_on(store, campaign, known, judges))
    if known is not None and stays and not (_may_grow(campaign) and _has_grown(store, campaign, known, amend=amend)):
        _refuse_other_prompts(store, campaign, known.id, judges)
        numbers = plans.register(store, campaign, judges, _texts(judges), plan_stays=True)
    else:
        chosen, answers, recordings = choose_first(store, campaign, prices or {}, budgets, estimates)
        numbers = plans.register(store, campaign, judges, _texts(judges))
        known = plans.find_campaign(store, campaign.name)
        assert known is not None  # registered above
        write_round(store, campaign, known.id, numbers, chosen, answers, recordings)
    rounds = tuple(_read(row) for row in plans.rounds(store, known.id))
    by_number = {numbers[judge.name]: judge for judge in campaign.judges}
    trials, equal = sum(one.trials for one in rounds), sum(one.equal_texts for one in rounds)
    return PlannedCampaign(known.id, by_number, rounds[0].design, trials, equal, rounds)


def _read(row: plans.Round) -> PlannedRound:
    return PlannedRound(row.number, row.phase, row.policy, row.trials, row.equal_texts, read_design(row.design))


def budgets_left(
    store: Store, campaign: CampaignSettings, judges: Sequence[tuple[JudgeSettings, Respondent]]
) -> Mapping[str, BudgetView]:
    """What each judge of a campaign can still spend, by name, with what was paid so far taken off."""
    known = plans.find_campaign(store, campaign.name)
    numbers = {}
    for place, (judge, respondent) in enumerate(judges, start=1):
        found = store.read("respondent_id", respondent_key=respondent_key(respondent))
        numbers[found[0][0] if found else -place] = judge
    paid = {} if known is None else paid_so_far(store, known.id)
    return {numbers[number].name: budget for number, budget in open_budgets(campaign, numbers, paid)[1].items()}


def paid_so_far(store: Store, campaign: int) -> Mapping[tuple[int, str], Paid]:
    """What a campaign paid, by respondent number and model."""
    return {
        (one.respondent, one.model): Paid(one.calls, one.nano, one.tokens) for one in trial_states.paid(store, campaign)
    }


def write_round(
    store: Store,
    campaign: CampaignSettings,
    number: int,
    numbers: Mapping[str, int],
    chosen: RoundDesign,
    answers: Answers,
    recordings: Mapping[str, Recording],
    *,
    follows: bool = False,
) -> PlannedRound:
    """Write the trials of a design into the plan of the campaign of that number; `numbers` are its judges' by name.

    What follows an earlier round is for judges of pairs alone: the others are asked all in the first.
    """
    asked = [
        (judge, one)
        for judge, one in respondents(campaign)
        if (not chosen.judges or judge.name in chosen.judges) and (not follows or judge.shape is Shape.PAIR)
    ]
    equal_texts = [0]
    policy = next(one.policy for one in campaign.plan.phases if one.name == chosen.phase)
    trials = expand(
        chosen,
        answers,
        [(numbers[judge.name], respondent) for judge, respondent in asked],
        {numbers[judge.name]: judge.repeats or campaign.plan.repeats for judge, _ in asked},
        equal_texts,
        seed=campaign.seed,
        recorded={numbers[judge.name]: recordings[judge.name] for judge, _ in asked if judge.name in recordings},
        orders=campaign.plan.orders,
    )
    count = plans.append_round(
        store,
        number,
        trials,
        policy=policy,
        seed=campaign.seed,
        equal_texts=equal_texts,
        design=write_design(chosen),
        phase=chosen.phase,
        follows=follows,
    )
    last = store.rows("next_round", campaign=number)[0][0] - 1
    return PlannedRound(last, chosen.phase, policy, count, equal_texts[0], chosen)


def _may_grow(campaign: CampaignSettings) -> bool:
    return bool(campaign.contestants) and not campaign.asks_contestants


def _has_grown(store: Store, campaign: CampaignSettings, known: plans.Known, *, amend: bool) -> bool:
    """Whether contestants have written since what the plan in force would show, and it may still be made anew."""
    if known.calls and not amend:
        return False
    before = read_design(plans.rounds(store, known.id)[0].design)
    now = choose_first(store, campaign, {}, budgets_left(store, campaign, respondents(campaign)))[0]
    return _made_of(now) != _made_of(before)


def _made_of(design: RoundDesign) -> tuple[object, ...]:
    """What of a first round depends on what was written; battles also on what was paid since."""
    matchups = design.matchups if design.battles is None else None
    return design.instructions, design.models, design.left_out, design.recorded, matchups


def _goes_on(
    store: Store, campaign: CampaignSettings, known: plans.Known, judges: Sequence[tuple[JudgeSettings, Respondent]]
) -> bool:
    """Whether a plan in rounds that calls were made for goes on by other settings: what was decided is not undone."""
    if not known.planned or not known.calls or campaign.asks_contestants:
        return False
    rounds = plans.rounds(store, known.id)
    begun = list(dict.fromkeys(one.phase for one in rounds))
    alike = rounds_stay(known.settings, campaign.settings, begun)
    if not alike or not _in_rounds(rounds) or _others(store, known.id, judges):
        return False
    if campaign.pair_judges:
        refuse_phases(campaign, PlanState(read_design(rounds[0].design).models, frames.elos(store)))
    return True


def _in_rounds(rounds: Sequence[plans.Round]) -> bool:
    return len(rounds) > 1 or any(not PhaseSettings(one.policy).crosses for one in rounds)


def _others(store: Store, number: int, judges: Sequence[tuple[JudgeSettings, Respondent]]) -> list[str]:
    """Judges that are not the respondents that they were in the campaign of that number."""
    before = {row.name: row.respondent for row in frames.judges(store, number)}
    numbers = {judge.name: store.rows("respondent_id", respondent_key=respondent_key(one)) for judge, one in judges}
    return [name for name, found in numbers.items() if not found or found[0][0] != before.get(name)]


def _refuse_other_prompts(
    store: Store, campaign: CampaignSettings, number: int, judges: Sequence[tuple[JudgeSettings, Respondent]]
) -> None:
    """With the same settings, a judge that is another respondent now is one that would be asked in other words."""
    for name in _others(store, number, judges):
        raise InputError(
            f"{campaign.path}: judge {name!r} would be asked with other prompts than this campaign began "
            "with: go on with the version of Venire that planned it, or give the campaign another name"
        )


def _texts(judges: Sequence[tuple[JudgeSettings, Respondent]]) -> list[tuple[str, bytes, str]]:
    """Name, digest and text of every prompt that these judges are sent."""
    return [text for judge, _ in judges for text in PROTOCOLS[judge.protocol].texts(judge.options)]
