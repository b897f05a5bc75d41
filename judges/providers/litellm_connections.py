"""The connections that litellm asks through: it takes a session of aiohttp, which is its own way of speaking HTTP.

Nothing else here asks through aiohttp; Venire's own adapters use `connections`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import aiohttp

from venire.arena.clock import SystemClock
from venire.arena.errors import CallError, Fault
from venire.judges.providers.base import Endpoint
from venire.judges.providers.connections import AGENT
from venire.judges.providers.faults import failure, refusal

__all__ = ["HEARD", "Connections", "broken_call"]

HEARD: ContextVar[Callable[[int, Mapping[str, str]], None]] = ContextVar("HEARD")
"""Who wants the headers of the answer: the session is shared, and litellm hands out few of them."""


@dataclass(slots=True)
class Connections:
    """The connections of all providers of an event loop, closed when the last one leaves.

    They are shared because litellm keeps its clients, with the session that they were made with, in a store of the
    process: a session of each provider's own would be cut under another's calls when the first provider closes.
    """

    litellm: Any
    session: aiohttp.ClientSession
    handler: Any
    users: int = 0

    @classmethod
    def join(cls, litellm: Any) -> Connections:
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


_SHARED: dict[asyncio.AbstractEventLoop, Connections] = {}


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
    if (hear := HEARD.get(None)) is not None:
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
