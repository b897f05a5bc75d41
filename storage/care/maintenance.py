"""A store rewritten into a fresh file, or copied whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from venire.arena.errors import InputError, StoreError
from venire.storage.care.checking import check_open, refuse_unsound
from venire.storage.care.offline import (
    attached,
    copied,
    folded,
    in_place,
    left_beside,
    locked,
    made_empty,
    named,
    refuse_full,
)
from venire.storage.store.connection import make_database, query

_SMALL_STORE = 32_000_000
_SMALL_BLOCK = 16_384
"""Bytes. Each table takes some blocks at least, which is most of a small store; a large one is written slower so."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """Bytes of the file before and after, and the rows that were carried over."""

    before: int
    after: int
    rows: int


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A copy of a store: its bytes, the last batch in it, and the rows that its ledger counts."""

    path: str
    bytes: int
    batch: int
    rows: int


def compact(path: Path) -> Compacted:
    """Rewrite a store into a fresh file of today's schema, compare, and put it in place of the old one.

    A store of less than 32 MB gets small blocks, with which it takes a tenth of the room. Raises InputError for what is
    no store or where the disk has no room, StoreHeldError when another process owns it, StoreError, with the store as
    it was, when the old or the new file is not sound.
    """
    with folded(path) as path:
        before = path.stat().st_size
        refuse_full(path.parent, before, f"compacting {path}")
        with in_place(path) as fresh:
            make_database(fresh, block_bytes=_SMALL_BLOCK if before < _SMALL_STORE else 0)
            rows = _rewrite(path, fresh)
            shutil.copymode(path, fresh)
        return Compacted(before, path.stat().st_size, rows)


def _rewrite(path: Path, fresh: Path) -> int:
    scratch = path.with_name(path.name + ".tmp")
    total = 0
    with attached({"kept": path}, scratch=scratch, writable={"made": fresh}) as connection:
        for table in made_empty(connection, "made"):
            connection.execute(f"insert into made.{table} by name select * from kept.{table}")
            (counts,) = connection.execute(
                f"select (select count(*) from kept.{table}), (select count(*) from made.{table})"
            ).fetchall()
            if counts[0] != counts[1]:
                raise StoreError(f"{path} was left as it was: {counts[1]} of {counts[0]} rows of {table} came over")
            total += counts[1]
        connection.execute("checkpoint made")
        connection.execute("use made")
        refuse_unsound(path, check_open(connection, full=False))
        connection.execute("use memory")
        connection.execute("detach made")
    return total


def backup(path: Path, out: Path, *, force: bool = False) -> BackedUp:
    """Copy a store that nobody owns: log folded in, whole, verified. The copy is written under another name first.

    Raises InputError for what is no store, for a copy that is there already unless `force` is true, and where the disk
    has no room; StoreHeldError when another process owns the store.
    """
    path = named(path)
    refuse_existing(out, path, force=force)
    with folded(path) as path:
        with attached({"kept": path}, scratch=path.with_name(path.name + ".tmp")) as connection:
            last = _last_batch(connection)
        return _copy(path, out, last, lambda: True)


def backup_held(path: Path, out: Path, *, held: Callable[[], bool], force: bool = False) -> BackedUp:
    """Copy a store whose owner has checkpointed its log and writes nothing while `held` returns true; else as `backup`.

    To be called in another process than the owner's, whose locks it would drop. Raises StoreError, and leaves no copy,
    when the owner went on before the copy was whole.
    """
    path = named(path)
    refuse_existing(out, path, force=force)
    return _copy(path, out, None, held)


def _copy(path: Path, out: Path, last: tuple[int, int, int] | None, held: Callable[[], bool]) -> BackedUp:
    refuse_full(out.parent, path.stat().st_size, f"a copy of {path}")
    with locked(out), in_place(out) as partial:
        copied(path, partial)
        if not held():
            raise StoreError(f"the owner of {path} wrote on before the copy was whole: try again")
        with attached({"copy": partial}, scratch=partial.with_name(partial.name + ".tmp")) as connection:
            batch, running, written = _last_batch(connection)
        if running != written or last not in (None, (batch, running, written)):
            raise StoreError(f"the copy of {path} ends at batch {batch} with {running} rows, and the store elsewhere")
    return BackedUp(str(out), out.stat().st_size, batch, running)


def _last_batch(connection: duckdb.DuckDBPyConnection) -> tuple[int, int, int]:
    ((batch, running, written),) = connection.execute(query("last_batch")).fetchall()
    return int(batch), int(running), int(written)


def refuse_existing(out: Path, *sources: Path, force: bool | None) -> None:
    """Raises InputError for a file that is there already, unless `force` is true, and for one that may never be.

    `force` is None where nothing may be replaced at all.
    """
    if not out.parent.is_dir():
        raise InputError(f"the folder {out.parent} does not exist: make it first")
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file in it")
    if out.is_symlink():
        raise InputError(f"{out} is a link: name the file itself")
    if out.exists():
        if any(out.samefile(source) for source in sources):
            raise InputError(f"{out} is the store itself: name another file")
        if not force:
            instead = "" if force is None else ", or replace it with --force"
            raise InputError(f"{out} is there already: name another file{instead}")
        with out.open("rb") as file:
            if file.read(12)[8:] != b"DUCK":
                raise InputError(f"{out} is there already and is no store: name another file")
    if left := left_beside(out):
        raise InputError(f"{left[0]} belongs to a store {out.name} that was not closed: name another file")
