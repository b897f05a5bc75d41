"""Which completions try to instruct their judge: looked for once, and kept with the version of the rules.

DuckDB finds the candidates in one pass (RE2), and only these are handed to the rules themselves. The rules are
passed in as an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from venire.storage.store.store import Store

_CHUNK = 16_384
"""Completions a pass: four row groups. The texts of its candidates are held at once."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What completions are looked through for.

    Whatever `suspicious` suspects must match one of the two RE2 patterns: `anywhere` in the text as it is, or
    `in_lower_case` in its lower-case form. `version` changes whenever `suspicious` may say something else.
    """

    version: bytes
    anywhere: str
    in_lower_case: str
    suspicious: Callable[[str], str | None]
    """The name of the first rule that a text breaks, or None."""


@dataclass(frozen=True, slots=True)
class Screened:
    """What one call of `screen` looked through: completions, those looked at closely, and those suspected."""

    completions: int = 0
    candidates: int = 0
    suspected: int = 0


def screen(store: Store, rules: Rules) -> Screened:
    """Look through the completions that these rules have not seen, and keep which are suspected.

    A store that was screened by rules of another version is screened again, all of it. Nothing is written where there
    is nothing to look at. Raises StoreError when the store fails.
    """
    kept = [(bytes(version), last) for version, last in store.read("screening")]
    newest: int = store.read("newest_completion")[0][0]
    same = [version for version, _ in kept] == [rules.version]
    seen: int = kept[0][1] if same else 0
    if seen == newest and (same or not newest):
        return Screened()
    found: dict[int, str] = {}
    candidates = 0
    for low in range(seen + 1, newest + 1, _CHUNK):
        bounds = {"low": low, "high": min(low + _CHUNK - 1, newest)}
        patterns = {"anywhere": rules.anywhere, "in_lower_case": rules.in_lower_case}
        for number, text in store.read("screening_candidates", **bounds, **patterns):
            candidates += 1
            if (rule := rules.suspicious(text)) is not None:
                found[number] = rule
    with store.commit() as commit:
        if not same:
            commit.run("clear_suspicions")
        if found:
            commit.run("insert_suspicions", completions=list(found), rules=list(found.values()))
        commit.run("clear_screening")
        commit.run("insert_screening", rules=rules.version, last=newest, now=store.clock.wall())
    return Screened(newest - seen, candidates, len(found))
