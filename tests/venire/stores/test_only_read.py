"""A store that cannot be written is read by every verb that only reads; a campaign file or folder names its store."""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from venire.arena.errors import InputError, StoreError, StoreHeldError
from venire.configs.loading import load_campaign
from venire.storage.care.checking import check
from venire.storage.store import files
from venire.storage.store.journal import Journal, journal_path
from venire.storage.store.opening import open_store

Venire = Callable[..., Any]
FIXTURES = Path(__file__).resolve().parents[2] / "storage" / "fixtures"

MOUNT = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
VERBS = """
import sys
from venire.cli import app
store, out = sys.argv[1:]
for words in (
    ("status", store), ("rate", store), ("audit", store), ("sql", store, "select count(*) as verdicts from battle"),
    ("store", "check", store), ("export", store, "battle", "attempt", "plan", "-o", out),
    ("reparse", store, "--dry-run"),
):
    code = app(words, standalone_mode=False)
    print("ended", words[0], code or 0, flush=True)
"""
KILLED = """
import os, sys
from venire.storage.store.opening import open_store
store = open_store(sys.argv[1], create=False)
with store.commit() as commit:
    commit.run("insert_models", names=["only in the log"])
os._exit(0)
"""


def run_on_a_read_only_file_system(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = ["unshare", "-rm", "sh", "-c", MOUNT, str(folder)]
    tried = [*command, "sh", "-c", '! touch "$0/x" 2>/dev/null', str(folder)]
    if shutil.which("unshare") is None or subprocess.run(tried, check=False, capture_output=True).returncode:
        pytest.skip("no folder can be mounted read-only here")
    return subprocess.run(
        [*command, sys.executable, *map(str, words)], capture_output=True, text=True, check=False, cwd=folder.parent
    )


@pytest.fixture
def unwritable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in any folder may be written, as far as this process asks."""
    monkeypatch.setattr(files.os, "access", lambda path, mode: mode != os.W_OK)


@pytest.mark.slow
def test_a_store_on_a_read_only_file_system_is_read_and_nothing_of_it_changes(
    judged: Callable[..., Path], tmp_path: Path
) -> None:
    path = load_campaign(judged()).store
    folder = tmp_path / "mounted"
    folder.mkdir()
    store = folder / "kept.duckdb"
    shutil.copy(path, store)
    subprocess.run([sys.executable, "-c", KILLED, str(store)], check=False)
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    assert set(before) == {"kept.duckdb", "kept.duckdb.lock", "kept.duckdb.wal"}
    done = run_on_a_read_only_file_system(folder, "-c", VERBS, store, tmp_path / "out")
    assert "Traceback" not in done.stderr, done.stderr
    ended = [line for line in done.stdout.splitlines() if line.startswith("ended")]
    verbs = ("status", "rate", "audit", "sql", "store", "export", "reparse")
    assert ended == [f"ended {verb} 0" for verb in verbs], done.stderr
    assert "Leaderboard" in done.stdout
    assert "all is well" in done.stdout
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == [
        "attempt.parquet",
        "battle.parquet",
        "plan.parquet",
    ]
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before
    written = run_on_a_read_only_file_system(folder, "-m", "venire", "store", "compact", store)
    assert (written.returncode, "Traceback" in written.stderr) == (2, False)
    assert "Read-only file system" in written.stderr


def test_a_store_that_is_only_read_has_the_log_of_a_killed_run_and_refuses_to_be_written(
    judged: Callable[..., Path], unwritable: None
) -> None:
    path = load_campaign(judged()).store
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    with open_store(path, create=False, to_read=True) as store:
        assert store.rows("models")[-1][0] == "only in the log"
        assert store.scratch is not None
        scratch = Path(store.scratch.name)
        assert scratch.is_dir()
        with pytest.raises(StoreError, match="is only read"), store.commit():
            pass
    assert not scratch.exists()
    assert check(path).sound


def test_a_store_that_would_have_to_be_changed_to_be_read_is_refused_with_what_to_do(
    judged: Callable[..., Path], tmp_path: Path, unwritable: None
) -> None:
    old = tmp_path / "old.duckdb"
    old.write_bytes(lzma.decompress((FIXTURES / "schema-0001.duckdb.xz").read_bytes()))
    with pytest.raises(InputError, match=r"has format 1, .* copy it to a folder of your own"):
        open_store(old, create=False, to_read=True)
    path = load_campaign(judged()).store
    with open_store(path, create=False, to_read=True) as store:
        constant, now, batch, running = store.constant, store.clock.wall(), store.batch, store.running
    journal = Journal(path, constant, 1, now)
    journal.mark(batch, running)
    journal.close(remove=False)
    open_store(path, create=False, to_read=True).close()  # calls in flight add nothing to what can be read
    assert journal_path(path).exists()
    journal = Journal(path, constant, 1, now)
    journal.mark(batch, running)
    journal.spill(batch + 1, [("event", (1, now, "kind", "{}"))])
    journal.close(remove=False)
    with pytest.raises(InputError, match="holds replies that the last run could not write"):
        open_store(path, create=False, to_read=True)
    journal = Journal(path, constant, 1, now)
    journal.mark(batch + 2, running + 5)
    journal.close(remove=False)
    with pytest.raises(InputError, match="has lost its last 2 commits"):
        open_store(path, create=False, to_read=True)


def test_a_store_that_another_user_writes_is_held_by_that_process(
    judged: Callable[..., Path], start: Callable[..., Any], unwritable: None
) -> None:
    path = load_campaign(judged()).store
    script = (
        "import signal, sys; from venire.storage.store.opening import open_store\n"
        "with open_store(sys.argv[1]): print('held', flush=True); signal.pause()"
    )
    holder = start("-c", script, path)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(StoreHeldError, match=f"is held by process {holder.pid} on host"):
        open_store(path, create=False, to_read=True)


@pytest.mark.slow
def test_a_campaign_file_or_its_folder_names_its_store_in_every_verb_that_takes_one(
    venire: Venire, judged: Callable[..., Path], tmp_path: Path
) -> None:
    path = judged()
    store = load_campaign(path).store
    verbs: tuple[tuple[object, ...], ...] = (
        ("status", "--json"),
        ("sql", "--json"),
        ("rate", "--json"),
        ("audit", "--json"),
        ("reparse", "--json", "--dry-run"),
        ("store", "check", "--json"),
        ("store", "compact"),
        ("store", "accept-loss"),
        ("store", "release-unanswered"),
    )
    for verb in verbs:
        expected = venire(*verb, store)
        for named in (path, tmp_path):
            found = venire(*verb, named)
            assert (found.code, "as a store" in found.err) == (0, False), (verb, found.err)
            if verb != ("store", "compact"):
                assert found.out == expected.out
    assert "no run is going on" in venire("watch", path).out
    assert venire("export", tmp_path, "battles", "-o", tmp_path / "out.csv").code == 0
    assert venire("store", "backup", path, "-o", tmp_path / "a.duckdb").code == 0
    merged = venire("store", "merge", path, tmp_path / "a.duckdb", "-o", tmp_path / "b.duckdb")
    assert merged.code == 0, merged.err
    table = tmp_path / "elo.csv"
    assert venire("import", "table", table, "--kind", "elo", "--store", path).code == 0
    placed = venire("place", "strong", "--on", path, "--yes", "--battles", "1")
    assert "as a store" not in placed.err
    assert "is a folder" not in placed.err


def test_a_folder_without_one_campaign_file_is_refused_and_campaign_toml_goes_first(
    venire: Venire, judged: Callable[..., Path], tmp_path: Path
) -> None:
    path = judged()
    empty = tmp_path / "empty"
    empty.mkdir()
    refused = venire("status", empty)
    assert (refused.code, refused.out) == (2, "")
    assert f"{empty} is a folder" in refused.err
    assert "name a campaign file" in refused.err
    other = tmp_path / "other.toml"
    shutil.copy(path, other)
    refused = venire("rate", tmp_path)
    assert (refused.code, "none is campaign.toml" in refused.err) == (2, True)
    path.rename(tmp_path / "campaign.toml")
    text = (tmp_path / "campaign.toml").read_text(encoding="utf-8")
    (tmp_path / "campaign.toml").write_text(f'store = "{path.stem}.duckdb"\n{text}', encoding="utf-8")
    assert venire("rate", tmp_path).code == 0
    missing = venire("status", tmp_path / "none.toml")
    assert (missing.code, missing.err.count("\n")) == (2, 1)
