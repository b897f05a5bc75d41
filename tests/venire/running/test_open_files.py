"""A process that may open few files asks with fewer calls in flight, and loses and pays nothing for it."""

from __future__ import annotations

import resource
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from venire.simulation.server import JudgeServer

Serve = Callable[..., AbstractContextManager[JudgeServer]]

FILES = 60


def few_files() -> None:
    """Make FILES the most that this process may have open."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


@pytest.mark.slow
def test_more_concurrency_than_files_slows_a_run_and_fails_nothing(
    venire: Callable[..., Any], start: Callable[..., Any], write_campaign: Callable[..., Path], serve: Serve
) -> None:
    with serve(speed=20.0) as server:
        judge = f'[[judge]]\nname = "j"\nmodel = "simulated/bard@1"\nbase_url = "{server.base_url}"\nfree = true\n'
        path = write_campaign(judges=f"{judge}concurrency = 100\nmax_attempts = 1\n", instructions=2)
        out, err = start("-m", "venire", "run", path, "--yes", preexec_fn=few_files).communicate(timeout=60)
        assert "ulimit -n" in err, err
        assert "120 calls in" in err, err
        assert len(server.ledger.entries) == 120, out
    faults = venire("sql", path, "select fault, count(*) n from attempt group by fault", "--json").json()
    assert faults == [{"fault": 0, "n": 120}]
