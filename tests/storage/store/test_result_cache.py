"""What was read is not read again until something is committed, and then it is."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from venire.arena.records import Rating
from venire.storage.store import result_cache
from venire.storage.store.connection import _plain, _queries, query, words_read, written_table
from venire.storage.store.opening import open_store
from venire.storage.store.result_cache import ResultCache
from venire.storage.transfer import importing


def names(rows: list[tuple[Any, ...]]) -> list[str]:
    return [row[0] for row in rows]


def test_what_is_committed_is_read_at_once_and_what_is_rolled_back_never(path: Path) -> None:
    with open_store(path) as store:
        assert names(store.read("models")) == []
        importing.add(store, [Rating("a", 1200.0)])
        assert names(store.read("models")) == ["a"]
        with suppress(ZeroDivisionError), store.commit() as commit:
            commit.run("insert_models", names=["b"])
            assert names(store.read("models")) == ["a"]
            assert names(store.rows("models")) == ["a", "b"]
            raise ZeroDivisionError
        assert names(store.read("models")) == ["a"]


def test_a_caller_cannot_change_what_others_read(path: Path) -> None:
    with open_store(path) as store:
        importing.add(store, [Rating("a", 1200.0)])
        store.read("models").clear()
        assert names(store.read("models")) == ["a"]
        with pytest.raises(ValueError, match="read-only"):
            store.arrays("model_names")["id"][0] = 7


def test_a_result_that_a_commit_overtook_is_not_kept() -> None:
    cache = ResultCache()

    def overtaken() -> list[tuple[int]]:
        cache.forget({"trial"})
        return [(1,)]

    assert cache.get("spend", {}, "rows", overtaken) == [(1,)]
    assert cache.get("spend", {}, "rows", lambda: [(2,)]) == [(2,)]
    assert cache.get("spend", {}, "rows", lambda: [(3,)]) == [(2,)]
    assert cache.get("spend", {}, "arrays", lambda: [(4,)]) == [(4,)]
    assert cache.get("spend", {"campaign": 1}, "rows", lambda: [(5,)]) == [(5,)]


def test_a_commit_forgets_what_was_read_from_its_tables_also_through_views() -> None:
    cache = ResultCache()

    def read(name: str, number: int) -> int:
        return cache.get(name, {}, None, lambda: [(number,)])[0][0]

    assert [read(name, 1) for name in ("spend", "judge_readability", "models")] == [1, 1, 1]
    cache.forget({"verdict", "ledger"})
    assert [read(name, 2) for name in ("spend", "judge_readability", "models")] == [1, 2, 1]
    cache.forget({"attempt"})
    assert [read(name, 3) for name in ("spend", "judge_readability", "models")] == [3, 2, 1]


def test_every_view_of_a_store_is_known_by_what_it_reads(path: Path) -> None:
    with open_store(path) as store:
        views = dict(
            store.connection.execute("select view_name, sql from duckdb_views() where not internal").fetchall()
        )
        tables = {name for (name,) in store.rows("tables")}
    assert len(views) > 10
    for view, sql in views.items():
        wanted = {table for table in tables if re.search(rf"\b{table}\b", sql.partition(" AS ")[2])}
        assert wanted, view
        assert wanted <= words_read(f"select * from {view}"), view


def test_every_statement_that_writes_names_its_table() -> None:
    writing = ("insert ", "update ", "delete ")
    for name in _queries():
        assert bool(written_table(name)) == _plain(query(name)).lstrip().startswith(writing), name


def test_large_results_and_those_of_long_lists_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, rows = ResultCache(), [("x" * (result_cache._MAX_BYTES + 1),)]
    for result in (rows, [(1, 2)] * result_cache._MAX_VALUES):
        assert cache.get("spend", {}, None, lambda result=result: result) is result
    assert cache.get("spend", {}, None, lambda: [(1,)]) == [(1,)]
    long = {"ids": list(range(result_cache._MAX_VALUES + 1))}
    assert [cache.get("spend", long, None, lambda n=n: [(n,)]) for n in (1, 2)] == [[(1,)], [(2,)]]
    monkeypatch.setattr(result_cache, "_MAX_TOTAL", 3 * result_cache._VALUE_BYTES)
    for number in range(9):
        assert cache.get("spend", {"campaign": number}, None, lambda number=number: [(number,)]) == [(number,)]
    assert cache._kept.size <= result_cache._MAX_TOTAL
