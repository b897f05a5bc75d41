"""The long tail of vendors through litellm: about thirty times slower a call than `openai`, and large to import.

litellm is imported by the first call or check, never before. It retries by itself, follows redirects with the key,
takes keys from the environment for hosts that they do not belong to, and classifies failures by their words: all of
this is switched off or undone here. The model name goes to litellm as the user wrote it, so an endpoint that speaks
OpenAI's protocol needs its prefix (`openai/my-model`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import aiohttp
import orjson

from venire.arena.campaigns import Limits
from venire.arena.clock import SystemClock
from venire.arena.errors import CallError, Fault, InputError
from venire.arena.records import Reply, Request
from venire.judges.providers.base import Endpoint, ProviderEntry
from venire.judges.providers.connections import AGENT, open_connections, timeouts
from venire.judges.providers.faults import REFUSALS, classify, failure, refusal, unexplained
from venire.judges.providers.http_provider import LimitsReader, ask_models, limits_key_of
from venire.judges.providers.openai import response_format
from venire.judges.providers.replies import read_reply
from venire.judges.providers.vendors import vendor_of

ACCEPTED = "litellm>=1.106.2,<1.110,!=1.107.*"
"""The releases that may be imported, as `pyproject.toml` writes them; why is in `docs/security.md`."""

_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:\.post\d+)?")
_FIRST, _BEYOND, _BAD = (1, 106, 2), (1, 110, 0), ((1, 107),)

# Read by litellm while it is imported: without them it fetches its tables from the network.
_ENVIRONMENT: Mapping[str, str] = {
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_LOCAL_BLOG_POSTS": "True",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
}
_LOGGERS = ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router")
_KEY_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")
_NO_KEY = "none"
"""Sent where there is no key: given nothing, litellm would send one that it finds in the environment."""


class LiteLLMProvider:
    """One account at a vendor that litellm knows; see `Provider` and the top of this module."""

    def __init__(
        self,
        endpoint: Endpoint,
        wall: Callable[[], datetime] = SystemClock().wall,
        monotonic: Callable[[], float] = SystemClock().monotonic,
    ) -> None:
        if endpoint.proxy is not None:
            raise InputError(f"{endpoint.base_url}: litellm is not asked through a proxy; leave the proxy out")
        self._endpoint = endpoint
        self._wall = wall
        self._limits = LimitsReader(endpoint.host, wall, monotonic)
        self._connections: LiteLLMConnections | None = None
        self.on_limits: Callable[[Limits, float], None] | None = None

    def __repr__(self) -> str:
        return f"LiteLLMProvider({self._endpoint!r})"

    def limits_key(self, model: str) -> tuple[str, ...]:
        """Host, digest of the key, and the model with litellm's prefix; see `Provider`."""
        return limits_key_of(self._endpoint, model)

    def encode(self, model: str, request: Request) -> bytes:
        """What litellm will be called with, as JSON with sorted names; the vendor's own body is made by litellm."""
        call: dict[str, Any] = {
            "model": model,
            "messages": [dict(message) for message in request.messages],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
        }
        if request.schema is not None and self.is_structured(model):
            call["response_format"] = response_format(request.schema)
        if request.top_logprobs:
            call |= vendor_of(self._endpoint.base_url).logprobs(request.top_logprobs)
        return orjson.dumps(
            {name: value for name, value in call.items() if value is not None}, option=orjson.OPT_SORT_KEYS
        )

    def is_structured(self, model: str) -> bool:
        """The campaign file's setting, else what is known of the host; litellm may still drop it; see `Provider`."""
        asked = self._endpoint.structured
        return vendor_of(self._endpoint.base_url).structured if asked is None else asked

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        """Send a body in one HTTP request and read the reply; `raw` is litellm's rendering of it; see `Provider`."""
        call = orjson.loads(body)
        litellm = await asyncio.to_thread(_load)
        failed: CallError | None = None
        HEADER_LISTENER.set(self._on_response)
        try:
            async with asyncio.timeout(self._endpoint.timeout):
                response = await litellm.acompletion(
                    **call,
                    **self._open().clients(call["model"], self._endpoint.base_url),
                    api_base=self._endpoint.base_url.rstrip("/"),
                    api_key=self._endpoint.key or _NO_KEY,
                    drop_params=True,
                    extra_headers={**self._endpoint.headers, "Idempotency-Key": idempotency_key},
                    max_retries=0,
                    timeout=self._timeout(),
                )
        except (litellm.exceptions.openai.OpenAIError, ImportError, TimeoutError, ValueError) as error:
            failed = self._translate(error)
        if failed is not None:
            raise failed
        return read_reply(self._endpoint.redact(response.model_dump_json()), body)

    async def check(self) -> str | None:
        """Ask for the list of models, with the key in the header of each known vendor; see `Provider`."""
        await asyncio.to_thread(_load)
        key = self._endpoint.key
        forms = [{}] if key is None else [{"Authorization": f"Bearer {key}"}, *({name: key} for name in _KEY_HEADERS)]
        headers = self._endpoint.headers
        asked = open_connections(self._endpoint)
        return await ask_models(asked, self._endpoint, [{**headers, **form} for form in forms])

    async def close(self) -> None:
        """Close the connections; a later call opens others."""
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.leave()

    def _on_response(self, status: int, headers: Mapping[str, str]) -> None:
        if self.on_limits is not None and self._limits.due():
            self._limits.report(self.on_limits, headers, refused=status == 429)

    def _timeout(self) -> Any:
        """Connecting and silence; the whole call has its own timer. Not all of litellm's vendors keep the first."""
        asked = timeouts(self._endpoint, self._endpoint.timeout)
        return import_module("httpx").Timeout(
            self._endpoint.timeout, connect=asked.connect, read=asked.read or self._endpoint.timeout
        )

    def _open(self) -> LiteLLMConnections:
        if self._connections is None:
            self._connections = LiteLLMConnections.join(_load())
        return self._connections

    def _translate(self, error: Exception) -> CallError:
        """Our error for one of litellm's, from the answer or the broken connection that lies beneath it."""
        httpx = import_module("httpx")
        beneath = list(_causes(error))
        asked: dict[str, str] = {}
        status: object = None
        for cause in beneath:
            asked.update(getattr(cause, "litellm_response_headers", None) or {})
            status = getattr(cause, "status_code", None) or status
            if isinstance(cause, CallError):
                return cause
            if isinstance(cause, httpx.HTTPStatusError):
                answer = cause.response
                text = self._endpoint.redact(answer.text)
                statuses = vendor_of(self._endpoint.base_url).statuses
                return refusal(answer.status_code, {**asked, **answer.headers}, text, self._wall(), statuses)
            if isinstance(cause, aiohttp.ClientError | TimeoutError):
                return broken_call(cause, self._endpoint)
        message = self._endpoint.redact(str(error))
        if isinstance(error, ImportError):
            return failure(message, Fault.BAD_REQUEST)
        # litellm's own judgment: of the call before it was sent (nothing beneath), or of an answer of status 200.
        code = None if status is None else str(status)
        fault = classify(None, code)
        billed = len(beneath) > 1 and fault not in REFUSALS
        return failure(message, fault, may_be_billed=billed, by_status=unexplained(None, code))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what lies beneath it, outermost first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _check_version(installed: str) -> None:
    """Raise `InputError` for a release that nobody looked at: some that were published stole keys."""
    found = _RELEASE.fullmatch(installed)
    release = tuple(map(int, found.groups())) if found else (0, 0, 0)
    if not _FIRST <= release < _BEYOND or release[:2] in _BAD:
        raise InputError(
            f"litellm {installed} is installed, and it is not imported: accepted is {ACCEPTED}, since some published "
            f"releases were malicious (see docs/security.md); install again with `pip install '{ACCEPTED}'`"
        )


@cache
def _load() -> Any:
    """litellm, made quiet: no network while it is imported, no banners, no log lines that quote a call.

    Raises `InputError` where it is not installed or its version is not one of those that are accepted.
    """
    try:
        installed = version("litellm")
    except PackageNotFoundError:
        raise InputError(f"litellm is not installed; install it with `pip install '{ACCEPTED}'`") from None
    _check_version(installed)
    os.environ.update(_ENVIRONMENT)
    module: Any = import_module("litellm")
    module.suppress_debug_info = True
    module.telemetry = False
    for name in _LOGGERS:
        logging.getLogger(name).disabled = True
    return module


LITELLM = ProviderEntry(LiteLLMProvider, proxies=False)

HEADER_LISTENER: ContextVar[Callable[[int, Mapping[str, str]], None]] = ContextVar("HEARD")
"""Who wants the headers of the answer: the session is shared, and litellm hands out few of them."""


@dataclass(slots=True)
class LiteLLMConnections:
    """The connections of all providers of an event loop, closed when the last one leaves.

    They are shared because litellm keeps its clients, with the session that they were made with, in a store of the
    process: a session of each provider's own would be cut under another's calls when the first provider closes.
    """

    litellm: Any
    session: aiohttp.ClientSession
    handler: Any
    users: int = 0

    @classmethod
    def join(cls, litellm: Any) -> LiteLLMConnections:
        """The running loop's connections, counted once more."""
        loop = asyncio.get_running_loop()
        if loop not in _SHARED:
            session = _open_session()
            handlers = import_module("litellm.llms.custom_httpx.http_handler")
            handler = handlers.AsyncHTTPHandler(follow_redirects=False, shared_session=session)
            _SHARED[loop] = cls(litellm, session, handler)
        _SHARED[loop].users += 1
        return _SHARED[loop]

    async def leave(self) -> None:
        """Count once less, and close what nobody uses any more."""
        self.users -= 1
        if self.users == 0:
            del _SHARED[asyncio.get_running_loop()]
            self.litellm.in_memory_llm_clients_cache.flush_cache()  # its clients hold the session that ends here
            await self.handler.close()
            await self.session.close()

    def clients(self, model: str, base_url: str) -> dict[str, Any]:
        """What keeps litellm on these connections, where no redirect is followed.

        Vendors that speak OpenAI's protocol take a session; the others take only a client of litellm's own make.
        """
        vendor = self.litellm.get_llm_provider(model, api_base=base_url)[1]
        if vendor in ("openai", "azure") or vendor in self.litellm.openai_compatible_providers:
            return {"shared_session": self.session}
        return {"shared_session": self.session, "client": self.handler}


_SHARED: dict[asyncio.AbstractEventLoop, LiteLLMConnections] = {}


def _open_session() -> aiohttp.ClientSession:
    """Any number of connections, kept alive; no cookies, and no proxies or passwords from the environment.

    Timeouts belong to each call.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=AGENT,
        middlewares=(_stay,),
        timeout=aiohttp.ClientTimeout(total=None),
        trust_env=False,
    )


async def _stay(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Turn a redirect of a call into an error before litellm sees it, which would follow with the key; read limits."""
    response = await handler(request)
    if (hear := HEADER_LISTENER.get(None)) is not None:
        hear(response.status, response.headers)
    if request.method == "POST" and 300 <= response.status < 400:
        response.close()
        raise refusal(response.status, response.headers, "", SystemClock().wall())
    return response


def broken_call(error: aiohttp.ClientError | TimeoutError, endpoint: Endpoint) -> CallError:
    """The error for a call that brought no whole answer; it may be billed unless no connection was made."""
    unsent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        what = f"no connection within {endpoint.connect_timeout:g} s (connect_timeout)"
    elif isinstance(error, aiohttp.SocketTimeoutError):
        what = f"the server was silent for {endpoint.read_timeout or endpoint.timeout:g} s (read_timeout)"
    elif isinstance(error, TimeoutError):
        what = f"no whole answer within {endpoint.timeout:g} s (timeout)"
    elif unsent:
        what = "no connection"
    elif isinstance(error, aiohttp.ClientPayloadError):
        what = "the answer broke off, or its body is not what its headers say"
    else:
        what = f"the connection broke before the answer ({type(error).__name__})"
    return failure(endpoint.redact(f"{endpoint.base_url}: {what}"), Fault.TRANSIENT, may_be_billed=not unsent)
