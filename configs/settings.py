"""A campaign file as canonical text, equal for equal settings, to detect whether a file has changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any

from venire.arena.campaigns import Limits
from venire.configs.schema import Campaign, Judge, Plan, Stop
from venire.configs.values import needless_matchups


def plain_number(value: Decimal) -> str:
    """The one decimal text of a number: no exponent, no zeros at the end, no sign on 0."""
    text = format(value, "f") if value else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text


_LATER_OF_PLAN = ("band", "battles", "round", "purpose", "top", "place", "orders", "variants", "phase")

_LATER: tuple[tuple[str, Any] | tuple[str, str, Any], ...] = (
    ("durability", "normal"),
    *(("plan", name, Plan.model_fields[name].default) for name in _LATER_OF_PLAN),
    ("plan", "stop", Stop().model_dump()),
    ("budget", "tokens", None),
    ("budget", "judge", {}),
    ("budget", "model", {}),
)
"""Keys that a later version brought, with their defaults: a file without them is the same as it was before."""

_TRANSPORT = ("transport", "wave_size", "max_wait", "after_wait", "batch_price")
"""How the calls of a respondent travel: they may change between two starts, and are no part of the settings."""

_LATER_OF_JUDGE = (
    "key_variables",
    "fallback",
    *(field.name for field in fields(Limits) if field.name != "requests_per_minute"),
    "share",
    "skew",
    "max_elapsed",
    "patience",
    "connect_timeout",
    "read_timeout",
    "headers",
    "proxy",
    "proxy_variable",
    "system",
    "logprobs",
    "best",
    "context",
    "too_long",
    "examples",
    "options",
    "prompts",
    "recorded",
    "map",
    "dialect",
    "structured_output",
)
"""The same in a `[[judge]]`."""


def canonical_settings(file: Campaign) -> str:
    """The file as canonical JSON, defaults included, without contestants, editors and the quality asked for."""
    settings = file.model_dump(exclude={"contestant": True, "editor": True, "quality": True, "budget": {"generation"}})
    for plan in (settings["plan"], *settings["plan"]["phase"]):
        if needless_matchups(plan["policy"]):
            plan["matchups"] = None
    for *tables, key, default in _LATER:
        table = settings
        for name in tables:
            table = table[name]
        if table[key] == default:
            del table[key]
    for judge, written in zip(settings["judge"], file.judge, strict=True):
        _drop_transport(judge)
        for key in _LATER_OF_JUDGE:
            if getattr(written, key) == Judge.model_fields[key].default:
                del judge[key]
        for priced in (judge, *judge.get("fallback", ())):
            if priced["price"] is not None:  # a later version brought cached and written
                priced["price"] = {name: rate for name, rate in priced["price"].items() if rate is not None}
        _drop_unsaid(judge.get("fallback", ()))
    return _canonical(settings)


def _drop_transport(respondent: dict[str, Any]) -> None:
    for key in _TRANSPORT:
        del respondent[key]


def _drop_unsaid(tables: Iterable[dict[str, Any]]) -> None:
    """Take out what a later version brought to tables that are no judge's own."""
    for table in tables:
        if table["structured_output"] is None:
            del table["structured_output"]


def generation_settings(file: Campaign) -> str:
    """The settings of the file that determine which completions are generated, as canonical JSON."""
    settings = file.model_dump(include={"seed", "contestant", "data", "plan", "budget", "durability"})
    for contestant in settings["contestant"]:
        _drop_transport(contestant)
        _drop_unsaid([contestant, *contestant["fallback"]])
    settings["data"] = {"instructions": file.data.instructions}
    settings["plan"] = {"instructions": file.plan.instructions}
    settings["budget"] = settings["budget"]["generation"]
    return _canonical(settings)


def editing_settings(file: Campaign) -> str:
    """The settings of the file that determine which completions are edited, and how, as canonical JSON."""
    settings = file.model_dump(include={"seed", "editor", "data", "plan", "budget", "durability"})
    for editor in settings["editor"]:
        _drop_transport(editor)
    for editor in settings["editor"]:
        _drop_unsaid([editor, *editor["fallback"]])
    settings["data"] = {key: settings["data"][key] for key in ("instructions", "completions", "models")}
    settings["plan"] = {"instructions": file.plan.instructions}
    settings["budget"] = settings["budget"]["generation"]
    return _canonical(settings)


def _canonical(settings: Mapping[str, Any]) -> str:
    """One text for equal settings; numbers that may have decimals as texts, so that 5 is 5.00."""

    def plain(value: object) -> str:
        assert isinstance(value, Decimal)
        return plain_number(value)

    return json.dumps(settings, default=plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
