"""CSV and TSV on their way out, and what undoes it on their way in.

A spreadsheet computes a cell that begins like a formula, and what models and people wrote may begin so: such a text
gets an apostrophe before it, as do texts that begin with apostrophes before one, so that taking one away gives each
text back. Numbers and white space are no formulas: `-1.5` stays.

Our own files are known by how their header is spelt: the first name that needs no quotes has them, all others have not.
To a reader of CSV that says nothing, and no other program writes it, so that a foreign file in which an answer begins
with `'-` is never changed: of other texts other trials would be made, and paid for again. A file of one column cannot
be told from one in which everything is in quotes, and is read as it is; so is one that a spreadsheet saved again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TextIO

_FORMULA = r"'*[=+\-@\t\r]"
_HARMLESS = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|\s+"
_RISKY = re.compile(_FORMULA)
_KEPT = re.compile(_HARMLESS)
_UNSAFE = {delimiter: re.compile(rf"{_FORMULA}|(?s:.*)[\"\r\n{delimiter}]") for delimiter in (",", "\t")}
"""Finds at a text's beginning what cannot be written as it is."""


def write_rows(
    file: TextIO, names: Sequence[str], rows: Iterable[Iterable[object]], delimiter: str = ",", *, raw: bool = False
) -> None:
    """Write a header and rows; texts that begin like formulas are neutralised, unless `raw`. None is an empty cell."""
    file.write(header_line(names, delimiter, raw=raw) + "\n")
    write_cells(file, rows, delimiter, raw=raw)


def write_cells(file: TextIO, rows: Iterable[Iterable[object]], delimiter: str = ",", *, raw: bool = False) -> None:
    """Write rows without a header, as `write_rows` does."""
    file.writelines(_line(row, delimiter, raw=raw) for row in rows)


def header_line(names: Sequence[str], delimiter: str = ",", *, raw: bool = False) -> str:
    """The first line of a file, without its end: marked as ours, unless `raw`."""
    cells = [_cell(name, delimiter, raw=raw) for name in names]
    if not raw and (plain := _plain(cells)):
        cells[plain[0]] = f'"{cells[plain[0]]}"'
    return delimiter.join(cells)


def is_neutralised(line: str, names: Sequence[str], delimiter: str) -> bool:
    """Whether the first line of a file, with `names` as its cells, is one that was written here and not `raw`."""
    if delimiter not in _UNSAFE:
        return False
    as_they_were = [restored(name) for name in names]
    cells = [_cell(name, delimiter, raw=False) for name in as_they_were]
    return len(_plain(cells)) > 1 and line.rstrip("\r\n") == header_line(as_they_were, delimiter)


def _plain(cells: Sequence[str]) -> list[int]:
    """Where cells are without quotes."""
    return [number for number, cell in enumerate(cells) if not cell.startswith('"')]


def restored(text: str) -> str:
    """A text of a neutralised file as it was."""
    return text[1:] if text.startswith("'") and _RISKY.match(text) else text


def neutral_sql(column: str) -> str:
    """SQL for a column of texts, neutralised."""
    risky = f"regexp_matches({column}, '^{_in_sql(_FORMULA)}') and not regexp_full_match({column}, '{_HARMLESS}')"
    return f"case when {risky} then '''' || {column} else {column} end"


def restored_sql(column: str) -> str:
    """SQL for a column of texts of a neutralised file, as they were."""
    risky = f"starts_with({column}, '''') and regexp_matches({column}, '^{_in_sql(_FORMULA)}')"
    return f"case when {risky} then substr({column}, 2) else {column} end"


def _line(cells: Iterable[object], delimiter: str, *, raw: bool) -> str:
    line = delimiter.join(_cell(cell, delimiter, raw=raw) for cell in cells)
    return f"{line}\n" if line else '""\n'  # a lone empty cell is a row


def _cell(value: object, delimiter: str, *, raw: bool) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    if not value:
        return '""'
    if not _UNSAFE[delimiter].match(value):
        return value
    text = value if raw or not _RISKY.match(value) or _KEPT.fullmatch(value) else f"'{value}"
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ('"', "\r", "\n", delimiter)) else text


def _in_sql(pattern: str) -> str:
    return pattern.replace("'", "''")
