"""Problems of a campaign file as sentences: the place, the value found, the values accepted.

A user may have pasted a key into the file. The value of an unknown key is therefore never shown, nor that of a key
that names secrets or addresses, nor any text or name that looks like a key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from venire.arena.wording import nearest
from venire.configs.values import OneOf

Place = tuple[int | str, ...]
"""Where in the file: keys, and positions in lists counted from 0."""

_UNSHOWN = frozenset({"base_url", "headers", "key_variable", "key_variables", "proxy", "proxy_variable"})
_PREFIXES = re.compile(r"(sk|pk|rk|gsk|hf|ghp|xai|pplx|bearer)[-_ ]|AIza|AKIA|eyJ", re.IGNORECASE)
_LONG = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/=_-]{32,}")
_SECRET_NAMES = re.compile(r"key|token$|secret|password", re.IGNORECASE)


class Problem(NamedTuple):
    """One thing to mend: its place and a sentence about it."""

    place: Place
    sentence: str


def quoted(text: str) -> str:
    """A text of the file between quotes, or words instead where it looks like a key or is long."""
    if _PREFIXES.match(text) or (_LONG.fullmatch(text) and "/" not in text):
        return f"a text of {len(text)} characters that looks like a key and is not shown"
    if len(text) > 60:
        return f"a text of {len(text)} characters"
    return json.dumps(text, ensure_ascii=False)


def key_path(place: Place) -> str:
    """The place as written in a TOML key, positions in lists counted from 1: `judge[2].requests_per_minute`."""
    path = ""
    for part in place:
        if isinstance(part, int):
            path += f"[{part + 1}]"
            continue
        name = quoted(part)
        if not name.startswith('"'):
            name = f"({name})"
        elif re.fullmatch(r"[A-Za-z0-9_-]+", part):
            name = part
        path += f".{name}" if path else name
    return path


def lines(path: object, raw: Mapping[str, Any], problems: Iterable[Problem]) -> str:
    """One line a problem: the file, the key path, the name of the judge or contestant where known, the sentence."""
    return "\n".join(
        f"{path}: {key_path(problem.place)}{_whose(raw, problem.place)}: {problem.sentence}"
        for problem in dict.fromkeys(problems)
    )


def found_problems(error: ValidationError, root: type[BaseModel]) -> list[Problem]:
    """The complaints of a schema whose outermost table is `root`, as sentences that keep its secrets."""
    return [_problem(root, detail["loc"], detail["type"], detail) for detail in error.errors(include_url=False)]


def _problem(root: type[BaseModel], place: Place, kind: str, detail: Any) -> Problem:
    model, accepted = _described(root, place)
    if kind == "extra_forbidden" and model is not None:
        return Problem(place, _unknown(str(place[-1]), sorted(model.model_fields)))
    if kind == "missing":
        return Problem(place, f"missing; accepted: {accepted}")
    reason = str(detail["ctx"]["error"]) if kind == "value_error" else ""
    if kind == "unknown_name" and "ctx" in detail:
        reason = detail["msg"]
    if not _UNSHOWN.isdisjoint(place):
        return Problem(place, reason or f"found {_kind_of(detail['input'])}; accepted: {accepted}")
    found = _shown(detail["input"]) + (f" ({reason})" if reason else "")
    return Problem(place, f"found {found}; accepted: {accepted}")


def _unknown(key: str, accepted: list[str]) -> str:
    if _SECRET_NAMES.search(key):
        return (
            "unknown key; no secret stands in this file: put it into an environment variable and name that in "
            "key_variable of a [[judge]]"
        )
    near = nearest(key, accepted)
    return f"unknown key; accepted: {', '.join(accepted)}" if near is None else f'unknown key; did you mean "{near}"?'


def _described(root: type[BaseModel], place: Place) -> tuple[type[BaseModel] | None, str]:
    """The table that contains the place, where the schema has one, and the values accepted there."""
    model: type[BaseModel] | None = root
    table, accepted, named = model, "", False
    for part in place:
        if isinstance(part, int):
            continue
        table = model
        if named:  # a name chosen by the user for one of our tables
            named = False
            continue
        field = model.model_fields.get(part) if model is not None else None
        if field is None:
            break
        choice = next((mark for mark in _metadata(field) if isinstance(mark, OneOf)), None)
        accepted = field.description or "" if choice is None else choice.accepted
        model = _inner_model(field.annotation)
        named = get_origin(field.annotation) is dict
    return table, accepted


def _metadata(field: FieldInfo) -> tuple[object, ...]:
    """The metadata of a field's type, including the type inside an optional."""
    return (
        *field.metadata,
        *(mark for part in get_args(field.annotation) for mark in getattr(part, "__metadata__", ())),
    )


def _inner_model(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _inner_model(part)) is not None), None)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) < 10**18:
        return str(value)
    if isinstance(value, Decimal) and len(str(value)) <= 40:
        return str(value)
    return _kind_of(value)


def _kind_of(value: object) -> str:
    kinds: dict[type, str] = {
        bool: "a truth value",
        int: "a whole number",
        Decimal: "a number",
        str: "a text",
        list: "a list",
        dict: "a table",
    }
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), "a date or time")


def _whose(raw: Mapping[str, Any], place: Place) -> str:
    """The name of the judge or contestant that a place belongs to."""
    if len(place) < 2 or place[0] not in ("judge", "contestant", "editor") or not isinstance(place[1], int):
        return ""
    one = raw[place[0]][place[1]]
    name = one.get("name", one.get("model")) if isinstance(one, dict) else None
    return f" ({place[0]} {quoted(name)})" if isinstance(name, str) else ""
