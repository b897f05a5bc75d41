"""Batches at a simulated provider: their states over time, what becomes of each line, and a record of all. Pure.

The forms in which vendors show them are in `batch_forms.py`, the routes in `server.py`. A line is worked on while its
batch is in progress: then the judge answers it, and it is entered in the ledger like a request of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Literal

from venire.arena.errors import InputError
from venire.simulation.judge import uniform

BatchForm = Literal["openai", "anthropic"]
"""The vendor in whose form a batch was made."""
BatchPhase = Literal["validating", "in_progress", "finalizing", "cancelling", "ended", "refused"]
Damage = Literal["page", "cut", "garbled"]
"""What is wrong with a download: a web page in the place of a file, a file cut at a line's end, a line cut within."""
LineOutcome = Literal["answered", "failed", "expired", "cancelled", "lost", "withheld"]

Work = Callable[["SimulatedBatch", "BatchLine", LineOutcome], tuple[int, bytes]]
"""What enters a line of a batch in the ledger and has a judge answer it: from its outcome (answered, withheld or
failed) to the status and the body of the answer."""

_DRAWN: tuple[LineOutcome, ...] = ("failed", "expired", "lost", "withheld")
_DAMAGES: tuple[Damage, ...] = ("page", "cut", "garbled")
_MAX_PER_LINE = 2
_MAX_PER_FILE = 2
_PAGE = b"<!doctype html>\n<html><body>\n<h1>We will be back soon.</h1>\n</body></html>\n"
_PHASES: tuple[BatchPhase, ...] = ("validating", "in_progress", "finalizing")


@dataclass(frozen=True, slots=True)
class BatchFaults:
    """How batches go at a simulated provider: their time, and what becomes of their lines.

    `failed`, `expired`, `lost` and `withheld` are shares of lines (0 to 1 together), drawn from the server's seed, the
    line's id and how often it was asked; a line has at most two of these faults, and is answered from then on.
    """

    polls: int = 0
    """For how many questions about its state a batch is in each of three states: being validated, in progress and being
    finalized. Lines are worked on evenly over those in progress. 0: it has ended at the first question."""
    seconds: float = 0.0
    """How long it takes at the judges' own speed, a third in each state; it ends when polls and seconds are over."""
    failed: float = 0.0
    """Lines that are answered with status 429 or 500, in the error file."""
    expired: float = 0.0
    """Lines that are not asked before the window ends; a batch with any ends as expired."""
    lost: float = 0.0
    """Lines that are not asked, and are in no file."""
    withheld: float = 0.0
    """Lines that are answered, billed and counted as answered, and are in no file."""
    duplicated: int = 0
    """How many answers of a batch come twice."""
    unasked: int = 0
    """How many answers of a batch are for ids that nobody asked for."""
    shuffled: bool = False
    """Whether answers come in another order than the lines."""
    queue_lines: int | None = None
    """How many lines may wait in all batches together; a batch with more is refused, and accepted later."""
    lost_replies: int = 0
    """How many batches are made without the client learning of it: the connection is closed instead of the reply."""
    failed_creates: int = 0
    """How many calls that make a batch are answered with status 500, and make none."""
    damaged: float = 0.0
    """Share of downloads of answers (0 to 1) that are damaged, drawn, though they come with status 200 and a right
    length; a file is damaged at most twice."""
    strangers: int = 0
    """How many batches of as many lines somebody else makes on the same account just after each call that makes a
    batch; their lines are not in the ledger."""

    def __post_init__(self) -> None:
        shares = [getattr(self, kind) for kind in _DRAWN]
        if min(shares) < 0 or sum(shares) > 1:
            raise InputError(f"shares of {', '.join(_DRAWN)} lines must be 0 or more and at most 1 together: {shares}")
        if not 0 <= self.damaged <= 1:
            raise InputError(f"the share of damaged downloads must be from 0 to 1: {self.damaged}")
        numbers = (self.polls, self.seconds, self.duplicated, self.unasked, self.queue_lines or 0)
        if min(*numbers, self.lost_replies, self.failed_creates, self.strangers) < 0:
            raise InputError("numbers of batch faults must be 0 or more")

    @classmethod
    def even(cls, rate: float, seconds: float = 0.0) -> BatchFaults:
        """Lines that fail, expire or get lost share a rate (0 to 1) evenly, and downloads are damaged at that rate.

        Where there are any, lines come in another order, and somebody else makes batches on the same account. None is
        withheld, since a client waits long for what a provider counts as answered.

        >>> BatchFaults.even(0.3).expired
        0.1
        """
        each, any_fault = rate / 3, rate > 0
        return cls(
            seconds=seconds,
            failed=each,
            expired=each,
            lost=each,
            damaged=rate,
            strangers=int(any_fault),
            shuffled=any_fault,
        )

    def draw(self, seed: int, custom_id: str, asked: int) -> LineOutcome:
        """What becomes of a line that is asked for the `asked`-th time, from 1."""
        if asked > _MAX_PER_LINE:
            return "answered"
        left = uniform(seed, "batch line", custom_id, asked)
        for kind in _DRAWN:
            left -= getattr(self, kind)
            if left < 0:
                return kind
        return "answered"

    def damage(self, seed: int, file: str, number: int) -> Damage | None:
        """What is wrong with the `number`-th download of a file, from 1."""
        if number > _MAX_PER_FILE or uniform(seed, "damaged", file, number) >= self.damaged:
            return None
        return _DAMAGES[int(uniform(seed, "damage", file, number) * len(_DAMAGES))]


@dataclass(frozen=True, slots=True)
class BatchLine:
    """One request of a batch."""

    custom_id: str
    body: bytes

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", _compact(self.body))


@dataclass(frozen=True, slots=True)
class LineResult:
    """What came of a line; status and body where it was asked."""

    custom_id: str
    outcome: LineOutcome
    status: int | None = None
    body: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", _compact(self.body))


def _compact(body: bytes) -> bytes:
    """A copy without spare room: what orjson makes keeps several kilobytes, which a batch of 50,000 lines adds up."""
    return bytes(memoryview(body))


@dataclass(slots=True)
class SimulatedBatch:
    """A batch that was made, with its lines and what came of them so far."""

    id: str
    form: BatchForm
    name: str
    """As its maker named it; empty where the form has no names."""
    lines: Sequence[BatchLine]
    created_at: datetime
    begun: float
    """In seconds of the server's clock."""
    file: str = ""
    """The id of the file it was made of, where there is one."""
    problems: Sequence[tuple[int | None, str, str]] = ()
    """Of a refused one: line from 1 (None: of the whole file), code and message."""
    polls: int = 0
    phase: BatchPhase = "validating"
    cancelled: bool = False
    results: list[LineResult] = field(default_factory=list)
    """In the order in which lines were worked on; complete once it has ended."""
    is_strange: bool = False
    """Whether somebody else made it on the same account."""

    def count(self, *outcomes: LineOutcome) -> int:
        """How many of its lines have one of these outcomes."""
        return sum(result.outcome in outcomes for result in self.results)


class BatchDesk:
    """The batches of a simulated provider; `clock` returns seconds, and `pace` multiplies those of the judges' speed.

    Everything happens when a batch is asked about: a test drives batches by asking for their state, without waiting.
    """

    def __init__(
        self, faults: BatchFaults, seed: int, work: Work, *, clock: Callable[[], float], pace: float = 1.0
    ) -> None:
        self.batches: list[SimulatedBatch] = []
        """In the order in which they were made, refused ones included."""
        self.created: Counter[str] = Counter()
        """How often a batch was made under each name, or of each set of lines where the form has no names: a digest of
        their ids, `BatchDesk.digest`."""
        self.faults = faults
        self._seed = seed
        self._work = work
        self._clock = clock
        self._pace = pace
        self._asked: Counter[str] = Counter()
        self._downloads: Counter[str] = Counter()
        self._creates = 0

    @staticmethod
    def digest(custom_ids: Sequence[str]) -> str:
        """The name in `created` of a batch without one: SHA-256 of its lines' ids, sorted."""
        return sha256("\n".join(sorted(custom_ids)).encode()).hexdigest()

    def make(
        self,
        form: BatchForm,
        name: str,
        lines: Sequence[BatchLine],
        created_at: datetime,
        *,
        file: str = "",
        problems: Sequence[tuple[int | None, str, str]] = (),
    ) -> SimulatedBatch:
        """Take a batch in; one with problems, or that the queue has no room for, is refused once it is validated."""
        if not problems and self.faults.queue_lines is not None:
            for one in self.batches:
                self.advance(one)
            waiting = sum(len(batch.lines) for batch in self.batches if batch.phase not in ("ended", "refused"))
            if waiting + len(lines) > self.faults.queue_lines:
                problems = [(None, "token_limit_exceeded", "Enqueued token limit reached: try again later.")]
        batch = SimulatedBatch(
            self._next_id(), form, name, lines, created_at, self._clock(), file=file, problems=problems
        )
        self.batches.append(batch)
        self.created[name or self.digest([line.custom_id for line in lines])] += 1
        self._make_strangers(form, len(lines), created_at)
        return batch

    def _next_id(self) -> str:
        return f"batch_{len(self.batches) + 1:04d}"

    def fails_create(self, form: BatchForm, lines: int, created_at: datetime) -> bool:
        """Whether a call that makes a batch of so many lines fails."""
        self._creates += 1
        fails = self._creates <= self.faults.failed_creates
        if fails:
            self._make_strangers(form, lines, created_at)
        return fails

    def _make_strangers(self, form: BatchForm, lines: int, created_at: datetime) -> None:
        for _ in range(self.faults.strangers):
            id = self._next_id()
            asked = [BatchLine(f"{id}-{number}", b"{}") for number in range(1, lines + 1)]
            self.batches.append(SimulatedBatch(id, form, "", asked, created_at, self._clock(), is_strange=True))

    def loses_reply(self) -> bool:
        """Whether the client does not learn of the batch just made."""
        return sum(not batch.is_strange for batch in self.batches) <= self.faults.lost_replies

    def hand_out(self, file: str, content: bytes) -> bytes:
        """What comes of a download of a file of answers."""
        self._downloads[file] += 1
        damage = self.faults.damage(self._seed, file, self._downloads[file])
        if damage is None or not content:
            return content
        if damage == "page":
            return _PAGE
        lines = content.splitlines(keepends=True)
        middle = len(lines) // 2
        if damage == "cut":
            return b"".join(lines[:middle])
        lines[middle] = lines[middle][: len(lines[middle]) // 2] + b"\n"
        return b"".join(lines)

    def find(self, id: str) -> SimulatedBatch | None:
        """A batch by its id."""
        return next((batch for batch in self.batches if batch.id == id), None)

    def poll(self, batch: SimulatedBatch) -> None:
        """Count a question about its state, and take the batch as far as it has come by then."""
        batch.polls += 1
        self.advance(batch)

    def advance(self, batch: SimulatedBatch) -> None:
        """Take a batch as far as it has come: its state, and the lines worked on by then."""
        if batch.phase in ("ended", "refused"):
            return
        step = 3 * self._progress(batch)
        if batch.problems:
            batch.phase = "refused" if step >= 1 else "validating"
            return
        if batch.cancelled:
            # Nothing more is worked on; it takes as long to end as one of the states.
            if batch.polls > self.faults.polls:
                self._end(batch, "cancelled")
            return
        batch.phase = _PHASES[int(step)] if step < 3 else "ended"
        due = min(len(batch.lines), int(len(batch.lines) * max(0.0, step - 1)))
        for line in batch.lines[len(batch.results) : due]:
            batch.results.append(self._result(batch, line))
        if step >= 3:
            self._end(batch, "expired")

    def cancel(self, batch: SimulatedBatch) -> None:
        """Stop a batch: what was worked on by now stays answered."""
        self.advance(batch)
        if batch.phase not in ("ended", "refused"):
            batch.cancelled, batch.phase, batch.polls = True, "cancelling", 0

    def delivered(self, batch: SimulatedBatch) -> list[LineResult]:
        """The results as they are handed out: without lost and withheld ones, with duplicates and unasked ones."""
        given = [result for result in batch.results if result.outcome not in ("lost", "withheld")]
        answered = [line for line in given if line.outcome == "answered"]
        given += answered[: self.faults.duplicated]
        for number in range(self.faults.unasked if answered else 0):
            stranger = answered[number % len(answered)]
            given.append(LineResult(f"unasked-{number + 1}", "answered", stranger.status, stranger.body))
        if self.faults.shuffled:
            order = sorted(range(len(given)), key=lambda place: uniform(self._seed, "order", batch.id, place))
            given = [given[place] for place in order]
        return given

    def _progress(self, batch: SimulatedBatch) -> float:
        """How far a batch is, from 0 to 1, by the slower of polls and seconds."""
        seconds = self.faults.seconds * self._pace
        by_time = (self._clock() - batch.begun) / seconds if seconds else 1.0
        # The first question finds a batch where it was when it was made.
        by_polls = (batch.polls - 1) / (3 * self.faults.polls) if self.faults.polls else float(batch.polls > 0)
        return max(0.0, min(by_time, by_polls, 1.0))

    def _result(self, batch: SimulatedBatch, line: BatchLine) -> LineResult:
        self._asked[line.custom_id] += 1
        outcome = self.faults.draw(self._seed, line.custom_id, self._asked[line.custom_id])
        if outcome in ("expired", "lost"):
            return LineResult(line.custom_id, outcome)
        if batch.is_strange:
            return LineResult(line.custom_id, "answered", 200, b"{}")
        status, body = self._work(batch, line, outcome)
        if outcome in ("answered", "withheld") and status != 200:
            outcome = "failed"  # its own fault: a request that no judge can answer
        return LineResult(line.custom_id, outcome, status, body)

    def _end(self, batch: SimulatedBatch, left: LineOutcome) -> None:
        batch.results += [LineResult(line.custom_id, left) for line in batch.lines[len(batch.results) :]]
        batch.phase = "ended"
