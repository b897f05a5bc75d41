"""Any endpoint that speaks OpenAI's chat completions, over plain HTTP: OpenAI, OpenRouter, vLLM, Ollama and others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import aiohttp
import orjson

from venire.arena.clock import SystemClock
from venire.arena.errors import CallError, Fault
from venire.arena.records import Reply, Request
from venire.judges.providers.base import Endpoint, redact
from venire.judges.providers.faults import failure, refusal
from venire.judges.providers.replies import read_reply
from venire.judges.providers.sessions import ask_models, connection_failure, open_session

__all__ = ["DIALECTS", "Dialect", "OpenAIProvider"]

_LONGEST_ANSWER = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the parameters of some models differ, and why."""

    reason: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()


# Patterns over the whole model name; the first that matches counts. Names with a vendor before a slash are a
# gateway's, which translates parameters itself.
DIALECTS: Mapping[str, Dialect] = {
    r"gpt-5(\.\d+)?-chat.*": Dialect("no reasoning model in spite of its name"),
    r"(o1|o3|o4|gpt-5)([-.].*)?": Dialect(
        "reasoning models count hidden reasoning too, under another name, and accept no temperature but their own",
        renamed={"max_tokens": "max_completion_tokens"},
        refused=frozenset({"temperature"}),
    ),
}


class OpenAIProvider:
    """One account at an endpoint that speaks OpenAI's chat completions; see `Provider`.

    The session is opened by the first call inside the running loop. `wall` tells the time of day, for a wait that is
    given as a date.
    """

    def __init__(self, endpoint: Endpoint, wall: Callable[[], datetime] = SystemClock().wall) -> None:
        self._endpoint = endpoint
        self._wall = wall
        self._url = endpoint.url("chat/completions")
        self._credentials = {} if endpoint.key is None else {"Authorization": f"Bearer {endpoint.key}"}
        self._headers = {"Content-Type": "application/json", **self._credentials}
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"OpenAIProvider({self._endpoint!r})"

    def encode(self, model: str, request: Request) -> bytes:
        """The JSON body of a request, with sorted names: the same bytes for the same model and request."""
        body: dict[str, Any] = {
            "model": model,
            "messages": [dict(message) for message in request.messages],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
        }
        dialect = _dialect(model)
        return orjson.dumps(
            {
                dialect.renamed.get(name, name): value
                for name, value in body.items()
                if value is not None and name not in dialect.refused
            },
            option=orjson.OPT_SORT_KEYS,
        )

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        """Send a body in one HTTP request, without following a redirect, and read the reply; see `Provider`."""
        try:
            status, headers, data = await self._post(body, {**self._headers, "Idempotency-Key": idempotency_key})
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failed: CallError | None = connection_failure(error, self._endpoint)
        else:
            failed = None
        if failed is not None:
            raise failed
        if len(data) > _LONGEST_ANSWER:
            raise failure("the answer is larger than 32 MiB", Fault.BAD_REQUEST, status=status, may_be_billed=True)
        raw = redact(data.decode(errors="replace"), self._endpoint.key)
        if not 200 <= status < 300:
            raise refusal(status, headers, raw, self._wall())
        return read_reply(raw, body)

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

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the answer; reading ends a little after more bytes than any answer has."""
        async with self._open().post(self._url, data=body, headers=headers, allow_redirects=False) as response:
            data = bytearray()
            async for chunk in response.content.iter_any():
                data += chunk
                if len(data) > _LONGEST_ANSWER:
                    break
            return response.status, response.headers, bytes(data)


def _dialect(model: str) -> Dialect:
    for pattern, dialect in DIALECTS.items():
        if re.fullmatch(pattern, model):
            return dialect
    return Dialect("none")
