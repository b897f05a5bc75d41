"""`venire store`: what the person who looks after a store sees and gets."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import json
import lzma
import os
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest

import venire as product
from venire.arena.errors import Fault
from venire.storage.store.journal import Journal
from venire.storage.store.opening import open_store

Venire = Callable[..., Any]
FIXTURES = Path(__file__).resolve().parents[2] / "storage" / "fixtures"


@pytest.fixture
def kept(kept: Path) -> Path:
    """A store with two campaigns, one of them under way, among their files."""
    shutil.copytree(FIXTURES / "campaign", kept.parent, dirs_exist_ok=True)
    return kept


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_check_says_that_all_is_well_or_what_is_wrong_and_the_exit_code_with_it(venire: Venire, kept: Path) -> None:
    good = venire("store", "check", kept)
    assert good.code == 0
    assert "all is well" in good.out
    assert "problem" not in good.out
    with duckdb.connect(str(kept)) as connection:
        connection.execute("update ledger set written = written + 1 where batch = 5")
    bad = venire("store", "check", kept)
    assert bad.code == 1
    assert "problem  the ledger adds up: not so for 134, such as batch 10 says" in bad.out
    told = venire("store", "check", kept, "--full", "--json")
    assert told.code == 1
    document = told.json()
    assert document["sound"] is False
    assert [one["what"] for one in document["findings"] if one["count"]] == ["the ledger adds up"]
    assert document["paid"] == {"first": 83025540, "second": 32126660}


def test_backup_and_compact_say_what_they_did(venire: Venire, kept: Path) -> None:
    copy = kept.with_name("copy.duckdb")
    said = venire("store", "backup", kept, "-o", copy)
    assert said.code == 0
    size = copy.stat().st_size / 1e6
    assert said.out == f"{copy}: {size:.1f} MB, whole up to batch 138 of {kept}\n"
    again = venire("store", "backup", kept, "-o", copy)
    assert again.code == 2
    assert "--force" in again.err
    assert venire("store", "backup", kept, "-o", copy, "--force", "--json").json()["batch"] == 138
    done = venire("store", "compact", kept)
    assert done.code == 0
    assert "as much room is needed" in done.err
    assert " MB before, " in done.out
    told = venire("store", "compact", kept, "--json")
    assert told.json()["rows"] > 500
    assert venire("store", "compact", kept.with_name("no.duckdb")).code == 2


def test_exported_tables_are_read_by_others_with_names_utc_times_and_hex(venire: Venire, kept: Path) -> None:
    folder = kept.parent / "out" / "tables"
    for form in ("csv", "jsonl", "parquet"):
        said = venire("export", kept, "battle", "attempt", "plan", "-o", folder, "--format", form)
        assert said.code == 0, said.err
    assert sorted(one.name for one in folder.iterdir()) == sorted(
        f"{table}.{form}" for table in ("battle", "attempt", "plan") for form in ("csv", "jsonl", "parquet")
    )
    with (folder / "attempt.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    lines = [json.loads(line) for line in (folder / "attempt.jsonl").read_text(encoding="utf-8").splitlines()]
    (count,) = rows(kept, "select count(*) from attempt")[0]
    assert len(cells) == len(lines) == count
    assert {one["fault"] for one in lines} <= {fault.name.lower() for fault in Fault}
    for cell, line in zip(cells, lines, strict=True):
        assert line["campaign"] in ("first", "second")
        assert line["judge"] in ("vicuna", "openassistant")
        assert len(bytes.fromhex(line["trial_key"])) == 16
        assert datetime.fromisoformat(line["sent_at"]).utcoffset() == timedelta(0)
        assert cell["text"] == (line["text"] or "")
        bytes.fromhex(cell["request_digest"])
    assert "grüße" in {one["instruction_id"] for one in lines}
    with duckdb.connect() as connection:
        parquet = connection.execute(
            "select count(*), min(sent_at) from read_parquet(?)", [str(folder / "attempt.parquet")]
        )
        ((found, first),) = parquet.fetchall()
    assert (found, first.utcoffset()) == (count, timedelta(0))
    assert first == min(datetime.fromisoformat(one["sent_at"]) for one in lines)


def test_one_campaign_one_table_and_what_is_there_already(venire: Venire, kept: Path) -> None:
    folder = kept.parent / "out"
    words = ("export", kept, "battle", "-o", folder, "--format", "jsonl", "--campaign", "second")
    tables = ("spend", "instruction", "attempt")
    told = venire(*words[:2], *tables, *words[2:], "--json").json()
    found = {one["table"]: one["rows"] for one in told["files"]}
    expected = [rows(kept, f"select count(*) from {table}")[0][0] for table in ("instruction",)]
    assert (found["spend"], found["instruction"]) == (1, *expected)
    assert found["battle"] == rows(kept, "select count(*) from battle where campaign = 'second'")[0][0]
    assert found["attempt"] == rows(kept, "select count(*) from attempt where campaign = 2")[0][0]
    before = (folder / "battle.jsonl").read_bytes()
    refused = venire(*words)
    assert refused.code == 2
    assert "battle.jsonl is there already" in refused.err
    assert not (folder / "plan.jsonl").exists()
    assert venire(*words, "--force").code == 0
    assert (folder / "battle.jsonl").read_bytes() == before
    assert "no campaign 'third'" in venire(*words[:-1], "third").err
    assert "first, second" in venire(*words[:-1], "third").err
    there = "battles, judgments, replies, votes, ratings, annotator, attempt, ballot, battle,"
    assert f"'nothing'; there are: {there}" in venire(*words[:2], "nothing", *words[2:]).err
    assert venire("export", kept, "battles", "-o", kept).code == 2


def test_a_store_in_use_is_not_exported_and_its_owner_is_named(venire: Venire, kept: Path) -> None:
    with open_store(kept):
        refused = venire("export", kept, "battles", "-o", kept.parent / "out.csv")
    assert refused.code == 2
    assert f"is held by process {os.getpid()}" in refused.err
    assert not (kept.parent / "out.csv").exists()


def test_arrow_without_pyarrow_says_how_to_get_it(venire: Venire, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "venire.storage.transfer.exporting.find_spec", lambda name: None if name == "pyarrow" else real(name)
    )
    refused = venire("export", kept, "battles", "-o", kept.parent / "out", "--format", "arrow")
    assert (refused.code, refused.out) == (2, "")
    assert "pip install 'venire[arrow]'" in refused.err
    assert not (kept.parent / "out").exists()


def test_arrow_files_hold_what_the_store_holds(venire: Venire, kept: Path) -> None:
    ipc = pytest.importorskip("pyarrow.ipc")
    folder = kept.parent / "out"
    assert venire("export", kept, "attempt", "-o", folder, "--format", "arrow").code == 0
    with ipc.open_file(folder / "attempt.arrow") as file:
        table = file.read_all()
    assert table.num_rows == rows(kept, "select count(*) from attempt")[0][0]
    assert str(table.schema.field("sent_at").type) == "timestamp[us, tz=UTC]"


def test_a_campaign_goes_on_in_the_merged_store_and_pays_only_for_the_rest(venire: Venire, kept: Path) -> None:
    here, there = kept, kept.parent / "there" / "kept.duckdb"
    shutil.copytree(FIXTURES / "campaign", there.parent)
    shutil.copy(here, there)
    with product.Session(product.load_campaign(there.parent / "second.toml")) as session:
        planned, left = session.progress.planned, session.progress.missing
        session.run()
        assert session.progress.missing == 0
    merged = kept.parent / "merged" / "kept.duckdb"
    shutil.copytree(FIXTURES / "campaign", merged.parent)
    said = venire("store", "merge", here, there, "-o", merged)
    assert said.code == 0, said.err
    assert "175 calls" in said.out
    assert "count once" in said.out
    told = json.loads(venire("status", merged, "--json").out)["campaigns"][1]
    assert (told["progress"]["planned"], told["progress"]["missing"]) == (planned, 0)
    assert told["accounts"]["nano"] == rows(there, "select nano from spend where campaign = 2")[0][0]
    back = kept.parent / "back" / "kept.duckdb"
    shutil.copytree(FIXTURES / "campaign", back.parent)
    document = venire("store", "merge", here, here, "-o", back, "--json").json()
    assert document["rows"]["trials"] == 96
    assert document["paid"] == {"first": 83025540, "second": 32126660}
    with product.Session(product.load_campaign(back.parent / "second.toml")) as session:
        before = session.spending.calls
        assert session.progress.missing == left
        session.run()
        assert session.progress.missing == 0
        assert left <= session.spending.calls - before <= 3 * left


@pytest.mark.slow
def test_calls_that_a_killed_run_announced_are_on_the_account_of_the_merged_store(venire: Venire, kept: Path) -> None:
    """The danger: the journal lies beside the store, and a merge that reads the store alone forgets the money."""
    made = _script("make")
    assert made.run(kept.parent / "second.toml", 4) == -9
    assert (kept.parent / "kept.duckdb.journal").exists()
    merged = kept.parent / "merged.duckdb"
    other = kept.parent / "other.duckdb"
    other.write_bytes(lzma.decompress((FIXTURES / "schema-0001.duckdb.xz").read_bytes()))
    assert venire("store", "merge", kept, other, "-o", merged).code == 0
    assert (kept.parent / "kept.duckdb.journal").exists()
    open_store(kept).close()
    spend = "select sum(nano)::bigint, sum(calls)::bigint from spend"
    assert rows(merged, spend) == rows(kept, spend)
    assert rows(merged, "select count(*) from attempt where fault = 8") > rows(
        other, "select count(*) from attempt where fault = 8"
    )


def _script(name: str) -> ModuleType:
    sys.path.insert(0, str(FIXTURES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FIXTURES))


def test_a_missing_merge_partner_is_a_sentence_and_nothing_is_left(venire: Venire, kept: Path) -> None:
    before = sorted(os.listdir(kept.parent))
    refused = venire("store", "merge", kept, kept.with_name("no.duckdb"), "-o", kept.with_name("out.duckdb"))
    assert refused.code == 2
    assert "there is no store" in refused.err
    assert sorted(os.listdir(kept.parent)) == before


def test_a_loss_is_accepted_once_and_only_where_there_is_one(venire: Venire, kept: Path) -> None:
    assert "nothing was done" in venire("store", "accept-loss", kept).out
    with open_store(kept) as store:
        constant, batch = store.constant, store.batch
    journal = Journal(kept, constant, 2, datetime(2026, 1, 1, tzinfo=UTC))
    journal.mark(batch + 3, 10_000)
    journal.announce(60, 1, 9, 1, 5_000_000, 100)
    journal.close(remove=False)
    assert "venire store accept-loss" in venire("status", kept).err
    said = venire("store", "accept-loss", kept)
    assert said.code == 0
    assert "without 3 commits; 1 calls" in said.out
    assert "$0.0050 for them count" in said.out
    assert venire("store", "check", kept).code == 0
    assert "nothing was done" in venire("store", "accept-loss", kept).out
