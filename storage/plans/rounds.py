"""A campaign's rounds, interim analyses and stopping rules as a document of plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from venire.arena.campaigns import StopSettings
from venire.arena.planning import InterimAnalysis, InterimRating
from venire.storage.plans import plans
from venire.storage.store.store import Store


def rounds_document(store: Store, campaign: int) -> dict[str, Any]:
    """A campaign's rounds in force, the interim analyses after them, and its stopping rules."""
    names = ("round", "phase", "policy", "trials", "equal_texts", "planned_at")
    return {
        "rounds": [dict(zip(names, one[:6], strict=True)) for one in plans.rounds(store, campaign)],
        "looks": interim_documents(plans.interim_analyses(store, campaign)),
        "stops_when": stop_rules(_stop_settings(store.read("campaign_settings", campaign=campaign)[0][0])),
    }


def interim_documents(analyses: Sequence[tuple[int, InterimAnalysis]]) -> list[dict[str, Any]]:
    """Interim analyses with their rounds, each model with both intervals in Elo points."""
    return [{"round": number} | asdict(analysis) for number, analysis in analyses]


def analysis_of(document: Mapping[str, Any]) -> InterimAnalysis:
    """Rebuild an interim analysis from its document."""
    figures = {name: value for name, value in document.items() if name != "round"}
    return InterimAnalysis(**figures | {"models": tuple(InterimRating(**one) for one in document["models"])})


def _stop_settings(settings: str) -> StopSettings:
    """The stopping rules in a campaign's settings, which omit keys that the file does not set."""
    rules = json.loads(settings).get("plan", {}).get("stop", {})
    half_width, points = rules.get("half_width"), rules.get("indifference")
    return StopSettings(
        battles=rules.get("battles"),
        half_width=None if half_width is None else float(half_width),
        top=rules.get("top"),
        ranks=bool(rules.get("ranks")),
        indifference=StopSettings().indifference if points is None else float(points),
    )


def stop_rules(stop: StopSettings) -> list[str]:
    """The stopping rules of a plan, each as a clause.

    >>> stop_rules(StopSettings(half_width=25.0, top=2))
    ['every interval is within 25 points', 'the best 2 are known up to 15 points']
    """
    points = f"{stop.indifference:g} points"
    clauses = []
    if stop.battles is not None:
        clauses.append(f"{stop.battles:,} {'battle is' if stop.battles == 1 else 'battles are'} judged")
    if stop.half_width is not None:
        clauses.append(f"every interval is within {stop.half_width:g} points")
    if stop.top is not None:
        clauses.append(f"the best {stop.top} are known up to {points}")
    return clauses + ([f"the order is known up to {points}"] if stop.ranks else [])
