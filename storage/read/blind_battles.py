"""Completions for people who vote without knowing whose they are: texts, and codes that this store alone can read."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from venire.storage.store.store import Store

_CODE_BYTES = 8


class VotableCompletion(NamedTuple):
    """A completion by its number in the store; completions of equal texts have an equal `text_hash`."""

    number: int
    model: str
    instruction: str
    text_hash: int


@dataclass(frozen=True, slots=True)
class BlindText:
    """A completion as somebody sees it who votes: its code, what was asked, and its text."""

    code: str
    asked: str
    text: str


def votable_completions(store: Store) -> tuple[VotableCompletion, ...]:
    """The first answer of every model to every instruction as it came, in the order of their numbers."""
    return tuple(VotableCompletion(*row) for row in store.read("votable_completions"))


def blind_texts(store: Store, completions: Collection[int]) -> dict[int, BlindText]:
    """What is shown of some completions, by number."""
    return {
        number: BlindText(_code(store, key), "\n\n".join(json.loads(turns)), text)
        for number, key, text, turns in store.read("completions_to_show", completions=list(completions))
    }


def blind_codes(store: Store, completions: Collection[int]) -> dict[int, str]:
    """The codes of some completions, by number."""
    return {number: _code(store, key) for number, key in store.read("keys_of", completions=list(completions))}


def completions_by_code(store: Store) -> dict[str, tuple[str, str]]:
    """The model and the instruction of every unedited completion, by the code that `blind_texts` gives it."""
    return {_code(store, key): (model, instruction) for key, model, instruction in store.read("completion_keys")}


def _code(store: Store, key: bytes) -> str:
    """A completion's key under the store's own constant: without the store nobody can compute or invert it.

    The key alone would not do, since whoever has a text and guesses its model can compute that.
    """
    return blake2b(key, key=store.constant, digest_size=_CODE_BYTES, person=b"venire.vote").hexdigest()
