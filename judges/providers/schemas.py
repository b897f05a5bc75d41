"""A JSON Schema in the dialect of each wire format: what an endpoint would refuse is left out of it.

A schema that is left looser than it was holds the answer to less, and nothing is lost by it: the prompt asks for the
same in words, and what comes back is read by the same rules. A schema that is refused would cost the whole trial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import lru_cache
from typing import Any

import orjson

SchemaForm = Callable[[Mapping[str, Any]], dict[str, Any]]

_CLOSED = frozenset(
    {"$defs", "$ref", "additionalProperties", "anyOf", "description", "enum", "items", "properties", "required", "type"}
)
"""What OpenAI's strict mode and Anthropic both take. Bounds of numbers are not among it: Anthropic refuses them, its
models do so behind gateways as well, and OpenAI takes them for some models only."""

_GEMINI = _CLOSED | {"$anchor", "$id", "format", "maxItems", "maximum", "minItems", "minimum", "oneOf", "prefixItems"}


def in_order(form: SchemaForm, schema: Mapping[str, Any]) -> orjson.Fragment:
    """The schema in a dialect, as JSON with its names in its own order.

    A model that is held to a schema writes in that order: names that were sorted would have it say what it prefers
    before it has scored the second answer.
    """
    return _written(form, orjson.dumps(schema, default=dict))


@lru_cache(maxsize=64)
def _written(form: SchemaForm, schema: bytes) -> orjson.Fragment:
    return orjson.Fragment(orjson.dumps(form(orjson.loads(schema))))


def openai_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """For `strict: true`: every object closed, and every property of it required."""
    return _closed(schema, all_required=True)


def anthropic_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """For `output_config.format`: every object closed; a property may be missing."""
    return _closed(schema, all_required=False)


def gemini_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """For `responseJsonSchema`: the keywords that it documents, bounds of numbers among them."""
    return _kept(schema, _GEMINI)


def _closed(schema: Mapping[str, Any], *, all_required: bool) -> dict[str, Any]:
    def close(one: dict[str, Any]) -> dict[str, Any]:
        if "properties" in one:
            one["additionalProperties"] = False
            if all_required:
                one["required"] = list(one["properties"])
        for name in ("properties", "$defs"):
            for inner in one.get(name, {}).values():
                close(inner)
        for inner in (*one.get("anyOf", ()), *([one["items"]] if "items" in one else ())):
            close(inner)
        return one

    return close(_kept(schema, _CLOSED))


def _kept(schema: Mapping[str, Any], keywords: Set[str]) -> dict[str, Any]:
    """The schema with these keywords alone; keys below `properties` and `$defs` are names, not keywords."""
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "oneOf" and keyword not in keywords:
            keyword = "anyOf"
        if keyword not in keywords:
            continue
        if keyword in ("properties", "$defs"):
            found[keyword] = {name: _kept(inner, keywords) for name, inner in value.items()}
        elif keyword in ("anyOf", "oneOf", "prefixItems"):
            found[keyword] = [_kept(inner, keywords) for inner in value]
        elif isinstance(value, Mapping):
            found[keyword] = _kept(value, keywords)
        else:
            found[keyword] = value
    return found
