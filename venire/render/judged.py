"""Terminal output of `venire judge`: the plan in five lines, and at the end who leads, what to doubt and what to do."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import numpy as np
from rich.console import Console

from venire.arena.campaigns import CampaignSettings
from venire.arena.wording import few, money, plain
from venire.forecasts.intervals import PlanIntervals
from venire.forecasts.plan import plan_warnings
from venire.orchestrator.costs.forecast import Forecast
from venire.render.screen import console
from venire.render.sections import show
from venire.reports.audit.cases import audited
from venire.reports.board.source import VerdictSource
from venire.reports.documents.report import headline
from venire.reports.wording import counted
from venire.session import Session
from venire.wording import duration

_NAMES = 8
_DOUBTS = 3


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
    planned, whole = session.planned.design.size, campaign.plan.phases[0].battles or 0
    part = f" of {whole:,}, as many as the budget pays for" if planned < whole else ", every pair on every prompt"
    screen.print(f"battles:  {planned:,}{part}; {forecast.whole.calls:,} calls")
    screen.print(f"money:    {_money(session, forecast)}; time: {_time(forecast)}")
    if isinstance(intervals, PlanIntervals):
        half = intervals.within.median()
        sure = f"about +-{half:.0f} points" if np.isfinite(half) else "none on a single prompt"
        screen.print(f"expected intervals: {sure} (100 points more win 64% of battles)")
    for sentence in plan_warnings(session):
        screen.print(plain(sentence), style="yellow")


def _money(session: Session, forecast: Forecast) -> str:
    limit = session.campaign.budget.money
    most = forecast.whole.most + forecast.spending.nano
    if not most:
        return "nothing"
    paid = f", beside {money(forecast.spending.nano)} spent" if forecast.spending.nano else ""
    at_most = most if limit is None else min(most, limit)
    return f"about {money(forecast.whole.expected)}{paid}, in all never more than {money(at_most)}"


def _time(forecast: Forecast) -> str:
    known = [one for row in forecast.judges for one in (row.seconds, row.waiting) if one is not None]
    return f"about {duration(max(known))}" if known else "as the vendors answer"


def show_judged(screen: Console, campaign: CampaignSettings, answers: Sequence[str], *, rehearsal: bool) -> None:
    """Who leads, the board, what to doubt, and the next commands."""
    source = VerdictSource((campaign.store,))
    sentence, board = headline(source)
    out = console()
    out.print(f"\n{plain(sentence)}\n", soft_wrap=True)
    show(out, board.sections())
    worries = audited(source).worries
    out.print("\nWhat to doubt:" if worries else "\nNo check of the data worries.")
    for one in worries[:_DOUBTS]:
        out.print(f"  {plain(one.says)}", soft_wrap=True)
    folder = os.path.relpath(campaign.path.parent)
    of = shlex.quote(os.path.relpath(campaign.path) if rehearsal else folder)
    table = shlex.join(answers)
    screen.print("\nNext:")
    for command in (
        f"venire serve {of}",
        f"venire report {of} -o report.html",
        f"venire judge {table} --judge openai:gpt-4.1-mini --budget 2",
    ):
        screen.print(f"  {command}", soft_wrap=True)
