"""A campaign's plan as plain values, with its cost, and the reasons for its first matchups or battles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from venire.arena.budgets import UNITS, Amount
from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError
from venire.arena.planning import JudgeHabit, Pick
from venire.arena.records import Matchup
from venire.arena.scale import POINTS_PER_LOGIT
from venire.forecasts.intervals import PlanIntervals
from venire.orchestrator.costs.budget import BudgetAccount
from venire.orchestrator.costs.forecast import Forecast, in_all
from venire.orchestrator.designs import PlannedCampaign, PlannedRound, RoundDesign
from venire.orchestrator.planning.design_space import DesignSpace
from venire.prices import price_warnings
from venire.ratings.design.optimal_design import optimal_design
from venire.session import Session
from venire.status import MIN_INSTRUCTIONS
from venire.storage.plans import plans

_MAX_REASONS = 20


def plan_document(session: Session, forecast: Forecast) -> dict[str, Any]:
    """The plan as plain values, with what the rest of it will take."""
    chosen = session.planned.design
    return {
        "campaign": session.campaign.name,
        "models": list(chosen.models),
        "left_out": [asdict(one) for one in chosen.left_out],
        "matchups": [asdict(matchup) for matchup in chosen.matchups],
        "instructions": list(chosen.instructions),
        "trials": session.planned.trials,
        "plan": _phases(session.campaign, session.planned),
        "equal_texts": session.planned.equal_texts,
        "recorded": [asdict(one) for one in chosen.recorded],
        "warnings": [*plan_warnings(session), *budget_cuts(session, forecast)],
        "progress": asdict(forecast.progress) | {"missing": forecast.progress.missing},
        "judges": [asdict(row) for row in forecast.judges],
        "too_long": [asdict(row) for row in session.forecast_long()],
        "spent": forecast.spending.nano,
    }


def _phases(campaign: CampaignSettings, planned: PlannedCampaign) -> dict[str, Any]:
    """Phases, rounds and stopping rules of a plan as plain values."""
    return {
        "phases": [asdict(phase) for phase in campaign.plan.phases],
        "orders": campaign.plan.orders,
        "stop": asdict(campaign.plan.stop),
        "rounds": [
            {
                "round": one.number,
                "phase": one.phase,
                "policy": one.policy,
                "battles": one.design.size,
                "trials": one.trials,
                "judges": list(one.design.judges),
            }
            for one in planned.rounds
        ],
    }


def plan_warnings(session: Session) -> Iterator[str]:
    """Warnings about prices that are hardly true, answers of a lost run, texts that no budget covers and too few
    instructions: a sentence each."""
    yield from price_warnings(session.campaign.judges)
    if (held := session.left_with_actors) is not None:
        yield held
    yield from map(str, session.oversized())
    many, stop = len(session.planned.design.instructions), session.campaign.plan.stop
    if not session.campaign.pair_judges:
        return
    if many == 1:
        yield (
            "a single instruction: no rating or consistency will have an interval, and all of them are of this one "
            f"text; {MIN_INSTRUCTIONS} or more give intervals that hold"
        )
    if many < MIN_INSTRUCTIONS and (stop.half_width is not None or stop.top is not None or stop.ranks):
        yield (
            f"rules of [plan.stop] about widths and ranks need {MIN_INSTRUCTIONS} instructions, and this plan has "
            f"{many}: they will never end it"
        )


def budget_cuts(session: Session, forecast: Forecast) -> Iterator[str]:
    """Which budget ends a plan of so many battles before its end, and by how much, before anything is asked."""
    campaign, planned = session.campaign, sum(one.design.size for one in session.planned.rounds)
    wanted = _wanted_battles(session)
    if wanted is None or not planned or forecast.progress.settled or forecast.progress.failed:
        return
    found: list[tuple[int, str, str]] = []
    rows = {row.judge: row for row in forecast.judges}
    for account, judges in _accounts(session):
        mine = in_all(rows[name] for name in judges if name in rows)
        takes = Amount(mine.calls, mine.expected, mine.input_tokens + mine.output_tokens)
        for unit, limit in account.limits.limited:
            whole = unit.of_amount(takes) * wanted / planned
            if whole > (free := max(0, limit - account.taken(unit))):
                covered = int(wanted * free / whole)
                found.append(
                    (covered, f"{account.whose} of {unit.text(limit)}", unit.text(unit.round_up(round(whole))))
                )
    if found:
        covered, whose, needed = min(found)
        battles = planned if campaign.plan.is_planned_at_once(campaign.plan.phases[0]) else covered
        yield (
            f"{whose} covers about {min(battles, covered or battles):,} of the {wanted:,} battles of the plan, which "
            f"take about {needed}: raise it, or lower [plan] battles"
        )


def _wanted_battles(session: Session) -> int | None:
    """The battles that a plan asks for, as far as there are so many; None where they are not counted."""
    phases, design = session.campaign.plan.phases, session.planned.design
    numbers = [phase.battles for phase in phases]
    if not session.campaign.pair_judges or design.battles is None or None in numbers:
        return None
    models = len(design.models)
    return min(sum(filter(None, numbers)), models * (models - 1) // 2 * len(session.design_space().instructions))


def within_budgets(session: Session, forecast: Forecast) -> Forecast:
    """The forecast with no more money at most than budgets leave, by judge and in all."""
    left: dict[str, int] = {}
    shared = forecast.whole.most
    for account, judges in _accounts(session):
        if account.limits.money is None:
            continue
        free = max(0, account.limits.money - account.taken(UNITS["money"]))
        left |= {name: min(free, left.get(name, free)) for name in judges}
        if len(judges) == len(session.campaign.judges):
            shared = min(shared, free)
    rows = tuple(replace(row, most=min(row.most, left.get(row.judge, row.most))) for row in forecast.judges)
    whole = in_all(rows)
    return replace(forecast, judges=rows, whole=replace(whole, most=min(whole.most, shared)))


def _accounts(session: Session) -> Iterator[tuple[BudgetAccount, tuple[str, ...]]]:
    """Each account with a limit, and the judges whose calls it pays."""
    charged: dict[int, tuple[BudgetAccount, list[str]]] = {}
    for name, budget in session.funds().budgets.items():
        for account in budget.accounts:
            charged.setdefault(id(account), (account, []))[1].append(name)
    return ((account, tuple(names)) for account, names in charged.values() if account.limits.limited)


@dataclass(frozen=True, slots=True)
class PolicyReason:
    """One matchup or battle of a plan: `instruction` None means all of the plan's.

    `why` and `gain` come from the policy, the gain in the policy's own unit; `gap` is in Elo points by reference or by
    the ratings at that time; `se_a` and `se_b` are the models' standard errors at the previous interim analysis, None
    where there was none; `nano` is the expected cost of all judges' trials of it, None where none is asked.
    """

    round: int
    phase: str
    model_a: str
    model_b: str
    instruction: str | None
    why: str
    gain: float | None
    gap: float | None
    se_a: float | None
    se_b: float | None
    nano: int | None


@dataclass(frozen=True, slots=True)
class DesignLimit:
    """The expected precision of a plan and of the best plan with as many battles, for one purpose.

    `efficiency` is the share of the plan's battles with which the best plan would be as precise. `error` and `least`
    are the plan's and the best plan's root mean square standard error in Elo points. For the purpose "mean" this is
    the error of each rating about the mean of all, for "boundary" that of each difference `across` the boundary. It
    is None for "place", which takes all other ratings as known, unlike the widths.
    """

    purpose: str
    efficiency: float
    error: float | None
    least: float | None
    across: str | None = None


def reasons(session: Session, most: int = _MAX_REASONS) -> list[PolicyReason]:
    """The first matchups or battles chosen, in the order chosen, round by round."""
    return list(islice(_reasons(session), most))


def _reasons(session: Session) -> Iterator[PolicyReason]:
    planned = session.planned
    if not session.campaign.pair_judges:
        return
    space = session.design_space()
    seen = dict(plans.interim_analyses(session.store, planned.id))
    for one in planned.rounds:
        before = [seen[number] for number in sorted(seen) if number < one.number]
        errors = {row.model: row.se for row in before[-1].models} if before else {}
        yield from _of_round(one, space, errors)


def _of_round(one: PlannedRound, space: DesignSpace, errors: dict[str, float | None]) -> Iterator[PolicyReason]:
    design = one.design
    for n, (matchup, instruction) in enumerate(_chosen(design)):
        pair = (matchup.model_a, matchup.model_b)
        on = design.instructions if instruction is None else (instruction,)
        yield PolicyReason(
            one.number,
            one.phase,
            matchup.model_a,
            matchup.model_b,
            instruction,
            design.why[n] if n < len(design.why) else one.policy,
            design.gains[n] if n < len(design.gains) else None,
            matchup.gap,
            errors.get(matchup.model_a),
            errors.get(matchup.model_b),
            _nano(space, pair, on, design.judges),
        )


def _chosen(design: RoundDesign) -> Iterator[tuple[Matchup, str | None]]:
    if design.battles is None:
        yield from ((matchup, None) for matchup in design.matchups)
    else:
        yield from ((design.matchups[m], design.instructions[i]) for m, i in design.battles)


def _nano(space: DesignSpace, pair: tuple[str, str], on: Sequence[str], judges: Sequence[str]) -> int | None:
    battles = space.battles(Pick(*pair, name) for name in on)
    asked = [one for one in space.inputs.costs if not judges or one.judge in judges]
    if not asked:
        return None
    return round(sum(float(one.costs(space.characters(one, battles)).sum()) for one in asked))


def design_limit(session: Session, found: PlanIntervals | str | None) -> DesignLimit | str | None:
    """How close a plan is to the best of its size at the estimated ratings; without a forecast, `found` itself."""
    if not isinstance(found, PlanIntervals):
        return found
    phase = session.campaign.plan.phases[-1]
    models = found.widths.models
    logits = np.where(np.isfinite(found.belief.logits), found.belief.logits, 0.0)
    place = models.index(phase.place) if phase.purpose == "place" and phase.place in models else None
    purpose = phase.purpose if phase.purpose != "place" or place is not None else "mean"
    try:
        best = optimal_design(logits, judges=(JudgeHabit(),), purpose=purpose, top=phase.top, place=place)
        efficiency = best.efficiency(found.counts)
    except InputError as error:
        return f"no limit can be told: {error}"
    if purpose == "place":
        return DesignLimit(purpose, efficiency, None, None)
    if purpose == "mean":
        return _limit(purpose, efficiency, found.widths.criterion(best.aim) / len(models))
    contrasts = float(np.trace(best.aim)) / 2.0
    across = f"the best {phase.top} and the next {min(phase.top, len(models) - phase.top)}"
    return _limit(purpose, efficiency, found.widths.criterion(best.aim) / contrasts, across)


def _limit(purpose: str, efficiency: float, variance: float, across: str | None = None) -> DesignLimit:
    error = float(POINTS_PER_LOGIT * np.sqrt(variance))
    return DesignLimit(purpose, efficiency, error, error * efficiency**0.5, across)


def explanation(rows: Sequence[PolicyReason], limit: DesignLimit | str | None) -> dict[str, Any]:
    """Reasons and limit as plain values; money in nano-dollars."""
    known = {"reason": limit} if isinstance(limit, str) else None if limit is None else asdict(limit)
    return {"chosen": [asdict(one) for one in rows], "limit": known}
