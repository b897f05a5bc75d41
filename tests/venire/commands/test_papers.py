"""docs/papers.md as it is typed: every command from the copied folder on, and every line that the page shows of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parameters import slow_after

Venire = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("direct_judges")
ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "papers.md"
BLOCK = re.compile(r"^```(console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("sections", "lines_shown"), slow_after(1, (1, 10), (None, 80)))
def test_the_page_shows_what_its_commands_print(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sections: int | None, lines_shown: int
) -> None:
    """Of the first commands, or in `make test-slow` of all."""
    folder = tmp_path / "papers"
    shutil.copytree(ROOT / "examples" / "papers", folder)
    monkeypatch.chdir(folder)
    printed: set[str] = set()
    shown = 0
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    ends = [number for number, (kind, _) in enumerate(blocks, 1) if kind == "text"]
    for kind, text in blocks[: ends[sections - 1] if sections else None]:
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
    assert shown > lines_shown
