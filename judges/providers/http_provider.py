"""The base class of adapters that speak HTTP themselves: one POST a call, limits from headers, an endpoint's check."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple

import orjson
from ry import Duration, ReqwestError

from venire.arena.campaigns import Limits
from venire.arena.clock import SystemClock
from venire.arena.errors import CallError, Fault, InputError, KeyRefusedError
from venire.judges.providers.base import Endpoint, redact
from venire.judges.providers.connections import (
    AGENT,
    Connections,
    connection_failure,
    headers_of,
    open_connections,
    proxy_failure,
    read_body,
    timeouts,
    unreachable,
)
from venire.judges.providers.faults import failure, fault_of, short
from venire.judges.providers.rate_limit_headers import read_limits

_CHECK_SECONDS = 30.0
_NO_LIST = frozenset({404, 405, 501})
_LIMITS_SECONDS = 1.0
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_EVERY_CALL = {
    **AGENT,
    "Accept": "application/json",
    "Content-Type": "application/json",
}


class HttpResponse(NamedTuple):
    """What a server said to a call; the text is without secrets."""

    status: int
    headers: Mapping[str, str]
    """Empty for an answer of status 2xx: nobody needs those, and each is fetched from the library at a price."""
    text: str


class HttpProvider:
    """Connections, one way of posting, limits and closing for adapters that speak HTTP themselves.

    An adapter adds `encode` and `send`, and passes the headers that carry its credentials. The session is opened by
    the first call inside the running loop. `wall` returns the time of day, for waits that are given as dates;
    `monotonic` returns seconds, for reading the headers of an answer at most once a second.
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
        self._credentials = merge_headers(endpoint.headers, credentials)
        self._wall = wall
        self._secrets = endpoint.secrets
        self._connections: Connections | None = None
        self._limits = LimitsReader(endpoint.host, wall, monotonic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint!r})"

    def limits_key(self, model: str) -> tuple[str, ...]:
        """Host, digest of the key, and the model; see `Provider`."""
        return limits_key_of(self._endpoint, model)

    async def post(self, url: str, body: bytes, idempotency_key: str) -> HttpResponse:
        """Send a body in exactly one HTTP request and read the answer, whatever its status; no redirect is followed.

        Raises `CallError` where no whole answer came, where it is larger than 32 MiB, and where a proxy refused it.
        """
        connections = self._connections or self._open()
        begun = time.monotonic()
        failed: CallError | None = None
        try:
            response = await connections.post(url, body=body, headers={"Idempotency-Key": idempotency_key})
            content = await read_body(response)
        except ReqwestError as error:
            failed = connection_failure(error, self._endpoint, time.monotonic() - begun)
        if failed is not None:
            raise failed
        status = response.status
        if content is None:
            raise failure("the answer is larger than 32 MiB", Fault.BAD_REQUEST, status=status, may_be_billed=True)
        if status == 407 and self._endpoint.proxy and (refused := proxy_failure(None, self._endpoint)) is not None:
            raise refused
        if self.on_limits is not None and self._limits.due():
            self._limits.report(self.on_limits, headers_of(response), refused=status == 429)
        try:
            text = content.decode()
        except UnicodeDecodeError:
            text = _decoded(content, headers_of(response).get("content-type", ""))
        for secret in self._secrets:
            text = redact(text, secret)
        return HttpResponse(status, _NO_HEADERS if 200 <= status < 300 else headers_of(response), text)

    async def check(self) -> str | None:
        """Ask for the list of models; see `Provider`."""
        return await ask_models(self._connections or self._open(), self._endpoint, (self._credentials,))

    async def close(self) -> None:
        """Let the connections go; a later call opens others."""
        self._connections = None

    def _open(self) -> Connections:
        self._connections = open_connections(self._endpoint, merge_headers(_EVERY_CALL, self._credentials))
        return self._connections


class LimitsReader:
    """Reads what the headers of a host's answers say of limits, at most once a second."""

    def __init__(self, host: str, wall: Callable[[], datetime], monotonic: Callable[[], float]) -> None:
        self._host = host
        self._wall = wall
        self._monotonic = monotonic
        self._last = -math.inf

    def due(self) -> bool:
        """Whether headers are to be read now: none were within a second."""
        return self._monotonic() - self._last >= _LIMITS_SECONDS

    def report(self, listener: Callable[[Limits, float], None], headers: Mapping[str, str], *, refused: bool) -> None:
        """Tell the listener what these headers say, if anything.

        Those of a call that was refused for its rate hold no other: it may be one alone, and whether nothing passes is
        known from what comes after it.
        """
        self._last = self._monotonic()
        found = read_limits(headers, self._host, self._wall())
        if found is not None:
            limits, hold = found
            listener(limits, 0.0 if refused else hold)


def merge_headers(*sets: Mapping[str, str]) -> dict[str, str]:
    """All headers; a later header replaces an earlier one of the same name, in any letter case."""
    return dict({name.lower(): (name, value) for headers in sets for name, value in headers.items()}.values())


def limits_key_of(endpoint: Endpoint, model: str) -> tuple[str, ...]:
    """The identity under which lanes share a vendor's limits: host, digest of the key, model; see `Provider`."""
    key = b"" if endpoint.key is None else endpoint.key.encode()
    return endpoint.host, blake2b(key, digest_size=16, person=b"venire account").hexdigest(), model


def _decoded(content: bytes, content_type: str) -> str:
    """The text of an answer that is not UTF-8, as JSON is: some servers behind vendors say and mean another charset."""
    charset = content_type.lower().partition("charset=")[2].partition(";")[0].strip(" \"'")
    try:
        return content.decode(charset or "utf-8", errors="replace")
    except LookupError:
        return content.decode(errors="replace")


async def ask_models(
    connections: Connections, endpoint: Endpoint, credentials: Sequence[Mapping[str, str]]
) -> str | None:
    """Ask for the list of models with each form of credentials in turn until one is accepted.

    Returns None when the list came, else a sentence of warning. Raises `KeyRefusedError` where the key was refused, and
    any other `InputError` where no call could succeed.
    """
    status, text = 0, ""
    problem: str | None = None
    for headers in credentials:
        try:
            status, text = await _get(connections, endpoint, headers)
        except ReqwestError as error:
            if not error.is_connect():
                kind = "it took too long" if error.is_timeout() else "the connection broke"
                return f"{endpoint.base_url}: the list of models did not come ({kind}); calls may fail too"
            problem = _not_asked(error, endpoint)
            break
        if status not in (401, 403):
            break
    problem = problem or _elsewhere(status, endpoint)
    if problem is not None:
        raise InputError(short(endpoint.redact(problem)))
    if (refused := _refused(status, text, endpoint)) is not None:
        raise KeyRefusedError(short(endpoint.redact(refused)))
    return _warning(status, text, endpoint)


async def _get(connections: Connections, endpoint: Endpoint, headers: Mapping[str, str]) -> tuple[int, str]:
    seconds = Duration.from_secs_f64(timeouts(endpoint, min(endpoint.timeout, _CHECK_SECONDS)).total)
    response = await connections.get(endpoint.url("models"), headers=dict(headers), timeout=seconds)
    return response.status, (await read_body(response) or b"").decode(errors="replace")


def _not_asked(error: ReqwestError, endpoint: Endpoint) -> str:
    """Why nobody was asked, and what to do about it."""
    if (refused := proxy_failure(error, endpoint)) is not None:
        return f"{endpoint.base_url}: {refused}"
    if error.is_timeout():
        where = f"; check base_url and the proxy {endpoint.proxy_host}" if endpoint.proxy else "; check base_url"
        return f"{endpoint.base_url}: nobody answers at this address{where}"
    why = unreachable(error, endpoint)
    if "open files" in why:
        return f"{endpoint.base_url}: {why}"
    where = "check proxy" if "to the proxy" in why else "check base_url and that it is running"
    return f"{endpoint.base_url}: {why}; {where}"


def _refused(status: int, text: str, endpoint: Endpoint) -> str | None:
    # Google refuses a key with 400 and a machine code.
    if status in (401, 403) or (status == 400 and fault_of(status, text) is Fault.AUTHENTICATION):
        what = "the key was refused" if endpoint.key else "it asks for a key and none is set"
        return f"{endpoint.base_url}: {what} ({status})"
    if status == 407 and endpoint.proxy:
        return f"{endpoint.base_url}: {proxy_failure(None, endpoint)}"
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
