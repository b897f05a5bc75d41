"""Terminal output of `venire judge`: the plan in six lines, and at the end who leads, what to doubt and what to do."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.arena.wording import few, money, plain
from venire.forecasts.intervals import PlanIntervals
from venire.forecasts.plan import plan_warnings
from venire.orchestrator.costs.forecast import Forecast
from venire.orchestrator.planning.first_round import pairs_of
from venire.render.screen import FAILED, console
from venire.render.sections import show
from venire.reports.audit.cases import audited
from venire.reports.board.source import VerdictSource
from venire.reports.documents.report import headline
from venire.reports.wording import counted
from venire.session import Session
from venire.wording import duration

_NAMES = 8
_DOUBTS = 3
_WIDEST = 400
"""Half-widths beyond this many points say nothing that anybody could use."""


def show_short_plan(
    screen: Console, session: Session, forecast: Forecast, intervals: PlanIntervals | str | None
) -> None:
    """Who is compared on what by whom, how often, for how much, how long, and how sure the result will be."""
    campaign, design = session.campaign, session.planned.design
    judges = [one.name for one in campaign.judges]
    screen.print(
        f"models:   {len(design.models)} ({plain(few(design.models, _NAMES))}), on "
        f"{counted(len(design.instructions), 'prompt')}"
    )
    screen.print(f"judges:   {plain(few(judges, _NAMES))}, shown each battle in both orders")
    there = _Askable.of(session)
    planned, trials, expected = _expected(session, forecast, intervals)
    done = forecast.progress.planned - forecast.progress.missing
    already = f"; {done / max(1, trials):.0%} of them are judged" if done else ""
    screen.print(f"battles:  {planned:,}{there.note(planned)}{already}")
    calls = round((trials - done) * forecast.whole.calls / max(1, forecast.whole.trials))
    screen.print(f"calls:    {_calls(campaign, planned, calls)}")
    screen.print(f"money:    {_money(session, forecast, expected)}{_time(forecast, trials - done)}")
    if isinstance(intervals, PlanIntervals):
        screen.print(f"expected intervals: {_sure(intervals, planned, len(design.models))}", soft_wrap=True)
    for sentence in plan_warnings(session):
        screen.print(plain(sentence), style="yellow")


@dataclass(frozen=True, slots=True)
class _Askable:
    """How many battles a campaign wants, and how many there are: of its models on its prompts, `equal` in text."""

    wanted: int
    pairs: int
    equal: int

    @staticmethod
    def of(session: Session) -> _Askable:
        design = session.planned.design
        pairs = pairs_of(design.models) * len(design.instructions)
        return _Askable(session.campaign.plan.phases[0].battles or 0, pairs, len(session.design_space().barred))

    @property
    def most(self) -> int:
        """The battles that are asked if money is no object."""
        return min(self.wanted, self.pairs - self.equal)

    def note(self, planned: int) -> str:
        """Of how many battles those planned are, and why not all."""
        if planned == self.pairs:
            return ", every pair on every prompt"
        part = f" of {self.pairs if self.equal else self.wanted:,}" if planned < self.wanted else ""
        short = ", as many as the budget pays for" if planned < self.most else ""
        equal = f"; in {self.equal:,} both answers are the same text, and are not asked" if self.equal else ""
        return part + short + equal


def _calls(campaign: CampaignSettings, battles: int, calls: int) -> str:
    """How many calls are made, with the product that they are where it is this one."""
    judges, per_trial = len(campaign.judges), 2
    if {one.protocol for one in campaign.judges} != {"two-stage"} or calls != battles * 2 * judges * per_trial:
        return f"{calls:,}"
    by = f" x {judges} judges" if judges > 1 else ""
    return f"{counted(battles, 'battle')} x 2 orders{by} x 2 (reasons, then a verdict) = {calls:,}"


def _sure(intervals: PlanIntervals, battles: int, models: int) -> str:
    """How wide intervals will be with the battles that the budget pays for, and with all."""
    whole, half = intervals.within.median(), intervals.within.median(intervals.covered)
    if intervals.covered == 1.0:
        sure = f"+-{whole:.0f} points (100 points more win 64% of battles)"
        return sure if whole <= _WIDEST else "too wide to rank by: it takes more prompts"
    paid = f"{counted(battles, 'battle')} that the budget pays for"
    every = f"all {intervals.battles:,}, for about {money(intervals.nano(1.0))}"
    every = f" (+-{whole:.0f} with {every})" if whole <= _WIDEST else f" (there are {every})"
    if battles < models - 1:
        return f"none: no board is possible of {models} models with the {paid}{every}"
    return f"{f'+-{half:.0f} points' if half <= _WIDEST else 'too wide to rank by'} with the {paid}{every}"


def _expected(session: Session, forecast: Forecast, intervals: PlanIntervals | str | None) -> tuple[int, int, int]:
    """Battles and trials that the budget pays for, those asked already included, and what they cost."""
    if isinstance(intervals, PlanIntervals):
        battles = int(intervals.battles * intervals.covered + 1e-6)  # no part of one
        trials = round(battles * intervals.trials / max(1, intervals.battles))
        return battles, trials, intervals.nano(trials / max(1, intervals.trials))
    battles = sum(one.design.size for one in session.planned.rounds)
    return battles, forecast.progress.planned, forecast.spending.nano + forecast.whole.expected


def _money(session: Session, forecast: Forecast, expected: int) -> str:
    limit, paid = session.campaign.budget.money, forecast.spending.nano
    if not (expected or forecast.whole.most):
        return "nothing"
    spent = f", {money(paid)} of it spent" if paid else ""
    return f"about {money(expected)} in all{spent}" + ("" if limit is None else f", never more than {money(limit)}")


def _time(forecast: Forecast, trials: int) -> str:
    """How long so many trials take, by what the limits or the answers so far make of those that are planned."""
    known = [one for row in forecast.judges for one in (row.seconds, row.waiting) if one is not None]
    seconds = max(known, default=0.0) * trials / max(1, forecast.whole.trials)
    return f"; time: about {duration(seconds)}" if seconds >= 1.0 else ""


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """What a campaign has asked and spent when its run has ended, and what is left; money in nano-dollars."""

    battles: int
    """All that there may be."""
    asked: int
    paid: int

    @staticmethod
    def of(session: Session) -> JudgedPart:
        """What a session has asked when its run has ended."""
        asked = sum(one.design.size for one in session.planned.rounds)
        share = session.progress.settled / max(1, session.progress.planned)
        return JudgedPart(_Askable.of(session).most or asked, int(asked * share), session.spending.nano)

    @property
    def whole(self) -> int:
        """Whole dollars that all battles cost, by what those so far did."""
        return max(1, -(-self.paid * self.battles // max(1, self.asked) // 10**9))


def show_judged(screen: Console, campaign: CampaignSettings, part: JudgedPart, again: Sequence[str]) -> None:
    """Who leads, the board, the cost, what to doubt, and the next commands; `again` is the one that goes on."""
    source, out = VerdictSource((campaign.store,)), console()
    try:
        sentence, board = headline(source)
    except InputError as error:
        screen.print(f"\nno board: {plain(str(error))}", style=FAILED, soft_wrap=True)
        return
    out.print(f"\n{plain(sentence)}\n", soft_wrap=True)
    show(out, board.sections())
    if part.paid:
        limit = campaign.budget.money
        of = "" if limit is None else f" of {money(limit)}"
        out.print(f"\n{money(part.paid)}{of} spent; {part.asked:,} of {part.battles:,} battles judged")
    worries = audited(source).worries
    out.print("\nWhat to doubt:" if worries else "\nWhat to doubt: no check of the data worries")
    for one in worries[:_DOUBTS]:
        out.print(f"  {plain(one.says)}", soft_wrap=True)
    _show_next(screen, campaign, part, again)


def _show_next(screen: Console, campaign: CampaignSettings, part: JudgedPart, again: Sequence[str]) -> None:
    rehearsed = all(one.origin is Origin.SIMULATED for one in campaign.judges)
    of = os.path.relpath(campaign.path if rehearsed else campaign.path.parent)
    more, why = ["--judge", "anthropic:claude-haiku-4-5"], "another judge"
    if rehearsed:
        more, why = ["--judge", "openai:gpt-4.1-mini", "--budget", "2"], "for real"
    elif part.asked < part.battles:
        more, why = ["--budget", str(part.whole)], "the other battles: narrower intervals"
    commands = (
        (("venire", "serve", of), "board, judges and every reply as pages"),
        (("venire", "report", of, "-o", "report.html"), "to send to others"),
        ((*again, *more), why),
    )
    width = max(len(shlex.join(command)) for command, _ in commands)
    screen.print("\nNext:")
    for command, what in commands:
        screen.print(f"  {shlex.join(command):<{width}}  # {what}", soft_wrap=True)
