"""`venire parse` at the terminal: a table goes in, the same table comes out with what was read."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

Venire = Callable[..., Any]

ROWS = [
    {"id": "007", "Model": "a", "model": "b", "raw_output": 'Choice: A\nIt is, "really", long.'},
    {"id": "1.50", "Model": "", "model": "ü", "raw_output": "Choice: B"},
    {"id": "", "Model": "x,y", "model": "line\nbreak", "raw_output": "Both are fine."},
    {"id": "z", "Model": "\t", "model": "'", "raw_output": "> Choice: A\n\nChoice: C"},
]
READ = [("first", "ok", "named"), ("second", "ok", "named"), ("", "unreadable", ""), ("tie", "ok", "named")]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "replies.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0])
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def rows_of(text: str, delimiter: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))


def expected() -> list[dict[str, str]]:
    names = ("verdict", "status", "rule")
    return [row | dict(zip(names, read, strict=True)) for row, read in zip(ROWS, READ, strict=True)]


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_without_out_the_table_goes_to_standard_output_and_the_dialect_is_told_aside(
    venire: Venire, table: Path
) -> None:
    done = venire("parse", table)
    assert (done.code, done.err) == (0, "dialect: letter, reads 3 of 4 replies\n")
    assert rows_of(done.out) == expected()
    named = venire("parse", table, "--dialect", "letter")
    assert (named.out, named.err) == (done.out, "")


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.csv.gz", "out.tsv.gz"])
def test_a_written_table_holds_every_cell_as_it_was(venire: Venire, table: Path, name: str) -> None:
    out = table.parent / name
    done = venire("parse", table, "-o", out)
    assert done.code == 0
    assert f"{out}: 4 rows, 3 read, 1 unreadable\nfirst 1, second 1, tie 1\n" in done.out
    packed = gzip.decompress(out.read_bytes()) if name.endswith(".gz") else out.read_bytes()
    assert rows_of(packed.decode(), "\t" if "tsv" in name else ",") == expected()
    assert left_in(table.parent) == {"replies.csv", name}


def test_json_lines_keep_numbers_lists_and_texts_as_they_stand(venire: Venire, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "n": 7,
            "x": 1.0,
            "big": 12345678901234567890,
            "when": "2024-01-01",
            "l": [1, {"a": None}],
            "raw_output": "[[A]]",
        },
        {"n": 8, "x": 2.5, "big": 1, "when": "007", "l": [], "raw_output": None},
    ]
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl.gz"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = venire("parse", path, "-o", out, "--json")
    assert done.json() == {
        "table": str(path),
        "out": str(out),
        "dialect": "mt-bench",
        "dialect_chosen": True,
        "grouped_by": None,
        "groups": [{"value": None, "dialect": "mt-bench", "rows": 2, "read": 1}],
        "rows": 2,
        "read": 1,
        "unreadable": 1,
        "verdicts": {"first": 1, "second": 0, "tie": 0},
        "rules": {"brackets": 1, "boxed": 0},
    }
    text = gzip.decompress(out.read_bytes()).decode()
    assert [json.loads(line) for line in text.splitlines()] == [
        {**rows[0], "verdict": "first", "status": "ok", "rule": "brackets"},
        {**rows[1], "verdict": None, "status": "unreadable", "rule": None},
    ]
    assert '"x":1.0' in text.replace(" ", "")


def test_parquet_keeps_its_types(venire: Venire, tmp_path: Path) -> None:
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    duckdb.sql(
        "select 7::utinyint as n, [1, 2] as l, date '2024-01-01' as d, 'Output (a)' as reply from range(3)"
    ).write_parquet(str(path))
    assert venire("parse", path, "-o", out, "--map", "raw_output=reply").code == 0
    found = duckdb.read_parquet(str(out))
    assert list(zip(found.columns, map(str, found.types), strict=True))[:4] == [
        ("n", "UTINYINT"),
        ("l", "INTEGER[]"),
        ("d", "DATE"),
        ("reply", "VARCHAR"),
    ]
    assert {row[4:] for row in found.fetchall()} == {("first", "ok", "bare")}


def test_rows_stay_in_their_order_and_with_their_reading(venire: Venire, tmp_path: Path) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["n", "raw_output"])
        writer.writerows([n, f"Choice: {'AB'[n % 3 % 2]}"] for n in range(9_001))
    assert venire("parse", path, "-o", out, "--dialect", "letter").code == 0
    rows = rows_of(out.read_text())
    assert [int(row["n"]) for row in rows] == list(range(9_001))
    assert all(row["verdict"] == ("first", "second")[int(row["n"]) % 3 % 2] for row in rows)


def test_a_column_that_is_there_already_is_kept_and_the_new_ones_get_a_prefix(venire: Venire, tmp_path: Path) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("Verdict,raw_output\nsecond,1\n")
    refused = venire("parse", path, "-o", out, "--dialect", "one-two-three")
    assert refused.code == 2
    assert 'in.csv: has a column "Verdict"' in refused.err
    assert "--prefix parsed_" in refused.err
    assert left_in(tmp_path) == {"in.csv"}
    assert venire("parse", path, "-o", out, "--dialect", "one-two-three", "--prefix", "parsed_").code == 0
    assert rows_of(out.read_text()) == [
        {
            "Verdict": "second",
            "raw_output": "1",
            "parsed_verdict": "first",
            "parsed_status": "ok",
            "parsed_rule": "bare",
        }
    ]


def test_dialects_that_disagree_are_named_and_nothing_is_written(venire: Venire, tmp_path: Path) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text('raw_output\n"7 8\n\nI choose Assistant 1."\n', newline="")
    done = venire("parse", path, "-o", out)
    assert (done.code, out.exists()) == (2, False)
    assert "in.csv: several dialects" in done.err
    assert "one-two-three reads 1 of 1" in done.err
    assert "the first in row 1" in done.err
    assert "with --dialect" in done.err


def test_columns_that_differ_by_case_are_for_csv_only(venire: Venire, table: Path) -> None:
    done = venire("parse", table, "-o", table.parent / "out.parquet")
    assert (done.code, left_in(table.parent)) == (2, {"replies.csv"})
    assert "Model and model" in done.err
    assert ".csv or .tsv" in done.err


def test_a_table_that_no_dialect_reads_is_refused_but_not_where_the_user_names_one(
    venire: Venire, tmp_path: Path
) -> None:
    path = tmp_path / "in.csv"
    path.write_text("raw_output\nhm\n")
    done = venire("parse", path)
    assert (done.code, done.out) == (2, "")
    assert "in.csv: none of the dialects" in done.err
    assert rows_of(venire("parse", path, "--dialect", "prose").out)[0]["status"] == "unreadable"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("missing.csv",), "no such file"),
        (("other.csv",), 'no column "raw_output"; columns found: reply'),
        (("replies.csv", "--dialect", "leter"), "no dialect 'leter'; did you mean 'letter'? There are: zero-one-two"),
        (("replies.csv", "--dialect", "nope"), "no dialect 'nope'; there are: zero-one-two, "),
        (("replies.csv", "--map", "verdict=x"), "the one column that is read is raw_output"),
        (("replies.csv", "-o", "out.xlsx"), "out.xlsx: not a table by its name"),
        (("replies.csv", "-o", "out.parquet.gz"), "not a table by its name"),
        (("replies.csv", "-o", "nowhere/out.csv"), "its folder does not exist"),
        (("replies.csv", "-o", "folder.csv"), "a folder, not a file"),
        (("replies.csv", "--json"), "--json shows a summary, and needs -o"),
        ((), "name a table with a column raw_output"),
    ],
)
def test_bad_input_is_a_sentence_and_leaves_nothing(
    venire: Venire, table: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(table.parent)
    Path("other.csv").write_text("reply\nhm\n")
    Path("folder.csv").mkdir()
    before = left_in(table.parent)
    done = venire("parse", *arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert left_in(table.parent) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_told_of(venire: Venire, table: Path) -> None:
    shut = table.parent / "shut"
    shut.mkdir(mode=0o500)
    done = venire("parse", table, "-o", shut / "out.csv")
    assert (done.code, "cannot be written to" in done.err) == (2, True)


def test_what_fails_half_way_leaves_the_earlier_file(
    venire: Venire, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = table.parent / "out.csv"
    out.write_text("earlier")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", str(out))

    monkeypatch.setattr("os.replace", fail)
    done = venire("parse", table, "-o", out)
    assert done.code == 2
    assert "No space left on device" in done.err
    assert out.read_text() == "earlier"
    assert left_in(table.parent) == {"replies.csv", "out.csv"}


def test_the_table_of_dialects_shows_an_example_of_each_rule_and_what_is_read_from_it(venire: Venire) -> None:
    done = venire("parse", "--list")
    assert done.code == 0
    assert "mt-bench: [[A]], [[B]] or [[C]] for a tie, anywhere\n" in done.out
    assert "None" not in done.out
    listed = venire("parse", "--list", "--json").json()
    assert {"zero-one-two", "arena-hard", "alpaca-eval", "json", "scores"} <= {one["name"] for one in listed}
    assert all(one["rules"] and one["labels"] for one in listed)


def grouped(folder: Path, column: str, rows: list[tuple[str, str]]) -> Path:
    path = folder / "mixed.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([(column, "raw_output"), *rows])
    return path


MIXED = [
    ("plain", "1"),
    ("cot", "A is thorough.\n\nMy final verdict is: [[B]]"),
    ("plain", "2\nIt is shorter."),
    ("cot", "Both err. [[C]]"),
    ("plain", "0"),
    ("", "I cannot help with that."),
]


def test_prompts_of_one_table_have_their_own_dialects(venire: Venire, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    done = venire("parse", grouped(tmp_path, "prompt_style", MIXED), "-o", out)
    assert done.code == 0
    assert [row["verdict"] for row in rows_of(out.read_text())] == ["first", "second", "second", "tie", "tie", ""]
    assert "prompt_style plain: dialect: zero-one-two" in done.err
    assert "3 of 3 replies" in done.err
    assert "prompt_style cot: dialect: mt-bench" in done.err
    assert "2 of 2 replies" in done.err
    summary = venire("parse", tmp_path / "mixed.csv", "-o", out, "--json")
    groups = json.loads(summary.out)["groups"]
    assert [(one["value"], one["rows"], one["read"]) for one in groups] == [
        ("plain", 3, 3),
        ("cot", 2, 2),
        (None, 1, 0),
    ]


def test_without_such_a_column_those_left_are_mentioned(venire: Venire, tmp_path: Path) -> None:
    done = venire("parse", grouped(tmp_path, "note", MIXED))
    assert "mt-bench reads 2" in done.err
    assert "several prompts" in done.err
    assert [row["verdict"] for row in rows_of(done.out)] == ["first", "", "second", "", "tie", ""]


def test_a_column_names_the_dialect_of_each_row_and_an_unknown_one_is_refused(venire: Venire, tmp_path: Path) -> None:
    dialects = {"plain": "one-two-three", "cot": "mt-bench", "": ""}
    rows = [(dialects[style], text) for style, text in [*MIXED, ("plain", "3")]]
    done = venire("parse", grouped(tmp_path, "dialect", rows))
    assert [row["verdict"] for row in rows_of(done.out)] == ["first", "second", "second", "tie", "", "", "tie"]
    refused = venire("parse", grouped(tmp_path, "dialect", [("mt-bench", "[[A]]"), ("mtbench", "[[B]]")]))
    assert refused.code == 2
    assert "row 2: no dialect 'mtbench'; did you mean 'mt-bench'" in refused.err
    assert "did you mean 'mt-bench'?" in refused.err
    assert "--dialect" in refused.err
    assert venire("parse", tmp_path / "mixed.csv", "--dialect", "mt-bench").code == 0


def test_a_style_of_each_row_is_no_style(venire: Venire, tmp_path: Path) -> None:
    done = venire("parse", grouped(tmp_path, "prompt_style", [(f"p{n}", "[[A]]") for n in range(51)]))
    assert done.err.startswith("prompt_style has 51 values, more than 50: all replies are read in one dialect\n")
    assert {row["verdict"] for row in rows_of(done.out)} == {"first"}


def test_a_table_of_which_half_is_not_read_ends_with_5_and_the_dialect_that_reads_more(
    venire: Venire, tmp_path: Path
) -> None:
    table, out = tmp_path / "replies.csv", tmp_path / "out.csv"
    table.write_text('raw_output\n"[[A]]"\n"[[B]]"\n"[[A]]"\nhm\n')
    done = venire("parse", table, "--dialect", "json", "-o", out)
    assert done.code == 5
    assert out.exists()
    assert "0 of 4 replies were read; mt-bench reads 3" in done.err
    proposed = done.err.rpartition(": venire ")[2]
    assert venire(*proposed.split()).code == 0
