"""Google's Gemini API (`generateContent`) over plain HTTP.

The key goes in a header and never into the address. A prompt that is too long is answered with `INVALID_ARGUMENT`,
like any other bad request: neither status nor code distinguishes the two, so it counts as a bad request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import orjson

from venire.arena.clock import SystemClock
from venire.arena.records import Reply, Request
from venire.judges.providers.base import Endpoint, ProviderEntry
from venire.judges.providers.batches.gemini import GeminiBatches
from venire.judges.providers.faults import error_inside, refusal
from venire.judges.providers.http_provider import HttpProvider
from venire.judges.providers.logprobs import read_candidates
from venire.judges.providers.replies import count, member, no_answer, parse, string
from venire.judges.providers.schemas import gemini_schema, in_order
from venire.judges.providers.token_counting import estimate
from venire.judges.providers.vendors import vendors_by

_FINISHES: Mapping[str, str] = {
    "MAX_TOKENS": "length",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "RECITATION": "content_filter",
    "SAFETY": "content_filter",
    "SPII": "content_filter",
}
# Models that do without a temperature: from Gemini 3.5 Flash-Lite and 3.6 on the parameter is withdrawn.
_NO_TEMPERATURE = re.compile(r"(models/)?gemini-(3\.5-flash-lite|3\.([6-9]|\d\d)|[4-9])([.-].*)?")
# Models before 2.5 know schemas in another dialect alone, and those of other names (Gemma) none.
_SCHEMA = re.compile(r"(models/)?gemini-(?!1|2\.0).*")
_MAX_LOGPROBS = 20
_MODEL = b'{"model":'
_CONTENTS = b',"contents":'


class GeminiProvider(HttpProvider):
    """One account at an endpoint that speaks Gemini's `generateContent`; see `Provider` and `HttpProvider`."""

    def __init__(
        self,
        endpoint: Endpoint,
        wall: Callable[[], datetime] = SystemClock().wall,
        monotonic: Callable[[], float] = SystemClock().monotonic,
    ) -> None:
        super().__init__(endpoint, _credentials(endpoint), wall, monotonic)

    def encode(self, model: str, request: Request) -> bytes:
        """The JSON body of a request, names sorted, after the model's name, which `send` moves into the address."""
        settings: dict[str, Any] = {"maxOutputTokens": request.max_tokens}
        if request.temperature is not None and not _NO_TEMPERATURE.fullmatch(model):
            settings["temperature"] = request.temperature
        if request.seed is not None:
            settings["seed"] = request.seed
        if request.schema is not None and self.is_structured(model):
            settings["responseMimeType"] = "application/json"
            settings["responseJsonSchema"] = in_order(gemini_schema, request.schema)
        if request.top_logprobs:
            settings["responseLogprobs"] = True
            settings["logprobs"] = min(request.top_logprobs, _MAX_LOGPROBS)
        body: dict[str, Any] = {
            "contents": [
                {"parts": [{"text": message["content"]}], "role": "model" if message["role"] == "assistant" else "user"}
                for message in request.messages
                if message["role"] != "system"
            ],
            "generationConfig": settings,
        }
        system = [{"text": message["content"]} for message in request.messages if message["role"] == "system"]
        if system:
            body["systemInstruction"] = {"parts": system}
        return _MODEL + orjson.dumps(model) + b"," + orjson.dumps(body, option=orjson.OPT_SORT_KEYS)[1:]

    def is_structured(self, model: str) -> bool:
        """The campaign file's setting, else whether the model is known to do so; see `Provider`."""
        if self._endpoint.structured is not None:
            return self._endpoint.structured
        return _SCHEMA.fullmatch(model) is not None

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        """Send a body in one HTTP request, without following a redirect, and read the reply; see `Provider`."""
        url = self._endpoint.url(_path(body[len(_MODEL) : body.index(_CONTENTS)]))
        sent = _bare(body)
        status, headers, text = await self.post(url, sent, idempotency_key)
        if not 200 <= status < 300:
            raise refusal(status, headers, text, self._wall())
        return read_content(text, sent)


def _credentials(endpoint: Endpoint) -> dict[str, str]:
    return {} if endpoint.key is None else {"x-goog-api-key": endpoint.key}


def _bare(body: bytes) -> bytes:
    """An encoded body without the model's name before it."""
    # A quote within the name would be escaped, so that the first place where the next field begins is the end.
    return b"{" + body[body.index(_CONTENTS) + 1 :]


@lru_cache(maxsize=64)
def _path(model: bytes) -> str:
    """The path of a model's method; a name without a collection (`tunedModels/...`) is one of `models/`."""
    name: str = orjson.loads(model)
    return f"{quote(name if '/' in name else f'models/{name}')}:generateContent"


def read_content(raw: str, body: bytes) -> Reply:
    """The reply in an answer of status 200; `raw` is its text without the key, `body` the request that it answers.

    A prompt that was blocked brings no candidate and is a reply that a filter ended. The output is the candidate and
    the thoughts: Gemini counts them apart and charges for both. Raises `CallError` where the answer is none.
    """
    payload = parse(raw)
    broken = error_inside(payload)
    if broken is not None:
        raise broken
    candidates = payload.get("candidates")
    candidate = candidates[0] if isinstance(candidates, list) and candidates else None
    blocked = bool(string(member(payload, "promptFeedback"), "blockReason"))
    if not isinstance(candidate, dict):
        if not blocked:
            raise no_answer("HTTP 200 without a candidate")
        candidate = {}
    parts = member(candidate, "content").get("parts")
    said = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    text = "".join(string(part, "text") for part in said if part.get("thought") is not True)
    reasoning = "".join(string(part, "text") for part in said if part.get("thought") is True)
    usage = member(payload, "usageMetadata")
    given = count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount")
    thoughts = count(usage, "thoughtsTokenCount")
    made = count(usage, "candidatesTokenCount") + thoughts
    counted = given > 0 and (made > 0 or not text)  # a count of nought is left out of the answer
    return Reply(
        text=text,
        finish="content_filter" if blocked else _FINISHES.get(string(candidate, "finishReason"), "stop"),
        reasoning=reasoning,
        input_tokens=given or estimate(body.decode()),
        output_tokens=made if counted else made or estimate(text + reasoning),
        cached_tokens=count(usage, "cachedContentTokenCount"),
        reasoning_tokens=thoughts,
        served_model=string(payload, "modelVersion"),
        raw=raw,
        estimated=not counted,
        logprobs=read_candidates(candidate.get("logprobsResult"), text),
        written_tokens=0,  # only a cache that was asked for is written, and none is
    )


def _open_batches(endpoint: Endpoint) -> GeminiBatches:
    return GeminiBatches(endpoint, _credentials(endpoint), read_content, _bare)


GEMINI = ProviderEntry(GeminiProvider, batches={"gemini": _open_batches}, vendors=vendors_by("gemini"))
