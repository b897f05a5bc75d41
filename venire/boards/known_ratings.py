"""Reference ratings that a user gives beside verdicts: what is common to both, and what is not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from venire.arena.errors import InputError
from venire.reports.wording import few
from venire.storage.transfer.formats.tables import read_reference

__all__ = ["known_ratings"]


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
            f"{path} rates none of the models that were judged; it rates {few(sorted(found))}; judged were "
            f"{few(sorted(models))}: give both the same names"
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
