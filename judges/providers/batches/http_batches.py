"""The base class of batch interfaces over HTTP: calls, uploads from disk, and files of answers read as streams."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import orjson

from venire.arena.clock import SystemClock
from venire.arena.errors import CallError, Fault
from venire.arena.records import Reply
from venire.judges.providers.base import Endpoint
from venire.judges.providers.batches.base import CLOCK_SKEW, BatchAnswer, BatchStatus
from venire.judges.providers.connections import (
    AGENT,
    Connections,
    ask,
    headers_of,
    open_connections,
    read_lines,
    read_whole,
)
from venire.judges.providers.faults import failure, refusal, short
from venire.judges.providers.http_provider import merge_headers
from venire.judges.providers.rate_limit_headers import date_of
from venire.judges.providers.replies import string

_PIECE = 2**16
_ACCEPT = {"Accept": "application/json"}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BYTES_PER_S = 100_000
"""The slowest upload that is waited for."""
_DOWNLOAD_S = 86_400.0
"""For a whole file of answers, which is read as fast as it is recorded; a silence has a limit of its own."""
UNKNOWN_STATUS = 500
"""Of an answer that says none."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class HttpBatches:
    """What the batch interfaces over HTTP share; each adds the paths, states and line form of its vendor.

    `credentials` are the headers with the key, which go to the endpoint's own host alone. `read` makes a reply of the
    text of an answer and the body of its request, `statuses` are those that mean something else at this vendor.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Mapping[str, str],
        read: Callable[[str, bytes], Reply],
        statuses: Mapping[int, Fault] | None = None,
        wall: Callable[[], datetime] = SystemClock().wall,
    ) -> None:
        self._endpoint = endpoint
        self._headers = merge_headers(AGENT, endpoint.headers, credentials)
        self._read = read
        self._statuses = statuses
        self._wall = wall
        self._calls: Connections | None = None
        # Until an answer has a date, the vendor's clock may be as far behind ours as this.
        self._ahead = -CLOCK_SKEW

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint!r})"

    def read(self, answer: BatchAnswer, body: bytes) -> Reply:
        """The reply in an answer with a status; raises `CallError` where it is none. See `BatchProvider`."""
        if answer.status is None:
            raise failure(f"not asked: {answer.text}", Fault.TRANSIENT)
        if not 200 <= answer.status < 300:
            raise refusal(answer.status, {}, answer.text, self._wall(), self._statuses)
        return self._read(answer.text, body)

    def by_our_clock(self, status: BatchStatus) -> BatchStatus:
        """A status with the time of its making by our clock, as far as the date of the vendor's last answer says."""
        if status.created_at is None:
            return status
        return replace(status, created_at=status.created_at - self._ahead)

    async def newest(
        self, path: str, cursor: str, since: datetime, read: Callable[[Mapping[str, Any]], BatchStatus]
    ) -> list[BatchStatus]:
        """The batches of a list with the newest first, page by page until one was made before that time.

        `cursor` is the parameter that has the id of the last batch of the page before.
        """
        found: list[BatchStatus] = []
        after = ""
        while True:
            page = await self.call("GET", f"{path}&{cursor}={path_of(after)}" if after else path)
            listed = [self.by_our_clock(read(batch)) for batch in page.get("data") or () if isinstance(batch, dict)]
            recent = [status for status in listed if status.created_at is None or status.created_at >= since]
            found += recent
            if len(recent) < len(listed) or not listed or not page.get("has_more") or listed[-1].id == after:
                return found
            after = listed[-1].id

    async def close(self) -> None:
        """Let the connections go; a later call opens others."""
        self._calls = None

    async def call(self, method: str, path: str, body: object = None, *, makes: bool = False) -> dict[str, Any]:
        """The JSON object in the answer to a call at a path of the endpoint; raises `CallError` where there is none.

        `makes`: the call makes a batch, so that one may have been made where its answer is lost or a server's error;
        the error of any other call is never `may_be_billed`.
        """
        found, _ = await self.send(method, self._endpoint.url(path), body, {}, makes=makes)
        return found

    async def send(
        self, method: str, url: str, body: object, headers: Mapping[str, str], *, makes: bool = False
    ) -> tuple[dict[str, Any], Mapping[str, str]]:
        """As `call`, at a whole address of the endpoint's host and with further headers; also the answer's headers."""
        if self._calls is None:
            self._calls = open_connections(self._endpoint, self._headers)
        sent = None if body is None else orjson.dumps(body)
        headers = _ACCEPT | ({} if sent is None else {"Content-Type": "application/json"}) | dict(headers)
        return await self._answer(self._calls, self._endpoint, method, url, sent, headers, makes)

    async def upload(
        self,
        method: str,
        url: str,
        pieces: AsyncIterator[bytes],
        size: int,
        headers: Mapping[str, str],
        *,
        ours: bool = True,
        makes: bool = False,
    ) -> dict[str, Any]:
        """Send `size` bytes from disk, a piece at a time, and read the JSON object in the answer; empty for none.

        The time limit grows with the size. `ours`: the address is one of the endpoint, and is sent the key; another,
        which the vendor names for one upload, is not.
        """
        seconds = self._endpoint.timeout + size / _BYTES_PER_S
        # Silence is counted from the start of a call, so that it would be a limit on the upload.
        endpoint = replace(self._endpoint, timeout=seconds, read_timeout=None)
        connections = open_connections(endpoint, self._headers if ours else AGENT)
        headers = {**_ACCEPT, "Content-Length": str(size), **headers}
        found, _ = await self._answer(connections, endpoint, method, url, pieces, headers, makes)
        return found

    async def upload_form(self, path: str, name: str, wave: Path, fields: Mapping[str, str]) -> dict[str, Any]:
        """Upload a wave as a form (`multipart/form-data`) with these fields and the file, in this order."""
        kind, pieces, size = _form(name, wave, fields)
        return await self.upload("POST", self._endpoint.url(path), pieces, size, {"Content-Type": kind})

    async def lines(self, url: str) -> AsyncIterator[str]:
        """The lines of a file at the vendor, without secrets.

        Where the vendor sends elsewhere for it, that address is not sent the key.
        """
        silence = self._endpoint.read_timeout or self._endpoint.timeout
        endpoint = replace(self._endpoint, timeout=_DOWNLOAD_S, read_timeout=silence)
        try:
            response = await ask(open_connections(endpoint, self._headers), endpoint, "GET", url)
            location = headers_of(response).get("location")
            if response.status in _REDIRECTS and location is not None and is_safe(urljoin(url, location), url):
                response = await ask(open_connections(endpoint, AGENT), endpoint, "GET", urljoin(url, location))
            if not 200 <= response.status < 300:
                text = self._endpoint.redact((await read_whole(response, endpoint)).decode(errors="replace"))
                raise refusal(response.status, headers_of(response), text, self._wall(), self._statuses)
            async for line in read_lines(response, endpoint):
                if line.strip():
                    yield self._endpoint.redact(line.decode(errors="replace"))
        except CallError as error:
            raise _unbilled(error) from None

    async def _answer(
        self,
        connections: Connections,
        endpoint: Endpoint,
        method: str,
        url: str,
        body: bytes | AsyncIterator[bytes] | None,
        headers: Mapping[str, str],
        makes: bool,
    ) -> tuple[dict[str, Any], Mapping[str, str]]:
        try:
            response = await ask(connections, endpoint, method, url, body=body, headers=headers)
            content = await read_whole(response, endpoint)
        except CallError as error:
            raise error if makes else _unbilled(error) from None
        if (date := date_of(headers_of(response).get("date", ""))) is not None:
            self._ahead = date - self._wall()
        text = self._endpoint.redact(content.decode(errors="replace"))
        if not 200 <= response.status < 300:
            refused = refusal(response.status, headers_of(response), text, self._wall(), self._statuses)
            refused.may_be_billed = makes and (refused.may_be_billed or response.status >= 500)
            raise refused
        try:
            found = orjson.loads(text) if text.strip() else {}
        except orjson.JSONDecodeError:
            found = None
        if isinstance(found, list):
            found = {"data": found}  # a list alone, as Together answers
        if not isinstance(found, dict):
            raise failure(
                f"{self._endpoint.base_url}: HTTP {response.status} with a body that is no JSON object; does base_url "
                "end where the API begins, and has it a batch interface?",
                Fault.TRANSIENT,
                status=response.status,
                may_be_billed=makes,
            )
        return found, headers_of(response)


def id_of(shown: Mapping[str, Any], what: str, member: str = "id") -> str:
    """The id of a file or a batch in an answer about it; raises `CallError` where there is none."""
    found = string(shown, member)
    if not found:
        raise failure(f"an answer about a {what} names none", Fault.TRANSIENT, may_be_billed=what == "batch")
    return found


def object_in(line: str) -> dict[str, Any] | None:
    """The JSON object that a line is; None where it is none."""
    try:
        shown = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return shown if isinstance(shown, dict) else None


def _unbilled(error: CallError) -> CallError:
    error.may_be_billed = False
    return error


def is_safe(url: str, origin: str) -> bool:
    """Whether a file may be fetched from or sent to an address that an answer from `origin` named.

    It must be encrypted, unless the origin was not either.
    """
    return urlsplit(url).scheme == "https" or urlsplit(origin).scheme == "http" == urlsplit(url).scheme


def _form(name: str, wave: Path, fields: Mapping[str, str]) -> tuple[str, AsyncIterator[bytes], int]:
    """The content type of a form with these fields and the file, its pieces, and how many bytes they are together."""
    boundary = secrets.token_hex(16)
    head = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
        for field, value in fields.items()
    )
    file = f'name="file"; filename="{_UNSAFE.sub("_", name)}.jsonl"'
    head += f"--{boundary}\r\nContent-Disposition: form-data; {file}\r\n"
    first = f"{head}Content-Type: application/jsonl\r\n\r\n".encode()
    last = f"\r\n--{boundary}--\r\n".encode()
    size = len(first) + wave.stat().st_size + len(last)
    return f"multipart/form-data; boundary={boundary}", pieces_of(wave, first, last), size


async def pieces_of(wave: Path, first: bytes = b"", last: bytes = b"") -> AsyncIterator[bytes]:
    """A file in pieces, with bytes before and after it.

    Asynchronous, since a plain generator is read ahead of the connection, by up to the whole file.
    """
    if first:
        yield first
    for piece in _read(wave):
        yield piece
    if last:
        yield last


def _read(wave: Path) -> Iterator[bytes]:
    with wave.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def path_of(*parts: str) -> str:
    """A path of parts that may come from a vendor: a slash, question mark or # within one is quoted."""
    return "/".join(quote(part, safe="") for part in parts)


def time_of(value: object) -> datetime | None:
    """A time as vendors write it: seconds since 1970, or RFC 3339; None for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str) and value:
            found = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", value))
            return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def text_of(value: object) -> str:
    """A text of a vendor's, fit for a message: one short line; empty for anything else."""
    return short(value) if isinstance(value, str) else ""
