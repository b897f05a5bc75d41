"""Loss of power costs little because of an order of system calls: write, flush, and only then say that it is safe."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from venire.storage.store.opening import open_store

WRITES = """
import os, sys
from venire.storage.store.opening import open_store
with open_store(sys.argv[1]) as store:
    journal = store.begin_journal(1)
    for n in range(3):
        with store.commit() as commit:
            commit.run("insert_models", names=[f"m{n}"])
        os.write(2, b"committed\\n")
    journal.announce(1, 1, 1, 1, 5, 6)
    journal.sync()
    os.write(2, b"announced\\n")
"""


@pytest.fixture
def calls(tmp_path: Path) -> list[str]:
    """The system calls of a small run, as strace tells them."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    trace = tmp_path / "trace"
    watched = "trace=write,pwrite64,pwritev,fdatasync,fsync"
    command = ["strace", "-f", "-y", "-e", watched, "-o", trace, sys.executable, "-c", WRITES, tmp_path / "s.duckdb"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("strace may not trace here")
    return trace.read_text().splitlines()


def flushed_before(calls: list[str], word: str, file: str) -> list[bool]:
    """For each time that the word was said, whether the file was flushed after its last write before that."""
    found, dirty = [], True
    for line in calls:
        if re.search(rf"p?write\w*\(\d+<[^>]*{re.escape(file)}>", line):
            dirty = True
        elif re.search(rf"f(data)?sync\(\d+<[^>]*{re.escape(file)}>", line):
            dirty = False
        elif word in line:
            found.append(not dirty)
    return found


def test_a_commit_is_on_the_disk_itself_before_it_counts_as_made(calls: list[str]) -> None:
    assert flushed_before(calls, "committed", "s.duckdb.wal") == [True, True, True]


def test_a_strict_announcement_is_on_the_disk_itself_before_its_call_is_sent(calls: list[str]) -> None:
    assert flushed_before(calls, "announced", "s.duckdb.journal") == [True]


def test_the_folder_of_a_new_store_is_flushed_too(calls: list[str], tmp_path: Path) -> None:
    assert any(re.search(rf"fsync\(\d+<{re.escape(str(tmp_path))}>", line) for line in calls)


def test_flushing_is_never_switched_off(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.duckdb") as store:
        mode = store.connection.execute("select value from duckdb_settings() where name = 'fsync_mode'").fetchall()
        assert mode == [("STANDARD",)]
