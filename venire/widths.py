"""What a plan's money buys: the expected widths of intervals, and how they shrink with money; for eyes and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console

from venire.arena.errors import InputError
from venire.orchestrator.forecast import JudgeForecast
from venire.orchestrator.plan import judges_pairs
from venire.orchestrator.policies import POLICIES
from venire.ratings.beliefs import Belief, belief
from venire.ratings.design_effect import DEFAULT_EFFECT, DEFAULT_EFFECT_ONE_ORDER, DesignEffect, design_effect
from venire.ratings.expected_widths import DEFAULT_SPREAD, ExpectedWidths, expected_widths
from venire.ratings.judgments import Judgments
from venire.ratings.merging import merge_orders
from venire.screen import money, plain, tabulate
from venire.session import Session
from venire.storage import frames
from venire.storage.planned_battles import planned_battles

__all__ = ["PlanWidths", "plan_widths", "show_widths", "widths_json"]

_TIMES = (0.5, 1.0, 2.0, 4.0)
_WANTED = (50.0, 25.0, 15.0)
"""Half widths in Elo points for which the price is told."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanWidths:
    """The widths to expect of a whole plan, what has been judged included.

    `battles` and `trials` are of the plan, `done` those settled or failed; nano-dollars `paid` so far, and of a trial
    `each`. `covered` is the share of the plan that the campaign's budget pays for (1: all).
    """

    widths: ExpectedWidths
    battles: int
    trials: int
    done: int
    paid: int
    each: float
    covered: float
    belief: Belief
    effect: DesignEffect

    def nano(self, times: float) -> int:
        """What a plan of so many times the size costs in all, of which some is paid already."""
        return self.paid + round(self.each * max(0.0, times * self.trials - self.done))


def plan_widths(session: Session) -> PlanWidths | str | None:
    """The widths of a session's plan; a sentence where none can be expected, None of a plan without pairs.

    Verdicts so far are the pilot: ratings, ties, flips and what judgments share come from them.
    """
    if not judges_pairs(session.campaign):
        return None
    planned = planned_battles(session.store, session.planned.id)
    if not len(planned.battles):
        return None
    judged = _judged(session)
    found = belief(planned.models, judged, frames.elos(session.store))
    default = DEFAULT_EFFECT if session.campaign.plan.orders == "both" else DEFAULT_EFFECT_ONE_ORDER
    effect = default
    if judged is not None:
        known = dict(zip(planned.models, found.logits.tolist(), strict=True))
        effect = design_effect(judged, np.array([known.get(name, np.nan) for name in judged.models]), default)
    each = planned.judges * planned.repeats
    try:
        widths = expected_widths(
            planned.models,
            planned.battles,
            found.logits,
            judges=planned.judges,
            repeats=planned.repeats,
            effect=effect,
            grows=_more_instructions(session),
            weight=planned.judgments / each,
        )
    except InputError as error:
        return f"no widths can be expected: {error}"
    rows, standing, paid = session.forecast(), session.progress, session.accounts.nano
    left = sum(row.expected for row in rows)
    done = standing.planned - standing.missing
    price = left / standing.missing if standing.missing else paid / max(1, done)
    covered = _covered(session, rows)
    return PlanWidths(widths, len(planned.battles), standing.planned, done, paid, price, covered, found, effect)


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


def _covered(session: Session, rows: Sequence[JudgeForecast]) -> float:
    """The share of a plan that the campaign's own limits pay for, as far as is expected; those of judges aside."""
    limits, paid, standing = session.campaign.budget, session.accounts, session.progress
    asked = (
        (limits.money, paid.nano, sum(row.expected for row in rows)),
        (limits.calls, paid.calls, sum(row.calls for row in rows)),
        (
            limits.tokens,
            paid.input_tokens + paid.output_tokens,
            sum(row.input_tokens + row.output_tokens for row in rows),
        ),
    )
    left = [max(0.0, limit - used) / needed for limit, used, needed in asked if limit is not None and needed]
    return 1.0 - max(0.0, 1.0 - min(left, default=1.0)) * standing.missing / max(1, standing.planned)


def show_widths(screen: Console, found: PlanWidths | str | None) -> None:
    """A table of money and widths, what other widths would cost, and what this rests on."""
    if found is None:
        return
    if isinstance(found, str):
        screen.print(plain(found))
        return
    half = found.widths.half()
    screen.print(
        f"expected half width of the {found.widths.level:.0%} intervals, in Elo points on the judges' own scale: "
        f"{np.median(half):.0f} in the middle of {len(half)} models, {half.min():.0f} to {half.max():.0f}"
    )
    head = ("plan", "battles", *(("money",) if found.nano(1.0) else ()), "half width")
    tabulate(screen, head, [_line(found, name, times) for name, times in _sizes(found)])
    screen.print(_priced(found))
    for sentence in _rests_on(found):
        screen.print(sentence, style="dim")
    screen.print()


def _sizes(found: PlanWidths) -> list[tuple[str, float]]:
    """Names and sizes of plans, none smaller than what is done."""
    named = [("this plan" if times == 1.0 else f"{times:g} x", times) for times in _TIMES]
    if 0.0 < found.covered < 1.0:
        named.append(("as the budget covers", found.covered))
    done = found.done / max(1, found.trials)
    return sorted([one for one in named if one[1] >= done], key=lambda one: one[1])


def _line(found: PlanWidths, name: str, times: float) -> tuple[str, ...]:
    price = (money(found.nano(times)),) if found.nano(1.0) else ()
    return (name, f"{found.battles * times:,.0f}", *price, f"{_middle(found, times):.0f}")


def _middle(found: PlanWidths, times: float) -> float:
    return float(np.median(found.widths.half(times)))


def _priced(found: PlanWidths) -> str:
    """What each of some widths takes."""
    told = []
    for half in _WANTED:
        times = found.widths.needed(half)
        if times is None:
            told.append(f"{half:.0f} cannot be had on these {found.widths.instructions:,} instructions")
        else:
            price = money(found.nano(times)) if found.nano(1.0) else f"{found.battles * times:,.0f} battles"
            told.append(f"{half:.0f} takes {price}")
    more = "more instructions" if found.widths.grows else "more battles on the same instructions"
    return f"half widths in the middle: {'; '.join(told)} (a larger plan: {more})"


def _rests_on(found: PlanWidths) -> list[str]:
    seen, effect = found.belief, found.effect
    if seen.source == "verdicts":
        ratings = f"ratings by {seen.judgments:,} judgments so far"
    elif seen.source == "reference":
        whose = f"fitted to {seen.judgments:,} judgments" if seen.judgments else "as usual judges see them"
        ratings = f"reference ratings x {seen.slope:.1f}, {whose}"
    else:
        ratings = f"nothing is known of the models: ratings with a spread of {DEFAULT_SPREAD:g} logit"
    told = [
        f"believed: {ratings}; judgments scatter {effect.scatter:.2f} of p (1 - p), correlations: judges "
        f"{effect.judges:.2f}, completions {effect.completions:.2f}, repeats {effect.repeats:.2f}"
    ]
    if not effect.judgments:
        return [*told, "the scatter and correlations are usual ones: widths may be off by a third; --pilot 40 measures"]
    assert effect.ties is not None
    assert effect.flips is not None
    measured = f"measured on {effect.judgments:,} judgments: {effect.ties:.0%} ties, {effect.flips:.0%} flips"
    return [*told, measured]


def widths_json(found: PlanWidths | str | None) -> dict[str, Any] | None:
    """The same as plain values: half widths in Elo points, money in nano-dollars."""
    if found is None:
        return None
    if isinstance(found, str):
        return {"reason": found}
    half, floor = found.widths.half(), found.widths.floor()
    return {
        "level": found.widths.level,
        "median": _middle(found, 1.0),
        "models": {
            name: {"half_width": wide, "by_the_model_alone": least}
            for name, wide, least in zip(found.widths.models, half.tolist(), floor.tolist(), strict=True)
        },
        "curve": [
            {
                "plan": name,
                "times": times,
                "battles": round(found.battles * times),
                "nano": found.nano(times),
                "half_width": _middle(found, times),
            }
            for name, times in _sizes(found)
        ],
        "needed": [
            {"half_width": half, "nano": None if times is None else found.nano(times), "times": times}
            for half, times in ((half, found.widths.needed(half)) for half in _WANTED)
        ],
        "grows_by": "instructions" if found.widths.grows else "battles",
        "believed": {"source": found.belief.source, "slope": found.belief.slope, "judgments": found.belief.judgments},
        "design_effect": asdict(found.effect),
    }
