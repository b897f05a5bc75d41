"""Whether a store is sound: what its rows say of each other, and whether its keys are those of its texts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from venire.arena.clock import SystemClock
from venire.arena.errors import StoreError
from venire.arena.keys import completion_key, instruction_key, prompt_digest, trial_key
from venire.storage.care.offline import attached, left_beside, locked, named, refuse_full, scratch_of
from venire.storage.store.connection import connect, migrate, migrations, query
from venire.storage.store.files import is_writable, log_path
from venire.storage.store.journal import read_journal

_ROWS = {
    "check_trial_keys": "every trial has a key of its own",
    "check_trial_ids": "every trial has a number of its own",
    "check_plan_trial": "every planned trial is there",
    "check_plan_campaign": "every plan has its campaign",
    "check_attempt_trial": "every attempt has its trial",
    "check_attempt_campaign": "every attempt has the campaign that paid",
    "check_verdict_trial": "every verdict has its trial",
    "check_verdict_reading": "every verdict has its reading",
    "check_failure_trial": "every failure has its trial",
    "check_trial_completion": "every trial has its completions",
    "check_trial_sides": "every trial shows answers to its instruction by its models",
    "check_trial_instruction": "every trial has its instruction",
    "check_trial_respondent": "every trial has its respondent",
    "check_judge_respondent": "every judge has its respondent",
    "check_completion_instruction": "every completion has its instruction",
    "check_completion_model": "every completion has its model",
    "check_suspicion_completion": "every suspicion has its completion",
    "check_vote_names": "every vote has its annotator, instruction and models",
    "check_gold_names": "every gold label has its annotator and completion",
    "check_plan_twice": "no trial is planned twice in a campaign",
    "check_round_trials": "every round has the trials that it counts",
    "check_look_round": "every look has its round",
    "check_verdict_attempt": "every verdict rests on an attempt",
    "check_verdict_twice": "no trial has two verdicts of one reading",
    "check_verdict_cost": "every verdict costs what its attempts cost",
    "check_attempt_numbers": "every attempt of a step has a number of its own",
    "check_attempt_text": "every answered attempt has a text",
    "check_settled_failed": "no trial is both settled and failed",
    "check_ledger_running": "the ledger adds up",
    "check_ledger_gaps": "the ledger has no gaps",
    "check_ledger_rows": "no batch has more rows than the ledger counts",
    "check_submission_campaign": "every batch has its campaign and its route",
    "check_submission_twice": "every batch has a number and a name of its own",
    "check_submission_lines": "every batch has the lines that it counts, and their money",
    "check_submission_trial": "every line of a batch has its trial",
    "check_submission_event": "every event of a batch has its batch",
    "check_submission_collected": "every line of a collected batch has its attempt",
    "check_submission_out": "no trial is out in two batches",
    "check_spend": "every campaign's accounts are the sum of its attempts",
}
_NOTES = {
    "check_one_order": "battles with a verdict in one order only",
    "check_unfinished_round": "plans that were cut short; the next run makes them anew",
    "check_unfinished_submission": "lines of batches that were cut short, and never sent",
    "check_open_submission": "batches that are out; the next run of their campaign collects them",
}
_SAMPLE = 2_000
_CHUNK = 1_000

_Digest = Callable[[tuple[Any, ...]], tuple[bytes, str]]
"""From a row, its key first, the key that it should have and what to call it."""


@dataclass(frozen=True, slots=True)
class StoreFinding:
    """One thing that was looked at: how many rows are wrong, one of them in words, and how many were looked at.

    `looked` is None where all rows were.
    """

    what: str
    count: int
    example: str | None = None
    looked: int | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found: things that hold or do not, and notes on what is no mistake."""

    findings: tuple[StoreFinding, ...]
    notes: tuple[StoreFinding, ...]
    paid: dict[str, int]
    """Campaign to nano-dollars, from its attempts."""

    @property
    def sound(self) -> bool:
        """Whether everything holds."""
        return not any(finding.count for finding in self.findings)


def check(path: Path, *, full: bool = False) -> Checked:
    """Look a store over without changing it; keys are recomputed for some 2,000 of each kind, or for all when `full`.

    Raises InputError for what is no store, StoreHeldError when another process owns it, StoreError where its file
    cannot be read.
    """
    path = named(path)
    with (
        locked(*filter(is_writable, (path,))),
        scratch_of(path) as scratch,
        _of_today(path, scratch) as today,
        attached({"kept": today}, scratch=scratch) as connection,
    ):
        found = check_open(connection, full=full)
        ((last, running, _),) = connection.execute(query("last_batch")).fetchall()
        journal = read_journal(path)
    beside = tuple(
        StoreFinding(f"{left.name} was left by a run that ended without notice; the next opening folds it in", 1)
        for left in left_beside(path)
    )
    gone = 0 if journal is None else max(0, journal.batch - last)
    example = f"batch {last + 1:,}, after {running:,} rows" if gone else None
    lost = StoreFinding("every commit that the journal beside the store knows of is there", gone, example)
    return Checked((*found.findings, lost), (*beside, *found.notes), found.paid)


@contextmanager
def _of_today(path: Path, scratch: Path) -> Iterator[Path]:
    """The store itself, or for one of an earlier format a copy elsewhere that was brought to today's schema."""
    with attached({"kept": path}, scratch=scratch) as connection:
        ((found, *_),) = connection.execute(query("read_store")).fetchall()
    if found == migrations()[-1][0]:
        yield path
        return
    with TemporaryDirectory(prefix="venire-check-") as folder:
        copy = Path(folder) / path.name
        refuse_full(copy.parent, 2 * path.stat().st_size, f"checking {path}, which is of an earlier format,")
        shutil.copyfile(path, copy)
        if log_path(path).exists():
            shutil.copyfile(log_path(path), log_path(copy))
        connection = connect(copy)
        try:
            migrate(connection, copy, SystemClock())
        finally:
            connection.close()
        yield copy


def check_open(connection: duckdb.DuckDBPyConnection, *, full: bool) -> Checked:
    """The same for the store in use on a connection."""
    findings = [_counted(connection, name, what) for name, what in _ROWS.items()]
    findings += _keys(connection, full)
    notes = tuple(note for name, what in _NOTES.items() if (note := _counted(connection, name, what)).count)
    paid = {name: nano for name, nano, _ in connection.execute(query("check_paid")).fetchall()}
    return Checked(tuple(findings), notes, paid)


def _counted(connection: duckdb.DuckDBPyConnection, name: str, what: str) -> StoreFinding:
    (row,) = connection.execute(query(name)).fetchall()
    return StoreFinding(what, row[0], row[1])


def _keys(connection: duckdb.DuckDBPyConnection, full: bool) -> Iterator[StoreFinding]:
    (sizes,) = connection.execute(query("check_sizes")).fetchall()
    trials, _, completions = (1 if full else max(1, size // _SAMPLE) for size in sizes)
    for what, name, digest, every in (
        ("every instruction has the key of its text", "check_instruction_keys", _of_instruction, None),
        ("every prompt has the digest of its text", "check_prompt_digests", _of_prompt, None),
        ("every completion has the key of its text", "check_completion_keys", _of_completion, completions),
        ("every trial has the key of what it shows to whom", "check_trial_digests", _of_trial, trials),
    ):
        yield _recomputed(connection, what, name, digest, every)


def _recomputed(
    connection: duckdb.DuckDBPyConnection, what: str, name: str, digest: _Digest, every: int | None
) -> StoreFinding:
    rows = connection.execute(query(name), {} if every is None else {"every": every})
    looked, wrong, example = 0, 0, None
    while chunk := rows.fetchmany(_CHUNK):
        looked += len(chunk)
        for row in chunk:
            key, called = digest(row)
            if key != bytes(row[0]):
                wrong += 1
                example = example or called
    return StoreFinding(what, wrong, example, None if every in (None, 1) else looked)


def _of_instruction(row: tuple[Any, ...]) -> tuple[bytes, str]:
    _, turns, name = row
    return instruction_key(json.loads(turns)), f"instruction {name}"


def _of_prompt(row: tuple[Any, ...]) -> tuple[bytes, str]:
    _, text, name = row
    return prompt_digest(text), f"prompt {name}"


def _of_completion(row: tuple[Any, ...]) -> tuple[bytes, str]:
    _, model, instruction, sample, variant, text, number = row
    return completion_key(model, bytes(instruction), sample, variant, text), f"completion {number} of {model}"


def _of_trial(row: tuple[Any, ...]) -> tuple[bytes, str]:
    _, respondent, instruction, repeat, shown, number = row
    return trial_key(bytes(respondent), bytes(instruction), map(bytes, shown), repeat), f"trial {number}"


def refuse_unsound(path: Path, found: Checked) -> None:
    """Raises StoreError naming the first thing that does not hold."""
    for finding in found.findings:
        if finding.count:
            raise StoreError(f"{path} is not sound: it does not hold that {finding.what}: {finding.example}")
