"""docs/papers.md as it is typed: every command from the copied folder on, and every line that the page shows of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Venire = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("direct_judges")
ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "papers.md"
BLOCK = re.compile(r"^```(console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_shows_what_its_commands_print(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "papers"
    shutil.copytree(ROOT / "examples" / "papers", folder)
    monkeypatch.chdir(folder)
    printed: set[str] = set()
    shown = 0
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        lines = [line for line in text.splitlines() if line]
        if kind == "text":
            assert [line for line in lines if line not in printed] == []
            shown += len(lines)
            continue
        printed = set()
        for line in lines:
            done = venire(*line.removeprefix("venire ").split())
            assert done.code == 0, f"{line}: {done.err}"
            printed |= set(done.out.splitlines())
    assert shown > 80
