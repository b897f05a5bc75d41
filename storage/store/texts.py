"""Instructions and completions as trials show them: read once, and held while they are likely to be shown again.

A completion is shown in both orders, in several matchups and to every judge, and DuckDB unpacks two thousand texts to
find one. So what was used last stays in memory, up to a number of characters.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from venire.arena.keys import fence
from venire.arena.records import Completion, Instruction
from venire.storage.store.connection import Row

T = TypeVar("T", Instruction, Completion)

_MAX_CHARACTERS = 16 << 20
"""Characters of either kind that are held, but for those of the chunk at hand."""


@dataclass(frozen=True, slots=True)
class ShownText(Generic[T]):
    """A text with its key and the fence that sets it apart in a prompt."""

    what: T
    key: bytes
    fence: str
    characters: int
    suspected: bool = False
    """Whether the text tries to instruct its judge, as far as the store was screened."""


class _Read(Protocol):
    """`Store.read`: all rows of a named query."""

    def __call__(self, name: str, /, *, ids: list[int]) -> list[Row]: ...


class Texts:
    """A cache of what trials of a store show; `constant` is the store's own, of which fences are made.

    For one thread at a time.
    """

    def __init__(self, read: _Read, constant: bytes, limit: int = _MAX_CHARACTERS) -> None:
        self._constant = constant
        self._instructions: _Held[Instruction] = _Held(read, "instructions_shown", self._instruction, limit)
        self._completions: _Held[Completion] = _Held(read, "completions_shown", self._completion, limit)

    def instructions(self, numbers: Collection[int]) -> Mapping[int, ShownText[Instruction]]:
        """Instructions by their number in the store."""
        return self._instructions.get(numbers)

    def completions(self, numbers: Collection[int]) -> Mapping[int, ShownText[Completion]]:
        """Completions by their number in the store."""
        return self._completions.get(numbers)

    def _instruction(self, row: Row) -> ShownText[Instruction]:
        _, key, name, turns, reference, category = row
        what = Instruction(name, tuple(json.loads(turns)), reference, category)
        return self._shown(what, key, "\n\n".join(what.turns))

    def _completion(self, row: Row) -> ShownText[Completion]:
        _, key, model, instruction, text, sample, variant, suspected = row
        return self._shown(Completion(model, instruction, text, sample, variant), key, text, suspected)

    def _shown(self, what: T, key: bytes, text: str, suspected: bool = False) -> ShownText[T]:
        return ShownText(what, bytes(key), fence(text, self._constant), len(text), suspected)


class _Held(Generic[T]):
    """The texts of one kind, the last used at the end."""

    def __init__(self, read: _Read, query: str, make: Callable[[Row], ShownText[T]], limit: int) -> None:
        self._read, self._query, self._limit = read, query, limit
        self._make: Callable[[Row], ShownText[T]] = make
        self._held: OrderedDict[int, ShownText[T]] = OrderedDict()
        self._characters = 0

    def get(self, numbers: Collection[int]) -> Mapping[int, ShownText[T]]:
        wanted = set(numbers)
        missing = sorted(wanted - self._held.keys())
        for row in self._read(self._query, ids=missing) if missing else ():
            self._held[row[0]] = made = self._make(row)
            self._characters += made.characters
        for number in wanted:
            self._held.move_to_end(number)
        found = {number: self._held[number] for number in wanted}
        while self._characters > self._limit and self._held:
            _, gone = self._held.popitem(last=False)
            self._characters -= gone.characters
        return found
