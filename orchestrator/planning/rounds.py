"""What is planned next, once all that was planned is judged: the rounds and phases of a plan, until enough is known.

A round is a pure function of what the store holds. Its design is stored before its first call, so that a run that was
interrupted goes on with the round as it was planned and repeats no decision.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.battles import Battles
from venire.arena.campaigns import CampaignSettings, PhaseSettings, TokenPrice
from venire.arena.planning import Estimates, InterimAnalysis, Steering
from venire.arena.records import RECORDED
from venire.arena.scale import POINTS_PER_LOGIT
from venire.orchestrator.costs.call_cost import battle_costs
from venire.orchestrator.costs.coverage import ChargedBattles, Funds, affordable, read_funds
from venire.orchestrator.designs import ExcludedModel, PlannedCampaign, RoundDesign, battle_design, crossed_design
from venire.orchestrator.planning.design_space import DesignSpace, payable_battles, policy_state
from venire.orchestrator.planning.expand import write_round
from venire.orchestrator.planning.first_round import needs_other_judges, pairs_of
from venire.orchestrator.planning.inputs import read_inputs
from venire.orchestrator.planning.respondents import respondents
from venire.orchestrator.policies import POLICIES
from venire.storage.plans import plans
from venire.storage.plans.plans import KnownCampaign, known_campaign
from venire.storage.read import frames
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Rounds:
    """Plans a campaign's rounds one after another: a call analyses it, keeps that, and plans and stores one more.

    At a call all trials planned so far are settled or failed, but for those of judges that cannot pay for them or
    cannot be reached; rounds are planned for the latter all the same. `prices` are by judge name. No more is planned
    when a rule stops the campaign, its plan is at its end, or no budget covers another battle.
    """

    def __init__(
        self,
        store: Store,
        campaign: CampaignSettings,
        planned: PlannedCampaign,
        steering: Steering,
        prices: Mapping[str, TokenPrice],
    ) -> None:
        self.planned = planned
        self.analysed: tuple[int, InterimAnalysis] | None = None
        self.stopped: str | None = None
        self.short = False
        self._store, self._campaign, self._steering, self._prices = store, campaign, steering, prices

    def __call__(self) -> PlannedCampaign | None:
        """The campaign with one more round, or None where no more is planned; `stopped` is then the reason."""
        analysis, settled = self._analyse()
        self.stopped, self.short = analysis.stop, False
        chosen = self._choose(analysis) if analysis.stop is None else None
        if chosen is None and self.stopped is None:
            many = sum(planned.design.size for planned in self.planned.rounds)
            self.stopped = f"all {many:,} battles of the plan are judged"
            analysis = replace(analysis, stop=self.stopped)
        self._keep(analysis, settled)
        if chosen is None:
            return None
        self.planned = self._append(chosen)
        return self.planned

    def analyse(self) -> InterimAnalysis:
        """What is known by now, kept in the store; no more is planned."""
        analysis, settled = self._analyse()
        self._keep(analysis, settled)
        return analysis

    def _keep(self, analysis: InterimAnalysis, settled: int) -> None:
        """Keep a look, unless the last one that is kept saw the same and came to the same."""
        number = self.planned.rounds[-1].number
        self.analysed = number, analysis
        last = plans.last_interim(self._store, self.planned.id)
        if last is None or (*last[:2], last[2].stop) != (number, settled, analysis.stop):
            plans.add_interim(self._store, self.planned.id, number, analysis, settled)

    def _analyse(self) -> tuple[InterimAnalysis, int]:
        """A look at what is settled, and how many trials are. Made anew: since the last one rules may have changed."""
        ((settled,),) = self._store.read("settled_in_plan", campaign=self.planned.id)
        paid = frames.campaign_spending(self._store, self.planned.id).nano
        return self._steering.analyse(self._battles(), paid), settled

    def _battles(self, without: Collection[str] = ()) -> Battles:
        """The verdicts so far, those of some judges left out."""
        found = frames.battles(self._store, self.planned.id)
        return _without(found, without) if without else found

    @cached_property
    def space(self) -> DesignSpace:
        """What its rounds are chosen from."""
        return read_space(self._store, self._known, self.planned, self._funds())

    @cached_property
    def _known(self) -> KnownCampaign:
        return known_campaign(self._store, self._campaign, respondents(self._campaign))

    def _choose(self, analysis: InterimAnalysis) -> RoundDesign | None:
        """The design of the next round; None where nothing is left to ask, or, with `stopped` set, to be paid."""
        known = frames.elos(self._store)
        for number, phase in enumerate(self._campaign.plan.phases):
            if phase.policy == RECORDED:
                continue
            own = number > 0 and needs_other_judges(phase, self.space.models, known)
            groups = [(name,) for name in self._campaign.pair_judges] if own else [()]
            for group in sorted(groups, key=lambda group: self._done(phase, group)):
                if self._is_done(phase, group):
                    continue
                if (found := self._round(phase, group, known, analysis)) is not None:
                    self.stopped, self.short = None, False  # another than one that cannot pay
                    return found
            if self.stopped is not None:
                return None
        return None

    def _done(self, phase: PhaseSettings, group: Sequence[str]) -> int:
        """Battles planned in a phase so far, for some judges where each has its own."""
        mine = [planned.design for planned in self.planned.rounds if planned.phase == phase.name]
        return sum(design.size for design in mine if not group or set(group) & set(design.judges))

    def _is_done(self, phase: PhaseSettings, group: Sequence[str]) -> bool:
        done = self._done(phase, group)
        if phase.crosses:
            return done > 0
        return phase.battles is not None and done >= phase.battles

    def _round(
        self, phase: PhaseSettings, group: Sequence[str], known: Mapping[str, float], analysis: InterimAnalysis
    ) -> RoundDesign | None:
        """A round of a phase, for all judges that can pay or for those of a group, by what the others say."""
        policy, space = POLICIES[phase.policy], self.space
        estimates = (
            self._steering.estimate(self._battles(group))
            if policy.adaptive or group or phase.purpose == "place"
            else None
        )
        elo = _as_elo(estimates) if estimates is not None and group else known
        models = tuple(name for name in space.models if name in elo) if group else space.models
        if len(models) < 2:
            return None
        asked = space.asked((planned.design for planned in self.planned.rounds), group)
        funds = self._funds()
        who, whose = _able(space, tuple(group) or self._campaign.pair_judges, asked, funds)
        while who:
            state = policy_state(space, elo=elo, models=models, asked=asked, estimates=estimates, judges=who)
            rng = np.random.default_rng([self._campaign.seed, len(self.planned.rounds) + 1])
            if policy.crossed:
                picks = policy.choose(state, phase, phase.matchups or pairs_of(models), rng)
                return self._design(crossed_design(picks, elo, space.instructions, models, phase.name), who)
            number = self._campaign.plan.round_size(phase, self._done(phase, group), analysis.battles)
            picks = policy.choose(state, phase, number, rng)
            # as many as the budgets cover, so that none is left half judged
            count, whose = payable_battles(space, picks, who, funds)
            if count or not picks:
                drawn = {pick.instruction for pick in picks[:count]}
                on = [instruction for instruction in space.instructions if instruction in drawn]
                return self._design(battle_design(picks[:count], elo, on, models, phase.name), who)
            who = tuple(name for name in who if all(account.whose != whose for account in funds.budgets[name].accounts))
        self.stopped = f"{whose} covers no further battle"
        self.short = phase.battles is not None or phase.crosses
        return None

    def _design(self, design: RoundDesign, who: Sequence[str]) -> RoundDesign | None:
        """A design for some judges, with who is left out of it; None where it has no battle."""
        missing = [name for name in self.space.models if name not in design.models]
        without = tuple(ExcludedModel(name, "no rating by the other judges") for name in missing)
        everybody = len(who) == len(self._campaign.pair_judges)
        return replace(design, left_out=without, judges=() if everybody else tuple(who)) if design.size else None

    def _funds(self) -> Funds:
        return read_funds(self._store, self._known, self._prices)

    def _append(self, design: RoundDesign) -> PlannedCampaign:
        numbers = {judge.name: number for number, judge in self.planned.judges.items()}
        before = self.planned
        added = write_round(self._store, before.id, numbers, self.space.inputs, design, follows=True)
        return replace(
            before,
            trials=before.trials + added.trials,
            equal_texts=before.equal_texts + added.equal_texts,
            rounds=(*before.rounds, added),
        )


def read_space(store: Store, known: KnownCampaign, planned: PlannedCampaign, funds: Funds) -> DesignSpace:
    """The models and instructions of a plan, with all that its rounds are chosen by."""
    first = planned.rounds[0].design
    inputs = read_inputs(store, known, funds, models=first.models)
    return DesignSpace(inputs, first.models, first.instructions)


def _able(
    space: DesignSpace, names: Sequence[str], asked: NDArray[np.int32], funds: Funds
) -> tuple[tuple[str, ...], str]:
    """The judges that can pay for a battle such as those before, and whose limit the first that cannot has reached."""
    poor = {}
    for cost in battle_costs(space.inputs.campaign, funds.calls.values()):
        if cost.judge in names:
            usual = np.array([space.characters(cost, asked).mean() if len(asked) else 0.0])
            count, whose = affordable([ChargedBattles(cost, funds.budgets[cost.judge], usual, np.ones(1))])
            if count == 0:
                poor[cost.judge] = whose
    return tuple(name for name in names if name not in poor), next(iter(poor.values()), "")


def _as_elo(estimates: Estimates) -> dict[str, float]:
    """Ratings in Elo points, of the models that have one."""
    ratings = zip(estimates.models, estimates.logits.tolist(), strict=True)
    return {name: POINTS_PER_LOGIT * logit for name, logit in ratings if math.isfinite(logit)}


def _without(battles: Battles, judges: Collection[str]) -> Battles:
    """The verdicts of the other judges."""
    kept = [place for place, name in enumerate(battles.judges) if name not in judges]
    codes = np.full(len(battles.judges), -1, dtype=np.int32)
    codes[kept] = np.arange(len(kept), dtype=np.int32)
    rows = codes[battles.judge] >= 0
    columns = ("model_a", "model_b", "instruction", "repeat", "swapped", "status", "label")
    return replace(
        battles,
        judges=tuple(battles.judges[place] for place in kept),
        judge=codes[battles.judge][rows],
        score=None if battles.score is None else battles.score[rows],
        **{name: getattr(battles, name)[rows] for name in columns},
    )
