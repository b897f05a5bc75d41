"""What a store knows of how its judges were asked: their settings, the texts of prompts, and single planned trials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.storage.store.store import Store

__all__ = ["AskedAs", "asked_as", "find_trial", "prompt_texts"]

_LONGEST_NUMBER = 18
_KEY_DIGITS = 32


@dataclass(frozen=True, slots=True)
class AskedAs:
    """A judge of a campaign as its trials are planned: its name there, its number, and all that makes its key."""

    name: str
    number: int
    model: str
    protocol: str
    origin: Origin
    options: Mapping[str, str]
    key: bytes


def asked_as(store: Store, campaign: int) -> tuple[AskedAs, ...]:
    """The judges of a campaign, by name."""
    return tuple(
        AskedAs(name, number, model, protocol, Origin(origin), json.loads(options), bytes(key))
        for name, number, model, protocol, origin, options, key in store.read("asked_respondents", campaign=campaign)
    )


def prompt_texts(store: Store) -> Mapping[str, tuple[str, ...]]:
    """Every text that a judge of the store was asked with, by the prompt's name, in the order they came."""
    found: dict[str, tuple[str, ...]] = {}
    for name, text in store.read("prompt_texts"):
        found[name] = (*found.get(name, ()), text)
    return found


def find_trial(store: Store, campaign: int, wanted: str | None) -> int:
    """The number of a planned trial from its number or the first digits of its key; None: the first of the plan.

    Raises InputError where there is no such trial in the plan, or several.
    """
    count, lowest, highest = store.read("planned_bounds", campaign=campaign)[0]
    if not count:
        raise InputError(f"{store.path}: the campaign has no trials: look at `venire plan`")
    if wanted is None:
        return int(store.read("planned_first", campaign=campaign)[0][0])
    text = wanted.strip().lower()
    if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER:
        found = store.read("planned_number", campaign=campaign, trial=int(text))
    elif len(text) <= _KEY_DIGITS and text and set(text) <= set("0123456789abcdef"):
        found = store.read("planned_key", campaign=campaign, key=text)
    else:
        raise InputError(f"--trial {wanted!r}: a trial's number or the first hexadecimal digits of its key is wanted")
    if len(found) == 1:
        return int(found[0][0])
    what = "several trials have such a key: give more of its digits" if found else "there is no such trial in the plan"
    raise InputError(
        f"{store.path}: --trial {wanted}: {what}; it has {count:,} trials, with numbers from {lowest} to {highest}"
    )
