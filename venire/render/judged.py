"""Terminal output of `venire judge`: the plan in five lines, and at the end who leads, what to doubt and what to do."""

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
    whole = campaign.plan.phases[0].battles or 0
    planned, trials, expected = _expected(session, forecast, intervals)
    part = f" of {whole:,}, as many as the budget pays for" if planned < whole else ", every pair on every prompt"
    done = forecast.progress.planned - forecast.progress.missing
    already = f"; {done / max(1, trials):.0%} of them are judged" if done else ""
    calls = round((trials - done) * forecast.whole.calls / max(1, forecast.whole.trials))
    screen.print(f"battles:  {planned:,}{part}{already}; {calls:,} calls")
    screen.print(f"money:    {_money(session, forecast, expected)}; time: {_time(forecast, trials - done)}")
    if isinstance(intervals, PlanIntervals):
        half = intervals.within.median()
        sure = f"expected intervals: +-{half:.0f} points (100 points more win 64% of battles)"
        screen.print(sure if half <= _WIDEST else "expected intervals: too wide to rank by: it takes more prompts")
    for sentence in plan_warnings(session):
        screen.print(plain(sentence), style="yellow")


def _expected(session: Session, forecast: Forecast, intervals: PlanIntervals | str | None) -> tuple[int, int, int]:
    """Battles and trials that the budget pays for, those asked already included, and what all of them cost."""
    if isinstance(intervals, PlanIntervals):
        part = intervals.covered
        return round(intervals.battles * part), round(intervals.trials * part), intervals.nano(part)
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
    share = trials / max(1, forecast.whole.trials)
    if not known:
        return "as the vendors answer" if forecast.whole.most else "seconds to minutes"
    return f"about {duration(max(known) * share)}"


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
        return JudgedPart(session.campaign.plan.phases[0].battles or asked, int(asked * share), session.spending.nano)

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
