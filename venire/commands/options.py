"""Arguments that several verbs share."""

from __future__ import annotations

from venire.arena.errors import InputError

__all__ = ["column_map", "write_json"]


def column_map(pairs: list[str]) -> dict[str, str]:
    """`--map OURS=THEIRS` options as a mapping from our column names to the file's."""
    found: dict[str, str] = {}
    for pair in pairs:
        ours, equals, theirs = pair.partition("=")
        if not equals or not ours or not theirs:
            raise InputError(f"--map takes OUR_COLUMN=THEIR_COLUMN, as in --map elo=arena_elo, and got {pair!r}")
        found[ours] = theirs
    return found


def write_json(value: object) -> None:
    """One JSON document on standard output, and nothing else there."""
    import json
    import sys

    if sys.stdout is not None:  # None where it was closed
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        sys.stdout.flush()  # what cannot be written is told of here, not while Python ends
