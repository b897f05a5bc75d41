"""Votes given one by one: each person has one on a battle, and a retry of the browser's changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.storage.conftest import House
from venire.arena.errors import InputError
from venire.storage.care.checking import check
from venire.storage.read import frames
from venire.storage.transfer.casting import CastVote, annotator_name, cast_vote, own_votes
from venire.storage.transfer.votes import add_votes, read_votes


@pytest.fixture
def number(filled: House) -> dict[tuple[str, str], int]:
    """The numbers of completions by model and instruction."""
    query = "select m.name, i.external_id, c.id from completion c join model m on m.id = c.model "
    query += "join instruction i on i.id = c.instruction"
    return {(model, asked): one for model, asked, one in filled.all(query)}


def kept(house: House) -> list[tuple[Any, ...]]:
    return house.all(
        "select people, annotator, origin, instruction_id, model_a, model_b, swapped, repeat, winner, note "
        "from people_vote order by all"
    )


def test_a_vote_is_kept_in_terms_of_the_store_with_the_order_shown(
    filled: House, number: dict[tuple[str, str], int]
) -> None:
    a, b, z = (number[model, "q1"] for model in "abz")
    assert cast_vote(filled.store, "crowd", "ann", CastVote(b, a, "answer_1", "why"))
    assert cast_vote(filled.store, "crowd", "ann", CastVote(a, z, "answer_1"))
    assert cast_vote(filled.store, "crowd", "bob", CastVote(z, a, "tie"))
    assert kept(filled) == [
        ("crowd", "ann", "people", "q1", "a", "b", True, 1, "model_b", "why"),
        ("crowd", "ann", "people", "q1", "a", "z", False, 1, "model_a", None),
        ("crowd", "bob", "people", "q1", "a", "z", True, 1, "tie", None),
    ]
    (group,) = frames.people(filled.store)
    assert (group.annotators, group.votes, group.ties) == (2, 3, 1)
    own = own_votes(filled.store, "crowd", "ann")
    assert own["q1", frozenset("ab")].winner == "b"
    assert own["q1", frozenset("ab")].note == "why"
    assert own_votes(filled.store, "others", "ann") == {}


def test_a_later_vote_takes_the_place_of_the_same_person_s_and_the_same_one_changes_nothing(
    filled: House, number: dict[tuple[str, str], int]
) -> None:
    """The danger: a browser that sends again makes two votes of one."""
    a, b = number["a", "q1"], number["b", "q1"]
    assert cast_vote(filled.store, "crowd", "ann", CastVote(a, b, "answer_1", "first"))
    batch = filled.store.batch
    assert not cast_vote(filled.store, "crowd", "ann", CastVote(a, b, "answer_1", "first"))
    assert filled.store.batch == batch
    assert cast_vote(filled.store, "crowd", "ann", CastVote(b, a, "tie"))
    assert kept(filled) == [("crowd", "ann", "people", "q1", "a", "b", True, 1, "tie", None)]
    path = filled.store.path
    filled.store.close()
    assert check(path).sound


def test_votes_that_were_imported_are_known_and_several_on_one_battle_are_left_alone(
    filled: House, number: dict[tuple[str, str], int], tmp_path: Path
) -> None:
    path = tmp_path / "votes.csv"
    rows = ["ann,q1,a,b,a", "ann,q2,a,b,b", "ann,q2,a,b,b"]
    path.write_text("\n".join(["annotator,instruction_id,model_a,model_b,winner", *rows]) + "\n", encoding="utf-8")
    add_votes(filled.store, "crowd", read_votes(path))
    assert own_votes(filled.store, "crowd", "ann")["q2", frozenset("ab")].votes == 2
    assert cast_vote(filled.store, "crowd", "ann", CastVote(number["a", "q1"], number["b", "q1"], "answer_2"))
    assert kept(filled)[0] == ("crowd", "ann", "people", "q1", "a", "b", False, 1, "model_b", None)
    with pytest.raises(InputError, match="'ann' has 2 votes on this battle, which were imported"):
        cast_vote(filled.store, "crowd", "ann", CastVote(number["a", "q2"], number["b", "q2"], "tie"))
    assert len(kept(filled)) == 3


def test_what_is_no_battle_and_who_is_no_group_of_people_is_refused(
    filled: House, number: dict[tuple[str, str], int], tmp_path: Path
) -> None:
    a, b, other = number["a", "q1"], number["b", "q1"], number["b", "q2"]
    for vote, said in (
        (CastVote(a, a, "tie"), "not two models' answers to one instruction"),
        (CastVote(a, other, "tie"), "not two models' answers to one instruction"),
        (CastVote(a, 9_999, "tie"), "does not have these completions"),
    ):
        with pytest.raises(InputError, match=said):
            cast_vote(filled.store, "crowd", "ann", vote)
    path = tmp_path / "votes.csv"
    path.write_text("judge,instruction_id,model_a,model_b,winner\nsimulated/person@1,q1,a,b,a\n", encoding="utf-8")
    add_votes(filled.store, "rehearsed", read_votes(path))
    with pytest.raises(InputError, match=r"'rehearsed' in .* are simulated: give those of people another name"):
        cast_vote(filled.store, "rehearsed", "ann", CastVote(a, b, "tie"))
    with pytest.raises(InputError, match="no name for a group"):
        cast_vote(filled.store, " ", "ann", CastVote(a, b, "tie"))
    assert len(kept(filled)) == 1


@pytest.mark.parametrize(("text", "name"), [(" Ann \n B.", "Ann B."), ("e\u0301", "\u00e9"), ("x" * 80, "x" * 80)])
def test_a_name_is_one_line(text: str, name: str) -> None:
    assert annotator_name(text) == name


@pytest.mark.parametrize("text", ["", " \t", "x" * 81, "a\u202eb", "a\x00b"])
def test_a_name_that_nobody_could_tell_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        annotator_name(text)
