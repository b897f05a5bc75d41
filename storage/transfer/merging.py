"""Several stores as one: what is the same is kept once, and every call that was paid is kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from venire.arena.clock import Clock, SystemClock
from venire.arena.errors import InputError, StoreError
from venire.storage.care.checking import check_open, refuse_unsound
from venire.storage.care.maintenance import refuse_existing
from venire.storage.care.offline import attached, in_place, left_beside, locked, made_empty, named, refuse_full
from venire.storage.store.connection import migrations, query, sign
from venire.storage.store.opening import open_store

KINDS = ("models", "instructions", "completions", "votes", "trials", "planned", "attempts", "verdicts", "failed")


@dataclass(frozen=True, slots=True)
class MergedSource:
    """One of the stores that were put together: its rows by kind, and what it paid in nano-dollars."""

    path: str
    rows: dict[str, int]
    paid: int


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge made of its sources."""

    path: str
    sources: tuple[MergedSource, ...]
    rows: dict[str, int]
    shared_attempts: int
    """Calls that several sources had on record: one and the same call, counted once."""
    doubles: int
    """Steps with more than one answer; the first sent is the reply."""
    mixed: int
    """Settled trials whose replies in force come from several sources: their verdicts are to be read again."""
    paid: dict[str, int]
    """Campaign to nano-dollars."""

    @property
    def paid_in_all(self) -> int:
        """Nano-dollars of all campaigns."""
        return sum(self.paid.values())


def merge(paths: Sequence[Path], out: Path, *, clock: Clock | None = None) -> Merged:
    """Put stores together into a new one; they are locked meanwhile and not changed.

    Raises InputError for what is no store, for a file `out` that is there, and for stores that contradict each other;
    StoreHeldError when another process owns one; StoreError for one that is not sound.
    """
    if len(paths) < 2:
        raise InputError("a merge needs two stores or more")
    sources = list(dict.fromkeys(named(path).resolve() for path in paths))  # named twice, it is still one store
    refuse_existing(out, *sources, force=None)
    scratch = out.with_name(f".{out.name}.merging")
    with locked(*sources, out):
        refuse_full(out.parent, sum(path.stat().st_size for path in sources), f"the merged store {out}")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        try:
            ready = {f"s{n}": _ready(path, scratch, n) for n, path in enumerate(sources, start=1)}
            with (
                in_place(out) as partial,
                attached(ready, scratch=scratch / "tmp", writable={"made": partial}) as connection,
            ):
                merged = _Merge(connection, sources, clock or SystemClock()).run(out)
                connection.execute("checkpoint made")
                connection.execute("use memory")
                connection.execute("detach made")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return merged


def _ready(path: Path, scratch: Path, number: int) -> Path:
    """The store itself, or where it has an older format or a log beside it, a copy that is brought up to date."""
    with attached({"kept": path}, scratch=scratch / "tmp") as connection:
        ((found, _),) = connection.execute(query("read_store")).fetchall()
    beside = left_beside(path)
    if found == migrations()[-1][0] and not beside:
        return path
    copy = scratch / f"{number}.duckdb"
    for file in (path, *beside):
        shutil.copyfile(file, copy.with_name(copy.name + file.name.removeprefix(path.name)))
    open_store(copy).close()
    return copy


class _Merge:
    """One merge under way, on a connection with the sources as s1, s2, ... and an empty file as made."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], clock: Clock) -> None:
        self.connection = connection
        self.paths = list(paths)
        self.clock = clock
        self.numbers: dict[int, int] = {}
        """Each store, and the one whose rows of `map_trial` say what numbers its trials get: itself, or one before."""
        self.kept: dict[int, int] = {}
        """Of stores whose trials keep their numbers: how many trials, and the first store with so many."""

    def run(self, out: Path) -> Merged:
        sides = [self._source(number) for number in range(1, len(self.paths) + 1)]
        identities = {self._identity(number) for number in range(1, len(sides) + 1)}
        tables = made_empty(self.connection, "made")
        self._run("merge_maps")
        for side in range(1, len(sides) + 1):
            self._material(side)
        self.connection.execute("use made")
        self._run("merge_readings")
        self._rounds()
        self._every("merge_looks")
        self._every("merge_stage_attempts")
        self._run("merge_shared_attempts")
        self._run("merge_number_attempts")
        self._every("merge_attempts")
        self._every("merge_stage_verdicts")
        for name in ("merge_judge_conversations", "merge_verdicts", "merge_failures"):
            self._run(name)
        mixed = [trial for (trial,) in self._rows("merge_mixed")]
        self._sign(tables, identities, mixed)
        return self._summary(out, sides, len(mixed))

    def _source(self, number: int) -> MergedSource:
        path = self.paths[number - 1]
        self.connection.execute(f"use s{number}")
        found = check_open(self.connection, full=False)
        refuse_unsound(path, found)
        if out := self._rows("merge_open_submissions"):
            # Calls on record are numbered anew, and one that is out is known by its number.
            names = ", ".join(name for (name,) in out[:3]) + (", ..." if len(out) > 3 else "")
            raise InputError(
                f"{path}: {len(out)} batches are out ({names}): run their campaigns to collect them, and then merge "
                f"(to end them before their time: venire batch cancel {path})"
            )
        return MergedSource(str(path), self._counts(), sum(found.paid.values()))

    def _identity(self, number: int) -> str:
        self.connection.execute(f"use s{number}")
        return str(self._rows("read_store")[0][1])

    def _counts(self) -> dict[str, int]:
        return dict(zip(KINDS, self._rows("merge_counts")[0], strict=True))

    def _material(self, side: int) -> None:
        """What campaigns are made of: models, texts, judges, plans, trials."""
        self.connection.execute(f"use s{side}")
        path = self.paths[side - 1]
        if clash := self._rows("merge_models_clash"):
            model, label, theirs, mine = clash[0]
            raise InputError(f"{path}: model {model!r} has {label} {mine}, and {theirs} in another store: agree on one")
        self._run("merge_models", side=side)
        if clash := self._rows("merge_instructions_clash"):
            mine, theirs = clash[0]
            why = "has another text" if mine == theirs else f"has the text of {theirs!r}"
            raise InputError(f"{path}: instruction {mine!r} {why} in another store: these cannot be put together")
        if clash := self._rows("merge_references_clash"):
            raise InputError(
                f"{path}: instruction {clash[0][0]!r} has another reference answer in another store: these cannot be "
                "put together"
            )
        self._run("merge_instructions", side=side)
        if clash := self._rows("merge_completions_clash", side=side):
            model, instruction = clash[0]
            raise InputError(
                f"{path}: the answer of {model!r} to instruction {instruction!r} has another text in another store: "
                "these cannot be put together"
            )
        self._run("merge_completions", side=side)
        self._votes(side, path)
        self._run("merge_respondents", side=side)
        self._campaigns(path)
        self._run("merge_campaigns", side=side)
        if clash := self._rows("merge_judges_clash", side=side):
            campaign, judge = clash[0]
            raise InputError(
                f"{path}: campaign {campaign!r} asks judge {judge!r} with other prompts than in another store: "
                "these cannot be put together"
            )
        self._run("merge_judges", side=side)
        self._trials(side)
        self._run("merge_rounds_of", side=side)

    def _trials(self, side: int) -> None:
        """The trials of a store, and their numbers in the new one: those of a store before it, where they are the same.

        Shards of one campaign planned the same trials in the same order: to compare them one by one takes no memory.
        """
        ((other, size),) = self._rows("merge_same_trials")
        if not other and size in self.kept:
            self.numbers[side] = self.kept[size]
            return
        self._run("merge_trials", side=side)
        self.numbers[side] = side
        if self._rows("merge_same_trials") == [(0, size)]:
            self.kept[size] = side

    def _votes(self, side: int, path: Path) -> None:
        """People's votes and labels; one that two stores have is one."""
        if clash := self._rows("merge_people_clash"):
            name, mine, theirs = clash[0]
            raise InputError(
                f"{path}: the votes of {name!r} are of origin {mine}, and of {theirs} in another store: give one of "
                "them another name"
            )
        self._run("merge_people", side=side)
        if clash := self._rows("merge_votes_clash", side=side):
            instruction, model_a, model_b, annotator = clash[0]
            raise InputError(
                f"{path}: {annotator!r} voted otherwise on {model_a!r} against {model_b!r}, instruction "
                f"{instruction!r}, in another store: these cannot be put together"
            )
        self._run("merge_votes", side=side)
        self._run("merge_notes", side=side)
        if clash := self._rows("merge_gold_clash", side=side):
            instruction, model, annotator = clash[0]
            raise InputError(
                f"{path}: {annotator!r} labelled the answer of {model!r} on instruction {instruction!r} otherwise in "
                "another store: these cannot be put together"
            )
        self._run("merge_gold", side=side)

    def _campaigns(self, path: Path) -> None:
        there = {name: _settings(text) for name, text in self._rows("merge_known_settings")}
        for name, text in self._rows("merge_campaign_settings"):
            if there.get(name, _settings(text)) != _settings(text):
                raise InputError(
                    f"{path}: campaign {name!r} has other settings than in another store: one name is for one of them"
                )

    def _rounds(self) -> None:
        """Every round of every campaign, those in force last; a plan that two stores made is one."""
        first: dict[int, int] = {}
        for number, campaign, side, old, in_force, *fields in self._rows("merge_rounds"):
            if in_force:
                first.setdefault(campaign, number)
            self.connection.execute(f"use s{side}")
            found = {"campaign": campaign, "number": number}
            start = first.get(campaign, number)
            rows = 0
            if not (in_force and start != number and self._planned(side, campaign, old, start)):
                numbers = self.numbers[side]
                rows = self._run(
                    "merge_plan", side=side, numbers=numbers, old=old, in_force=in_force, first=start, **found
                )
            if not rows and start != number:
                continue
            more = dict(zip(("policy", "seed", "equal_texts", "design", "planned_at", "phase"), fields, strict=True))
            self._run("merge_round", trials=rows, **found, **more)
            if in_force:
                self._run("merge_in_force", **found)

    def _planned(self, side: int, campaign: int, old: int, first: int) -> bool:
        """Whether a round plans what another does that is there, trial by trial: to see that takes no hash table."""
        return self.numbers[side] in self.kept.values() and self._rows(
            "merge_same_plan", side=side, campaign=campaign, old=old, first=first
        ) == [(0,)]

    def _every(self, name: str) -> None:
        """Run a named query once for each source, with that in use."""
        for side in range(1, len(self.paths) + 1):
            self.connection.execute(f"use s{side}")
            self._run(name, side=side, numbers=self.numbers[side])
        self.connection.execute("use made")

    def _sign(self, tables: list[str], identities: set[str], mixed: list[int]) -> None:
        """Who this store is, what happened, and the one batch that everything is in."""
        now = self.clock.wall()
        sign(self.connection, migrations(), now, new=True)
        if len(identities) == 1:  # the same store at several times: it stays who it is
            self._run("merge_store_id", id=next(iter(identities)))
        detail = json.dumps({"stores": [path.name for path in self.paths], "mixed_trials": mixed}, ensure_ascii=False)
        self._run("insert_event", now=now, campaign=None, kind="merged", detail=detail, batch=1)
        counted = [table for table in tables if table not in ("store", "migration", "ledger")]
        count = "select count(*) from made.{}"
        written = sum(self.connection.execute(count.format(table)).fetchall()[0][0] for table in counted)
        self._run("insert_ledger", batch=1, now=now, written=written, running=written)

    def _summary(self, out: Path, sources: list[MergedSource], mixed: int) -> Merged:
        found = check_open(self.connection, full=False)
        refuse_unsound(out, found)
        ((shared, shared_paid),) = self._rows("merge_shared_paid")
        merged = Merged(
            str(out), tuple(sources), self._counts(), shared, self._rows("merge_doubles")[0][0], mixed, found.paid
        )
        expected = sum(source.paid for source in sources) - shared_paid
        if merged.paid_in_all != expected:
            raise StoreError(f"{out} would account for {merged.paid_in_all} of {expected} nano-dollars: not made")
        return merged

    def _rows(self, name: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.connection.execute(query(name), parameters).fetchall()
        return rows

    def _run(self, name: str, /, **parameters: Any) -> int:
        """Run the statements of a named query one by one, each with the parameters that it names; rows of the last."""
        rows = 0
        for statement in duckdb.extract_statements(query(name)):
            wanted = {key: value for key, value in parameters.items() if key in statement.named_parameters}
            found = self.connection.execute(statement, wanted).fetchall()
            rows = found[0][0] if found and isinstance(found[0][0], int) else 0
        return rows


def _settings(text: str) -> Any:
    """Settings without the file's own place."""
    found = json.loads(text)
    return {name: value for name, value in found.items() if name != "store"} if isinstance(found, dict) else found
