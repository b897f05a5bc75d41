"""Ballots of a table: a row that means something else than it seems to would turn an order without a word."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from venire.arena.battles import Ballots
from venire.arena.errors import InputError
from venire.ratings.data.ballots import ballots
from venire.storage.transfer.formats.ballots import has_ballots, read_ballots

BELOW = math.inf

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a table of these lines, a header first."""

    def lines(*rows: str, name: str = "ballots.csv") -> Path:
        path = tmp_path / name
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
        return path

    return lines


def assert_same(found: Ballots, other: Ballots) -> None:
    for name in ("models", "judges", "instructions"):
        assert getattr(found, name) == getattr(other, name)
    for name in ("judge", "instruction", "repeat", "rank"):
        np.testing.assert_array_equal(getattr(found, name), getattr(other, name))
        assert getattr(found, name).dtype == getattr(other, name).dtype


def test_a_table_becomes_ballots_with_places(write: Write) -> None:
    path = write("judge,instruction_id,model,rank", "b,9,z,4", "b,9,a,1.5", "b,9,m,1.5", "a,10,z,1", "a,10,a,")
    found = read_ballots(path)
    assert (found.models, found.judges, found.instructions) == (("a", "m", "z"), ("a", "b"), ("10", "9"))
    np.testing.assert_array_equal(found.rank, [[BELOW, math.nan, 1], [1, 1, 3]])
    assert (found.judge.tolist(), found.instruction.tolist(), found.repeat.tolist()) == ([0, 1], [0, 1], [1, 1])
    assert found.weight is None


def test_names_may_be_missing_and_columns_called_otherwise(write: Write) -> None:
    path = write("system,place,times,heavy", "a,1,2,3", "b,2,2,3", "a,2,1,1", "b,1,1,1")
    found = read_ballots(path, {"model": "system", "rank": "place", "repeat": "times", "weight": "heavy"})
    assert (found.judges, found.instructions, found.instruction.tolist()) == (("unnamed",), (), [-1, -1])
    assert (found.repeat.tolist(), found.rank.tolist()) == ([1, 2], [[2, 1], [1, 2]])
    assert found.weight is not None
    assert found.weight.tolist() == [1, 3]


def test_rows_are_kept_by_their_values(write: Write) -> None:
    path = write("judge,model,rank,kind", "x,a,1,old", "x,b,2,old", "x,a,2,new", "x,b,1,new")
    assert read_ballots(path, where={"kind": "new"}).rank.tolist() == [[2, 1]]


def test_numbers_of_parquet_and_nulls_of_json_are_read(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "b.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "copy (select * from (values (1, 'a', 1.0), (1, 'b', 'nan'::double), (1, 'c', null)) "
            f"t(judge, model, rank)) to '{path}'"
        )
    assert read_ballots(path).rank.tolist() == [[1, BELOW, BELOW]]
    lines = ('{"model": "a", "rank": 2}', '{"model": "b", "rank": null}', '{"model": "c", "rank": 1}')
    assert read_ballots(write(*lines, name="b.jsonl")).rank.tolist() == [[2, BELOW, 1]]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (("x,1,a,best",), 'row 1: "rank" is "best"; accepted: a number above 0'),
        (("x,1,a,1", "x,1,b,0"), 'row 2: "rank" is "0"; accepted: a number above 0'),
        (("x,1,a,1", "x,1,b,inf"), 'row 2: "rank" is "inf"'),
        (("x,1,a,1", "x,1,,2"), 'row 2: "model" is empty'),
        (("x,1,a,1", ",1,b,2"), 'row 2: "judge" is empty'),
        (("x,1,a,1", "x,,b,2"), 'row 2: "instruction_id" is empty'),
        (
            ("x,1,a,1", "x,2,a,1", "x,1,a,2"),
            'row 3: "model" is "a", which stands on the same ballot in row 1; a ballot is one judge, instruction_id',
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_by_file_row_and_value(write: Write, rows: tuple[str, ...], told: str) -> None:
    path = write("judge,instruction_id,model,rank", *rows)
    with pytest.raises(InputError) as refused:
        read_ballots(path)
    assert str(refused.value).startswith(f"{path}: {told}")


@pytest.mark.parametrize(
    ("column", "cells", "told"),
    [
        ("repeat", ("1", "1.5"), 'row 2: "repeat" is "1.5"; accepted: a whole number from 1 on'),
        ("repeat", ("1", ""), 'row 2: "repeat" is ""'),
        ("weight", ("1", "-1"), 'row 2: "weight" is "-1"; accepted: a number, 0 or more'),
        ("weight", ("1", "2"), 'row 2: "weight" is 2, and 1 in row 1 of the same ballot; a ballot has one weight'),
        ("weight", ("2", "1"), 'row 2: "weight" is 1, and 2 in row 1 of the same ballot'),
    ],
)
def test_repeats_and_weights_are_checked(write: Write, column: str, cells: tuple[str, str], told: str) -> None:
    path = write(f"model,rank,{column}", f"a,1,{cells[0]}", f"b,2,{cells[1]}")
    with pytest.raises(InputError) as refused:
        read_ballots(path)
    assert str(refused.value).startswith(f"{path}: {told}")


def test_ballots_are_known_by_their_columns(write: Write) -> None:
    assert has_ballots(write("judge,model,rank", "x,a,1"))
    assert not has_ballots(write("model,rank,winner", "a,1,a"))
    assert not has_ballots(write("model_a,model_b,winner", "a,b,tie"))
    assert has_ballots(write("system,place,Rater", "a,1,x"), {"model": "system", "rank": "place"})
    with pytest.raises(InputError, match='names "place", which is no column of ours for ballots'):
        read_ballots(write("model,rank", "a,1"), {"place": "rank"})


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), below=st.booleans())
def test_a_table_reads_as_the_same_columns_do(write: Write, data: st.DataObject, below: bool) -> None:
    """The table is read in SQL, columns are in arrays: two ways to one form."""
    cells = st.sampled_from([1.0, 2.0, 2.5, 7.0, math.nan, None])
    rows = [
        (judge, instruction, model, rank)
        for judge in ("a", "j")
        for instruction in ("p", "q")
        for model in ("a", "b", "é")
        if (rank := data.draw(cells)) is not None
    ]
    if not rows:
        return
    rows = data.draw(st.permutations(rows))
    written = (f"{judge},{task},{model},{'' if math.isnan(rank) else rank}" for judge, task, model, rank in rows)
    path = write("judge,instruction_id,model,rank", *written)
    judge, instruction, model, rank = map(list, zip(*rows, strict=True))
    expected = ballots(judge, instruction, model, rank, unranked="below" if below else "absent")
    assert_same(read_ballots(path, below=below), expected)


def test_a_table_that_ranks_nothing_is_read_as_such(write: Write) -> None:
    """Checks of a column without any value once met an error of DuckDB's own."""
    assert np.isinf(read_ballots(write("model,rank", "a,", "b,")).rank).all()


def test_headers_of_a_spreadsheet_are_ours_in_other_letters(write: Write) -> None:
    path = write("Judge,Instruction ID,Model,Rank", "ann,1,maple,1", "ann,1,oak,2", "bob,1,oak,1", "bob,1,maple,2")
    assert has_ballots(path)
    assert has_ballots(path, {"model": "Model"})
    found = read_ballots(path)
    assert (found.judges, found.instructions, found.models) == (("ann", "bob"), ("1",), ("maple", "oak"))
    np.testing.assert_array_equal(found.rank, [[1.0, 2.0], [2.0, 1.0]])
    assert not has_ballots(write("Model,Rank,Winner", "maple,1,oak"))


def test_pointwise_scores_rank_the_models_of_a_ballot(write: Write) -> None:
    head = "rater,instruction_id,model,score"
    path = write(head, "b,9,z,1", "b,9,a,8.5", "b,9,m,8.50", "a,10,z,-3", "a,10,a,", "a,10,m,-7")
    assert has_ballots(path)
    found = read_ballots(path)
    assert (found.models, found.judges, found.instructions) == (("a", "m", "z"), ("a", "b"), ("10", "9"))
    np.testing.assert_array_equal(found.rank, [[math.nan, 2, 1], [1, 1, 3]])
    bad = write(head, "b,9,z,1", "b,9,a,high")
    with pytest.raises(InputError, match=r'row 2: "score" is "high"; accepted: a number, higher being better'):
        read_ballots(bad)
    assert not has_ballots(write("model_a,model_b,model,score", "a,b,c,1"))
