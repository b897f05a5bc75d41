"""SIGKILL: what was answered and on disk is never asked again, and the end is the same as without the kill."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forked import Forked, run_forked
from venire.configs.loading import load_campaign
from venire.simulation.ledger import LedgerEntry
from venire.storage.read import frames
from venire.storage.store.opening import open_store

GROUP_ROWS = 20
IN_FLIGHT = 2 * 8
"""Two lanes of eight."""

INSTRUCTIONS = 4
CALLS = 15 * INSTRUCTIONS * 2 * 2 * 2

CHILD = """
import sys
from pathlib import Path
import venire
with venire.Session(venire.load_campaign(Path(sys.argv[1]))) as session:
    session.run(group_rows=int(sys.argv[2]), group_seconds=float(sys.argv[3]))
"""


def child(path: Path, *, flush: bool = True) -> list[str]:
    rows, seconds = (GROUP_ROWS, 0.1) if flush else (10_000, 10**9)
    return [sys.executable, "-c", CHILD, str(path), str(rows), str(seconds)]


def standing(path: Path) -> frames.Progress:
    with open_store(load_campaign(path).store) as store:
        return frames.progress(store, 1)


def killed_at(
    n: int, path: Path, serve: Callable[..., object], write: Callable[[str], Path], *, flush: bool = True
) -> tuple[list[LedgerEntry], int, frames.Progress]:
    """The server's ledger, how many requests it held at the kill, and the store's progress then, after a resumption."""
    process: list[subprocess.Popen[bytes]] = []
    seen: list[int] = []

    def kill(ordinal: int) -> None:
        if ordinal == n:
            os.kill(process[0].pid, signal.SIGKILL)
            seen.append(ordinal)

    with serve(on_request=kill) as server:
        path = write(server.base_url)
        process.append(Forked(child(path, flush=flush)))
        process[0].wait()
        assert process[0].returncode == -9
        held = len(server.ledger.entries)
        before = standing(path)
        run_forked(child(path, flush=flush), check=True)
        return list(server.ledger.entries), held, before


def asked_again_without_need(entries: list[LedgerEntry], held: int) -> list[str]:
    """Calls asked twice though they were answered well before the kill: neither unanswered nor among the last."""
    before, after = entries[:held], {entry.key for entry in entries[held:]}
    answered = sorted(
        (entry for entry in before if entry.outcome == "answered" and entry.answered is not None),
        key=lambda entry: entry.answered or 0,
    )
    excused = {entry.key for entry in answered[-(GROUP_ROWS + 2 * IN_FLIGHT) :]}
    return [str(entry.key) for entry in answered if entry.key in after - excused]


@pytest.fixture
def write(write_campaign: Callable[..., Path]) -> Callable[[str], Path]:
    return lambda base_url: write_campaign(instructions=INSTRUCTIONS, judge=f'base_url = "{base_url}"')


@pytest.fixture
def uninterrupted(
    serve: Callable[..., object], write: Callable[[str], Path], venire: Callable[..., object], tmp_path: Path
) -> str:
    """The `--json` of the same campaign that nobody killed."""
    with serve() as server:
        path = write(server.base_url)
        assert venire("run", path, "--yes").code == 0
    out = venire("rate", load_campaign(path).store, "--json").out
    load_campaign(path).store.unlink()
    return out


def off_the_account(entries: list[LedgerEntry], path: Path) -> list[str | None]:
    """Requests that the server saw and the store has no attempt for."""
    with open_store(load_campaign(path).store) as store:
        rows = store.connection.execute(
            "select lower(hex(t.trial_key)) || '-' || a.step, count(*) "
            "from attempt a join trial t on t.id = a.trial group by 1"
        ).fetchall()
    paid = dict(rows)
    seen = Counter(entry.key for entry in entries)
    return [key for key, asked in seen.items() if paid.get(key, 0) < asked]


def check(seed: int, serve: Callable[..., object], write: Callable[[str], Path], folder: Path) -> bool:
    """One kill at a seeded moment; whether it found settled trials before it and missing ones after."""
    n = random.Random(seed).randrange(CALLS // 20, CALLS)
    entries, held, before = killed_at(n, Path(), serve, write)
    assert asked_again_without_need(entries, held) == []
    assert off_the_account(entries, folder / "small.toml") == []
    return before.settled > 0 and before.missing > 0


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_after_a_kill_only_what_was_not_on_disk_is_asked_again(
    seed: int,
    serve: Callable[..., object],
    write: Callable[[str], Path],
    venire: Callable[..., object],
    uninterrupted: str,
    folder: Path,
) -> None:
    assert check(seed, serve, write, folder)
    assert venire("rate", folder / "small.duckdb", "--json").out == uninterrupted


@pytest.mark.slow
def test_the_check_sees_a_store_that_does_not_flush(serve: Callable[..., object], write: Callable[[str], Path]) -> None:
    entries, held, before = killed_at(CALLS // 2, Path(), serve, write, flush=False)
    assert before.settled == 0
    assert len(asked_again_without_need(entries, held)) > CALLS // 4


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_kills_and_at_least_five_in_the_middle(
    serve: Callable[..., object],
    write: Callable[[str], Path],
    venire: Callable[..., object],
    uninterrupted: str,
    folder: Path,
) -> None:
    in_the_middle = 0
    for seed in range(100, 120):
        in_the_middle += check(seed, serve, write, folder)
        assert venire("rate", folder / "small.duckdb", "--json").out == uninterrupted
        (folder / "small.duckdb").unlink()
    assert in_the_middle >= 5
