"""The overview: what is asked and how far it is, what it costs, how each judge and route does, what each round did."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from venire.arena.budgets import Amount, BudgetSettings
from venire.arena.errors import InputError
from venire.arena.registry import PROTOCOLS
from venire.pages.bars import drawn_board
from venire.pages.context import PageContext
from venire.pages.views.leaderboard import board_links
from venire.reports.documents.sentences import answer
from venire.reports.wording import estimand_text
from venire.storage.plans import plans
from venire.storage.read import frames
from venire.storage.read.activity import (
    CallSpan,
    JudgeActivity,
    calls_over_time,
    campaign_settings,
    judge_activity,
    known_models,
    route_activity,
    run_history,
)

_SECONDS = 5.0
"""What of the page is read from all attempts is read so often at most while a campaign runs."""

_EXAMPLES = 6
_TOP = 8
"""Models of the board that the first page shows."""

_DOUBTS = 4
"""Findings of the audit that it shows, worries first."""


def begin_answer(here: PageContext) -> None:
    """Have the board made that the page begins with; beside a run as soon as there are verdicts."""
    if here.live is None or here.live["settled"]:
        here.board()


def overview(here: PageContext) -> dict[str, Any]:
    """The values of the overview page."""
    store, number = here.store, here.campaign.id
    settings = campaign_settings(store, number)
    judges = here.memo("judges", lambda: judge_activity(here.table), _SECONDS)
    spent = here.memo("spending", lambda: frames.campaign_spending(store, number), _SECONDS)
    routes = here.memo("routes", lambda: route_activity(store, number), _SECONDS)
    spans = here.memo("calls", lambda: calls_over_time(store, number), _SECONDS)
    forecast = here.memo("forecast", here.forecast, _SECONDS)
    live = here.live
    planned = sum(one.planned for one in judges)
    settled, failed = sum(one.settled for one in judges), sum(one.failed for one in judges)
    paid = spent.nano
    if live is not None:
        planned, settled, failed = live["planned"], live["settled"], live["failed"]
        paid = max(paid, live["spent"])  # of this run; the store's figure is of all runs, and a moment older
    done = settled + failed >= planned
    return {
        **_answer(here, judges, settled=settled, so_far=not done),
        "planned": planned,
        "settled": settled,
        "failed": failed,
        "left": max(0, planned - settled - failed),
        "share": (settled + failed) / planned if planned else 0.0,
        "judges": judges,
        "spent": spent,
        "paid": paid,
        "budgets": _budgets(settings, live, spent, paid),
        "forecast": forecast,
        "routes": routes,
        "live_routes": {one["route"]: one for one in (live or {}).get("lanes", ())},
        "calls_chart": _calls_chart(spans),
        "money_chart": _money_chart(spans),
        "faults": _faults(routes),
        "rounds": here.memo("rounds", lambda: _rounds(here), _SECONDS),
        "plan": here.memo("plan", here.plan, _SECONDS),
        "looks_about": estimand_text("instructions", "judges", len(judges)),
        "history": run_history(store, number),
        "settings": settings,
        "origins": sorted({one.origin for one in judges}),
    }


def _answer(here: PageContext, judges: Sequence[JudgeActivity], *, settled: int, so_far: bool) -> dict[str, Any]:
    """What the campaign has found: who leads, the top of the board, and what to doubt.

    `why_not` says why there is no board; where it or the audit is under way, `pending` says so.
    """
    found: dict[str, Any] = {
        "answer": None,
        "so_far": so_far,
        "board": {},
        "doubts": None,
        "why_not": "",
        "pending": "",
    }
    found["writes"] = bool(judges) and all(_writes(one.protocol) for one in judges)
    if not settled or found["writes"]:
        return found
    try:
        ends = here.live is None or here.live.get("ending")
        board = (
            None if ends else here.board_at_hand()
        ) or here.board()  # a run's may be a moment old, but not its last
    except InputError as error:
        return found | {"why_not": str(error)}
    if not board:
        return found | {"pending": "The board is being computed. It comes by itself."}
    said = {"board": board, "counts": board["counts"], "cost": board["cost"]}  # of one moment
    so_far = so_far or board["counts"]["verdicts"] < settled
    models = {one.name: one for one in known_models(here.store)}
    drawn = drawn_board(board["models"][:_TOP], partial(board_links, here, models))
    audit = here.audit_at_hand() if drawn["unit"] == "Elo" else None  # of grades alone there is none
    if audit is None and here.audit_under_way():
        found["pending"] = "What to doubt is being computed. It comes by itself."
    return found | {
        "so_far": so_far,
        "answer": answer(said, so_far=so_far),
        "board": board,
        "drawn": drawn,
        "doubts": None if audit is None else _doubts(audit["findings"]),
    }


def _writes(protocol: str) -> bool:
    return protocol in PROTOCOLS and PROTOCOLS[protocol].shape.writes


def _doubts(findings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The first findings to mind, worries first, and how many checks were made, worry, or are unsure."""
    counts = Counter(one["word"] for one in findings)
    doubted = [one for one in findings if one["word"] in ("worry", "unsure")]
    return {
        "first": doubted[:_DOUBTS],
        "more": len(doubted[_DOUBTS:]),
        "made": len(findings) - counts["not made"],
        "worries": counts["worry"],
    }


def _budgets(
    settings: Mapping[str, Any], live: Mapping[str, Any] | None, spent: frames.CampaignSpending, paid: int
) -> list[dict[str, Any]]:
    """Each limit of the campaign and, while it runs, of its judges: what is used, reserved and left."""
    if live is not None and "budgets" in live:
        return [dict(one) for one in live["budgets"]]
    used = Amount(spent.calls, paid, spent.input_tokens + spent.output_tokens)
    return BudgetSettings.of_table(settings.get("budget") or {}).rows("the budget", used)


def _calls_chart(spans: Sequence[CallSpan]) -> list[dict[str, Any]]:
    """Calls a minute of each span by outcome, answered ones at the bottom, the others stacked on them."""
    rows = []
    for span in spans:
        minutes, low = (span.end - span.start).total_seconds() / 60, 0.0
        for outcome, calls in sorted(span.calls.items(), key=lambda one: (one[0] != "answered", one[0])):
            high = round(low + calls / minutes, 3)
            rows.append({"start": span.start, "end": span.end, "outcome": outcome, "low": low, "high": high})
            low = high
    return rows


def _money_chart(spans: Sequence[CallSpan]) -> list[dict[str, Any]]:
    paid, rows = 0, []
    for span in spans:
        rows.append({"time": span.start, "dollars": paid / 1e9})
        paid += span.cost
    if spans and paid:
        rows.append({"time": spans[-1].end, "dollars": paid / 1e9})
        return rows
    return []


def _faults(routes: Sequence[Any]) -> list[str]:
    """Classes of fault that any route had, so that the table has a column for each."""
    return sorted({fault for one in routes for fault in one.faults})


def _rounds(here: PageContext) -> list[dict[str, Any]]:
    """The rounds in force, each with what its policy chose and why."""
    found = []
    for one in plans.rounds(here.store, here.campaign.id):
        design = json.loads(one.design)
        matchups = design.get("matchups") or []
        battles = design.get("battles")
        gaps = [pair["gap"] for pair in matchups if pair.get("gap") is not None]
        found.append(
            {
                "number": one.number,
                "phase": one.phase,
                "policy": one.policy,
                "trials": one.trials,
                "equal_texts": one.equal_texts,
                "planned_at": one.planned_at,
                "matchups": len(matchups),
                "battles": None if battles is None else len(battles),
                "instructions": len(design.get("instructions") or []),
                "gaps": (min(gaps), max(gaps)) if gaps else None,
                "why": Counter(str(reason) for reason in design.get("why") or () if reason).most_common(_EXAMPLES),
                "left_out": [(one["model"], one["reason"]) for one in design.get("left_out") or []][:_EXAMPLES],
                "first": [(pair["model_a"], pair["model_b"], pair.get("gap")) for pair in matchups[:_EXAMPLES]],
            }
        )
    return found
