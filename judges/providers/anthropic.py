"""Anthropic's Messages API over plain HTTP.

It has no seed parameter, so repeats of a trial differ only by chance, and hardly at temperature 0.
A prompt that is too long is answered with `invalid_request_error`, like any other bad request: neither status nor
code distinguishes the two, so it counts as a bad request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import orjson

from venire.arena.clock import SystemClock
from venire.arena.records import Reply, Request
from venire.judges.providers.base import Endpoint, ProviderEntry
from venire.judges.providers.batches.anthropic import AnthropicBatches
from venire.judges.providers.faults import error_inside, refusal
from venire.judges.providers.http_provider import HttpProvider, limits_key_of
from venire.judges.providers.replies import count, member, no_answer, parse, string
from venire.judges.providers.schemas import anthropic_schema, in_order
from venire.judges.providers.token_counting import estimate
from venire.judges.providers.vendors import vendors_by

_VERSION = "2023-06-01"
_FINISHES: Mapping[str, str] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}

# Models that answer 400 to a temperature other than their own: those from Claude Opus 4.7 on. Names with a vendor
# before a slash are a gateway's, which translates parameters itself.
_NO_TEMPERATURE = re.compile(r"claude-(opus-4-[78]|mythos|[a-z]+-[5-9])(-.*)?")

# Models that hold an answer to a schema without a header for trials: from 4.5 on.
_SCHEMA = re.compile(r"claude-(opus|sonnet|haiku)-4-[5-9](-.*)?|claude-(mythos|[a-z]+-[5-9])(-.*)?")

_FAMILY = re.compile(r"opus|sonnet|haiku")


class AnthropicProvider(HttpProvider):
    """One account at an endpoint that speaks Anthropic's Messages API; see `Provider` and `HttpProvider`."""

    def __init__(
        self,
        endpoint: Endpoint,
        wall: Callable[[], datetime] = SystemClock().wall,
        monotonic: Callable[[], float] = SystemClock().monotonic,
    ) -> None:
        super().__init__(endpoint, _credentials(endpoint), wall, monotonic)
        self._url = endpoint.url("messages")

    def limits_key(self, model: str) -> tuple[str, ...]:
        """As Anthropic counts: all models of a family (Opus, Sonnet, Haiku) under one limit; see `Provider`."""
        host, key, _ = limits_key_of(self._endpoint, model)
        family = _FAMILY.search(model)
        return host, key, family[0] if family else model

    def encode(self, model: str, request: Request) -> bytes:
        """The JSON body of a request, with sorted names; system messages stand in a field of their own.

        A seed and log-probabilities are left out, since there are no such parameters, and a temperature where the
        model refuses it.
        """
        system = [message["content"] for message in request.messages if message["role"] == "system"]
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": request.max_tokens,
            "messages": [dict(message) for message in request.messages if message["role"] != "system"],
        }
        if system:
            body["system"] = "\n\n".join(system)
        if request.temperature is not None and not _NO_TEMPERATURE.fullmatch(model):
            body["temperature"] = request.temperature
        if request.schema is not None and self.is_structured(model):
            body["output_config"] = {
                "format": {"type": "json_schema", "schema": in_order(anthropic_schema, request.schema)}
            }
        return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)

    def is_structured(self, model: str) -> bool:
        """The campaign file's setting, else whether the model is known to do so; see `Provider`."""
        if self._endpoint.structured is not None:
            return self._endpoint.structured
        return _SCHEMA.fullmatch(model) is not None

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        """Send a body in one HTTP request, without following a redirect, and read the reply; see `Provider`."""
        status, headers, text = await self.post(self._url, body, idempotency_key)
        if not 200 <= status < 300:
            raise refusal(status, headers, text, self._wall())
        return read_message(text, body)


def _credentials(endpoint: Endpoint) -> dict[str, str]:
    key = {} if endpoint.key is None else {"x-api-key": endpoint.key}
    return {"anthropic-version": _VERSION, **key}


def read_message(raw: str, body: bytes) -> Reply:
    """The reply in an answer of status 200; `raw` is its text without the key, `body` the request that it answers.

    Input tokens are those read from a cache, those written to one and the rest: the three counts of the answer
    exclude one another. Cached tokens are those read. Raises `CallError` where the answer is none.
    """
    payload = parse(raw)
    broken = error_inside(payload)
    if broken is not None:
        raise broken
    content = payload.get("content")
    if not isinstance(content, list):
        raise no_answer("HTTP 200 without content")
    blocks = [block for block in content if isinstance(block, dict)]
    text = "".join(string(block, "text") for block in blocks if block.get("type") == "text")
    reasoning = "".join(string(block, "thinking") for block in blocks if block.get("type") == "thinking")
    usage = member(payload, "usage")
    cached, written = count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens")
    given = count(usage, "input_tokens") + cached + written
    counted = given > 0 and isinstance(usage.get("output_tokens"), int)
    return Reply(
        text=text or string(member(payload, "stop_details"), "explanation"),
        finish=_FINISHES.get(string(payload, "stop_reason"), "stop"),
        reasoning=reasoning,
        input_tokens=given or estimate(body.decode()),
        output_tokens=count(usage, "output_tokens") if counted else estimate(text + reasoning),
        cached_tokens=cached,
        reasoning_tokens=count(member(usage, "output_tokens_details"), "thinking_tokens"),
        served_model=string(payload, "model"),
        raw=raw,
        estimated=not counted,
        written_tokens=written,
    )


def _open_batches(endpoint: Endpoint) -> AnthropicBatches:
    return AnthropicBatches(endpoint, _credentials(endpoint), read_message)


ANTHROPIC = ProviderEntry(
    AnthropicProvider, batches={"anthropic": _open_batches}, vendors=vendors_by("anthropic"), max_temperature=1
)
