"""Reading a choice among 0, 1 and 2 out of a reply.

The first rule that matches wins. A reply that names two different numbers is read by none, and neither is one that
still shows a judge's thoughts: what is not read can be asked again, what is guessed cannot be taken back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from venire.judges.parsing.label_context import ends_before_label, is_reported
from venire.judges.parsing.reply_text import read_reply_text

_MAX_LINE = 80
"""A line that only states a choice is short."""

_OPEN = r"[\s\"'`*_()\[\]{}#]*"
_CLOSE = r"[\s\"'`*_.()\[\]{}#]*"
_LABEL = r"(?:my |the |final )*(?:answer|verdict|choice|decision|preference|output)"
_BARE = re.compile(rf"\A{_OPEN}([0-9]+){_CLOSE}\Z", re.ASCII)
_NAMED = re.compile(rf"\A{_OPEN}{_LABEL}(?: is)?{_OPEN}[:=]?{_OPEN}([0-9]+){_CLOSE}\Z", re.ASCII | re.IGNORECASE)
_LABEL_ALONE = re.compile(rf"\A{_OPEN}{_LABEL}(?: is)?{_OPEN}[:=]?{_OPEN}\Z", re.ASCII | re.IGNORECASE)
_WORDS = re.compile(r"\w")
_SIDE = {"1": "first", "2": "second"}
_OTHER_SIDE = {"1": re.compile(r"\bsecond\b", re.IGNORECASE), "2": re.compile(r"\bfirst\b", re.IGNORECASE)}


@dataclass(frozen=True, slots=True)
class ChoiceRule:
    """One way in which judges write a choice among 0, 1 and 2: lines that hold a word in, the choice or None out."""

    name: str
    read: Callable[[list[str]], str | None]
    example: str


def _number(pattern: re.Pattern[str], line: str) -> str | None:
    match = pattern.match(line) if len(line) <= _MAX_LINE else None
    return match.group(1) if match else None


def _bare(lines: list[str]) -> str | None:
    """Nothing but the choice, once or said again."""
    return _number(_BARE, lines[0]) if all(_number(_BARE, line) for line in lines) else None


def _named(lines: list[str]) -> str | None:
    return _number(_NAMED, lines[0]) if len(lines) == 1 else None


def _last_line(lines: list[str]) -> str | None:
    """A choice on the last line, after a whole sentence, a list or a label; half a sentence may go on in it."""
    before = lines[:-1]
    if not before or not (ends_before_label(before) or _LABEL_ALONE.match(before[-1][:_MAX_LINE])):
        return None
    choice = _number(_BARE, lines[-1]) or _number(_NAMED, lines[-1])
    return None if choice is None or is_reported(before, (), _SIDE.get(choice)) else choice


def _first_line(lines: list[str]) -> str | None:
    """A choice on the first line, with nothing after it that speaks of a number or of the other side, or disowns it."""
    choice = _number(_BARE, lines[0]) or _number(_NAMED, lines[0])
    rest = "\n".join(lines[1:])
    other = _OTHER_SIDE.get(choice or "")
    if len(lines) < 2 or choice is None or re.search(r"[0-9]", rest) or (other is not None and other.search(rest)):
        return None
    return None if is_reported((), lines[1:], _SIDE.get(choice)) else choice


CHOICE_RULES = (
    ChoiceRule("bare", _bare, "**1**"),
    ChoiceRule("named", _named, "Final answer: 2"),
    ChoiceRule("last-line", _last_line, "The first one is clearer.\n1"),
    ChoiceRule("first-line", _first_line, "0\nBoth say the same."),
)

WHOLE_CHOICES = frozenset({"bare", "named"})
"""Rules that read a reply which is nothing but its choice, so that it cannot have been cut short before it."""


def read_choice(text: str) -> tuple[int, str] | None:
    """The choice (0, 1 or 2) in a reply and the name of the rule that read it, or None when no rule reads it.

    What the reply quotes is not the judge's own choice and is not looked at.

    >>> read_choice("The first one is clearer.\\n**1**")
    (1, 'last-line')
    """
    if text in ("0", "1", "2"):  # nearly every reply
        return int(text), CHOICE_RULES[0].name
    if (said := read_reply_text(text)) is None:
        return None
    own = [line for line in said.unmasked if _WORDS.search(line)]
    stated = {number for line in own if (number := _number(_BARE, line) or _number(_NAMED, line)) is not None}
    if len(stated) != 1 or not stated <= {"0", "1", "2"}:
        return None
    lines = own if len(own) == 1 else list(said.lines)  # a single line, and be it between marks, is the reply
    for rule in CHOICE_RULES:
        if (choice := rule.read(lines)) is not None:
            return int(choice), rule.name
    return None
