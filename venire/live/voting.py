"""People's votes on the pages of a served store: what each person is shown, and each vote on its way into the store."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from venire.annotation import SharedSample, shared_sample
from venire.arena.choices import AnnotationSample, VoteWinner
from venire.arena.errors import InputError, StoreHeldError
from venire.live.library import ServedStore
from venire.pages.views.annotation import shown_battles
from venire.storage.read import frames
from venire.storage.read.blind_battles import VotableCompletion, blind_codes, blind_texts
from venire.storage.store.files import is_writable
from venire.storage.store.store import Store
from venire.storage.transfer.casting import (
    CastVote,
    OwnVote,
    annotator_name,
    cast_vote,
    own_votes,
    refuse_bad_group,
)

MAX_VOTE_BYTES = 64 * 1024
"""Of a vote as it is sent: a note has 2,000 characters, each of up to twelve bytes as JSON."""

MAX_NOTE = 2_000
_MAX_CODE = 64
_FIELDS = frozenset({"token", "annotator", "answer_1", "answer_2", "winner", "note"})


class StoreClosedError(StoreHeldError):
    """The store cannot be opened to be written now: the vote is to be sent again."""


class UnknownBattleError(InputError):
    """A vote is on two completions that are not a battle of the sample."""


def refuse_not_writable(paths: Iterable[Path]) -> None:
    """Raises InputError for a store that this user cannot write, since votes would be lost."""
    for path in paths:
        if not is_writable(path.resolve()):
            raise InputError(
                f"people cannot vote on {path}: it cannot be written; serve a copy in a folder of your own"
            )


@dataclass(frozen=True, slots=True)
class SubmittedVote:
    """A vote as a page sends it: codes of completions in the order they were shown, and the token of the page."""

    token: str
    annotator: str
    answer_1: str
    answer_2: str
    winner: VoteWinner
    note: str


def read_vote(body: bytes) -> SubmittedVote:
    """A vote from the JSON that a page sends. Raises InputError that names the field for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError("a vote is a JSON object, and this is no JSON") from error
    if not isinstance(found, dict) or found.keys() != _FIELDS:
        raise InputError(f"a vote is a JSON object of {', '.join(sorted(_FIELDS))}")
    for name, value in found.items():
        if not isinstance(value, str):
            raise InputError(f"{name} of a vote is a text")
    if found["winner"] not in get_args(VoteWinner):
        raise InputError(f"winner of a vote is one of {', '.join(get_args(VoteWinner))}")
    if len(found["note"]) > MAX_NOTE:
        raise InputError(f"the note has {len(found['note']):,} characters, and may have {MAX_NOTE:,}: shorten it")
    if any(len(found[name]) > _MAX_CODE for name in ("answer_1", "answer_2")):
        raise InputError("answer_1 and answer_2 of a vote are codes of completions")
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("a vote has half a letter in it, which no text can have") from None
    return SubmittedVote(**found | {"annotator": annotator_name(found["annotator"])})


@dataclass(frozen=True, slots=True)
class _DrawnSample:
    """A sample, its completions by their codes, and its battles as pairs of completions."""

    shared: SharedSample
    numbers: Mapping[str, int]
    battles: frozenset[frozenset[int]]


@dataclass(slots=True)
class Voting:
    """Lets people vote on served stores: `people` is the name of their group, the rest as for `venire annotate`.

    A sample is drawn when it is first asked for, and stays while the server runs. Methods are called in threads.
    """

    people: str = "people"
    sample: AnnotationSample = "random"
    count: int | None = None
    seed: int | None = None
    _samples: dict[tuple[str, int, bytes], _DrawnSample] = field(default_factory=dict)
    _door: threading.Lock = field(default_factory=threading.Lock)

    def battles(self, served: ServedStore, campaign: int, annotator: str) -> dict[str, Any]:
        """What somebody of a name votes on, with the votes that they gave before; of nobody whose the answers are.

        Raises InputError for a name that is none, and as `shared_sample` does; StoreHeldError where the store is held.
        """
        name = annotator_name(annotator)
        with served.store() as store:
            refuse_bad_group(store, self.people)
            sample = self._sample(store, served.slug, campaign).shared
            pairs = sample.of_annotator(name)
            texts = blind_texts(store, {one.number for pair in pairs for one in pair})
            shown = shown_battles([(texts[one.number], texts[other.number]) for one, other in pairs])
            before = own_votes(store, self.people, name)
        for battle, (first, second) in zip(shown, pairs, strict=True):
            battle["vote"] = _seen(before.get((first.instruction, frozenset((first.model, second.model)))), first)
        return {"page": sample.digest, "annotator": name, "battles": shown}

    def keep(self, served: ServedStore, campaign: int, vote: SubmittedVote) -> bool:
        """Write a vote to the store; whether it was new or another than before.

        Raises UnknownBattleError for two completions that are no battle of the sample, StoreHeldError where another
        process has the store or it cannot be opened, and InputError as `cast_vote` does.
        """
        with ExitStack() as stack:
            try:
                store = stack.enter_context(served.writing())
            except InputError as error:
                raise StoreClosedError(str(error)) from error
            drawn = self._sample(store, served.slug, campaign)
            first, second = (drawn.numbers.get(code, 0) for code in (vote.answer_1, vote.answer_2))
            if frozenset((first, second)) not in drawn.battles:
                raise UnknownBattleError("this battle is not among those to vote on here: load the page again")
            return cast_vote(
                store, self.people, vote.annotator, CastVote(first, second, vote.winner, vote.note.strip())
            )

    def _sample(self, store: Store, slug: str, campaign: int) -> _DrawnSample:
        name = next((one.name for one in frames.campaigns(store) if one.id == campaign), None)
        if name is None:
            raise InputError(f"the store {store.path} has no campaign number {campaign}")
        key = slug, campaign, store.constant
        with self._door:
            if key not in self._samples:
                shared = shared_sample(store, sample=self.sample, count=self.count, seed=self.seed, campaign=name)
                codes = blind_codes(store, {one.number for pair in shared.pairs for one in pair})
                self._samples[key] = _DrawnSample(
                    shared,
                    {code: number for number, code in codes.items()},
                    frozenset(frozenset((one.number, other.number)) for one, other in shared.pairs),
                )
            return self._samples[key]


def _seen(vote: OwnVote | None, first: VotableCompletion) -> Mapping[str, str] | None:
    """A vote as the page has it, by the order that is shown now."""
    if vote is None:
        return None
    if vote.winner is None:
        return {"winner": "tie", "note": vote.note}
    return {"winner": "answer_1" if vote.winner == first.model else "answer_2", "note": vote.note}
