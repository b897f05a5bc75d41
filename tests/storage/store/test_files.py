"""One process owns a store for as long as it lives, and no longer."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from venire.arena.errors import InputError, StoreHeldError
from venire.arena.records import Instruction
from venire.storage.store.files import StoreLock
from venire.storage.store.opening import open_store
from venire.storage.store.recovery import rescue
from venire.storage.transfer import importing

Start = Callable[..., "subprocess.Popen[str]"]

HOLD = """
import sys
from venire.arena.records import Instruction
from venire.storage.transfer import importing
from venire.storage.store.opening import open_store
with open_store(sys.argv[1]) as store:
    importing.add(store, [Instruction("q", ("What?",))])
    print("held", flush=True)
    sys.stdin.readline()
"""

TRY = """
import sys
from venire.arena.errors import StoreHeldError
from venire.storage.store.opening import open_store
try:
    open_store(sys.argv[1]).close()
except StoreHeldError as error:
    print(error)
else:
    print("opened")
"""


@pytest.fixture
def lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def hold(in_process: Start, path: Path) -> subprocess.Popen[str]:
    holder = in_process(HOLD, path)
    assert holder.stdout is not None
    line = holder.stdout.readline()
    assert line == "held\n", holder.communicate()[1]
    return holder


def attempt(in_process: Start, path: Path) -> str:
    """What another process is told when it tries to open the store."""
    said, wrong = in_process(TRY, path).communicate(timeout=60)
    return said.strip() or wrong


def named_since(message: str) -> datetime:
    return datetime.fromisoformat(message.split(" since ")[1].split(": wait")[0])


def test_a_second_open_in_the_same_process_names_pid_host_and_since(path: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    with open_store(path), pytest.raises(StoreHeldError) as caught:
        open_store(path)
    message = str(caught.value)
    assert f"{path} is held by process {os.getpid()} on host {socket.gethostname()} since " in message
    assert before <= named_since(message) <= before + timedelta(minutes=2)


def test_an_open_from_another_process_names_the_one_that_holds_it(path: Path, in_process: Start) -> None:
    with open_store(path):
        message = attempt(in_process, path)
    assert f"is held by process {os.getpid()} on host {socket.gethostname()} since " in message
    assert attempt(in_process, path) == "opened"


def test_a_refused_open_in_the_owners_process_leaves_its_lock_and_its_rows_whole(
    path: Path, lock_path: Path, in_process: Start
) -> None:
    """The danger: opening the file once more in one process drops DuckDB's lock, and rows of two writers vanish."""
    with open_store(path) as store:
        with pytest.raises(StoreHeldError):
            open_store(path)
        assert lock_path.exists()
        assert "is held by process" in attempt(in_process, path)
        importing.add(store, [Instruction("q", ("What?",))])
    with open_store(path) as store:
        assert len(store.rows("instruction_keys")) == 1


def test_a_store_held_by_a_live_process_opens_once_it_has_ended(path: Path, in_process: Start) -> None:
    holder = hold(in_process, path)
    with pytest.raises(StoreHeldError, match=f"is held by process {holder.pid} on host "):
        open_store(path)
    holder.communicate("enough\n", timeout=60)
    with open_store(path) as store:
        assert len(store.rows("instruction_keys")) == 1


def test_a_killed_holder_leaves_an_open_store_with_everything_that_it_committed(
    path: Path, lock_path: Path, in_process: Start
) -> None:
    holder = hold(in_process, path)
    holder.kill()
    holder.wait(timeout=60)
    assert json.loads(lock_path.read_bytes())["pid"] == holder.pid
    with open_store(path) as store:
        assert [row[0] for row in store.rows("instruction_keys")] == ["q"]
        assert (store.batch, store.running) == (1, 1)
        assert json.loads(lock_path.read_bytes())["pid"] == os.getpid()
    assert not lock_path.exists()


@pytest.mark.parametrize(
    "left", [b"", b"garbage", b'{"pid": 1, "host": "elsewhere", "since": "2020-01-01T00:00:00+00:00"}' + b" " * 500]
)
def test_a_lock_file_that_nobody_holds_is_no_obstacle(path: Path, lock_path: Path, left: bytes) -> None:
    lock_path.write_bytes(left)
    with open_store(path):
        assert json.loads(lock_path.read_bytes())["pid"] == os.getpid()
    assert not lock_path.exists()


@pytest.mark.parametrize("written", [b"", b"{", b"[]", b'{"pid": 1}'])
def test_a_holder_that_has_not_said_its_name_yet_is_still_a_holder(path: Path, lock_path: Path, written: bytes) -> None:
    lock_path.write_bytes(written)
    with lock_path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StoreHeldError, match="is held by another process that has just started"):
            StoreLock.acquire(path)


def test_a_lock_whose_file_was_removed_while_waiting_is_not_taken_for_held(
    path: Path, lock_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The danger: the last owner removes the file between our open and our lock, and a third makes a new one."""
    real = fcntl.flock
    calls: list[int] = []

    def flock(descriptor: int, operation: int) -> Any:
        if not calls:
            lock_path.unlink()
        calls.append(descriptor)
        return real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    lock = StoreLock.acquire(path)
    try:
        assert len(calls) == 2
        assert os.fstat(lock.descriptor).st_ino == lock_path.stat().st_ino
        with pytest.raises(StoreHeldError):
            StoreLock.acquire(path)
    finally:
        lock.release()


def test_a_lock_that_cannot_be_written_names_the_store(path: Path, lock_path: Path) -> None:
    lock_path.mkdir()
    with pytest.raises(InputError, match=r"cannot write beside the store .*judged\.duckdb"):
        open_store(path)
    assert not path.exists()


@pytest.mark.parametrize("end", [".lock", ".journal"])
def test_a_symbolic_link_beside_a_store_is_refused_and_its_target_left_alone(path: Path, end: str) -> None:
    """The danger: whoever may write to the folder has any file of ours emptied."""
    target, link = path.with_name("dear"), path.with_name(path.name + end)
    target.write_text("to somebody", encoding="utf-8")
    open_store(path).close()
    link.symlink_to(target)
    with pytest.raises(InputError, match="is a symbolic link, which is not followed here: remove it") as refused:
        open_store(path)
    assert str(link) in str(refused.value)
    link.unlink()
    with open_store(path) as store:
        if end == ".journal":
            link.symlink_to(target)
            with pytest.raises(InputError, match="is a symbolic link"):
                store.begin_journal(1)
            link.unlink()
    assert target.read_text(encoding="utf-8") == "to somebody"


def test_what_belongs_to_a_store_is_for_its_user_alone(path: Path, tmp_path: Path) -> None:
    def modes() -> dict[str, int]:
        return {one.name: stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()}

    before = os.umask(0o022)
    try:
        with open_store(path) as store:
            for _ in range(2):
                store.begin_journal(1)
                importing.add(store, [Instruction("q", ("What?",))])
                names = {path.name + end for end in ("", ".wal", ".lock", ".journal")}
                assert modes() == dict.fromkeys(names, 0o600)
                assert store.checkpoint()
            copy = rescue(store)
            assert modes()[copy.name] == 0o600
            copy.unlink()
            with pytest.raises(RuntimeError), store.commit():
                raise RuntimeError
        assert modes() == {path.name: 0o600}
    finally:
        os.umask(before)


def test_the_mode_that_somebody_gave_a_store_is_kept(path: Path) -> None:
    open_store(path).close()
    path.chmod(0o640)
    with open_store(path) as store:
        importing.add(store, [Instruction("q", ("What?",))])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
