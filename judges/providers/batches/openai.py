"""OpenAI's batch interface: a file of requests is uploaded, a batch is made of it, and ends with one or two files.

Spoken in this form by OpenAI, Groq and many gateways. The line of a file is a request as it would be sent alone, with
an id of ours; answers are in the output file, lines that failed, expired or were cancelled in the error file.
Sources, limits and states: `docs/batch.md`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from venire.arena.clock import SystemClock
from venire.judges.providers.base import Endpoint
from venire.judges.providers.batches.base import BatchAnswer, BatchLimits, BatchState, BatchStatus
from venire.judges.providers.batches.http_batches import (
    UNKNOWN_STATUS,
    HttpBatches,
    id_of,
    object_in,
    path_of,
    text_of,
    time_of,
)
from venire.judges.providers.replies import count, member, read_reply, string
from venire.judges.providers.vendors import vendor_of

NAME = "venire"
"""The key of the metadata that has a batch's name."""

CHAT = "/v1/chat/completions"
"""The path of each line, and the endpoint of its batch."""

_PAGE = 100
_ENDED = frozenset({"completed", "expired", "cancelled"})
_UNFINISHED = frozenset({"failed", "expired", "cancelled"})
# The account has more tokens waiting than it may: what is enqueued now makes room.
_PASSING = frozenset({"token_limit_exceeded"})
# Lines that were not asked.
_UNASKED = frozenset({"batch_expired", "batch_cancelled", "batch_canceled"})
# The one other error of a line that is no answer, and the status of the same failure of a single call.
_TIMEOUT, _TIMEOUT_STATUS = "request_timeout", 408


class OpenAIBatches(HttpBatches):
    """The batches of one account at an endpoint that speaks OpenAI's form; see `BatchProvider`.

    >>> from venire.judges.providers.base import Endpoint
    >>> batches = OpenAIBatches(Endpoint("https://api.openai.com/v1", "sk-1234567", 60.0, 4))
    >>> batches.line("a-1", b'{"model":"judge"}')
    b'{"custom_id":"a-1","method":"POST","url":"/v1/chat/completions","body":{"model":"judge"}}'
    """

    limits = BatchLimits(lines=50_000, bytes=200_000_000)
    keeps_names = True
    purpose = "batch"
    """What the file is uploaded for, in the vendor's word."""

    def __init__(self, endpoint: Endpoint, wall: Callable[[], datetime] = SystemClock().wall) -> None:
        vendor = vendor_of(endpoint.base_url)
        super().__init__(endpoint, vendor.credentials(endpoint.key), read_reply, vendor.statuses, wall)

    def line(self, custom_id: str, body: bytes) -> bytes:
        """A request with its id, method and path; the body's bytes are as they would be sent alone."""
        return chat_line(custom_id, body)

    async def submit(self, name: str, model: str, wave: Path) -> BatchStatus:
        """Upload the file, then make a batch of it with the name in its metadata; see `BatchProvider`.

        A file whose batch was not made is left to the vendor, which deletes it after some time.
        """
        uploaded = await self.upload_form("files", name, wave, {"purpose": self.purpose})
        return self._status(await self._make(name, model, id_of(uploaded, "file")))

    async def _make(self, name: str, model: str, file: str) -> Mapping[str, Any]:
        wanted = {"input_file_id": file, "endpoint": CHAT, "completion_window": "24h", "metadata": {NAME: name}}
        return await self.call("POST", "batches", wanted, makes=True)

    async def batches(self, since: datetime) -> Sequence[BatchStatus]:
        """The account's batches, page by page until one was made before that time; see `BatchProvider`."""
        since = since.replace(microsecond=0)  # times of batches are in whole seconds
        return await self.newest(f"batches?limit={_PAGE}", "after", since, self._status)

    async def status(self, batch: str) -> BatchStatus:
        """The state of a batch; see `BatchProvider`."""
        return self._status(await self._show(batch))

    async def _show(self, batch: str) -> Mapping[str, Any]:
        return await self.call("GET", path_of("batches", batch))

    async def answers(self, batch: str) -> AsyncIterator[BatchAnswer]:
        """The lines of the output file, then of the error file; see `BatchProvider`."""
        shown = await self._show(batch)
        for file in self._files(shown):
            async for line in self.lines(self._endpoint.url(path_of("files", file, "content"))):
                yield read_answer_line(line)

    def _files(self, shown: Mapping[str, Any]) -> list[str]:
        return [file for file in (string(shown, "output_file_id"), string(shown, "error_file_id")) if file]

    async def cancel(self, batch: str) -> BatchStatus:
        """Ask for a batch to be cancelled; see `BatchProvider`."""
        return self._status(await self.call("POST", path_of("batches", batch, "cancel")))

    def _status(self, shown: Mapping[str, Any]) -> BatchStatus:
        """A batch object as `BatchStatus`."""
        word, counts = string(shown, "status"), member(shown, "request_counts")
        state = state_of(word, asked=bool(self._files(shown) or count(counts, "completed")))
        problem, may_pass = _problem(member(shown, "errors"))
        return BatchStatus(
            id=id_of(shown, "batch"),
            name=string(member(shown, "metadata"), NAME),
            state=state,
            lines=count(counts, "total"),
            answered=count(counts, "completed"),
            failed=count(counts, "failed"),
            created_at=time_of(shown.get("created_at")),
            expires_at=time_of(shown.get("expires_at")),
            problem=problem or (word if word in _UNFINISHED else ""),
            may_pass=may_pass and state is BatchState.REFUSED,
            cancelling=word == "cancelling",
        )


def chat_line(custom_id: str, body: bytes) -> bytes:
    """A line of a file in OpenAI's form, without its line end."""
    about = orjson.dumps({"custom_id": custom_id, "method": "POST", "url": CHAT})
    return about[:-1] + b',"body":' + body + b"}"


def state_of(state: str, *, asked: bool) -> BatchState:
    """The state of a batch from OpenAI's word for it; one that failed after lines were `asked` has ended."""
    if state == "failed":
        return BatchState.ENDED if asked else BatchState.REFUSED
    return BatchState.ENDED if state in _ENDED else BatchState.RUNNING


def _problem(errors: Mapping[str, Any]) -> tuple[str, bool]:
    """What is wrong with a file, the first error in words, and whether it may be accepted later."""
    listed = [error for error in errors.get("data") or () if isinstance(error, dict)]
    if not listed:
        return "", False
    first = listed[0]
    said = text_of(first.get("message")) or text_of(first.get("code")) or "refused"
    line = first.get("line")
    where = f"line {line}: " if isinstance(line, int) and not isinstance(line, bool) else ""
    more = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
    return f"{where}{said}{more}", all(error.get("code") in _PASSING for error in listed)


def read_answer_line(line: str) -> BatchAnswer:
    """The answer in a line of an output or error file in OpenAI's form; one without an id for a line in no form at all.

    >>> read_answer_line('{"custom_id":"a","response":{"status_code":200,"body":{"id":"x"}},"error":null}')
    BatchAnswer(custom_id='a', status=200, text='{"id":"x"}')
    >>> read_answer_line('{"custom_id":"a","response":null,"error":{"code":"batch_expired","message":"Too late."}}')
    BatchAnswer(custom_id='a', status=None, text='batch_expired: Too late.')
    """
    if (shown := object_in(line)) is None:
        return BatchAnswer("", UNKNOWN_STATUS, line)
    custom_id, response, error = string(shown, "custom_id"), member(shown, "response"), shown.get("error")
    status, body = _status_of(response), response.get("body")
    if body is not None:
        text = body if isinstance(body, str) else orjson.dumps(body).decode()
        if status is None and "status_code" not in response and not error:
            status = 200  # some leave it out where all is well
        return BatchAnswer(custom_id, status or UNKNOWN_STATUS, text)
    failed: Mapping[str, Any] = error if isinstance(error, dict) else {"message": text_of(error) or "no answer"}
    failed = member(failed, "error") or failed  # vLLM's has the error of a call within
    code, message = string(failed, "code"), text_of(failed.get("message"))
    if code in _UNASKED:
        return BatchAnswer(custom_id, None, f"{code}: {message}" if message else code)
    if status is None or status < 300:
        status = _TIMEOUT_STATUS if code == _TIMEOUT else UNKNOWN_STATUS
    return BatchAnswer(custom_id, status, orjson.dumps({"error": failed}).decode())


def _status_of(response: Mapping[str, Any]) -> int | None:
    """The status of a line's response; None where there is none that can be: servers have been seen to write 0."""
    status = response.get("status_code")
    return status if type(status) is int and 100 <= status < 600 else None
