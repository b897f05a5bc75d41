"""Submissions of batches in a store: what is out, with its lines, and what came of what was sent before.

A submission, a wave of one lane, is on disk before it is sent; its lines are attempts to come. What a line came to is
an attempt like any other.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from venire.storage.store.connection import Row
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class OpenSubmission:
    """A submission that was neither collected nor returned; money in nano-dollars."""

    id: int
    name: str
    """Ours, by which a provider's list of batches is searched."""
    lane: int
    """The number of its route."""
    lines: int
    bytes: int
    reserved: int
    reserved_tokens: int
    written_at: datetime
    campaign: int
    provider_id: str | None
    """The provider's name of the batch; None: not known, and perhaps never sent."""
    adopted: bool
    """Whether that was found in the provider's list, and not in the answer to the call that made it."""
    cancelling: bool
    short_readings: int = 0
    """How often its answers were read and some were missing that the provider counts."""
    missing_since: datetime | None = None
    """When that was first so."""


class SubmissionLine(NamedTuple):
    """A line of a submission that has no attempt on record: the request of one step of a trial."""

    trial: int
    key: bytes
    respondent: int
    step: int
    number: int
    """Of the attempt that it becomes."""
    reserved: int
    reserved_tokens: int
    digest: bytes

    @property
    def custom_id(self) -> str:
        """What the provider knows the line by: the trial's key and the step."""
        return f"{self.key.hex()}-{self.step}"


class RespondentOut(NamedTuple):
    """What of a submission is out for one respondent; money in nano-dollars."""

    respondent: int
    lines: int
    reserved: int
    reserved_tokens: int


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    """A submission with what came of it, for showing; money in nano-dollars."""

    id: int
    name: str
    route: str
    lines: int
    bytes: int
    reserved: int
    written_at: datetime
    collected: int
    """Lines with an attempt on record."""
    answered: int
    """Of these, with a reply."""
    paid: int
    provider_id: str | None
    kind: str | None
    """The last event; None: it was written and not sent, as far as is known."""
    detail: str | None
    happened_at: datetime | None

    @property
    def is_open(self) -> bool:
        """Whether some of it may still come."""
        return self.kind not in ("collected", "returned")

    def to_json(self) -> dict[str, Any]:
        """The same as plain values, with `open`, and times in ISO 8601."""
        times: dict[str, str | None] = {"written_at": self.written_at.isoformat()}
        times["happened_at"] = None if self.happened_at is None else self.happened_at.isoformat()
        return asdict(self) | {"open": self.is_open} | times


def last_submission(store: Store) -> int:
    """The highest number of a submission; 0 where there is none."""
    ((last,),) = store.read("last_submission")
    return int(last)


def taken_batches(store: Store, submission: int) -> frozenset[str]:
    """What providers call the batches that a submission cannot be: they are of others, or were found to be another."""
    return frozenset(name for (name,) in store.read("taken_batches", submission=submission))


def open_submissions(store: Store, campaign: int) -> tuple[OpenSubmission, ...]:
    """The submissions of a campaign that are out, or may be, in the order written."""
    return tuple(OpenSubmission(*row) for row in _rows(store, "open_submissions", campaign))


def left_by_respondent(store: Store, submission: int) -> list[RespondentOut]:
    """The same lines in sums by respondent, without the memory that many lines take."""
    return [RespondentOut(*row) for row in store.read("submission_left", submission=submission)]


def lines_left(store: Store, submission: int) -> dict[str, SubmissionLine]:
    """The lines of a submission without an attempt on record, by what the provider knows them by."""
    lines = (SubmissionLine(*row) for row in store.read("submission_lines_left", submission=submission))
    return {line.custom_id: line for line in lines}


def lines_taken(store: Store, submission: int) -> set[str]:
    """What the provider knows the lines of a submission by that have an attempt on record."""
    return {f"{key.hex()}-{step}" for key, step in store.read("submission_lines_taken", submission=submission)}


def open_lines(store: Store) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every line that is out, of any campaign of the store: the number of its submission, and that of its trial."""
    rows = store.arrays("open_submission_lines")
    submission, trial = (np.asarray(rows[name], dtype=np.int64) for name in ("submission", "trial"))
    return submission, trial


def settled_among(store: Store, trials: NDArray[np.int64]) -> frozenset[int]:
    """Which of some trials are settled, by number."""
    return frozenset(number for (number,) in store.read("settled_among", ids=trials.tolist()))


def submissions(store: Store, campaign: int) -> tuple[SubmissionRow, ...]:
    """All submissions of a campaign, in the order written."""
    return tuple(SubmissionRow(*row) for row in _rows(store, "submissions", campaign))


def _rows(store: Store, name: str, campaign: int) -> list[Row]:
    """Rows of a query about the submissions of a campaign, which most stores have none of: it takes 10 ms to plan."""
    return store.read(name, campaign=campaign) if last_submission(store) else []
