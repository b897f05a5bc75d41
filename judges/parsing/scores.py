"""Reading scores on named criteria for two answers, and a preference, out of a reply that holds one JSON object.

The object is {"first": {criterion: score, ...}, "second": {...}, "preference": "first", "second" or "tie"}. Scores are
1 to 10, half steps included, as numbers or as texts that are numbers. One criterion missing, out of range or given
twice, and nothing is read. Whatever else the object holds is no score and is passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from venire.judges.parsing.reply_text import without_thoughts

_LOWEST, _HIGHEST = 1, 10
_NUMBER = re.compile(r"\s*[0-9]{1,2}(?:\.[05])?\s*", re.ASCII)
_WINNER = {"first": 1, "second": -1, "tie": 0}
_OBJECT = re.compile(r"\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+\}")
"""An object with objects in it and none in those: deep nesting is not read, and takes no time."""
_BLOCK = re.compile(r"^```[a-z]*[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of the first and the second answer on each criterion in the order asked, and +1, 0 or -1."""

    pairs: tuple[tuple[float, float], ...]
    winner: int


@dataclass(frozen=True, slots=True)
class ScoreRule:
    """One place where judges put the object: the reply in, the text of the object or None out."""

    name: str
    find: Callable[[str], str | None]
    example: str


def _whole_reply(text: str) -> str | None:
    return text if _OBJECT.fullmatch(text) else None


def _in_block(text: str) -> str | None:
    """In the only code block of a reply; the prose around it is not scored."""
    blocks = _BLOCK.findall(text)
    return blocks[0].strip() if len(blocks) == 1 else None


def _at_start(text: str) -> str | None:
    """Before an explanation."""
    return match.group() if (match := _OBJECT.match(text)) else None


def _at_end(text: str) -> str | None:
    """After a few words, from the beginning of a line to the end of the reply."""
    start = text.find("\n{")
    return _whole_reply(text[start + 1 :]) if start >= 0 and "{" not in text[:start] else None


_EXAMPLE = '{"first": {"clarity": 7}, "second": {"clarity": 4}, "preference": "first"}'
SCORE_RULES = (
    ScoreRule("json", _whole_reply, _EXAMPLE),
    ScoreRule("json-in-block", _in_block, f"```json\n{_EXAMPLE}\n```"),
    ScoreRule("json-first", _at_start, f"{_EXAMPLE}\n\nThe second one is hard to follow."),
    ScoreRule("json-last", _at_end, f"Here are the scores.\n{_EXAMPLE}"),
)


def read_scores(text: str, criteria: Sequence[str]) -> tuple[Scores, str] | None:
    """The scores in a reply and the name of the rule that read them, or None when no rule reads them.

    >>> read_scores('{"first": {"clarity": 7}, "second": {"clarity": 4}, "preference": "first"}', ["clarity"])
    (Scores(pairs=((7.0, 4.0),), winner=1), 'json')
    """
    said = (without_thoughts(text) or "").strip()
    found = [(rule.name, place) for rule in SCORE_RULES if (place := rule.find(said)) is not None]
    if not found:
        return None
    name, place = found[0]
    objects = [match.group() for match in _OBJECT.finditer(said)]
    read = {text: _read(text, criteria) for text in dict.fromkeys([place, *objects])}  # mostly one and the same
    if len({scores for text in objects if (scores := read[text])}) > 1:
        return None
    return None if (scores := read[place]) is None else (scores, name)


def _read(text: str, criteria: Sequence[str]) -> Scores | None:
    try:
        given = json.loads(text, object_pairs_hook=_unique_names, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # lists may stand in lists as deep as a reply is long
        return None
    if not isinstance(given, dict):
        return None
    preference = given.get("preference")
    winner = _WINNER.get(preference.strip().casefold()) if isinstance(preference, str) else None
    sides = [_side(given.get(side), criteria) for side in ("first", "second")]
    if winner is None or sides[0] is None or sides[1] is None:
        return None
    return Scores(tuple(zip(sides[0], sides[1], strict=True)), winner)


def _side(given: object, criteria: Sequence[str]) -> list[float] | None:
    if not isinstance(given, dict):
        return None
    scores = [_score(given.get(name)) for name in criteria]
    return None if None in scores else [score for score in scores if score is not None]


def _score(given: object) -> float | None:
    if isinstance(given, str) and _NUMBER.fullmatch(given):
        given = float(given)
    if type(given) is not int and type(given) is not float:  # no bool, which is an int to isinstance
        return None
    return float(given) if _LOWEST <= given <= _HIGHEST and given * 2 % 1 == 0 else None


def _unique_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
