"""Each picture of the pages is one that `make screens` takes, is shown once, and is small enough to be kept."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SCREENS = Path(__file__).resolve().parent.parent / "docs" / "screens"


def taken() -> set[str]:
    """The names in the table of the script that takes them, read without running it: playwright may not be there."""
    for node in ast.parse((SCREENS / "make.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            names = {key.value for key in node.value.keys if isinstance(key, ast.Constant)}
            if "overview" in names:
                return {str(name) for name in names}
    return set()


def test_what_is_taken_is_there_and_shown() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([\w-]+)\.png\)", (SCREENS / "README.md").read_text(encoding="utf-8"))
    assert len(shown) == len(set(shown)) > 20
    assert set(shown) == {picture.stem for picture in SCREENS.glob("*.png")} == taken()


def test_pictures_are_small() -> None:
    sizes = {picture.name: picture.stat().st_size for picture in SCREENS.glob("*.png")}
    assert max(sizes.values()) < 200_000
    assert sum(sizes.values()) < 4_000_000
