"""What adapters that speak HTTP themselves share: how a call is posted, and whether anybody is at the other end."""

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
from venire.arena.errors import CallError, Fault, InputError, KeyRefusedError
from venire.judges.providers.base import Endpoint, redact
from venire.judges.providers.connections import (
    AGENT,
    connection_failure,
    open_session,
    proxy_refusal,
    reason,
    refused_by_proxy,
    timeouts,
)
from venire.judges.providers.faults import failure, fault_of, short
from venire.judges.providers.headers import read_limits

__all__ = ["Answer", "HttpProvider", "LimitsReader", "account_of", "ask_models"]

_CHECK_SECONDS = 30.0
_NO_LIST = frozenset({404, 405, 501})
_LONGEST_ANSWER = 32 * 2**20
_LARGE_BODY = 2**20
_LIMITS_SECONDS = 1.0
_EVERY_CALL = {
    **AGENT,
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
    """Connections, one way of posting, limits and closing for adapters that speak HTTP themselves.

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
        self._credentials = _merged(endpoint.headers, credentials)
        self._wall = wall
        headers = _merged(_EVERY_CALL, self._credentials)
        # aiohttp gives a session's headers to its proxy as well, which must not see the key.
        self._of_session, self._of_call = (AGENT, headers) if endpoint.proxy else (headers, {})
        self._secrets = endpoint.secrets
        self._session: aiohttp.ClientSession | None = None
        self._limits = LimitsReader(endpoint.host, wall, monotonic)

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
        if status == 407 and self._endpoint.proxy:
            raise refused_by_proxy(status, self._endpoint)
        if self.on_limits is not None:
            self._limits.tell(self.on_limits, response.headers)
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


class LimitsReader:
    """Reads what the headers of a host's answers say of limits, at most once a second."""

    def __init__(self, host: str, wall: Callable[[], datetime], monotonic: Callable[[], float]) -> None:
        self._host = host
        self._wall = wall
        self._monotonic = monotonic
        self._last = -math.inf

    def tell(self, listener: Callable[[Limits, float], None], headers: Mapping[str, str]) -> None:
        """Tell the listener what these headers say, if anything, unless others were read within a second."""
        now = self._monotonic()
        if now - self._last < _LIMITS_SECONDS:
            return
        self._last = now
        found = read_limits(headers, self._host, self._wall())
        if found is not None:
            listener(*found)


def _merged(*sets: Mapping[str, str]) -> dict[str, str]:
    """Headers of which a later one stands for an earlier one of the same name, however it is written."""
    return dict({name.lower(): (name, value) for headers in sets for name, value in headers.items()}.values())


def account_of(endpoint: Endpoint, model: str) -> tuple[str, ...]:
    """The identity under which lanes share a vendor's limits: host, digest of the key, model; see `Provider`."""
    key = b"" if endpoint.key is None else endpoint.key.encode()
    return endpoint.host, blake2b(key, digest_size=16, person=b"venire account").hexdigest(), model


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


async def ask_models(
    session: aiohttp.ClientSession, endpoint: Endpoint, credentials: Sequence[Mapping[str, str]]
) -> str | None:
    """Ask for the list of models with each form of credentials in turn until one is accepted.

    Returns None when the list came, else a sentence of warning. Raises `KeyRefusedError` where the key was refused, and
    any other `InputError` where no call could succeed.
    """
    status, text = 0, ""
    problem: str | None = None
    for headers in credentials:
        try:
            status, text = await _get(session, endpoint, headers)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError) as error:
            problem = _unreachable(error, endpoint)
            break
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"{endpoint.base_url}: the list of models did not come ({type(error).__name__}); calls may fail too"
        if status not in (401, 403):
            break
    problem = problem or _elsewhere(status, endpoint)
    if problem is not None:
        raise InputError(short(endpoint.redact(problem)))
    if (refused := _refused(status, text, endpoint)) is not None:
        raise KeyRefusedError(short(endpoint.redact(refused)))
    return _warning(status, text, endpoint)


async def _get(session: aiohttp.ClientSession, endpoint: Endpoint, headers: Mapping[str, str]) -> tuple[int, str]:
    timeout = timeouts(endpoint, min(endpoint.timeout, _CHECK_SECONDS))
    async with session.get(endpoint.url("models"), headers=headers, allow_redirects=False, timeout=timeout) as response:
        return response.status, (await response.read()).decode(errors="replace")


def _unreachable(
    error: aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.ClientHttpProxyError,
    endpoint: Endpoint,
) -> str:
    """Why nobody was asked, and what to do about it."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"{endpoint.base_url}: {proxy_refusal(error.status, endpoint)}"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"{endpoint.base_url}: no connection to the proxy {endpoint.proxy_host} ({reason(error)}); check proxy"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        where = f"; check base_url and the proxy {endpoint.proxy_host}" if endpoint.proxy else "; check base_url"
        return f"{endpoint.base_url}: nobody answers at this address{where}"
    return f"{endpoint.base_url}: no connection ({reason(error)}); check base_url and that it is running"


def _refused(status: int, text: str, endpoint: Endpoint) -> str | None:
    # Google refuses a key with 400 and says so in a code.
    if status in (401, 403) or (status == 400 and fault_of(status, text) is Fault.AUTHENTICATION):
        what = "the key was refused" if endpoint.key else "it asks for a key and none is set"
        return f"{endpoint.base_url}: {what} ({status})"
    if status == 407 and endpoint.proxy:
        return f"{endpoint.base_url}: {proxy_refusal(status, endpoint)}"
    return None


def _elsewhere(status: int, endpoint: Endpoint) -> str | None:
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
