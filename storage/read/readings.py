"""How judges were asked, by the record; and another reading of their replies, compared with the verdicts in force."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import numpy as np

from venire.arena.errors import InputError, StoreError
from venire.arena.records import Origin
from venire.storage.store.connection import query
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

StatusLabel = tuple[int, int | None, bool]
"""Status and label of a verdict, as the store has them, and whether it is of a battle."""


class ReadVerdict(NamedTuple):
    """A verdict as it goes into the draft, columns as in the table `verdict`."""

    trial: int
    status: int
    rule: str
    label: int | None
    score: float | None
    criteria: list[float] | None
    places: list[int] | None
    answered: bool
    flagged: bool
    unasked: bool
    """Whether today's protocol would ask a step that is not on record."""


@dataclass(frozen=True, slots=True)
class AskedRespondent:
    """How a respondent was asked."""

    model: str
    protocol: str
    options: Mapping[str, str]
    key: bytes


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """How many verdicts were one thing before and are another now."""

    earlier: StatusLabel
    now: StatusLabel
    verdicts: int


@dataclass(frozen=True, slots=True)
class ChangedVerdict:
    """One verdict that changed, with what was judged."""

    judge: str
    instruction: str
    models: tuple[str, ...]
    """In the order shown."""
    repeat: int
    earlier: StatusLabel
    now: StatusLabel


@dataclass(frozen=True, slots=True)
class ReadingComparison:
    """A reading beside the verdicts in force; `same` counts those equal in status, label, score and rule."""

    verdicts: int
    same: int
    scores: int
    """Verdicts of which nothing but the score differs, or the score and the rule."""
    unasked: int
    """Verdicts for which today's protocol would ask a step that is not on record."""
    by_this_parser: bool
    """Whether every verdict in force was read by the same parser."""
    changes: tuple[VerdictChange, ...]
    rules: tuple[tuple[str, str, int], ...]
    """Rule before, rule now, number of verdicts."""
    examples: tuple[ChangedVerdict, ...]


class ReadingDraft:
    """A reading under way, of the verdicts in force for some campaigns.

    It grows in a temporary table outside the store's file, and goes into it in one transaction: a process that is
    killed on the way leaves nothing of it behind.
    """

    def __init__(self, store: Store, campaigns: Sequence[int]) -> None:
        self._store = store
        self._campaigns = list(campaigns)
        store.rows("stage_earlier", campaigns=self._campaigns)
        store.rows("stage_verdicts")
        self._appender = store.connection.appender("read_verdict")

    def __enter__(self) -> ReadingDraft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._appender.clear()
        self._store.rows("drop_verdicts")
        self._store.rows("drop_earlier")

    def trials(self) -> NDArray[np.int64]:
        """The trials to read, in ascending order: those that share row groups are together."""
        with self._full_disk():
            columns = self._store.connection.execute(query("trials_to_read")).fetchnumpy()
        return np.asarray(np.ma.getdata(columns["trial"]), dtype=np.int64)

    def respondents(self) -> dict[int, AskedRespondent]:
        """How the respondents of these trials were asked, by number."""
        return {
            number: AskedRespondent(model, protocol, json.loads(options), bytes(key))
            for number, model, protocol, options, key in self._store.rows("respondents_to_read")
        }

    def unsent(self, rule: str) -> frozenset[int]:
        """The trials that are too long by this rule: their request was counted and not sent, so no attempt exists."""
        return frozenset(trial for (trial,) in self._store.rows("unsent", rule=rule))

    def add(self, verdicts: list[ReadVerdict]) -> None:
        """Put verdicts into the draft."""
        with self._full_disk():
            self._appender.append_rows(verdicts)
            self._appender.flush()

    def compare(self, parser: str, *, examples: int) -> ReadingComparison:
        """The draft beside what is in force, with at most so many examples."""
        rows = self._store.rows
        verdicts, same, scores, unasked, by_this_parser = rows("reading_totals", parser=parser)[0]
        found = rows("reading_examples", campaigns=self._campaigns, limit=examples)
        return ReadingComparison(
            verdicts,
            same,
            scores,
            unasked,
            by_this_parser,
            tuple(VerdictChange((a, b, of), (c, d, of), count) for of, a, b, c, d, count in rows("reading_changes")),
            tuple((before, now, count) for before, now, count in rows("reading_rules")),
            tuple(
                ChangedVerdict(judge, instruction, tuple(models), repeat, (a, b, of), (c, d, of))
                for judge, instruction, models, repeat, of, a, b, c, d in found
            ),
        )

    def keep(self, parser: str) -> int:
        """Append the draft to the store as a reading of its own, in force from now on; returns its number."""
        with self._store.commit() as commit:
            commit.run("append_reading", parser=parser, now=self._store.clock.wall())
            number: int = self._store.rows("reading_id", parser=parser)[0][0]
            commit.run("keep_reading", reading=number, batch=commit.batch)
        return number

    @contextmanager
    def _full_disk(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise StoreError(f"no room for another reading of the store {self._store.path}: {reason}") from error


def last_faults(store: Store, trials: NDArray[np.int64]) -> dict[tuple[int, int], int]:
    """(trial, step) to the fault of its last attempt, for the steps of a chunk whose last attempt brought no reply."""
    bounds = {"low": int(trials.min()), "high": int(trials.max()), "ids": trials.tolist()}
    return {(trial, step): fault for trial, step, fault in store.read("last_faults", **bounds)}


_LONGEST_NUMBER = 18
_KEY_DIGITS = 32


@dataclass(frozen=True, slots=True)
class AskedJudge:
    """A judge of a campaign as its trials are planned: its name there, its number, and all that makes its key."""

    name: str
    number: int
    model: str
    protocol: str
    origin: Origin
    options: Mapping[str, str]
    key: bytes


def asked_judges(store: Store, campaign: int) -> tuple[AskedJudge, ...]:
    """The judges of a campaign, by name."""
    return tuple(
        AskedJudge(name, number, model, protocol, Origin(origin), json.loads(options), bytes(key))
        for name, number, model, protocol, origin, options, key in store.read("asked_respondents", campaign=campaign)
    )


def prompt_texts(store: Store) -> Mapping[str, tuple[str, ...]]:
    """Every text that a judge of the store was asked with, by the prompt's name, in the order they came."""
    found: dict[str, tuple[str, ...]] = {}
    for name, text in store.read("prompt_texts"):
        found[name] = (*found.get(name, ()), text)
    return found


def find_trial(store: Store, campaign: int, wanted: str | None) -> int:
    """The number of a planned trial from its number or the first digits of its key; None: the first of the plan.

    Raises InputError where there is no such trial in the plan, or several.
    """
    count, lowest, highest = store.read("planned_bounds", campaign=campaign)[0]
    if not count:
        raise InputError(f"{store.path}: the campaign has no trials: look at `venire plan`")
    if wanted is None:
        return int(store.read("planned_first", campaign=campaign)[0][0])
    text = wanted.strip().lower()
    if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER:
        found = store.read("planned_number", campaign=campaign, trial=int(text))
    elif len(text) <= _KEY_DIGITS and text and set(text) <= set("0123456789abcdef"):
        found = store.read("planned_key", campaign=campaign, key=text)
    else:
        raise InputError(f"--trial {wanted!r}: a trial's number or the first hexadecimal digits of its key is wanted")
    if len(found) == 1:
        return int(found[0][0])
    what = "several trials have such a key: give more of its digits" if found else "there is no such trial in the plan"
    raise InputError(
        f"{store.path}: --trial {wanted}: {what}; it has {count:,} trials, with numbers from {lowest} to {highest}"
    )
