"""What every test may use."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import duckdb
import pytest
from hypothesis import settings
from ry import Client

from tests.demo import DEMO
from tests.processes import restore_signals, still_running
from venire.arena.clock import Clock
from venire.embedded import embedded_provider
from venire.endpoints import EmbeddedProvider
from venire.judges.providers import Endpoint, connections, http_provider
from venire.orchestrator.engines.ray_cluster import EngineChoice, cluster
from venire.orchestrator.recording.events import Events
from venire.storage.care import offline
from venire.storage.store import connection, opening
from venire.storage.store.files import log_path, make_private
from venire.storage.store.opening import open_store
from venire.storage.transfer import importing
from venire.storage.transfer.formats import tables

MAKE_DATABASE = connection.make_database
COPIED: set[str] = set()
"""Identities of the stores that new ones are copies of."""

# A test that needs more examples says so itself; `make test-slow` tries all the others with many.
settings.register_profile("venire", max_examples=40, deadline=None)
settings.register_profile("many", max_examples=1000, deadline=None)
settings.load_profile("venire")


def pytest_configure() -> None:
    """Tests that send a signal need it, however the suite was started."""
    restore_signals()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Tests of web pages need much that no other test imports; where they are deselected they are not read."""
    is_left = collection_path == Path(__file__).parent / "browser" and "not browser" in config.option.markexpr
    return True if is_left else None


def pytest_collection_finish() -> None:
    """What was collected stays for good: each full collection of garbage would walk through thousands of tests."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """So that nothing is taken for a leak."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Ray is an extra, so its tests are skipped without it, before their fixtures start anything."""
    if item.get_closest_marker("ray") and find_spec("ray") is None:
        pytest.skip("needs Ray: `make test-ray` installs it and runs this")


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """The module `ray`, connected to a cluster of this machine, one for all tests; whoever asks for Ray joins it."""
    with cluster(EngineChoice("ray")) as ray:
        yield ray


@pytest.fixture
def nothing_left_of_ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands that this test starts leave none of Ray's processes and files behind, some seconds after their end."""
    mark = f"VENIRE_TEST_MARK={uuid4()}"
    monkeypatch.setenv(*mark.split("="))
    with TemporaryDirectory(prefix="vt-", dir="/tmp") as folder:  # a test's own is too long for the path of a socket
        monkeypatch.setenv("RAY_TMPDIR", folder)
        yield
        assert still_running(mark, seconds=10.0) == []
        assert list(Path(folder).iterdir()) == []


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of recorded judgments, which is not part of the repository."""
    root = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("VENIRE_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the recorded judgments are not here; VENIRE_DATA names their folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def no_room_under_its_bare_name() -> Iterator[None]:
    """`import judges` works by accident in a checkout; nothing may rely on it."""
    yield
    rooms = {"arena", "configs", "judges", "orchestrator", "ratings", "reports", "simulation", "storage"}
    assert not rooms & sys.modules.keys()


@pytest.fixture(scope="session", autouse=True)
def one_thread_a_store() -> None:
    """Workers share the cores; a second thread of DuckDB takes an eighth more time for stores this small."""
    connection.THREADS = 1


@pytest.fixture(scope="session", autouse=True)
def empty_store(one_thread_a_store: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[bytes]:
    """A new store is a copy of this one, which was migrated once, with its own identity and dates.

    Ten migrations take 70 ms, and thousands of tests make a store; `migrated_stores` goes the product's way.
    """
    path = tmp_path_factory.mktemp("template") / "template.duckdb"
    with open_store(path) as store:
        COPIED.add(store.rows("read_store")[0][1])
    template = path.read_bytes()
    migrate = opening.migrate

    def renew(opened: duckdb.DuckDBPyConnection, path: Path, clock: Clock) -> None:
        migrate(opened, path, clock)
        if connection.fetch(opened, "read_store", {})[0][1] in COPIED:
            make_private(log_path(path))
            opened.begin()
            opened.execute("update store set store_id = gen_random_uuid(), created_at = $1", [clock.wall()])
            opened.execute("update migration set applied_at = $1", [clock.wall()])
            opened.commit()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offline, "make_database", MAKE_DATABASE)  # also where it is first imported by a test
        patch.setattr(connection, "make_database", partial(copied, template))
        patch.setattr(opening, "migrate", renew)
        yield template


def copied(
    template: bytes, path: Path, opened: duckdb.DuckDBPyConnection | None = None, *, block_bytes: int = 0
) -> None:
    """As `make_database`, of a new file with blocks of the usual size."""
    if block_bytes or path.exists():
        MAKE_DATABASE(path, opened, block_bytes=block_bytes)
    else:
        make_private(path, template)


@pytest.fixture(scope="session")
def store_of_demo(empty_store: bytes, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The empty store with the demo's tables in it."""
    path = tmp_path_factory.mktemp("template") / "demo.duckdb"
    with open_store(path) as store:
        COPIED.add(store.rows("read_store")[0][1])
        importing.add_file(store, DEMO / "instructions.jsonl", "instructions", {})
        importing.add_file(store, DEMO / "completions.jsonl", "completions", {})
        importing.add(store, tables.read(DEMO / "elo.csv", "elo", {}))
    return path.read_bytes()


@pytest.fixture
def demo_is_imported(store_of_demo: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new store holds the demo's tables, for campaigns about them: to read them in takes a tenth of a run."""
    monkeypatch.setattr(connection, "make_database", partial(copied, store_of_demo))


@pytest.fixture
def migrated_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """New stores are made as the product makes them, by all migrations."""
    monkeypatch.setattr(connection, "make_database", MAKE_DATABASE)


@pytest.fixture
def direct_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated judges are asked in this process, for tests of which HTTP is no promise: it takes half of the time."""

    def direct(*parts: Any) -> AbstractContextManager[EmbeddedProvider | None]:
        *others, settings = parts
        return embedded_provider(*others, replace(settings, direct=True))

    monkeypatch.setattr("venire.running.embedded_provider", direct)


@pytest.fixture(scope="session", autouse=True)
def every_event_is_as_documented() -> None:
    """A run takes any event; a test does not."""
    Events.checked = True


@pytest.fixture(scope="session", autouse=True)
def no_provider_asks_beyond_loopback() -> Iterator[None]:
    """pytest-socket does not see the sockets of a library in Rust.

    A test that replaces the client says itself which addresses hosts have.
    """
    open_connections = connections.open_connections

    def guarded(endpoint: Endpoint, headers: Mapping[str, str] = connections.AGENT) -> connections.Connections:
        host = urlsplit(endpoint.proxy or endpoint.base_url).hostname
        if connections.Client is Client and host not in ("127.0.0.1", "::1", "localhost"):
            raise RuntimeError(f"a test asks {host}, which is not this machine")
        return open_connections(endpoint, headers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "open_connections", guarded)
        patch.setattr(http_provider, "open_connections", guarded)
        yield


FORBIDDEN = (
    "insert into model values (99, 'm', 1, 'f')",
    "update model set elo = 0",
    "delete from model",
    "truncate model",
    "merge into model using model m on false when matched then delete",
    "create table t (i int)",
    "create temp table t (i int)",
    "create table t as select 1",
    "create or replace view battle as select 1",
    "create macro f() as 1",
    "create sequence s",
    "create schema s",
    "create index i on model (elo)",
    "create secret (type s3)",
    "alter table model add column x int",
    "drop table plan",
    "comment on table model is 'x'",
    "copy model to '{out}'",
    "copy (select 1) to '{out}' (format parquet)",
    "copy model from '{file}'",
    "export database '{out}'",
    "import database '{out}'",
    "attach '{out}' as other",
    "detach venire",
    "use memory",
    "install httpfs",
    "load parquet",
    "set memory_limit = '1TB'",
    "set enable_external_access = true",
    "set variable x = 1",
    "reset memory_limit",
    "pragma memory_limit = '1TB'",
    "pragma enable_profiling",
    "call force_checkpoint()",
    "checkpoint",
    "force checkpoint",
    "vacuum",
    "analyze",
    "begin",
    "commit",
    "rollback",
    "prepare p as select 1",
    "execute p",
    "deallocate p",
    "select 1; drop table plan",
    "select 1; commit; delete from model",
    "select 1; select 2",
    "",
    "-- nothing",
    "from read_csv('{file}')",
    "from read_text('{file}')",
    "from read_blob('{file}')",
    "from read_json('{file}')",
    "from read_parquet('{file}')",
    "from parquet_metadata('{file}')",
    "from sniff_csv('{file}')",
    "from read_duckdb('{file}')",
    "from glob('{file}')",
    "from '{file}'",
    "from '/etc/passwd'",
    "from duckdb_secrets()",
    "from checkpoint()",
    "from CHECKPOINT ('venire')",
    'from "force_checkpoint"()',
    "from system.main.checkpoint()",
    "select (select count(*) from checkpoint())",
    "with x as (from checkpoint()) from x",
    "summarize from checkpoint()",
    "explain analyze from checkpoint()",
    "from query('select * from checkpoint()')",
    "from query_table('model')",
    "from json_execute_serialized_sql(json_serialize_sql('from checkpoint()'))",
    "from enable_logging()",
    "with x as (delete from model returning *) from x",
    "with x as (insert into model values (99, 'm', 1, 'f') returning *) from x",
    "explain analyze delete from model",
    "explain (analyze) update model set elo = 0",
    "/* x */ explain insert into model values (99, 'm', 1, 'f')",
    "select nextval('s')",
    "select setval('s', 1)",
    "pivot model on name",
)


@pytest.fixture(params=FORBIDDEN)
def forbidden(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """SQL that nobody may have run on a store: it writes, opens a file, or changes DuckDB."""
    (tmp_path / "secret.csv").write_text("word\nsecret\n", encoding="utf-8")
    yield request.param.format(file=tmp_path / "secret.csv", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
