"""People's votes in a store: every vote once, A before B by name, and what contradicts the store is refused whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.storage.conftest import House
from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.storage.care.checking import check
from venire.storage.read import frames
from venire.storage.store.opening import open_store
from venire.storage.transfer.exporting import export_tables
from venire.storage.transfer.merging import merge
from venire.storage.transfer.votes import AddedVotes, add_votes, read_votes

HEAD = "annotator,instruction_id,model_a,model_b,winner"
VOTES = ("ann,q1,a,b,model_a", "ann,q2,z,a,model_a", "bob,q1,b,a,b", "bob,q1,a,z,tie", "bob,q3,a,b,")


def table(folder: Path, *rows: str, head: str = HEAD, name: str = "votes.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def kept(house: House, group: str = "crowd") -> list[tuple[Any, ...]]:
    """The votes of a group as the view has them."""
    return house.all(
        "select annotator, instruction_id, model_a, model_b, swapped, repeat, winner from people_vote "
        "where people = $1 order by all",
        group,
    )


def test_votes_of_several_people_on_some_of_the_battles_are_kept_in_terms_of_the_store(
    filled: House, tmp_path: Path
) -> None:
    added = add_votes(filled.store, "crowd", read_votes(table(tmp_path, *VOTES)))
    assert added == AddedVotes(votes=4, annotators=2, known=0, without_winner=1)
    assert kept(filled) == [
        ("ann", "q1", "a", "b", None, 1, "model_a"),
        ("ann", "q2", "a", "z", None, 1, "model_b"),
        ("bob", "q1", "a", "b", None, 1, "model_b"),
        ("bob", "q1", "a", "z", None, 1, "tie"),
    ]
    (group,) = frames.people(filled.store)
    assert (group.name, group.origin, group.annotators, group.votes, group.ties) == ("crowd", Origin.PEOPLE, 2, 4, 1)
    battles = frames.votes(filled.store, group.id)
    assert (battles.models, battles.judges, battles.instructions) == (("a", "b", "z"), ("ann", "bob"), ("q1", "q2"))
    assert sorted(battles.label.tolist()) == [-1, -1, 0, 1]
    assert not battles.ordered


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_the_same_file_in_any_form_adds_nothing_the_second_time(filled: House, tmp_path: Path, form: str) -> None:
    rows = [dict(zip(HEAD.split(","), one.split(","), strict=True)) for one in (*VOTES, VOTES[0], VOTES[0])]
    path = tmp_path / f"votes.{form}"
    path.write_text("\n".join(json.dumps(one) for one in rows), encoding="utf-8")
    if form == "csv":
        table(tmp_path, *VOTES, VOTES[0], VOTES[0])
    elif form == "parquet":
        plain = path.with_suffix(".jsonl")
        plain.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
        duckdb.execute(f"copy (select * from '{plain}') to '{path}.new' (format parquet)")
        path = Path(f"{path}.new").rename(path)
    assert add_votes(filled.store, "crowd", read_votes(path)) == AddedVotes(6, 2, 0, 1)
    before = kept(filled)
    assert [row[5] for row in before[:3]] == [1, 2, 3]  # ann's votes on one showing are numbered
    assert add_votes(filled.store, "crowd", read_votes(path)) == AddedVotes(0, 0, 6, 1)
    assert kept(filled) == before
    assert add_votes(filled.store, "others", read_votes(path)).votes == 6


def test_the_order_shown_is_kept_where_the_file_knows_it(filled: House, tmp_path: Path) -> None:
    path = table(
        tmp_path, "ann,q1,b,a,first", "ann,q1,a,b,second", head="annotator,instruction_id,first,second,verdict"
    )
    add_votes(filled.store, "crowd", read_votes(path))
    assert [row[4:] for row in kept(filled)] == [(False, 1, "model_b"), (True, 1, "model_b")]
    assert frames.votes(filled.store, 1).ordered


def test_columns_are_mapped_rows_are_chosen_and_one_nameless_annotator_is_the_group(
    filled: House, tmp_path: Path
) -> None:
    path = table(
        tmp_path,
        "q1,a,b,model_a,expert,eve",
        "q1,a,b,model_b,lay,lou",
        head="prompt,model_a,model_b,winner,kind,person",
    )
    named = {"instruction_id": "prompt", "annotator": "person"}
    given = read_votes(path, mapping=named, where={"kind": ["expert"]})
    assert given.left_aside == []
    add_votes(filled.store, "experts", given)
    add_votes(filled.store, "all", read_votes(path, mapping={"instruction_id": "prompt"}))
    assert kept(filled, "experts") == [("eve", "q1", "a", "b", None, 1, "model_a")]
    assert [row[0] for row in kept(filled, "all")] == ["all", "all"]


def test_a_format_of_another_tool_is_read_and_both_bad_may_be_dropped(filled: House, tmp_path: Path) -> None:
    rows = ["ann,q1,a,b,tie (bothbad)", "ann,q2,a,b,model_a"]
    path = table(tmp_path, *rows, head="judge_hash,question_id,model_a,model_b,winner")
    named = {"instruction_id": "question_id", "judge": "judge_hash"}
    given = read_votes(path, "chatbot-arena", mapping=named, both_bad="drop")
    assert add_votes(filled.store, "crowd", given).votes == 1
    assert add_votes(filled.store, "all", read_votes(path, "chatbot-arena", mapping=named)).votes == 2


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (("ann,q1,a,b,a", "bob,q1,a,x,x"), r"votes\.csv: row 2: model 'x' is not in the store, which has a, b, z"),
        (("ann,q1,a,b,a", "bob,q9,a,b,a"), r"votes\.csv: row 2: instruction 'q9' is not in the store"),
        (("ann,q1,a,b,z",), r'votes\.csv: row 1: "winner" is "z"'),
        (("simulated/person@1,q1,a,b,a", "ann,q1,a,b,b"), "simulated/person@1' is simulated and 'ann' is not"),
        (("ann,q2,a,b,a", "bob,q1,a,z,z"), r"row 2: 'bob' has voted for a tie on 'a' against 'z', instruction 'q1'"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_whole_with_its_row_and_name(
    filled: House, tmp_path: Path, rows: tuple[str, ...], said: str
) -> None:
    add_votes(filled.store, "crowd", read_votes(table(tmp_path, *VOTES)))
    before = kept(filled)
    with pytest.raises(InputError, match=said):
        add_votes(filled.store, "crowd", read_votes(table(tmp_path, *rows)))
    assert kept(filled) == before


@pytest.mark.parametrize(
    ("head", "row", "said"),
    [
        ("model_a,model_b,winner", "a,b,a", "no column of instructions"),
        (f"{HEAD},weight", "ann,q1,a,b,a,2", "votes have no weights"),
        ("instruction_id,model_a,model_b,score", "q1,a,b,0.7", "row 1: a vote is 1, 0.5 or 0"),
    ],
)
def test_what_is_no_table_of_votes_is_refused(tmp_path: Path, head: str, row: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_votes(table(tmp_path, row, head=head))


def test_numbers_that_a_file_gives_its_votes_are_kept_and_may_not_repeat(filled: House, tmp_path: Path) -> None:
    head = f"{HEAD},repeat"
    add_votes(filled.store, "crowd", read_votes(table(tmp_path, "ann,q1,a,b,a,2", "ann,q1,a,b,b,5", head=head)))
    assert [row[5:] for row in kept(filled)] == [(2, "model_a"), (5, "model_b")]
    with pytest.raises(InputError, match=r"row 2: 'ann' votes twice .* both as repeat 2"):
        add_votes(filled.store, "more", read_votes(table(tmp_path, "ann,q1,a,b,a,2", "ann,q1,b,a,b,2", head=head)))


def test_votes_that_a_store_exported_as_simulated_stay_so_whatever_annotators_are_called(
    filled: House, tmp_path: Path
) -> None:
    """A rehearsal's judges may have names of people: their votes are not those of people."""
    head = f"origin,{HEAD}"
    add_votes(filled.store, "crowd", read_votes(table(tmp_path, "simulated,ann,q1,a,b,a", head=head)))
    (group,) = frames.people(filled.store)
    assert group.origin is Origin.SIMULATED
    mixed = table(tmp_path, "simulated,ann,q1,a,b,a", "people,bob,q1,a,b,a", head=head)
    with pytest.raises(InputError, match="votes of origin simulated beside people"):
        add_votes(filled.store, "mixed", read_votes(mixed))
    add_votes(filled.store, "bobs", read_votes(mixed, where={"origin": "people"}))
    assert {one.name: one.origin for one in frames.people(filled.store)}["bobs"] is Origin.PEOPLE


def test_notes_are_kept_beside_their_votes_and_come_in_later_where_a_vote_has_none(
    filled: House, tmp_path: Path
) -> None:
    head = f"{HEAD},remark"
    rows = ["ann,q1,a,b,a, both <b>weak</b> ", 'bob,q1,b,a,tie,"two\nlines"', "bob,q2,a,b,a,", "bob,q3,a,b,,no vote"]
    path = table(tmp_path, *rows, head=head)
    assert add_votes(filled.store, "crowd", read_votes(path)).notes == 0
    given = read_votes(path, mapping={"note": "remark"})
    assert given.left_aside == []
    assert add_votes(filled.store, "crowd", given) == AddedVotes(0, 0, 3, 1, notes=2)
    assert add_votes(filled.store, "crowd", given).notes == 0
    other = table(tmp_path, "ann,q1,a,b,a,another", head=f"{HEAD},note", name="other.csv")
    assert add_votes(filled.store, "crowd", read_votes(other)).notes == 0
    notes = filled.all("select annotator, instruction_id, note from people_vote order by all")
    assert notes == [("ann", "q1", "both <b>weak</b>"), ("bob", "q1", "two\nlines"), ("bob", "q2", None)]
    with pytest.raises(InputError, match=r"row 1: the note has 10,001 characters, and a store keeps 10,000"):
        read_votes(table(tmp_path, f"ann,q1,a,b,a,{'x' * 10_001}", head=f"{HEAD},note"))
    with pytest.raises(InputError, match='no column "remarks"'):
        read_votes(path, mapping={"note": "remarks"})


def test_exported_votes_come_back_with_order_and_note_and_are_known(filled: House, tmp_path: Path) -> None:
    head = "annotator,instruction_id,first,second,verdict,note"
    shown = table(tmp_path, "ann,q1,b,a,first,why", "ann,q1,a,b,tie,", "bob,q2,z,a,second,", head=head)
    add_votes(filled.store, "crowd", read_votes(shown))
    add_votes(filled.store, "crowd", read_votes(table(tmp_path, "bob,q1,a,z,tie")))
    before = kept(filled)
    filled.store.close()
    source = tmp_path / "source.duckdb"
    source.write_bytes(filled.store.path.read_bytes())
    for form in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"out.{form}"
        (made,) = export_tables(source, out, ["votes"])
        assert made.rows == 4
        with open_store(filled.store.path) as store:
            again = add_votes(store, "crowd", read_votes(out))
            assert (again.votes, again.known, again.notes) == (0, 4, 0)
            other = add_votes(store, form, read_votes(out))
            assert (other.votes, other.notes) == (4, 1)
            assert kept(House(store), form) == before
    spoilt = tmp_path / "out.csv"
    spoilt.write_text(spoilt.read_text(encoding="utf-8").replace("true", "maybe", 1), encoding="utf-8")
    with pytest.raises(InputError, match=r'row \d: "swapped" is "maybe"; accepted: true'):
        read_votes(spoilt)


def test_simulated_people_and_people_stay_apart(filled: House, tmp_path: Path) -> None:
    add_votes(filled.store, "crowd", read_votes(table(tmp_path, "simulated/person@1,q1,a,b,a")))
    assert frames.people(filled.store)[0].origin is Origin.SIMULATED
    with pytest.raises(InputError, match="of origin people, and what 'crowd' said in the store of origin simulated"):
        add_votes(filled.store, "crowd", read_votes(table(tmp_path, "ann,q1,a,b,a")))
    with pytest.raises(InputError, match="no name for a group"):
        add_votes(filled.store, " ", read_votes(table(tmp_path, "ann,q1,a,b,a")))


def test_stores_with_votes_are_merged_once_each_and_contradictions_are_refused(filled: House, tmp_path: Path) -> None:
    one, two, three = (tmp_path / f"{name}.duckdb" for name in ("one", "two", "three"))
    filled.store.close()
    for path in (one, two, three):
        path.write_bytes(filled.store.path.read_bytes())
    noted = tuple(f"{row},why" for row in VOTES[1:])
    for path, rows, head in (
        (one, VOTES[:3], HEAD),
        (two, noted, f"{HEAD},note"),
        (three, ("ann,q1,a,b,tie",), HEAD),
    ):
        with open_store(path) as store:
            add_votes(store, "crowd", read_votes(table(tmp_path, *rows, head=head)))
    made = merge([one, two], tmp_path / "both.duckdb")
    assert [source.rows["votes"] for source in made.sources] == [3, 3]
    assert made.rows["votes"] == 4
    assert check(tmp_path / "both.duckdb").sound
    with open_store(tmp_path / "both.duckdb") as store:
        assert len(kept(House(store))) == 4
        assert House(store).all("select count(note) from people_vote") == [(3,)]  # two of them on votes of both
    with pytest.raises(InputError, match="'ann' voted otherwise on 'a' against 'b', instruction 'q1'"):
        merge([one, three], tmp_path / "none.duckdb")


def test_votes_name_an_instruction_by_its_id_or_by_its_text(filled: House, tmp_path: Path) -> None:
    by_id = read_votes(table(tmp_path, "ann,q1,a,b,model_a", head=HEAD.replace("instruction_id", "question_id")))
    ((turns,),) = filled.all("select turns from instruction where external_id = 'q1'")
    (text,) = json.loads(turns)
    named = table(tmp_path, f"bob,{text},a,b,model_a", head=HEAD.replace("instruction_id", "prompt"), name="texts.csv")
    by_text = read_votes(named)
    assert "taken as the instruction: prompt" in by_text.remarks[0]
    assert add_votes(filled.store, "crowd", by_id, by_text).votes == 2
