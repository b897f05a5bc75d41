"""Checks of a campaign file that concern more than one key.

They read the file's own tables and look only at values of the right type, so that they also find what is wrong in a
file that the schema refuses: a user mends everything at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from venire.arena.campaigns import Limits
from venire.arena.records import Origin
from venire.configs.problems import Place, Problem, quoted
from venire.configs.schema import HOMES, JudgeTable

__all__ = ["cross_problems", "is_simulated"]

_IDENTITY = ("provider", "base_url", "key_variable", "key_variables", "model", "fallback")
_LANE = (
    *(field.name for field in fields(Limits)),
    "share",
    "skew",
    "concurrency",
    "timeout",
)
_TRIES = ("max_attempts", "max_elapsed", "patience")
_WIRE = ("connect_timeout", "read_timeout", "headers", "proxy", "proxy_variable")


def is_simulated(model: str) -> bool:
    """Whether the embedded server answers for this model."""
    return Origin.of_model(model) is Origin.SIMULATED


def cross_problems(raw: Mapping[str, Any]) -> list[Problem]:
    """What is wrong between the keys of a parsed campaign file, whatever else is wrong with it."""
    judges = raw.get("judge")
    tables = (
        [(i, judge) for i, judge in enumerate(judges) if isinstance(judge, dict)] if isinstance(judges, list) else []
    )
    return [
        *_plan_problems(raw.get("plan")),
        *_data_problems(raw.get("data")),
        *(problem for index, judge in tables for problem in _judge_problems(index, judge)),
        *_name_problems(tables),
        *_budget_problems(raw.get("budget"), [judge for _, judge in tables]),
        *_lane_problems(tables),
    ]


def _plan_problems(plan: object) -> Iterator[Problem]:
    if isinstance(plan, dict) and plan.get("policy") == "all-pairs" and "matchups" in plan:
        yield Problem(
            ("plan", "matchups"),
            'policy "all-pairs" takes every pair of models: leave matchups out, or choose "widest-gap" or "random"',
        )


def _data_problems(data: object) -> Iterator[Problem]:
    maps = data.get("map") if isinstance(data, dict) else None
    for kind in ("instructions", "completions", "elo"):
        if isinstance(data, dict) and isinstance(maps, dict) and kind in maps and kind not in data:
            yield Problem(("data", "map", kind), f"a map for a file that is not named: give {kind} in [data] too")


def _judge_problems(index: int, judge: Mapping[str, Any]) -> Iterator[Problem]:
    if judge.get("free") is True and "price" in judge:
        yield Problem(("judge", index, "free"), "free and price are both given: give one of them")
    if "key_variable" in judge and "key_variables" in judge:
        yield Problem(("judge", index, "key_variables"), "key_variable and key_variables are both given: give one")
    if is_simulated(str(judge.get("model"))) and "base_url" not in judge and judge.get("fallback"):
        yield Problem(("judge", index, "fallback"), "a simulated judge without base_url has no other endpoint")
    if "proxy" in judge and "proxy_variable" in judge:
        yield Problem(("judge", index, "proxy"), "proxy and proxy_variable are both given: give one of them")
    yield from _way_problems(("judge", index), judge, judge)
    for rank, way in _fallbacks(judge):
        yield from _way_problems(("judge", index, "fallback", rank), way, judge)
        yield from _fallback_problems(("judge", index, "fallback", rank), way, judge)
    model = judge.get("model")
    if "base_url" in judge or not isinstance(model, str):
        return
    provider = judge.get("provider", "openai")
    if provider == "litellm":
        yield Problem(
            ("judge", index, "base_url"),
            "missing; provider litellm needs it, so that a key cannot go to a wrong host; accepted: an http(s) URL",
        )
    elif provider == "openai" and not is_simulated(model):
        yield Problem(
            ("judge", index, "base_url"),
            "missing; only simulated/... models do without; for OpenAI: https://api.openai.com/v1",
        )
    elif provider in HOMES and is_simulated(model):
        yield Problem(("judge", index, "provider"), "a simulated judge speaks OpenAI's protocol: leave provider out")


def _fallbacks(judge: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    ways = judge.get("fallback")
    return [(i, way) for i, way in enumerate(ways) if isinstance(way, dict)] if isinstance(ways, list) else []


def _way_problems(place: Place, way: Mapping[str, Any], judge: Mapping[str, Any]) -> Iterator[Problem]:
    """What a judge asks for that one endpoint, its first or a fallback, cannot do."""
    price = way.get("price")
    cached, plain = (price.get("cached"), price.get("input")) if isinstance(price, dict) else (None, None)
    if isinstance(cached, int | Decimal) and isinstance(plain, int | Decimal) and cached > plain:
        yield Problem((*place, "price", "cached"), "above input: reading from a cache never costs more")
    provider = way.get("provider", judge.get("provider"))
    if provider == "litellm" and ("proxy" in judge or "proxy_variable" in judge):
        yield Problem((*place, "provider"), "litellm is not asked through a proxy: leave the proxy out")
    temperature = judge.get("temperature")
    if provider == "anthropic" and isinstance(temperature, int | Decimal) and temperature > 1:
        where = (*place[:2], "temperature")
        yield Problem(where, "Anthropic takes a temperature from 0 to 1: choose one of these")


def _fallback_problems(place: Place, way: Mapping[str, Any], judge: Mapping[str, Any]) -> Iterator[Problem]:
    """A fallback may cost what the judge does not, and must not make up answers of a model that was not asked."""
    model = str(judge.get("model"))
    simulated = is_simulated(str(way.get("model", model)))
    if simulated != is_simulated(model):
        yield Problem((*place, "model"), "a simulated model does not stand in for another: name the same model")
    elif judge.get("free") is True and not simulated and "price" not in way:
        yield Problem(
            (*place, "price"),
            "missing; the judge is free, and calls here would count as nothing: add price = { input = DOLLARS, "
            "output = DOLLARS } per million tokens, with 0 for both where it is free too",
        )


def _name_problems(tables: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, judge in tables:
        name = judge.get("name", judge.get("model"))
        if not isinstance(name, str):
            continue
        if name in first:
            sentence = (
                f"the name {quoted(name)} is taken by judge[{first[name] + 1}]: give each judge a name of its own"
            )
            yield Problem(("judge", index, "name"), sentence)
        first.setdefault(name, index)


def _budget_problems(budget: object, judges: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """A limit for somebody who is not there would hold nobody back."""
    there = {
        "judge": [name for judge in judges if isinstance(name := judge.get("name", judge.get("model")), str)],
        "model": [model for judge in judges if isinstance(model := judge.get("model"), str)],
    }
    for kind, names in there.items():
        limits = budget.get(kind) if isinstance(budget, dict) else None
        for name in limits if isinstance(limits, dict) else ():
            if name not in names:
                known = ", ".join(map(quoted, dict.fromkeys(names))) or "none"
                yield Problem(("budget", kind, name), f"no {kind} of that name; there is: {known}")


def _lane_problems(tables: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[Problem]:
    """Judges behind one door have one set of limits, and an endpoint that two lanes have in common is reached alike."""
    sound = []
    for index, table in tables:
        try:
            sound.append((index, JudgeTable.model_validate(table)))
        except ValidationError:
            continue
    known: dict[tuple[str | None, ...], tuple[int, JudgeTable]] = {}
    for index, judge in sound:
        routes = _routes(judge)
        if len(set(routes)) < len(routes):
            yield Problem(
                ("judge", index, "fallback"),
                "the same provider, base_url, key_variable and model twice: leave out a fallback that is no other way",
            )
        before, other = next((known[route] for route in routes if route in known), (index, judge))
        one_lane = all(repr(getattr(judge, key)) == repr(getattr(other, key)) for key in _IDENTITY)
        unlike = [
            f"{key} {_said(getattr(other, key))} and {_said(getattr(judge, key))}"
            for key in (*_LANE, *(_TRIES if one_lane else ()), *_WIRE)
            if getattr(other, key) != getattr(judge, key)
        ]
        if unlike:
            yield Problem(
                ("judge", index),
                f"shares a {'lane' if one_lane else 'key'} with judge[{before + 1}] (judge "
                f"{quoted(other.name or other.model)}): same provider, base_url, key_variable and model, but "
                f"{'; '.join(unlike)}: give both the same",
            )
        for route in routes:
            known.setdefault(route, (index, judge))


def _routes(judge: JudgeTable) -> list[tuple[str | None, ...]]:
    """Provider, address, key variable and model of each way to a judge."""
    keys = [judge.key_variable] if judge.key_variables is None else judge.key_variables
    return [
        *((judge.provider, judge.base_url, key, judge.model) for key in keys),
        *(
            (one.provider or judge.provider, one.base_url, one.key_variable, one.model or judge.model)
            for one in judge.fallback
        ),
    ]


def _said(value: object) -> str:
    if isinstance(value, dict):
        return f"with {', '.join(map(quoted, value))}" if value else "not given"
    return "not given" if value is None else str(value)
