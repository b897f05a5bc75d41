"""Google's Gemini API (`generateContent`) over plain HTTP.

The key goes in a header and never into the address. A prompt that is too long is answered with `INVALID_ARGUMENT`,
like any other bad request: no status and no code tells the two apart, so that it counts as a bad request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson

from venire.arena.clock import SystemClock
from venire.arena.errors import CallError, Fault
from venire.arena.records import Reply, Request
from venire.judges.providers.base import Endpoint
from venire.judges.providers.faults import error_inside, failure, refusal
from venire.judges.providers.posting import post
from venire.judges.providers.replies import count, member, no_answer, parse, string
from venire.judges.providers.sessions import ask_models, open_session
from venire.judges.providers.tokens import estimate

__all__ = ["GeminiProvider", "read_content", "read_status"]

_FINISHES: Mapping[str, str] = {
    "MAX_TOKENS": "length",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "RECITATION": "content_filter",
    "SAFETY": "content_filter",
    "SPII": "content_filter",
}
# Reasons of `google.rpc.ErrorInfo` that say more than the status that they come with.
_REASONS: Mapping[str, Fault] = {
    "ACCESS_TOKEN_EXPIRED": Fault.AUTHENTICATION,
    "API_KEY_INVALID": Fault.AUTHENTICATION,
    "API_KEY_EXPIRED": Fault.AUTHENTICATION,
    "BILLING_DISABLED": Fault.QUOTA,
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)s")
# Models that do without a temperature: from Gemini 3.5 Flash-Lite and 3.6 on the parameter is withdrawn.
_NO_TEMPERATURE = re.compile(r"(models/)?gemini-(3\.5-flash-lite|3\.([6-9]|\d\d)|[4-9])([.-].*)?")
_MODEL = b'{"model":'
_CONTENTS = b',"contents":'


class GeminiProvider:
    """One account at an endpoint that speaks Gemini's `generateContent`; see `Provider`.

    `wall` tells the time of day, for a wait that is given as a date.
    """

    def __init__(self, endpoint: Endpoint, wall: Callable[[], datetime] = SystemClock().wall) -> None:
        self._endpoint = endpoint
        self._wall = wall
        self._credentials = {} if endpoint.key is None else {"x-goog-api-key": endpoint.key}
        self._headers = {"Content-Type": "application/json", **self._credentials}
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"GeminiProvider({self._endpoint!r})"

    def encode(self, model: str, request: Request) -> bytes:
        """The JSON body of a request, names sorted, after the model's name, which `send` moves into the address."""
        settings: dict[str, Any] = {"maxOutputTokens": request.max_tokens}
        if request.temperature is not None and not _NO_TEMPERATURE.fullmatch(model):
            settings["temperature"] = request.temperature
        if request.seed is not None:
            settings["seed"] = request.seed
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

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        """Send a body in one HTTP request, without following a redirect, and read the reply; see `Provider`."""
        # A quote within the name would be escaped, so that the first place where the next field begins is the end.
        end = body.index(_CONTENTS)
        url = self._endpoint.url(_path(body[len(_MODEL) : end]))
        headers = {**self._headers, "Idempotency-Key": idempotency_key}
        sent = b"{" + body[end + 1 :]
        raw = await post(self._open(), self._endpoint, url, sent, headers, self._wall, read_status)
        return read_content(raw, sent)

    async def check(self) -> str | None:
        """Ask for the list of models; see `Provider`."""
        return await ask_models(self._open(), self._endpoint, (self._credentials,))

    async def close(self) -> None:
        """Close the session; a later call opens another."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = open_session(self._endpoint.concurrency, self._endpoint.timeout)
        return self._session


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
    )


def read_status(status: int, headers: Mapping[str, str], text: str, now: datetime) -> CallError:
    """The error for an HTTP answer other than 2xx with a `google.rpc.Status`; `text` is its body without the key.

    The wait comes from `RetryInfo`, else from the headers. A limit of a day that is used up is a quota: waiting for
    it is not a matter of seconds, whatever `RetryInfo` says. A key is refused with status 400 and a reason.
    """
    plain = refusal(status, headers, text, now)
    fault, wait = plain.fault, plain.retry_after
    for detail in _details(text):
        fault = _REASONS.get(string(detail, "reason"), fault)
        asked = _DURATION.fullmatch(string(detail, "retryDelay"))
        wait = float(asked[1]) if asked else wait
        if any("PerDay" in string(violation, "quotaId") for violation in _list(detail, "violations")):
            fault = Fault.QUOTA
    return failure(str(plain), fault, status=status, retry_after=wait, may_be_billed=plain.may_be_billed)


def _details(text: str) -> Iterator[Mapping[str, Any]]:
    """The details of an error; some endpoints put the error into a list of one."""
    try:
        payload = orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    if isinstance(payload, list) and len(payload) == 1:
        payload = payload[0]
    if isinstance(payload, dict):
        yield from _list(member(payload, "error"), "details")


def _list(parent: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = parent.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
