"""Instructions, completions and ratings on their way into a store: all of a batch, or nothing of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest
from itertools import islice
from pathlib import Path

from venire.arena.choices import TableKind
from venire.arena.errors import InputError
from venire.arena.keys import completion_key, instruction_key
from venire.arena.records import Completion, Instruction, Rating
from venire.storage.store.connection import Row, query
from venire.storage.store.store import Commit, Store
from venire.storage.transfer.formats import tables
from venire.storage.transfer.formats.texts import Reader, Skipped, digest_id

_CHUNK = 2_000


class UnknownInstructionError(InputError):
    """A completion answers an instruction that is not in the store."""


@dataclass(frozen=True, slots=True)
class Added:
    """What an import brought: new rows of each kind, ratings that changed, and rows that were known already."""

    instructions: int = 0
    completions: int = 0
    ratings: int = 0
    known: int = 0
    skipped: tuple[Skipped, ...] = ()
    """Rows that hold no text, since the call for it had failed."""


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model with completions in the store, its rating in Elo points, and how many instructions it answered."""

    model: str
    elo: float | None
    answers: int


def add(store: Store, records: Iterable[Instruction | Completion | Rating], *, change_ratings: bool = True) -> Added:
    """Bring records of one kind into the store in one transaction; what is there already is left as it is.

    An instruction that is there without a reference answer takes one. Known ratings are replaced, or refused where
    they differ and `change_ratings` is false.

    Raises InputError, with nothing imported, when an id or an answer is there with another text, an instruction with
    another reference answer, or when a completion names an instruction that is not.
    """
    stream = iter(records)
    first = next(stream, None)
    if first is None:
        return Added()
    rest = _chained(first, stream)
    with store.commit() as commit:
        if isinstance(first, Instruction):
            return _add_instructions(store, commit, (record for record in rest if isinstance(record, Instruction)))
        if isinstance(first, Completion):
            return _add_completions(store, commit, (record for record in rest if isinstance(record, Completion)))
        ratings = [record for record in rest if isinstance(record, Rating)]
        return _add_ratings(store, commit, ratings, change_ratings)


def add_file(
    store: Store, path: Path, kind: TableKind, mapping: Mapping[str, str], *, model: str | None = None
) -> Added:
    """Bring a table of instructions or completions into the store, once: one that was read before is only digested.

    What is in a store stays there, so the same file read in the same way adds nothing new. Answers of a table without
    a column of models are `model`'s. Raises InputError as
    `add` and `tables.read` do.
    """
    with path.open("rb") as file:
        digest = file_digest(file, "blake2b").hexdigest()[:32]
    mark = {"kind": kind, "digest": digest, "columns": dict(sorted(mapping.items()))}
    mark |= {} if model is None else {"model": model}
    for (detail,) in store.read("imported_files"):
        before = json.loads(detail)
        if {name: before.get(name) for name in mark} == mark:
            return Added(known=before["rows"])
    try:
        added = add(store, tables.read(path, kind, mapping, model=model))
    except UnknownInstructionError as error:
        raise InputError(f"{path}: {error}") from None
    with store.commit() as commit:
        detail = json.dumps({**mark, "rows": added.instructions + added.completions + added.known})
        now = store.clock.wall()
        commit.run("insert_event", now=now, campaign=None, kind="imported", detail=detail, batch=commit.batch)
    return added


def add_texts(store: Store, read: Reader, paths: Sequence[Path]) -> Added:
    """Bring the instructions and completions of files into the store: all of them, or nothing.

    The files are read twice, so that no more than a chunk of them is held. An instruction that is there under another
    id keeps that one, where the file's own is a digest of its text. Raises InputError as `add` does.
    """
    with store.commit() as commit:
        there = {bytes(key): external for external, _, key in store.rows("instruction_keys")}
        names: dict[str, str] = {}
        seen: set[tuple[str, bytes, str | None]] = set()
        skipped: list[Skipped] = []

        def instructions() -> Iterator[Instruction]:
            for one in read(paths):
                if isinstance(one, Instruction):
                    key = instruction_key(one.turns)
                    if one.id == digest_id(one.turns):
                        names[one.id] = there.get(key, one.id)
                    if (one.id, key, one.reference) not in seen:  # a file of answers has its prompt in every row
                        seen.add((one.id, key, one.reference))
                        yield replace(one, id=names.get(one.id, one.id))
                elif isinstance(one, Skipped):
                    skipped.append(one)

        def completions() -> Iterator[Completion]:
            for one in read(paths):
                if isinstance(one, Completion):
                    yield replace(one, instruction=names.get(one.instruction, one.instruction))

        first, second = _add_instructions(store, commit, instructions()), _add_completions(store, commit, completions())
    return Added(first.instructions, second.completions, 0, first.known + second.known, tuple(skipped))


def set_families(store: Store, families: Mapping[str, str]) -> None:
    """Note the families of models; names that the store does not have are left aside."""
    if families:
        with store.commit() as commit:
            commit.run("set_family", names=list(families), families=list(families.values()))


def contestants(store: Store) -> tuple[StoredModel, ...]:
    """Every model with completions, by name."""
    return tuple(StoredModel(*row) for row in store.read("contestants"))


def answer_key(store: Store) -> Iterator[tuple[str, tuple[str, ...], str, str]]:
    """Every completion as instruction id, turns, model and text; for the embedded judge server."""
    with store.cursor() as cursor:
        from_store = cursor.execute(query("answer_key"))
        asked: dict[str, tuple[str, ...]] = {}
        while rows := from_store.fetchmany(1_000):
            for instruction, turns, model, text in rows:
                if instruction not in asked:
                    asked[instruction] = tuple(json.loads(turns))
                yield instruction, asked[instruction], model, text


def _chained(
    first: Instruction | Completion | Rating, rest: Iterator[Instruction | Completion | Rating]
) -> Iterator[Instruction | Completion | Rating]:
    yield first
    for record in rest:
        if type(record) is not type(first):
            raise TypeError("one import brings records of one kind")
        yield record


def _stage(store: Store, commit: Commit, table: str, rows: Iterator[Row]) -> int:
    commit.run(f"stage_{table}s")
    appender = store.connection.appender(f"staged_{table}")
    count = 0
    while chunk := list(islice(rows, _CHUNK)):
        appender.append_rows(chunk)
        appender.flush()
        count += len(chunk)
    return count


def _add_instructions(store: Store, commit: Commit, records: Iterator[Instruction]) -> Added:
    rows = (
        (
            n,
            instruction_key(record.turns),
            record.id,
            record.category,
            json.dumps(record.turns, ensure_ascii=False),
            record.reference,
        )
        for n, record in enumerate(records)
    )
    staged = _stage(store, commit, "instruction", rows)
    if found := store.rows("clashing_instruction"):
        mine, there = found[0]
        why = "with another text" if mine == there else f"under the id {there!r}"
        raise InputError(
            f"instruction {mine!r} is in the store {why}: nothing was imported; give it one id and one text"
        )
    if repeated := store.rows("repeated_instruction"):
        one, other = repeated[0]
        clash = f"instruction {one!r} has two texts" if one == other else f"{one!r} and {other!r} have the same text"
        raise InputError(f"{clash} in this import: nothing was imported; keep one of them")
    if differs := store.rows("clashing_reference"):
        raise InputError(
            f"instruction {differs[0][0]!r} has two reference answers, in this import or there and in the store: "
            "nothing was imported; keep one, and use another store for another set of them"
        )
    commit.run("fill_references")
    before = commit.written
    commit.run("insert_instructions")
    new = commit.written - before
    return Added(instructions=new, known=staged - new)


def _add_completions(store: Store, commit: Commit, records: Iterator[Completion]) -> Added:
    known = {external: (number, bytes(key)) for external, number, key in store.rows("instruction_keys")}
    by_text = {key: (number, key) for number, key in known.values()}
    models = {name: number for name, number, *_ in store.rows("models")}
    new_models: list[str] = []

    def row(ordinal: int, one: Completion) -> Row:
        named = known.get(one.instruction) or next(
            filter(
                None, (by_text.get(instruction_key((text,))) for text in (one.instruction, one.instruction.strip()))
            ),
            None,
        )
        if named is None:
            whole, point, rest = one.instruction.partition(".")
            alike = whole if point and not rest.strip("0") else f"{one.instruction}.0"
            remedy = "add it to the instructions, or leave the row out"
            if alike in known:
                remedy = f"the instructions have {alike!r}: write ids alike, a whole number without a fraction in both"
            raise UnknownInstructionError(
                f"completion {ordinal + 1} (of {one.model!r}) answers instruction {one.instruction[:80]!r}, which is "
                f"not in the store: nothing was imported; {remedy}"
            )
        if one.model not in models:
            models[one.model] = len(models) + 1
            new_models.append(one.model)
        number, key = named
        digest = completion_key(one.model, key, one.sample, one.variant, one.text)
        return (ordinal, digest, number, models[one.model], one.sample, one.variant, one.text)

    staged = _stage(store, commit, "completion", (row(n, record) for n, record in enumerate(records)))
    if new_models:
        commit.run("insert_models", names=new_models)
    if clash := store.rows("clashing_completion"):
        raise InputError(
            "the answer of {!r} to instruction {!r} is in the store with another text: nothing was imported; "
            "use another store for another set of answers".format(*clash[0])
        )
    if repeated := store.rows("repeated_completion"):
        raise InputError(
            "{!r} has two answers to instruction {!r} in this import: nothing was imported; keep one".format(
                *repeated[0]
            )
        )
    before = commit.written
    commit.run("insert_completions")
    new = commit.written - before
    return Added(completions=new, known=staged - new)


def _add_ratings(store: Store, commit: Commit, records: list[Rating], change: bool) -> Added:
    elos: dict[str, float] = {}
    for record in records:
        if elos.setdefault(record.model, record.elo) != record.elo:
            raise InputError(f"model {record.model!r} has two ratings in this import: nothing was imported; keep one")
    there = {name: elo for name, _, elo, _ in store.rows("models")}
    for name, elo in elos.items():
        if not change and there.get(name) not in (None, elo):
            raise InputError(
                f"the table gives {name!r} an Elo of {elo:g}, and calls were made while it had {there[name]:g}: put "
                "the table back, use another store, or accept the new rating with --amend"
            )
    if new := [model for model in elos if model not in there]:
        commit.run("insert_models", names=new)
    before = commit.written
    commit.run("set_elo", names=list(elos), elos=list(elos.values()))
    changed = commit.written - before
    return Added(ratings=changed, known=len(records) - changed)
