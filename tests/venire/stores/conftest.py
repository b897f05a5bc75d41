"""Stores at rest: how judges were asked is no promise of these tests."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from venire.storage.store.opening import open_store

FIXTURES = Path(__file__).resolve().parents[2] / "storage" / "fixtures"


@pytest.fixture(autouse=True)
def without_http(direct_judges: None) -> None:
    """Commands of these tests ask simulated judges in this process."""


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store with two campaigns in which some orders are missing and some verdicts were not read."""
    path = tmp_path_factory.mktemp("kept") / "kept.duckdb"
    path.write_bytes(lzma.decompress((FIXTURES / "schema-0001.duckdb.xz").read_bytes()))
    open_store(path, create=False).close()  # to today's schema
    return path.read_bytes()


@pytest.fixture
def kept(migrated: bytes, tmp_path: Path) -> Path:
    """That store in a folder of the test's own."""
    path = tmp_path / "kept.duckdb"
    path.write_bytes(migrated)
    return path
