"""Other people's SQL reads a store, can do nothing else, and harms no writer."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.storage.read.selecting import select
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store

House = Any

IN_A_VARIABLE = {"a": np.array([1, 2])}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory, contents: tuple[bytes, bytes]) -> Iterator[Store]:
    """One open store for all texts; not a byte of it has changed when the last was tried."""
    path = tmp_path_factory.mktemp("lent") / "judged.duckdb"
    path.write_bytes(contents[1])
    before = digest(path)
    with open_store(path) as store:
        yield store
    assert digest(path) == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_what_is_forbidden_changes_no_byte_of_the_store(lent: Store, forbidden: str) -> None:
    before = digest(lent.path), sorted(one.name for one in lent.path.parent.iterdir())
    with pytest.raises(InputError):
        select(lent, forbidden)
    assert (digest(lent.path), sorted(one.name for one in lent.path.parent.iterdir())) == before
    assert lent.log_bytes == 0


def test_no_variable_of_python_is_a_table(house: House) -> None:
    local = IN_A_VARIABLE
    for name in ("local", "IN_A_VARIABLE"):
        with pytest.raises(InputError, match="does not exist"):
            select(house.store, f"from {name}")
    assert len(local["a"]) == 2


def test_the_connection_itself_opens_no_file_and_cannot_be_made_to(house: House, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n", encoding="utf-8")
    for statement in (f"from '{tmp_path}/a.csv'", f"attach '{tmp_path}/b'", "set enable_external_access = true"):
        with house.store.cursor() as cursor, pytest.raises(Exception, match=r"disabled|Cannot|does not exist"):
            cursor.execute(statement)


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "select 1;",
        "-- why\nselect 1 /* so */",
        "from model",
        "table model",
        "values (1)",
        "show tables",
        "describe model",
        "summarize model",
        "from (describe model)",
        "explain select 1",
        "explain analyze from model",
        "EXPLAIN (ANALYZE, FORMAT json) select 1",
        "with x as materialized (from model) from x",
        "from range(3), generate_series(2), unnest([1])",
        "select * from json_each('{\"a\": 1}')",
        "from duckdb_columns()",
        "unpivot model on elo",
        "select 'checkpoint()', 'drop table plan; delete from model'",
        "from battle",
    ],
)
def test_what_reads_is_let_in(lent: Store, text: str) -> None:
    assert select(lent, text).columns


def test_every_value_can_be_json(house: House) -> None:
    found = select(
        house.store,
        "select 'a'::blob, 1.50::decimal(4, 2), 'nan'::double, '-inf'::float, timestamptz '2026-01-02 03:04:05+00', "
        "date '2026-01-02', time '10:00', interval 3 days, [1.0::float, 'inf'::float], {'a': 'b'::blob}, "
        "map {1: null}, true, 170141183460469231731687303715884105727::hugeint, "
        "'00000000-0000-0000-0000-000000000001'::uuid, null, 0.5",
    )
    assert json.loads(json.dumps(found.rows, allow_nan=False)) == [
        [
            "61", "1.50", "nan", "-inf", "2026-01-02T03:04:05+00:00", "2026-01-02", "10:00:00", "3 days, 0:00:00",
            [1.0, "inf"], {"a": "62"}, {"1": None}, True,
            170141183460469231731687303715884105727, "00000000-0000-0000-0000-000000000001", None, "0.5",
        ]
    ]  # fmt: skip


def test_columns_of_one_name_are_told_apart(house: House) -> None:
    assert select(house.store, "select 1 a, 2 a, 3 a_2, 4 a").columns == ("a", "a_2", "a_2_2", "a_3")


@pytest.mark.parametrize(("there", "more"), [(2, False), (3, False), (4, True), (2000, True)])
def test_rows_that_were_left_off_are_told_of(house: House, there: int, more: bool) -> None:
    found = select(house.store, f"from range({there})", most=3)
    assert (len(found.rows), found.more) == (min(there, 3), more)
    assert select(house.store, "from range(1300)").rows[-1] == [1299]


def test_no_answer_grows_beyond_what_memory_is_for(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venire.storage.read.selecting._MAX_CHARACTERS", 1000)
    found = select(house.store, "select repeat('x', 100) from range(5000)")
    assert found.more
    assert len(found.rows) <= 500


def test_a_mistake_is_told_with_its_place(house: House) -> None:
    with pytest.raises(InputError, match=r"(?s)Table with name batle does not exist.*LINE 1: from batle"):
        select(house.store, "from batle")
    with pytest.raises(InputError, match="Parser Error"):
        select(house.store, "selec 1")


ENDLESS = "select count(*) from range(10000000000000)"


def test_a_query_ends_with_its_time(house: House) -> None:
    with pytest.raises(InputError, match=r"stopped after 0\.2 s"):
        select(house.store, ENDLESS, seconds=0.2)
    assert select(house.store, "select 1").rows == [[1]]


def test_a_query_that_nobody_waits_for_ends(house: House) -> None:
    given_up = threading.Event()
    timer = threading.Timer(0.1, given_up.set)
    timer.start()
    with pytest.raises(InputError, match="given up"):
        select(house.store, ENDLESS, given_up=given_up)
    timer.join()


@pytest.mark.timeout(300)
def test_a_greedy_query_is_stopped_before_the_writer_is_refused_memory(house: House) -> None:
    """The danger: both share DuckDB's memory, and a commit that gets none ends the run."""
    store: Store = house.store
    stopped = threading.Event()
    told: list[str] = []

    def be_greedy() -> None:
        while not stopped.is_set():
            try:
                select(store, "select list(i) from range(1000000000) t(i)", memory=256 << 20, seconds=20)
            except InputError as error:
                told.append(str(error))

    threads = [threading.Thread(target=be_greedy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        commits = 0
        while len(told) < 6 or commits < 50:
            house.write("event", *[(datetime.now(UTC), None, "k", "d" * 2000)] * 200)
            commits += 1
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert all("256 MB of memory" in one for one in told)
    assert house.one("select count(*) from event") == (200 * commits,)


def test_a_query_sees_one_moment_of_the_store_while_the_writer_is_at_work(house: House) -> None:
    store: Store = house.store
    seen: list[list[Any]] = []
    written = threading.Event()

    def look() -> None:
        while not written.is_set():
            seen.extend(select(store, "select (select count(*) from event), (select sum(written) from ledger)").rows)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for number in range(40):
            house.write("event", *[(datetime.now(UTC), None, "k", "d")] * (1 + number % 3))
            if number % 10 == 0:
                store.checkpoint()
    finally:
        written.set()
        thread.join()
    assert len(seen) > 1
    assert all(events == int(ledger or 0) for events, ledger in seen)


GREEDY = (
    "select range(50000000)",
    "select range(1000000000)",
    "select RANGE(0, 50000000)",
    "select range(0, 50000000, 1)",
    "select generate_series(1, 50000000)",
    "select main.range(50000000)",
    "select len(range(50000000))",
    "select unnest(range(50000000))",
    "from unnest(range(50000000))",
    "with x as (select range(50000000) l) select len(l) from x",
    "select * from (values (range(50000000)))",
    "select 1 where range(50000000) is not null",
    "select range(i) from range(50000000, 50000001) t(i)",
    "select range(50000000::bigint)",
    "select (50000000).range()",
    "select {'a': range(50000000)}",
    "select [range(10000), range(10000)]",
    "select list_transform(range(10000), x -> range(10000))",
    "select repeat('x', 2000000000)",
    "select repeat('x', i) from range(2000000000, 2000000009) t(i)",
    "select repeat(repeat('x', 10000), 10000)",
    "with a as (select repeat('x', 9000) s) select repeat(s, 9000) from a",
    "select repeat([1], 100000000)",
    "select lpad('', 2000000000, 'x')",
    "select rpad('', 2000000000, 'x')",
    "select list_resize([1], 200000000)",
    "select array_resize([1], 200000000, 2)",
    "select bar(1, 0, 1, 200000000)",
    "select format('{:200000000d}', 1)",
    "select printf('%200000000d', 1)",
    "select list(i) from range(8000000) t(i)",
    "select string_agg(repeat('x', 100), '') from range(400000)",
    "select {'a': list(i)} from range(3000000) t(i)",
)

ASK_GREEDILY = """
import json, sys
from venire.arena.errors import InputError
from venire.storage.read.selecting import select
from venire.storage.store.opening import open_store
answers = []
with open_store(sys.argv[1], create=False) as store:
    for query in json.loads(sys.argv[2]):
        try:
            answers.append(repr(select(store, query, memory=256 << 20, seconds=20))[:80])
        except InputError as error:
            answers.append(str(error))
with open("/proc/self/status", encoding="ascii") as file:  # ru_maxrss has the parent's memory in it
    (most,) = (int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM:"))
print(json.dumps([answers, most]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not report a process's memory")
def test_queries_that_make_large_values_are_refused_and_take_little_memory(path: Path) -> None:
    """The danger: one such query took 7 GB in the campaign's process, another 20 GB."""
    open_store(path).close()
    done = subprocess.run(
        [sys.executable, "-c", ASK_GREEDILY, str(path), json.dumps(GREEDY)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answers, most = json.loads(done.stdout)
    assert len(answers) == 33
    for query, answer in zip(GREEDY, answers, strict=True):
        refused = "too large" in answer or "MB of memory" in answer or "does not exist" in answer
        assert refused, (query, answer)
    assert most < 512, f"{most} MB"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("select range(3) l, repeat('ab', 2) s", [[0, 1, 2], "abab"]),
        ("select i, lpad(i::varchar, 4, '0') from range(5000) t(i) order by i desc", [4999, "4999"]),
        ("select format('{:.2f}', 1.5), printf('%05d', 7) -- a comment", ["1.50", "00007"]),
        ("select 1 as a, 2 as a, {'x': [1]} as s, map {1: 2} as m;", [1, 2, {"x": [1]}, {"1": 2}]),
        ("select list(i) from range(1000) t(i)", [list(range(1000))]),
        ("describe select 1 as a", ["a", "INTEGER", "YES", None, None, None]),
        ("select '1'::json, 'a'::blob, 1.5::decimal(4, 2), null", ["1", "61", "1.50", None]),
    ],
)
def test_ordinary_lists_texts_and_formats_are_answered(lent: Store, query: str, first: list[Any]) -> None:
    assert select(lent, query).rows[0] == first


def test_a_text_that_is_long_and_not_too_long_comes_whole(lent: Store) -> None:
    (row,) = select(lent, "select string_agg(repeat('x', 1000), '') from range(20000)").rows
    assert len(row[0]) == 20_000_000
