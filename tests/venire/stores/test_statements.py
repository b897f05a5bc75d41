"""A command opens its store once, and reads each fact of it once until something is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.venire.conftest import Done
from venire.storage.store import opening
from venire.storage.store.connection import query

AGAIN = {query("read_store")}
"""What is read twice all the same: the format of a file, before it is opened as a store."""


@dataclass
class Statements:
    """What was asked of stores: how often one was opened, and what was read again with nothing written in between."""

    opened: int = 0
    read: Counter[tuple[str, str]] = field(default_factory=Counter)
    again: list[str] = field(default_factory=list)
    within: bool = False
    """Whether a transaction is under way, which reads what it wrote itself."""

    def note(self, sql: str, values: Any) -> None:
        """Note a statement with its parameters."""
        if sql == query("insert_ledger") and values["written"]:
            self.read.clear()
        plain = re.sub(r"--.*", "", sql).split(maxsplit=1)[0]
        if self.within or plain not in ("select", "with", "from") or sql in AGAIN:
            return
        self.read[sql, repr(values)] += 1
        if self.read[sql, repr(values)] > 1:
            self.again.append(sql)


class Watched:
    """A connection whose statements are noted."""

    def __init__(self, connection: Any, statements: Statements) -> None:
        self._connection, self._statements = connection, statements

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def cursor(self) -> Watched:
        return Watched(self._connection.cursor(), self._statements)

    def begin(self) -> None:
        self._connection.begin()
        self._statements.within = True

    def commit(self) -> None:
        self._connection.commit()
        self._statements.within = False

    def execute(self, sql: str, values: Any = ()) -> Any:
        self._statements.note(sql, values)
        return self._connection.execute(sql, values)


@pytest.fixture
def campaign(judged: Callable[..., Path]) -> Path:
    """The file of a campaign that has ended."""
    return judged()


@pytest.fixture
def statements(campaign: Path, monkeypatch: pytest.MonkeyPatch) -> Statements:
    """What is asked of every store that is opened from now on."""
    found, connect = Statements(), opening.connect

    def watched(*parts: Any, **named: Any) -> Watched:
        found.opened += 1
        return Watched(connect(*parts, **named), found)

    monkeypatch.setattr(opening, "connect", watched)
    return found


@pytest.mark.parametrize(
    "words",
    [["run", "--yes"], ["plan"], ["status"], ["rate"], ["audit"], ["report", "--format", "md"]],
    ids=lambda words: words[0],
)
def test_a_command_opens_its_store_once_and_reads_nothing_twice_before_it_is_written(
    venire: Callable[..., Done], campaign: Path, statements: Statements, words: list[str]
) -> None:
    verb, *options = words
    done = venire(verb, campaign, *options)
    assert (done.code, statements.opened) == (0, 1)
    assert statements.read
    assert statements.again == []
