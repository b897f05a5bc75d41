"""A schema is sent in a dialect that the endpoint takes: one that it refuses would cost every call of a judge."""

from __future__ import annotations

from copy import deepcopy

import pytest

from venire.arena.records import Request
from venire.judges.protocols.criteria import CRITERIA, SCHEMA
from venire.judges.providers import PROVIDERS, Endpoint
from venire.judges.providers.schemas import anthropic_schema, gemini_schema, openai_schema

RICH = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "score": {"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 1, "description": "from 1 to 10"},
        "pattern": {"type": "string", "pattern": "^[AB]$", "minLength": 1, "format": "uri"},
        "minimum": {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}, "minItems": 2},
        "either": {"oneOf": [{"type": "object", "properties": {"a": {"type": "null"}}}, {"$ref": "#/$defs/side"}]},
    },
    "required": ["score"],
    "not": {"type": "string"},
    "$defs": {"side": {"type": "object", "properties": {"maximum": {"enum": [1, "two"]}}, "minProperties": 1}},
}
CLOSED = {
    "type": "object",
    "properties": {
        "score": {"type": "integer", "description": "from 1 to 10"},
        "pattern": {"type": "string"},
        "minimum": {"type": "array", "items": {"type": "number"}},
        "either": {
            "anyOf": [
                {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": False},
                {"$ref": "#/$defs/side"},
            ]
        },
    },
    "required": ["score"],
    "additionalProperties": False,
    "$defs": {
        "side": {"type": "object", "properties": {"maximum": {"enum": [1, "two"]}}, "additionalProperties": False}
    },
}


def test_anthropic_gets_closed_objects_and_no_bounds():
    assert anthropic_schema(RICH) == CLOSED


def test_openai_gets_the_same_with_every_property_required():
    expected = deepcopy(CLOSED)
    expected["required"] = ["score", "pattern", "minimum", "either"]
    expected["properties"]["either"]["anyOf"][0]["required"] = ["a"]
    expected["$defs"]["side"]["required"] = ["maximum"]
    assert openai_schema(RICH) == expected


def test_gemini_gets_the_keywords_that_it_documents():
    assert gemini_schema(RICH) == {
        "type": "object",
        "properties": {
            "score": {"type": "integer", "minimum": 1, "maximum": 10, "description": "from 1 to 10"},
            "pattern": {"type": "string", "format": "uri"},
            "minimum": {"type": "array", "items": {"type": "number"}, "minItems": 2},
            "either": {"oneOf": [{"type": "object", "properties": {"a": {"type": "null"}}}, {"$ref": "#/$defs/side"}]},
        },
        "required": ["score"],
        "$defs": {"side": {"type": "object", "properties": {"maximum": {"enum": [1, "two"]}}}},
    }


@pytest.mark.parametrize("dialect", [openai_schema, anthropic_schema, gemini_schema])
def test_a_dialect_leaves_the_schema_itself_as_it_was(dialect):
    before = deepcopy(RICH)
    dialect(RICH)
    assert before == RICH


@pytest.mark.parametrize(
    ("name", "model"), [("openai", "m"), ("anthropic", "m"), ("gemini", "m"), ("litellm", "openai/m")]
)
def test_an_answer_is_asked_for_in_the_order_of_its_schema(name, model):
    """A model that is held to a schema writes in its order; sorted, it would prefer before it has scored."""
    provider = PROVIDERS[name].open(Endpoint("http://127.0.0.1:1/v1", None, 1.0, 1, structured=True))
    body = provider.encode(model, Request(({"role": "user", "content": "?"},), 8, schema=SCHEMA)).decode()
    sent = body[body.index('"properties":') :]
    assert sent.index('"first":{') < sent.index('"second":{') < sent.index('"preference":{')
    assert sorted(CRITERIA, key=lambda criterion: sent.index(f'"{criterion}":{{')) == list(CRITERIA)


@pytest.mark.parametrize("dialect", [openai_schema, anthropic_schema, gemini_schema])
def test_the_schema_of_the_criteria_keeps_every_name_in_every_dialect(dialect):
    found = dialect(SCHEMA)
    assert found["required"] == ["first", "second", "preference"]
    assert found["properties"]["preference"] == SCHEMA["properties"]["preference"]
    for side in ("first", "second"):
        assert tuple(found["properties"][side]["properties"]) == CRITERIA
        assert found["properties"][side]["required"] == list(CRITERIA)
        assert found["properties"][side]["additionalProperties"] is False
