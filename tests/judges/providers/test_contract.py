"""What every provider promises, held against a real server on loopback.

Runs for `openai` here; `test_litellm.py` runs this file once more, in a process of its own, for litellm.
"""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from aiohttp import web

from venire.arena.campaigns import Limits
from venire.arena.errors import CallError, Fault, InputError, TransientError
from venire.arena.records import Reply, Request


def outcome(subject, serving, answer, request, **options) -> tuple[Reply | CallError, Any]:
    """One call to a server that gives this answer: what came of it, and what the server heard."""

    async def call() -> tuple[Reply | CallError, Any]:
        async with serving(answer) as vendor:
            provider = subject.open(vendor.url, **options)
            try:
                return await provider.send(provider.encode(subject.model, request), "step-1"), vendor
            except CallError as error:
                return error, vendor
            finally:
                await provider.close()

    return asyncio.run(call())


def checked(subject, serving, answer, **options) -> str | None:
    async def call() -> str | None:
        async with serving(answer) as vendor:
            provider = subject.open(vendor.url, **options)
            try:
                return await provider.check()
            finally:
                await provider.close()

    return asyncio.run(call())


def traces(error: BaseException) -> Iterator[str]:
    """Everything that printing an error could show, its causes included."""
    found: BaseException | None = error
    while found is not None:
        yield from (str(found), repr(found), repr(found.args), repr(vars(found)))
        found = found.__cause__ or found.__context__


def disguises(key: str) -> list[str]:
    return [
        f"Bearer {key}",
        quote(key, safe=""),
        b64encode(key.encode()).decode(),
        b64encode(f"user:{key}".encode()).decode(),
        "".join(f"\\u{ord(character):04x}" for character in key),
    ]


@pytest.fixture
def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def test_one_request_means_the_same_bytes(subject, question):
    provider = subject.open("http://127.0.0.1:1/v1")
    turned = Request(
        tuple(dict(reversed(list(message.items()))) for message in question.messages),
        question.max_tokens,
        question.temperature,
        question.seed,
    )
    assert provider.encode(subject.model, question) == provider.encode(subject.model, turned)
    assert provider.encode(subject.model, question) != provider.encode(subject.model, Request(question.messages, 65))


def test_the_body_carries_the_request(subject, serving, saying, good, question):
    _, vendor = outcome(subject, serving, saying(good), question)
    assert vendor.body() == {
        "model": "judge",
        "messages": [dict(message) for message in question.messages],
        "max_tokens": 64,
        "temperature": 0.0,
        "seed": 7,
    }
    assert vendor.paths == ["/v1/chat/completions"]


def test_what_is_not_wanted_is_left_out(subject, serving, saying, good):
    request = Request(({"role": "user", "content": "1 or 2?"},), 8, temperature=None, seed=None)
    _, vendor = outcome(subject, serving, saying(good), request)
    assert set(vendor.body()) == {"model", "messages", "max_tokens"}


SCHEMA = {"type": "object", "properties": {"first": {"type": "integer", "minimum": 1}}, "required": ["first"]}


@pytest.mark.parametrize("structured", [True, False, None])
def test_a_schema_is_asked_for_where_the_endpoint_is_said_to_hold_to_one(
    subject, serving, saying, good, question, structured
):
    """The name of the host says nothing here, so that it is left out where nothing is said."""
    request = replace(question, schema=SCHEMA)
    _, vendor = outcome(subject, serving, saying(good), request, structured=structured)
    sent = vendor.body().get("response_format")
    assert subject.open(vendor.url, structured=structured).is_structured(subject.model) == (structured is True)
    if structured is not True:
        assert sent is None
        return
    assert (sent["type"], sent["json_schema"]["strict"]) == ("json_schema", True)
    assert sent["json_schema"]["schema"] == {
        "type": "object",
        "properties": {"first": {"type": "integer"}},
        "required": ["first"],
        "additionalProperties": False,
    }


def test_log_probabilities_are_asked_for_and_read(subject, serving, saying, good, question):
    told = [{"token": token, "logprob": value, "bytes": None} for token, value in (("1", -0.25), ("2", -1.5))]
    good["choices"][0]["message"] = {"role": "assistant", "content": "1"}
    good["choices"][0]["logprobs"] = {"content": [{**told[0], "top_logprobs": told}], "refusal": None}
    reply, vendor = outcome(subject, serving, saying(good), replace(question, top_logprobs=2))
    assert (vendor.body()["logprobs"], vendor.body()["top_logprobs"]) == (True, 2)
    assert isinstance(reply, Reply)
    assert reply.logprobs == ((("1", -0.25), ("2", -1.5)),)


@pytest.mark.parametrize("told", ["nonsense", 3, [], {"content": "1"}, {"content": [None, 7]}, {"content": None}])
def test_nonsense_for_log_probabilities_is_passed_over(subject, serving, saying, good, question, told):
    good["choices"][0]["logprobs"] = told
    reply, _ = outcome(subject, serving, saying(good), question)
    if subject.name == "litellm" and isinstance(reply, CallError):
        pytest.skip("litellm itself refuses such an answer")
    assert isinstance(reply, Reply)
    assert (reply.text, reply.logprobs) == ("The first is better.", ())


def test_headers_carry_key_and_idempotency_key(subject, serving, saying, good, question, key):
    _, vendor = outcome(subject, serving, saying(good), question)
    assert vendor.headers[0]["authorization"] == f"Bearer {key}"
    assert vendor.headers[0]["idempotency-key"] == "step-1"
    assert vendor.headers[0]["content-type"] == "application/json"


def test_without_a_key_none_is_taken_from_the_environment(subject, serving, saying, good, question, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "another-account")
    monkeypatch.setenv("OPENAI_ORGANIZATION", "another-organisation")
    _, vendor = outcome(subject, serving, saying(good), question, key=None)
    assert len(vendor.paths) == 1
    assert "another-account" not in repr(vendor.headers)


def test_a_reply_is_read(subject, serving, saying, good, question):
    reply, vendor = outcome(subject, serving, saying(good), question)
    assert isinstance(reply, Reply)
    assert len(vendor.paths) == 1
    assert (reply.text, reply.reasoning, reply.finish) == ("The first is better.", "It is true.", "stop")
    assert (reply.input_tokens, reply.output_tokens) == (120, 9)
    assert (reply.cached_tokens, reply.reasoning_tokens) == (64, 4)
    assert reply.cost == 120_000
    assert (reply.served_model, reply.fingerprint) == ("judge-2026-11-01", "fp_1")
    assert orjson.loads(reply.raw)["choices"][0]["message"]["content"] == "The first is better."


def test_tokens_are_estimated_where_none_are_counted(subject, serving, saying, good, question):
    del good["usage"]
    reply, _ = outcome(subject, serving, saying(good), question)
    assert isinstance(reply, Reply)
    assert reply.input_tokens >= 10
    assert reply.output_tokens >= 5
    assert reply.cost is None


def test_a_refusal_has_its_own_finish(subject, serving, saying, good, question):
    good["choices"][0]["message"] = {"role": "assistant", "content": None, "refusal": "I would rather not."}
    reply, _ = outcome(subject, serving, saying(good), question)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish) == ("I would rather not.", "refusal")


STATUSES = [
    (400, "", Fault.BAD_REQUEST),
    (401, "", Fault.AUTHENTICATION),
    (402, "", Fault.QUOTA),
    (403, "", Fault.AUTHENTICATION),
    (404, "", Fault.BAD_REQUEST),
    (408, "", Fault.TRANSIENT),
    (409, "", Fault.TRANSIENT),
    (413, "", Fault.TOO_LONG),
    (422, "", Fault.BAD_REQUEST),
    (425, "", Fault.TRANSIENT),
    (429, "", Fault.RATE_LIMITED),
    (429, "rate_limit_exceeded", Fault.RATE_LIMITED),
    (429, "insufficient_quota", Fault.QUOTA),
    (400, "context_length_exceeded", Fault.TOO_LONG),
    (400, "content_filter", Fault.FILTERED),
    (500, "", Fault.TRANSIENT),
    (502, "", Fault.TRANSIENT),
    (503, "", Fault.TRANSIENT),
    (504, "", Fault.TRANSIENT),
    (520, "", Fault.TRANSIENT),
    (529, "overloaded_error", Fault.TRANSIENT),
]


@pytest.mark.parametrize(("status", "code", "fault"), STATUSES)
def test_a_status_and_its_code_make_the_fault_in_one_request(subject, serving, saying, question, status, code, fault):
    payload = {"error": {"message": "plain words", "code": code or None}}
    error, vendor = outcome(subject, serving, saying(payload, status), question)
    assert isinstance(error, CallError)
    assert (error.fault, error.status) == (fault, status)
    assert isinstance(error, TransientError) == (fault in (Fault.TRANSIENT, Fault.RATE_LIMITED))
    assert error.may_be_billed == (status in (408, 504))
    assert "plain words" in str(error)
    assert len(vendor.paths) == 1


@pytest.mark.parametrize("words", ["the prompt says: rate limit exceeded", "maximum context length", "timed out"])
def test_words_in_a_message_decide_nothing(subject, serving, saying, question, words):
    error, vendor = outcome(subject, serving, saying({"error": {"message": words}}, 400), question)
    assert isinstance(error, CallError)
    assert (error.fault, error.status) == (Fault.BAD_REQUEST, 400)
    assert len(vendor.paths) == 1


def test_the_wait_that_is_asked_for_is_told(subject, serving, saying, question):
    answer = saying({"error": {"message": "slower"}}, 429, {"Retry-After": "3"})
    error, vendor = outcome(subject, serving, answer, question)
    assert isinstance(error, TransientError)
    assert error.retry_after == 3.0
    assert not error.may_be_billed
    assert len(vendor.paths) == 1


def test_a_connection_cut_before_the_answer_may_be_billed(subject, serving, cutting, question):
    error, vendor = outcome(subject, serving, cutting, question)
    assert isinstance(error, TransientError)
    assert (error.fault, error.status, error.may_be_billed) == (Fault.TRANSIENT, None, True)
    assert len(vendor.paths) == 1


def test_a_connection_cut_within_the_answer_may_be_billed(subject, serving, good, question):
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "5000", "Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(orjson.dumps(good))
        assert request.transport is not None
        request.transport.close()
        return response

    error, vendor = outcome(subject, serving, answer, question)
    assert isinstance(error, TransientError)
    assert error.may_be_billed
    assert len(vendor.paths) == 1


def test_no_connection_is_not_billed(subject, question, free_port):
    async def call() -> None:
        provider = subject.open(f"http://127.0.0.1:{free_port}/v1")
        try:
            await provider.send(provider.encode(subject.model, question), "step-1")
        finally:
            await provider.close()

    with pytest.raises(TransientError) as caught:
        asyncio.run(call())
    assert not caught.value.may_be_billed
    assert caught.value.status is None


@pytest.mark.parametrize("text", ["<html><body>Welcome</body></html>", "{nope", "", "3", "[]", '"hello"'])
def test_an_answer_that_is_none_may_be_billed(subject, serving, saying, question, text):
    error, vendor = outcome(subject, serving, saying(text), question)
    assert isinstance(error, TransientError)
    assert error.may_be_billed
    assert len(vendor.paths) == 1


@pytest.mark.parametrize(
    ("code", "fault", "may_be_billed"),
    [
        (None, Fault.TRANSIENT, True),
        ("something_new", Fault.TRANSIENT, True),
        (429, Fault.RATE_LIMITED, False),
        ("insufficient_quota", Fault.QUOTA, False),
        ("context_length_exceeded", Fault.TOO_LONG, True),
    ],
)
def test_an_error_inside_an_answer_counts_by_its_code(subject, serving, saying, question, code, fault, may_be_billed):
    error, vendor = outcome(subject, serving, saying({"error": {"message": "plain words", "code": code}}), question)
    assert isinstance(error, CallError)
    assert (error.fault, error.may_be_billed) == (fault, may_be_billed)
    assert len(vendor.paths) == 1


def test_an_answer_without_a_choice_may_be_billed(subject, serving, saying, good, question):
    error, _ = outcome(subject, serving, saying({**good, "choices": []}), question)
    assert isinstance(error, TransientError)
    assert error.may_be_billed


def test_a_timeout_may_be_billed(subject, serving, hanging, question):
    error, vendor = outcome(subject, serving, hanging, question, timeout=subject.timeout)
    assert isinstance(error, TransientError)
    assert (error.fault, error.may_be_billed) == (Fault.TRANSIENT, True)
    assert len(vendor.paths) == 1


def test_cancellation_passes_through(subject, serving, question):
    async def call() -> None:
        heard = asyncio.Event()

        async def answer(request: web.Request) -> web.StreamResponse:
            heard.set()
            await asyncio.Event().wait()
            raise AssertionError("nobody sets this event")

        async with serving(answer) as vendor:
            provider = subject.open(vendor.url)
            task = asyncio.create_task(provider.send(provider.encode(subject.model, question), "step-1"))
            await heard.wait()
            task.cancel()
            try:
                with pytest.raises(asyncio.CancelledError):
                    await task
            finally:
                await provider.close()

    asyncio.run(call())


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(subject, serving, saying, good, question, status):
    async def call() -> None:
        async with serving(saying(good)) as elsewhere:
            location = {"Location": f"{elsewhere.url}/chat/completions"}
            async with serving(saying("", status, location)) as vendor:
                provider = subject.open(vendor.url)
                try:
                    with pytest.raises(CallError) as caught:
                        await provider.send(provider.encode(subject.model, question), "step-1")
                    with pytest.raises(InputError, match="elsewhere"):
                        await provider.check()
                finally:
                    await provider.close()
            assert (caught.value.fault, caught.value.status) == (Fault.BAD_REQUEST, status)
            assert elsewhere.paths == []

    asyncio.run(call())


@pytest.mark.parametrize("form", range(5))
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_a_key_that_a_server_echoes_in_an_error_is_masked(subject, serving, saying, question, key, status, form):
    said = f'{{"error": {{"message": "you sent {disguises(key)[form]} to me", "code": "odd"}}}}'
    error, _ = outcome(subject, serving, saying(said, status, {"Content-Type": "application/json"}), question)
    assert isinstance(error, CallError)
    assert "[redacted]" in str(error)
    for trace in traces(error):
        assert key not in trace
        assert disguises(key)[form] not in trace


@pytest.mark.parametrize("form", range(5))
def test_a_key_that_a_server_echoes_in_an_answer_is_masked(subject, serving, saying, good, question, key, form):
    good["choices"][0]["message"]["content"] = "HERE"
    good["system_fingerprint"] = "HERE"
    said = orjson.dumps(good).decode().replace("HERE", disguises(key)[form])
    reply, _ = outcome(subject, serving, saying(said, 200, {"Content-Type": "application/json"}), question)
    assert isinstance(reply, Reply)
    assert "[redacted]" in reply.text
    assert key not in repr(reply)
    assert disguises(key)[form] not in repr(reply)
    assert disguises(key)[form] not in reply.raw


def test_a_key_is_in_no_error_of_a_broken_connection(subject, serving, saying, cutting, hanging, question, key):
    for answer, timeout in ((cutting, 30.0), (hanging, subject.timeout), (saying("<html>"), 30.0)):
        error, _ = outcome(subject, serving, answer, question, timeout=timeout)
        assert isinstance(error, CallError)
        assert not any(key in trace for trace in traces(error))


def test_the_provider_does_not_show_its_key(subject, key):
    provider = subject.open("http://127.0.0.1:1/v1")
    assert key not in repr(provider)
    assert "127.0.0.1:1" in repr(provider)


def test_a_provider_can_be_used_again_after_it_was_closed(subject, serving, saying, good, question):
    async def call() -> int:
        async with serving(saying(good)) as vendor:
            provider = subject.open(vendor.url)
            for step in range(2):
                await provider.send(provider.encode(subject.model, question), f"step-{step}")
                await provider.close()
            await provider.close()
            return len(vendor.paths)

    assert asyncio.run(call()) == 2


def test_check_is_silent_when_the_models_are_listed(subject, serving, saying):
    assert checked(subject, serving, saying({"object": "list", "data": []})) is None


@pytest.mark.parametrize("status", [404, 405, 501])
def test_check_warns_where_models_are_not_listed(subject, serving, saying, status):
    warning = checked(subject, serving, saying("nothing here", status))
    assert warning is not None
    assert "no list of models" in warning
    assert str(status) in warning


def test_check_warns_where_something_else_answers(subject, serving, saying, cutting):
    for answer in (saying("<html>Welcome</html>"), saying("busy", 503), cutting):
        warning = checked(subject, serving, answer)
        assert warning is not None
        assert "127.0.0.1" in warning


@pytest.mark.parametrize("status", [401, 403])
def test_check_says_that_the_key_was_refused(subject, serving, saying, key, status):
    with pytest.raises(InputError, match=rf"127\.0\.0\.1.*the key was refused \({status}\)") as caught:
        checked(subject, serving, saying({"error": {"message": f"bad key {key}"}}, status))
    assert not any(key in trace for trace in traces(caught.value))


def test_check_says_that_a_key_is_asked_for(subject, serving, saying):
    with pytest.raises(InputError, match=r"asks for a key and none is set \(401\)"):
        checked(subject, serving, saying("", 401), key=None)


def test_check_says_that_nobody_is_there(subject, free_port, key):
    async def call() -> None:
        provider = subject.open(f"http://127.0.0.1:{free_port}/v1")
        try:
            await provider.check()
        finally:
            await provider.close()

    with pytest.raises(InputError, match=rf"127\.0\.0\.1:{free_port}.*no connection \(refused\)") as caught:
        asyncio.run(call())
    assert not any(key in trace for trace in traces(caught.value))


def test_check_says_that_tls_failed(subject, serving, saying, key):
    async def call() -> None:
        async with serving(saying([])) as vendor:
            provider = subject.open(vendor.url.replace("http://", "https://"))
            try:
                await provider.check()
            finally:
                await provider.close()

    with pytest.raises(InputError, match="TLS") as caught:
        asyncio.run(call())
    assert not any(key in trace for trace in traces(caught.value))


def test_an_account_is_a_host_a_digest_and_a_model(subject, key):
    account = subject.open("https://api.example.org/v1").limits_key(subject.model)
    assert account[0] == "api.example.org"
    assert account == subject.open("https://api.example.org/other").limits_key(subject.model)
    assert account != subject.open("https://api.example.org/v1", key="sk-another-1").limits_key(subject.model)
    assert not any(key in part for part in account)


@pytest.mark.parametrize("status", [200, 429])
def test_what_an_answer_says_of_limits_is_told(subject, serving, saying, good, question, status):
    """The danger: one refusal in a hundred, with the counters of its bucket, held every call for an hour."""
    told: list[Any] = []
    bucket = {"x-ratelimit-limit-tokens": "30000", "x-ratelimit-remaining-tokens": "0"}
    headers = {**bucket, "x-ratelimit-reset-tokens": "3600s", "Retry-After": "3600"}

    async def call() -> None:
        async with serving(saying(good, status, headers)) as vendor:
            provider = subject.open(vendor.url)
            assert provider.on_limits is None
            provider.on_limits = lambda limits, hold: told.append((limits, hold))
            for step in ("1", "2"):
                try:
                    await provider.send(provider.encode(subject.model, question), step)
                except CallError:
                    assert status == 429
            await provider.close()

    asyncio.run(call())
    assert told == [(Limits(tokens_per_minute=30000), 0.0 if status == 429 else 3600.0)]
