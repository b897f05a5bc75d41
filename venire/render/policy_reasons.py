"""Why the first matchups or battles of a plan were chosen, and how near the plan comes to the best one could do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np
from rich.console import Console

from venire.arena.errors import InputError
from venire.arena.planning import JudgeHabit
from venire.arena.records import Matchup
from venire.arena.scale import POINTS_PER_LOGIT
from venire.forecasts.intervals import PlanWidths
from venire.orchestrator.designs import PlannedRound, RoundDesign
from venire.orchestrator.planning.plan_state import Field
from venire.ratings.design.optimal_design import optimal_design
from venire.render.screen import tabulate
from venire.session import Session
from venire.storage.plans import interim, plans
from venire.wording import money, plain

__all__ = ["Limit", "Reason", "explain_json", "limit_of", "reasons", "show_reasons"]

_FIRST = 20


@dataclass(frozen=True, slots=True)
class Reason:
    """One matchup or battle of a plan: `instruction` None is all of the plan's.

    `why` and `gain` are what the policy said, the gain in the policy's own unit; `gap` is in Elo points by reference
    or by the ratings at the time; `se_a` and `se_b` are the models' standard errors at the look before, None where
    there was none; `nano` is what all judges' trials of it are expected to cost, None where none is asked.
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
class Limit:
    """What a plan is expected to reach and what the best plan of as many battles could, for one purpose.

    `efficiency` is the share of the plan's battles with which the best would do as well. `error` and `least` are the
    plan's and the best plan's root mean square standard error in Elo points: of each rating about the mean of all, of
    the purpose "mean"; of each difference `across` the boundary, of "boundary"; None of "place", which takes all other
    ratings for known, as widths do not.
    """

    purpose: str
    efficiency: float
    error: float | None
    least: float | None
    across: str | None = None


def reasons(session: Session, most: int = _FIRST) -> list[Reason]:
    """The first matchups or battles chosen, in the order chosen, round by round."""
    return list(islice(_reasons(session), most))


def _reasons(session: Session) -> Iterator[Reason]:
    planned = session.planned
    models, instructions = planned.design.models, planned.design.instructions
    if not session.campaign.pair_judges:
        return
    answers = plans.catalogue(session.store, models)
    field = Field(session.store, session.campaign, models, instructions, answers, {}, session.prices)
    seen = dict(interim.read(session.store, planned.id))
    for one in planned.rounds:
        before = [seen[number] for number in sorted(seen) if number < one.number]
        errors = {told.model: told.se for told in before[-1].models} if before else {}
        yield from _of_round(one, field, errors)


def _of_round(one: PlannedRound, field: Field, errors: dict[str, float | None]) -> Iterator[Reason]:
    design = one.design
    for n, (matchup, instruction) in enumerate(_chosen(design)):
        pair = (matchup.model_a, matchup.model_b)
        on = design.instructions if instruction is None else (instruction,)
        yield Reason(
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
            _nano(field, pair, on, design.judges),
        )


def _chosen(design: RoundDesign) -> Iterator[tuple[Matchup, str | None]]:
    if design.battles is None:
        yield from ((matchup, None) for matchup in design.matchups)
    else:
        yield from ((design.matchups[m], design.instructions[i]) for m, i in design.battles)


def _nano(field: Field, pair: tuple[str, str], on: Sequence[str], judges: Sequence[str]) -> int | None:
    models, instructions = field.places
    a, b = (models[name] for name in pair)
    battles = np.array([(a, b, instructions[name]) for name in on], dtype=np.int32).reshape(-1, 3)
    asked = [one for one in field.costs if not judges or one.judge in judges]
    if not asked:
        return None
    return round(sum(float(one.costs(field.characters(one, battles)).sum()) for one in asked))


def limit_of(session: Session, found: PlanWidths | str | None) -> Limit | str | None:
    """How near a plan comes to the best of its size at the ratings believed; a sentence or None as `plan_widths`."""
    if not isinstance(found, PlanWidths):
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
        return Limit(purpose, efficiency, None, None)
    if purpose == "mean":
        return _limit(purpose, efficiency, found.widths.wanted(best.aim) / len(models))
    contrasts = float(np.trace(best.aim)) / 2.0
    across = f"the best {phase.top} and the next {min(phase.top, len(models) - phase.top)}"
    return _limit(purpose, efficiency, found.widths.wanted(best.aim) / contrasts, across)


def _limit(purpose: str, efficiency: float, variance: float, across: str | None = None) -> Limit:
    error = float(POINTS_PER_LOGIT * np.sqrt(variance))
    return Limit(purpose, efficiency, error, error * efficiency**0.5, across)


def show_reasons(screen: Console, rows: Sequence[Reason], limit: Limit | str | None) -> None:
    """A table of the first ones chosen, and the limit beside it."""
    if not rows:
        screen.print("nothing was chosen: no judge of this plan is shown pairs")
        return
    crossed = all(one.instruction is None for one in rows)
    optional = {
        "instruction": not crossed,
        "gain": any(one.gain is not None for one in rows),
        "gap": any(one.gap is not None for one in rows),
        "se": any(one.se_a is not None for one in rows),
        "price": any(one.nano for one in rows),
    }
    head = ("matchup", "round", "phase", "why", *(name for name, there in optional.items() if there))
    cells = []
    for one in rows:
        told = {
            "instruction": plain(one.instruction or "all"),
            "gain": "" if one.gain is None else f"{one.gain:.4g}",
            "gap": "" if one.gap is None else f"{one.gap:.0f}",
            "se": " / ".join("?" if se is None else f"{se:.0f}" for se in (one.se_a, one.se_b)),
            "price": "" if one.nano is None else money(one.nano),
        }
        place = f"{one.round - rows[0].round + 1}"  # as everywhere a round is shown, also of a plan that was made anew
        first = (f"{plain(one.model_a)} - {plain(one.model_b)}", place, plain(one.phase), plain(one.why))
        cells.append((*first, *(told[name] for name, there in optional.items() if there)))
    tabulate(screen, head, cells, title=f"the first {len(rows)} {'matchups' if crossed else 'battles'} chosen")
    for sentence in _limit_told(limit):
        screen.print(sentence)
    screen.print()


def _limit_told(limit: Limit | str | None) -> Iterator[str]:
    if isinstance(limit, str):
        yield plain(limit)
    elif limit is not None:
        yield (
            f"for the purpose {limit.purpose!r} the best design of pairs would do with {limit.efficiency:.0%} of these "
            "battles, at the ratings believed"
        )
        of = "about the mean" if limit.across is None else f"of the differences between {limit.across}"
        if limit.error is not None:
            yield (
                f"expected standard error {of} (root mean square): {limit.error:.1f} Elo points; "
                f"the best design's limit {limit.least:.1f}"
            )
        else:
            yield "no expected error beside it: it takes the other models' ratings for known, as no width above does"


def explain_json(rows: Sequence[Reason], limit: Limit | str | None) -> dict[str, Any]:
    """The same as plain values; money in nano-dollars."""
    told = {"reason": limit} if isinstance(limit, str) else None if limit is None else asdict(limit)
    return {"chosen": [asdict(one) for one in rows], "limit": told}
