"""Each vendor's own wire format, from its documentation: a server on loopback answers, the adapter has to understand.

A file in `vendors/` holds one vendor: what it is asked and what it answers, each with the page that says so and the
date of the copy that was read. Words of messages may be ours where a page gives none: they decide nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest
from ry import Client, SocketAddr

from venire.arena.campaigns import Limits
from venire.arena.errors import CallError, Fault, TransientError
from venire.arena.records import Reply
from venire.judges.providers import PROVIDERS, Endpoint, connections, error_bodies, price_table, vendors
from venire.judges.providers.price_table import find_price
from venire.judges.providers.vendors import VENDORS as DIFFERENCES
from venire.judges.providers.vendors import vendor_of

HERE = Path(__file__).resolve().parent
FILES = sorted((HERE / "vendors").glob("*.json"))
VENDORS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
ANSWERS = [
    pytest.param(vendor, answer, id=f"{name}: {answer['name']}")
    for name, vendor in VENDORS.items()
    for answer in vendor["answers"]
]
GATEWAYS = json.loads((HERE / "gateways.json").read_text(encoding="utf-8"))
GATEWAY_ADDRESS = "https://gateway.example.com/v1"
DOCUMENT = HERE.parents[2] / "docs" / "providers.md"


@pytest.fixture(autouse=True)
def every_host_is_this_machine(monkeypatch):
    """So that an adapter may be told a vendor's own host."""
    here = [SocketAddr.parse("127.0.0.1:0")]
    known = [vendor["base_url"] for vendor in VENDORS.values()]
    hosts = {urlsplit(address).hostname: here for address in (*known, GATEWAY_ADDRESS)}
    monkeypatch.setattr(connections, "Client", partial(Client, resolve=hosts))


def opened(vendor, server, key):
    """The vendor's adapter: its host and its path, at the server's port."""
    home = urlsplit(vendor["base_url"])
    address = f"http://{home.hostname}:{urlsplit(server.url).port}{home.path}"
    return PROVIDERS[vendor["provider"]].open(Endpoint(address, key, 30.0, 4))


def outcome(vendor, answer, serving, saying, question, key):
    """What comes of one call, and what the server heard; `{key}` in an answer is the key echoed."""

    async def call():
        said = saying(
            orjson.dumps(answer["body"]).decode().replace("{key}", key), answer["status"], answer.get("headers")
        )
        async with serving(said) as server:
            provider = opened(vendor, server, key)
            try:
                return await provider.send(provider.encode(vendor["model"], question), "step-1"), server
            except CallError as error:
                return error, server
            finally:
                await provider.close()

    return asyncio.run(call())


def as_json(value):
    """With lists for tuples."""
    return json.loads(json.dumps(value))


SCHEMA = {
    "type": "object",
    "properties": {
        "first": {"type": "integer", "minimum": 1, "maximum": 10},
        "preference": {"type": "string", "enum": ["first", "second"]},
    },
    "required": ["first", "preference"],
    "additionalProperties": False,
}
SHAPED = [
    pytest.param(vendor, asked, id=f"{name}: {asked}")
    for name, vendor in VENDORS.items()
    for asked in vendor.get("shaped", {})
]


@pytest.mark.parametrize(("vendor", "asked"), SHAPED)
def test_a_schema_and_log_probabilities_are_asked_for_in_the_vendors_own_form(vendor, asked, question):
    """And only where the page says that all of its models take them."""
    provider = PROVIDERS[vendor["provider"]].open(Endpoint(vendor["base_url"], None, 1.0, 1))
    extended = replace(question, schema=SCHEMA) if asked == "schema" else replace(question, top_logprobs=20)
    body, plain = (orjson.loads(provider.encode(vendor["model"], one)) for one in (extended, question))
    added = vendor["shaped"][asked]["body"]
    expected = {
        name: {**plain.get(name, {}), **value} if isinstance(value, dict) else value for name, value in added.items()
    }
    assert body == {**plain, **expected}
    if asked == "schema":
        assert provider.is_structured(vendor["model"]) == bool(added)


def first_answer(vendor):
    return next(answer for answer in vendor["answers"] if answer["status"] == 200)


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)
def test_a_request_has_the_vendors_own_form(vendor, serving, saying, question, key):
    _, server = outcome(vendor, first_answer(vendor), serving, saying, question, key)
    asked = vendor["request"]
    assert server.paths == [asked["path"]]
    assert server.body() == asked["body"]
    heard = server.headers[0]
    assert {name: heard.get(name) for name in asked["headers"]} == {
        name: value.replace("{key}", key) for name, value in asked["headers"].items()
    }
    assert not set(asked.get("absent_headers", [])) & set(heard)
    assert key not in server.queries[0] + server.paths[0]


@pytest.mark.parametrize(("vendor", "answer"), ANSWERS)
def test_an_answer_is_understood(vendor, answer, serving, saying, question, key):
    came, server = outcome(vendor, answer, serving, saying, question, key)
    assert len(server.paths) == 1
    if "reply" in answer:
        assert isinstance(came, Reply)
        assert as_json({name: getattr(came, name) for name in answer["reply"]}) == answer["reply"]
        assert orjson.loads(came.raw) == answer["body"]
        return
    expected = answer["error"]
    assert isinstance(came, CallError)
    fault = Fault[expected["fault"]]
    assert (came.fault, came.status) == (fault, answer["status"])
    assert isinstance(came, TransientError) == (fault in (Fault.TRANSIENT, Fault.RATE_LIMITED))
    assert came.retry_after == expected.get("retry_after")
    assert came.may_be_billed == expected.get("may_be_billed", False)
    assert came.by_status == (answer["status"] if expected.get("unexplained") else None)
    assert expected.get("message", "HTTP") in str(came)
    if "size" in expected:
        assert came.size is not None
        assert [came.size.tokens, came.size.context] == expected["size"]
    assert key not in repr(vars(came)) + str(came)


@pytest.mark.parametrize("answer", GATEWAYS, ids=lambda one: f"{one['gateway']}: {one['name']}")
def test_a_refusal_of_a_gateway_is_understood(answer, serving, saying, question, key):
    """It stands before any vendor, at a host that says nothing."""
    gateway = {"base_url": GATEWAY_ADDRESS, "provider": "openai", "model": "m"}
    test_an_answer_is_understood(gateway, answer, serving, saying, question, key)


@pytest.mark.parametrize("row", error_bodies.TOO_LONG, ids=lambda row: f"{row.who}: {row.pattern.pattern[:40]}")
def test_every_sentence_of_a_prompt_that_is_too_long_was_seen_somewhere(row):
    bodies = [
        answer["body"]
        for answer in (*GATEWAYS, *(answer for vendor in VENDORS.values() for answer in vendor["answers"]))
    ]
    messages = [error_bodies.read_error_body(body).message for body in bodies]
    assert any(row.pattern.fullmatch(error_bodies.without_wrapping(message)) for message in messages)


REFUSALS = frozenset({401, 402, 403, 412, 424, 429})
EFFECTS = {
    "RATE_LIMITED": "waits",
    "FILTERED": "a verdict: filtered",
    "TOO_LONG": "a verdict: too long",
    "BAD_REQUEST": "its trial fails",
    "TRANSIENT": "tried again",
}


def row_of(who, answer):
    """A refusal as the table of the documentation has it, but for the words of its code."""
    error = answer["error"]
    closes = "undecided" if error.get("unexplained") else "closes its route"
    effect = EFFECTS.get(error["fault"], closes)
    return who, answer["name"], str(answer["status"]), effect, answer["source"], answer["date"]


def test_the_table_of_refusals_says_what_the_fixtures_say():
    page = DOCUMENT.read_text(encoding="utf-8").partition("## Refusals")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"][2:]
    answers = [(one["gateway"], one) for one in GATEWAYS]
    for vendor in VENDORS.values():
        for one in vendor["answers"]:
            closing = one.get("error", {}).get("fault") in ("AUTHENTICATION", "QUOTA")
            if one["status"] in REFUSALS or closing:
                answers.append((vendor["vendor"], one))
    found = [(*row[:3], row[4], re.sub(r".*\((.*)\)", r"\1", row[5]), row[6]) for row in rows]
    assert sorted(found) == sorted(row_of(who, one) for who, one in answers)
    said = {(who, one["name"]): json.dumps([one["body"], one.get("headers")]) for who, one in answers}
    for row in rows:
        assert row[3] == "none" or row[3].strip("`") in said[row[0], row[1]]


@pytest.mark.parametrize(("vendor", "answer"), [one for one in ANSWERS if "limits" in one.values[1]])
def test_the_limits_in_the_headers_are_told(vendor, answer, serving, saying, question, key):
    told = []

    async def call():
        async with serving(saying(answer["body"], answer["status"], answer["headers"])) as server:
            provider = opened(vendor, server, key)
            provider.on_limits = lambda limits, hold: told.append(limits)
            try:
                with suppress(CallError):
                    await provider.send(provider.encode(vendor["model"], question), "step-1")
            finally:
                await provider.close()

    asyncio.run(call())
    assert told == [Limits(**answer["limits"])]


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)
def test_a_body_is_the_same_bytes_whatever_the_order_of_names(vendor, question):
    provider = PROVIDERS[vendor["provider"]].open(Endpoint(vendor["base_url"], None, 1.0, 1))
    turned = type(question)(
        tuple(dict(reversed(list(message.items()))) for message in question.messages),
        question.max_tokens,
        question.temperature,
        question.seed,
    )
    assert provider.encode(vendor["model"], question) == provider.encode(vendor["model"], turned)


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)
def test_the_models_are_asked_for_with_the_same_key(vendor, serving, saying, key):
    async def call():
        async with serving(saying({"data": []})) as server:
            provider = opened(vendor, server, key)
            try:
                return await provider.check(), server
            finally:
                await provider.close()

    warning, server = asyncio.run(call())
    assert warning is None
    assert server.paths == [f"{urlsplit(vendor['base_url']).path}/models"]
    names = [name for name, value in vendor["request"]["headers"].items() if "{key}" in value]
    assert all(key in server.headers[0][name] for name in names)


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)
def test_every_part_of_a_fixture_names_its_page_and_date(vendor):
    parts = [vendor["request"], *vendor.get("shaped", {}).values(), *vendor["answers"]]
    for part in parts:
        assert re.match(r"https://\S+\.\S+/\S+", part["source"])
        assert date(2023, 1, 1) <= date.fromisoformat(part["date"])
    names = [answer["name"] for answer in vendor["answers"]]
    assert len(set(names)) == len(names)
    assert all(("reply" in answer) != ("error" in answer) for answer in vendor["answers"])


def test_every_vendor_that_is_said_to_be_checked_has_its_fixture():
    """The table of the documentation and the fixtures name the same vendors, sources and dates."""
    page = DOCUMENT.read_text(encoding="utf-8")
    checked = page.partition("## Checked")[2].partition("## OpenAI-compatible, not checked")[0]
    lines = [line.strip("|") for line in checked.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines[2:]]
    said = {row[0]: (row[1].strip('`"'), re.sub(r".*\((.*)\)", r"\1", row[4]), row[5]) for row in rows}
    assert said == {
        vendor["vendor"]: (vendor["provider"], vendor["request"]["source"], vendor["request"]["date"])
        for vendor in VENDORS.values()
    }
    gaps = [f"- {vendor['vendor']}: {gap}" for vendor in VENDORS.values() for gap in vendor.get("missing", [])]
    assert sorted(gaps) == sorted(line for line in checked.splitlines() if line.startswith("- "))


def test_the_table_of_schemas_and_log_probabilities_says_what_the_fixtures_say():
    page = DOCUMENT.read_text(encoding="utf-8").partition("## Schemas and log-probabilities")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"][2:]
    shaped = {vendor["vendor"]: vendor["shaped"] for vendor in VENDORS.values() if "shaped" in vendor}
    assert sorted(row[0] for row in rows) == sorted(shaped)
    for name, schema, logprobs in rows:
        for cell, part in ((schema, shaped[name].get("schema")), (logprobs, shaped[name].get("logprobs"))):
            if part is None:
                assert cell == "not sourced"
                continue
            word, rest = cell.split(", ")
            assert rest.endswith(f"({part['source']}) {part['date']}")
            numbers = re.findall(r": (\d+)", json.dumps(part["body"])) or ["none"]
            assert [word] == (numbers if cell is logprobs else ["yes" if part["body"] else "no"])


def test_every_difference_of_a_vendor_has_its_page_and_date():
    for vendor in DIFFERENCES.values():
        assert re.match(r"https://\S+\.\S+/\S+", vendor.source)
        assert date.fromisoformat(vendor.date)


def test_every_vendor_that_is_known_by_name_is_documented_with_its_address_and_key():
    page = DOCUMENT.read_text(encoding="utf-8").partition("## Short names")[2].partition("\n## ")[0]
    rows = [
        [cell.strip().strip("`<>") for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line[:1] == "|"
    ][2:]
    assert rows == [
        [f"{name}:", vendor.provider, home.base_url, home.key_variable or "none", home.key_page or "none"]
        for name, vendor in DIFFERENCES.items()
        if (home := vendor.home) is not None
    ]


@pytest.mark.parametrize("name", [name for name, vendor in DIFFERENCES.items() if vendor.home is not None])
def test_a_vendor_is_asked_where_its_differences_are_known(name):
    vendor = DIFFERENCES[name]
    home = vendor.home
    assert (home.key_variable is None) == (home.key_page is None) == (not vendor.hosts)
    assert vendor_of(home.base_url) == (vendor if vendor.hosts else vendors._NONE)
    assert PROVIDERS[vendor.provider].vendor(name) is vendor
    assert all(PROVIDERS[vendor.provider].vendor(alias) is vendor for alias in vendor.aliases)


def test_a_host_that_only_looks_like_a_vendors_is_none():
    none = vendor_of("https://api.example.org/v1")
    for host in ("api.mistral.ai.example.org", "notapi.mistral.ai", "openai.azure.com.example.org", "x-together.xyz"):
        assert vendor_of(f"https://{host}/v1") == none
    assert vendor_of("https://API.Mistral.AI/v1").renamed == {"seed": "random_seed"}


@pytest.mark.parametrize("model", ["gpt-5.6-sol", "gpt-6-astra", "gpt-6.1-sol"])
def test_the_newest_reasoning_models_get_no_temperature(model, question):
    provider = PROVIDERS["openai"].open(Endpoint("https://api.openai.com/v1", None, 1.0, 1))
    assert set(orjson.loads(provider.encode(model, question))) == {"model", "messages", "seed", "max_completion_tokens"}


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("openai/gpt-oss-120b", "https://api.groq.com/openai/v1"),
        ("mistral-small-latest", "https://api.mistral.ai/v1"),
        ("meta-llama/Llama-3.3-70B-Instruct-Turbo", "https://api.together.xyz/v1"),
        ("accounts/fireworks/models/gpt-oss-120b", "https://api.fireworks.ai/inference/v1"),
        ("claude-haiku-4-5", "https://api.anthropic.com/v1"),
        ("gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta"),
        ("models/gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta"),
        ("openai/gpt-4o-mini", "https://openrouter.ai/api/v1"),
    ],
)
def test_a_price_is_found_by_the_name_that_the_vendor_knows(model, base_url):
    assert find_price(model, base_url) is not None


def test_a_vendors_own_price_comes_before_that_of_the_name(monkeypatch):
    def entry(dollars):
        return {"mode": "chat", "input_cost_per_token": dollars, "output_cost_per_token": dollars}

    monkeypatch.setattr(price_table, "_table", lambda: {"m": entry(1), "groq/m": entry(2), "groq/n": entry(3)})
    groq, other = "https://api.groq.com/openai/v1", "https://api.example.org/v1"
    assert [find_price("m", url).input // 10**15 for url in (groq, other, None)] == [2, 1, 1]
    assert find_price("n", other) is None
