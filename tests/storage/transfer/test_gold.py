"""Gold labels in a store: every label once, and what contradicts the store or itself is refused whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storage.conftest import House
from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.storage.care.checking import check
from venire.storage.store.opening import open_store
from venire.storage.transfer.gold import AddedGold, add_gold, read_gold
from venire.storage.transfer.merging import merge

HEAD = "instruction_id,model,correct"


def table(folder: Path, *rows: str, head: str = HEAD, name: str = "gold.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def kept(house: House) -> list[tuple[str, ...]]:
    return house.all("select people, annotator, instruction_id, model, grade from people_grade order by all")


def test_labels_in_any_words_are_kept_once(filled: House, tmp_path: Path) -> None:
    path = table(tmp_path, "q1,a,true", "q1,b,Incorrect", "q2,a,not attempted", "q3,a,", "q2,b,1")
    assert add_gold(filled.store, "experts", read_gold(path)) == AddedGold(4, 1, 0, 1)
    assert add_gold(filled.store, "experts", read_gold(path)) == AddedGold(0, 0, 4, 1)
    assert kept(filled) == [
        ("experts", "experts", "q1", "a", "correct"),
        ("experts", "experts", "q1", "b", "incorrect"),
        ("experts", "experts", "q2", "a", "not attempted"),
        ("experts", "experts", "q2", "b", "correct"),
    ]


def test_annotators_and_columns_are_named(filled: House, tmp_path: Path) -> None:
    path = table(tmp_path, "ann,q1,a,1", "bob,q1,a,0", head="annotator,instruction_id,model,is_right")
    assert add_gold(filled.store, "experts", read_gold(path, {"correct": "is_right"})).annotators == 2
    assert [row[1:] for row in kept(filled)] == [("ann", "q1", "a", "correct"), ("bob", "q1", "a", "incorrect")]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("q1,a,maybe", '"correct" is "maybe"'),
        (",a,1", "no instruction_id"),
        ("q1,nobody,1", "does not have the model 'nobody'"),
        ("q9,a,1", "does not have the instruction 'q9'"),
        ("q1,b,0", "already: nothing was imported"),
        ("q2,a,0\nq2,a,1", "otherwise than in row"),
    ],
)
def test_what_does_not_fit_is_refused_whole_with_its_row(filled: House, tmp_path: Path, row: str, said: str) -> None:
    add_gold(filled.store, "experts", read_gold(table(tmp_path, "q1,b,1")))
    before = kept(filled)
    with pytest.raises(InputError, match=said) as caught:
        add_gold(filled.store, "experts", read_gold(table(tmp_path, "q3,a,1", row, name="more.csv")))
    assert "row" in str(caught.value)
    assert kept(filled) == before


def test_labels_of_people_and_of_simulated_ones_stay_apart(filled: House, tmp_path: Path) -> None:
    path = table(tmp_path, "q1,a,1")
    add_gold(filled.store, "rehearsal", read_gold(path), origin=Origin.SIMULATED)
    with pytest.raises(InputError, match="give them another name"):
        add_gold(filled.store, "rehearsal", read_gold(path))


def test_stores_with_labels_are_merged_once_each_and_contradictions_are_refused(filled: House, tmp_path: Path) -> None:
    add_gold(filled.store, "experts", read_gold(table(tmp_path, "q1,a,1", "q1,b,0")))
    mine = filled.store.path
    filled.store.close()
    other = tmp_path / "other.duckdb"
    other.write_bytes(mine.read_bytes())
    with open_store(other) as store:
        add_gold(store, "experts", read_gold(table(tmp_path, "q2,a,1")))
    merge([mine, other], tmp_path / "both.duckdb")
    assert check(tmp_path / "both.duckdb").sound
    with open_store(tmp_path / "both.duckdb") as store:
        assert store.rows("gold_groups") == [("experts", "people", 3)]
