"""What a plan is made from, read from the store once: the first round and all that follow are pure functions of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from venire.arena.campaigns import CampaignSettings, JudgeSettings
from venire.arena.errors import InputError
from venire.arena.planning import Estimates, Pick
from venire.arena.records import Respondent
from venire.arena.wording import suggest
from venire.orchestrator.costs.call_cost import BattleCost, CallCost, battle_costs
from venire.orchestrator.costs.coverage import Funds
from venire.orchestrator.designs import ExcludedModel
from venire.orchestrator.planning.oversized import TextLengths, may_be_oversized
from venire.orchestrator.planning.recorded import Recording, read_recordings
from venire.storage.plans import plans
from venire.storage.plans.plans import Catalogue, KnownCampaign
from venire.storage.plans.trial_states import SettledPairs, by_number, settled_pairs
from venire.storage.store.store import Store
from venire.storage.transfer import importing


@dataclass(frozen=True, slots=True)
class SelectedModels:
    """The models of a campaign in the order of their names, their reference ratings, and who was left out."""

    names: tuple[str, ...]
    elo: Mapping[str, float]
    left_out: tuple[ExcludedModel, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PlanInputs:
    """All that stays the same from round to round.

    `answers` are the texts of the models and `lengths` those of the store by number; `recordings` are the judgments on
    record by judge, `costs` what each judge that is asked about pairs takes for a battle, as expected before any was:
    what policies weigh. `settled` are pairs judged already in any campaign, by judge, where a budget needs to know.
    `estimates` are what is known of the models beforehand; `battles` were chosen by the caller, in place of a policy.
    """

    campaign: CampaignSettings
    judges: Sequence[tuple[JudgeSettings, Respondent]]
    models: SelectedModels
    answers: Catalogue
    lengths: TextLengths
    recordings: Mapping[str, Recording]
    costs: tuple[BattleCost, ...]
    settled: Mapping[str, SettledPairs]
    estimates: Estimates | None = None
    battles: Sequence[Pick] | None = None


def read_inputs(
    store: Store,
    known: KnownCampaign,
    funds: Funds,
    *,
    models: Sequence[str] | None = None,
    estimates: Estimates | None = None,
    battles: Sequence[Pick] | None = None,
) -> PlanInputs:
    """What the plan of a campaign is made from; `models` are those that it has already, None before its first round.

    Raises InputError for models and recorded judgments of which no plan can be made.
    """
    campaign = known.settings
    recordings = {} if battles is not None else read_recordings(campaign)
    if battles is not None:
        models = sorted({model for pick in battles for model in (pick.model_a, pick.model_b)})
    if campaign.asks_contestants:
        selected, answers = SelectedModels((), {}), plans.instruction_catalogue(store)
    else:
        there = importing.contestants(store) if models is None else ()
        selected = select_models(campaign, there) if models is None else SelectedModels(tuple(models), {})
        answers = plans.catalogue(store, selected.names, campaign.plan.variants)
    lengths = text_lengths(store)
    expected = [CallCost(cost.judge, cost.price) for cost in funds.calls.values()]
    settled: Mapping[str, SettledPairs] = {}
    if funds.limited and (may_be_oversized(lengths, funds) if battles is not None else campaign.in_rounds):
        pairs = settled_pairs(store, set(known.numbers.values()))
        settled = {name: pairs[number] for name, number in known.numbers.items()}
    return PlanInputs(
        campaign, known.judges, selected, answers, lengths, recordings, battle_costs(campaign, expected), settled,
        estimates, battles,
    )  # fmt: skip


def text_lengths(store: Store) -> TextLengths:
    """How long all texts of a store are, by number."""
    lengths = (by_number(store, "instruction_lengths", column) for column in ("characters", "referenced"))
    return TextLengths(*(one.astype(np.float64) for one in (*lengths, by_number(store, "completion_lengths"))))


def select_models(campaign: CampaignSettings, there: Sequence[importing.StoredModel]) -> SelectedModels:
    """The models of a campaign, of those that have completions.

    Raises InputError for a named model that is unknown or lacks what the policy needs, and for fewer models than two,
    or than a judge is shown at once.
    """
    known = {one.model: one for one in there}
    policy = campaign.plan.phases[0].policy
    needs_elo = campaign.plan.phases[0].needs_elo and campaign.pair_judges
    named = campaign.data.models
    for model in named or ():
        if model not in known:
            raise InputError(
                f"{campaign.path}: [data] models names {model!r}, which has no completions in the store; "
                f"{suggest(model, sorted(known))}"
            )
        if needs_elo and known[model].elo is None:
            raise InputError(
                f"{campaign.path}: [data] models names {model!r}, which has no Elo, and policy "
                f"{policy!r} needs one: import it, leave the model out, or use policy 'random'"
            )
    chosen = sorted(named if named is not None else known)
    without = [model for model in chosen if needs_elo and known[model].elo is None]
    left_out = tuple(ExcludedModel(model, "no Elo") for model in without)
    models = tuple(model for model in chosen if model not in without)
    if len(models) < 2:
        raise InputError(
            f"{campaign.path}: a campaign needs two models with completions"
            f"{' and Elo' if needs_elo else ''}, and there are {len(models)}: import completions"
            f"{' and Elo' if needs_elo else ''} (`venire import table PATH --kind ...`) or name files in [data]"
        )
    for judge in campaign.judges:
        if (shown := judge.shape.size(len(models))) > len(models):
            raise InputError(
                f"{campaign.path}: judge {judge.name!r}: protocol {judge.protocol!r} shows {shown} completions of an "
                f"instruction at once, and there are {len(models)} models: import completions of more, or choose "
                "another protocol"
            )
    elo = {model: value for model in models if (value := known[model].elo) is not None}
    return SelectedModels(models, elo, left_out)
