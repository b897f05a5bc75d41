"""What is planned and what it will cost, before anything is asked; for eyes and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from venire.arena.campaigns import BudgetSettings
from venire.arena.records import Shape
from venire.orchestrator.costs.forecast import LongForecast
from venire.orchestrator.designs import Replayed
from venire.orchestrator.planning.respondents import generation
from venire.render.forecast import forecast_json, show_forecast
from venire.render.phases import phases_json, show_phases
from venire.render.status import format_accounts, show_recovered
from venire.reports.wording import counted, few
from venire.session import Session
from venire.status import MIN_INSTRUCTIONS
from venire.storage.read import frames
from venire.storage.store.recovery import recovered
from venire.wording import money, plain

__all__ = ["plan_json", "show_plan"]

_JUDGES_TOLD = 8
_DONE = {
    "error": "too_long without a call",
    "truncate-both": "their completions are cut at the end",
    "middle": "the middle of their completions is cut out",
}


def show_plan(screen: Console, session: Session) -> None:
    """What is planned, what is left of it, and what that will cost."""
    planned, chosen, standing = session.planned, session.planned.design, session.progress
    settings = session.campaign.plan.phases[0]
    screen.print(f"{plain(session.campaign.name)}: {_made_of(session)} = {planned.trials:,} trials")
    possible = len(chosen.models) * (len(chosen.models) - 1) // 2
    wanted = min(settings.matchups or 0, possible) if session.campaign.pair_judges else 0
    if len(chosen.matchups) < wanted:
        screen.print(f"{settings.matchups} matchups were asked for: coverage = {settings.coverage} allows no more")
    if session.rounds is not None:
        show_phases(screen, session.campaign, planned)
    if planned.equal_texts:
        screen.print(f"left out: {planned.equal_texts} battles whose two texts are equal")
    _show_recorded(screen, chosen.recorded)
    _show_unwritten(screen, session)
    if chosen.left_out:
        names = plain(few([one.model for one in chosen.left_out], 8))
        screen.print(f"left out: {len(chosen.left_out)} models with {chosen.left_out[0].reason}: {names}")
    if chosen.matchups and chosen.matchups[0].gap is not None:
        gaps = [matchup.gap for matchup in chosen.matchups if matchup.gap is not None]
        screen.print(f"Elo gaps: {max(gaps):.0f} to {min(gaps):.0f} points")
    for sentence in _too_few(session):
        screen.print(sentence, style="yellow")
    show_recovered(screen, recovered(session.store))
    if standing.settled or standing.failed:
        screen.print(
            f"on record: {standing.settled:,} settled, {standing.failed:,} failed, {standing.missing:,} missing; "
            f"{format_accounts(asdict(session.accounts))}"
        )
    if not standing.missing:
        return
    show_forecast(screen, session.forecast(), session.asked)
    campaign = session.campaign
    budget = [_limits(campaign.budget)]
    for budgets in (campaign.judge_budgets, campaign.model_budgets):
        budget += [f"{plain(name)}: {_limits(limits)}" for name, limits in budgets.items()]
    screen.print(f"budget: {'; '.join(budget)}\n", style="dim")
    _show_long_forecast(screen, session.forecast_long())


def _made_of(session: Session) -> str:
    """What is shown how often, for each kind of protocol that the campaign's judges have."""
    chosen, settings = session.planned.design, session.campaign.plan
    judges = Counter(
        (one.shape, one.repeats or settings.repeats) for one in session.campaign.judges if one.recorded is None
    )
    many, models = f"{len(chosen.instructions):,} instructions", f"{len(chosen.models)} models"
    told = {
        Shape.NONE: f"{many} to answer",
        Shape.PAIR: f"{models}, {_pairs_told(session)} x {1 if settings.orders == 'random' else 2} orders",
        Shape.SINGLE: f"{models} x {many}",
        Shape.LIST: f"lists of {models} x {many}",
    }
    asked = [
        f"{told[shape]} x {number} {session.asked}{'s' if number > 1 else ''}"
        f"{f' x {repeats} repeats' if repeats > 1 else ''}"
        for (shape, repeats), number in judges.items()
    ]
    if chosen.recorded:
        there, who = sum(one.trials for one in chosen.recorded), len(chosen.recorded)
        asked.append(f"{there:,} judgments on record of {who} judge{'s' if who > 1 else ''}, {models}")
    return " + ".join(asked)


def _too_few(session: Session) -> Iterator[str]:
    """What so few instructions cannot tell, said before anything is paid."""
    many, stop = len(session.planned.design.instructions), session.campaign.plan.stop
    if not session.campaign.pair_judges:
        return
    if many == 1:
        yield (
            "a single instruction: no rating or consistency will have an interval, and all of them are of this one "
            f"text; [plan] instructions = {MIN_INSTRUCTIONS} or more gives intervals that hold"
        )
    if many < MIN_INSTRUCTIONS and (stop.half_width is not None or stop.top is not None or stop.ranks):
        yield (
            f"rules of [plan.stop] about widths and ranks need {MIN_INSTRUCTIONS} instructions, and this plan has "
            f"{many}: they will never end it"
        )


def _pairs_told(session: Session) -> str:
    """Matchups on all instructions, or how many battles of which rounds."""
    planned, policy = session.planned, session.campaign.plan.phases[0].policy
    if len(planned.rounds) == 1 and planned.design.battles is None:
        return f"{len(planned.design.matchups)} matchups ({policy}) x {len(planned.design.instructions):,} instructions"
    rounds = f"{len(planned.rounds)} rounds" if len(planned.rounds) > 1 else "the first round"
    battles = counted(sum(one.design.size for one in planned.rounds), "battle")
    return f"{battles} of {rounds} ({planned.rounds[-1].policy})"


def _show_recorded(screen: Console, found: Sequence[Replayed]) -> None:
    """What is not planned of judgments on record, and what the plan misses there, by judge; of many judges in all."""
    if len(found) > _JUDGES_TOLD:
        rows, trials = sum(one.rows for one in found), sum(one.trials for one in found)
        missing, one_order = sum(one.missing for one in found), sum(one.one_order for one in found)
        found = [Replayed(f"{len(found)} judges", rows, trials, missing, one_order)]
    for one in found:
        if facts := "; ".join(_recorded_facts(one)):
            screen.print(f"on record of {plain(one.judge)}: {facts}")


def _show_unwritten(screen: Console, session: Session) -> None:
    """What contestants have yet to write: what one of them has not answered cannot be judged, and is not planned."""
    if session.asked == "contestant" or not session.campaign.contestants:
        return
    name = generation(session.campaign).name
    for one in frames.campaigns(session.store):
        left = frames.progress(session.store, one.id)
        if one.name == name and left.settled < left.planned:
            screen.print(
                f"contestants have {left.planned - left.settled:,} of {left.planned:,} answers to write: instructions "
                "that one of them has not answered are left out; after `venire generate` --amend takes them in"
            )


def _recorded_facts(one: Replayed) -> Iterator[str]:
    if one.rows > one.trials:
        other = one.rows - one.trials
        yield f"{other:,} of {one.rows:,} judgments are of other completions, matchups or repeats: left out"
    if one.missing:
        yield f"{one.missing:,} trials that would be planned are not there: left out"
    if one.one_order:
        yield f"{one.one_order:,} {'battle was' if one.one_order == 1 else 'battles were'} judged in one order only"


def _limits(budget: BudgetSettings) -> str:
    told = [f"{budget.calls:,} calls"] if budget.calls is not None else []
    told += [money(budget.money)] if budget.money is not None else []
    told += [f"{budget.tokens:,} tokens"] if budget.tokens is not None else []
    return " and ".join(told) or "none"


def _show_long_forecast(screen: Console, found: Iterable[LongForecast]) -> None:
    """A line for each judge with trials that will not fit; nothing for the others, nor where no context is known."""
    for one in found:
        if one.too_long:
            screen.print(
                f"too long for {plain(one.judge)}: about {_trials(one.too_long)} will not fit {one.context:,} tokens: "
                f"{_DONE[one.policy]}"
            )


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count:,} trials"


def plan_json(session: Session) -> dict[str, Any]:
    """The plan as plain values."""
    chosen = session.planned.design
    return {
        "campaign": session.campaign.name,
        "models": list(chosen.models),
        "left_out": [asdict(one) for one in chosen.left_out],
        "matchups": [asdict(matchup) for matchup in chosen.matchups],
        "instructions": list(chosen.instructions),
        "trials": session.planned.trials,
        "plan": phases_json(session.campaign, session.planned),
        "equal_texts": session.planned.equal_texts,
        "recorded": [asdict(one) for one in chosen.recorded],
        "warnings": list(_too_few(session)),
        "progress": asdict(session.progress) | {"missing": session.progress.missing},
        "judges": forecast_json(session.forecast()),
        "too_long": [asdict(row) for row in session.forecast_long()],
        "spent": session.accounts.nano,
    }
