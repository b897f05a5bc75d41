"""Rate-limit headers: how long a refused call has to wait, and how much an account may do a minute or day. Pure.

Vendors count in two ways. A bucket that refills all the time (OpenAI, Groq, Anthropic) reports as its reset when it
will be full again, so a call fits long before; a window (OpenRouter, the IETF's draft) reports when the next begins.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from venire.arena.campaigns import Limits

MAX_WAIT = 90_000.0
"""Seconds, 25 hours: a longer wait is taken for nonsense and ignored, since no vendor counts in more than a day."""

_DAILY = ("groq.com",)
"""Hosts whose `x-ratelimit-limit-requests` is for a day."""
_DAILY_OR_NOT = ("openai.com",)
"""Hosts where it is for a day on some accounts: recognised by how slowly the bucket refills."""
_UNSURE = ("azure.com",)
"""Hosts where it is for ten seconds on some deployments and for a minute on others: it is not read there."""
_REFILLING = ("anthropic.com", "groq.com", "openai.com")
_PART = 0.1
_MAX_PART = 60.0
"""Of a refilling bucket a tenth is waited for, a minute at most: nothing is lost, since it goes on filling."""

_NUMBER = re.compile(r"-?\d+(?:\.\d*)?")
_DURATION = re.compile("".join(rf"(?:(\d+(?:\.\d+)?){unit})?" for unit in ("d", "h", "m(?!s)", "s", "ms")))
_UNITS = (86_400.0, 3600.0, 60.0, 1.0, 0.001)
_FIELD = re.compile(r"\b(remaining|reset|r|t)=(\d+)\b")
_EPOCH = 1e9
"""A number of at least this is a moment in seconds since 1970; from a hundred times this on, in milliseconds."""
_MAX_FIGURE = 10**12


@dataclass(frozen=True, slots=True)
class _Bucket:
    """One thing that a vendor counts, by the names of its headers."""

    limit: str
    remaining: str
    reset: str
    kind: str | None = None
    """The field of `Limits`; None where the window is not known."""


def _named(pattern: str, kind: str | None = None) -> _Bucket:
    limit, remaining, reset = (pattern.replace("*", part) for part in ("limit", "remaining", "reset"))
    return _Bucket(limit, remaining, reset, kind)


_BUCKETS = (
    _named("x-ratelimit-*-requests", "requests_per_minute"),
    _named("x-ratelimit-*-tokens", "tokens_per_minute"),
    _named("anthropic-ratelimit-requests-*", "requests_per_minute"),
    _named("anthropic-ratelimit-tokens-*", "tokens_per_minute"),
    _named("anthropic-ratelimit-input-tokens-*", "input_tokens_per_minute"),
    _named("anthropic-ratelimit-output-tokens-*", "output_tokens_per_minute"),
    _named("x-ratelimit-*-requests-minute", "requests_per_minute"),
    _named("x-ratelimit-*-req-minute", "requests_per_minute"),
    _named("x-ratelimit-*-requests-day", "requests_per_day"),
    _named("x-ratelimit-*-tokens-minute", "tokens_per_minute"),
    _named("x-ratelimit-*-tokens-prompt", "input_tokens_per_minute"),
    _named("x-ratelimit-*-tokens-generated", "output_tokens_per_minute"),
    _named("x-ratelimit-*"),
    _named("ratelimit-*"),
)


def retry_after(headers: Mapping[str, str], now: datetime, body: object = None) -> float | None:
    """Seconds to wait that a refused call is asked for, never negative; None where nothing is asked that can be read.

    Reads `retry-after` (seconds, or a date as in RFC 9110, section 10.2.3) or its forms in milliseconds; of `body`,
    the parsed answer, Google's RetryInfo, and the headers that OpenRouter puts there. These name the moment at which a
    call will pass. Where nothing does, the longest reset counts, of the buckets that are used up or do not say what
    remains. A date is counted from the answer's own `date` where there is one, so that a wrong local clock does no
    harm; else from `now`. A wait of more than `MAX_WAIT` is passed over.
    """
    fields = _lower_headers(headers, body)
    now = date_of(fields.get("date", "")) or now
    asked = _asked_wait(fields, now)
    if asked is None:
        asked = _plausible(_seconds(_delay_inside(body), now))
    if asked is not None:
        return asked
    resets = (
        _plausible(_seconds(fields.get(bucket.reset, ""), now))
        for bucket in _BUCKETS
        if _is_empty(fields, bucket, True)
    )
    return max((reset for reset in resets if reset is not None), default=None)


def read_limits(headers: Mapping[str, str], host: str, now: datetime) -> tuple[Limits, float] | None:
    """The account's limits in an answer from this host, and the seconds to hold because one is used up.

    Of a bucket that refills only a tenth is waited for, and a minute at most; where the answer asks for a wait itself,
    no longer than that. None where nothing is said that can be read.
    """
    fields = _lower_headers(headers, None)
    now = date_of(fields.get("date", "")) or now
    asked = _asked_wait(fields, now)
    limits: dict[str, int] = {}
    hold = 0.0
    for bucket in _BUCKETS:
        reset = _plausible(_seconds(fields.get(bucket.reset, ""), now))
        limit = _count(fields.get(bucket.limit, ""))
        if limit is not None and (kind := _kind(fields, bucket, limit, reset, host)) is not None:
            limits.setdefault(kind, limit)
        if reset is not None and _is_empty(fields, bucket, False):
            refills = bucket.kind is not None and _is_of(host, _REFILLING)
            hold = max(hold, min(reset * _PART, _MAX_PART) if refills else reset)
    if asked is not None:
        hold = min(hold, asked)
    return (Limits(**limits), hold) if limits or hold else None


def _lower_headers(headers: Mapping[str, str], body: object) -> dict[str, str]:
    """The headers by lower name, those within the body and the fields of the IETF's `ratelimit` among them."""
    fields = {name.lower(): value.strip() for name, value in (*_headers_inside(body), *headers.items())}
    for name, value in _FIELD.findall(fields.get("ratelimit", "")):
        fields.setdefault({"r": "ratelimit-remaining", "t": "ratelimit-reset"}.get(name, f"ratelimit-{name}"), value)
    return fields


def _asked_wait(fields: Mapping[str, str], now: datetime) -> float | None:
    """The wait in `retry-after`; its variants in milliseconds are the same wait, more exactly."""
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        milliseconds = _plausible(_number(fields.get(name, "")))
        if milliseconds is not None:
            return milliseconds / 1000
    asked = fields.get("retry-after", "")
    seconds = _number(asked)
    if seconds is None and (until := date_of(asked)) is not None:
        seconds = (until - now).total_seconds()
    return _plausible(seconds)


def _headers_inside(body: object) -> Iterator[tuple[str, str]]:
    """The headers in `error.metadata.headers`: those of the vendor behind OpenRouter, or its own."""
    found = _member(_member(_member(body, "error"), "metadata"), "headers")
    if isinstance(found, dict):
        yield from ((name, str(value)) for name, value in found.items() if isinstance(name, str))


def _delay_inside(body: object) -> str:
    """The `retryDelay` of Google's RetryInfo, such as 34.07s."""
    details = _member(_member(body[0] if isinstance(body, list) and body else body, "error"), "details")
    for detail in details if isinstance(details, list) else ():
        delay = _member(detail, "retryDelay")
        if isinstance(delay, str):
            return delay
    return ""


def _member(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _is_empty(fields: Mapping[str, str], bucket: _Bucket, unsaid: bool) -> bool:
    """Whether nothing remains; `unsaid` is the answer where that is not reported."""
    remaining = _number(fields.get(bucket.remaining, ""))
    return unsaid if remaining is None else remaining <= 0


def _kind(fields: Mapping[str, str], bucket: _Bucket, limit: int, reset: float | None, host: str) -> str | None:
    """The field of `Limits` for a bucket; a limit of requests is called alike whatever its window is."""
    if bucket.limit != "x-ratelimit-limit-requests":
        return bucket.kind
    if _is_of(host, _UNSURE):
        return None
    if _is_of(host, _DAILY):
        return "requests_per_day"
    remaining = _number(fields.get(bucket.remaining, ""))
    if not _is_of(host, _DAILY_OR_NOT) or not reset or remaining is None or not 0 <= remaining < limit:
        return bucket.kind
    return "requests_per_day" if reset * limit / (limit - remaining) > 3600 else bucket.kind


def _is_of(host: str, domains: tuple[str, ...]) -> bool:
    name = host.partition(":")[0].lower()
    return any(name == domain or name.endswith(f".{domain}") for domain in domains)


def _seconds(text: str, now: datetime) -> float | None:
    """Seconds from now, given as a duration (6m0s, 17ms), as a number, or as a moment in any of the usual forms."""
    number = _number(text)
    if number is not None:
        if number < _EPOCH:
            return number
        return number / (1 if number < 100 * _EPOCH else 1000) - now.timestamp()
    if text and (parts := _DURATION.fullmatch(text.lower())):
        return sum(float(part) * unit for part, unit in zip(parts.groups(), _UNITS, strict=True) if part)
    moment = date_of(text)
    return None if moment is None else (moment - now).total_seconds()


def _plausible(seconds: float | None) -> float | None:
    return None if seconds is None or seconds > MAX_WAIT else max(0.0, seconds)


def _number(text: str) -> float | None:
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _count(text: str) -> int | None:
    """A limit; the IETF's draft and some vendors write a policy behind it, others 0 or -1 where there is none."""
    value = _number(re.split("[,;]", text)[0].strip())
    return int(value) if value is not None and 1 <= value <= _MAX_FIGURE else None


def date_of(text: str) -> datetime | None:
    """A moment as HTTP or RFC 3339 writes it."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(text)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):
            continue
    return None
