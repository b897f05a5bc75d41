"""A store that is copied or rewritten is whole: before, after, and when it is cut short in between."""

from __future__ import annotations

import lzma
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from venire.arena.errors import InputError, StoreError, StoreHeldError
from venire.storage.care import maintenance, offline
from venire.storage.care.checking import check
from venire.storage.care.maintenance import backup, compact
from venire.storage.store.connection import migrations
from venire.storage.store.opening import open_store

FIXTURE = Path(__file__).parents[1] / "fixtures" / "schema-0001.duckdb.xz"


@pytest.fixture(scope="session")
def content() -> bytes:
    return lzma.decompress(FIXTURE.read_bytes())


@pytest.fixture
def old(content: bytes, path: Path) -> Path:
    """A store of the first schema, with room in its file that nothing uses."""
    path.write_bytes(content)
    return path


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Everything in a store, in the order in which it lies there."""
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = [row[0] for row in connection.execute("select table_name from duckdb_tables()").fetchall()]
        return {table: connection.execute(f"select * from {table}").fetchall() for table in sorted(tables)}


def names(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir())


def test_a_compacted_store_has_every_row_in_its_place_and_who_it_is(old: Path) -> None:
    open_store(old).close()
    before = rows(old)
    done = compact(old)
    assert rows(old) == before
    assert done.after == old.stat().st_size < done.before
    assert done.rows == sum(map(len, before.values()))
    assert check(old, full=True).sound
    assert names(old) == [old.name]


def test_a_small_store_is_compacted_into_small_blocks_and_a_large_one_into_large(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(old).keys()
    done = compact(old)
    assert done.after < done.before / 5
    with open_store(old):
        pass  # it is written to as any other
    monkeypatch.setattr(maintenance, "_SMALL_STORE", old.stat().st_size)
    assert compact(old).after > 5 * done.after
    assert rows(old).keys() >= before


def test_compacting_brings_an_old_store_to_today_s_schema(old: Path) -> None:
    compact(old)
    with duckdb.connect(str(old), read_only=True) as connection:
        assert connection.execute("select format from store").fetchall() == [(migrations()[-1][0],)]
        assert connection.execute("select max(number) from migration").fetchall() == [(migrations()[-1][0],)]
    with open_store(old) as store:
        assert store.batch > 1


def test_an_unsound_store_is_not_compacted(old: Path) -> None:
    with duckdb.connect(str(old)) as connection:
        connection.execute("update verdict set trial = 999999 where rowid = 0")
    open_store(old).close()
    before = old.read_bytes()
    with pytest.raises(StoreError, match="every verdict has its trial"):
        compact(old)
    assert old.read_bytes() == before
    assert names(old) == [old.name]


def test_rows_that_do_not_come_over_leave_the_store_as_it_was(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(old).close()
    before = old.read_bytes()
    real = maintenance.made_empty

    def one_too_many(connection: duckdb.DuckDBPyConnection, name: str) -> list[str]:
        tables = real(connection, name)
        connection.execute("insert into made.model values (99, 'nobody', null, null)")
        return tables

    monkeypatch.setattr(maintenance, "made_empty", one_too_many)
    with pytest.raises(StoreError, match="5 of 4 rows of model"):
        compact(old)
    assert old.read_bytes() == before
    assert names(old) == [old.name]


KILLED = """
import os, signal, sys
from pathlib import Path
from venire.storage.care import offline
from venire.storage.care.maintenance import compact
offline.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
compact(Path(sys.argv[1]))
"""


def test_a_kill_while_compacting_leaves_the_whole_store_and_the_next_try_clears_up(
    old: Path, in_process: Callable[..., subprocess.Popen[str]]
) -> None:
    open_store(old).close()
    before = old.read_bytes()
    process = in_process(KILLED, old)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert old.read_bytes() == before
    assert len(names(old)) > 1
    assert compact(old).after < len(before)
    assert names(old) == [old.name]


@pytest.mark.parametrize("work", [compact, lambda path: backup(path, path.with_name("copy.duckdb"))])
def test_where_the_disk_has_no_room_nothing_is_begun(
    work: Callable[[Path], object], old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 8_000_000}))
    with pytest.raises(InputError, match=r"takes up to \d+ MB .* where 8 MB are free: make room"):
        work(old)
    assert names(old) == [old.name]


def test_a_store_that_is_open_is_neither_compacted_nor_copied_cold(path: Path) -> None:
    with open_store(path):
        with pytest.raises(StoreHeldError):
            compact(path)
        with pytest.raises(StoreHeldError):
            backup(path, path.with_name("copy.duckdb"))
    assert names(path) == [path.name]


LEFT = """
import os, sys
from venire.arena.records import Rating
from venire.storage.transfer import importing
from venire.storage.store.opening import open_store
store = open_store(sys.argv[1])
importing.add(store, [Rating("new", 1000.0)])
os._exit(0)
"""


def test_a_copy_has_what_a_killed_run_left_in_the_log(
    old: Path, in_process: Callable[..., subprocess.Popen[str]]
) -> None:
    in_process(LEFT, old).communicate(timeout=60)
    assert old.with_name(f"{old.name}.wal").stat().st_size > 0
    copy = old.with_name("copy.duckdb")
    made = backup(old, copy)
    assert "new" in [row[1] for row in rows(copy)["model"]]
    assert (made.bytes, made.batch) == (copy.stat().st_size, max(row[0] for row in rows(copy)["ledger"]))
    assert copy.read_bytes() == old.read_bytes()
    assert names(old) == ["copy.duckdb", old.name]


def test_a_copy_that_is_there_is_replaced_only_by_force(old: Path) -> None:
    copy = old.with_name("copy.duckdb")
    copy.write_text("precious", encoding="utf-8")
    with pytest.raises(InputError, match="is there already: name another file, or replace it with --force"):
        backup(old, copy)
    with pytest.raises(InputError, match="is no store"):
        backup(old, copy, force=True)
    assert copy.read_text(encoding="utf-8") == "precious"
    copy.unlink()
    backup(old, copy)
    backup(old, copy, force=True)
    assert check(copy).sound


def test_a_copy_never_takes_the_place_of_its_store_of_a_folder_or_of_one_that_is_open(old: Path) -> None:
    with pytest.raises(InputError, match="is the store itself"):
        backup(old, old, force=True)
    os.link(old, old.with_name("same.duckdb"))
    with pytest.raises(InputError, match="is the store itself"):
        backup(old, old.with_name("same.duckdb"), force=True)
    with pytest.raises(InputError, match="is a folder"):
        backup(old, old.parent, force=True)
    with pytest.raises(InputError, match="does not exist: make it first"):
        backup(old, old.parent / "nowhere" / "copy.duckdb")
    live = old.with_name("live.duckdb")
    with open_store(live), pytest.raises(InputError):
        backup(old, live, force=True)
    open_store(live).close()


def test_a_copy_is_not_put_beside_the_log_of_another_store(old: Path) -> None:
    old.with_name("copy.duckdb.wal").write_bytes(b"not mine")
    with pytest.raises(InputError, match=r"belongs to a store copy\.duckdb that was not closed"):
        backup(old, old.with_name("copy.duckdb"))


def test_a_copy_that_is_not_whole_is_not_given_its_name(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The danger: a backup that nobody looked at until it was needed."""

    def short(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes())
        with duckdb.connect(str(target)) as connection:
            connection.execute("delete from ledger where batch = (select max(batch) from ledger)")

    monkeypatch.setattr(maintenance, "copied", short)
    with pytest.raises(StoreError, match="ends at batch 137"):
        backup(old, old.with_name("copy.duckdb"))
    assert names(old) == [old.name]


def test_a_live_copy_counts_only_when_the_store_was_held_to_its_end(path: Path) -> None:
    with open_store(path) as store:
        store.checkpoint()
        copy = path.with_name("copy.duckdb")
        script = """
import sys
from pathlib import Path
from venire.arena.errors import StoreError
from venire.storage.care.maintenance import backup_held
try:
    print(backup_held(Path(sys.argv[1]), Path(sys.argv[2]), held=lambda: sys.argv[3] == "held").batch)
except StoreError as error:
    print(error)
"""
        run = [sys.executable, "-c", script, str(path), str(copy)]
        lost = subprocess.run([*run, "lost"], capture_output=True, text=True, check=True)
        assert "wrote on before the copy was whole: try again" in lost.stdout
        assert not copy.exists()
        done = subprocess.run([*run, "held"], capture_output=True, text=True, check=True)
        assert done.stdout == f"{store.batch}\n"
    assert check(copy).sound


def test_a_kill_while_copying_leaves_no_copy_under_its_name(
    old: Path, in_process: Callable[..., subprocess.Popen[str]]
) -> None:
    script = KILLED.replace("compact(Path(sys.argv[1]))", "backup(Path(sys.argv[1]), Path(sys.argv[1] + '.copy'))")
    process = in_process(script.replace("import compact", "import backup"), old)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    copy = old.with_name(f"{old.name}.copy")
    assert not copy.exists()
    backup(old, copy)
    assert names(old) == [old.name, copy.name]
