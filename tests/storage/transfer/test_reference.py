"""Reference ratings of a file: which files are read, and what is said of those that are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from venire.arena.errors import InputError
from venire.storage.transfer.formats.tables import read_reference

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return file


@pytest.mark.parametrize("column", ["elo", "rating"])
def test_a_table_of_models_and_ratings_is_read_and_an_empty_cell_is_no_rating(write: Write, column: str) -> None:
    assert read_reference(write("known.csv", f"model,{column}\na,1100\nb,\nc,950.5\n")) == {"a": 1100.0, "c": 950.5}


def test_elo_is_taken_where_a_table_has_both(write: Write) -> None:
    assert read_reference(write("known.csv", "rating,model,elo\n1,a,2\n")) == {"a": 2.0}


def test_a_board_in_json_is_read_and_rows_of_json_too(write: Write) -> None:
    board = {"method": "bradley-terry", "models": [{"model": "a", "elo": 1010.5}, {"model": "b", "elo": None}]}
    assert read_reference(write("board.json", json.dumps(board))) == {"a": 1010.5}
    rows = [{"model": "a", "elo": 1}, {"model": "b", "elo": 2}]
    assert read_reference(write("rows.json", json.dumps(rows))) == {"a": 1.0, "b": 2.0}
    assert read_reference(write("rows.jsonl", "\n".join(map(json.dumps, rows)))) == {"a": 1.0, "b": 2.0}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("known.csv", "model,share\na,1\n", "columns found: model, share"),
        ("known.csv", "Model,Elo\na,1\n", "columns model and elo (or rating, or score)"),
        ("votes.csv", "model_a,model_b,winner\na,b,tie\n", "columns found: model_a, model_b, winner"),
        ("known.json", "[1, 2]", "its values are no JSON objects: write one for each row"),
        ("known.csv", "model,elo\na,1\na,2\n", 'row 2: "a" has a rating in an earlier row'),
        ("known.csv", "model,elo\n,1\n", 'row 1: "model" is empty'),
        ("known.csv", "model,elo\na,high\n", 'row 1: the rating is "high"'),
        ("known.csv", "model,elo\na,nan\n", 'row 1: the rating is "nan"'),
        ("known.csv", "model,elo\na,1e9\n", "within +-100000"),
        ("known.csv", "model,elo\na,\n", "no model has a rating"),
        ("known.json", '{"models": [{"model": "a", "elo": {"soft": 1}}]}', "the rating is"),
        ("known.json", '{"models": []}', "no model has a rating"),
        ("known.json", '{"models": 3', "cannot be read"),
        ("known.txt", "a 1", "not a table by its name"),
    ],
)
def test_what_cannot_be_a_rating_is_refused_by_file_and_row(write: Write, name: str, text: str, said: str) -> None:
    path = write(name, text)
    with pytest.raises(InputError) as refused:
        read_reference(path)
    assert str(refused.value).startswith(str(path))
    assert said in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_reference(tmp_path / "board.json")
