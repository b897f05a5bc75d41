"""Verdicts that stand in a reply without being the judge's own are not read; replies that look like them are."""

from __future__ import annotations

import pytest

from tests.judges.quoted_replies import DECIDED, HELD, QUOTED
from venire.judges import PROTOCOLS
from venire.judges.parsing.choices import read_choice
from venire.judges.parsing.letters import read_word
from venire.judges.parsing.verdict_formats import VERDICT_FORMATS, read_verdict
from venire.judges.protocols import direct, five_point

_WINNERS = {"first": 1, "second": 2, "tie": 0, None: None}


def read(dialect: str, text: str) -> int | None:
    """The winner that a dialect or a protocol reads: 1, 2, or 0 for a tie; None for none."""
    if dialect in VERDICT_FORMATS:
        return _WINNERS[read_verdict(text, VERDICT_FORMATS[dialect]).verdict]
    words = {"five-point": five_point._LABELS, "direct": direct._GRADES}[dialect]
    found = read_word(text, words)
    if found is None:
        return None
    return found[0] if dialect == "direct" else {1: 1, -1: 2, 0: 0}[(found[0] > 0) - (found[0] < 0)]


def cases(table: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(dialect, text) for dialect, texts in table.items() for text in texts]


@pytest.mark.parametrize(("dialect", "text"), [*cases(QUOTED), *cases(HELD)])
def test_a_verdict_that_is_anothers_is_not_read(dialect: str, text: str) -> None:
    assert read(dialect, text) is None
    if dialect == "zero-one-two":
        assert read_choice(text) is None


@pytest.mark.parametrize(
    ("dialect", "text", "winner"),
    [(dialect, text, winner) for dialect, texts in DECIDED.items() for text, winner in texts.items()],
)
def test_a_reply_that_decides_is_read(dialect: str, text: str, winner: int) -> None:
    assert read(dialect, text) == winner


def test_every_dialect_or_protocol_of_the_cases_exists() -> None:
    assert {*QUOTED, *HELD, *DECIDED} <= {*VERDICT_FORMATS, *PROTOCOLS}
