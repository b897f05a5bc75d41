"""What holds for litellm alone; run by `test_litellm.py` in a process of its own, where litellm may be imported."""

from __future__ import annotations

import asyncio
import logging

import pytest
from aiohttp import web

from venire.arena.campaigns import Limits
from venire.arena.errors import CallError, Fault, InputError, TransientError
from venire.judges.providers import PROVIDERS, Endpoint


def called(model, serving, answer, question, key):
    """One call with a model's name to a server that gives this answer; what it heard comes back too."""

    async def call():
        async with serving(answer) as vendor:
            provider = PROVIDERS["litellm"].open(Endpoint(vendor.url, key, 30.0, 4))
            try:
                return await provider.send(provider.encode(model, question), "step-1"), vendor
            except CallError as error:
                return error, vendor
            finally:
                await provider.close()

    return asyncio.run(call())


VENDORS = ["openai/m", "anthropic/m", "gemini/m", "mistral/m", "groq/m", "openrouter/v/m", "deepseek/m"]


@pytest.mark.parametrize("model", VENDORS)
def test_a_key_follows_no_redirect_of_any_vendor(serving, saying, question, key, model):
    """Left alone, litellm sends the keys of vendors with a header of their own wherever a redirect points."""

    async def call():
        async with serving(saying({})) as elsewhere:
            answer = saying("", 307, {"Location": elsewhere.url})
            async with serving(answer) as vendor:
                provider = PROVIDERS["litellm"].open(Endpoint(vendor.url, key, 30.0, 4))
                try:
                    with pytest.raises(CallError) as caught:
                        await provider.send(provider.encode(model, question), "step-1")
                finally:
                    await provider.close()
                assert len(vendor.paths) == 1
            assert elsewhere.paths == []
            assert (caught.value.fault, caught.value.status) == (Fault.BAD_REQUEST, 307)

    asyncio.run(call())


@pytest.mark.parametrize("model", VENDORS)
def test_every_vendor_is_asked_once_and_its_wait_is_told(serving, saying, question, key, model):
    answer = saying({"error": {"message": "slower", "type": "rate_limit_error"}}, 429, {"Retry-After": "2.5"})
    error, vendor = called(model, serving, answer, question, key)
    assert isinstance(error, TransientError)
    assert (error.fault, error.status, error.retry_after) == (Fault.RATE_LIMITED, 429, 2.5)
    assert len(vendor.paths) == 1


@pytest.mark.parametrize("model", VENDORS)
def test_every_vendor_is_classified_by_status_alone(serving, saying, question, key, model):
    answer = saying({"error": {"message": "the prompt says: rate limit exceeded"}}, 400)
    error, vendor = called(model, serving, answer, question, key)
    assert isinstance(error, CallError)
    assert (error.fault, error.status) == (Fault.BAD_REQUEST, 400)
    assert len(vendor.paths) == 1


def test_no_vendor_is_sent_a_key_of_the_environment(serving, saying, question, monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "GROQ_API_KEY"):
        monkeypatch.setenv(name, "another-account")
    for model in VENDORS:
        _, vendor = called(model, serving, saying({}), question, None)
        assert len(vendor.paths) == 1
        assert "another-account" not in repr(vendor.headers)


def test_an_answer_in_another_dialect_is_read(serving, saying, question, key):
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-judge-1",
        "content": [{"type": "text", "text": "The second is better."}],
        "stop_reason": "max_tokens",
        "usage": {"input_tokens": 30, "output_tokens": 6},
    }
    reply, vendor = called("anthropic/claude-judge-1", serving, saying(answer), question, key)
    assert vendor.headers[0]["x-api-key"] == key
    assert vendor.headers[0]["idempotency-key"] == "step-1"
    assert (reply.text, reply.finish) == ("The second is better.", "length")
    assert (reply.input_tokens, reply.output_tokens) == (30, 6)


def test_a_name_without_a_vendor_fails_before_anything_is_sent(serving, saying, question, key):
    error, vendor = called("nobodys-model", serving, saying({}), question, key)
    assert isinstance(error, CallError)
    assert not isinstance(error, TransientError)
    assert (error.fault, error.may_be_billed) == (Fault.BAD_REQUEST, False)
    assert vendor.paths == []


def test_check_tries_the_key_headers_of_other_vendors(serving, question, key):
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({"data": []}, status=200 if request.headers.get("x-goog-api-key") == key else 401)

    async def call():
        async with serving(answer) as vendor:
            provider = PROVIDERS["litellm"].open(Endpoint(vendor.url, key, 30.0, 4))
            try:
                return await provider.check()
            finally:
                await provider.close()

    assert asyncio.run(call()) is None


def test_nothing_is_printed(serving, saying, cutting, good, question, key, capfd):
    """No banner, no log line: they would stand in the middle of a progress display, and quote calls."""
    for answer in (saying(good), saying("<html>"), saying({"error": {"message": f"bad {key}"}}, 401), cutting):
        for model in ("openai/m", "anthropic/m", "nobodys-model"):
            called(model, serving, answer, question, key)
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")
    assert logging.getLogger("LiteLLM").disabled


@pytest.mark.parametrize("model", ["openai/m", "mistral/m", "anthropic/m"])
def test_one_provider_can_be_closed_while_another_waits_for_an_answer(serving, question, key, model):
    async def call():
        heard, closed = asyncio.Event(), asyncio.Event()

        async def answer(request: web.Request) -> web.StreamResponse:
            if len(vendor.paths) == 3:
                heard.set()
                await closed.wait()
            return web.json_response({"error": {"message": f"call {len(vendor.paths)}"}}, status=400)

        async with serving(answer) as vendor:
            first, second = (PROVIDERS["litellm"].open(Endpoint(vendor.url, key, 30.0, 4)) for _ in range(2))
            body = first.encode(model, question)
            for provider in (first, second):
                with pytest.raises(CallError, match="call"):
                    await provider.send(body, "step")
            waiting = asyncio.create_task(second.send(body, "step-3"))
            await heard.wait()
            await first.close()
            closed.set()
            with pytest.raises(CallError, match="call 3"):
                await waiting
            await second.close()

    asyncio.run(call())


@pytest.mark.parametrize("model", ["openai/m", "mistral/m", "anthropic/m"])
def test_a_provider_follows_no_redirect_after_others_were_closed(serving, saying, question, key, model):
    """litellm keeps its clients in a store of the process, with the session of whoever came first."""

    async def call():
        async with serving(saying({})) as elsewhere, serving(saying("", 307, {"Location": elsewhere.url})) as vendor:
            first, second, third = (PROVIDERS["litellm"].open(Endpoint(vendor.url, key, 30.0, 4)) for _ in range(3))
            body = first.encode(model, question)
            for asked, closed in ((first, None), (second, first), (second, second), (third, third)):
                with pytest.raises(CallError, match="elsewhere"):
                    await asked.send(body, "step")
                if closed is not None:
                    await closed.close()
            assert len(vendor.paths) == 4
            assert elsewhere.paths == []

    asyncio.run(call())


@pytest.mark.parametrize("model", ["openai/m", "mistral/m", "anthropic/m"])
def test_headers_go_and_limits_come_with_every_vendor(serving, saying, question, key, model):
    told = {"x-ratelimit-limit-requests": "500", "x-ratelimit-remaining-requests": "0"}
    told |= {"x-ratelimit-reset-requests": "6s", "x-ratelimit-limit-tokens": "30000"}
    found = []

    async def call():
        async with serving(saying({"error": {"message": "no"}}, 429, told)) as vendor:
            endpoint = Endpoint(vendor.url, key, 30.0, 4, headers={"X-Title": "a title"})
            provider = PROVIDERS["litellm"].open(endpoint)
            provider.on_limits = lambda limits, hold: found.append((limits, hold))
            try:
                for step in range(3):
                    with pytest.raises(CallError) as caught:
                        await provider.send(provider.encode(model, question), f"{step}")
                assert caught.value.retry_after == 6.0
            finally:
                await provider.close()
            assert [headers["x-title"] for headers in vendor.headers] == ["a title"] * 3

    asyncio.run(call())
    assert found == [(Limits(requests_per_minute=500, tokens_per_minute=30000), 0.0)], (
        "a refusal holds its own call alone"
    )


def test_limits_come_with_an_answer_and_an_account_is_no_secret(serving, saying, good, question, key):
    found = []

    async def call():
        async with serving(saying(good, 200, {"x-ratelimit-limit-requests": "500"})) as vendor:
            provider = PROVIDERS["litellm"].open(Endpoint(vendor.url, key, 30.0, 4))
            provider.on_limits = lambda limits, hold: found.append((limits, hold))
            assert key not in repr(provider.limits_key("openai/m"))
            assert provider.limits_key("openai/m")[2] == "openai/m"
            try:
                await provider.send(provider.encode("openai/m", question), "1")
            finally:
                await provider.close()

    asyncio.run(call())
    assert found == [(Limits(requests_per_minute=500), 0.0)]


@pytest.mark.parametrize("model", ["openai/m", "mistral/m", "anthropic/m"])
def test_silence_ends_a_call_by_the_read_timeout(serving, hanging, question, key, model):
    async def call():
        async with serving(hanging) as vendor:
            provider = PROVIDERS["litellm"].open(Endpoint(vendor.url, key, 20.0, 4, read_timeout=0.05))
            try:
                await provider.send(provider.encode(model, question), "1")
            except CallError as error:
                return error, vendor
            finally:
                await provider.close()

    error, vendor = asyncio.run(call())
    assert isinstance(error, TransientError)
    assert error.may_be_billed
    assert "silent for 0.05 s (read_timeout)" in str(error)
    assert len(vendor.paths) == 1


def test_a_proxy_is_refused_in_words(key):
    with pytest.raises(InputError, match="litellm is not asked through a proxy"):
        PROVIDERS["litellm"].open(Endpoint("http://host/v1", key, 1.0, 1, proxy="http://proxy"))
