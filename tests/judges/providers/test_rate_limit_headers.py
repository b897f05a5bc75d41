"""Waits and limits as vendors write them."""

from __future__ import annotations

from dataclasses import astuple
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.campaigns import Limits
from venire.judges.providers.rate_limit_headers import MAX_WAIT, read_limits, retry_after

NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)


def bucket(what: str, remaining: int, reset: str) -> dict[str, str]:
    return {f"x-ratelimit-remaining-{what}": f"{remaining}", f"x-ratelimit-reset-{what}": reset}


WAITS = [
    ({}, None),
    ({"Retry-After": "3"}, 3.0),
    ({"retry-after": "3"}, 3.0),
    ({"RETRY-AFTER": " 3 "}, 3.0),
    ({"Retry-After": "0"}, 0.0),
    ({"Retry-After": "1.5"}, 1.5),
    ({"Retry-After": "-5"}, 0.0),
    ({"Retry-After-Ms": "250"}, 0.25),
    ({"retry-after-ms": "250", "Retry-After": "9"}, 0.25),
    ({"retry-after-ms": "soon", "Retry-After": "9"}, 9.0),
    ({"Retry-After": "Sat, 21 Nov 2026 10:00:30 GMT"}, 30.0),
    ({"Retry-After": "Saturday, 21-Nov-26 10:00:30 GMT"}, 30.0),
    ({"Retry-After": "Sat Nov 21 10:00:30 2026"}, 30.0),
    ({"Retry-After": "Sat, 21 Nov 2026 11:00:30 +0100"}, 30.0),
    ({"Retry-After": "Sat, 21 Nov 2026 09:59:00 GMT"}, 0.0),
    ({"Retry-After": "Sat, 21 Nov 2026 10:00:30 GMT", "Date": "Sat, 21 Nov 2026 10:00:20 GMT"}, 10.0),
    ({"Retry-After": "Sat, 21 Nov 2026 10:00:30 GMT", "Date": "yesterday"}, 30.0),
    ({"Retry-After": ""}, None),
    ({"Retry-After": "soon"}, None),
    ({"Retry-After": "nan"}, None),
    ({"Retry-After": "inf"}, None),
    ({"Retry-After": "1e400"}, None),
    ({"Retry-After": "9" * 400}, None),
    ({"Retry-After": "3, 5"}, None),
    ({"Retry-After": "Sat, 99 Nov 2026 10:00:30 GMT"}, None),
    ({"Retry-After": "2026-11-21T10:00:30Z"}, 30.0),
    ({"x-ms-retry-after-ms": "250.5", "Retry-After": "1"}, 0.2505),
    ({"Retry-After": "90000"}, 90000.0),
    ({"Retry-After": "90001"}, None),
    ({"Retry-After": "Sun, 21 Nov 2027 10:00:00 GMT"}, None),
    # The vendor's own word comes before its counters: a bucket that refills lets a call pass long before it is full.
    ({"Retry-After": "1", **bucket("requests", 0, "6m0s")}, 1.0),
    ({"Retry-After": "90001", **bucket("requests", 0, "6m0s")}, 360.0),
    (bucket("requests", 0, "6m0s"), 360.0),
    (bucket("requests", 0, "1s"), 1.0),
    (bucket("requests", 0, "17ms"), 0.017),
    (bucket("requests", 0, "2m59.56s"), 179.56),
    (bucket("requests", 0, "1h2m3.5s"), 3723.5),
    (bucket("requests", 0, "1d"), 86400.0),
    (bucket("requests", 0, "12"), 12.0),
    (bucket("requests", 0, ""), None),
    (bucket("requests", 0, "s"), None),
    (bucket("requests", 0, "soon"), None),
    (bucket("requests", 0, "2d"), None),
    (bucket("requests", 1, "6m0s"), None),
    (bucket("requests", 0, "1s") | bucket("tokens", 0, "6m0s"), 360.0),
    (bucket("requests", 0, "1s") | bucket("tokens", 500, "6m0s"), 1.0),
    ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
    (bucket("requests-day", 0, "33011.382867"), 33011.382867),
    ({"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2026-11-21T10:00:42Z"}, 42.0),
    ({"anthropic-ratelimit-requests-reset": "2026-11-21T11:00:42+01:00"}, 42.0),
    ({"anthropic-ratelimit-input-tokens-remaining": "0", "anthropic-ratelimit-input-tokens-reset": "x"}, None),
    ({"anthropic-ratelimit-output-tokens-reset": "2026-11-21T09:00:00Z"}, 0.0),
    ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{NOW.timestamp() + 5:.0f}"}, 5.0),
    ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{NOW.timestamp() * 1000 + 2500:.0f}"}, 2.5),
    ({"X-RateLimit-Remaining": "3", "X-RateLimit-Reset": f"{NOW.timestamp() + 5:.0f}"}, None),
    ({"X-RateLimit-Reset": f"{NOW.timestamp() + 366 * 86400:.0f}"}, None),
    ({"RateLimit-Limit": "100", "RateLimit-Remaining": "0", "RateLimit-Reset": "50"}, 50.0),
    ({"RateLimit": "limit=100, remaining=0, reset=50"}, 50.0),
    ({"RateLimit": '"default";r=0;t=50', "RateLimit-Policy": '"default";q=100;w=60'}, 50.0),
    ({"RateLimit": '"default";r=7;t=50'}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), WAITS)
def test_a_wait_is_read_in_every_form(headers, seconds):
    assert retry_after(headers, NOW) == pytest.approx(seconds)


INSIDE = [
    ({"error": {"code": 429, "details": [{"@type": "x"}, {"retryDelay": "34.07s"}]}}, 34.07),
    ([{"error": {"details": [{"retryDelay": "34s"}]}}], 34.0),
    ({"error": {"details": [{"retryDelay": 34}, 5]}}, None),
    ({"error": {"metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": NOW_MS + 2500}}}}, 2.5),
    ({"error": {"metadata": {"headers": {"Retry-After": 3}}}}, 3.0),
    ({"error": {"message": "Please try again in 6s."}}, None),
    ({"error": "x"}, None),
    ([], None),
    ("Retry-After: 5", None),
    (None, None),
]


@pytest.mark.parametrize(("body", "seconds"), INSIDE)
def test_a_wait_is_read_where_vendors_put_it_in_the_answer(body, seconds):
    assert retry_after({}, NOW, body) == seconds


def test_a_header_comes_before_what_the_answer_says():
    assert retry_after({"Retry-After": "5"}, NOW, {"error": {"details": [{"retryDelay": "34s"}]}}) == 5.0


NAMES = ["Retry-After", "retry-after-ms", "Date", "ratelimit", "x-ratelimit-reset", "x-ratelimit-reset-tokens"]
NAMES += ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"]
VALUES = st.text(max_size=40) | st.from_regex(r"-?[0-9.]{1,30}(ms|s|m|h|d)?", fullmatch=True)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES), st.sampled_from(["api.openai.com", "host:80", ""]))
def test_no_header_brings_the_reading_down(headers, host):
    seconds = retry_after(headers, NOW)
    assert seconds is None or 0 <= seconds <= MAX_WAIT
    found = read_limits(headers, host, NOW)
    if found is not None:
        limits, hold = found
        assert 0 <= hold <= MAX_WAIT
        assert all(limit is None or limit > 0 for limit in astuple(limits))


def per(what: str, limit: int, remaining: int, reset: str) -> dict[str, str]:
    return {f"x-ratelimit-limit-{what}": f"{limit}", **bucket(what, remaining, reset)}


def claude(what: str, limit: int, remaining: int, reset: str) -> dict[str, str]:
    told = {"limit": f"{limit}", "remaining": f"{remaining}", "reset": f"2026-11-21T10:{reset}Z"}
    return {f"anthropic-ratelimit-{what}-{name}": value for name, value in told.items()}


LIMITS = [
    ("host", {}, None),
    ("host", {"x-ratelimit-limit-requests": "none", "Retry-After": "5"}, None),
    ("host", {"x-ratelimit-limit-requests": "0", "x-ratelimit-limit-tokens": "-1"}, None),
    ("host:8000", per("requests", 500, 499, "1s"), (Limits(requests_per_minute=500), 0.0)),
    ("host", per("tokens", 30000, 10, "59s"), (Limits(tokens_per_minute=30000), 0.0)),
    ("host", per("requests", 500, 0, "6s"), (Limits(requests_per_minute=500), 6.0)),
    ("host", {"x-ratelimit-limit-requests": "100, 100;w=60"}, (Limits(requests_per_minute=100), 0.0)),
    # OpenAI's and Groq's buckets refill: full in six seconds is usable in a part of one.
    ("api.openai.com", per("requests", 500, 0, "60s"), (Limits(requests_per_minute=500), 6.0)),
    ("api.openai.com", per("requests", 5000, 4999, "12ms"), (Limits(requests_per_minute=5000), 0.0)),
    ("eu.api.openai.com:443", per("requests", 10000, 9999, "8.64s"), (Limits(requests_per_day=10000), 0.0)),
    ("proxy.example.org", per("requests", 10000, 9999, "8.64s"), (Limits(requests_per_minute=10000), 0.0)),
    ("notopenai.com", per("requests", 10000, 9999, "8.64s"), (Limits(requests_per_minute=10000), 0.0)),
    (
        "api.groq.com",
        per("requests", 14400, 14370, "2m59.56s") | per("tokens", 18000, 0, "7.66s"),
        (Limits(requests_per_day=14400, tokens_per_minute=18000), 0.766),
    ),
    # A day's bucket that is empty gives a call every few seconds: hours of waiting for a tenth of it help nobody.
    ("api.groq.com", per("requests", 14400, 0, "24h"), (Limits(requests_per_day=14400), 60.0)),
    ("api.groq.com", {"x-ratelimit-limit-requests": "14400"}, (Limits(requests_per_day=14400), 0.0)),
    (
        "api.cerebras.ai",
        per("requests-day", 1000, 999, "33011.38") | per("tokens-minute", 60000, 59000, "11.38"),
        (Limits(requests_per_day=1000, tokens_per_minute=60000), 0.0),
    ),
    (
        "api.mistral.ai",
        {"x-ratelimit-limit-req-minute": "60", "x-ratelimit-limit-tokens-minute": "500000"},
        (Limits(requests_per_minute=60, tokens_per_minute=500000), 0.0),
    ),
    (
        "api.anthropic.com",
        claude("requests", 4000, 3999, "00:00")
        | claude("input-tokens", 400000, 0, "00:30")
        | claude("output-tokens", 80000, 79000, "00:01")
        | claude("tokens", 480000, 100, "00:40"),
        (Limits(4000, 480000, 400000, 80000), 3.0),
    ),
    (
        "api.fireworks.ai",
        {"X-Ratelimit-Limit-Tokens-Prompt": "3600000", "X-Ratelimit-Limit-Tokens-Generated": "36000"},
        (Limits(input_tokens_per_minute=3600000, output_tokens_per_minute=36000), 0.0),
    ),
    (
        "mine.openai.azure.com",
        {"x-ratelimit-limit-requests": "50", "x-ratelimit-limit-tokens": "50000"},
        (Limits(tokens_per_minute=50000), 0.0),
    ),
    # A window of unknown length tells no limit, but that it is used up.
    ("openrouter.ai", {"x-ratelimit-limit": "20", "x-ratelimit-remaining": "19", "x-ratelimit-reset": "5"}, None),
    ("openrouter.ai", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{NOW_MS + 5000}"}, (Limits(), 5.0)),
    ("host", {"ratelimit": "limit=100, remaining=0, reset=50"}, (Limits(), 50.0)),
    ("host", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1e9"}, None),
]


@pytest.mark.parametrize(("host", "headers", "found"), LIMITS)
def test_limits_are_read_in_the_words_of_each_vendor(host, headers, found):
    assert read_limits(headers, host, NOW) == found


def test_the_wait_that_an_answer_asks_for_comes_before_its_counters() -> None:
    """Else a refusal that asks for a second would hold its route for the hour in which the window ends."""
    counters = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "3600"}
    assert read_limits(counters, "gateway.example", NOW) == (Limits(), 3600.0)
    found = read_limits({**counters, "Retry-After": "1"}, "gateway.example", NOW)
    assert found is None or found == (Limits(), 1.0)
    assert read_limits({**counters, "Retry-After": "7200"}, "gateway.example", NOW) == (Limits(), 3600.0)
