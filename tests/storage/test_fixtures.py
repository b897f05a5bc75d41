"""A store of every schema number, made by the code of its time, opens for ever."""

from __future__ import annotations

import importlib.util
import json
import lzma
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import venire
from venire.storage.store.connection import migrations

FIXTURES = Path(__file__).parent / "fixtures"
RECORDS = sorted(FIXTURES.glob("schema-*.json"))


def load(name: str) -> ModuleType:
    """A script that lies beside the fixtures."""
    spec = importlib.util.spec_from_file_location(name, FIXTURES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


QUICK = (RECORDS[0], RECORDS[-1])
"""The oldest, which goes through every migration, and today's; the others are slow."""


@pytest.fixture(
    params=[one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in RECORDS],
    ids=lambda path: path.stem,
)
def record(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What was recorded of a fixture when it was made."""
    found: dict[str, Any] = json.loads(request.param.read_text(encoding="utf-8"))
    return found


@pytest.fixture
def store(record: dict[str, Any], tmp_path: Path) -> Path:
    """A copy of the fixture among the files of its campaigns."""
    shutil.copytree(FIXTURES / "campaign", tmp_path, dirs_exist_ok=True)
    packed = FIXTURES / f"schema-{record['format']:04}.duckdb.xz"
    path = tmp_path / "kept.duckdb"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path


def test_every_migration_has_a_fixture_made_by_the_code_of_its_time() -> None:
    made = {int(path.stem.removeprefix("schema-")) for path in RECORDS}
    assert made == {number for number, _, _ in migrations()}
    readme = (FIXTURES / "README.md").read_text(encoding="utf-8")
    for path in RECORDS:
        assert json.loads(path.read_text(encoding="utf-8"))["commit"] in readme
        assert path.with_suffix(".duckdb.xz").stat().st_size < 200_000


def test_an_old_store_says_the_same_of_itself_after_every_migration(store: Path, record: dict[str, Any]) -> None:
    venire.open_store(store).close()
    found = json.loads(json.dumps(load("recorded").facts(store)))
    assert found["format"] == migrations()[-1][0]
    boards, recorded = found["boards"], record["boards"]
    assert boards.keys() == recorded.keys()
    for name, board in recorded.items():
        assert boards[name]["judges"] == board["judges"]
        assert boards[name]["models"].keys() == board["models"].keys()
        for model, figures in board["models"].items():
            assert boards[name]["models"][model] == pytest.approx(figures, abs=1e-3)
    for name in ("counts", "statuses", "faults", "progress", "spend", "battles"):
        assert found[name] == record[name], name


def test_an_old_campaign_goes_on_and_pays_only_for_the_rest(store: Path, record: dict[str, Any]) -> None:
    (planned, settled, failed) = next(row[1:] for row in record["progress"] if row[0] == "second")
    assert settled + failed < planned
    with venire.Session(venire.load_campaign(store.parent / "second.toml")) as session:
        before = session.spending.calls
        assert session.progress.missing == planned - settled - failed
        summary = session.run()
        assert summary.ending == venire.Ending.COMPLETE or summary.progress.failed == failed
        assert (session.progress.planned, session.progress.failed, session.progress.missing) == (planned, failed, 0)
        assert 0 < session.spending.calls - before <= 3 * (planned - settled - failed)
    with venire.Session(venire.load_campaign(store.parent / "first.toml")) as session:
        assert session.run().statistics.calls == 0


def test_no_fixture_is_without_what_a_store_can_hold(record: dict[str, Any]) -> None:
    faults = dict(record["faults"])
    assert faults[8] > 0, "calls without an answer"
    assert sum(count for fault, count in faults.items() if fault not in (0, 8)) > 0, "retries"
    assert record["statuses"]["unreadable"] > 0
    assert len(record["spend"]) == 2
    assert all(row[3] > 0 for row in record["progress"]), "failed steps"
