"""Connections to an endpoint: how they are opened, and what it means when they fail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import aiohttp

from venire.arena.errors import CallError, Fault
from venire.judges.providers.base import Endpoint
from venire.judges.providers.faults import classify, failure

__all__ = ["AGENT", "connection_failure", "open_session", "proxy_refusal", "reason", "refused_by_proxy", "timeouts"]

AGENT: Mapping[str, str] = {"User-Agent": "venire"}


def open_session(
    limit: int,
    endpoint: Endpoint | None,
    headers: Mapping[str, str] = AGENT,
    middlewares: Sequence[aiohttp.ClientMiddlewareType] = (),
) -> aiohttp.ClientSession:
    """A session of at most `limit` connections (0: any number), to be opened inside the running loop.

    Timeouts and proxy are the endpoint's; None leaves them to each call. `headers` go with every call, and to the
    proxy. Connections are kept alive, cookies are not kept, and neither proxies nor passwords are read from the
    environment. The caller closes it.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        middlewares=middlewares,
        proxy=None if endpoint is None else endpoint.proxy,
        timeout=aiohttp.ClientTimeout(total=None) if endpoint is None else timeouts(endpoint, endpoint.timeout),
        trust_env=False,
    )


def timeouts(endpoint: Endpoint, total: float) -> aiohttp.ClientTimeout:
    """The endpoint's timeouts for a call of so many seconds in all.

    Connecting has a little less than the whole, so that a call that was never sent is known for one: it costs nothing.
    No deadline is rounded up to a whole second, as aiohttp otherwise does, since it would undo that order.
    """
    read = endpoint.read_timeout
    return aiohttp.ClientTimeout(
        total=total,
        connect=min(endpoint.connect_timeout, 0.9 * total),
        sock_read=read if read is not None and read < total else None,
        ceil_threshold=math.inf,
    )


def connection_failure(error: aiohttp.ClientError | TimeoutError | OSError, endpoint: Endpoint) -> CallError:
    """The error for a call that brought no whole answer; it may be billed unless no connection was made.

    Raise it outside the `except` block: the library's own errors can hold the request with its headers.
    """
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return refused_by_proxy(error.status, endpoint)
    unsent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        what = f"no connection within {timeouts(endpoint, endpoint.timeout).connect:g} s (connect_timeout)"
    elif isinstance(error, aiohttp.SocketTimeoutError):
        what = f"the server was silent for {endpoint.read_timeout or endpoint.timeout:g} s (read_timeout)"
    elif isinstance(error, TimeoutError):
        what = f"no whole answer within {endpoint.timeout:g} s (timeout)"
    elif isinstance(error, aiohttp.ClientProxyConnectionError):
        what = f"no connection to the proxy {endpoint.proxy_host} ({reason(error)})"
    elif unsent:
        what = f"no connection ({reason(error)})"
    elif isinstance(error, aiohttp.ClientResponseError):
        what = "what came is no HTTP answer that can be read"
    elif isinstance(error, aiohttp.ClientPayloadError):
        what = "the answer broke off, or its body is not what its headers say"
    else:
        what = f"the connection broke before the answer ({type(error).__name__})"
    return failure(endpoint.redact(f"{endpoint.base_url}: {what}"), Fault.TRANSIENT, may_be_billed=not unsent)


def refused_by_proxy(status: int, endpoint: Endpoint) -> CallError:
    """The error for a proxy that passed nothing on: the call was not sent. A refused password closes the lane."""
    return failure(endpoint.redact(proxy_refusal(status, endpoint)), classify(status), status=status)


def proxy_refusal(status: int, endpoint: Endpoint) -> str:
    what = f"the proxy {endpoint.proxy_host} refused the call ({status})"
    return f"{what}: its user or password is wrong or missing; correct the proxy" if status == 407 else what


def reason(error: Exception) -> str:
    """Why no connection was made, in a few words."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "unknown host"
    if isinstance(error, aiohttp.ClientSSLError):
        return "the TLS certificate or handshake failed"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
    return "refused" if isinstance(cause, ConnectionRefusedError) else "unreachable"
