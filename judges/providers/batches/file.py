"""Batches as files in a folder, answered by whoever watches it: one's own cluster with vLLM's `run-batch`, for example.

A wave is written as `NAME.jsonl`, in OpenAI's form. It has ended when `NAME.answered.jsonl` has an answer for each of
its lines; `NAME.refused.txt` in its place refuses it, with the reason as its text:

    vllm run-batch --model MODEL -i FOLDER/NAME.jsonl -o FOLDER/NAME.answered.jsonl

vLLM writes that file while it works and in no other place, so that it is complete only when all lines are there. One
that stays shorter, since its writer was killed, never ends: cancel the batch, and what is there is taken in.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import orjson

from venire.arena.clock import SystemClock
from venire.arena.errors import CallError, Fault
from venire.arena.records import Reply
from venire.judges.providers.batches.base import BatchAnswer, BatchLimits, BatchState, BatchStatus
from venire.judges.providers.batches.http_batches import text_of
from venire.judges.providers.batches.openai import chat_line, read_answer_line
from venire.judges.providers.faults import failure, refusal
from venire.judges.providers.replies import read_reply

_WAVE, _ANSWERED, _REFUSED, _CANCELLED = ".jsonl", ".answered.jsonl", ".refused.txt", ".cancelled"
_ENDINGS = (_WAVE, _ANSWERED, _REFUSED, _CANCELLED)
_NOT_FOUND = 404
"""The status that a provider without such a batch would answer with."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


class FileBatches:
    """The batches of a folder; see `BatchProvider`. `wall` returns the time of day.

    >>> batches = FileBatches(Path("waves"))
    >>> batches.line("a-1", b'{"model":"judge"}')
    b'{"custom_id":"a-1","method":"POST","url":"/v1/chat/completions","body":{"model":"judge"}}'
    """

    limits = BatchLimits(lines=1_000_000, bytes=2**40)
    keeps_names = True

    def __init__(self, folder: Path, wall: Callable[[], datetime] = SystemClock().wall) -> None:
        self._folder = folder
        self._wall = wall

    def __repr__(self) -> str:
        return f"FileBatches({str(self._folder)!r})"

    def line(self, custom_id: str, body: bytes) -> bytes:
        """A request with its id, method and path; the body's bytes are as they would be sent alone."""
        return chat_line(custom_id, body)

    async def submit(self, name: str, model: str, wave: Path) -> BatchStatus:
        """Put a copy of the file into the folder under its name, at once as a whole; see `BatchProvider`.

        A name that is there already is refused, so that no batch is written over.
        """
        path = self._path(name, _WAVE)
        try:
            os.makedirs(self._folder, exist_ok=True)
            if taken := [self._path(name, ending) for ending in _ENDINGS if self._path(name, ending).exists()]:
                raise failure(f"{taken[0]} is there already; a batch is not written over", Fault.BAD_REQUEST)
            draft = path.with_suffix(".draft")
            await asyncio.to_thread(_copy, wave, draft)
            os.replace(draft, path)
        except OSError as error:
            raise _failed(error) from None
        try:
            return await self.status(name)
        except CallError as error:
            error.may_be_billed = True  # it is in the folder
            raise

    async def batches(self, since: datetime) -> Sequence[BatchStatus]:
        """The folder's batches, by the time at which each was put there; see `BatchProvider`."""
        found = [await self.status(name) for name in await asyncio.to_thread(self._names)]
        since = since.replace(microsecond=0)  # a file's time may be coarser than a clock's
        recent = [status for status in found if status.created_at is not None and status.created_at >= since]
        return sorted(recent, key=lambda one: one.created_at or since, reverse=True)

    async def status(self, batch: str) -> BatchStatus:
        """The state of a batch by its name; see `BatchProvider`."""
        return await asyncio.to_thread(self._status, batch)

    async def answers(self, batch: str) -> AsyncIterator[BatchAnswer]:
        """The lines of the answered file; the last one is left out where it has no line end; see `BatchProvider`."""
        try:
            for line in _whole_lines(self._path(batch, _ANSWERED)):
                yield read_answer_line(line.decode(errors="replace"))
        except FileNotFoundError:
            return
        except OSError as error:
            raise _failed(error) from None

    def read(self, answer: BatchAnswer, body: bytes) -> Reply:
        """The reply in an answer with a status; raises `CallError` where it is none. See `BatchProvider`."""
        if answer.status is None:
            raise failure(f"not asked: {answer.text}", Fault.TRANSIENT)
        if not 200 <= answer.status < 300:
            raise refusal(answer.status, {}, answer.text, self._wall())
        return read_reply(answer.text, body)

    async def cancel(self, batch: str) -> BatchStatus:
        """Take the wave out of the folder, under another name; what was answered by now is what there will be."""
        if (await self.status(batch)).state is BatchState.RUNNING:
            try:
                os.replace(self._path(batch, _WAVE), self._path(batch, _CANCELLED))
            except OSError as error:
                raise _failed(error) from None
        return await self.status(batch)

    async def close(self) -> None:
        """Nothing to let go."""

    def _path(self, name: str, ending: str) -> Path:
        if not _NAME.fullmatch(name):
            raise failure(f"{name[:60]!r} cannot be the name of a batch's file", Fault.BAD_REQUEST)
        return self._folder / f"{name}{ending}"

    def _names(self) -> list[str]:
        try:
            files = os.listdir(self._folder) if self._folder.is_dir() else []
        except OSError as error:
            raise _failed(error) from None
        names = {file.removesuffix(end) for end in (_WAVE, _CANCELLED) for file in files if file.endswith(end)}
        return [name for name in names if _NAME.fullmatch(name)]  # no name has a dot: answered files have one

    def _status(self, name: str) -> BatchStatus:
        wave, cancelled = self._path(name, _WAVE), self._path(name, _CANCELLED)
        try:
            stopped = not wave.exists() and cancelled.exists()
            source = cancelled if stopped else wave
            made = datetime.fromtimestamp(source.stat().st_mtime, UTC)
            lines = _count(source)
            answered = self._path(name, _ANSWERED)
            count = _count(answered) if answered.exists() else 0
            refused = self._path(name, _REFUSED)
            problem = text_of(refused.read_text(errors="replace")) or "refused" if refused.exists() else ""
        except OSError as error:
            raise _failed(error) from None
        state = BatchState.RUNNING
        if problem and not count:
            state = BatchState.REFUSED
        elif stopped or count >= lines:
            state, problem = BatchState.ENDED, "cancelled" if stopped else ""
        return BatchStatus(
            id=name, name=name, state=state, lines=lines, answered=count, created_at=made, problem=problem
        )


def _whole_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file without blank ones, and without a last one that is still being written."""
    with path.open("rb") as file:
        for line in file:
            if line.strip() and (line.endswith(b"\n") or _is_json(line)):
                yield line


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _count(path: Path) -> int:
    return sum(1 for _ in _whole_lines(path))


def _copy(wave: Path, draft: Path) -> None:
    """Copy a file and have it on the disk, before it gets the name under which it is read."""
    shutil.copyfile(wave, draft)
    with draft.open("rb") as file:
        os.fsync(file.fileno())


def _failed(error: OSError) -> CallError:
    # A batch that is not there will not come to be; a disk that is full or absent may pass.
    message = f"{error.filename}: {error.strerror}"
    if isinstance(error, FileNotFoundError):
        return failure(message, Fault.BAD_REQUEST, status=_NOT_FOUND)
    return failure(message, Fault.BAD_REQUEST if isinstance(error, PermissionError) else Fault.TRANSIENT)
