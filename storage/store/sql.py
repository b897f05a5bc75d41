"""Queries live in queries/*.sql, each under a line `-- name: ...` and a comment that says what it is for."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

__all__ = ["migrations", "query"]

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def _queries() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(files("venire.storage").joinpath("queries").iterdir(), key=lambda entry: entry.name):
        _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            if name in found:
                raise ValueError(f"two queries are called {name}")
            found[name] = text.strip()
    return found


def query(name: str) -> str:
    """The text of a named query; a text with a space is SQL itself, such as a file format of another package brings.

    Raises KeyError for a name that no file has.
    """
    return name if " " in name else _queries()[name]


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Number, name and text of every migration, in order."""
    folder = files("venire.storage").joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(
        (int(name[:4]), name.removesuffix(".sql"), folder.joinpath(name).read_text(encoding="utf-8")) for name in names
    )
