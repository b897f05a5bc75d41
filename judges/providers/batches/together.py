"""Together's batch jobs: OpenAI's form with its own upload, upper-case states, no pages and no metadata.

A batch is recognised by the name of its input file. Sources, limits and states: `docs/batch.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from venire.judges.providers.batches.base import BatchLimits, BatchState, BatchStatus
from venire.judges.providers.batches.http_batches import id_of, text_of, time_of
from venire.judges.providers.batches.openai import CHAT, OpenAIBatches, state_of
from venire.judges.providers.replies import member, string

_ENDING = ".jsonl"
_OLDEST = datetime.min.replace(tzinfo=UTC)
# Both spellings occur in its own client.
_CANCELLING = frozenset({"canceling", "cancelling"})
_UNFINISHED = frozenset({"failed", "expired", "cancelled"})


class TogetherBatches(OpenAIBatches):
    """The batch jobs of one account at Together; see `BatchProvider`. It counts no lines, only its progress."""

    limits = BatchLimits(lines=50_000, bytes=100_000_000)
    purpose = "batch-api"

    def line(self, custom_id: str, body: bytes) -> bytes:
        """A request with its id; the body's bytes are as they would be sent alone."""
        return b'{"custom_id":' + orjson.dumps(custom_id) + b',"body":' + body + b"}"

    async def submit(self, name: str, model: str, wave: Path) -> BatchStatus:
        """Upload the file under the batch's name, then make a job of it; see `BatchProvider`."""
        fields = {"purpose": self.purpose, "file_name": f"{name}{_ENDING}", "file_type": "jsonl"}
        uploaded = await self.upload_form("files/upload", name, wave, fields)
        wanted = {"input_file_id": id_of(uploaded, "file"), "endpoint": CHAT, "completion_window": "24h"}
        made = await self.call("POST", "batches", wanted, makes=True)
        return replace(self._status(member(made, "job") or made), name=name)

    async def batches(self, since: datetime) -> Sequence[BatchStatus]:
        """The account's jobs, all in one answer, with the names of their input files; see `BatchProvider`."""
        since = since.replace(microsecond=0)
        shown = [batch for batch in (await self.call("GET", "batches")).get("data") or () if isinstance(batch, dict)]
        listed = [(batch, self.by_our_clock(self._status(batch))) for batch in shown]
        recent = [
            (batch, status) for batch, status in listed if status.created_at is None or status.created_at >= since
        ]
        if not recent:
            return []
        files = (await self.call("GET", "files")).get("data") or ()
        names = {string(file, "id"): string(file, "filename") for file in files if isinstance(file, dict)}
        found = [
            replace(status, name=names.get(string(batch, "input_file_id"), "").removesuffix(_ENDING))
            for batch, status in recent
        ]
        return sorted(found, key=lambda one: one.created_at or _OLDEST, reverse=True)

    def _status(self, shown: Mapping[str, Any]) -> BatchStatus:
        word = string(shown, "status").lower()
        state = state_of(word, asked=bool(self._files(shown) or shown.get("progress")))
        problem = text_of(shown.get("error")) or (word if word in _UNFINISHED else "")
        return BatchStatus(
            id=id_of(shown, "batch"),
            name="",
            state=state,
            lines=0,
            created_at=time_of(shown.get("created_at")),
            expires_at=time_of(shown.get("job_deadline")),
            problem=problem if state is not BatchState.RUNNING else "",
            cancelling=word in _CANCELLING,
        )
