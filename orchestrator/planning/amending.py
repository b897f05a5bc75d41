"""Amendments: whether a plan in force stays when a campaign's file or store changes, so that paid work counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from venire.arena.campaigns import PhaseSettings
from venire.arena.errors import InputError
from venire.configs.fields import Shapes, Table
from venire.configs.schema import Campaign, Data, Judge, Phase, Plan
from venire.orchestrator.designs import RoundDesign, read_design
from venire.orchestrator.planning.first_round import refuse_phases
from venire.storage.plans import plans
from venire.storage.plans.plans import KnownCampaign, StoredCampaign
from venire.storage.read import frames
from venire.storage.store.store import Store

_OF_A_PHASE = tuple(name for name, about in Phase.declared.items() if about.shapes is Shapes.PHASE)
_DEFAULTS = PhaseSettings()
"""Settings leave out what equals its default."""


def plan_stays(store: Store, known: KnownCampaign) -> bool:
    """Whether the plan in force is still that of a campaign, whatever files have brought into the store since.

    It is where settings are the same, and where calls were made and what changed shapes none of its rounds.
    """
    stored = known.stored
    if stored is None or not stored.planned:
        return False
    return stored.settings == known.settings.settings or _goes_on(store, known, stored)


def may_have_grown(known: KnownCampaign, *, amend: bool, tables: bool = False) -> bool:
    """Whether a plan that stays is made anew where the campaign's own contestants have written since.

    So it is as long as no judge was asked, and with `amend`; with `tables` also where its tables have grown.
    """
    campaign, called = known.settings, known.stored is not None and known.stored.calls > 0
    grows = tables or bool(campaign.contestants or campaign.editors)
    return grows and not campaign.writes and (amend or not called)


def has_grown(store: Store, known: KnownCampaign, now: RoundDesign) -> bool:
    """Whether the first round in force would show other texts now; battles also depend on what was paid since."""
    assert known.number is not None  # or no plan would be in force
    before = read_design(plans.rounds(store, known.number)[0].design)
    return _made_of(now) != _made_of(before)


def _made_of(design: RoundDesign) -> tuple[object, ...]:
    """What of a first round depends on what was written."""
    matchups = design.matchups if design.battles is None else None
    return design.instructions, design.models, design.left_out, design.recorded, matchups


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
    if any(name not in phases_before for name in begun) or list(phases_now)[: len(begun)] != list(begun):
        return False
    return _rest(was) == _rest(now) and all(phases_before[name] == phases_now[name] for name in begun)


def _phases(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What shapes the rounds of each phase, by its name."""
    plan = settings["plan"]
    return {
        phase.get("name", _DEFAULTS.name): {key: _setting(phase, key) for key in _OF_A_PHASE} for phase in _tables(plan)
    }


def _tables(plan: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return plan.get("phase") or [plan]


def _setting(phase: Mapping[str, Any], key: str) -> Any:
    if key in phase:
        return phase[key]
    default = getattr(_DEFAULTS, key)
    return [f"{bound:g}" for bound in default] if isinstance(default, tuple) else default


def _rest(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What shapes all rounds."""
    return _shaping(Campaign, settings) | {
        "plan": _shaping(Plan, settings["plan"]),
        "judge": [_shaping(Judge, judge) for judge in settings["judge"]],
        "data": _shaping(Data, settings["data"]),
    }


def _shaping(table: type[Table], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a table that shape all rounds, and those that this version does not know."""
    known = table.declared
    return {key: value for key, value in settings.items() if key not in known or known[key].shapes is Shapes.ALL}


def _goes_on(store: Store, known: KnownCampaign, stored: StoredCampaign) -> bool:
    """Whether a plan in rounds that calls were made for goes on by other settings: what was decided is not undone."""
    campaign = known.settings
    if not stored.calls or campaign.writes:
        return False
    rounds = plans.rounds(store, stored.id)
    begun = list(dict.fromkeys(row.phase for row in rounds))
    alike = rounds_stay(stored.settings, campaign.settings, begun)
    if not alike or not _in_rounds(rounds) or _others(store, known):
        return False
    if campaign.pair_judges:
        refuse_phases(campaign, read_design(rounds[0].design).models, frames.elos(store))
    return True


def _in_rounds(rounds: Sequence[plans.StoredRound]) -> bool:
    return len(rounds) > 1 or any(not PhaseSettings(row.policy).crosses for row in rounds)


def _others(store: Store, known: KnownCampaign) -> list[str]:
    """Judges that are not the respondents that they were when the plan in force was made."""
    assert known.number is not None  # or no plan would be in force
    before = {row.name: row.respondent for row in frames.judges(store, known.number)}
    return [judge.name for judge, _ in known.judges if known.numbers.get(judge.name, 0) != before.get(judge.name)]


def refuse_other_prompts(store: Store, known: KnownCampaign) -> None:
    """With the same settings, a judge that is another respondent now is one that would be asked in other words."""
    for name in _others(store, known):
        raise InputError(
            f"{known.settings.path}: judge {name!r} would be asked with other prompts than this campaign began "
            "with: go on with the version of Venire that planned it, or give the campaign another name"
        )
