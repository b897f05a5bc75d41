"""Shards that take each other over under kills keep their budget together, and the rig notices a build that does not.

The rig forks, so it runs in a process of its own: this one may have threads.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def torture(*words: str) -> tuple[int, str]:
    """The exit code of the rig for one round, and what it says."""
    command = [sys.executable, "-m", "tests.torture.shards", "--rounds", "1", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_shards_that_take_each_other_over_keep_their_budget_and_merge_into_one_run() -> None:
    code, said = torture()
    assert (code, said.count("kept")) == (0, 1), said


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_build_that_leaves_the_spending_of_the_others_behind_is_noticed() -> None:
    code, said = torture("--broken", "spending-left-behind")
    assert (code, said.count("<= cap")) == (1, 1), said
