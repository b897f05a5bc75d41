"""The status of a store: its contents, the progress of its campaigns, their cost and their failures.

A status is a document of plain values, since the process that owns a store sends it to others as JSON (`live.server`);
`render.status` shows it. Imports here slow down every status query, so neither the session nor the engine is imported.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from venire.arena.errors import Fault, fault_name
from venire.arena.records import UNSENT
from venire.storage.plans import plans, submissions
from venire.storage.plans.rounds import rounds_document
from venire.storage.plans.trial_states import any_failed
from venire.storage.read import frames
from venire.storage.read.judge_quality import judge_readability, long_input, served_models
from venire.storage.store.connection import Row
from venire.storage.store.recovery import recovered
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from venire.orchestrator.costs.forecast import Forecast

MIN_INSTRUCTIONS = 20
"""As in `ratings.design.stopping`, which imports scipy: with fewer, errors by instruction are too uncertain."""


def status_document(store: Store) -> dict[str, Any]:
    """The contents of a store, and for each campaign its progress, rounds, readings, drift, costs and failures."""
    (counts,) = store.read("counts")
    names = ("instructions", "completions", "models", "models_with_elo", "attempts", "verdicts")
    return {
        "store": str(store.path),
        "holds": dict(zip(names, counts, strict=True)),
        "recovered": asdict(recovered(store)),
        "campaigns": [_campaign(store, one) for one in frames.campaigns(store)],
    }


def _campaign(store: Store, row: frames.CampaignRow) -> dict[str, Any]:
    progress = frames.progress(store, row.id)
    return {
        "campaign": row.name,
        "started_at": row.started_at,
        "progress": asdict(progress) | {"missing": progress.missing},
        "judges": [{"judge": name} | asdict(one) for name, one in frames.judge_progress(store, row.id).items()],
        "plan": rounds_document(store, row.id),
        "judged": [
            asdict(one) | {"readable": one.readable, "flip_rate": one.flip_rate}
            for one in judge_readability(store, row.id)
        ],
        "long_input": long_input_documents(store, row.id),
        "served": served_documents(store, row.id),
        "accounts": asdict(frames.campaign_spending(store, row.id)),
        "options": plans.last_options(store, row.id),
        "lost_calls": plans.lost_since_start(store, row.id),
        "forecast": spending_document(store, row.id),
        "failure_reasons": failure_reasons(store, row.id),
        "failed_steps": failed_steps(store, row.id),
        "batches": batch_documents(store, row.id),
        "faults": {Fault(fault).name.lower(): count for fault, count in store.read("faults", campaign=row.id)},
        "last_failure": next(
            (
                {"fault": fault_name(fault), "message": message}
                for fault, message in store.read("last_failure", campaign=row.id)
            ),
            None,
        ),
    }


def batch_documents(store: Store, campaign: int) -> list[dict[str, Any]]:
    """Every batch that was sent, in the order sent: what is out (`open`), its calls, and what came of them."""
    return [one.to_json() for one in submissions.submissions(store, campaign)]


def long_input_documents(store: Store, campaign: int) -> list[dict[str, Any]]:
    """Inputs that were too long or truncated, by judge; judges without any are left out."""
    return [asdict(one) for one in long_input(store, campaign, UNSENT)]


def served_documents(store: Store, campaign: int) -> list[dict[str, Any]]:
    """The models that served each judge, and whether they changed (drift)."""
    return [asdict(one) | {"drift": one.drift} for one in served_models(store, campaign)]


def failure_reasons(store: Store, campaign: int) -> list[dict[str, Any]]:
    """The most frequent reasons of failure: the fault and message of the last attempt, and the number of trials."""
    rows = _of_failures(store, "failure_reasons", campaign, 3)
    return [{"fault": fault, "message": message, "trials": count} for fault, message, count in rows]


def failed_steps(store: Store, campaign: int) -> list[dict[str, Any]]:
    """The first few steps that used up their attempts, with the fault and the message of the last one."""
    names = ("judge", "instruction", "models", "step", "fault", "message")
    return [dict(zip(names, row, strict=True)) for row in _of_failures(store, "failed_steps", campaign, 5)]


def _of_failures(store: Store, name: str, campaign: int, limit: int) -> list[Row]:
    """Rows of a query about failed steps, which most stores have none of: it takes 10 ms to plan."""
    return store.read(name, campaign=campaign, limit=limit) if any_failed(store) else []


@dataclass(frozen=True, slots=True)
class _KeptForecast:
    """A stored forecast for the remaining `trials`, made after `done` trials and with `spent` already paid."""

    trials: int
    done: int
    spent: int
    low: int
    expected: int
    high: int


def keep_forecast(store: Store, campaign: int, forecast: Forecast) -> None:
    """Store the expected cost of the rest of a plan, unless an earlier run of this plan did so.

    Raises StoreError if the store cannot be written.
    """
    progress, whole = forecast.progress, forecast.whole
    if not progress.missing or store.read("first_forecast", campaign=campaign):
        return
    done, spent = progress.planned - progress.missing, forecast.spending.nano
    detail = json.dumps(asdict(_KeptForecast(progress.missing, done, spent, whole.low, whole.expected, whole.high)))
    with store.commit() as commit:
        commit.run(
            "insert_event",
            now=store.clock.wall(),
            campaign=campaign,
            kind="forecast",
            detail=detail,
            batch=commit.batch,
        )


def spending_document(store: Store, campaign: int) -> dict[str, Any] | None:
    """The first run's forecast and the amount paid, in nano-dollars; None for a campaign without a forecast.

    `expected_so_far` is the expected cost of the trials settled since the forecast, `paid_so_far` the amount paid since
    then; `whole` is the expected cost of the plan at that time plus the amount paid before it.
    """
    events = store.read("first_forecast", campaign=campaign)
    if not events:
        return None
    kept = _KeptForecast(**json.loads(events[0][0]))
    progress, paid = frames.progress(store, campaign), frames.campaign_spending(store, campaign).nano
    since = max(0, progress.planned - progress.missing - kept.done)
    share = since / kept.trials
    reach = max(share, share**0.5)  # the sum of fewer trials is less certain, for its size
    middle = kept.expected * share
    low, high = middle - reach * (kept.expected - kept.low), middle + reach * (kept.high - kept.expected)
    return {
        "trials": kept.trials,
        "low": kept.low,
        "expected": kept.expected,
        "high": kept.high,
        "whole": kept.spent + kept.expected,
        "settled_since": since,
        "low_so_far": max(0, round(low)),
        "expected_so_far": round(middle),
        "high_so_far": round(high),
        "paid_so_far": paid - kept.spent,
    }
