"""People's votes beside the judgments of judges: joined by battle as labels, or one more judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import Judgments, combine_keys, merge_orders, select_battles


@dataclass(frozen=True, slots=True, eq=False)
class HumanLabels:
    """Judgments with people's labels: a row for each vote on a judgment's battle, one row where there is no vote.

    `rows` (labels,) are positions among the judgments, `human` (labels,) the vote for A (1, 0.5 or 0; 0.75 and 0.25 of
    a person who saw both orders), NaN without a vote, and `share` (labels,) one over the rows of the judgment. So a
    judgment weighs as much whether it has none, one or many.
    """

    rows: NDArray[np.intp]
    human: NDArray[np.float64]
    share: NDArray[np.float64]

    @property
    def labelled(self) -> int:
        """The number of judgments with at least one vote."""
        return len(np.unique(self.rows[~np.isnan(self.human)]))

    def comparisons(self, judgments: Judgments) -> Comparisons:
        """The judgments as comparisons, a row for each label; the rows of one battle are never independent."""
        data = judgments.comparisons().select(self.rows)
        if not bool((self.share == 1.0).all()):
            data = replace(data, weight=self.share if data.weight is None else self.share * data.weight)
        if data.cluster is not None:
            return data
        # Without clusters every row would be a unit of its own: several votes on one judgment would count as several
        # judgments, and one vote beside several judges as several votes.
        key = combine_keys(judgments.model_a, judgments.model_b, judgments.instruction)[self.rows]
        battles, cluster = np.unique(key, return_inverse=True)
        return replace(data, cluster=cluster.astype(np.int32), clusters=tuple(map(str, range(len(battles)))))


def human_labels(judgments: Judgments, people: Battles) -> HumanLabels:
    """Join votes to judgments of the same two models and instruction, whoever judged.

    Each vote is a label of its own, so that people who disagree on a battle stay apart. Raises `InputError` where
    judgments or votes have no instructions.

    >>> from venire.ratings import battles, human_labels, merge_orders
    >>> judge = battles(["a"], ["b"], [1], judge=["j"], instruction=["q"])
    >>> people = battles(["a", "a"], ["b", "b"], [1, 0], judge=["ann", "bob"], instruction=["q", "q"])
    >>> found = human_labels(merge_orders(judge), people)
    >>> found.human.tolist(), found.share.tolist()
    ([1.0, 0.0], [0.5, 0.5])
    """
    votes = merge_orders(people)
    if not (judgments.instructions and votes.instructions):
        raise InputError("votes are joined to judgments by instruction, and one of the two names none")
    ours, theirs = _battle_keys(judgments, votes)
    order = np.argsort(theirs, kind="stable")
    theirs = theirs[order]
    start, end = np.searchsorted(theirs, ours, "left"), np.searchsorted(theirs, ours, "right")
    count = np.where(ours < 0, 0, end - start)
    repeats = np.maximum(count, 1)
    rows = np.repeat(np.arange(len(ours)), repeats)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    human = np.full(len(rows), np.nan)
    voted = count[rows] > 0
    human[voted] = votes.y[order][(start[rows] + nth)[voted]]
    return HumanLabels(rows, human, 1.0 / repeats[rows])


def _battle_keys(judgments: Judgments, votes: Judgments) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One number for the battle of each row of both tables, equal for the same battle."""
    models = _union(judgments.models, votes.models)
    instructions = _union(judgments.instructions, votes.instructions)
    sides = [
        [
            _codes(one.models, models)[one.model_a],
            _codes(one.models, models)[one.model_b],
            _codes(one.instructions, instructions)[one.instruction],
        ]
        for one in (judgments, votes)
    ]
    key = combine_keys(*(np.concatenate(pair) for pair in zip(*sides, strict=True)))
    return key[: len(judgments)], key[len(judgments) :]


def _union(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({*first, *second}))


def _codes(names: Sequence[str], among: Sequence[str]) -> NDArray[np.int32]:
    place = {name: code for code, name in enumerate(among)}
    return np.array([place[name] for name in names], dtype=np.int32)


def free_name(judgments: Judgments) -> str:
    """A name for people that no judge has."""
    name = "people"
    while name in judgments.judges:
        name += "'"
    return name


def with_people(judgments: Judgments, people: Battles, name: str) -> Judgments:
    """The judgments and the votes of people as those of one more judge, `name`, whose repeats are the votes.

    Columns that only one of the two has are left out. Raises `InputError` where a judge has that name.
    """
    if name in judgments.judges:
        raise InputError(f"a judge is called {name!r}, as these people are: import their votes under another name")
    votes = merge_orders(people)
    own = replace(votes, judges=(name,), judge=np.zeros(len(votes), dtype=np.int32), repeat=_numbered(votes))
    return joined_judgments(judgments, own)


def _numbered(votes: Judgments) -> NDArray[np.int32]:
    """The number of each vote among those on its battle, from 1; rows of one battle are adjacent."""
    key = combine_keys(votes.model_a, votes.model_b, votes.instruction + 1)
    fresh = np.ones(len(key), dtype=np.bool_)
    fresh[1:] = key[1:] != key[:-1]
    place = np.arange(len(key))
    return (place - np.maximum.accumulate(np.where(fresh, place, 0)) + 1).astype(np.int32)


def joined_judgments(first: Judgments, second: Judgments) -> Judgments:
    """Two tables of judgments as one, by names; columns beside the outcome are left out."""
    models, judges = _union(first.models, second.models), _union(first.judges, second.judges)
    instructions = _union(first.instructions, second.instructions)

    def both(column: str, names: str | None = None, among: tuple[str, ...] = ()) -> NDArray[np.int32]:
        parts = []
        for one in (first, second):
            codes = getattr(one, column)
            parts.append(codes if names is None else _codes(getattr(one, names), among)[codes])
        return np.concatenate(parts)

    return Judgments(
        models=models,
        judges=judges,
        instructions=instructions,
        model_a=both("model_a", "models", models),
        model_b=both("model_b", "models", models),
        judge=both("judge", "judges", judges),
        instruction=both("instruction", "instructions", instructions),
        repeat=both("repeat"),
        y=np.concatenate([first.y, second.y]),
        flipped=np.concatenate([first.flipped, second.flipped]),
        readable=np.concatenate([first.readable, second.readable]),
        merge=first.merge,
        merged=first.merged and second.merged,
        unreadable=first.unreadable + second.unreadable,
        clustering=first.clustering,
    )


def split_people(battles: Battles, names: Sequence[str]) -> tuple[Battles, Battles]:
    """A table's verdicts of judges, and those of the judges `names`, who are people.

    Raises `InputError` for a name that no judge has, and where nobody else judged.
    """
    if strange := [name for name in names if name not in battles.judges]:
        raise InputError(f"no judge is called {strange[0]!r}; {suggest(strange[0], battles.judges)}")
    codes = [battles.judges.index(name) for name in names]
    theirs = np.isin(battles.judge, codes)
    if theirs.all():
        raise InputError(f"{', '.join(names)}: nobody else judged in this table, so there is no judge to compare")
    return _of_judges(battles, ~theirs), _of_judges(battles, theirs)


def _of_judges(battles: Battles, rows: NDArray[np.bool_]) -> Battles:
    """Some rows with the judges that occur in them."""
    kept = select_battles(battles, rows)
    there = np.unique(kept.judge)
    place = np.zeros(len(kept.judges), dtype=np.int32)
    place[there] = np.arange(len(there), dtype=np.int32)
    return replace(kept, judges=tuple(kept.judges[code] for code in there.tolist()), judge=place[kept.judge])
