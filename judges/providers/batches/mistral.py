"""Mistral's batch jobs: a file is uploaded, a job is made of it for one model, and ends with one or two files.

Its lines and answers are in OpenAI's form, its jobs are its own. Sources, limits and states: `docs/batch.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson

from venire.judges.providers.batches.base import BatchLimits, BatchState, BatchStatus
from venire.judges.providers.batches.http_batches import id_of, path_of, text_of, time_of
from venire.judges.providers.batches.openai import CHAT, NAME, OpenAIBatches
from venire.judges.providers.replies import count, member, string

_PAGE = 100
_HOURS = 24
_ENDED: Mapping[str, str] = {"SUCCESS": "", "TIMEOUT_EXCEEDED": "expired", "CANCELLED": "cancelled"}
"""States in which a job has ended, and how else than with all its answers."""


class MistralBatches(OpenAIBatches):
    """The batch jobs of one account at Mistral; see `BatchProvider`."""

    limits = BatchLimits(lines=100_000, bytes=512_000_000)

    def line(self, custom_id: str, body: bytes) -> bytes:
        """A request with its id; the body's bytes are as they would be sent alone."""
        return b'{"custom_id":' + orjson.dumps(custom_id) + b',"body":' + body + b"}"

    async def submit(self, name: str, model: str, wave: Path) -> BatchStatus:
        """Upload the file, then make a job of it with the name in its metadata; see `BatchProvider`."""
        uploaded = await self.upload_form("files", name, wave, {"purpose": self.purpose})
        wanted = {
            "input_files": [id_of(uploaded, "file")],
            "endpoint": CHAT,
            "model": model,
            "timeout_hours": _HOURS,
            "metadata": {NAME: name},
        }
        return self._status(await self.call("POST", "batch/jobs", wanted, makes=True))

    async def batches(self, since: datetime) -> Sequence[BatchStatus]:
        """The account's jobs that were made since then, page by page; see `BatchProvider`."""
        since = since.astimezone(UTC).replace(microsecond=0)
        found: dict[str, BatchStatus] = {}
        number = 0
        while True:
            asked = {"page": number, "page_size": _PAGE, "created_after": since.isoformat(), "order_by": "-created"}
            page = await self.call("GET", f"batch/jobs?{urlencode(asked)}")
            listed = [self.by_our_clock(self._status(job)) for job in page.get("data") or () if isinstance(job, dict)]
            found |= {status.id: status for status in listed if status.created_at is None or status.created_at >= since}
            number += 1
            if not listed or number * _PAGE >= count(page, "total"):
                return list(found.values())

    async def _show(self, batch: str) -> Mapping[str, Any]:
        return await self.call("GET", path_of("batch", "jobs", batch))

    def _files(self, shown: Mapping[str, Any]) -> list[str]:
        return [file for file in (string(shown, "output_file"), string(shown, "error_file")) if file]

    async def cancel(self, batch: str) -> BatchStatus:
        """Ask for a job to be cancelled; see `BatchProvider`."""
        return self._status(await self.call("POST", path_of("batch", "jobs", batch, "cancel")))

    def _status(self, shown: Mapping[str, Any]) -> BatchStatus:
        word = string(shown, "status")
        failed = word == "FAILED"
        asked = bool(self._files(shown) or count(shown, "completed_requests"))
        ended = word in _ENDED or (failed and asked)
        return BatchStatus(
            id=id_of(shown, "batch"),
            name=string(member(shown, "metadata"), NAME),
            state=BatchState.ENDED if ended else BatchState.REFUSED if failed else BatchState.RUNNING,
            lines=count(shown, "total_requests"),
            answered=count(shown, "succeeded_requests"),
            failed=count(shown, "failed_requests"),
            created_at=time_of(shown.get("created_at")),
            problem=_problem(shown) if failed else _ENDED.get(word, ""),
            cancelling=word == "CANCELLATION_REQUESTED",
        )


def _problem(shown: Mapping[str, Any]) -> str:
    """The first error of a job that failed, with how often it occurred."""
    listed = [error for error in shown.get("errors") or () if isinstance(error, dict)]
    if not listed:
        return "failed"
    times = count(listed[0], "count")
    said = text_of(listed[0].get("message")) or "failed"
    return f"{said} ({times} times)" if times > 1 else said
