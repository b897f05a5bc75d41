"""What a type checker and an editor are shown of the tables that are written in Python."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from venire.arena import registry
from venire.arena.budgets import UNITS
from venire.configs import schema

USES = Path(__file__).with_name("typed_uses.py")


@pytest.mark.parametrize("kind", ["Protocol", "Provider", "Policy"])
def test_a_type_checker_is_shown_the_names_of_a_registry(kind: str) -> None:
    (parts,) = [one for one in registry.REGISTRIES if one.kind == kind.lower()]
    assert get_args(getattr(registry, f"{kind}Name")) == tuple(parts._own)


def test_a_type_checker_is_shown_every_unit_of_budgets() -> None:
    source = (
        Path(schema.__file__).read_text(encoding="utf-8").partition("class _Limits(Table):")[2].partition("\nelse:")[0]
    )
    assert re.findall(r"(\w+): ", source) == list(UNITS)


@pytest.mark.slow
def test_a_type_checker_refuses_what_no_table_has_and_nothing_else(tmp_path: Path) -> None:
    """By a checker of a project of its own: nothing of our configuration."""
    text = USES.read_text(encoding="utf-8")
    (tmp_path / "uses.py").write_text(text, encoding="utf-8")
    checker = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "uses.py"]
    done = subprocess.run(checker, cwd=tmp_path, capture_output=True, text=True)
    found = sorted(re.findall(r"uses\.py:(\d+): error: .*\[([\w-]+)\]", done.stdout))
    marks = [
        (str(number), line.partition("  # ")[2]) for number, line in enumerate(text.splitlines(), 1) if "  # " in line
    ]
    assert found == sorted(marks), done.stdout + done.stderr
