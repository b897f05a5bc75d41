"""What Anthropic's and Gemini's adapters owe beyond the vendors' documented answers."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from datetime import UTC, datetime
from urllib.parse import quote

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.errors import CallError, Fault, InputError, TransientError
from venire.arena.records import Reply, Request
from venire.judges.providers import PROVIDERS, Endpoint
from venire.judges.providers.anthropic import AnthropicProvider, read_message
from venire.judges.providers.faults import refusal
from venire.judges.providers.gemini import GeminiProvider, read_content

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
REQUEST = Request(({"role": "user", "content": "1 or 2?"},), 64, temperature=0.0, seed=7)
GOOD = {
    "anthropic": {"type": "message", "content": [{"type": "text", "text": "1"}], "usage": {}},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "1"}]}}]},
}
NATIVE = sorted(GOOD)


def encoded(provider, model, request=REQUEST):
    return orjson.loads(PROVIDERS[provider].open(Endpoint("http://host/v1", None, 1.0, 1)).encode(model, request))


def outcome(name, serving, answer, key=None, timeout=30.0, model="m"):
    async def call():
        async with serving(answer) as vendor:
            provider = PROVIDERS[name].open(Endpoint(vendor.url, key, timeout, 4))
            try:
                return await provider.send(provider.encode(model, REQUEST), "step-1"), vendor
            except CallError as error:
                return error, vendor
            finally:
                await provider.close()

    return asyncio.run(call())


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("claude-3-haiku-20240307", True),
        ("claude-3-5-sonnet-20241022", True),
        ("claude-opus-4-20250514", True),
        ("claude-opus-4-1-20250805", True),
        ("claude-opus-4-6", True),
        ("claude-sonnet-4-5-20250929", True),
        ("claude-haiku-4-5", True),
        ("claude-opus-4-7", False),
        ("claude-opus-4-7-20260416", False),
        ("claude-opus-4-8", False),
        ("claude-sonnet-5", False),
        ("claude-opus-5-5", False),
        ("claude-fable-5", False),
        ("claude-mythos-preview", False),
        ("anthropic/claude-opus-4-7", True),
        ("my-claude-opus-5", True),
    ],
)
def test_claude_gets_a_temperature_where_it_takes_one(model, takes):
    assert ("temperature" in encoded("anthropic", model)) == takes


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("gemini-2.5-pro", True),
        ("gemini-3.1-pro-preview", True),
        ("gemini-3.5-flash", True),
        ("gemini-3.5-flash-lite", False),
        ("gemini-3.6-flash", False),
        ("models/gemini-3.8-flash", False),
        ("gemini-4-pro", False),
        ("gemma-3-27b-it", True),
    ],
)
def test_gemini_gets_a_temperature_where_it_takes_one(model, takes):
    assert ("temperature" in encoded("gemini", model)["generationConfig"]) == takes


def test_models_of_one_family_share_anthropics_limits():
    """Limits are pooled by family: https://docs.aws.amazon.com/claude-platform/latest/userguide/rate-limits.html."""
    one, other = (AnthropicProvider(Endpoint("https://api.anthropic.com/v1", key, 1.0, 1)) for key in ("k-1", "k-2"))
    assert one.limits_key("claude-opus-4-7") == one.limits_key("claude-opus-4-5-20251101")
    assert one.limits_key("claude-3-5-sonnet-20241022") == one.limits_key("claude-sonnet-5")
    assert one.limits_key("claude-haiku-4-5") == one.limits_key("claude-3-5-haiku-20241022")
    assert one.limits_key("claude-opus-4-7") != one.limits_key("claude-haiku-4-5")
    assert one.limits_key("claude-opus-4-7") != other.limits_key("claude-opus-4-7")
    assert one.limits_key("claude-fable-5") != one.limits_key("claude-mythos-5")
    assert not any("k-1" in part for part in one.limits_key("claude-opus-4-7"))


def test_the_bytes_of_a_body_are_pinned():
    endpoint = Endpoint("http://host/v1", None, 1.0, 1)
    assert AnthropicProvider(endpoint).encode("claude-haiku-4-5", REQUEST) == (
        b'{"max_tokens":64,"messages":[{"content":"1 or 2?","role":"user"}],"model":"claude-haiku-4-5",'
        b'"temperature":0.0}'
    )
    assert GeminiProvider(endpoint).encode("gemini-2.5-pro", REQUEST) == (
        b'{"model":"gemini-2.5-pro","contents":[{"parts":[{"text":"1 or 2?"}],"role":"user"}],'
        b'"generationConfig":{"maxOutputTokens":64,"seed":7,"temperature":0.0}}'
    )


def test_what_is_not_wanted_is_left_out():
    bare = Request(({"role": "user", "content": "?"},), 8, temperature=None, seed=None)
    assert set(encoded("anthropic", "m", bare)) == {"max_tokens", "messages", "model"}
    assert encoded("gemini", "m", bare)["generationConfig"] == {"maxOutputTokens": 8}
    assert "systemInstruction" not in encoded("gemini", "m", bare)


def test_a_conversation_keeps_its_turns():
    turns = (
        {"role": "system", "content": "Judge."},
        {"role": "user", "content": "1 or 2?"},
        {"role": "assistant", "content": "Hm."},
        {"role": "user", "content": "One word."},
    )
    body = encoded("anthropic", "m", Request(turns, 8))
    assert body["system"] == "Judge."
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    body = encoded("gemini", "m", Request(turns, 8))
    assert body["systemInstruction"] == {"parts": [{"text": "Judge."}]}
    assert [(turn["role"], turn["parts"][0]["text"]) for turn in body["contents"]] == [
        ("user", "1 or 2?"),
        ("model", "Hm."),
        ("user", "One word."),
    ]


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-2.5-pro", "/v1/models/gemini-2.5-pro:generateContent"),
        ("models/gemini-2.5-pro", "/v1/models/gemini-2.5-pro:generateContent"),
        ("tunedModels/mine", "/v1/tunedModels/mine:generateContent"),
        ('a"b,"contents":?#é', '/v1/models/a"b,"contents":?#é:generateContent'),
    ],
)
def test_the_model_is_in_the_address_and_not_in_the_body(serving, saying, model, path):
    _, vendor = outcome("gemini", serving, saying(GOOD["gemini"]), model=model)
    assert vendor.paths == [path]
    assert vendor.queries == [""]
    assert set(vendor.body()) == {"contents", "generationConfig"}


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("status", [301, 307])
def test_a_key_follows_no_redirect(name, serving, saying, key, status):
    async def call():
        async with serving(saying(GOOD[name])) as elsewhere:
            answer = saying("", status, {"Location": elsewhere.url})
            async with serving(answer) as vendor:
                provider = PROVIDERS[name].open(Endpoint(vendor.url, key, 30.0, 4))
                try:
                    with pytest.raises(CallError) as caught:
                        await provider.send(provider.encode("m", REQUEST), "step-1")
                finally:
                    await provider.close()
            assert elsewhere.paths == []
            assert (caught.value.fault, caught.value.status) == (Fault.BAD_REQUEST, status)

    asyncio.run(call())


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("status", [200, 400, 429, 500])
def test_a_key_that_a_server_echoes_is_masked(name, serving, saying, key, status):
    forms = [key, quote(key, safe=""), b64encode(key.encode()).decode()]
    body = {**GOOD[name], "model": " ".join(forms), "modelVersion": " ".join(forms)}
    said = body if status == 200 else {"error": {"message": " ".join(forms), "details": [{"reason": forms[0]}]}}
    came, _ = outcome(name, serving, saying(said, status), key=key)
    shown = repr(came) if isinstance(came, Reply) else f"{came}{came.args!r}{vars(came)!r}{came.__context__!r}"
    assert "[redacted]" in shown
    assert not any(form in shown for form in forms)


@pytest.mark.parametrize("name", NATIVE)
def test_without_a_key_none_is_sent(name, serving, saying, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another-account")
    monkeypatch.setenv("GEMINI_API_KEY", "another-account")
    _, vendor = outcome(name, serving, saying(GOOD[name]))
    assert not {"x-api-key", "x-goog-api-key", "authorization"} & set(vendor.headers[0])
    assert vendor.headers[0]["idempotency-key"] == "step-1"


@pytest.mark.parametrize("name", NATIVE)
def test_what_may_have_been_done_may_be_billed(name, serving, saying, cutting, hanging):
    for answer, timeout in (
        (cutting, 30.0),
        (hanging, 0.05),
        (saying("<html>Welcome</html>"), 30.0),
        (saying({}), 30.0),
    ):
        error, vendor = outcome(name, serving, answer, timeout=timeout)
        assert isinstance(error, TransientError)
        assert error.may_be_billed
        assert len(vendor.paths) == 1


@pytest.mark.parametrize("name", NATIVE)
def test_a_provider_shows_no_key_and_can_be_used_after_it_was_closed(name, serving, saying, key):
    async def call():
        async with serving(saying(GOOD[name])) as vendor:
            provider = PROVIDERS[name].open(Endpoint(vendor.url, key, 30.0, 4))
            assert key not in repr(provider)
            for step in range(2):
                await provider.send(provider.encode("m", REQUEST), f"step-{step}")
                await provider.close()
            return len(vendor.paths)

    assert asyncio.run(call()) == 2


@pytest.mark.parametrize("name", NATIVE)
def test_tokens_that_are_not_counted_are_estimated(name, serving, saying):
    reply, _ = outcome(name, serving, saying(GOOD[name]))
    assert reply.estimated
    assert reply.input_tokens >= 10
    assert reply.output_tokens == 1


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("17s", 17.0), ("4.2s", 4.2), ("5.237548564s", 5.237548564), ("0s", 0.0), ("soon", None), (17, None)],
)
def test_the_wait_in_an_error_is_told(serving, saying, asked, seconds):
    said = {"error": {"code": 429, "message": "?", "details": [{"retryDelay": asked}]}}
    error, _ = outcome("gemini", serving, saying(said, 429))
    assert (error.fault, error.retry_after) == (Fault.RATE_LIMITED, seconds)


def test_a_key_that_is_refused_with_400_is_said_to_be_refused(serving, saying, key):
    async def call():
        refused = {"error": {"code": 400, "message": f"bad {key}", "details": [{"reason": "API_KEY_INVALID"}]}}
        async with serving(saying(refused, 400)) as vendor:
            provider = GeminiProvider(Endpoint(vendor.url, key, 30.0, 4))
            try:
                with pytest.raises(InputError, match=r"the key was refused \(400\)") as caught:
                    await provider.check()
                assert key not in str(caught.value)
            finally:
                await provider.close()

    asyncio.run(call())


def test_words_in_a_message_decide_nothing():
    said = "quotaId PerDay API_KEY_INVALID: rate limit exceeded"
    error = refusal(400, {}, orjson.dumps({"error": {"message": said, "details": said}}).decode(), NOW)
    assert error.fault is Fault.BAD_REQUEST


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "content",
                    "type",
                    "text",
                    "thinking",
                    "usage",
                    "input_tokens",
                    "candidates",
                    "parts",
                    "error",
                    "details",
                ]
            ),
            inner,
        )
    ),
    max_leaves=20,
)


@given(JSON, JSON)
def test_any_answer_is_a_reply_or_a_call_error(payload, inner):
    texts = [orjson.dumps(one).decode() for one in (payload, {"content": payload, "usage": inner})]
    texts.append(orjson.dumps({"candidates": [{"content": payload}], "usageMetadata": inner}).decode())
    for text in texts:
        for read in (read_message, read_content):
            found: Reply | CallError
            try:
                found = read(text, b"{}")
            except CallError as error:
                found = error
            if isinstance(found, Reply):
                assert found.input_tokens > 0
                assert found.finish in ("stop", "length", "content_filter", "refusal")
            else:
                assert found.may_be_billed
        assert isinstance(refusal(429, {}, text, NOW), CallError)


@pytest.mark.parametrize(
    ("provider", "model", "holds"),
    [
        ("anthropic", "claude-3-5-haiku-latest", False),
        ("anthropic", "claude-sonnet-4-20250514", False),
        ("anthropic", "claude-opus-4-1", False),
        ("anthropic", "claude-haiku-4-5-20251001", True),
        ("anthropic", "claude-opus-4-8", True),
        ("anthropic", "claude-sonnet-5", True),
        ("anthropic", "vendor/claude-sonnet-5", False),
        ("gemini", "gemini-1.5-pro", False),
        ("gemini", "models/gemini-2.0-flash", False),
        ("gemini", "gemini-2.5-flash", True),
        ("gemini", "models/gemini-3.6-flash", True),
        ("gemini", "gemini-flash-latest", True),
        ("gemini", "gemma-3-27b-it", False),
        ("gemini", "tunedModels/mine", False),
    ],
)
def test_a_model_is_held_to_a_schema_where_it_is_known_to_take_one(provider, model, holds):
    asked = Request(REQUEST.messages, 64, schema={"type": "object", "properties": {}})
    for said in (None, True, False):
        opened = PROVIDERS[provider].open(Endpoint("http://127.0.0.1:1/v1", None, 1.0, 1, structured=said))
        assert opened.is_structured(model) == (holds if said is None else said)
        body = opened.encode(model, asked)
        assert (b'"output_config"' in body or b'"responseJsonSchema"' in body) == opened.is_structured(model)
