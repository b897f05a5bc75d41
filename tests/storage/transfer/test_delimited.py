"""CSV on its way out holds no formulas, and our reader gives all texts back; foreign files are read as they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.storage.transfer.delimited import header_line, neutral_sql, restored_sql, write_rows
from venire.storage.transfer.formats.source import open_table

FORMULAS = ["=cmd|'/c calc'!A0", "+1+1", "-2-3", "@SUM(1+1)", "\tx", "\r=x", "'=x", "''-x", "- item", "-\n-"]
HARMLESS = ["-1.5", "+3", "-.5e-3", "a=b", "'a", "'", "", "\t", "x,y", 'a "b"', "line\r\nbreak"]
TEXTS = st.text(st.sampled_from("'=+-@\t\r\n,\"a1 ."), max_size=6)


def read(path: Path) -> list[tuple[str | None, ...]]:
    table = open_table(path)
    try:
        cells = ", ".join(table.text(name) for name in table.columns)
        return [tuple(table.columns), *table.execute(f"select {cells} from {{table}}").fetchall()]
    finally:
        table.connection.close()


def written(path: Path, names: list[str], rows: list[tuple[object, ...]], *, raw: bool = False) -> list[list[str]]:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, names, rows, delimiter, raw=raw)
    return list(csv.reader(io.StringIO(path.read_bytes().decode(), newline=""), delimiter=delimiter))


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_no_cell_begins_like_a_formula_and_each_is_read_back_as_it_was(tmp_path: Path, name: str) -> None:
    rows = [(text, -1.5) for text in (*FORMULAS, *HARMLESS)]
    head, *cells = written(tmp_path / name, ["=model", "score"], rows)
    assert head == ["'=model", "score"]
    assert [cell[0] for cell in cells[: len(FORMULAS)]] == [f"'{text}" for text in FORMULAS]
    assert [cell[0] for cell in cells[len(FORMULAS) :]] == HARMLESS
    assert {cell[1] for cell in cells} == {"-1.5"}
    assert read(tmp_path / name) == [("=model", "score"), *((text or None, "-1.5") for text, _ in rows)]


def test_raw_keeps_texts_and_is_not_taken_for_neutralised(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [(text, "x") for text in FORMULAS]
    assert written(tmp_path / "x.csv", ["a", "b"], rows, raw=True)[1:] == [[text, "x"] for text in FORMULAS]
    assert read(tmp_path / "x.csv")[1:] == rows


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a,b", "c"), ("a", "b,c")])
def test_a_foreign_file_is_read_as_it_is(tmp_path: Path, names: tuple[str, ...], quoting: int) -> None:
    """Another text would be another trial, which is paid for again."""
    row = ("'-x' is no word", "'=1")[: len(names)]
    with (tmp_path / "x.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=quoting).writerows([names, row])  # type: ignore[arg-type]
    assert read(tmp_path / "x.csv") == [names, row]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


@given(text=TEXTS)
def test_sql_and_python_neutralise_alike_and_both_undo_it(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    file = io.StringIO(newline="")
    write_rows(file, ["a", "b"], [(text, 1)])
    (_, (cell, _)) = csv.reader(io.StringIO(file.getvalue(), newline=""))
    query = f"select {neutral_sql('a')}, {restored_sql(neutral_sql('a'))} from (select ? as a)"
    assert connection.execute(query, [text]).fetchone() == (cell, text)


def test_the_header_of_our_files_says_nothing_to_others() -> None:
    assert header_line(["model", "a b", "x,y"]) == '"model",a b,"x,y"'
    assert header_line(["model", "elo"], raw=True) == "model,elo"
