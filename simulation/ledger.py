"""The provider's own records: every request is written to the ledger before it is answered.

Tests compare them with the requests and costs that an engine recorded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, get_args

import orjson

from venire.arena.errors import InputError
from venire.simulation.faults import FaultKind


@dataclass(slots=True)
class LedgerEntry:
    """One request."""

    ordinal: int
    """From 1, in the order in which requests were read."""
    body: str
    """SHA-256 of the body, hexadecimal."""
    body_asked: int
    """How often this body was asked, this time included."""
    key: str | None
    """The header Idempotency-Key."""
    key_asked: int | None
    """How often this idempotency key was asked, this time included."""
    model: str | None
    stage: str | None
    outcome: str
    """The decision: `answered`, a kind of fault, or the status of a rejection, for example `404`."""
    answered: int | None = None
    """Position in the order of answers; None until the answer is sent, and permanently if the client disconnected."""
    quoted: str | None = None
    """SHA-256 of the replies that the request quotes, if any."""
    answer: str | None = None
    """SHA-256 of the answer's body, if the judge answered, also if it was truncated or late."""
    billed: tuple[int, int] | None = None
    """Input and output tokens that a provider would bill, delivered or not; None where the judge did no work."""


@dataclass(frozen=True, slots=True)
class LedgerTotals:
    """Sums of a ledger: `faults` by kind, `refused` by status.

    Without waiting times a judge answers before the next request is read: `most_in_flight` is the client's concurrency
    only where answers take time.
    """

    requests: int
    answered: int
    faults: dict[str, int]
    refused: dict[str, int]
    in_flight: int
    most_in_flight: int


class Ledger:
    """Entries in memory and, when a path is given, as JSON lines in a file that is appended to."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._bodies: Counter[str] = Counter()
        self._keys: Counter[str] = Counter()
        self._answered = 0
        self._in_flight = 0
        self._most_in_flight = 0
        self.entries: list[LedgerEntry] = []

    def open(self) -> None:
        """Open the file; raises `InputError` where it cannot be written."""
        if self._path is None:
            return
        try:
            self._file = self._path.open("ab")
            if self._file.tell():
                self._file.write(b"\n")  # terminates a line that an earlier run may have left truncated
        except OSError as error:
            raise InputError(f"ledger {self._path} cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def asked(self, body: str) -> int:
        """The number of entries with this body."""
        return self._bodies[body]

    def enter(
        self,
        body: str,
        key: str | None,
        model: str | None,
        stage: str | None,
        outcome: str,
        *,
        quoted: str | None = None,
        answer: str | None = None,
        billed: tuple[int, int] | None = None,
    ) -> LedgerEntry:
        """Record a request; it is in flight until `leave`. The arguments are those of `LedgerEntry`."""
        self._bodies[body] += 1
        if key is not None:
            self._keys[key] += 1
        entry = LedgerEntry(
            ordinal=len(self.entries) + 1,
            body=body,
            body_asked=self._bodies[body],
            key=key,
            key_asked=None if key is None else self._keys[key],
            model=model,
            stage=stage,
            outcome=outcome,
            quoted=quoted,
            answer=answer,
            billed=billed,
        )
        self.entries.append(entry)
        self._in_flight += 1
        self._most_in_flight = max(self._most_in_flight, self._in_flight)
        self._append(entry)
        return entry

    def answer(self, entry: LedgerEntry) -> None:
        """Mark an entry as answered; the caller sends the answer next."""
        self._answered += 1
        entry.answered = self._answered
        self._append({"ordinal": entry.ordinal, "answered": self._answered})

    def leave(self) -> None:
        """Mark one request as no longer in flight."""
        self._in_flight -= 1

    def _append(self, record: LedgerEntry | dict[str, int]) -> None:
        if self._file is not None:
            self._file.write(orjson.dumps(record) + b"\n")
            self._file.flush()

    def totals(self) -> LedgerTotals:
        """Sums over all entries."""
        outcomes = Counter(entry.outcome for entry in self.entries)
        kinds = get_args(FaultKind)
        return LedgerTotals(
            requests=len(self.entries),
            answered=self._answered,
            faults={kind: outcomes[kind] for kind in kinds},
            refused={outcome: count for outcome, count in outcomes.items() if outcome.isdigit()},
            in_flight=self._in_flight,
            most_in_flight=self._most_in_flight,
        )
