"""Connections to an endpoint: how they are opened, and what it means when they fail.

HTTP is spoken by reqwest, hyper and rustls (in Rust, on threads of their own) through the bindings of `ry`. Why these
and not another client, with what each was seen to do: `docs/decisions.md#the-transport`.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from ry import Certificate, Client, Duration, Proxy, ReqwestError, Response

from venire.arena.errors import CallError, Fault, InputError, OutOfFilesError
from venire.judges.providers.base import Endpoint
from venire.judges.providers.faults import failure

AGENT: Mapping[str, str] = {"User-Agent": "venire"}

_MAX_ANSWER = 32 * 2**20
_PROXY_PASSWORD_REFUSED = "Error(Connect, ProxyAuthRequired) }"
_NO_TUNNEL = ("Error(Connect, TunnelUnsuccessful) }", "Error(Connect, TunnelUnexpectedEof) }")
_REASONS: Mapping[str, str] = {
    "kind: ConnectionRefused": "refused",
    "dns error": "unknown host",
    "ConnectError(": "unreachable",
}
"""Words of the library for why no connection was made, and ours. They go into messages; no decision rests on them."""
_NO_FILES = "too many open files; raise `ulimit -n` or lower concurrency"
_TLS_REASONS: Mapping[str, str] = {
    "InvalidCertificate(UnknownIssuer)": "its authority is not trusted; name that in SSL_CERT_FILE",
    "CaUsedAsEndEntity": "it is an authority's; a server needs one made with basicConstraints=CA:FALSE",
    "InvalidCertificate(NotValidForName": "it is for another host",
    "InvalidCertificate(Expired": "it has expired",
}


class Timeouts(NamedTuple):
    """Seconds for a whole call, for its connection, and for a silence of the server (None: no limit but the whole)."""

    total: float
    connect: float
    read: float | None


def timeouts(endpoint: Endpoint, total: float) -> Timeouts:
    """The endpoint's timeouts for a call of so many seconds in all.

    Connecting has a little less than the whole, and than the limit on silence, which the library counts from the start
    of the call: so a call that was never sent is known for one, and costs nothing.
    """
    read = endpoint.read_timeout
    if read is not None and read >= total:
        read = None
    return Timeouts(total, min(endpoint.connect_timeout, 0.9 * (total if read is None else read)), read)


@dataclass(frozen=True, slots=True, repr=False)
class Connections:
    """Connections to one endpoint, by the methods of a client.

    The client itself stays out of sight: its repr has the headers and the proxy, and with them key and password, for
    whatever prints the local variables of a traceback. It needs no closing: connections end with their client.
    """

    get: Callable[..., Awaitable[Response]]
    post: Callable[..., Awaitable[Response]]
    fetch: Callable[..., Awaitable[Response]]
    """With any method: `fetch(url, method="PUT")`."""


def open_connections(endpoint: Endpoint, headers: Mapping[str, str] = AGENT) -> Connections:
    """Connections with the endpoint's timeouts, proxy and certificate authorities; `headers` go with every call.

    They are kept alive, as many as the endpoint may have calls in flight; cookies are not kept, redirects not followed,
    and neither proxies nor passwords are read from the environment. Raises `InputError` where there are no authorities
    to trust.
    """
    client = _open_client(endpoint, headers)
    return Connections(client.get, client.post, client.fetch)


def _open_client(endpoint: Endpoint, headers: Mapping[str, str]) -> Client:
    times = timeouts(endpoint, endpoint.timeout)
    authorities, only = _authorities(endpoint)
    try:
        return Client(
            headers=dict(headers),
            user_agent=False,
            timeout=Duration.from_secs_f64(times.total),
            connect_timeout=Duration.from_secs_f64(times.connect),
            read_timeout=None if times.read is None else Duration.from_secs_f64(times.read),
            redirect=None,
            referer=False,
            http1_only=True,
            brotli=False,
            zstd=False,
            hickory_dns=False,
            pool_max_idle_per_host=endpoint.concurrency,
            tls_certs_merge=authorities,
            tls_certs_only=only,
            proxy=_proxy(endpoint),
        )
    except ReqwestError as error:
        problem = str(error)
    raise InputError(
        f"{endpoint.base_url}: no TLS connection can be made, since this machine has no certificate authorities; "
        f"install them (ca-certificates) or name a file of them in SSL_CERT_FILE ({endpoint.redact(problem)[:200]})"
    )


def _proxy(endpoint: Endpoint) -> Proxy:
    """The endpoint's proxy, or one that is used for no host: without any the library would take the environment's."""
    if endpoint.proxy is not None:
        return Proxy.all(endpoint.proxy)
    return Proxy.all("http://127.0.0.1:1", no_proxy="*,0.0.0.0/0,::/0")


def _authorities(endpoint: Endpoint) -> tuple[list[Certificate] | None, list[Certificate] | None]:
    """The authorities to trust beside the system's, and those to trust alone.

    None at all for plain HTTP, where no TLS is spoken (no redirect is followed, and a proxy is plain): else a machine
    without authorities could not ask a server beside it. What `SSL_CERT_FILE` names is added by us, because the library
    looks at that variable on Linux only.
    """
    if not _speaks_tls(endpoint):
        return None, []
    named = os.environ.get("SSL_CERT_FILE")
    if not named:
        return None, None
    try:
        return Certificate.from_pem_bundle(Path(named).read_bytes()), None
    except (OSError, ReqwestError) as error:
        raise InputError(f"SSL_CERT_FILE names {named}, which holds no certificate that can be read: {error}") from None


def _speaks_tls(endpoint: Endpoint) -> bool:
    return urlsplit(endpoint.base_url).scheme == "https"


async def get_quietly(connections: Connections, url: str, seconds: float) -> tuple[int, str]:
    """Status and text of what is at an address; status 0 and no text where nothing came within the time."""
    try:
        response = await connections.get(url, timeout=Duration.from_secs_f64(seconds))
        return response.status, (await read_body(response) or b"").decode(errors="replace")
    except ReqwestError:
        return 0, ""


async def read_body(response: Response) -> bytes | None:
    """The body of an answer, unpacked; None as soon as it is known to be longer than any answer has a right to be.

    An answer that is packed or comes in chunks does not say how long it is, and is read piece by piece.
    """
    length = response.content_length
    if length is not None:
        return bytes(await response.bytes()) if length <= _MAX_ANSWER else None
    parts = []
    size = 0
    async for part in response.bytes_stream():
        parts.append(bytes(part))
        size += len(part)
        if size > _MAX_ANSWER:
            return None
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def ask(
    connections: Connections,
    endpoint: Endpoint,
    method: str,
    url: str,
    *,
    body: bytes | AsyncIterator[bytes] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Send exactly one request; the answer's body is not read yet.

    `endpoint` is the one that the connections were opened for. A body in pieces is sent as they come; its length goes
    into the header Content-Length, without which it is sent in chunks. Raises `CallError` where no answer came, and
    where a proxy refused the call.
    """
    begun = time.monotonic()
    failed: CallError | None = None
    try:
        sent = {} if body is None else {"body": body}  # the library takes no None
        response = await connections.fetch(url, method=method, headers=dict(headers or {}), **sent)
    except ReqwestError as error:
        failed = connection_failure(error, endpoint, time.monotonic() - begun)
    if failed is None and response.status == 407 and endpoint.proxy:
        failed = proxy_failure(None, endpoint)
    if failed is not None:
        raise failed
    return response


async def read_whole(response: Response, endpoint: Endpoint) -> bytes:
    """The body of an answer; raises `CallError` where it breaks off or is larger than 32 MiB."""
    begun = time.monotonic()
    try:
        content = await read_body(response)
    except ReqwestError as error:
        failed = connection_failure(error, endpoint, time.monotonic() - begun)
    else:
        if content is not None:
            return content
        failed = failure(
            "the answer is larger than 32 MiB", Fault.BAD_REQUEST, status=response.status, may_be_billed=True
        )
    raise failed


async def read_lines(response: Response, endpoint: Endpoint) -> AsyncIterator[bytes]:
    """The lines of an answer, without line ends, as they come: one line and one piece of it are in memory.

    Raises `CallError` where the answer breaks off, after the lines until then, and at a line of more than 32 MiB.
    """
    begun = time.monotonic()
    failed: CallError | None = None
    held: list[bytes] = []
    size = 0
    try:
        async with response.bytes_stream() as stream:
            async for piece in stream:
                first, *others = bytes(piece).split(b"\n")
                held.append(first)
                size += len(first)
                if size > _MAX_ANSWER:
                    failed = failure("a line of the answer is longer than 32 MiB", Fault.BAD_REQUEST)
                    break
                if others:
                    yield b"".join(held)
                    *whole, last = others
                    for line in whole:
                        yield line
                    held, size = [last], len(last)
    except ReqwestError as error:
        failed = connection_failure(error, endpoint, time.monotonic() - begun)
    if failed is not None:
        raise failed
    if size:
        yield b"".join(held)


def headers_of(response: Response) -> dict[str, str]:
    """The headers of an answer by lower name; what is not ASCII in a value is read as Latin-1."""
    return {
        name: ", ".join(value if isinstance(value, str) else value.decode("latin-1") for value in _values(values))
        for name, values in response.headers.to_py().items()
    }


def _values(values: object) -> list[str | bytes]:
    """One value or several of a header as a list."""
    found = values if isinstance(values, list | tuple) else [values]
    return [value for value in found if isinstance(value, str | bytes)]


def connection_failure(error: ReqwestError, endpoint: Endpoint, seconds: float) -> CallError:
    """The error for a call that brought no whole answer, after so many seconds.

    It may be billed unless no connection was made. Raise it outside the `except` block: the library's own errors can
    hold what is secret.
    """
    unsent = error.is_connect()
    if unsent and (refused := proxy_failure(error, endpoint)) is not None:
        return refused
    if unsent and _is_out_of_files(error):
        return OutOfFilesError(f"{endpoint.base_url}: no connection ({_NO_FILES})", Fault.TRANSIENT)
    times = timeouts(endpoint, endpoint.timeout)
    if error.is_timeout():
        what = f"no whole answer within {times.total:g} s (timeout)"
        if unsent:
            what = f"no connection within {times.connect:g} s (connect_timeout)"
        elif times.read is not None and seconds < times.total:
            what = f"the server was silent for {times.read:g} s (read_timeout)"
    elif unsent:
        what = unreachable(error, endpoint)
    elif error.is_body() or error.is_decode():
        what = "the answer broke off, or its body is not what its headers say"
    elif "hyper::Error(Parse(" in str(error):
        what = "what came is no HTTP answer that can be read"
    else:
        what = "the connection broke before the answer"
    return failure(endpoint.redact(f"{endpoint.base_url}: {what}"), Fault.TRANSIENT, may_be_billed=not unsent)


def proxy_failure(error: ReqwestError | None, endpoint: Endpoint) -> CallError | None:
    """The error for a proxy that passed nothing on; None where it is not the proxy's. The call was not sent.

    A refused password closes the lane. `error` is None for an answer of status 407 to a plain call. With which other
    status a proxy refuses a tunnel the library does not say: the call is tried again.
    """
    said = f"the proxy {endpoint.proxy_host} refused the call"
    if error is None or str(error).endswith(_PROXY_PASSWORD_REFUSED):
        said += " (407): its user or password is wrong or missing; correct the proxy"
        return failure(endpoint.redact(said), Fault.AUTHENTICATION, status=407)
    if str(error).endswith(_NO_TUNNEL):
        return failure(endpoint.redact(f"{said}: it opened no tunnel to {endpoint.host}"), Fault.TRANSIENT)
    return None


def _is_out_of_files(error: ReqwestError) -> bool:
    """Whether no connection was made since this process may open no more files.

    A host's name is looked up by the C library, which does not say so: then it is tried.
    """
    text = str(error)
    if "dns error" not in text:
        return "kind: TooManyOpenFiles" in text
    try:
        os.close(os.dup(0))
    except OSError as failed:
        return failed.errno in (errno.EMFILE, errno.ENFILE)
    return False


def unreachable(error: ReqwestError, endpoint: Endpoint) -> str:
    """Why no connection was made, in a few words."""
    text = str(error)
    if _is_out_of_files(error):
        return f"no connection ({_NO_FILES})"
    why = next((words for sign, words in _REASONS.items() if sign in text), None)
    if why is None:
        why = "unreachable"
        if _speaks_tls(endpoint):
            found = next((f": {words}" for sign, words in _TLS_REASONS.items() if sign in text), "")
            why = f"the TLS certificate or handshake failed{found}"
    if endpoint.proxy is not None and ("ConnectFailed(" in text or not _speaks_tls(endpoint)):
        return f"no connection to the proxy {endpoint.proxy_host} ({why})"
    return f"no connection ({why})"
