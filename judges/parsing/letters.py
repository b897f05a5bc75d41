"""Reading one of a few agreed words out of a reply: a letter, a grade, a label such as A>>B.

The first rule that matches wins. A reply that states two of the words is read by none, and neither is one that still
shows a judge's thoughts, in which the word is only a part of a sentence, or that quotes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from venire.judges.parsing.label_context import ends_before_label, is_reported
from venire.judges.parsing.reply_text import read_reply_text

_MAX_LINE = 120
_SHORT = 32
"""Characters of a reply that is likely to come again, word for word."""
_WRAPPING = " \t\"'`*_()[]{}#"
_LABEL = re.compile(
    r"(?:(?:my|the|final) )*(?:answer|verdict|choice|decision|grade|rating|label|judg(?:e)?ment|result)"
    r"[\"'`*_]{0,4}(?: is)? ?[:=]?",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w")
_TWICE = re.compile(r"(\w+)(?: ?[:.,)–—-] ?| ?\()(.+)")


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A closed set of words: what each means, in lower case, and how any of them is found within prose.

    Known by the object that it is, so that what was read by it can be remembered.
    """

    meanings: Mapping[str, int]
    mentioned: re.Pattern[str]
    """Finds a word where it is spoken of; prose after an answer may speak of no word with another meaning."""
    sides: Mapping[int, str] = field(default_factory=dict)
    """Meanings that name a side: `first`, `second`."""

    def meaning(self, text: str) -> int | None:
        """What a text that is nothing but a word means, or None; a letter and its word may stand together."""
        said = " ".join(text.strip(_WRAPPING).rstrip("." + _WRAPPING).casefold().split())
        if (found := self.meanings.get(said)) is not None:
            return found
        if (both := _TWICE.fullmatch(said)) is not None:
            one, other = (self.meanings.get(part.strip(_WRAPPING)) for part in both.groups())
            return one if one == other else None
        return None

    def others(self, text: str, meaning: int) -> bool:
        """Whether a text speaks of a word that means something else."""
        return any(self.meanings.get(match.group().casefold()) != meaning for match in self.mentioned.finditer(text))


@dataclass(frozen=True, slots=True)
class LetterRule:
    """One way in which judges state a word: the words and the reply's lines in, its meaning or None out."""

    name: str
    read: Callable[[Words, list[str]], int | None]
    example: str


LETTERS = Words({"a": 1, "b": 0, "c": 2}, re.compile(r"\b[ABC]\b"))
"""Three letters; what the examples of the rules are read with."""


def _bare(words: Words, line: str) -> int | None:
    return words.meaning(line) if len(line) <= _MAX_LINE else None


def _named(words: Words, line: str) -> int | None:
    rest = line.lstrip(_WRAPPING)
    match = _LABEL.match(rest) if len(line) <= _MAX_LINE else None
    return words.meaning(rest[match.end() :].lstrip(_WRAPPING + ":=")) if match else None


def _stated(words: Words, line: str) -> int | None:
    bare = _bare(words, line)
    return _named(words, line) if bare is None else bare


def _nothing_else(words: Words, lines: list[str]) -> int | None:
    return _bare(words, lines[0]) if all(_bare(words, line) is not None for line in lines) else None


def _labelled(words: Words, lines: list[str]) -> int | None:
    return _named(words, lines[0]) if len(lines) == 1 else None


def _last_line(words: Words, lines: list[str]) -> int | None:
    """On the last line, after a whole sentence, a list or a label; after half a sentence it may belong to it."""
    before = lines[:-1]
    if not before:
        return None
    label = _LABEL.fullmatch(before[-1][:_MAX_LINE].strip(_WRAPPING))
    meaning = _stated(words, lines[-1]) if label or ends_before_label(before) else None
    return None if meaning is None or is_reported(before, (), words.sides.get(meaning)) else meaning


def _first_line(words: Words, lines: list[str]) -> int | None:
    """On the first line, with nothing after it that speaks of another word, or disowns it."""
    meaning = _stated(words, lines[0])
    if len(lines) < 2 or meaning is None or words.others("\n".join(lines[1:]), meaning):
        return None
    return None if is_reported((), lines[1:], words.sides.get(meaning)) else meaning


LETTER_RULES = (
    LetterRule("bare", _nothing_else, "**A**"),
    LetterRule("named", _labelled, "Final answer: B"),
    LetterRule("last-line", _last_line, "It names another river than the one asked for.\nB"),
    LetterRule("first-line", _first_line, "C\nIt says that it does not know."),
)

WHOLE_LETTERS = frozenset({"bare", "named"})
"""Rules that read a reply which is nothing but its answer, so that it cannot have been cut short before it."""


def read_word(text: str, words: Words) -> tuple[int, str] | None:
    """What the one word that a reply states means, and the rule that read it; None when no rule reads it.

    >>> read_word("Final answer: B", LETTERS)
    (0, 'named')
    """
    return _read_again(text, words) if len(text) <= _SHORT else _read(text, words)


@lru_cache(maxsize=1024)
def _read_again(text: str, words: Words) -> tuple[int, str] | None:
    """`_read`, remembered: judges that are asked for a word alone give the same few replies thousands of times."""
    return _read(text, words)


def _read(text: str, words: Words) -> tuple[int, str] | None:
    if (said := read_reply_text(text)) is None:
        return None
    own = [line for line in said.unmasked if _WORD.search(line)]
    if len({meaning for line in own if (meaning := _stated(words, line)) is not None}) != 1:
        return None
    lines = own if len(own) == 1 else list(said.lines)  # a single line, and be it between marks, is the reply
    for rule in LETTER_RULES:
        if (found := rule.read(words, lines)) is not None:
            return found, rule.name
    return None
