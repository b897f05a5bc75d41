"""Interval forecast: how wide a plan's intervals will be, how they shrink with money, and what rounds will choose.

Battles of future rounds are chosen as the policies would choose them by the current estimates. An adaptive policy,
which uses verdicts between two rounds, chooses the rest at once, as if those verdicts added no information. Each pick
accounts for those before it, so the pairs and instructions are close to those that the rounds will choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import PhaseSettings, StopSettings
from venire.arena.errors import InputError
from venire.arena.planning import Estimates
from venire.arena.records import RECORDED
from venire.orchestrator.costs.forecast import Forecast
from venire.orchestrator.planning.design_space import DesignSpace, policy_state
from venire.orchestrator.planning.first_round import pairs_of
from venire.orchestrator.policies import POLICIES
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.design.interval_forecast import (
    DEFAULT_EFFECT,
    DEFAULT_EFFECT_ONE_ORDER,
    DesignEffect,
    ForecastRange,
    IntervalForecast,
    design_effect,
    forecast_range,
)
from venire.ratings.design.priors import PriorRatings, prior_ratings
from venire.reports.wording import estimand_text
from venire.session import Session
from venire.storage.plans.trial_states import PlannedBattles, planned_battles
from venire.storage.read import frames
from venire.storage.read.frames import CampaignSpending

_TIMES = (0.5, 1.0, 2.0, 4.0)
WANTED_HALF_WIDTHS = (50.0, 25.0, 15.0)
"""Half-widths in Elo points for which the price is reported."""
_MAX_CHOSEN = 1_000
"""Maximum number of battles of a phase that are really chosen; in a larger phase each represents several."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanIntervals:
    """The expected interval widths of a whole plan, judged battles included.

    `battles` and `trials` are totals of the plan, `done` counts settled or failed trials; `paid` so far and the cost
    of `each` trial are in nano-dollars. `covered` is the share of the plan that the campaign's budget covers (1: all).
    """

    within: ForecastRange
    battles: int
    trials: int
    done: int
    paid: int
    each: float
    covered: float
    belief: PriorRatings
    effect: DesignEffect
    counts: NDArray[np.float64]
    """How often a judge is asked about each pair (models, models) of `widths.models`; one of the two cells has it."""
    remaining: RemainingBattles
    """The battles of the plan that are still to be chosen."""
    judges: int
    largest: float
    """The largest possible multiple of the plan: infinite where instructions can be added."""

    @property
    def estimand(self) -> str:
        """What the intervals will be about: by instruction, however many judges the plan asks."""
        return estimand_text("instructions", "judges", self.judges)

    @property
    def widths(self) -> IntervalForecast:
        """The expected widths, by model."""
        return self.within.expected

    def needed(self, half: float) -> float | None:
        """The multiple of the plan that a median half-width of `half` points needs; None: impossible."""
        times = self.widths.size_needed(half)
        return None if times is None or times > self.largest else times

    def nano(self, times: float) -> int:
        """Total cost of a plan of `times` the size, including the amount already paid."""
        return self.paid + round(self.each * max(0.0, times * self.trials - self.done))

    def sizes(self) -> list[tuple[str, float]]:
        """Names and sizes of plans, none smaller than the finished part or larger than possible."""
        named = [("this plan" if times == 1.0 else f"{times:g} x", times) for times in _TIMES]
        if 0.0 < self.covered < 1.0:
            named.append(("as the budget covers", self.covered))
        if self.largest < _TIMES[-1]:
            named.append(("every battle there is", self.largest))
        done = self.done / max(1, self.trials)
        return sorted([one for one in named if done <= one[1] <= self.largest], key=lambda one: one[1])

    def to_json(self) -> dict[str, Any]:
        """The forecast as plain values: half-widths in Elo points, None if infinite; money in nano-dollars."""
        half, floor = self.widths.half_width(), self.widths.model_half_width()
        return {
            "level": self.widths.level,
            "estimand": self.estimand,
            "median": finite_or_none(self.within.median()),
            **dict(zip(("low", "high"), map(finite_or_none, self.within.band()), strict=True)),
            "models": {
                name: {"half_width": finite_or_none(wide), "by_the_model_alone": finite_or_none(least)}
                for name, wide, least in zip(self.widths.models, half.tolist(), floor.tolist(), strict=True)
            },
            "curve": [
                {
                    "plan": name,
                    "times": times,
                    "battles": round(self.battles * times),
                    "nano": self.nano(times),
                    "half_width": finite_or_none(self.within.median(times)),
                    **dict(zip(("low", "high"), map(finite_or_none, self.within.band(times)), strict=True)),
                }
                for name, times in self.sizes()
            ],
            "needed": [
                {"half_width": half, "nano": None if times is None else self.nano(times), "times": times}
                for half, times in ((half, self.needed(half)) for half in WANTED_HALF_WIDTHS)
            ],
            "ahead": {
                "battles": round(float(self.remaining.weight.sum())),
                "until": self.remaining.until,
                "open": self.remaining.open,
            },
            "grows_by": "instructions" if self.widths.grows else "battles",
            "believed": {"source": self.belief.source, "slope": self.belief.slope, "judgments": self.belief.judgments},
            "design_effect": asdict(self.effect),
        }


def plan_intervals(session: Session, forecast: Forecast) -> PlanIntervals | str | None:
    """The widths of a session's plan; a sentence where they cannot be estimated, None for a plan without pairs.

    Verdicts so far serve as the pilot: they provide ratings, ties, flips and the noise that judgments share.
    """
    if not session.campaign.pair_judges:
        return None
    planned = planned_battles(session.store, session.planned.id)
    if not len(planned.battles):
        return None
    verdicts, elo = frames.battles(session.store, session.planned.id), frames.elos(session.store)
    judged, progress = _judged(session, verdicts), forecast.progress
    default = DEFAULT_EFFECT if session.campaign.plan.orders == "both" else DEFAULT_EFFECT_ONE_ORDER
    done = progress.planned - progress.missing
    each = _each(session, forecast)
    payable = _payable(session.campaign.budget, forecast.spending, each)
    a_battle = progress.planned / len(planned.battles)
    so_far = _estimates(session, verdicts, prior_ratings(planned.models, judged, elo))
    affordable = None if payable == np.inf else max(0.0, (payable - progress.missing) / a_battle)
    more = remaining_battles(session, so_far, affordable)
    models, battles, often = _whole(planned, more, session.planned.design.models)
    found, effect = prior_ratings(models, judged, elo), default
    if judged is not None:
        known = dict(zip(models, found.logits.tolist(), strict=True))
        effect = design_effect(judged, np.array([known.get(name, np.nan) for name in judged.models]), default)
    try:
        within = forecast_range(
            models,
            battles,
            found.logits,
            judges=planned.judges,
            repeats=planned.repeats,
            effect=effect,
            grows=_more_instructions(session),
            weight=often,
        )
    except InputError as error:
        return f"no widths can be expected: {error}"
    trials = progress.planned + round(a_battle * float(more.weight.sum()))
    counts = np.zeros((len(models),) * 2)
    np.add.at(counts, (battles[:, 0], battles[:, 1]), often)
    covered = min(1.0, (done + payable) / max(1, trials))
    first = session.campaign.plan.phases[0]
    if covered < 1.0 and not done and session.campaign.plan.is_planned_at_once(first):
        covered = min(covered, progress.planned / max(1, trials))  # these the budget was planned with
    many = round(float(often.sum()))
    there = pairs_of(models) * len(session.planned.design.instructions)
    largest = np.inf if within.expected.grows else there / many
    return PlanIntervals(
        within,
        many,
        trials,
        done,
        forecast.spending.nano,
        each.nano,
        covered,
        found,
        effect,
        counts,
        more,
        planned.judges,
        float(largest),
    )


def intervals_document(found: PlanIntervals | str | None) -> dict[str, Any] | None:
    """A forecast of `plan_intervals` as plain values; where there is none, the reason."""
    return {"reason": found} if isinstance(found, str) else None if found is None else found.to_json()


@dataclass(frozen=True, slots=True)
class _Trial:
    """The expected cost, calls and tokens of a trial."""

    nano: float
    calls: float
    tokens: float


def _each(session: Session, forecast: Forecast) -> _Trial:
    """From the forecast of the remaining trials; if none remain, from all trials paid so far, under any plan."""
    rest, paid, many = forecast.whole, forecast.spending, forecast.whole.trials
    if many:
        return _Trial(rest.expected / many, rest.calls / many, (rest.input_tokens + rest.output_tokens) / many)
    ((trials,),) = session.store.read("trials_paid", campaign=session.planned.id)
    many = max(1, trials)
    return _Trial(paid.nano / many, paid.calls / many, (paid.input_tokens + paid.output_tokens) / many)


def _payable(limits: BudgetSettings, paid: CampaignSpending, each: _Trial) -> float:
    """The expected number of further trials within the campaign's own limits; judges' limits are ignored."""
    asked = (
        (limits.money, paid.nano, each.nano),
        (limits.calls, paid.calls, each.calls),
        (limits.tokens, paid.input_tokens + paid.output_tokens, each.tokens),
    )
    left = [max(0.0, limit - used) / needed for limit, used, needed in asked if limit is not None and needed]
    return min(left, default=np.inf)


def _estimates(session: Session, verdicts: Battles, found: PriorRatings) -> Estimates | None:
    """The estimates from verdicts for adaptive policies; None without verdicts, or where a reference is used."""
    if found.source != "verdicts":
        return None
    from venire.feedback import RatingFeedback

    return RatingFeedback(session.planned.design.models, StopSettings()).estimate(verdicts)


def _whole(
    planned: PlannedBattles, more: RemainingBattles, names: Sequence[str]
) -> tuple[tuple[str, ...], NDArray[np.int32], NDArray[np.float64]]:
    """All models, planned and future battles by codes of these models, and how often a judge is asked each battle.

    The first rounds may show fewer models than the plan has, which are `names`.
    """
    often = planned.judgments / (planned.judges * planned.repeats)
    shown = np.unique(more.battles[:, :2]).tolist()
    models = tuple(sorted({*planned.models, *(names[code] for code in shown)}))
    place = {name: code for code, name in enumerate(models)}
    before, battles = planned.battles.copy(), more.battles.copy()
    before[:, :2] = np.array([place[name] for name in planned.models], dtype=np.int32)[before[:, :2]]
    battles[:, :2] = np.array([place.get(name, -1) for name in names], dtype=np.int32)[battles[:, :2]]
    return models, np.concatenate([before, battles]), np.concatenate([often, more.weight])


def _judged(session: Session, verdicts: Battles) -> Judgments | None:
    """The judgments so far, only those with both orders readable if both are asked; None without any."""
    if not len(verdicts.label):
        return None
    data = merge_orders(verdicts)
    if session.campaign.plan.orders == "both" and data.merged:
        data = data.select(data.readable == 2)
    return data if len(data) else None


def _more_instructions(session: Session) -> bool:
    """Whether a larger plan has more instructions: true if it asks its matchups on every instruction."""
    return all(one.policy not in POLICIES or POLICIES[one.policy].crossed for one in session.campaign.plan.phases)


def finite_or_none(points: float) -> float | None:
    """None for an infinite width, which JSON cannot represent."""
    return points if np.isfinite(points) else None


@dataclass(frozen=True, slots=True, eq=False)
class RemainingBattles:
    """Battles (battles, 3) that are still to be chosen: two models' names by `models`, and the instruction's number.

    `weight` (battles,) is the number of battles that each represents. `until` names the limit that sets their number;
    None: there are none. `open` is then true if the number is unknown.
    """

    battles: NDArray[np.int32]
    weight: NDArray[np.float64]
    until: str | None = None
    open: bool = False


def remaining_battles(session: Session, estimates: Estimates | None, affordable: float | None) -> RemainingBattles:
    """The battles that a session's plan has still to choose; its budget covers `affordable` more, None: unlimited.

    `estimates` are the ratings from verdicts so far, None without any.
    """
    rounds = session.rounds
    if rounds is None or (rounds.stopped is not None and not rounds.short):
        return RemainingBattles(_none(), np.zeros(0))
    planned, space = session.planned, rounds.space
    models, names = space.models, space.instructions
    asked, many = space.asked(one.design for one in planned.rounds), sum(one.design.size for one in planned.rounds)
    found: list[NDArray[np.int32]] = []
    weights: list[NDArray[np.float64]] = []
    until, is_open = None, False
    elo = frames.elos(session.store)
    for phase in session.campaign.plan.phases:
        done = sum(one.design.size for one in planned.rounds if one.phase == phase.name)
        number, reason = _number(session, phase, done, many, affordable)
        if number is None:
            is_open = True
            break
        if number <= 0:
            continue
        number = min(number, pairs_of(models) * len(names) - len(space.barred) - len(asked))
        chosen = _chosen(session, space, phase, min(number, _MAX_CHOSEN), elo, asked, estimates)
        if not len(chosen):
            continue
        number = number if len(chosen) == _MAX_CHOSEN else len(chosen)
        found.append(chosen)
        weights.append(np.full(len(chosen), number / len(chosen)))
        asked, many, until = np.concatenate([asked, chosen]), many + number, reason
    if not found:
        return RemainingBattles(_none(), np.zeros(0), None, is_open)
    battles = np.concatenate(found)
    numbers = np.array([space.inputs.answers.instructions[name][0] for name in names], dtype=np.int32)
    battles[:, 2] = numbers[battles[:, 2]]
    return RemainingBattles(battles, np.concatenate(weights), until, is_open)


def _none() -> NDArray[np.int32]:
    return np.zeros((0, 3), dtype=np.int32)


def _number(
    session: Session, phase: PhaseSettings, done: int, many: int, affordable: float | None
) -> tuple[int | None, str]:
    """Number of battles that a phase has left to choose, and the limit that sets it; None if unknown."""
    if phase.policy == RECORDED or (phase.crosses and done):
        return 0, ""
    if phase.crosses:
        return _MAX_CHOSEN, "the plan"
    rule = session.campaign.plan.stop.battles
    ends = [
        (None if phase.battles is None else phase.battles - done, "the plan"),
        (None if rule is None else rule - many, "[plan.stop] battles"),
        (None if affordable is None else int(affordable), "the budget") if phase.battles is None else (None, ""),
    ]
    known = [(number, why) for number, why in ends if number is not None]
    return min(known) if known else (None, "")


def _chosen(
    session: Session,
    space: DesignSpace,
    phase: PhaseSettings,
    number: int,
    elo: Mapping[str, float],
    asked: NDArray[np.int32],
    estimates: Estimates | None,
) -> NDArray[np.int32]:
    """Battles (battles, 3) of a phase by indices into the space; empty if its policy cannot choose yet."""
    policy, rng = POLICIES[phase.policy], np.random.default_rng([session.campaign.seed, len(asked)])
    state = policy_state(space, elo=elo, asked=asked, estimates=estimates if policy.adaptive else None)
    wanted = (phase.matchups or len(space.models) ** 2) if policy.crossed else number
    try:
        picks = policy.choose(state, phase, wanted, rng)
    except InputError:  # it needs ratings from the verdicts of an earlier phase
        return _none()
    return space.battles(picks)
