"""Gemini's batch mode: requests of one model as a file or within the call, answered within a long-running operation.

A small wave goes within the call, since its answers come with the batch's state each time that is asked for; any other
is uploaded as a file, and answered by one. Sources, limits and states: `docs/batch.md`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import orjson

from venire.arena.clock import SystemClock
from venire.arena.errors import Fault
from venire.arena.records import Reply
from venire.judges.providers.base import Endpoint
from venire.judges.providers.batches.base import BatchAnswer, BatchLimits, BatchState, BatchStatus
from venire.judges.providers.batches.http_batches import (
    UNKNOWN_STATUS,
    HttpBatches,
    id_of,
    is_safe,
    object_in,
    pieces_of,
    text_of,
    time_of,
)
from venire.judges.providers.faults import failure
from venire.judges.providers.replies import member, string

_INLINE_LINES, _INLINE_BYTES = 100, 1_000_000
_PAGE = 20
_CANCELLED = 1
# Codes of Google's errors (google.rpc.Code), and the statuses that single calls have with them.
_STATUSES: Mapping[int, int] = {
    2: 500,
    3: 400,
    4: 504,
    5: 404,
    6: 409,
    7: 403,
    8: 429,
    9: 400,
    10: 409,
    11: 400,
    12: 501,
    13: 500,
    14: 503,
    15: 500,
    16: 401,
}
_ENDED: Mapping[str, str] = {"SUCCEEDED": "", "PARTIALLY_SUCCEEDED": "", "CANCELLED": "cancelled", "EXPIRED": "expired"}


class GeminiBatches(HttpBatches):
    """The batches of one account at an endpoint that speaks Gemini's form; see `BatchProvider`.

    `credentials` are the headers with the key, `read` the reader of an answer, and `bare` takes the model out of a body
    that `Provider.encode` made.
    """

    limits = BatchLimits(lines=100_000, bytes=2_000_000_000)
    keeps_names = True

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Mapping[str, str],
        read: Callable[[str, bytes], Reply],
        bare: Callable[[bytes], bytes],
        wall: Callable[[], datetime] = SystemClock().wall,
    ) -> None:
        super().__init__(endpoint, credentials, read, None, wall)
        self._bare = bare

    def line(self, custom_id: str, body: bytes) -> bytes:
        """A request with its id as the key; without the model, which the batch has."""
        return b'{"key":' + orjson.dumps(custom_id) + b',"request":' + self._bare(body) + b"}"

    async def submit(self, name: str, model: str, wave: Path) -> BatchStatus:
        """Make a batch of the lines of a file, uploaded before unless it is small; see `BatchProvider`."""
        requests = _small(wave)
        source = {"fileName": await self._upload(name, wave)} if requests is None else {"requests": requests}
        path = quote(model if "/" in model else f"models/{model}")
        wanted = {"batch": {"displayName": name, "inputConfig": source}}
        return _status(await self.call("POST", f"{path}:batchGenerateContent", wanted, makes=True))

    async def _upload(self, name: str, wave: Path) -> str:
        """Upload a file in one piece, at an address that is asked for before; its name at the vendor."""
        size = _size(wave)
        start = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(size),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        first = self._url("upload", "files")
        _, headers = await self.send("POST", first, {"file": {"displayName": name}}, start)
        address = headers.get("x-goog-upload-url", "")
        if not is_safe(address, first):
            raise failure("no address was given for the upload of a file", Fault.TRANSIENT)
        whole = {"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"}
        uploaded = await self.upload("POST", address, pieces_of(wave), size, whole, ours=False)
        return id_of(member(uploaded, "file"), "file", "name")

    def _url(self, kind: str, path: str) -> str:
        """The address of a path for uploads or downloads, which stands before the version in the base URL."""
        parts = urlsplit(self._endpoint.url(path))
        return urlunsplit(parts._replace(path=f"/{kind}{parts.path}"))

    async def batches(self, since: datetime) -> Sequence[BatchStatus]:
        """The account's batches, page by page: no order is documented, so that all are read; see `BatchProvider`."""
        shown: list[BatchStatus] = []
        token = ""
        while True:
            asked = {"pageSize": _PAGE} | ({"pageToken": token} if token else {})
            page = await self.call("GET", f"batches?{urlencode(asked)}")
            shown += [_status(operation) for operation in page.get("operations") or () if isinstance(operation, dict)]
            if not (after := string(page, "nextPageToken")) or after == token:
                break
            token = after
        found = [
            status
            for status in map(self.by_our_clock, shown)
            if status.created_at is None or status.created_at >= since
        ]
        return sorted(found, key=lambda one: one.created_at or since, reverse=True)

    async def status(self, batch: str) -> BatchStatus:
        """The state of a batch; see `BatchProvider`."""
        return _status(await self._show(batch))

    async def _show(self, batch: str) -> Mapping[str, Any]:
        return await self.call("GET", quote(batch))

    async def answers(self, batch: str) -> AsyncIterator[BatchAnswer]:
        """The lines of the file of answers, or the answers within the batch; see `BatchProvider`."""
        shown = await self._show(batch)
        output = member(shown, "response") or member(member(shown, "metadata"), "output")
        if file := string(output, "responsesFile"):
            async for line in self.lines(self._url("download", f"{quote(file)}:download?alt=media")):
                yield read_response_line(line)
            return
        inlined: Any = output.get("inlinedResponses")
        inlined = inlined.get("inlinedResponses") if isinstance(inlined, dict) else inlined
        for response in inlined if isinstance(inlined, list) else ():
            if isinstance(response, dict):
                yield _answer(response)

    async def cancel(self, batch: str) -> BatchStatus:
        """Ask for a batch to be cancelled, and for its state: the answer has none; see `BatchProvider`."""
        await self.call("POST", f"{quote(batch)}:cancel")
        return await self.status(batch)


def _size(wave: Path) -> int:
    return wave.stat().st_size


def _small(wave: Path) -> Mapping[str, Any] | None:
    """The requests of a small file as they stand within a call; None for any other file."""
    if _size(wave) > _INLINE_BYTES:
        return None
    lines = [orjson.loads(line) for line in wave.read_bytes().splitlines() if line]
    if len(lines) > _INLINE_LINES:
        return None
    return {"requests": [{"request": line["request"], "metadata": {"key": line["key"]}} for line in lines]}


def _status(shown: Mapping[str, Any]) -> BatchStatus:
    """A long-running operation as `BatchStatus`."""
    metadata = member(shown, "metadata")
    word = string(metadata, "state").partition("STATE_")[2]  # JOB_STATE_ and BATCH_STATE_ both occur
    stats = member(metadata, "batchStats")
    answered, failed = _count(stats, "successfulRequestCount"), _count(stats, "failedRequestCount")
    error = member(shown, "error")
    state, problem = BatchState.RUNNING, ""
    if word in _ENDED:
        state, problem = BatchState.ENDED, _ENDED[word]
    elif word == "FAILED" or error:
        asked = bool(answered or failed or member(metadata, "output"))
        cancelled = error.get("code") == _CANCELLED
        state = BatchState.ENDED if asked or cancelled else BatchState.REFUSED
        problem = "cancelled" if cancelled else text_of(error.get("message")) or "failed"
    return BatchStatus(
        id=id_of(shown, "batch", "name"),
        name=string(metadata, "displayName"),
        state=state,
        lines=_count(stats, "requestCount"),
        answered=answered,
        failed=failed,
        created_at=time_of(metadata.get("createTime")),
        problem=problem,
        # Too many tokens of the model are enqueued: those that wait now make room.
        may_pass=state is BatchState.REFUSED and _http_status(error) == 429,
        cancelling=word == "CANCELLING",
    )


def _count(stats: Mapping[str, Any], name: str) -> int:
    """A count, which JSON of Google writes as a text."""
    value = stats.get(name)
    return int(value) if isinstance(value, int | str) and str(value).isdecimal() else 0


def _http_status(error: Mapping[str, Any]) -> int:
    code = error.get("code")
    if type(code) is int and 400 <= code < 600:
        return code
    return _STATUSES.get(code, UNKNOWN_STATUS) if type(code) is int else UNKNOWN_STATUS


def read_response_line(line: str) -> BatchAnswer:
    """The answer in a line of a file of answers; one without an id for a line in no form at all.

    >>> read_response_line('{"key":"a","response":{"candidates":[]}}')
    BatchAnswer(custom_id='a', status=200, text='{"candidates":[]}')
    >>> read_response_line('{"key":"a","error":{"code":8,"message":"Too many."}}').status
    429
    """
    shown = object_in(line)
    return _answer(shown) if shown is not None else BatchAnswer("", UNKNOWN_STATUS, line)


def _answer(shown: Mapping[str, Any]) -> BatchAnswer:
    """The answer in a line of a file, or in one of the answers within a batch."""
    custom_id = string(shown, "key") or string(member(shown, "metadata"), "key")
    response = member(shown, "response")
    if response:
        return BatchAnswer(custom_id, 200, orjson.dumps(response).decode())
    error = member(shown, "error") or member(shown, "status")
    if error.get("code") == _CANCELLED:
        return BatchAnswer(custom_id, None, "cancelled")
    return BatchAnswer(custom_id, _http_status(error), orjson.dumps({"error": error}).decode())
