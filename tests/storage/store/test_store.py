"""A store opens as itself or says why not; a commit is whole, counted, or not there."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from venire.arena.errors import InputError, StoreError
from venire.arena.records import Instruction
from venire.storage.store.opening import open_store
from venire.storage.store.recovery import rescue
from venire.storage.store.store import Commit, Store
from venire.storage.transfer import importing

LEDGER = "select batch, written, running from ledger order by batch"


def ledger(store: Store) -> list[tuple[Any, ...]]:
    with store.cursor() as cursor:
        return cursor.execute(LEDGER).fetchall()


def add_models(store: Store, *names: str) -> None:
    with store.commit() as commit:
        commit.run("insert_models", names=list(names))


def commit_and_raise(
    store: Store, act: Callable[[Commit], None], error: BaseException | type[BaseException] = RuntimeError
) -> None:
    with store.commit() as commit:
        act(commit)
        raise error


def by_hand(path: Path, statement: str) -> None:
    """Change a closed store behind the product's back."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(statement)


def test_a_store_keeps_its_identity_and_contents_over_a_reopening(path: Path) -> None:
    with open_store(path) as store:
        identity, constant = store.rows("read_store"), store.constant
        importing.add(store, [Instruction("q", ("What?",))])
    with open_store(path, create=False) as store:
        assert store.rows("read_store") == identity
        assert store.constant == constant
        assert [row[0] for row in store.rows("instruction_keys")] == ["q"]
        assert ledger(store) == [(1, 1, 1)]


def test_two_stores_have_different_constants(tmp_path: Path) -> None:
    with open_store(tmp_path / "a") as one, open_store(tmp_path / "b") as other:
        assert one.constant != other.constant


def test_nothing_of_a_closed_store_is_left_but_the_store(path: Path) -> None:
    store = open_store(path)
    add_models(store, "a")
    assert {entry.name for entry in path.parent.iterdir()} > {path.name, f"{path.name}.lock"}
    store.close()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_closing_twice_does_not_take_the_lock_of_the_next_owner(path: Path) -> None:
    first = open_store(path)
    first.close()
    with open_store(path):
        first.close()
        assert path.with_name(f"{path.name}.lock").exists()


def test_a_path_with_a_quote_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "it's 'mine'.duckdb"
    open_store(path).close()
    assert path.exists()


def test_a_missing_store_is_not_made_unless_asked(path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no store .*judged"):
        open_store(path, create=False)
    assert list(path.parent.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder .*nowhere of the store s\.duckdb does not exist"):
        open_store(tmp_path / "nowhere" / "s.duckdb")


def test_a_duckdb_file_of_something_else_is_refused_and_left_as_it_is(path: Path) -> None:
    by_hand(path, "create table sales as select 42 amount")
    with pytest.raises(InputError, match=r"judged\.duckdb is a DuckDB file of something else"):
        open_store(path)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("select table_name from duckdb_tables()").fetchall() == [("sales",)]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("content", [b"", b"model_a,model_b,winner\n" * 1000])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"judged\.duckdb is no store, not a valid DuckDB database: name"):
        open_store(path)
    assert path.read_bytes() == content
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_folder_is_no_store(path: Path) -> None:
    path.mkdir()
    with pytest.raises(InputError, match=r"judged\.duckdb is a folder"):
        open_store(path)


def test_every_commit_has_one_ledger_line_and_running_is_the_sum_of_written(path: Path) -> None:
    with open_store(path) as store:
        add_models(store, "a", "b")
        importing.add(store, [Instruction(f"q{n}", (f"What of {n}?",)) for n in range(5)])
        with store.commit():
            pass  # a commit that changes nothing is a commit all the same
        add_models(store, "c")
        assert ledger(store) == [(1, 2, 2), (2, 5, 7), (3, 0, 7), (4, 1, 8)]
        assert (store.batch, store.running) == (4, 8)


def test_counting_goes_on_after_a_reopening(path: Path) -> None:
    with open_store(path) as store:
        add_models(store, "a", "b")
    with open_store(path) as store:
        add_models(store, "c")
        assert ledger(store) == [(1, 2, 2), (2, 1, 3)]


@pytest.mark.parametrize("batch", [1, 2])
def test_a_ledger_line_that_is_missing_is_noticed_at_the_next_open(path: Path, batch: int) -> None:
    with open_store(path) as store:
        add_models(store, "a", "b")
        add_models(store, "c")
        add_models(store, "d")
    by_hand(path, f"delete from ledger where batch = {batch}")
    with pytest.raises(StoreError, match=r"judged\.duckdb has lost commits: its ledger counts 4 rows and lists [23];"):
        open_store(path)
    assert not path.with_name(f"{path.name}.lock").exists()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_a_commit_that_raises_leaves_nothing_behind_and_the_next_one_works(
    path: Path, error: type[BaseException]
) -> None:
    with open_store(path) as store:
        add_models(store, "a")
        with pytest.raises(error):
            commit_and_raise(store, lambda commit: commit.run("insert_models", names=["b", "c"]), error)
        assert (store.batch, store.running) == (1, 1)
        add_models(store, "d")
        assert [row[0] for row in store.rows("models")] == ["a", "d"]
        assert ledger(store) == [(1, 1, 1), (2, 1, 2)]
    open_store(path).close()


def test_a_statement_that_breaks_a_constraint_takes_its_whole_commit_with_it(path: Path) -> None:
    with open_store(path) as store:
        with pytest.raises(duckdb.ConstraintException):
            add_models(store, "a", "b", "a")
        assert store.rows("models") == []
        add_models(store, "b")
        assert ledger(store) == [(1, 1, 1)]


def test_rows_of_an_appender_go_when_their_commit_raises(path: Path) -> None:
    with open_store(path) as store:
        with pytest.raises(RuntimeError):
            commit_and_raise(store, lambda commit: commit.append("failure", [(1, 1, 1, False)]))
        with store.commit() as commit:
            commit.append("failure", [(2, 1, 1, False)])
        with store.cursor() as cursor:
            assert cursor.execute("select trial, batch from failure").fetchall() == [(2, 1)]
        assert ledger(store) == [(1, 1, 1)]


@pytest.mark.parametrize("error", [duckdb.IOException, duckdb.TransactionException, duckdb.FatalException])
def test_what_the_disk_refuses_is_a_store_error_with_the_first_line_of_why(
    path: Path, error: type[duckdb.Error]
) -> None:
    with open_store(path) as store:
        with pytest.raises(StoreError) as caught:
            commit_and_raise(store, lambda _: None, error("no space left on device\nat some place"))
        assert str(caught.value) == f"the store {path} cannot be written: no space left on device"
        add_models(store, "a")


def test_a_commit_that_fails_at_its_ledger_line_is_not_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise duckdb.IOException("no space left on device")

    with open_store(path) as store:
        add_models(store, "a")
        monkeypatch.setattr(type(store.clock), "wall", refuse)  # read after the rows and before the line
        with pytest.raises(StoreError, match="no space left on device"):
            add_models(store, "b", "c")
        monkeypatch.undo()
        assert (store.batch, store.running) == (1, 1)
        add_models(store, "d")
        assert ledger(store) == [(1, 1, 1), (2, 1, 2)]


def test_a_reader_in_another_thread_sees_a_commit_when_it_is_done_and_not_before(path: Path) -> None:
    def elsewhere(read: Callable[[], Any]) -> Any:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(read()))
        thread.start()
        thread.join(30)
        return found[0]

    with open_store(path) as store:
        with store.commit() as commit:
            commit.run("insert_models", names=["a"])
            assert elsewhere(lambda: store.read("models")) == []
            assert len(store.rows("models")) == 1
        assert len(elsewhere(lambda: store.read("models"))) == 1


def test_what_cannot_be_read_is_a_store_error(path: Path) -> None:
    with open_store(path) as store:
        store.connection.execute("drop view failed_step")
        for read in (store.rows, store.read):
            with pytest.raises(StoreError, match=r"judged\.duckdb cannot be read: Catalog Error"):
                read("failed_trials")


def test_a_checkpoint_folds_the_log_into_the_file(path: Path) -> None:
    with open_store(path) as store:
        add_models(store, "a")
        assert store.log_bytes > 0
        store.checkpoint()
        assert store.log_bytes == 0
        assert len(store.rows("models")) == 1


def test_the_log_is_never_folded_in_behind_the_writers_back(path: Path) -> None:
    """The danger: DuckDB's own habit is to stop every writer at 16 MB, for half a second or more."""
    with open_store(path) as store:
        for _ in range(4):
            with store.commit() as commit:
                commit.append("event", [("2026-01-01 00:00:00+00", None, "k", "x" * 100_000)] * 70)
        assert store.log_bytes > 4 * 70 * 100_000


def test_a_store_beside_a_copy_with_more_or_other_content_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """The danger: a run on the wrong store pays for everything again."""
    path, other = tmp_path / "one.duckdb", tmp_path / "other.duckdb"
    with open_store(path) as store, open_store(other) as another:
        add_models(store, "m")
        add_models(another, "n")
        same = rescue(store)
    open_store(path).close()  # the copy has nothing that the store has not
    older = path.read_bytes()
    with open_store(path) as store:
        add_models(store, "later")
        same.unlink()
        newer = rescue(store)
    for content in (older, other.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is not the one that a run wrote to") as refused:
            open_store(path)
        assert f"(mv {newer} {path})" in str(refused.value)
        assert path.read_bytes() == content
        with open_store(path, create=False, to_read=True) as store:
            assert store.rows("models")
    path.write_bytes(b"no store any more")
    with pytest.raises(InputError, match=r"not a valid DuckDB .*What a run had of it is in .*\.rescued: put that"):
        open_store(path)
    newer.replace(path)
    with open_store(path) as store:
        assert {row[0] for row in store.rows("models")} == {"later", "m"}


@pytest.mark.usefixtures("migrated_stores")
def test_a_file_that_is_cut_or_overwritten_in_its_place_is_noticed_and_not_written(path: Path, tmp_path: Path) -> None:
    with open_store(tmp_path / "other.duckdb") as other:
        add_models(other, "n")
    foreign = (tmp_path / "other.duckdb").read_bytes()
    for word in ("truncated", "overwritten", "overwritten"):
        with open_store(path) as store:
            add_models(store, "m")
            assert store.checkpoint()
            add_models(store, "only in the log")
            assert store.displaced() is None
            content = foreign + bytes(store.path.stat().st_size) if word == "overwritten" else path.read_bytes()[:8192]
            subprocess.run(["cp", "/dev/stdin", path], input=content, check=True)
            assert f"was {word}" in str(store.displaced())
            assert not store.is_elsewhere()
            assert not store.checkpoint(), "nothing is folded into what somebody else wrote"
        assert path.read_bytes() == content
        for left in path.parent.glob(f"{path.name}*"):
            left.unlink()


def test_a_touched_file_a_checkpoint_and_a_long_commit_are_no_loss(path: Path) -> None:
    """The danger: a run that stops for nothing."""
    with open_store(path) as store:
        os.utime(path)
        assert store.displaced() is None
        for turn in range(3):
            add_models(store, *(f"{turn}-{number}" * 20 for number in range(8_000)))
            assert store.displaced() is None
            assert store.checkpoint()
            assert store.displaced() is None
            os.utime(path, ns=(1, turn))
            assert store.displaced() is None
