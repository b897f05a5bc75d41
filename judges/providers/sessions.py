"""Connections to an endpoint: how they are opened, how a call is posted, and whether anybody is at the other end."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

import aiohttp
import orjson

from venire.arena.campaigns import Limits
from venire.arena.clock import SystemClock
from venire.arena.errors import CallError, Fault, InputError
from venire.judges.providers.base import Endpoint, redact
from venire.judges.providers.faults import classify, failure, short
from venire.judges.providers.headers import read_limits

__all__ = ["Answer", "HttpProvider", "account_of", "ask_models", "connection_failure", "open_session"]

_CHECK_SECONDS = 30.0
_NO_LIST = frozenset({404, 405, 501})
_LONGEST_ANSWER = 32 * 2**20
_LARGE_BODY = 2**20
_LIMITS_SECONDS = 1.0
_AGENT = {"User-Agent": "venire"}
_EVERY_CALL = {
    **_AGENT,
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "Content-Type": "application/json",
}


class Answer(NamedTuple):
    """What a server said to a call; the text is without secrets."""

    status: int
    headers: Mapping[str, str]
    text: str


class HttpProvider:
    """What adapters that speak HTTP themselves share: connections, one way of posting, limits, closing.

    An adapter adds `encode` and `send`, and passes the headers that carry its credentials. The session is opened by
    the first call inside the running loop. `wall` tells the time of day, for waits that are given as dates;
    `monotonic` tells seconds, for reading the headers of an answer at most once a second.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Mapping[str, str],
        wall: Callable[[], datetime] = SystemClock().wall,
        monotonic: Callable[[], float] = SystemClock().monotonic,
    ) -> None:
        self.on_limits: Callable[[Limits, float], None] | None = None
        self._endpoint = endpoint
        self._credentials = {**endpoint.headers, **credentials}
        self._wall = wall
        self._monotonic = monotonic
        headers = {**_EVERY_CALL, **self._credentials}
        # aiohttp gives a session's headers to its proxy as well, which must not see the key.
        self._of_session, self._of_call = (_AGENT, headers) if endpoint.proxy else (headers, {})
        self._secrets = endpoint.secrets
        self._session: aiohttp.ClientSession | None = None
        self._limits_read = -math.inf

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint!r})"

    def account(self, model: str) -> tuple[str, ...]:
        """Host, digest of the key, and the model; see `Provider`."""
        return account_of(self._endpoint, model)

    async def post(self, url: str, body: bytes, idempotency_key: str) -> Answer:
        """Send a body in exactly one HTTP request and read the answer, whatever its status; no redirect is followed.

        Raises `CallError` where no whole answer came, where it is larger than 32 MiB, and where a proxy refused it.
        """
        session = self._session or self._open()
        headers = {**self._of_call, "Idempotency-Key": idempotency_key}
        # aiohttp warns of larger bodies that are bytes, and sends those of a file in pieces.
        data: Any = body if len(body) < _LARGE_BODY else io.BytesIO(body)
        try:
            response = await session.post(url, data=data, headers=headers, allow_redirects=False)
            try:
                content = await _read(response)
            finally:
                if not response.closed:
                    response.close()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failed: CallError | None = connection_failure(error, self._endpoint)
        else:
            failed = None
        if failed is not None:
            raise failed
        status = response.status
        if content is None:
            raise failure("the answer is larger than 32 MiB", Fault.BAD_REQUEST, status=status, may_be_billed=True)
        if status == 407:
            raise _refused_by_proxy(status, self._endpoint)
        if self.on_limits is not None:
            self._tell_limits(self.on_limits, response.headers)
        text = _decoded(content, response.headers)
        for secret in self._secrets:
            text = redact(text, secret)
        return Answer(status, response.headers, text)

    async def check(self) -> str | None:
        """Ask for the list of models; see `Provider`."""
        return await ask_models(self._session or self._open(), self._endpoint, (self._credentials,))

    async def close(self) -> None:
        """Close the session; a later call opens another."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        self._session = open_session(self._endpoint.concurrency, self._endpoint, self._of_session)
        return self._session

    def _tell_limits(self, listener: Callable[[Limits, float], None], headers: Mapping[str, str]) -> None:
        now = self._monotonic()
        if now - self._limits_read < _LIMITS_SECONDS:
            return
        self._limits_read = now
        found = read_limits(headers, self._endpoint.host, self._wall())
        if found is not None:
            listener(*found)


def account_of(endpoint: Endpoint, model: str) -> tuple[str, ...]:
    """The identity under which lanes share a vendor's limits: host, digest of the key, model; see `Provider`."""
    key = b"" if endpoint.key is None else endpoint.key.encode()
    return endpoint.host, blake2b(key, digest_size=16, person=b"venire account").hexdigest(), model


def open_session(
    limit: int,
    endpoint: Endpoint | None,
    headers: Mapping[str, str] = _AGENT,
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
        timeout=aiohttp.ClientTimeout(total=None) if endpoint is None else _timeouts(endpoint, endpoint.timeout),
        trust_env=False,
    )


def _timeouts(endpoint: Endpoint, total: float) -> aiohttp.ClientTimeout:
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


async def _read(response: aiohttp.ClientResponse) -> bytes | None:
    """The body of an answer, unpacked; None as soon as it is known to be longer than any answer has a right to be."""
    stream = response.content
    first = await stream.readany()
    if stream.at_eof():
        return first
    parts = [first]
    size = len(first)
    while not stream.at_eof():
        part = await stream.readany()
        parts.append(part)
        size += len(part)
        if size > _LONGEST_ANSWER:
            return None
    return b"".join(parts)


def _decoded(content: bytes, headers: Mapping[str, str]) -> str:
    """The text of an answer: JSON is UTF-8, but some servers behind vendors say and mean another charset."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        charset = headers.get("Content-Type", "").lower().partition("charset=")[2].partition(";")[0].strip(" \"'")
        try:
            return content.decode(charset or "utf-8", errors="replace")
        except LookupError:
            return content.decode(errors="replace")


def connection_failure(error: aiohttp.ClientError | TimeoutError | OSError, endpoint: Endpoint) -> CallError:
    """The error for a call that brought no whole answer; it may be billed unless no connection was made.

    Raise it outside the `except` block: the library's own errors can hold the request with its headers.
    """
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return _refused_by_proxy(error.status, endpoint)
    unsent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        what = f"no connection within {_timeouts(endpoint, endpoint.timeout).connect:g} s (connect_timeout)"
    elif isinstance(error, aiohttp.SocketTimeoutError):
        what = f"the server was silent for {endpoint.read_timeout:g} s (read_timeout)"
    elif isinstance(error, TimeoutError):
        what = f"no whole answer within {endpoint.timeout:g} s (timeout)"
    elif isinstance(error, aiohttp.ClientProxyConnectionError):
        what = f"no connection to the proxy {endpoint.proxy_host} ({_reason(error)})"
    elif unsent:
        what = f"no connection ({_reason(error)})"
    elif isinstance(error, aiohttp.ClientResponseError):
        what = "what came is no HTTP answer that can be read"
    elif isinstance(error, aiohttp.ClientPayloadError):
        what = "the answer broke off, or its body is not what its headers say"
    else:
        what = f"the connection broke before the answer ({type(error).__name__})"
    return failure(endpoint.redact(f"{endpoint.base_url}: {what}"), Fault.TRANSIENT, may_be_billed=not unsent)


def _refused_by_proxy(status: int, endpoint: Endpoint) -> CallError:
    """The error for a proxy that passed nothing on: the call was not sent. A refused password closes the lane."""
    what = f"the proxy {endpoint.proxy_host} refused the call ({status})"
    if status == 407:
        what += ": its user or password is wrong or missing; correct the proxy"
    return failure(endpoint.redact(what), classify(status), status=status)


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
        raise InputError(short(endpoint.redact(problem)))
    return _warning(status, text, endpoint)


async def _get(session: aiohttp.ClientSession, endpoint: Endpoint, headers: Mapping[str, str]) -> tuple[int, str]:
    timeout = _timeouts(endpoint, min(endpoint.timeout, _CHECK_SECONDS))
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
