"""An import brings all of its batch or nothing of it, and the same batch twice brings it once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from venire.arena.errors import InputError
from venire.arena.keys import completion_key, instruction_key
from venire.arena.records import Completion, Instruction, Rating
from venire.storage.read import frames
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing
from venire.storage.transfer.importing import Added, StoredModel

INSTRUCTIONS = [
    Instruction("q1", ("What?",), "That.", "short"),
    Instruction("q2", ("Why?", "And then?"), None, "long"),
]
COMPLETIONS = [
    Completion("b", "q1", "because"),
    Completion("a", "q1", "therefore"),
    Completion("a", "q2", ""),
    Completion("a", "q2", "zut: é\n", sample=2),
    Completion("a", "q2", "edited", variant="padded"),
]


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path) as opened:
        yield opened


@pytest.fixture
def stocked(store: Store) -> Store:
    importing.add(store, INSTRUCTIONS)
    importing.add(store, COMPLETIONS)
    return store


def rows(store: Store, table: str) -> list[tuple[Any, ...]]:
    return store.connection.execute(f"select * from {table} order by all").fetchall()


def everything(store: Store) -> list[list[tuple[Any, ...]]]:
    found = [rows(store, table) for table in ("instruction", "completion", "model")]
    return [*found, store.connection.execute("select batch, written, running from ledger order by batch").fetchall()]


def test_what_was_brought_is_there_as_it_was(stocked: Store) -> None:
    one, two = (instruction_key(record.turns) for record in INSTRUCTIONS)
    assert rows(stocked, "instruction") == [
        (1, one, "q1", "short", '["What?"]', "That."),
        (2, two, "q2", "long", '["Why?", "And then?"]', None),
    ]
    keys = {"q1": one, "q2": two}
    expected = [
        (key, record.instruction, record.model, record.sample, record.variant, record.text, len(record.text))
        for record in COMPLETIONS
        for key in [completion_key(record.model, keys[record.instruction], record.sample, record.variant, record.text)]
    ]
    found = stocked.connection.execute(
        "select completion_key, i.external_id, m.name, sample, variant, text, characters from completion c "
        "join instruction i on i.id = c.instruction join model m on m.id = c.model order by c.id"
    ).fetchall()
    assert found == expected


def test_an_import_counts_what_is_new(store: Store) -> None:
    assert importing.add(store, INSTRUCTIONS) == Added(instructions=2)
    assert importing.add(store, COMPLETIONS) == Added(completions=5)
    assert importing.add(store, [Rating("a", 1200.0), Rating("c", 1100.0)]) == Added(ratings=2)
    assert importing.add(store, []) == Added()


def test_the_same_import_twice_brings_everything_once(stocked: Store) -> None:
    before = everything(stocked)[:3]
    assert importing.add(stocked, INSTRUCTIONS) == Added(known=2)
    assert importing.add(stocked, COMPLETIONS) == Added(known=5)
    assert everything(stocked)[:3] == before


def test_an_import_that_overlaps_brings_what_is_new_under_the_next_numbers(stocked: Store) -> None:
    assert importing.add(stocked, [*INSTRUCTIONS, Instruction("q3", ("When?",))]) == Added(instructions=1, known=2)
    assert importing.add(stocked, [*COMPLETIONS, Completion("c", "q3", "now")]) == Added(completions=1, known=5)
    assert stocked.connection.execute(
        "select id, instruction, model from completion where text = 'now'"
    ).fetchall() == [(6, 3, 3)]


def test_an_import_larger_than_one_chunk_is_whole(store: Store) -> None:
    many = [Instruction(f"q{n}", (f"What of {n}?",)) for n in range(4_500)]
    assert importing.add(store, iter(many)) == Added(instructions=4_500)
    assert importing.add(store, (Completion("a", one.id, one.id) for one in many)) == Added(completions=4_500)
    assert store.connection.execute("select min(id), max(id), count(distinct id) from completion").fetchall() == [
        (1, 4_500, 4_500)
    ]
    assert store.rows("contestants") == [("a", None, 4_500)]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([Instruction("q3", ("New?",)), Instruction("q1", ("Changed?",))], "instruction 'q1' is in the store with"),
        ([Instruction("q3", ("New?",)), Instruction("q9", ("What?",))], "'q9' is in the store under the id 'q1'"),
        ([Instruction("q3", ("New?",)), Instruction("q4", ("New?",))], "'q3' and 'q4' have the same text"),
        (
            [Completion("new", "q1", "x"), Completion("b", "q7", "y")],
            r"completion 2 \(of 'b'\) answers instruction 'q7', which is not in the store",
        ),
        (
            [Completion("new", "q1", "x"), Completion("a", "q1", "another")],
            "the answer of 'a' to instruction 'q1' is in the store with another text",
        ),
        (
            [Completion("new", "q1", "x"), Completion("a", "q2", "another", sample=2)],
            "the answer of 'a' to instruction 'q2' is in the store with another text",
        ),
    ],
    ids=[
        "id with another text",
        "text with another id",
        "text twice",
        "unknown instruction",
        "answer",
        "second sample",
    ],
)
def test_nothing_is_imported_when_a_later_row_is_bad_and_the_row_is_named(
    stocked: Store, records: list[Instruction | Completion], message: str
) -> None:
    before = everything(stocked)
    with pytest.raises(InputError, match=f"{message}.*: nothing was imported; "):
        importing.add(stocked, records)
    assert everything(stocked) == before
    assert importing.add(stocked, [Instruction("q5", ("Who?",))]) == Added(instructions=1)


def test_a_bad_row_after_many_good_ones_takes_them_with_it(stocked: Store) -> None:
    before = everything(stocked)
    many = [Completion(f"m{n}", "q1", f"{n}") for n in range(5_000)]
    with pytest.raises(InputError, match=r"completion 5001 \(of 'late'\)"):
        importing.add(stocked, [*many, Completion("late", "nowhere", "x")])
    assert everything(stocked) == before


def test_a_source_that_breaks_off_brings_nothing(stocked: Store) -> None:
    def broken() -> Iterator[Completion]:
        yield Completion("new", "q1", "x")
        raise InputError("row 2 is empty")

    before = everything(stocked)
    with pytest.raises(InputError, match="row 2 is empty"):
        importing.add(stocked, broken())
    assert everything(stocked) == before


def test_records_of_two_kinds_are_not_one_import(stocked: Store) -> None:
    before = everything(stocked)
    with pytest.raises(TypeError, match="records of one kind"):
        importing.add(stocked, [Completion("new", "q1", "x"), Rating("new", 1000.0)])
    assert everything(stocked) == before


def test_another_label_of_a_known_instruction_changes_nothing(stocked: Store) -> None:
    before = rows(stocked, "instruction")
    assert importing.add(stocked, [Instruction("q1", ("What?",), "That.", "other")]) == Added(known=1)
    assert rows(stocked, "instruction") == before


def test_elo_that_changed_is_counted_and_elo_that_did_not_is_known(stocked: Store) -> None:
    assert importing.add(stocked, [Rating("a", 1200.0), Rating("b", 1100.0)]) == Added(ratings=2)
    assert importing.add(stocked, [Rating("a", 1250.5), Rating("b", 1100.0), Rating("c", 900.0)]) == Added(
        ratings=2, known=1
    )
    assert frames.elos(stocked) == {"a": 1250.5, "b": 1100.0, "c": 900.0}


def test_contestants_are_the_models_that_answered(stocked: Store) -> None:
    importing.add(stocked, [Rating("a", 1200.0), Rating("never answered", 1100.0)])
    assert importing.contestants(stocked) == (StoredModel("a", 1200.0, 2), StoredModel("b", None, 1))


def test_families_are_noted_and_unknown_models_left_aside(stocked: Store) -> None:
    importing.set_families(stocked, {"a": "alphas", "nobody": "none"})
    assert frames.families(stocked) == {"a": "alphas"}
    importing.set_families(stocked, {"a": "others", "b": "alphas"})
    assert frames.families(stocked) == {"a": "others", "b": "alphas"}
    assert {row[0] for row in stocked.rows("models")} == {"a", "b"}


def test_noting_no_families_is_no_commit(stocked: Store) -> None:
    before = stocked.batch
    importing.set_families(stocked, {})
    assert stocked.batch == before


def test_keys_do_not_depend_on_the_order_of_import(tmp_path: Path) -> None:
    found = set()
    for turn, order in enumerate(permutations(COMPLETIONS[:3])):
        with open_store(tmp_path / f"{turn}.duckdb") as store:
            importing.add(store, INSTRUCTIONS if turn % 2 else INSTRUCTIONS[::-1])
            importing.add(store, order)
            keys = store.connection.execute(
                "select m.name, i.external_id, i.instruction_key, c.completion_key from completion c "
                "join instruction i on i.id = c.instruction join model m on m.id = c.model order by all"
            ).fetchall()
        found.add(tuple(keys))
    assert len(found) == 1


def test_the_answer_key_has_every_text_with_its_turns(stocked: Store) -> None:
    found = sorted(importing.answer_key(stocked))
    turns = {one.id: one.turns for one in INSTRUCTIONS}
    assert found == sorted((one.instruction, turns[one.instruction], one.model, one.text) for one in COMPLETIONS)


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([Instruction("i", ("one",)), Instruction("i", ("two",))], "'i' has two texts"),
        ([Completion("m", "q0", "x"), Completion("m", "q0", "y")], "two answers to instruction 'q0'"),
        ([Rating("m", 1.0), Rating("m", 2.0)], "two ratings"),
    ],
)
def test_an_import_that_contradicts_itself_brings_nothing(store: Store, records: list[Any], says: str) -> None:
    importing.add(store, [Instruction("q0", ("Zero?",))])
    before = store.rows("counts")
    with pytest.raises(InputError, match=says):
        importing.add(store, records)
    assert store.rows("counts") == before


def test_an_import_that_repeats_itself_brings_each_thing_once(store: Store) -> None:
    assert importing.add(store, [Instruction("q0", ("Zero?",))] * 2) == Added(instructions=1, known=1)
    assert importing.add(store, [Completion("m", "q0", "x")] * 2) == Added(completions=1, known=1)
    assert importing.add(store, [Rating("n", 1.0)] * 2).ratings == 1


def test_an_instruction_takes_a_reference_answer_later_and_never_another(stocked: Store) -> None:
    later = Instruction("q2", ("Why?", "And then?"), "Hence.")
    importing.add(stocked, [Instruction("q3", ("Who?",)), Instruction("q3", ("Who?",), "She."), later])
    there = dict(stocked.connection.execute("select external_id, reference from instruction").fetchall())
    assert there == {"q1": "That.", "q2": "Hence.", "q3": "She."}
    before = everything(stocked)
    for two in (
        [Instruction("q2", ("Why?", "And then?"), "Thence.")],
        [Instruction("q4", ("Where?",), "Here."), Instruction("q4", ("Where?",), "There.")],
    ):
        with pytest.raises(InputError, match=f"instruction '{two[0].id}' has two reference answers.*nothing was"):
            importing.add(stocked, two)
    importing.add(stocked, [Instruction("q1", ("What?",))])  # a table without the column takes none away
    assert everything(stocked)[0] == before[0]


def test_an_id_that_became_a_fraction_is_told_from_an_unknown_one(store: Store) -> None:
    importing.add(store, [Instruction("1", ("Say hi.",)), Instruction("2.0", ("Say ho.",))])
    with pytest.raises(InputError, match=r"'1\.0', .*the instructions have '1': write ids alike"):
        importing.add(store, [Completion("m", "1.0", "hi")])
    with pytest.raises(InputError, match=r"'2', .*the instructions have '2\.0'"):
        importing.add(store, [Completion("m", "2", "ho")])
