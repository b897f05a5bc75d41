"""An executor on Ray is one of `concurrent.futures`: results, errors, cancellation; and a killed process is no end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, wait
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from venire.arena.errors import InputError, VenireError
from venire.orchestrator.engines.ray_tasks import RayExecutor, _call

pytestmark = pytest.mark.ray


@pytest.fixture
def pool(ray_cluster: Any) -> Iterator[RayExecutor]:
    with RayExecutor(ray_cluster) as executor:
        yield executor


def test_results_come_in_the_order_of_map(pool: RayExecutor) -> None:
    assert pool.workers == os.cpu_count()
    assert list(pool.map(pow, range(5), [2] * 5)) == [0, 1, 4, 9, 16]
    assert pool.submit(sorted, "bca", reverse=True).result() == ["c", "b", "a"]


def test_an_exception_of_a_call_is_that_of_its_future(pool: RayExecutor) -> None:
    error = pool.submit(refuse, "no such policy").exception()
    assert type(error) is InputError
    assert str(error) == "no such policy"


def test_what_cannot_be_sent_fails_its_own_call_alone(pool: RayExecutor) -> None:
    assert isinstance(pool.submit(len, threading.Lock()).exception(), TypeError)
    assert pool.submit(abs, -1).result() == 1


def test_a_call_whose_process_is_killed_is_called_again(pool: RayExecutor, tmp_path: Path) -> None:
    assert pool.submit(die_at_first, tmp_path / "begun").result() == "well"


def test_a_process_that_always_dies_is_a_sentence(pool: RayExecutor, capfd: pytest.CaptureFixture[str]) -> None:
    error = pool.submit(os._exit, 1).exception()
    assert type(error) is VenireError
    assert str(error).startswith("a process of the Ray cluster ended before its time 4 times")
    assert capfd.readouterr() == ("", "")


def test_no_more_run_at_once_than_there_are_workers(ray_cluster: Any, tmp_path: Path) -> None:
    with RayExecutor(ray_cluster, workers=1) as executor:
        assert list(executor.map(partial(alone, tmp_path / "here"), range(4))) == [True] * 4


def test_a_shutdown_that_cancels_ends_what_runs_and_what_waits(ray_cluster: Any, tmp_path: Path) -> None:
    executor = RayExecutor(ray_cluster, workers=1)
    os.mkfifo(tmp_path / "begun")
    running, waiting = executor.submit(run_for_ever, tmp_path), executor.submit(abs, -1)
    (tmp_path / "begun").read_text(encoding="utf-8")
    executor.shutdown(cancel_futures=True)
    assert isinstance(running.exception(), CancelledError)
    assert waiting.cancelled()
    assert (tmp_path / "tidied").exists()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(abs, -1)


def test_a_future_can_be_cancelled_before_its_turn(ray_cluster: Any, tmp_path: Path) -> None:
    with RayExecutor(ray_cluster, workers=1) as executor:
        os.mkfifo(tmp_path / "go")
        first, second, third = executor.submit(read, tmp_path / "go"), executor.submit(abs, -1), executor.submit(abs, 2)
        assert second.cancel()
        (tmp_path / "go").write_text("gone", encoding="utf-8")
        assert wait([first, third]).not_done == set()
        assert first.result() == "gone"
        assert second.cancelled()


def test_another_version_of_venire_is_refused() -> None:
    with pytest.raises(InputError, match=r"a machine of the Ray cluster has Venire .*, and this one 0\.0\.1"):
        _call("0.0.1", abs, (-1,), {})


def refuse(why: str) -> None:
    raise InputError(why)


def die_at_first(begun: Path) -> str:
    if not begun.exists():
        begun.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "well"


def alone(mark: Path, _: int) -> bool:
    mark.touch(exist_ok=False)
    mark.unlink()
    return True


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def run_for_ever(folder: Path) -> None:
    try:
        (folder / "begun").write_text("yes", encoding="utf-8")
        while True:
            pass
    except KeyboardInterrupt:
        (folder / "tidied").touch()
        raise
