"""What is wrong between the keys of `[plan]`, its phases and its rules for stopping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from venire.arena.registry import POLICIES
from venire.configs.problems import Place, Problem
from venire.configs.registered import chooses_battles, needless_matchups, policies_with
from venire.configs.schema import PhaseTable, Plan

__all__ = ["plan_problems"]

_OF_PHASES = frozenset(PhaseTable.model_fields)
"""Keys that belong to a phase; in [plan] where there is one phase without a name."""
_OF_BATTLES = ("battles", "round")
_RULES = ("battles", "half_width", "top", "ranks")


def plan_problems(raw: Mapping[str, Any], judges: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """What is wrong with the plan of a parsed campaign file; `judges` are its tables of judges."""
    plan = raw.get("plan")
    if not isinstance(plan, dict):
        return
    if plan.get("policy") == "recorded" and any(judge.get("provider") != "replay" for judge in judges):
        yield Problem(
            ("plan", "policy"),
            '"recorded" plans what is on record, and a judge of this file is asked: choose another policy (of recorded '
            "judgments those are taken that it plans), or a file of their own for the recorded ones",
        )
    phases = _phases(plan)
    for place, phase in phases:
        yield from _phase_problems(place, phase)
    if plan.get("phase"):
        for place, phase in phases:
            if phase.get("policy") == "recorded":
                yield Problem((*place, "policy"), '"recorded" takes all that is on record: give it in [plan], alone')
        for key in plan:
            if key in _OF_PHASES:
                yield Problem(("plan", key), "where there are [[plan.phase]] tables, this stands in each of them")
        yield from _names(phases)
    yield from _endings(raw, phases)


def _phases(plan: Mapping[str, Any]) -> list[tuple[Place, Mapping[str, Any]]]:
    """The tables that say what a phase is, with their places."""
    tables = plan.get("phase")
    if not isinstance(tables, list) or not tables:
        return [(("plan",), plan)]
    return [(("plan", "phase", n), one) for n, one in enumerate(tables) if isinstance(one, dict)]


def _policy(phase: Mapping[str, Any]) -> str:
    return str(phase.get("policy", Plan.model_fields["policy"].default))


def _phase_problems(place: Place, phase: Mapping[str, Any]) -> Iterator[Problem]:
    policy = _policy(phase)
    if (why := needless_matchups(policy)) and "matchups" in phase:
        instead = "give battles" if chooses_battles(policy) else 'choose "widest-gap" or "random"'
        yield Problem((*place, "matchups"), f'policy "{policy}" {why}: leave matchups out, or {instead}')
    if not chooses_battles(policy):
        for key in _OF_BATTLES:
            if key in phase:
                yield Problem(
                    (*place, key),
                    f'policy "{policy}" puts whole matchups to all instructions: leave {key} out, or choose one of '
                    f"{_battle_policies()}",
                )
    if "purpose" in phase and policy not in (able := policies_with("purpose")):
        yield Problem((*place, "purpose"), f"only policy {_listed(able)} has a purpose: leave it out")
    if "band" in phase and policy not in (able := policies_with("band")):
        yield Problem((*place, "band"), f"a band belongs to policy {_listed(able)}: leave it out")
    for key, purpose in (("top", "boundary"), ("place", "place")):
        if key in phase and phase.get("purpose") != purpose:
            yield Problem((*place, key), f'{key} belongs to purpose "{purpose}": leave it out, or choose that')
    if phase.get("purpose") == "place" and "place" not in phase:
        yield Problem((*place, "place"), 'missing; accepted: the name of the model that purpose "place" is about')


def _battle_policies() -> str:
    return ", ".join(name for name in POLICIES if chooses_battles(name))


def _listed(policies: Sequence[str]) -> str:
    return " or ".join(f'"{name}"' for name in policies)


def _names(phases: Sequence[tuple[Place, Mapping[str, Any]]]) -> Iterator[Problem]:
    """Two phases of one name, and phases after one that has no end."""
    seen: dict[object, Place] = {}
    for number, (place, phase) in enumerate(phases):
        name = phase.get("name")
        if isinstance(name, str) and name in seen:
            yield Problem((*place, "name"), "another phase has this name: give each its own")
        seen.setdefault(name, place)
        if number + 1 < len(phases) and chooses_battles(_policy(phase)) and "battles" not in phase:
            yield Problem((*place, "battles"), "missing: only the last phase may go on until a rule stops it")


def _endings(raw: Mapping[str, Any], phases: Sequence[tuple[Place, Mapping[str, Any]]]) -> Iterator[Problem]:
    """A rule that nothing could follow, and a phase that nothing would end."""
    plan, budget = raw["plan"], raw.get("budget")
    stop = plan.get("stop")
    rules = [key for key in _RULES if isinstance(stop, dict) and stop.get(key)]
    in_rounds = [place for place, phase in phases if chooses_battles(_policy(phase))]
    if rules and not in_rounds:
        yield Problem(
            ("plan", "stop"),
            "a rule stops a campaign between two rounds, and no policy here plans in rounds: choose one of "
            f"{_battle_policies()}, or leave [plan.stop] out",
        )
    if isinstance(stop, dict) and "indifference" in stop and not {"top", "ranks"} & set(rules):
        yield Problem(("plan", "stop", "indifference"), "belongs to the rules top and ranks: give one of them")
    place, last = phases[-1] if phases else (("plan",), plan)
    limited = isinstance(budget, dict) and any(key in budget for key in ("calls", "money", "tokens"))
    if place in in_rounds and "battles" not in last and not rules and not limited:
        yield Problem(
            (*place, "battles"), "nothing would end this: give battles, a rule in [plan.stop], or a limit in [budget]"
        )
