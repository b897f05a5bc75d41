"""Connections to an endpoint: how they are opened, and whether anybody who can answer is at the other end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aiohttp
import orjson

from venire.arena.errors import CallError, Fault, InputError
from venire.judges.providers.base import Endpoint, redact
from venire.judges.providers.faults import failure, short

__all__ = ["ask_models", "connection_failure", "open_session"]

_CONNECT_SECONDS = 30.0
_CHECK_SECONDS = 30.0
_NO_LIST = frozenset({404, 405, 501})


def open_session(
    limit: int, timeout: float | None, middlewares: Sequence[aiohttp.ClientMiddlewareType] = ()
) -> aiohttp.ClientSession:
    """A session of at most `limit` connections (0: any number), to be opened inside the running loop.

    `timeout` is for a whole call, in seconds; None leaves it to each call. Connections are kept alive, cookies are
    not kept, and neither proxies nor passwords are read from the environment. The caller closes it.
    """
    connect = _CONNECT_SECONDS if timeout is None else min(timeout, _CONNECT_SECONDS)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "venire"},
        middlewares=middlewares,
        timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=connect),
        trust_env=False,
    )


def connection_failure(error: aiohttp.ClientError | TimeoutError | OSError, endpoint: Endpoint) -> CallError:
    """The error for a call that brought no whole answer; it may be billed unless no connection was made.

    Raise it outside the `except` block: the library's own errors can hold the request with its headers.
    """
    unsent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    if isinstance(error, TimeoutError):
        what = f"no answer within {endpoint.timeout:g} s" if not unsent else "no connection in time"
    elif unsent:
        what = f"no connection ({_reason(error)})"
    else:
        what = f"the connection broke ({type(error).__name__})"
    return failure(redact(f"{endpoint.base_url}: {what}", endpoint.key), Fault.TRANSIENT, may_be_billed=not unsent)


async def ask_models(
    session: aiohttp.ClientSession, endpoint: Endpoint, credentials: Sequence[Mapping[str, str]]
) -> str | None:
    """Ask for the list of models with each form of credentials in turn until one is accepted.

    Returns None when the list came, else a sentence of warning. Raises `InputError` where no call could succeed.
    """
    status, text = 0, ""
    problem: str | None = None
    for headers in credentials:
        try:
            status, text = await _get(session, endpoint, headers)
        except aiohttp.ClientConnectorError as error:
            problem = f"{endpoint.base_url}: no connection ({_reason(error)}); check base_url and that it is running"
            break
        except aiohttp.ConnectionTimeoutError:
            problem = f"{endpoint.base_url}: nobody answers at this address; check base_url"
            break
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"{endpoint.base_url}: the list of models did not come ({type(error).__name__}); calls may fail too"
        if status not in (401, 403):
            break
    problem = problem or _refused(status, endpoint)
    if problem is not None:
        raise InputError(short(redact(problem, endpoint.key)))
    return _warning(status, text, endpoint)


async def _get(session: aiohttp.ClientSession, endpoint: Endpoint, headers: Mapping[str, str]) -> tuple[int, str]:
    seconds = min(endpoint.timeout, _CHECK_SECONDS)
    timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=seconds / 2)
    async with session.get(endpoint.url("models"), headers=headers, allow_redirects=False, timeout=timeout) as response:
        return response.status, (await response.read()).decode(errors="replace")


def _refused(status: int, endpoint: Endpoint) -> str | None:
    if status in (401, 403):
        what = "the key was refused" if endpoint.key else "it asks for a key and none is set"
        return f"{endpoint.base_url}: {what} ({status})"
    if 300 <= status < 400:
        return f"{endpoint.base_url}: sends elsewhere ({status}), and a key must not follow; correct base_url"
    return None


def _warning(status: int, text: str, endpoint: Endpoint) -> str | None:
    if status in _NO_LIST:
        return f"{endpoint.base_url}: has no list of models ({status}); whether the key and the model work is unknown"
    if status != 200:
        return f"{endpoint.base_url}: the list of models was answered with {status}; calls may fail too"
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return f"{endpoint.base_url}: the list of models is no JSON; does base_url end where the API begins?"
    return None


def _reason(error: Exception) -> str:
    """Why no connection was made, in a few words."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "unknown host"
    if isinstance(error, aiohttp.ClientSSLError):
        return "the TLS certificate or handshake failed"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
    return "refused" if isinstance(cause, ConnectionRefusedError) else "unreachable"
