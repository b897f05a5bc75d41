"""Waits as providers write them, and classes of failure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.errors import CallError, Fault, TransientError
from venire.judges.providers.faults import classify, error_inside, failure, refusal, short

NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("status", [500, 501, 502, 503, 504, *range(520, 530), 599])
def test_a_server_that_fails_may_recover(status):
    assert classify(status) is Fault.TRANSIENT


@pytest.mark.parametrize("status", [400, 404, 405, 406, 410, 415, 418, 422, 451])
def test_a_request_that_is_wrong_stays_wrong(status):
    assert classify(status) is Fault.BAD_REQUEST


def test_only_what_may_pass_is_transient():
    for fault in Fault:
        expected = TransientError if fault in (Fault.TRANSIENT, Fault.RATE_LIMITED) else CallError
        assert type(failure("words", fault)) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"error": {"message": "too fast"}}', "too fast"),
        ('{"error": "too fast"}', "too fast"),
        ('{"message": "too fast", "object": "error"}', "too fast"),
        ('{"detail": "too fast"}', "too fast"),
        ('[{"error": {"message": "too fast"}}]', "too fast"),
        ('{"error": {"message": "too\\n  fast"}}', "too fast"),
        ('{"error": {"message": 5}}', '{"error": {"message": 5}}'),
        ("no healthy upstream", "no healthy upstream"),
        ("<html>", "a web page"),
        ("<html><head><title>502 Bad Gateway</title></head>", "a web page, 502 Bad Gateway"),
        ('{"detail": [{"loc": ["body", "seed"], "msg": "too fast", "type": "x"}]}', "body.seed: too fast"),
        ('{"detail": [{"loc": ["a"], "msg": "b"}, {"loc": ["c"], "msg": "d"}]}', "a: b; c: d"),
        ('{"error": {"message": "{\\"error\\": {\\"message\\": \\"too fast\\"}}"}}', "too fast"),
        ("", "no message"),
    ],
)
def test_the_message_is_found_where_vendors_put_it(text, message):
    assert str(refusal(503, {}, text, NOW)) == f"HTTP 503: {message}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"error": {"code": "other", "type": "insufficient_quota"}}', Fault.QUOTA),
        ('{"code": "context_length_exceeded", "message": "x"}', Fault.TOO_LONG),
        ('[{"error": {"code": "content_filter"}}]', Fault.FILTERED),
        ('{"error": {"code": 403, "metadata": {"flagged_input": "x", "reasons": ["y"]}}}', Fault.FILTERED),
        ('{"error": {"code": {"deep": 1}}}', Fault.AUTHENTICATION),
        ('{"error": {"message": "insufficient_quota"}}', Fault.AUTHENTICATION),
    ],
)
def test_the_machine_code_is_found_where_vendors_put_it(text, fault):
    assert refusal(403, {}, text, NOW).fault is fault


@pytest.mark.parametrize(
    "message",
    [
        "Bad role in: This model's maximum context length is 8 tokens. However, you requested 9 tokens.",
        'This model\'s maximum context length is 8 tokens. However, you wrote "no".',
        "prompt is too long: 9 tokens > 8 maximum, says the prompt",
        'bad content "litellm.ContextWindowExceededError: "',
        "The input (9 tokens) is longer than the model's context length (8 tokens). temperature must be 1",
    ],
)
def test_words_that_a_prompt_may_have_put_into_a_message_do_not_make_it_too_long(message):
    assert refusal(400, {}, orjson.dumps({"error": {"message": message, "code": 400}}).decode(), NOW).fault is (
        Fault.BAD_REQUEST
    )


def test_of_all_statuses_those_that_the_documentation_names_may_be_billed():
    page = (Path(__file__).parents[3] / "docs" / "providers.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith("| status 408")]
    named = {int(status) for status in re.findall(r"\d+", row)}
    assert {status for status in range(400, 600) if refusal(status, {}, "", NOW).may_be_billed} == named


NAMES = ("error", "errors", "detail", "details", "message", "msg", "loc", "metadata", "raw", "violations", "quotaId")
MORE = ("code", "type", "param", "n_prompt_tokens", "n_ctx", "success", "error_type", "innererror", "flagged_input")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.text(max_size=6) | st.sampled_from(['{"error": 1}', "[1]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES + MORE), inner, max_size=5),
    max_leaves=25,
)


@given(JSON, st.sampled_from([400, 403, 429, 500]))
def test_any_body_is_an_error_with_a_message(payload, status):
    error = refusal(status, {}, orjson.dumps(payload).decode(), NOW)
    assert str(error).startswith(f"HTTP {status}: ")
    assert error.size is None or error.size.tokens > 0
    error_inside({"error": payload})


def test_an_answer_without_an_error_has_none_inside():
    assert error_inside({"error": None, "choices": []}) is None
    assert error_inside({}) is None


def test_messages_are_short_and_hold_no_bearer_token():
    assert len(short("word " * 500)) == 300
    assert "tok-9" not in short('header "Authorization: bearer tok-9" was wrong')
