"""Anthropic's Message Batches: all requests in the body of one call, the results in one file of lines.

A batch has no name of ours, and is known by its id and the time of its making alone. A call with a request that is
malformed is refused as a whole; what is wrong with one request's parameters is its own result. Sources, limits and
states: `docs/batch.md`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from venire.arena.clock import SystemClock
from venire.arena.records import Reply
from venire.judges.providers.base import Endpoint
from venire.judges.providers.batches.base import BatchAnswer, BatchLimits, BatchState, BatchStatus
from venire.judges.providers.batches.http_batches import (
    UNKNOWN_STATUS,
    HttpBatches,
    id_of,
    object_in,
    path_of,
    pieces_of,
    time_of,
)
from venire.judges.providers.replies import count, member, string

_FIRST, _LAST = b'{"requests":[', b"]}"
_PAGE = 1000
# The status that a single call has with each type of error.
_STATUSES: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_UNASKED = frozenset({"canceled", "expired"})


class AnthropicBatches(HttpBatches):
    """The message batches of one account at an endpoint that speaks Anthropic's form; see `BatchProvider`.

    `credentials` are the headers with the key and the version of the interface; `read` is the reader of a message.
    """

    limits = BatchLimits(lines=100_000, bytes=256_000_000 - len(_FIRST + _LAST))
    keeps_names = False

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Mapping[str, str],
        read: Callable[[str, bytes], Reply],
        wall: Callable[[], datetime] = SystemClock().wall,
    ) -> None:
        super().__init__(endpoint, credentials, read, None, wall)

    def line(self, custom_id: str, body: bytes) -> bytes:
        """A request with its id; the body's bytes are as they would be sent alone."""
        return b'{"custom_id":' + orjson.dumps(custom_id) + b',"params":' + body + b"}"

    async def submit(self, name: str, model: str, wave: Path) -> BatchStatus:
        """Send all lines of the file in the body of one call, from disk; see `BatchProvider`."""
        pieces, size = _body(wave)
        url = self._endpoint.url("messages/batches")
        kind = {"Content-Type": "application/json"}
        return _status(await self.upload("POST", url, pieces, size, kind, makes=True))

    async def batches(self, since: datetime) -> Sequence[BatchStatus]:
        """The account's batches, page by page until one was made before that time; see `BatchProvider`."""
        return await self.newest(f"messages/batches?limit={_PAGE}", "after_id", since, _status)

    async def status(self, batch: str) -> BatchStatus:
        """The state of a batch; see `BatchProvider`."""
        return _status(await self.call("GET", path_of("messages", "batches", batch)))

    async def answers(self, batch: str) -> AsyncIterator[BatchAnswer]:
        """The results of a batch; see `BatchProvider`.

        They are asked for at their documented path: the key goes to no address that an answer names.
        """
        async for line in self.lines(self._endpoint.url(path_of("messages", "batches", batch, "results"))):
            yield read_result_line(line)

    async def cancel(self, batch: str) -> BatchStatus:
        """Ask for a batch to be cancelled; see `BatchProvider`."""
        return _status(await self.call("POST", path_of("messages", "batches", batch, "cancel")))


def _body(wave: Path) -> tuple[AsyncIterator[bytes], int]:
    """The body of a call with all lines of a file, in pieces, and its length."""
    with wave.open("rb") as file:
        length = file.seek(0, 2)
        file.seek(max(0, length - 1))
        ended = file.read(1) == b"\n"
    return _joined(wave, ended=ended), len(_FIRST) + length - ended + len(_LAST)


async def _joined(wave: Path, *, ended: bool) -> AsyncIterator[bytes]:
    """Lines with commas for their ends: a line of JSON has no line end within. `ended`: the last has one too."""
    yield _FIRST
    held = b""
    async for piece in pieces_of(wave):
        if held:
            yield held
        held = piece.replace(b"\n", b",")
    yield held[: len(held) - ended]
    yield _LAST


def _status(shown: Mapping[str, Any]) -> BatchStatus:
    """A message batch as `BatchStatus`."""
    state, counts = string(shown, "processing_status"), member(shown, "request_counts")
    kinds = {kind: count(counts, kind) for kind in ("processing", "succeeded", "errored", "canceled", "expired")}
    return BatchStatus(
        id=id_of(shown, "batch"),
        name="",
        state=BatchState.ENDED if state == "ended" else BatchState.RUNNING,
        lines=sum(kinds.values()),
        answered=kinds["succeeded"],
        failed=kinds["errored"],
        created_at=time_of(shown.get("created_at")),
        expires_at=time_of(shown.get("expires_at")),
        problem=_problem(shown, kinds),
        cancelling=state == "canceling",
    )


def _problem(shown: Mapping[str, Any], kinds: Mapping[str, int]) -> str:
    if string(shown, "archived_at"):
        return "its results are no longer kept"
    if kinds["expired"]:
        return "expired"
    return "cancelled" if kinds["canceled"] else ""


def read_result_line(line: str) -> BatchAnswer:
    """The answer in a line of results; one without an id for a line in no form at all.

    >>> read_result_line('{"custom_id":"a","result":{"type":"succeeded","message":{"id":"msg_1"}}}')
    BatchAnswer(custom_id='a', status=200, text='{"id":"msg_1"}')
    >>> read_result_line('{"custom_id":"a","result":{"type":"expired"}}')
    BatchAnswer(custom_id='a', status=None, text='expired')
    """
    if (shown := object_in(line)) is None:
        return BatchAnswer("", UNKNOWN_STATUS, line)
    custom_id, result = string(shown, "custom_id"), member(shown, "result")
    kind, message = string(result, "type"), result.get("message")
    if kind in _UNASKED:
        return BatchAnswer(custom_id, None, kind)
    if kind == "succeeded" and isinstance(message, dict):
        return BatchAnswer(custom_id, 200, orjson.dumps(message).decode())
    error = member(result, "error")
    # The error stands in the answer of a call that failed, which says its type once more.
    inner = member(error, "error") or error
    return BatchAnswer(
        custom_id, _STATUSES.get(string(inner, "type"), UNKNOWN_STATUS), orjson.dumps({"error": inner}).decode()
    )
