"""What a plan's money buys: the expected widths of intervals, and how they shrink with money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.campaigns import StopSettings
from venire.arena.errors import InputError
from venire.arena.planning import Estimates
from venire.forecasts.remaining_battles import Ahead, ahead
from venire.orchestrator.costs.forecast import JudgeForecast
from venire.orchestrator.policies import POLICIES
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.design.interval_forecast import (
    DEFAULT_EFFECT,
    DEFAULT_EFFECT_ONE_ORDER,
    DesignEffect,
    IntervalForecast,
    design_effect,
    forecast_intervals,
)
from venire.ratings.design.priors import PriorRatings, prior_ratings
from venire.session import Session
from venire.storage.plans.trial_states import PlannedBattles, planned_battles
from venire.storage.read import frames

__all__ = ["PlanWidths", "plan_widths"]


@dataclass(frozen=True, slots=True, eq=False)
class PlanWidths:
    """The widths to expect of a whole plan, what has been judged included.

    `battles` and `trials` are of the plan, `done` those settled or failed; nano-dollars `paid` so far, and of a trial
    `each`. `covered` is the share of the plan that the campaign's budget pays for (1: all).
    """

    widths: IntervalForecast
    battles: int
    trials: int
    done: int
    paid: int
    each: float
    covered: float
    belief: PriorRatings
    effect: DesignEffect
    counts: NDArray[np.float64]
    """How often each pair (models, models) of `widths.models` is put to a judge, in one place of the two."""
    ahead: Ahead
    """What of it is still to be chosen."""
    largest: float
    """How many times as large it can be made: without end where instructions can be added."""

    def needed(self, half: float) -> float | None:
        """How many times as large it must be for a half width in the middle of so many points; None: it cannot be."""
        times = self.widths.needed(half)
        return None if times is None or times > self.largest else times

    def nano(self, times: float) -> int:
        """What a plan of so many times the size costs in all, of which some is paid already."""
        return self.paid + round(self.each * max(0.0, times * self.trials - self.done))


def plan_widths(session: Session) -> PlanWidths | str | None:
    """The widths of a session's plan; a sentence where none can be expected, None of a plan without pairs.

    Verdicts so far are the pilot: ratings, ties, flips and what judgments share come from them.
    """
    if not session.campaign.pair_judges:
        return None
    planned = planned_battles(session.store, session.planned.id)
    if not len(planned.battles):
        return None
    judged, rows, standing = _judged(session), session.forecast(), session.progress
    elo = frames.elos(session.store)
    default = DEFAULT_EFFECT if session.campaign.plan.orders == "both" else DEFAULT_EFFECT_ONE_ORDER
    done = standing.planned - standing.missing
    a_trial = _each(session, rows)
    a_battle = standing.planned / len(planned.battles)
    so_far = _estimates(session, prior_ratings(planned.models, judged, elo))
    more = ahead(session, so_far, _affordable(session, a_trial, done, standing.planned, a_battle))
    models, battles, often = _whole(planned, more, session.planned.design.models)
    found, effect = prior_ratings(models, judged, elo), default
    if judged is not None:
        known = dict(zip(models, found.logits.tolist(), strict=True))
        effect = design_effect(judged, np.array([known.get(name, np.nan) for name in judged.models]), default)
    try:
        widths = forecast_intervals(
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
    trials = standing.planned + round(a_battle * float(more.weight.sum()))
    counts = np.zeros((len(models),) * 2)
    np.add.at(counts, (battles[:, 0], battles[:, 1]), often)
    paid = session.accounts.nano
    covered = _covered(session, a_trial, done, trials)
    many = round(float(often.sum()))
    size = len(models)
    largest = np.inf if widths.grows else size * (size - 1) / 2 * len(session.planned.design.instructions) / many
    return PlanWidths(
        widths, many, trials, done, paid, a_trial.nano, covered, found, effect, counts, more, float(largest)
    )


@dataclass(frozen=True, slots=True)
class _Trial:
    """What a trial is expected to take."""

    nano: float
    calls: float
    tokens: float


def _each(session: Session, rows: Sequence[JudgeForecast]) -> _Trial:
    """By the forecast of what is left; where nothing is, by what was paid, for whichever plan that was."""
    left = sum(row.trials for row in rows)
    if left:
        tokens = sum(row.input_tokens + row.output_tokens for row in rows)
        return _Trial(sum(row.expected for row in rows) / left, sum(row.calls for row in rows) / left, tokens / left)
    ((trials,),) = session.store.read("trials_paid", campaign=session.planned.id)
    paid, many = session.accounts, max(1, trials)
    return _Trial(paid.nano / many, paid.calls / many, (paid.input_tokens + paid.output_tokens) / many)


def _payable(session: Session, each: _Trial) -> float:
    """How many trials more the campaign's own limits cover, as far as is expected; those of judges aside."""
    limits, paid = session.campaign.budget, session.accounts
    asked = (
        (limits.money, paid.nano, each.nano),
        (limits.calls, paid.calls, each.calls),
        (limits.tokens, paid.input_tokens + paid.output_tokens, each.tokens),
    )
    left = [max(0.0, limit - used) / needed for limit, used, needed in asked if limit is not None and needed]
    return min(left, default=np.inf)


def _affordable(session: Session, each: _Trial, done: int, planned: int, a_battle: float) -> float | None:
    """Battles beyond those that are planned which the budget covers; None: no end."""
    more = _payable(session, each) - (planned - done)
    return None if more == np.inf else max(0.0, more / a_battle)


def _covered(session: Session, each: _Trial, done: int, trials: int) -> float:
    """The share of a plan that the budget covers, what is done included."""
    return min(1.0, (done + _payable(session, each)) / max(1, trials))


def _estimates(session: Session, found: PriorRatings) -> Estimates | None:
    """What adaptive policies are told of verdicts: nothing, where there are none or a reference says more."""
    if found.source != "verdicts":
        return None
    from venire.feedback import RatingFeedback

    models = session.planned.design.models
    return RatingFeedback(models, StopSettings()).estimate(frames.battles(session.store, session.planned.id))


def _whole(
    planned: PlannedBattles, more: Ahead, names: Sequence[str]
) -> tuple[tuple[str, ...], NDArray[np.int32], NDArray[np.float64]]:
    """The models of all battles, battles planned and to come by codes of these, and how often a judge is put to each.

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


def _judged(session: Session) -> Judgments | None:
    """The judgments so far, of which both orders were read where both are asked; None without any."""
    verdicts = frames.battles(session.store, session.planned.id)
    if not len(verdicts.label):
        return None
    data = merge_orders(verdicts)
    if session.campaign.plan.orders == "both" and data.merged:
        data = data.select(data.readable == 2)
    return data if len(data) else None


def _more_instructions(session: Session) -> bool:
    """Whether a larger plan has more instructions: one that puts its matchups to all of them has."""
    return all(one.policy not in POLICIES or POLICIES[one.policy].crossed for one in session.campaign.plan.phases)
