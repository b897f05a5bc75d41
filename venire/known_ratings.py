"""Reference ratings that a user gives beside verdicts: what is common to both, and what is not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from venire.arena.errors import InputError
from venire.storage.formats.reference import read_reference

__all__ = ["known_ratings", "some"]

_NAMED = 5


def known_ratings(
    path: Path, models: Collection[str], known: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, Any]]:
    """The ratings of a file, and what to say of them: how many of `models` they know, and whom they name besides.

    `known` are the ratings that a store has and that these replace. Raises `InputError` where the file rates none of
    `models`, and as `read_reference` does.
    """
    found = read_reference(path)
    shared = found.keys() & set(models)
    if models and not shared:
        raise InputError(
            f"{path} rates none of the models that were judged; it rates {some(found)}; judged were {some(models)}: "
            "give both the same names"
        )
    told = {
        "file": str(path),
        "ratings": len(found),
        "shared": len(shared),
        "not_judged": sorted(found.keys() - shared),
        "not_rated": sorted(set(models) - shared),
        "replaces": len(known),
    }
    return found, told


def some(names: Collection[str]) -> str:
    """The first names in order, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(sorted(names)[:_NAMED]) + (f" and {more} more" if more > 0 else "")
