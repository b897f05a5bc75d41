"""Instructions, completions and ratings come out of plain tables as they stand there, or a row is named."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from zipfile import ZipFile

import duckdb
import pytest

from venire.arena.choices import TableKind
from venire.arena.errors import InputError
from venire.arena.records import Completion, Instruction, Rating
from venire.storage.transfer.formats.source import open_table
from venire.storage.transfer.formats.tables import read, unrated

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        data = text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return written


def parquet(path: Path, query: str) -> Path:
    """A Parquet file of a query's rows."""
    with duckdb.connect() as connection:
        connection.sql(query).write_parquet(str(path))
    return path


def refusal(path: Path, kind: TableKind, mapping: Mapping[str, str] = {}) -> str:
    with pytest.raises(InputError) as caught:
        list(read(path, kind, mapping))
    assert str(path) in str(caught.value)
    return str(caught.value)


CSV = 'instruction_id,instruction,category,reference\n007,Say hi,greeting,\n8,"Two\nlines, ""quoted""",,Yes\n'
JSON = [
    {"instruction_id": "007", "instruction": "Say hi", "category": "greeting", "reference": None},
    {"instruction_id": 8, "instruction": 'Two\nlines, "quoted"', "reference": "Yes"},
]
ROWS = [Instruction("007", ("Say hi",), None, "greeting"), Instruction("8", ('Two\nlines, "quoted"',), "Yes")]


@pytest.mark.parametrize("name", ["i.csv", "I.CSV", "i.csv.gz", "i.v2.csv"])
def test_csv_cells_stay_the_text_they_are(write: Write, name: str) -> None:
    assert list(read(write(name, CSV), "instructions")) == ROWS


@pytest.mark.parametrize("name", ["i.tsv", "i.tsv.gz"])
def test_tsv_is_read_like_csv(write: Write, name: str) -> None:
    header = "instruction_id\tinstruction\tcategory\treference\n"
    text = header + '007\tSay hi\tgreeting\t\n8\t"Two\nlines, ""quoted"""\t\tYes\n'
    assert list(read(write(name, text), "instructions")) == ROWS


@pytest.mark.parametrize("name", ["i.jsonl", "i.ndjson", "i.json", "i.jsonl.gz", "i.json.gz"])
def test_json_lines_are_read_with_absent_keys_as_none(write: Write, name: str) -> None:
    text = "".join(json.dumps(row) + "\n" for row in JSON)
    assert list(read(write(name, text), "instructions")) == ROWS


def test_a_json_array_is_read(write: Write) -> None:
    assert list(read(write("i.json", json.dumps(JSON, indent=1)), "instructions")) == ROWS


def test_parquet_is_read_with_numbers_as_plain_decimal_ids(tmp_path: Path) -> None:
    path = parquet(tmp_path / "i.parquet", "select 12345678901234567 as instruction_id, 'x' as instruction")
    assert list(read(path, "instructions")) == [Instruction("12345678901234567", ("x",))]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("7::double", "7"),
        ("-0.0::double", "0"),
        ("1e15::double", "1000000000000000"),
        ("7.50::decimal(9,2)", "7.50"),
        ("7.00::decimal(9,2)", "7"),
        ("0.5::float", "0.5"),
        ("'007'", "007"),
        ("'7.0'", "7.0"),
        ("7::utinyint", "7"),
    ],
)
def test_an_id_of_any_type_meets_the_same_id_of_another(tmp_path: Path, value: str, text: str) -> None:
    path = parquet(tmp_path / "c.parquet", f"select 'm' as model, {value} as instruction_id, 'x' as completion")
    assert list(read(path, "completions")) == [Completion("m", text, "x")]


def test_text_that_looks_like_a_date_or_a_uuid_is_not_rewritten(write: Write) -> None:
    ids = ["2024-1-01", "2024-01-01", "550E8400-E29B-41D4-A716-446655440000", "1e3", "true", "NULL", "NA", " a "]
    text = "".join(json.dumps({"instruction_id": each, "instruction": each}) + "\n" for each in ids)
    assert [row.id for row in read(write("i.jsonl", text), "instructions") if isinstance(row, Instruction)] == ids
    lines = "instruction_id,instruction\n" + "".join(f"{each},{each}\n" for each in ids)
    assert [row.id for row in read(write("i.csv", lines), "instructions") if isinstance(row, Instruction)] == ids


def test_lines_that_look_like_comments_and_a_byte_order_mark_are_data_and_none(write: Write) -> None:
    path = write("e.csv", "\ufeffmodel,elo\r\n#a,1\r\n// b,2\r\n")
    assert list(read(path, "elo")) == [Rating("#a", 1.0), Rating("// b", 2.0)]


def test_a_mapping_renames_columns(write: Write) -> None:
    path = write("c.csv", 'LLM,prompt id,out"put\nm,1,x\n'.replace('out"put', '"out""put"'))
    mapping = {"model": "LLM", "instruction_id": "prompt id", "completion": 'out"put'}
    assert list(read(path, "completions", mapping)) == [Completion("m", "1", "x")]


def test_column_names_that_differ_only_in_case_are_two_columns(write: Write) -> None:
    assert list(read(write("e.csv", "Model,model,elo\nx,a,1\n"), "elo")) == [Rating("a", 1.0)]


def test_the_name_of_a_file_is_never_a_pattern(write: Write, tmp_path: Path) -> None:
    write("m1x.csv", "model,elo\nwrong,1\n")
    assert list(read(write("m[1]*.csv", "model,elo\nright,1\n"), "elo")) == [Rating("right", 1.0)]
    (tmp_path / "model=folder").mkdir()
    assert list(read(write("model=folder/e.csv", "model,elo\nright,1\n"), "elo")) == [Rating("right", 1.0)]


def test_an_empty_completion_is_a_completion(write: Write, tmp_path: Path) -> None:
    expected = [Completion("m", "1", "")]
    for cell in ("", '""'):
        assert list(read(write("c.csv", f"model,instruction_id,completion\nm,1,{cell}\n"), "completions")) == expected
    line = '{"model": "m", "instruction_id": 1, "completion": ""}\n'
    assert list(read(write("c.jsonl", line), "completions")) == expected
    query = "select 'm' as model, 1 as instruction_id, '' as completion"
    assert list(read(parquet(tmp_path / "c.parquet", query), "completions")) == expected


def test_a_null_completion_is_refused_with_its_row(write: Write) -> None:
    lines = [{"model": "m", "instruction_id": n, "completion": "x" if n < 3 else None} for n in range(1, 4)]
    message = refusal(write("c.jsonl", "".join(json.dumps(line) + "\n" for line in lines)), "completions")
    assert 'row 3: "completion" is null' in message


@pytest.mark.parametrize(
    ("kind", "text", "column"),
    [
        ("instructions", "instruction_id,instruction\n1,x\n,y\n", "instruction_id"),
        ("instructions", "instruction_id,instruction\n1,x\n2,\n", "instruction"),
        ("completions", "model,instruction_id,completion\nm,1,x\n,2,x\n", "model"),
        ("completions", "model,instruction_id,completion\nm,1,x\nm,,x\n", "instruction_id"),
        ("elo", "model,elo\nm,1\n,2\n", "model"),
    ],
)
def test_an_empty_required_cell_is_refused_with_its_row(write: Write, kind: TableKind, text: str, column: str) -> None:
    assert f'row 2: "{column}" is empty' in refusal(write("t.csv", text), kind)


def test_an_empty_id_is_as_bad_as_none(tmp_path: Path) -> None:
    path = parquet(tmp_path / "i.parquet", "select '' as instruction_id, 'x' as instruction")
    assert 'row 1: "instruction_id" is empty' in refusal(path, "instructions")


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    (tmp_path / "elo=7").mkdir()
    path = parquet(tmp_path / "elo=7" / "e.parquet", "select 'm' as model, 5 as rating")
    assert 'no column "elo"; columns found: model, rating' in refusal(path, "elo")


def test_rows_without_an_elo_are_left_out_and_counted(write: Write) -> None:
    path = write("e.csv", "model,elo\na,1200.5\nb,\nc,900\n")
    assert list(read(path, "elo")) == [Rating("a", 1200.5), Rating("c", 900.0)]
    assert unrated(path) == 1
    assert unrated(path, {"elo": "model"}) == 0


def test_a_table_without_any_elo_is_refused(write: Write) -> None:
    assert "is empty in every row" in refusal(write("e.csv", "model,elo\na,\nb,\n"), "elo")


@pytest.mark.parametrize("value", ["nan", "inf", "-Infinity", "1e999", "high", "12,5", "true", "null"])
def test_an_elo_that_is_no_finite_number_is_refused_with_its_row(write: Write, value: str) -> None:
    message = refusal(write("e.csv", f'model,elo\na,1000\nb,"{value}"\n'), "elo")
    assert f'row 2: "elo" is "{value}"; accepted: a number of Elo points' in message


def test_a_parquet_elo_keeps_every_bit_and_its_nan_is_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "e.parquet", "select 'm' as model, 1000.1::double / 3 as elo")
    assert list(read(path, "elo")) == [Rating("m", 1000.1 / 3)]
    assert 'is "nan"' in refusal(parquet(tmp_path / "n.parquet", "select 'm' as model, 'nan'::double as elo"), "elo")


@pytest.mark.parametrize(
    ("kind", "text", "named"),
    [
        ("instructions", "instruction_id,instruction\n1,x\n2,y\n3,z\n2,w\n2,v\n", 'instruction_id "2"'),
        (
            "completions",
            "model,instruction_id,completion\na,2,x\nm,2,y\nm,1,y\nm,2,z\n",
            'model "m", instruction_id "2"',
        ),
        ("elo", "model,elo\na,1\nm,2\nb,1\nm,2\n", 'model "m"'),
    ],
)
def test_a_duplicate_is_refused_with_both_rows(write: Write, kind: TableKind, text: str, named: str) -> None:
    assert f"{named} stands in row 2 and again in row 4" in refusal(write("t.csv", text), kind)


def test_duplicates_and_columns_are_refused_before_the_first_record(write: Write) -> None:
    with pytest.raises(InputError, match="again in row 2"):
        read(write("e.csv", "model,elo\na,1\na,2\n"), "elo")
    with pytest.raises(InputError, match="no column"):
        read(write("f.csv", "model,rating\na,1\n"), "elo")


def test_numeric_ids_that_read_the_same_are_duplicates(tmp_path: Path) -> None:
    query = "select 'x' as instruction, unnest([1.0::double, 2, 1]) as instruction_id"
    message = refusal(parquet(tmp_path / "i.parquet", query), "instructions")
    assert 'instruction_id "1" stands in row 1 and again in row 3' in message


def test_a_model_may_stand_again_without_an_elo(write: Write) -> None:
    assert list(read(write("e.csv", "model,elo\na,\na,1\na,\n"), "elo")) == [Rating("a", 1.0)]


def test_a_missing_column_is_refused_with_those_found_and_the_nearest(write: Write) -> None:
    path = write("e.csv", "model,win_rate,arena_elo_2024\nm,1,2\n")
    message = refusal(path, "elo")
    assert 'no column "elo"; columns found: model, win_rate, arena_elo_2024.' in message
    assert message.endswith('mapping={"elo": "arena_elo_2024"}')
    assert refusal(path, "elo", {"elo": "arena_elo_2042"}).endswith('mapping={"elo": "arena_elo_2024"}')
    assert refusal(path, "completions").endswith('mapping={"instruction_id": "COLUMN"}')


def test_a_mapped_optional_column_must_be_there(write: Write) -> None:
    path = write("i.csv", "instruction_id,instruction\n1,x\n")
    assert 'no column "kind"' in refusal(path, "instructions", {"category": "kind"})


def test_a_mapping_of_a_column_that_is_not_ours_is_refused(write: Write) -> None:
    message = refusal(write("e.csv", "model,elo\nm,1\n"), "elo", {"rating": "elo"})
    assert '"rating"' in message
    assert message.endswith("here are: model, elo")


@pytest.mark.parametrize("name", ["e.csv", "e.tsv"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_looked_for_whatever_the_name_of_the_file(write: Write, name: str, delimiter: str) -> None:
    text = f'model{delimiter}elo\n"a, b; c | d"{delimiter}1\n'
    assert list(read(write(name, text), "elo")) == [Rating("a, b; c | d", 1.0)]


def test_cells_without_a_delimiter_are_told_from_a_missing_column(write: Write) -> None:
    assert "separated by commas" in refusal(write("e.csv", "model elo\nm 1\n"), "elo")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("name", ["i.csv", "i.jsonl"])
def test_a_table_in_utf_16_is_read_with_and_without_a_mark(tmp_path: Path, name: str, encoding: str) -> None:
    text = {
        "i.csv": "instruction_id,instruction\n1,Grüße an alle\n",
        "i.jsonl": '{"instruction_id": "1", "instruction": "Grüße an alle"}\n',
    }[name]
    (tmp_path / name).write_text(text, encoding=encoding)
    assert [one.turns for one in read(tmp_path / name, "instructions") if isinstance(one, Instruction)] == [
        ("Grüße an alle",)
    ]


@pytest.mark.parametrize("name", ["i.csv", "i.xlsx", "i.parquet"])
def test_a_workbook_is_refused_by_what_it_is_with_the_way_out(tmp_path: Path, name: str) -> None:
    with ZipFile(tmp_path / name, "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>")
    assert "an Excel workbook" in refusal(tmp_path / name, "instructions")
    assert "save the sheet as CSV UTF-8" in refusal(tmp_path / name, "instructions")


def test_an_address_is_refused_with_the_command_that_fetches_it() -> None:
    with pytest.raises(InputError) as caught:
        open_table(Path("https://example.org/some/answers.csv?x=1"))
    said = str(caught.value)
    assert "https://example.org/some/answers.csv?x=1: " in said
    assert "curl -fsSL -o answers.csv 'https://example.org/some/answers.csv?x=1'" in said


def test_a_text_in_another_encoding_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "i.csv"
    path.write_text("instruction_id,instruction\n1,a\n2,Grüße\n", encoding="latin-1")
    said = refusal(path, "instructions")
    assert "not UTF-8" in said
    assert f"iconv -f WINDOWS-1252 -t UTF-8 {path} > {tmp_path / 'i-utf8.csv'}" in said


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.gz", "t.parquet.gz", "t.csv.zip", ".csv"])
def test_an_unknown_extension_is_refused_with_those_accepted(write: Write, name: str) -> None:
    assert ".parquet, .csv, .tsv, .jsonl" in refusal(write(name, CSV), "instructions")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "none.csv", "elo")
    (tmp_path / "d.csv").mkdir()
    assert "a folder, not a file" in refusal(tmp_path / "d.csv", "elo")


@pytest.mark.parametrize(
    ("name", "text"), [("e.csv", "model,elo\n"), ("e.csv", "model,elo"), ("e.jsonl", ""), ("e.json", "[]")]
)
def test_an_empty_table_is_refused(write: Write, name: str, text: str) -> None:
    assert "the table has no rows" in refusal(write(name, text), "elo")


def test_an_empty_parquet_and_an_empty_text_are_refused(write: Write, tmp_path: Path) -> None:
    path = parquet(tmp_path / "e.parquet", "select 'm' as model, 1 as elo where false")
    assert "the table has no rows" in refusal(path, "elo")
    assert "the file is empty" in refusal(write("e.csv", ""), "elo")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("e.parquet", "nonsense", "Parquet"),
        ("e.jsonl", '{"model": "m", "elo": 1}\n{"model":\n', "line 2: no JSON"),
        ("e.csv", "model,elo\nm,1\nm2,1,3\n", "line 3: 3 cells where the header has 2"),
        ("e.csv", "model,elo\nm,1\nm2\n", "line 3: 1 cells where the header has 2"),
        ("e.csv", 'model,elo\n"m,1\n', "line 2: a quoted cell does not end"),
        ("e.csv", "model,elo\r\nm,1\nm2,1\r\n", "line ends are mixed"),
        ("e.csv", "model,model,elo\nm,n,1\n", 'the header names "model" twice'),
    ],
)
def test_an_unreadable_file_is_refused_in_one_sentence(write: Write, name: str, text: str, reason: str) -> None:
    message = refusal(write(name, text), "elo")
    assert reason in message
    assert "\n" not in message


def test_bytes_that_are_no_text_and_no_gzip_are_refused(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_bytes(b"model,elo\nm\xff,1\n")
    assert "UTF-8" in refusal(tmp_path / "e.csv", "elo")
    (tmp_path / "e.csv.gz").write_bytes(b"model,elo\nm,1\n")
    assert "gzip" in refusal(tmp_path / "e.csv.gz", "elo")
    (tmp_path / "f.csv.gz").write_bytes(gzip.compress(b"model,elo\nm,1\n" * 999)[:-20])
    assert "cannot be read" in refusal(tmp_path / "f.csv.gz", "elo")


def test_a_fault_deep_in_a_file_is_an_input_error_too(write: Write) -> None:
    lines = "".join(f"model {n},{n}\n" for n in range(200_000))
    assert "line 200002: 3 cells" in refusal(write("e.csv", f"model,elo\n{lines}late,1,1\n"), "elo")


def test_lists_and_structures_are_refused_as_text(tmp_path: Path, write: Write) -> None:
    path = parquet(tmp_path / "c.parquet", "select 'm' as model, 1 as instruction_id, ['x'] as completion")
    assert 'column "completion" holds varchar[], not text' in refusal(path, "completions")
    line = '{"instruction_id": 1, "instruction": [{"role": "user", "content": "x"}]}\n'
    assert "not text" in refusal(write("i.jsonl", line), "instructions")


def test_a_column_first_seen_late_in_json_lines_is_read(write: Write) -> None:
    lines = [json.dumps({"instruction_id": n, "instruction": "x"}) for n in range(30_000)]
    lines.append(json.dumps({"instruction_id": "last", "instruction": "x", "reference": "yes"}))
    *_, last = read(write("i.jsonl", "\n".join(lines)), "instructions")
    assert last == Instruction("last", ("x",), "yes")


def test_long_cells_and_many_rows_keep_their_order(write: Write) -> None:
    long = "x" * 3_000_000
    rows = "".join(f'm,{n},"line\nother, {n}"\n' for n in range(20_000))
    path = write("c.csv", f"model,instruction_id,completion\nm,long,{long}\n{rows}")
    found = list(read(path, "completions"))
    assert found[0] == Completion("m", "long", long)
    assert found[1:] == [Completion("m", str(n), f"line\nother, {n}") for n in range(20_000)]


def test_the_recorded_tables_of_alpaca_eval_are_read(shared_data: Path) -> None:
    folder = shared_data / "alpaca_eval"
    instructions = list(read(folder / "instructions.parquet", "instructions"))
    assert [row.id for row in instructions if isinstance(row, Instruction)] == [str(n) for n in range(805)]
    completions = [row for row in read(folder / "completions.parquet", "completions") if isinstance(row, Completion)]
    assert len(completions) == 38_639
    assert len({row.model for row in completions}) == 48
    assert sum(not row.text for row in completions) == 23
    mapping = {"elo": "arena_elo_2024_02_02"}
    ratings = list(read(folder / "models.parquet", "elo", mapping))
    assert (len(ratings), unrated(folder / "models.parquet", mapping)) == (48, 215 - 48)
    assert refusal(folder / "models.parquet", "elo").endswith('mapping={"elo": "arena_elo_2024_02_02"}')


def test_recorded_tables_with_other_names_are_read_by_a_mapping(shared_data: Path) -> None:
    folder = shared_data / "llmfao"
    mapping = {"instruction_id": "id", "instruction": "text", "category": "type", "reference": "note"}
    assert len(list(read(folder / "prompts.parquet", "instructions", mapping))) == 19
    assert len(list(read(folder / "completions.parquet", "completions", {"instruction_id": "prompt_id"}))) == 1133


def test_tables_that_are_open_at_once_have_nothing_in_common(write: Write) -> None:
    """The danger: one DuckDB reads them all, and the names of one table's rows would be those of another's."""
    first, second = (open_table(write(name, CSV)).connection for name in ("one.csv", "two.csv"))
    for connection, rows in ((first, 2), (second, 3)):
        connection.execute(f"create temp table kept as from range({rows})")
    first.close()
    assert second.execute("select count(*) from kept").fetchall() == [(3,)]
    second.close()
    third = open_table(write("three.csv", CSV)).connection
    assert third.execute("select count(*) from duckdb_tables()").fetchall() == [(0,)]
    third.close()


def test_a_file_that_is_written_again_is_read_again(tmp_path: Path) -> None:
    for said in ("once", "then"):
        path = parquet(tmp_path / "i.parquet", f"select 'q' as instruction_id, '{said}' as instruction")
        os.utime(path, (1, 1))
        assert list(read(path, "instructions")) == [Instruction("q", (said,))]


def test_a_completion_may_be_an_edited_copy(write: Write) -> None:
    text = "model,instruction_id,completion,variant\noak,1,Yes.,\noak,1,Yes. Yes.,echo\n"
    assert list(read(write("c.csv", text), "completions")) == [
        Completion("oak", "1", "Yes."),
        Completion("oak", "1", "Yes. Yes.", variant="echo"),
    ]
    named = write("named.csv", text.replace("variant", "kind"))
    assert list(read(named, "completions", {"variant": "kind"}))[1] == Completion(
        "oak", "1", "Yes. Yes.", variant="echo"
    )
    twice = text + "oak,1,Other.,echo\n"
    assert 'variant "echo" stands in row 2 and again in row 3' in refusal(write("twice.csv", twice), "completions")
