"""Whether planned rounds stay when a campaign's file changes, so that what was decided and paid goes on to count."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from venire.arena.campaigns import PhaseSettings

__all__ = ["rounds_stay"]

_BESIDE = ("budget", "durability", "store")
"""What shapes no round: how much may be spent, and where and how it is written."""
_OF_A_JUDGE = ("name", "repeats", "recorded", "map")
"""What shapes rounds beside who a judge is, which its respondent key says."""
_OF_A_PHASE = ("policy", "matchups", "coverage", "band", "purpose", "top", "place")
_UNSAID = PhaseSettings()
"""Settings leave out what says the same as no word."""


def rounds_stay(before: str, after: str, begun: Sequence[str]) -> bool:
    """Whether rounds that were planned by some settings may be followed by rounds of others, both as canonical JSON.

    `begun` are the names of the phases that have rounds, in order. Budgets, prices, limits, addresses, rules to stop,
    how many battles a phase or a round has, and phases that are yet to come may change; that judges are the same
    respondents is for the caller to see. Never so where settings are not those of a campaign's file.
    """
    try:
        was, now = json.loads(before), json.loads(after)
    except json.JSONDecodeError:
        return False
    if not ("plan" in was and "plan" in now):  # of a placement
        return False
    phases_before, phases_now = _phases(was), _phases(now)
    if any(one not in phases_before for one in begun) or list(phases_now)[: len(begun)] != list(begun):
        return False
    return _rest(was) == _rest(now) and all(phases_before[one] == phases_now[one] for one in begun)


def _phases(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What shapes the rounds of each phase, by its name."""
    plan = settings["plan"]
    return {one.get("name", _UNSAID.name): {key: _said(one, key) for key in _OF_A_PHASE} for one in _tables(plan)}


def _tables(plan: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return plan.get("phase") or [plan]


def _said(phase: Mapping[str, Any], key: str) -> Any:
    if key in phase:
        return phase[key]
    default = getattr(_UNSAID, key)
    return [f"{one:g}" for one in default] if isinstance(default, tuple) else default


def _rest(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What shapes all rounds."""
    plan = {
        key: value
        for key, value in settings["plan"].items()
        if key not in (*_OF_A_PHASE, "name", "battles", "round", "phase", "stop")
    }
    judges = [{key: judge.get(key) for key in _OF_A_JUDGE} for judge in settings["judge"]]
    data = {key: value for key, value in settings["data"].items() if key != "families"}
    return {key: one for key, one in settings.items() if key not in _BESIDE} | {
        "plan": plan,
        "judge": judges,
        "data": data,
    }
