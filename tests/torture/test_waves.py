"""Campaigns killed at a step of a batch keep their books, and the rig notices a build that does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.torture.waves import FORMS, STEPS, TROUBLES

ROOT = Path(__file__).resolve().parent.parent.parent
ROUNDS = [
    (form, step)
    for form in FORMS
    for step in (*STEPS, *TROUBLES)
    if (form, step) != ("anthropic", "after the upload")  # requests are sent with the batch
]


def torture(form: str, step: str, *words: str) -> tuple[int, str]:
    """The exit code of the rig for one small round, and what it says."""
    command = [sys.executable, "-m", "tests.torture.waves", "--form", form, "--step", step, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("form", "step"), ROUNDS)
def test_a_kill_at_a_step_of_a_batch_or_in_a_trouble_breaks_no_promise(form: str, step: str) -> None:
    code, said = torture(form, step, "--trials", "60", "--wave-size", "25")
    assert code == 0, said
    assert "kept" in said
    assert "NOT KILLED" not in said


@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "broken"), [("after the create call", "submission-unwritten"), ("bad downloads", "download-trusted")]
)
def test_a_build_that_breaks_a_promise_is_noticed(step: str, broken: str) -> None:
    code, said = torture("openai", step, "--trials", "60", "--wave-size", "25", "--broken", broken)
    assert code == 1, said
    assert "BROKEN" in said
