"""Reading a verdict out of a reply: pure rules in one table, and never a guess.

The first rule that matches wins. A reply that names two different verdicts is read by none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["CHOICE_RULES", "PARSER", "ChoiceRule", "read_choice", "without_thoughts"]

PARSER = "choice-1"
"""Name of this table of rules; stored with what it read."""


@dataclass(frozen=True, slots=True)
class ChoiceRule:
    """One way in which judges write a choice among 0, 1 and 2; its first group is the choice."""

    name: str
    pattern: re.Pattern[str]
    example: str


_DRESS = r"[\s\"'`*_.()\[\]{}#]*"

CHOICE_RULES = (
    ChoiceRule("bare", re.compile(rf"\A{_DRESS}([012]){_DRESS}\Z", re.ASCII), "**1**"),
    ChoiceRule(
        "named",
        re.compile(
            rf"\A{_DRESS}(?:my |the |final )*(?:answer|verdict|choice|decision|preference|output)"
            rf"(?: is)?{_DRESS}[:=]?{_DRESS}([012]){_DRESS}\Z",
            re.ASCII | re.IGNORECASE,
        ),
        "Final answer: 2",
    ),
    ChoiceRule("last-line", re.compile(rf"\n{_DRESS}([012]){_DRESS}\Z", re.ASCII), "The first one is clearer.\n1"),
    ChoiceRule("first-line", re.compile(rf"\A{_DRESS}([012]){_DRESS}\n", re.ASCII), "0\nBoth say the same."),
)

_THOUGHTS = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHTS = re.compile(r"\A\s*<(think|thinking|reasoning)>", re.IGNORECASE)
_LONE_CHOICE = re.compile(r"^[\s\"'`*_.()\[\]{}#]*([012])[\s\"'`*_.()\[\]{}#]*$", re.ASCII | re.MULTILINE)


def without_thoughts(text: str) -> str:
    """The text without a leading block of thoughts; empty when the block was opened and never closed."""
    rest, found = _THOUGHTS.subn("", text, count=1)
    return "" if not found and _OPEN_THOUGHTS.match(text) else rest


def read_choice(text: str) -> tuple[int, str] | None:
    """The choice (0, 1 or 2) in a reply and the name of the rule that read it, or None when no rule reads it."""
    said = without_thoughts(text)
    if len(set(_LONE_CHOICE.findall(said))) > 1:
        return None
    for rule in CHOICE_RULES:
        if match := rule.pattern.search(said):
            return int(match.group(1)), rule.name
    return None
