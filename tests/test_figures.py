"""Each figure of the pages on figures is one that `make figures` draws, and is small enough to load with the page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = ("ratings.md", "judges.md", "ballots.md", "audit.md")
FIGURES = sorted((DOCS / "figures").glob("*.svg"))


def drawn() -> set[str]:
    """The names in the tables of the scripts that draw, read without running them: altair is slow to import."""
    names: set[str] = set()
    for script in ("rating_models.py", "measuring_judges.py", "judges_and_ballots.py"):
        for node in ast.parse((DOCS / "figures" / script).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
                names |= {key.value for key in node.value.keys if isinstance(key, ast.Constant)}
    return names


def test_what_is_drawn_is_there_and_shown() -> None:
    pages = "".join((DOCS / name).read_text(encoding="utf-8") for name in PAGES)
    shown = re.findall(r"!\[[^\]]+\]\(figures/([\w-]+)\.svg\)", pages)
    assert len(shown) == len(set(shown)) > 12
    assert set(shown) == {figure.stem for figure in FIGURES} == drawn()


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.stem)
def test_a_figure_is_small_and_reads_on_dark_pages(figure: Path) -> None:
    text = figure.read_text(encoding="utf-8")
    assert len(text) < 60_000
    assert 'fill="white"' in text[:1000]
