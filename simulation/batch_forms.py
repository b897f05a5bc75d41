"""Batches of simulated judges in their vendors' wire forms: what is sent, and what is answered. Pure.

OpenAI's files and batches: a file is uploaded, a batch is made of it, and its answers are in an output file and an
error file. Anthropic's message batches: all requests in one call, all results in one file. Sources: `docs/batch.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from venire.simulation.batches import BatchDesk, BatchLine, LineResult, SimulatedBatch
from venire.simulation.chat_replies import error_body
from venire.simulation.wire_forms import message_error

_JSON = "application/json"
_LINES = "application/jsonl"
_INVALID = "invalid_request_error"
_CHAT = "/v1/chat/completions"
_MAX_LINES = 50_000
_MAX_BYTES = 200_000_000
_MAX_PROBLEMS = 100
_MAX_REQUESTS = 100_000
_MAX_REQUEST_BYTES = 256_000_000
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_WINDOW_S = 86_400
_NOT_ASKED = {
    "expired": ("batch_expired", "This request could not be executed before the completion window expired."),
    "cancelled": ("batch_cancelled", "This request was not executed, since its batch was cancelled."),
}


@dataclass(frozen=True, slots=True)
class FormReply:
    """An answer to a request about files or batches."""

    status: int
    body: bytes
    content_type: str = _JSON
    lost: bool = False
    """Whether the connection is closed instead."""


class OpenAIForm:
    """OpenAI's files and batches over a desk; `wall` returns the time of day."""

    def __init__(self, desk: BatchDesk, wall: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._desk = desk
        self._wall = wall
        self._files: dict[str, bytes] = {}

    def upload(self, purpose: str, name: str, content: bytes) -> FormReply:
        """`POST /v1/files`, as a form with purpose and file."""
        if purpose != "batch":
            return _refused(400, f"purpose must be batch here, not {purpose!r}", param="purpose")
        if len(content) > _MAX_BYTES:
            return _refused(413, f"A file may have {_MAX_BYTES} bytes, this one has {len(content)}")
        id = f"file-{len(self._files) + 1:04d}"
        self._files[id] = content
        return _json(
            {
                "id": id,
                "object": "file",
                "bytes": len(content),
                "created_at": int(self._wall().timestamp()),
                "filename": name,
                "purpose": purpose,
                "status": "processed",
            }
        )

    def content(self, id: str) -> FormReply:
        """`GET /v1/files/{id}/content`: what was uploaded, or the answers of a batch that has ended."""
        batch = self._desk.find(id.removeprefix("file-").rpartition("-")[0])
        if batch is not None and batch.phase == "ended":
            wanted = id.endswith("-output")
            given = [line for line in self._desk.delivered(batch) if (line.outcome == "answered") is wanted]
            return FormReply(200, self._desk.hand_out(id, b"".join(_line(line) + b"\n" for line in given)), _LINES)
        if id in self._files:
            return FormReply(200, self._files[id], _LINES)
        return _refused(404, f"No such File object: {id}", param="id")

    def make(self, body: bytes) -> FormReply:
        """`POST /v1/batches`."""
        try:
            wanted = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            return _refused(400, f"The body is not JSON: {error}")
        if not isinstance(wanted, dict):
            return _refused(400, "The body must be a JSON object")
        file, metadata = wanted.get("input_file_id"), wanted.get("metadata") or {}
        if file not in self._files:
            return _refused(400, f"No such File object: {file}", param="input_file_id")
        if wanted.get("endpoint") != _CHAT:
            return _refused(400, f"endpoint must be {_CHAT}", param="endpoint")
        if wanted.get("completion_window") != "24h":
            return _refused(400, "completion_window must be 24h", param="completion_window")
        if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
            return _refused(400, "metadata must be an object of texts", param="metadata")
        lines, problems = read_batch_lines(self._files[file])
        name = "" if not metadata else str(metadata.get("venire", ""))
        if self._desk.fails_create("openai", len(lines), self._wall()):
            return FormReply(500, error_body("The server had an error.", "server_error"))
        batch = self._desk.make("openai", name, lines, self._wall(), file=file, problems=problems)
        shown = self._show(batch, metadata)
        return FormReply(200, orjson.dumps(shown), lost=self._desk.loses_reply())

    def show(self, id: str) -> FormReply:
        """`GET /v1/batches/{id}`: a question about the batch's state."""
        batch = self._find(id)
        if batch is None:
            return _refused(404, f"No batch found with id {id!r}", param="id")
        self._desk.poll(batch)
        return _json(self._show(batch))

    def list(self, query: Mapping[str, str]) -> FormReply:
        """`GET /v1/batches`, the newest first, a page at a time."""
        listed = [batch for batch in reversed(self._desk.batches) if batch.form == "openai"]
        ids = [batch.id for batch in listed]
        try:
            limit = min(max(int(query.get("limit", "20")), 1), 100)
            start = ids.index(query["after"]) + 1 if "after" in query else 0
        except ValueError:
            return _refused(400, "limit must be a number, and after the id of a batch")
        page = listed[start : start + limit]
        for batch in page:
            self._desk.poll(batch)
        return _json(
            {
                "object": "list",
                "data": [self._show(batch) for batch in page],
                "first_id": page[0].id if page else None,
                "last_id": page[-1].id if page else None,
                "has_more": start + limit < len(listed),
            }
        )

    def cancel(self, id: str) -> FormReply:
        """`POST /v1/batches/{id}/cancel`."""
        batch = self._find(id)
        if batch is None:
            return _refused(404, f"No batch found with id {id!r}", param="id")
        if batch.phase in ("ended", "refused"):
            return _refused(409, f"A batch of status {_state(batch)} cannot be cancelled")
        self._desk.cancel(batch)
        return _json(self._show(batch))

    def _find(self, id: str) -> SimulatedBatch | None:
        batch = self._desk.find(id)
        return batch if batch is not None and batch.form == "openai" else None

    def _show(self, batch: SimulatedBatch, metadata: Mapping[str, str] | None = None) -> dict[str, Any]:
        created = int(batch.created_at.timestamp())
        ended = batch.phase == "ended"
        problems = [
            {"code": code, "message": message, "param": None, "line": line} for line, code, message in batch.problems
        ]
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": _CHAT,
            "errors": {"object": "list", "data": problems} if batch.phase == "refused" else None,
            "input_file_id": batch.file,
            "completion_window": "24h",
            "status": _state(batch),
            "output_file_id": f"file-{batch.id}-output" if ended and batch.count("answered") else None,
            "error_file_id": f"file-{batch.id}-error"
            if ended and batch.count("failed", "expired", "cancelled")
            else None,
            "created_at": created,
            "expires_at": created + _WINDOW_S,
            "request_counts": {
                "total": 0 if batch.phase in ("validating", "refused") else len(batch.lines),
                "completed": batch.count("answered", "withheld"),
                "failed": batch.count("failed"),
            },
            "metadata": metadata if metadata is not None else {"venire": batch.name} if batch.name else None,
        }


def _state(batch: SimulatedBatch) -> str:
    if batch.phase == "refused":
        return "failed"
    if batch.phase != "ended":
        return batch.phase
    if batch.cancelled:
        return "cancelled"
    return "expired" if batch.count("expired") else "completed"


def _line(result: LineResult) -> bytes:
    """A line of an output file or an error file."""
    shown: dict[str, Any] = {"id": f"batch_req_{result.custom_id}", "custom_id": result.custom_id}
    if result.status is None:
        code, message = _NOT_ASKED[result.outcome]
        return orjson.dumps(shown | {"response": None, "error": {"code": code, "message": message}})
    answer = {
        "status_code": result.status,
        "request_id": f"req_{result.custom_id}",
        "body": orjson.Fragment(result.body),
    }
    return orjson.dumps(shown | {"response": answer, "error": None})


def read_batch_lines(content: bytes) -> tuple[Sequence[BatchLine], Sequence[tuple[int | None, str, str]]]:
    """The lines of a file in OpenAI's form, and what is wrong with it: line from 1 or None, code, message."""
    lines: list[BatchLine] = []
    problems: list[tuple[int | None, str, str]] = []
    seen: set[str] = set()
    for number, raw in enumerate(content.splitlines(), 1):
        try:
            line = _checked_line(raw, seen)
        except _BadLine as error:
            problems.append((number, error.code, str(error)))
            continue
        seen.add(line.custom_id)
        lines.append(line)
    if not content.strip():
        problems.append((None, "empty_file", "The file is empty."))
    if len(lines) > _MAX_LINES:
        problems.append((None, "too_many_tasks", f"The file has {len(lines)} lines, and may have {_MAX_LINES}."))
    return lines, problems[:_MAX_PROBLEMS]


class _BadLine(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _checked_line(raw: bytes, seen: set[str]) -> BatchLine:
    try:
        sent = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise _BadLine("invalid_json_line", "This line is not parseable as valid JSON.") from None
    if not isinstance(sent, dict):
        raise _BadLine("invalid_json_line", "This line is no JSON object.")
    custom_id = sent.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id:
        raise _BadLine("missing_required_parameter", "Missing required parameter: 'custom_id'.")
    if custom_id in seen:
        raise _BadLine("duplicate_custom_id", f"The custom_id '{custom_id}' has been used before in this file.")
    if sent.get("method") != "POST" or sent.get("url") != _CHAT:
        raise _BadLine("invalid_url", f"The method and url of a line must be POST {_CHAT}.")
    if not isinstance(sent.get("body"), dict):
        raise _BadLine("missing_required_parameter", "Missing required parameter: 'body'.")
    return BatchLine(custom_id, orjson.dumps(sent["body"]))


class AnthropicForm:
    """Anthropic's message batches over a desk; `base_url` returns the server's address, `wall` the time of day."""

    def __init__(
        self,
        desk: BatchDesk,
        base_url: Callable[[], str],
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._desk = desk
        self._base_url = base_url
        self._wall = wall

    def make(self, body: bytes) -> FormReply:
        """`POST /v1/messages/batches`."""
        if len(body) > _MAX_REQUEST_BYTES:
            return _message_refused(413, f"Request exceeds the maximum size of {_MAX_REQUEST_BYTES} bytes")
        try:
            lines = _requests(body)
        except _BadLine as error:
            return _message_refused(400, str(error))
        if self._desk.fails_create("anthropic", len(lines), self._wall()):
            return _message_refused(500, "Internal server error")
        batch = self._desk.make("anthropic", "", lines, self._wall())
        return FormReply(200, orjson.dumps(self._show(batch)), lost=self._desk.loses_reply())

    def show(self, id: str) -> FormReply:
        """`GET /v1/messages/batches/{id}`: a question about the batch's state."""
        batch = self._find(id)
        if batch is None:
            return _message_refused(404, f"No message batch found with id {id!r}")
        self._desk.poll(batch)
        return _json(self._show(batch))

    def list(self, query: Mapping[str, str]) -> FormReply:
        """`GET /v1/messages/batches`, the newest first, a page at a time."""
        listed = [batch for batch in reversed(self._desk.batches) if batch.form == "anthropic"]
        ids = [batch.id for batch in listed]
        try:
            limit = min(max(int(query.get("limit", "20")), 1), 1000)
            start = ids.index(query["after_id"]) + 1 if "after_id" in query else 0
        except ValueError:
            return _message_refused(400, "limit must be a number, and after_id the id of a batch")
        page = listed[start : start + limit]
        for batch in page:
            self._desk.poll(batch)
        return _json(
            {
                "data": [self._show(batch) for batch in page],
                "has_more": start + limit < len(listed),
                "first_id": page[0].id if page else None,
                "last_id": page[-1].id if page else None,
            }
        )

    def results(self, id: str) -> FormReply:
        """`GET /v1/messages/batches/{id}/results`."""
        batch = self._find(id)
        if batch is None or batch.phase != "ended":
            return _message_refused(404, f"There are no results of a message batch with id {id!r}")
        content = b"".join(_result_line(line) + b"\n" for line in self._desk.delivered(batch))
        return FormReply(200, self._desk.hand_out(batch.id, content), _LINES)

    def cancel(self, id: str) -> FormReply:
        """`POST /v1/messages/batches/{id}/cancel`."""
        batch = self._find(id)
        if batch is None:
            return _message_refused(404, f"No message batch found with id {id!r}")
        if batch.phase == "ended":
            return _message_refused(400, "A batch that has ended cannot be canceled")
        self._desk.cancel(batch)
        return _json(self._show(batch))

    def _find(self, id: str) -> SimulatedBatch | None:
        batch = self._desk.find(id)
        return batch if batch is not None and batch.form == "anthropic" else None

    def _show(self, batch: SimulatedBatch) -> dict[str, Any]:
        ended = batch.phase == "ended"
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "canceling" if batch.cancelled else "in_progress",
            # Requests are counted as processing until all have ended.
            "request_counts": {
                "processing": 0 if ended else len(batch.lines),
                "succeeded": batch.count("answered", "withheld") if ended else 0,
                "errored": batch.count("failed") if ended else 0,
                "canceled": batch.count("cancelled") if ended else 0,
                "expired": batch.count("expired") if ended else 0,
            },
            "created_at": batch.created_at.isoformat(),
            "expires_at": (batch.created_at + timedelta(seconds=_WINDOW_S)).isoformat(),
            "ended_at": self._wall().isoformat() if ended else None,
            "cancel_initiated_at": self._wall().isoformat() if batch.cancelled else None,
            "archived_at": None,
            "results_url": f"{self._base_url()}/messages/batches/{batch.id}/results" if ended else None,
        }


def _requests(body: bytes) -> Sequence[BatchLine]:
    """The requests of a call; raises `_BadLine` for one that is refused as a whole."""
    invalid = "invalid_request_error"
    try:
        sent = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _BadLine(invalid, f"The body is not JSON: {error}") from None
    requests = sent.get("requests") if isinstance(sent, dict) else None
    if not isinstance(requests, list) or not 1 <= len(requests) <= _MAX_REQUESTS:
        raise _BadLine(invalid, f"requests: a list of 1 to {_MAX_REQUESTS} is required")
    lines = []
    seen: set[str] = set()
    for number, request in enumerate(requests):
        custom_id = request.get("custom_id") if isinstance(request, dict) else None
        if not isinstance(custom_id, str) or not _ID.fullmatch(custom_id):
            raise _BadLine(invalid, f"requests.{number}.custom_id: String should match '^[a-zA-Z0-9_-]{{1,64}}$'")
        if custom_id in seen:
            raise _BadLine(invalid, f"requests.{number}.custom_id: {custom_id} is not unique")
        if not isinstance(request.get("params"), dict):
            raise _BadLine(invalid, f"requests.{number}.params: Field required")
        seen.add(custom_id)
        lines.append(BatchLine(custom_id, orjson.dumps(request["params"])))
    return lines


def _result_line(result: LineResult) -> bytes:
    """A line of the results."""
    shown: dict[str, Any]
    if result.status is None:
        shown = {"type": "canceled" if result.outcome == "cancelled" else result.outcome}
    elif result.outcome == "answered":
        shown = {"type": "succeeded", "message": orjson.Fragment(result.body)}
    else:
        shown = {"type": "errored", "error": orjson.Fragment(result.body)}
    return orjson.dumps({"custom_id": result.custom_id, "result": shown})


def _message_refused(status: int, message: str) -> FormReply:
    return FormReply(status, message_error(message, status))


def _json(shown: Mapping[str, Any]) -> FormReply:
    return FormReply(200, orjson.dumps(shown))


def _refused(status: int, message: str, *, param: str | None = None) -> FormReply:
    return FormReply(status, error_body(message, _INVALID, param=param))
