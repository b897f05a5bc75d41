"""docs/papers.md as it is typed: every command from the copied folder on, and every line that the page shows of it."""

from __future__ import annotations

import os
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
FITS_OFTEN = ("--learning-curve", "--steady", "--ascents")
"""Figures of hundreds of fits."""
RECORDED = "vicuna80_peers"


@pytest.mark.parametrize(("left_out", "lines_shown"), slow_after(1, (FITS_OFTEN, 120), ((), 190)))
def test_the_page_shows_what_its_commands_print(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: tuple[str, ...], lines_shown: int
) -> None:
    """Of commands that only read and take long, and of verdicts that are not here, nothing."""
    folder = tmp_path / "papers"
    shutil.copytree(ROOT / "examples" / "papers", folder)
    data = Path(os.environ.get("VENIRE_DATA", ROOT.parent / "shared" / "data")) / RECORDED
    if data.is_dir():
        (folder / RECORDED).symlink_to(data)
    else:
        left_out = (*left_out, RECORDED)
    monkeypatch.chdir(folder)
    printed: set[str] | None = set()
    shown = 0
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        lines = [line for line in text.splitlines() if line]
        if kind == "text":
            if printed is not None:
                assert [line for line in lines if line not in printed] == []
                shown += len(lines)
            continue
        if any(word in text for word in left_out):
            printed = None
            continue
        printed = set()
        for line in lines:
            done = venire(*line.removeprefix("venire ").split())
            assert done.code == 0, f"{line}: {done.err}"
            printed |= set(done.out.splitlines())
    assert shown > lines_shown
