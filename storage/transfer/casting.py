"""One person's vote on one battle, given while a store is served: the later vote of the same person replaces it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from venire.arena.choices import VoteWinner
from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.storage.store.connection import Row
from venire.storage.store.store import Commit, Store

_MAX_NAME = 80
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class CastVote:
    """A vote on two completions by their numbers in the store, in the order they were shown; `note` may be empty."""

    first: int
    second: int
    winner: VoteWinner
    note: str = ""


@dataclass(frozen=True, slots=True)
class OwnVote:
    """What somebody said of a battle before: the model that won, or None for a tie, and the note; `votes` of theirs."""

    winner: str | None
    note: str
    votes: int


def annotator_name(text: str) -> str:
    """A person's name as a store keeps it: one line, one space between words.

    Raises InputError for an empty name, one that is longer than 80 characters, and one with what cannot be seen.

    >>> annotator_name("  Ann   B. ")
    'Ann B.'
    """
    name = _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip()
    if not name:
        raise InputError("votes need a name: write a short one, under which they are kept")
    if len(name) > _MAX_NAME:
        raise InputError(f"a name has up to {_MAX_NAME} characters, and this one has {len(name)}: write a shorter one")
    if not name.isprintable():
        raise InputError("the name has characters that cannot be seen: write it with letters")
    return name


def group_name(text: str) -> str:
    """What a group of people is called. Raises InputError for a text without letters, or with what cannot be seen."""
    if not text.strip() or not text.isprintable():
        raise InputError(f"{text!r} is no name for a group of people: give it some letters")
    return text


def group_number(store: Store, commit: Commit, name: str, origin: Origin, path: Path) -> int:
    """The number of a group of people, made where it is new; `path` is the file that what they said comes from.

    Raises InputError where the group is of another origin.
    """
    known = {group: (int(number), theirs) for number, group, theirs, *_ in store.rows("people")}
    if name not in known:
        commit.run("insert_people", name=name, origin=origin.value)
        return max((number for number, _ in known.values()), default=0) + 1
    number, theirs = known[name]
    if theirs != origin.value:
        raise InputError(
            f"{path}: what people say here is of origin {origin.value}, and what {name!r} said in the store of origin "
            f"{theirs}: give them another name"
        )
    return number


def refuse_bad_group(store: Store, people: str) -> None:
    """Raises InputError for a name of no group, and for a group whose votes are simulated: no person adds to those."""
    group_name(people)
    for _, name, origin, *_ in store.read("people"):
        if name == people and origin != Origin.PEOPLE.value:
            raise InputError(
                f"the votes of {people!r} in {store.path} are {origin}: give those of people another name (--as NAME)"
            )


def own_votes(store: Store, people: str, annotator: str) -> dict[tuple[str, frozenset[str]], OwnVote]:
    """The votes of one person of a group, by instruction and the two models; of several on one battle the first."""
    found: dict[tuple[str, frozenset[str]], OwnVote] = {}
    for asked, model_a, model_b, label, note in store.read("own_votes", people=people, annotator=annotator):
        key = asked, frozenset((model_a, model_b))
        before = found.get(key)
        winner = {1: model_a, -1: model_b}.get(label)
        found[key] = OwnVote(winner, note or "", 1) if before is None else _counted(before)
    return found


def _counted(vote: OwnVote) -> OwnVote:
    return OwnVote(vote.winner, vote.note, vote.votes + 1)


def cast_vote(store: Store, people: str, annotator: str, vote: CastVote) -> bool:
    """Keep a vote of a person of a group, made where they are new; whether anything was changed.

    A person has one vote on a battle: a later one takes the place of theirs, with its order shown and its note. The
    same vote twice changes nothing. Raises InputError where the two completions are not of two models on one
    instruction, for a group of another origin, and where the person has several votes on the battle, which an import
    brought.

    >>> cast_vote(store, "crowd", "ann", CastVote(7, 9, "answer_1", "the other invents a source"))
    True
    """
    refuse_bad_group(store, people)
    instruction, (model_a, model_b), swapped = _battle(store, vote)
    label = {"answer_1": 1, "tie": 0, "answer_2": -1}[vote.winner] * (-1 if swapped else 1)
    battle = {"instruction": instruction, "model_a": model_a, "model_b": model_b}
    wanted = {"swapped": swapped, "label": label, "note": vote.note or None}
    before: Sequence[Row] = store.read("cast_before", people=people, annotator=annotator, **battle)
    if len(before) > 1:
        raise InputError(
            f"{annotator!r} has {len(before)} votes on this battle, which were imported: they cannot be changed here"
        )
    if before == [(swapped, label, wanted["note"])]:
        return False
    with store.commit() as commit:
        commit.run("insert_people", name=people, origin=Origin.PEOPLE.value)
        commit.run("insert_annotator", people=people, annotator=annotator)
        named = {"people": people, "annotator": annotator, "batch": commit.batch, **battle, **wanted}
        commit.run("replace_vote" if before else "cast_vote", **named)
    return True


def _battle(store: Store, vote: CastVote) -> tuple[int, tuple[int, int], bool]:
    """Numbers of instruction and models, A before B by name, and whether B was shown first."""
    rows = {number: rest for number, *rest in store.read("cast_on", completions=[vote.first, vote.second])}
    if {vote.first, vote.second} - rows.keys():
        raise InputError(f"{store.path} does not have these completions: nothing was kept")
    (asked, first, first_name), (other_asked, second, second_name) = rows[vote.first], rows[vote.second]
    if asked != other_asked or first == second:
        raise InputError("these are not two models' answers to one instruction: nothing was kept")
    swapped = first_name > second_name
    return asked, (second, first) if swapped else (first, second), swapped
