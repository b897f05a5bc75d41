"""Tables of recorded judgments: every row of a judge as it stands, and a row that is none is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest

from venire.arena.errors import InputError
from venire.arena.records import Ballot, Grade, Preference
from venire.arena.shapes import Shape
from venire.storage.transfer.formats.recorded import RecordedJudgment, read_recorded

PAIR = Shape(2, Preference)
HEAD = "judge,instruction_id,first,second,repeat,verdict,score_first,score_second,raw_output"


def table(folder: Path, *lines: str, head: str = HEAD) -> Path:
    path = folder / "judgments.csv"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


def read(path: Path, *, shape: Shape = PAIR, verdicts: bool = True, **columns: str) -> list[RecordedJudgment]:
    return list(read_recorded(path, "gpt", shape, columns, verdicts=verdicts))


def test_rows_of_one_judge_are_read_with_their_verdicts_and_scores(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "gpt,7,a,b,1,first,8,6.5,text",
        "other,7,a,b,1,second,,,",
        "gpt,7,b,a,2,,8,6,nothing read",
        "gpt,8,a,b,1,tie,8,,one score",
    )
    assert read(path) == [
        RecordedJudgment("7", ("a", "b"), 1, "first 8 6.5"),
        RecordedJudgment("7", ("b", "a"), 2, ""),
        RecordedJudgment("8", ("a", "b"), 1, "tie"),
    ]


def test_the_raw_reply_is_kept_letter_by_letter(tmp_path: Path) -> None:
    path = table(tmp_path, 'gpt,7,a,b,1,first,,,"It says ""A"".\n[[A]]"', "gpt,7,b,a,1,first,,,")
    assert [one.text for one in read(path, verdicts=False)] == ['It says "A".\n[[A]]', ""]


def test_a_table_without_judge_and_repeat_is_one_judges_first(tmp_path: Path) -> None:
    path = table(tmp_path, "1,a,b,tie", head="instruction_id,first,second,verdict")
    assert read(path) == [RecordedJudgment("1", ("a", "b"), 1, "tie")]


def test_columns_may_be_called_otherwise(tmp_path: Path) -> None:
    path = table(tmp_path, "gpt,1,a,b,tie", head="annotator,prompt,left,right,winner")
    columns = {"judge": "annotator", "instruction_id": "prompt", "first": "left", "second": "right"}
    assert read(path, verdict="winner", **columns) == [RecordedJudgment("1", ("a", "b"), 1, "tie")]


def test_one_answer_or_a_list_of_them_is_read_from_any_form(tmp_path: Path) -> None:
    single = table(tmp_path, "1,a,A", head="instruction_id,model,raw_output")
    assert read(single, shape=Shape(1, Grade), verdicts=False) == [RecordedJudgment("1", ("a",), 1, "A")]
    rows = [{"instruction_id": 1, "models": ["c", "a", "b"], "raw_output": "B > A > C"}]
    lines = tmp_path / "lists.jsonl"
    lines.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    parquet = tmp_path / "lists.parquet"
    duckdb.execute(f"copy (select 1 instruction_id, ['c', 'a', 'b'] models, 'B > A > C' raw_output) to '{parquet}'")
    for path in (lines, parquet):
        for shape in (Shape(None, Ballot), Shape(3, Ballot)):
            assert read(path, shape=shape, verdicts=False) == [RecordedJudgment("1", ("c", "a", "b"), 1, "B > A > C")]
        with pytest.raises(InputError, match=r"row 1: .* has 3 names; accepted: a list of 4"):
            read(path, shape=Shape(4, Ballot), verdicts=False)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("gpt,1,a,b,1,A,,,", "row 2: \"verdict\" is 'A'; accepted: first, second, tie"),
        ("gpt,1,a,b,0,tie,,,", "row 2: \"repeat\" is '0'; accepted: a whole number from 1 on"),
        ("gpt,1,a,b,x,tie,,,", "row 2: \"repeat\" is 'x'"),
        ("gpt,1,a,a,1,tie,,,", "row 2: 'a' is shown twice"),
        ("gpt,1,a,,1,tie,,,", 'row 2: "second" is empty'),
        ("gpt,,a,b,1,tie,,,", 'row 2: "instruction_id" is empty'),
        ("gpt,1,a,b,1,tie,8,high,", "row 2: the score 'high' is no number"),
        ("gpt,1,a,b,1,tie,8,inf,", "row 2: the score 'inf' is no number"),
    ],
)
def test_a_row_that_is_no_judgment_is_named(line: str, told: str, tmp_path: Path) -> None:
    path = table(tmp_path, "gpt,1,b,a,1,tie,,,", line)
    with pytest.raises(InputError) as refused:
        read(path)
    assert told in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("head", "columns", "told"),
    [
        (HEAD.replace("verdict", "winner"), {}, 'no column "verdict"; columns found: judge,'),
        (HEAD, {"verdict": "label"}, 'no column "label"'),
        (HEAD, {"winner": "verdict"}, "the map names 'winner', which is no column of ours"),
    ],
)
def test_a_column_that_is_missing_is_named_with_what_to_write(
    head: str, columns: Mapping[str, str], told: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        read(table(tmp_path, "gpt,1,a,b,1,tie,,,", head=head), **columns)
    assert told in str(refused.value)


def test_a_judge_that_is_not_in_the_table_is_told_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no row of judge 'gpt' in \"judge\"; there are: claude, o'clock"):
        read(table(tmp_path, "claude,1,a,b,1,tie,,,", "o'clock,1,a,b,1,tie,,,"))
    assert list(read_recorded(tmp_path / "judgments.csv", "o'clock", PAIR, verdicts=True))
