"""The protocol of recorded judgments: a reply that a judge, or a person, gave elsewhere, read in the dialect it has.

How the judge was asked is not known here, so nothing of it is in the request: one step, whose reply is the record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from venire.arena.records import Conversation, Material, Preference, Reply, Request, Trial
from venire.arena.shapes import Shape
from venire.judges.conversation import read_outcome
from venire.judges.entry import REASONS_TOKENS, ProtocolEntry, ProtocolOption, ReplyExample
from venire.judges.parsing.verdict_formats import VERDICT_FORMATS, read_verdict

__all__ = ["PROMPTS", "RECORDED", "WORD", "is_verdict_format", "recorded"]

PROMPTS = ()

WORD = "word"
"""The dialect of a verdict that is on record as such: one of three words, with both scores where they are known."""

_WINNER = {"first": 1, "tie": 0, "second": -1}
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_WORD = re.compile(rf"(first|second|tie)(?: ({_NUMBER}) ({_NUMBER}))?", re.ASCII)


def is_verdict_format(name: str) -> bool:
    """Whether recorded replies can be read in this dialect."""
    return name == WORD or name in VERDICT_FORMATS


def recorded(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """One step with the recorded reply, which nobody can be asked to mend.

    Options: `dialect`, one of `VERDICT_FORMATS` or "word": `first`, `second` or `tie`, and after it perhaps the scores
    of the first and the second; the score of the outcome is then their difference.
    """
    reply = yield Request((), max_tokens=int(options["max_tokens"]), temperature=None, seed=trial.repeat)
    dialect = options.get("dialect", WORD)
    return read_outcome(reply, _read_word if dialect == WORD else _FormatReader(dialect))


class _FormatReader:
    """Reads replies in one dialect."""

    def __init__(self, dialect: str) -> None:
        self._dialect = VERDICT_FORMATS[dialect]

    def __call__(self, reply: Reply) -> tuple[Preference, str, bool] | None:
        found = read_verdict(reply.text, self._dialect)
        if found.verdict is None or found.rule is None:
            return None
        return Preference(_WINNER[found.verdict]), f"{self._dialect.name}:{found.rule}", False


def _read_word(reply: Reply) -> tuple[Preference, str, bool] | None:
    if (found := _WORD.fullmatch(reply.text)) is None:
        return None
    word, first, second = found.groups()
    score = None if first is None else float(first) - float(second)
    return Preference(_WINNER[word], score), WORD, True


RECORDED = ProtocolEntry(
    number=10,
    shape=Shape(2, Preference),
    talk=recorded,
    prompts=PROMPTS,
    folder="recorded",
    expects=(REASONS_TOKENS,),
    options={"dialect": ProtocolOption(is_verdict_format, f"a dialect: {', '.join((WORD, *VERDICT_FORMATS))}")},
    examples=(ReplyExample(("second",), Preference(-1)), ReplyExample(("first 9 5",), Preference(1, 4.0))),
)
