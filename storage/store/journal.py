"""A file beside a store while a campaign runs, so that a crash, a truncated log or a full disk hides no spending.

One preallocated file with four parts:

- a header that identifies its store;
- the manifest: the last commit that is known to be on disk. DuckDB opens a truncated log without an error; a ledger
  that ends before the manifest shows that commits are lost;
- slots of 32 bytes, one for each call under way. A call takes a slot with one write before it is sent, and gives it
  back once its attempt is in the store. When it has ended the slot holds what it cost, since others may reserve the
  rest from then on. A killed process leaves the announcements of calls whose answers are not on disk;
- space for rows that DuckDB cannot write. On a full disk a new file could not be written; preallocated space can.

The page cache keeps all of it through SIGKILL. Only a machine that loses power can lose its last writes; `sync` is for
those who want to wait for the disk.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from venire.arena.errors import InputError, StoreError
from venire.storage.store.files import FileIdentity, open_beside

_KIND = b"venire-journal-"
_MAGIC = _KIND + b"3"
_HEADER = struct.Struct("<16s16sqdqI")
_MANIFEST = struct.Struct("<qqI")
_CALL = struct.Struct("<qqIHHB")
_SETTLED = struct.Struct("<BHI")
"""Whether the cost is known, and then the tokens of the reply (earlier versions wrote zeros); the check of the call."""
_SLOT = struct.Struct("<qqIHHBBHI")
_RECORD = struct.Struct("<II")
_MANIFEST_AT = 512
_SLOTS_AT = 4096
"""The header has a page of its own; slots of 32 bytes never straddle two."""

MIN_SLOTS = 16_384
"""Calls that may be between their announcement and their commit, or more where a run has more workers."""

_MAX_TOKENS = 2**32 - 1
_MAX_OUTPUT = 2**16 - 1

Rows = Sequence[tuple[str, tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Announcement:
    """A call that was announced: its trial, step and number, and what was set aside for it (nano-dollars, tokens).

    `settled`: it has ended, and these are what it cost and used, `output` of them in its reply (65,535 at most).
    """

    trial: int
    step: int
    number: int
    lane: int
    reserved: int
    tokens: int
    settled: bool = False
    output: int = 0


@dataclass(frozen=True, slots=True)
class Spilled:
    """Rows that DuckDB could not take, by table, and the number that their commit was to have."""

    batch: int
    rows: tuple[tuple[str, tuple[Any, ...]], ...]


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """What a run left in its journal."""

    store_id: bytes
    campaign: int
    started_at: datetime
    batch: int
    """The last commit that was on disk."""
    running: int
    """Rows on disk by then, over all commits."""
    announced: tuple[Announcement, ...]
    spilled: tuple[Spilled, ...]


@dataclass(frozen=True, slots=True)
class Recovered:
    """What the journal of the last run gave: replies that the store could not take then, calls without an answer.

    `reserved` is what the latter count at, in nano-dollars: what was set aside, or the cost where an answer was on its
    way to the disk; `lost_commits` those that a damaged log took.
    """

    calls: int = 0
    reserved: int = 0
    replies: int = 0
    lost_commits: int = 0


def journal_path(store: Path) -> Path:
    """Where the journal of a store lies."""
    return store.with_name(store.name + ".journal")


class Journal:
    """The journal of one run, with `spill_bytes` set aside for replies that the store cannot take.

    Raises StoreError when its space cannot be had.
    """

    def __init__(
        self,
        store: Path,
        store_id: bytes,
        campaign: int,
        started_at: datetime,
        *,
        slots: int = MIN_SLOTS,
        spill_bytes: int = 1 << 20,
    ) -> None:
        self.path = journal_path(store)
        try:
            self._descriptor = open_beside(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        except OSError as error:
            raise StoreError(f"cannot make {self.path} for announcing calls: {error.strerror}") from error
        self._spill_at = _SLOTS_AT + slots * _SLOT.size
        self._end = self._spill_at + spill_bytes
        self._free = deque(range(slots))
        try:
            _allocate(self._descriptor, self._end)
            head = (_MAGIC, store_id, campaign, started_at.timestamp(), slots)
            os.pwrite(self._descriptor, _HEADER.pack(*head, _head_check(head)), 0)
        except OSError as error:
            self.close(remove=True)
            raise StoreError(
                f"cannot set {self._end:,} bytes aside in {self.path} for announcing calls: {error.strerror}; make "
                "room on that disk"
            ) from error

    def mark(self, batch: int, running: int) -> None:
        """Write into the manifest that a commit is on disk."""
        self._write(_MANIFEST.pack(batch, running, _manifest_check(batch, running)), _MANIFEST_AT)

    def announce(self, trial: int, step: int, number: int, lane: int, reserved: int, tokens: int) -> int:
        """Write one announcement and return its slot. Raises IndexError when every slot is taken."""
        slot = self._free.popleft()
        self._write_slot(slot, trial, step, number, lane, reserved, tokens, False, 0)
        return slot

    def settle(
        self, slot: int, trial: int, step: int, number: int, lane: int, cost: int, tokens: int, output: int
    ) -> None:
        """Write what an announced call came to, whose attempt is not on disk yet, over what was set aside for it."""
        self._write_slot(slot, trial, step, number, lane, cost, tokens, True, output)

    def _write_slot(
        self,
        slot: int,
        trial: int,
        step: int,
        number: int,
        lane: int,
        money: int,
        tokens: int,
        settled: bool,
        output: int,
    ) -> None:
        """Twice for every call, so without an object of it."""
        body = _CALL.pack(trial, money, tokens if tokens < _MAX_TOKENS else _MAX_TOKENS, number, lane, step)
        end = _SETTLED.pack(settled, output if output < _MAX_OUTPUT else _MAX_OUTPUT, zlib.crc32(body))
        self._write(body + end, _SLOTS_AT + slot * _SLOT.size)

    def release(self, slot: int) -> None:
        """Give a slot back: the attempt that it announced is on disk."""
        self._free.append(slot)

    def withdraw(self, slot: int) -> None:
        """Take an announcement back: its call was not sent."""
        self._write(bytes(_SLOT.size), _SLOTS_AT + slot * _SLOT.size)
        self._free.append(slot)

    def spill(self, batch: int, rows: Rows) -> None:
        """Keep rows that the store could not take, with the number that their commit was to have.

        Raises StoreError when what was set aside is used up.
        """
        text = json.dumps([batch, rows], default=_tagged, separators=(",", ":"))
        data = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
        if self._spill_at + _RECORD.size + len(data) > self._end:
            raise StoreError(f"the space in {self.path} for replies that the store cannot take is used up")
        self._write(_RECORD.pack(len(data), zlib.crc32(data)) + data, self._spill_at)
        self._spill_at += _RECORD.size + len(data)

    def sync(self) -> None:
        """Wait until everything written so far is on the disk itself. Raises StoreError."""
        try:
            getattr(os, "fdatasync", os.fsync)(self._descriptor)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be flushed: {error.strerror}") from error

    def _write(self, data: bytes, at: int) -> None:
        try:
            os.pwrite(self._descriptor, data, at)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from error

    def in_place(self) -> bool:
        """Whether the file is still to be found in its folder."""
        return os.fstat(self._descriptor).st_nlink > 0

    def close(self, *, remove: bool) -> None:
        """Close the file, and remove it when everything in it is in the store; safe to call twice.

        A file of that name may by then belong to another run.
        """
        if self._descriptor < 0:
            return
        mine = os.fstat(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        if remove and FileIdentity(self.path, mine.st_dev, mine.st_ino).now() is None:
            self.path.unlink()


def read_journal(store: Path) -> LeftBehind | None:
    """What lies beside a store; None where there is no journal, or one whose header was not finished.

    A torn slot is no announcement: its call was not sent. A torn record of spilled rows ends them. A slot may hold a
    call whose attempt is on disk: the reader compares. Raises InputError for a journal that is damaged or another
    version's.
    """
    try:
        with open(open_beside(journal_path(store), os.O_RDONLY), "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return None
    if content.startswith(_KIND) and not content.startswith(_MAGIC):
        raise InputError(
            f"{journal_path(store)} was left by another version of Venire when a run ended without notice: open the "
            "store once with that version (`venire status` will do), then with this one"
        )
    if not any(content[: _HEADER.size]):
        return None  # the run was killed before it could announce anything
    if len(content) < _SLOTS_AT or not content.startswith(_MAGIC):
        raise InputError(_damaged(store))
    *head, check = _HEADER.unpack_from(content)
    _, owner, campaign, started, slots = head
    spill_at = _SLOTS_AT + slots * _SLOT.size
    if check != _head_check(tuple(head)) or len(content) < spill_at:
        raise InputError(_damaged(store))
    batch, running, check = _MANIFEST.unpack_from(content, _MANIFEST_AT)
    if check != _manifest_check(batch, running):
        batch = running = 0
    return LeftBehind(
        owner,
        campaign,
        datetime.fromtimestamp(started, UTC),
        batch,
        running,
        tuple(_announcements(content[_SLOTS_AT:spill_at])),
        tuple(_spilled(content, spill_at)),
    )


def _damaged(store: Path) -> str:
    return (
        f"{journal_path(store)} cannot be read: which calls of the last run had no answer yet is not known from it. "
        "Put the right file back; or move it away to go on, and those calls are missing from the account"
    )


def _announcements(slots: bytes) -> Iterator[Announcement]:
    for *body, check in _SLOT.iter_unpack(slots):
        trial, reserved, tokens, number, lane, step, settled, output = body
        if number and check == _slot_check(tuple(body[:6])):
            yield Announcement(trial, step, number, lane, reserved, tokens, bool(settled), output)


def _spilled(content: bytes, at: int) -> Iterator[Spilled]:
    while at + _RECORD.size <= len(content):
        length, check = _RECORD.unpack_from(content, at)
        data = content[at + _RECORD.size : at + _RECORD.size + length]
        if not length or len(data) < length or zlib.crc32(data) != check:
            return
        batch, rows = json.loads(zlib.decompress(data).decode("utf-8", "surrogatepass"), object_hook=_untagged)
        yield Spilled(batch, tuple((table, tuple(row)) for table, row in rows))
        at += _RECORD.size + length


def _tagged(value: object) -> dict[str, str]:
    """A form for what JSON has none for."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, datetime):
        return {"at": value.isoformat()}
    return {"lost": type(value).__name__}  # no column takes such a value: recovery leaves its row out


def _untagged(value: dict[str, str]) -> object:
    if "hex" in value:
        return bytes.fromhex(value["hex"])
    return datetime.fromisoformat(value["at"]) if "at" in value else value


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    block = bytes(1 << 20)
    for at in range(0, size, len(block)):
        os.pwrite(descriptor, block[: size - at], at)


def _head_check(head: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(head).encode())


def _manifest_check(batch: int, running: int) -> int:
    return zlib.crc32(struct.pack("<qq", batch, running), 1)


def _slot_check(body: tuple[int, ...]) -> int:
    return zlib.crc32(_CALL.pack(*body))
