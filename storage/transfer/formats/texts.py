"""Prompts and answers out of the files of other tools: rows, messages, turns, and ids for texts that have none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import Any

from venire.arena.errors import InputError
from venire.arena.records import Completion, Instruction
from venire.storage.transfer.formats.source import open_table

_ROWS = 500
_HEADING = re.compile(r"^\[turn (\d+)\]\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that holds no text, since the call for it had failed where the file was made."""

    path: Path
    row: int
    why: str


Record = Instruction | Completion | Skipped
Reader = Callable[[Sequence[Path]], Iterator[Record]]


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row of a file with the cells that were asked for, as text; nested ones as JSON."""

    path: Path
    number: int
    cells: Mapping[str, str | None]

    def __contains__(self, name: str) -> bool:
        return self.cells.get(name) is not None

    def text(self, name: str) -> str:
        """A cell that must hold something; raises InputError that names file, row and column."""
        cell = self.cells.get(name)
        if not cell:
            raise self.error(f'"{name}" is empty; fill it in or leave the row out')
        return cell

    def first(self, *names: str) -> str:
        """The first of several cells that holds something; raises InputError when none does."""
        found = [self.cells[name] for name in names if self.cells.get(name)]
        return found[0] or "" if found else self.text(names[0])

    def value(self, name: str) -> Any:
        """The value of a cell's JSON, or its text where it is not JSON."""
        cell = self.cells.get(name)
        if cell is None or not cell.lstrip().startswith(("[", "{", '"')):
            return cell
        try:
            return json.loads(cell)
        except json.JSONDecodeError:
            return cell

    def error(self, problem: str) -> InputError:
        """An error about this row."""
        return InputError(f"{self.path}: row {self.number}: {problem}")


def rows(path: Path, names: Sequence[str] = ()) -> Iterator[TextRow]:
    """The rows of a file in their order, streamed, with the cells of those columns that are there, all without names.

    Raises InputError for a file that cannot be read, and for one that has none of the columns.
    """
    table = open_table(path)
    with closing(table.connection):
        there = [name for name in names or table.columns if name in table.columns]
        if not there:
            found = ", ".join(list(table.columns)[:30])
            raise InputError(f"{path}: none of the columns {', '.join(names)} is in it; columns found: {found}")
        result = table.execute(f"select {', '.join(map(table.json, there))} from {{table}}")
        number = 0
        while chunk := result.fetchmany(_ROWS):
            for cells in chunk:
                number += 1
                yield TextRow(path, number, dict(zip(there, cells, strict=True)))


def digest_id(turns: Sequence[str]) -> str:
    """A name for an instruction that has none, the same wherever its text is the same."""
    return md5("\n".join(turns).encode(), usedforsecurity=False).hexdigest()[:16]


def joined(turns: Sequence[str]) -> str | None:
    """An answer of several turns as one text under headings, as a judge is to see it; a single turn as it is.

    None where a turn holds such a heading itself, so that the turns could not be separated again.
    """
    if len(turns) == 1:
        return turns[0]
    text = "\n\n".join(f"[turn {number}]\n{turn}" for number, turn in enumerate(turns, start=1))
    return text if split(text, len(turns)) == tuple(turns) else None


def split(text: str, turns: int) -> tuple[str, ...]:
    """The turns of an answer to an instruction of so many turns; the whole text where it has no headings for them."""
    marks = list(_HEADING.finditer(text))
    if turns < 2 or [int(mark[1]) for mark in marks] != list(range(1, turns + 1)) or marks[0].start():
        return (text,)
    ends = [mark.start() - 2 for mark in marks[1:]] + [len(text)]
    return tuple(text[mark.end() : end] for mark, end in zip(marks, ends, strict=True))


def messages(row: TextRow, name: str) -> list[tuple[str, str]] | None:
    """A cell as messages, role and text, or None where it is plain text; raises InputError for another structure."""
    value = row.value(name)
    if not isinstance(value, list) or not all(isinstance(turn, dict) and "role" in turn for turn in value):
        return None
    return [(str(turn["role"]), _content(row, name, turn.get("content"))) for turn in value]


def message_turn(message: tuple[str, str]) -> str:
    """A message as a turn of a prompt: one that is not the user's begins with its role in brackets."""
    role, text = message
    return text if role == "user" else f"[{role}]\n{text}"


def turns_of(row: TextRow, name: str) -> tuple[str, ...]:
    """A cell that holds one text, a list of texts, or a list of objects with a `content`."""
    value = row.value(name)
    if isinstance(value, list):
        found = tuple(_content(row, name, turn["content"] if isinstance(turn, dict) else turn) for turn in value)
        if found:
            return found
    return (row.text(name),)


def _content(row: TextRow, name: str, content: Any) -> str:
    """The text of a message: as it is, under `answer`, or in blocks of which some hold text."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict) and isinstance(content.get("answer"), str):
        return str(content["answer"])
    if isinstance(content, list) and all(isinstance(block, dict) for block in content):
        texts = [str(block.get("text") or block.get("data") or "") for block in content if block.get("type") == "text"]
        if len(texts) == len(content):
            return "".join(texts)
        raise row.error(f'"{name}" holds a picture or a file; only texts can be judged: leave the row out')
    raise row.error(f'"{name}" holds a message without a text; fill it in or leave the row out')
