"""Calls announced before they are sent, so that a budget survives a crash.

Beside a store under a running campaign lies a preallocated file: a header that says whose it is, then slots of 24
bytes. A call takes a free slot with one write before it is sent, and gives it back once its attempt is on disk in the
store. What a killed process leaves are the announcements of calls whose attempts never got there; the next opening
turns them into attempts without an answer, at their reserved price. The page cache keeps the file through SIGKILL; only
a machine that loses power can lose the last announcements.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

from venire.arena.errors import StoreError

__all__ = ["Announcement", "Journal", "journal_path", "left_behind"]

_MAGIC = b"venire-journal-1"
_HEADER = struct.Struct("<16s16sqdI")
_SLOT = struct.Struct("<qqHBBI")
_START = 4096
"""Where the slots begin: the header has a page of its own."""

_SLOTS = 16_384
"""Calls that may be between their announcement and their commit; a lane's workers wait long before that."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """A call that was announced: its trial, step and number, and what was reserved for it in nano-dollars."""

    campaign: int
    announced_after: datetime
    """When the run began that announced it."""
    trial: int
    step: int
    number: int
    lane: int
    reserved: int


def journal_path(store: Path) -> Path:
    """Where the journal of a store lies."""
    return store.with_name(store.name + ".journal")


class Journal:
    """The journal of one run; made at its start, removed when everything announced is in the store.

    Raises StoreError when its space cannot be reserved.
    """

    def __init__(self, store: Path, store_id: bytes, campaign: int, started_at: datetime) -> None:
        self._path = journal_path(store)
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            os.write(self._descriptor, bytes(_START + _SLOTS * _SLOT.size))  # a full disk is met here, not under way
        except OSError as error:
            raise StoreError(f"cannot reserve {self._path} for announcing calls: {error.strerror}") from error
        head = (_MAGIC, store_id, campaign, started_at.timestamp())
        os.pwrite(self._descriptor, _HEADER.pack(*head, crc32(repr(head).encode())), 0)
        self._free = deque(range(_SLOTS))

    def announce(self, trial: int, step: int, number: int, lane: int, reserved: int) -> int:
        """Write one announcement and return its slot. Raises IndexError when every slot is taken."""
        slot = self._free.popleft()
        body = (trial, reserved, number, step, lane)
        record = _SLOT.pack(*body, _check(body))
        os.pwrite(self._descriptor, record, _START + slot * _SLOT.size)
        return slot

    def release(self, slot: int) -> None:
        """Give a slot back: the attempt that it announced is on disk."""
        self._free.append(slot)

    def close(self, *, remove: bool) -> None:
        """Close the file, and remove it when everything announced is in the store."""
        os.close(self._descriptor)
        if remove:
            self._path.unlink(missing_ok=True)


def left_behind(store: Path, store_id: bytes) -> Iterator[Announcement]:
    """The announcements that a run left beside a store; none where there is no journal or it is another store's.

    A slot may hold a call whose attempt is on disk: the reader compares. A torn slot is no announcement: its call was
    not sent.
    """
    try:
        content = journal_path(store).read_bytes()
    except FileNotFoundError:
        return
    if len(content) < _START:
        return
    *head, check = _HEADER.unpack_from(content)
    magic, owner, campaign, started = head
    if magic != _MAGIC or owner != store_id or check != crc32(repr(tuple(head)).encode()):
        return
    for trial, reserved, number, step, lane, crc in _SLOT.iter_unpack(content[_START:]):
        if crc == _check((trial, reserved, number, step, lane)) and number:
            yield Announcement(campaign, datetime.fromtimestamp(started, UTC), trial, step, number, lane, reserved)


def _check(body: tuple[int, int, int, int, int]) -> int:
    return crc32(struct.pack("<qqHBB", *body))
