"""Every store has one format, the newest, whichever it was made with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from venire.arena.errors import InputError
from venire.arena.records import Rating
from venire.storage.store import connection as connection_module
from venire.storage.store.connection import migrations, query
from venire.storage.store.opening import open_store
from venire.storage.transfer import importing

NEXT = migrations()[-1][0] + 1
MORE = (
    "alter table model add column licence varchar; create view rated as select name from model where elo is not null;"
)

Release = Callable[[str], None]


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Release:
    """Makes this Venire a later one, with one more migration of the given text."""

    def later(text: str) -> None:
        steps = (*migrations(), (NEXT, f"{NEXT:04}_more", text))
        monkeypatch.setattr(connection_module, "migrations", lambda: steps)

    return later


def schema(connection: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[Any, ...]]]:
    """All that makes a schema, and nothing that depends on when or under which name it was made."""
    wanted = {
        "duckdb_tables()": "table_name, sql",
        "duckdb_columns()": "table_name, column_name, column_index, data_type, is_nullable, column_default",
        "duckdb_views()": "view_name, sql",
        "duckdb_constraints()": "table_name, constraint_text",
        "duckdb_indexes()": "index_name, sql",
    }
    here = "where database_name = current_database() and schema_name = 'main'"
    internal = " and not internal"
    return {
        source: connection.execute(
            f"select {columns} from {source} {here}{internal if source in _WITH_INTERNAL else ''} order by all"
        ).fetchall()
        for source, columns in wanted.items()
    }


_WITH_INTERNAL = ("duckdb_tables()", "duckdb_columns()", "duckdb_views()")


def test_migrations_are_numbered_from_one_without_a_gap() -> None:
    numbers = [number for number, _, _ in migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_fresh_store_has_the_format_of_the_last_migration_and_lists_them_all(path: Path) -> None:
    with open_store(path) as store:
        (found,) = store.rows("read_store")
        applied = store.connection.execute("select number, name from migration order by number").fetchall()
    assert found[0] == migrations()[-1][0]
    assert len(found[1]) == 36  # a UUID as text
    assert applied == [(number, name) for number, name, _ in migrations()]


def test_a_fresh_schema_is_the_migrations_run_one_by_one(path: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "by_hand.duckdb")) as connection:
        for _, _, text in migrations():
            connection.execute(text)
        expected = schema(connection)
    with open_store(path) as store:
        assert schema(store.connection) == expected
    assert len(expected["duckdb_tables()"]) > 10


def test_a_store_of_an_older_format_is_brought_to_the_schema_of_a_fresh_one(
    path: Path, tmp_path: Path, release: Release
) -> None:
    with open_store(path) as store:
        identity = store.constant
        importing.add(store, [Rating("a", 1200.0)])
    release(MORE)
    with open_store(path) as migrated, open_store(tmp_path / "fresh.duckdb") as fresh:
        assert schema(migrated.connection) == schema(fresh.connection)
        assert [row[0] for row in migrated.rows("read_store")] == [NEXT]
        assert migrated.constant == identity
        assert migrated.connection.execute("select * from rated").fetchall() == [("a",)]
    with open_store(path) as again:
        numbers = again.connection.execute("select number from migration order by number").fetchall()
    assert numbers == [(number,) for number in range(1, NEXT + 1)]


def test_a_store_of_a_newer_format_is_refused_naming_both(
    path: Path, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(MORE)
    open_store(path).close()
    monkeypatch.undo()
    before = path.read_bytes()
    with pytest.raises(InputError, match=rf"has format {NEXT} and this Venire reads up to {NEXT - 1}: install a newer"):
        open_store(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_migration_that_fails_half_way_leaves_the_store_as_it_was(
    path: Path, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(path) as store:
        importing.add(store, [Rating("a", 1200.0)])
        expected = schema(store.connection)
    release(f"{MORE} insert into migration select number, 'again', now() from migration;")
    with pytest.raises(InputError, match="cannot be used as a store"):
        open_store(path)
    monkeypatch.undo()
    with open_store(path) as store:
        assert schema(store.connection) == expected
        assert store.rows("models")[0][0] == "a"


def test_a_query_has_one_name_and_an_unknown_one_is_an_error() -> None:
    assert query("models").startswith("select")
    with pytest.raises(KeyError):
        query("no_such_query")
