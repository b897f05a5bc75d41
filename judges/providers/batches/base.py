"""What the engine needs of a provider's batch interface.

A wave is written as a file with one line for each request, in the provider's own form; the file is submitted as one
batch, whose state is asked for until it has ended; then its answers are read one by one, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Protocol

from venire.arena.records import Reply

CLOCK_SKEW = timedelta(minutes=10)
"""How much earlier than we a provider may date a batch, where nothing says what its clock shows."""


class BatchState(Enum):
    """How far a batch is, as far as it matters to us."""

    RUNNING = "running"
    """Accepted: being checked, waiting or being answered; also while it is being cancelled."""
    ENDED = "ended"
    """Its answers can be read; a line that has none was not answered: the batch expired, was cancelled, or lost it."""
    REFUSED = "refused"
    """Its file was refused as a whole: no line of it was asked, and none is paid for."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The most that one batch may hold, as the provider documents it."""

    lines: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """What a provider says of one batch; counts are of lines, as far as it counts them."""

    id: str
    """The provider's."""
    name: str
    """Ours, as given to `submit`; empty where the provider keeps none."""
    state: BatchState
    lines: int
    answered: int = 0
    failed: int = 0
    created_at: datetime | None = None
    expires_at: datetime | None = None
    problem: str = ""
    """Why a file was refused, with its line where that is known; or how else a batch ended before all was answered."""
    may_pass: bool = False
    """Of a refused one: whether the same file may be accepted later, as where too many tokens are enqueued."""
    cancelling: bool = False


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The result of one line: the status and text of an answer such as the same call would have had alone.

    The text is without secrets. `status` is None where the line was not asked: it expired or was cancelled, and `text`
    says which.
    """

    custom_id: str
    status: int | None
    text: str


class BatchProvider(Protocol):
    """The batch interface of one account at one vendor.

    Its methods raise `TransientError` where the same may succeed later, and any other `CallError` where it will not;
    one of status 404 for a batch that the provider does not know.
    They may be cancelled at any point.
    """

    limits: BatchLimits
    keeps_names: bool
    """Whether the list has a batch with the name that it was submitted with, which proves that it is ours; in a list
    without names that is proved by answers to our lines alone."""

    def line(self, custom_id: str, body: bytes) -> bytes:
        """One line of a wave's file, without its line end, for the body that `Provider.encode` made.

        An id is unique in the file, of at most 64 letters, digits, hyphens and underscores: what every vendor takes.
        """
        ...

    async def submit(self, name: str, model: str, wave: Path) -> BatchStatus:
        """Submit the lines of a file under a name of ours, in as many requests as the vendor's form needs.

        The name has at most 64 letters, digits, hyphens and underscores.
        Raises `CallError`: with `may_be_billed` where a batch may have been made all the same, without it where there
        is none.
        """
        ...

    async def batches(self, since: datetime) -> Sequence[BatchStatus]:
        """The account's batches that were made at that time or later, the newest first.

        Their `created_at` is by our clock, as `since` is, as far as the provider says what its own shows.
        """
        ...

    async def status(self, batch: str) -> BatchStatus:
        """The state of a batch, by the provider's id of it."""
        ...

    def answers(self, batch: str) -> AsyncIterator[BatchAnswer]:
        """The answers of a batch that has ended, read as a stream: in any order, and as often as the provider has them.

        A file of answers is not kept in memory.
        """
        ...

    def read(self, answer: BatchAnswer, body: bytes) -> Reply:
        """The reply in an answer with a status; raises `CallError` where it is none.

        `body` is the request's, from which tokens are estimated where the answer counts none.
        """
        ...

    async def cancel(self, batch: str) -> BatchStatus:
        """Ask for a batch to be ended; what was answered by then can be read once it has ended."""
        ...

    async def close(self) -> None:
        """Let the connections go."""
        ...
