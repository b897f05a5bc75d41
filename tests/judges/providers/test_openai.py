"""What is particular to plain HTTP: names of parameters, connections, cookies, proxies, sizes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial

import orjson
import pytest
from aiohttp import web
from ry import Client

from venire.arena.campaigns import Limits
from venire.arena.errors import CallError, Fault, InputError
from venire.arena.records import Request
from venire.judges.providers import Endpoint, connections
from venire.judges.providers.openai import MODEL_PARAMETERS, OpenAIProvider

REQUEST = Request(({"role": "user", "content": "1 or 2?"},), 64, temperature=0.0, seed=7)


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("gpt-4o-mini", False),
        ("gpt-4.1", False),
        ("gpt-5", True),
        ("gpt-5-mini", True),
        ("gpt-5.1", True),
        ("gpt-5-chat-latest", False),
        ("o1", True),
        ("o1-2024-12-17", True),
        ("o3-mini", True),
        ("o4-mini", True),
        ("o10", False),
        ("olmo-3", False),
        ("openai/o3-mini", False),
        ("my-gpt-5", False),
    ],
)
def test_reasoning_models_get_the_parameters_that_they_accept(model, reasons):
    body = orjson.loads(OpenAIProvider(Endpoint("http://host/v1", None, 1.0, 1)).encode(model, REQUEST))
    limit = "max_completion_tokens" if reasons else "max_tokens"
    assert set(body) == {"model", "messages", "seed", limit} | (set() if reasons else {"temperature"})
    assert body[limit] == 64
    assert body["model"] == model


def test_every_dialect_has_a_reason():
    assert all(dialect.reason for dialect in MODEL_PARAMETERS.values())


def test_the_bytes_of_a_body_are_pinned():
    provider = OpenAIProvider(Endpoint("http://host/v1", None, 1.0, 1))
    assert provider.encode("judge", REQUEST) == (
        b'{"max_tokens":64,"messages":[{"content":"1 or 2?","role":"user"}],"model":"judge","seed":7,"temperature":0.0}'
    )


def run(serving, answer, calls, **options):
    async def go():
        async with serving(answer) as vendor:
            provider = OpenAIProvider(Endpoint(vendor.url, options.pop("key", None), 30.0, 4), **options)
            try:
                return [await provider.send(provider.encode("judge", REQUEST), f"{n}") for n in range(calls)], vendor
            except CallError as error:
                return error, vendor
            finally:
                await provider.close()

    return asyncio.run(go())


def test_calls_share_a_connection_and_keep_no_cookies(serving, saying, good):
    _, vendor = run(serving, saying(good, headers={"Set-Cookie": "session=1; Path=/"}), 3)
    assert len(set(vendor.peers)) == 1
    assert not any("cookie" in headers for headers in vendor.headers)


def test_proxies_of_the_environment_are_not_used(serving, saying, good, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    replies, vendor = run(serving, saying(good), 1)
    assert replies[0].text == "The first is better."
    assert len(vendor.paths) == 1


def test_without_a_key_no_authorization_is_sent(serving, saying, good):
    _, vendor = run(serving, saying(good), 1)
    assert "authorization" not in vendor.headers[0]


def test_a_wait_until_a_date_is_counted_from_the_given_clock(serving, saying):
    answer = saying({}, 429, {"Retry-After": "Sat, 21 Nov 2026 10:01:00 GMT", "Date": "none"})
    error, _ = run(serving, answer, 1, wall=lambda: datetime(2026, 11, 21, 10, 0, tzinfo=UTC))
    assert error.retry_after == 60.0


def test_an_answer_without_end_is_left(serving):
    """A server that never stops talking must not fill the memory."""
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < 200:
            await response.write(b" " * 2**20)
            sent += 1
        return response

    error, vendor = run(serving, answer, 1)
    assert (error.fault, error.may_be_billed) == (Fault.BAD_REQUEST, True)
    assert sent < 100
    assert len(vendor.paths) == 1


def test_check_says_that_the_host_is_unknown(monkeypatch):
    monkeypatch.setattr(connections, "Client", partial(Client, resolve={"api.example.org": []}))
    provider = OpenAIProvider(Endpoint("http://api.example.org/v1", None, 5.0, 1))
    with pytest.raises(InputError, match=r"api\.example\.org/v1.*unknown host"):
        asyncio.run(provider.check())


def test_as_many_connections_as_calls_in_flight(serving, good):
    """A pool smaller than the lane would make calls wait where nobody counts it."""
    waiting = 0

    async def go():
        everyone = asyncio.Event()

        async def answer(request: web.Request) -> web.StreamResponse:
            nonlocal waiting
            waiting += 1
            if waiting == 4:
                everyone.set()
            await everyone.wait()
            return web.json_response(good)

        async with serving(answer) as vendor:
            provider = OpenAIProvider(Endpoint(vendor.url, None, 10.0, 4))
            body = provider.encode("judge", REQUEST)
            try:
                await asyncio.gather(*(provider.send(body, f"{n}") for n in range(4)))
            finally:
                await provider.close()
            return len(set(vendor.peers))

    assert asyncio.run(go()) == 4


def account(model, url="https://api.openai.com/v1", key="sk-secret-1"):
    return OpenAIProvider(Endpoint(url, key, 1.0, 1)).limits_key(model)


def test_an_account_is_a_host_a_key_and_a_model_as_the_vendor_counts_it():
    base = account("gpt-4o-mini")
    assert base == account("gpt-4o-mini-2024-07-18") == account("gpt-4o-mini", "https://API.openai.com:443/x")
    assert base[0] == "api.openai.com"
    assert "sk-secret-1" not in repr(base)
    others = [account("gpt-4o"), account("gpt-4o-mini", key="sk-secret-2"), account("gpt-4o-mini", key=None)]
    others.append(account("gpt-4o-mini", "https://api.openai.com:444/v1"))
    assert base not in others
    assert len(set(others)) == 4


def test_models_are_one_account_only_where_the_vendor_counts_them_as_one():
    assert account("a-2024-07-18", "http://localhost:8000/v1") != account("a", "http://localhost:8000/v1")
    free = [account(model, "https://openrouter.ai/api/v1") for model in ("x/a:free", "y/b:free", "x/a")]
    assert free[0] == free[1] != free[2]


def test_headers_of_the_endpoint_go_with_every_call_and_the_check(serving, saying, good):
    async def go():
        async with serving(saying(good)) as vendor:
            headers = {"X-Title": "a title", "user-agent": "mine"}
            provider = OpenAIProvider(Endpoint(vendor.url, "sk-secret-1", 30.0, 4, headers=headers))
            try:
                await provider.send(provider.encode("judge", REQUEST), "1")
                await provider.check()
            finally:
                await provider.close()
            return vendor

    vendor = asyncio.run(go())
    for heard in vendor.headers:
        assert (heard["x-title"], heard["user-agent"]) == ("a title", "mine")
        assert heard["authorization"] == "Bearer sk-secret-1"
        assert heard["accept-encoding"] == "gzip,deflate"
    assert len(vendor.headers) == 2


def test_limits_are_told_at_most_once_a_second(serving, good):
    now, told, remaining = 100.0, [], 5

    async def answer(request: web.Request) -> web.StreamResponse:
        headers = {"x-ratelimit-limit-requests": "500", "x-ratelimit-remaining-requests": f"{remaining}"}
        return web.json_response(good, headers={**headers, "x-ratelimit-reset-requests": "6s"})

    async def go():
        nonlocal now, remaining
        async with serving(answer) as vendor:
            provider = OpenAIProvider(Endpoint(vendor.url, None, 30.0, 4), monotonic=lambda: now)
            body = provider.encode("judge", REQUEST)
            try:
                for number in range(4):
                    now, remaining = ((100.0, 5), (100.1, 5), (101.0, 0), (101.1, 0))[number]
                    if number == 1:
                        provider.on_limits = lambda limits, hold: told.append((limits, hold))
                    await provider.send(body, "1")
            finally:
                await provider.close()

    asyncio.run(go())
    assert told == [(Limits(requests_per_minute=500), 0.0), (Limits(requests_per_minute=500), 6.0)]


@pytest.mark.parametrize(
    ("model", "holds", "tells"),
    [
        ("gpt-3.5-turbo", False, True),
        ("gpt-4", False, True),
        ("gpt-4-turbo-2024-04-09", False, True),
        ("gpt-4o-2024-05-13", False, True),
        ("chatgpt-4o-latest", False, True),
        ("o1-mini", False, False),
        ("o1-preview-2024-09-12", False, False),
        ("o1", True, False),
        ("o4-mini", True, False),
        ("gpt-5-mini", True, False),
        ("gpt-5.1-chat-latest", True, True),
        ("gpt-4o", True, True),
        ("gpt-4o-mini-2024-07-18", True, True),
        ("gpt-4.1-nano", True, True),
    ],
)
def test_openais_models_get_a_schema_and_tell_log_probabilities_where_they_can(model, holds, tells):
    provider = OpenAIProvider(Endpoint("https://api.openai.com/v1", None, 1.0, 1))
    schema = {"type": "object", "properties": {}}
    body = orjson.loads(provider.encode(model, Request(REQUEST.messages, 64, schema=schema, top_logprobs=5)))
    assert ("response_format" in body) == provider.is_structured(model) == holds
    assert ("logprobs" in body) == ("top_logprobs" in body) == tells
