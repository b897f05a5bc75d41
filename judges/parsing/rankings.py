"""Reading an order of labelled answers, best first, out of a reply.

The first rule that matches wins. A reply is read when it states one order, of as many answers as were asked for, each
one of those shown and none twice. Ties are no order; two different orders in one reply are none either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from venire.judges.parsing.reply_text import MASK, read_reply_text

Labels = list[str]

_WRAPPING = " \t\"'`*_()#"
_NOUN = re.compile(r"(?:answer|completion|response|option)[ _]", re.IGNORECASE)
_TITLE = re.compile(
    r"(?:(?:my|the|final|full|overall) )*(?:ranking|ranked answers|order)"
    r"(?:,? (?:\()?(?:from )?best (?:first|to worst)\)?)?[\"'`*_]{0,4}(?: is)? ?[:=]?",
    re.IGNORECASE,
)
_PLACE = re.compile(r"([0-9]{1,4}) ?[.):] ?(.+)", re.ASCII)
_SENTENCE_END = re.compile(r"[.!?][\"'`*_)\]]*\Z")
_SAYS = re.compile(r"[\w\[\]{}]")
_KEYS = frozenset({"ranking", "order", "best", "answer"})


@dataclass(frozen=True, slots=True)
class RankingRule:
    """One way in which judges write an order: the reply's lines in, labels from the best on or None out."""

    name: str
    read: Callable[[list[str]], Labels | None]
    example: str


def _label(text: str) -> str:
    """A label without its wrapping; what is no label is left as it is and fails later."""
    bare = text.strip(_WRAPPING + "[]")
    return _NOUN.sub("", bare, count=1).strip(_WRAPPING) if _NOUN.match(bare) else bare


def _list(text: str) -> Labels | None:
    """A list of JSON, alone or as the only value of an object."""
    if not text.startswith(("[", "{")):
        return None
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(given, dict) and len(given) == 1:
        given = next((order for name, order in given.items() if name.casefold() in _KEYS), None)
    if not isinstance(given, list) or not all(type(label) in (str, int) for label in given):
        return None
    return [_label(str(label)) for label in given]


def _row(line: str) -> Labels | None:
    """Labels on one line, joined by >, or after a title by commas; a single one where one was asked for."""
    rest = line.strip(_WRAPPING).rstrip(".")
    if (title := _TITLE.match(rest)) is not None:
        rest = rest[title.end() :].strip(_WRAPPING)
    if (listed := _list(rest)) is not None:
        return listed
    if "," in rest and ">" not in rest:
        return [_label(part) for part in rest.split(",")] if title else None
    return [_label(part) for part in rest.split(">")]


def _column(lines: list[str]) -> Labels | None:
    """Lines numbered from 1 on without a gap, each with one label."""
    places = [_PLACE.fullmatch(line.strip(_WRAPPING)) for line in lines]
    if not places or not all(place and int(place[1]) == number for number, place in enumerate(places, 1)):
        return None
    return [_label(place[2].rstrip(".")) for place in places if place]


def _ends_well(lines: list[str]) -> bool:
    """Whether an order follows nothing, a whole sentence or a title; half a sentence may reverse its meaning."""
    return not lines or bool(_SENTENCE_END.search(lines[-1]) or _TITLE.fullmatch(lines[-1].strip(_WRAPPING)))


def _json(lines: list[str]) -> Labels | None:
    return _list("\n".join(lines))


def _one_row(lines: list[str]) -> Labels | None:
    return _row(lines[0]) if len(lines) == 1 else None


def _one_column(lines: list[str]) -> Labels | None:
    return _column(lines[1:] if _TITLE.fullmatch(lines[0].strip(_WRAPPING)) else lines)


def _last_row(lines: list[str]) -> Labels | None:
    return _row(lines[-1]) if len(lines) > 1 and _ends_well(lines[:-1]) else None


def _last_column(lines: list[str]) -> Labels | None:
    first = max((number for number, line in enumerate(lines) if _numbered_one(line)), default=len(lines))
    return _column(lines[first:]) if _ends_well(lines[:first]) else None


def _numbered_one(line: str) -> bool:
    return (place := _PLACE.fullmatch(line.strip(_WRAPPING))) is not None and place[1] == "1"


RANKING_RULES = (
    RankingRule("json", _json, '{"ranking": ["B", "A", "C"]}'),
    RankingRule("row", _one_row, "B > A > C"),
    RankingRule("column", _one_column, "1. B\n2. A\n3. C"),
    RankingRule("last-row", _last_row, "B is right and A is nearly so.\nB > A > C"),
    RankingRule("last-column", _last_column, "B is right.\n1. B\n2. A\n3. C"),
)

WHOLE_RANKINGS = frozenset({"json", "row"})
"""Rules that read a reply which is nothing but its order."""


def read_ranking(text: str, labels: Sequence[str], best: int | None = None) -> tuple[tuple[int, ...], str] | None:
    """Places in `labels` of the answers ranked, from the best on, and the rule that read them; None when none does.

    `best` is how many were asked for, None for all. An order that the reply only quotes is not the judge's own.

    >>> read_ranking("B > A > C", ["A", "B", "C"])
    ((1, 0, 2), 'row')
    """
    if (said := read_reply_text(text)) is None:
        return None
    own = [line for line in said.unmasked if _SAYS.search(line)]
    lines = [line for line in said.lines if _SAYS.search(line) or MASK in line]
    if said.block is not None and _list(said.block.strip()) is not None:
        own = lines = said.block.strip().splitlines()  # JSON in a block that ends the reply is how it was asked for
    elif len(own) == 1 or _json(own) is not None:
        lines = own
    if not lines:
        return None
    place = {label.casefold(): number for number, label in enumerate(labels)}
    wanted = len(labels) if best is None else min(best, len(labels))
    rows = {tuple(row) for line in own if (row := _known(_row(line), place)) is not None and len(row) >= wanted}
    for rule in RANKING_RULES:
        if (order := _known(rule.read(lines), place)) is None:
            continue
        if len(set(order)) != wanted or len(order) != wanted or rows - {tuple(order)}:
            return None
        return tuple(order), rule.name
    return None


def _known(order: Labels | None, place: dict[str, int]) -> list[int] | None:
    """An order in places; None where one of its labels is not of those shown."""
    found = [place.get(label.casefold()) for label in order or ()]
    return None if not found or None in found else [number for number in found if number is not None]
