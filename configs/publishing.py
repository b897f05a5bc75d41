"""Campaign files for other readers: the JSON Schema that editors complete keys from, and a file with its defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from venire.arena.budgets import UNITS
from venire.configs.loading import checked_file, toml_value
from venire.configs.schema import Campaign

_MASKED = "[masked]"


def template_text() -> str:
    """The campaign file that a newcomer starts from."""
    text = files("venire.configs").joinpath("template.toml").read_text(encoding="utf-8")
    return text.replace("@limits@", "\n".join(unit.template for unit in UNITS.values()))


def campaign_schema() -> dict[str, Any]:
    """The JSON Schema of a campaign file. Rules that concern more than one key are checked by `venire plan` alone."""
    schema: dict[str, Any] = _trimmed(Campaign.model_json_schema())
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Venire campaign file"} | schema


def schema_text() -> str:
    """The same as the text of a file."""
    return json.dumps(campaign_schema(), indent=1, ensure_ascii=False) + "\n"


def _trimmed(part: Any) -> Any:
    """Without what TOML has not, null, and without pydantic's titles and texts in place of numbers."""
    if isinstance(part, list):
        return [_trimmed(entry) for entry in part]
    if not isinstance(part, dict):
        return part
    found: dict[str, Any] = {}
    for name, value in part.items():
        if name == "properties":
            found[name] = {key: _trimmed(schema) for key, schema in value.items()}
        elif not (name == "title" or (name == "default" and value is None)):
            found[name] = _trimmed(value).replace("$defs", "definitions") if name == "$ref" else _trimmed(value)
    if "$defs" in found:
        found["definitions"] = found.pop("$defs")
    ways = [one for one in found.get("anyOf", ()) if one != {"type": "null"}]
    if {"type": "number"} in ways and '"default"' not in found.get("description", ""):
        ways = [way for way in ways if way.get("type") != "string"]  # of exact decimals, which pydantic takes as texts
        if isinstance(found.get("default"), str):
            found["default"] = float(found["default"])
    if len(ways) == 1:
        return {name: value for name, value in found.items() if name != "anyOf"} | ways[0]
    return found | ({"anyOf": ways} if ways else {})


def resolved_text(path: Path) -> str:
    """A campaign file as TOML with every default written out; values of headers are masked, and nothing is read beside.

    Raises InputError as `load_campaign` does.
    """
    file = checked_file(path)
    tables = file.model_dump(exclude_none=True)
    for kind in ("judge", "contestant", "editor"):
        for table in tables[kind]:
            table.setdefault("temperature", "default")
            table["headers"] = dict.fromkeys(table["headers"], _MASKED)
    return "\n".join(_lines("", tables)).strip() + "\n"


def _lines(name: str, table: Mapping[str, Any]) -> list[str]:
    """A table's own keys, then the tables in it; empty ones are left out."""
    own, inner = [], []
    for key, value in table.items():
        place = f"{name}.{key}" if name else key
        if isinstance(value, Mapping) and all(word.isidentifier() for word in value):
            inner += ["", f"[{place}]", *lines] if (lines := _lines(place, value)) else []
        elif isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            inner += [line for row in value for line in ("", f"[[{place}]]", *_lines(place, row))]
        elif value not in ([], {}):
            own.append(f"{key} = {toml_value(value)}")
    return own + inner
