"""What settled trials of the same respondents took, so that a forecast need not guess; and how long what is left is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from venire.storage.plans.trial_states import by_number, parts, settled, trial_states
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ATTEMPTS = 200_000
"""The latest ones are enough to learn from, and a store may hold millions."""
_AT_ONCE = 1 << 17
_SUMMED = ("calls", "answered", "input", "cached", "output", "reasoning", "unanswered", "paid", "latency")


@dataclass(frozen=True, slots=True, eq=False)
class OnRecord:
    """What settled trials of one respondent took; all arrays are (instructions,), of those that it was asked about.

    `trials` and the `characters` of the texts that they show; `calls` sent and `answered`; tokens of answered calls:
    `input`, of these `cached`, `output`, of these `reasoning`; nano-dollars `paid` for answered calls and for
    `unanswered` ones, as reserved where the cost is not known; `latency` of answered calls in milliseconds.
    """

    trials: NDArray[np.int64]
    characters: NDArray[np.int64]
    calls: NDArray[np.int64]
    answered: NDArray[np.int64]
    input: NDArray[np.int64]
    cached: NDArray[np.int64]
    output: NDArray[np.int64]
    reasoning: NDArray[np.int64]
    unanswered: NDArray[np.int64]
    paid: NDArray[np.int64]
    latency: NDArray[np.int64]


def on_record(store: Store, respondents: Collection[int], referenced: Collection[int] = ()) -> Mapping[int, OnRecord]:
    """What the latest settled trials of some respondents took, in any campaign of the store; only of those with any.

    Those in `referenced` are shown reference answers as well. Trials that began before the attempts that are read are
    left out.
    """
    ((last,),) = store.read("last_attempt")
    found = _attempts(store, sorted(respondents), max(0, last + 1 - _ATTEMPTS), last)
    if not len(found["trial"]):
        return {}
    is_settled = settled(store)
    found = {name: column[is_settled[found["trial"]]] for name, column in found.items()}
    shown = _shown(store, found["trial"], len(is_settled))
    lengths = {one: by_number(store, "instruction_lengths", one) for one in ("characters", "referenced")}
    learnt = {}
    for number in np.unique(found["respondent"]).tolist():
        of = found["respondent"] == number
        length = lengths["referenced" if number in referenced else "characters"]
        characters = shown[of] + length[found["instruction"][of]]
        group = np.unique(found["instruction"][of], return_inverse=True)[1]
        sums = {name: _sums(group, found[name][of]) for name in _SUMMED}
        learnt[number] = OnRecord(np.bincount(group).astype(np.int64), _sums(group, characters), **sums)
    return learnt


def _sums(group: NDArray[np.intp], values: NDArray[np.int64]) -> NDArray[np.int64]:
    found = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(found, group, values)
    return found


def _attempts(store: Store, respondents: list[int], low: int, last: int) -> dict[str, NDArray[np.int64]]:
    """What was asked in a range of rows, a row a trial; those whose first step lies before it are left out."""
    columns: list[Mapping[str, NDArray[Any]]] = [
        store.arrays("asked_between", low=at, high=min(at + _AT_ONCE - 1, last), respondents=respondents)
        for at in range(low, last + 1, _AT_ONCE)
    ]
    names = ("trial", "respondent", "instruction", "first_step", *_SUMMED)
    rows = {
        name: np.concatenate([np.ma.getdata(part[name]).astype(np.int64) for part in columns])
        if columns
        else np.zeros(0, dtype=np.int64)
        for name in names
    }
    trials, group = np.unique(rows["trial"], return_inverse=True)  # calls of one may lie in two ranges
    first = np.full(len(trials), np.iinfo(np.int64).max)
    np.minimum.at(first, group, rows["first_step"])
    found = {"trial": trials} | {name: _sums(group, rows[name]) for name in _SUMMED}
    for name in ("respondent", "instruction"):
        found[name] = np.zeros(len(trials), dtype=np.int64)
        found[name][group] = rows[name]
    return {name: column[first == 1] for name, column in found.items()}


def _shown(store: Store, trials: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Characters of the completions that each of some trials shows."""
    length = np.zeros(size, dtype=np.int64)
    if len(trials):
        for part in parts(store, "shown_between", int(trials.max())):
            length[part["trial"]] = part["shown"]
    return length[trials]


_TEXTS_AT_ONCE = 500


def longer(
    store: Store, campaign: int, respondent: int, tokens: int, count: Callable[[str], int], *, reference: bool = False
) -> int:
    """How many trials left for a respondent show texts of more than so many tokens together.

    A text has no more tokens than bytes, so `count` is called only with texts that are shown in a trial of more bytes,
    once for each. `reference`: reference answers are shown too.
    """
    missing = trial_states(store, campaign).missing
    asked, shown = by_number(store, "instruction_bytes", reference=reference), by_number(store, "completion_bytes")
    doubtful = [np.zeros(len(sizes), dtype=np.bool_) for sizes in (asked, shown)]
    for part, totals in _totals(store, respondent, missing, asked, shown):
        over = totals > tokens
        doubtful[0][part["instruction"][over]] = True
        doubtful[1][part["completion"][over]] = True
    doubtful[1][0] = False  # number 0: no completion
    for numbers in _chunks(doubtful[0]):
        for number, one in store.texts.instructions(numbers).items():
            said = "\n\n".join((*one.what.turns, (one.what.reference or "") if reference else ""))
            asked[number] = min(asked[number], count(said))
    for numbers in _chunks(doubtful[1]):
        for number, other in store.texts.completions(numbers).items():
            shown[number] = min(shown[number], count(other.what.text))
    found = 0
    for part, totals in _totals(store, respondent, missing, asked, shown):
        found += len(np.unique(part["trial"][totals > tokens]))
    return found


def _chunks(chosen: NDArray[np.bool_]) -> Iterator[list[int]]:
    numbers = np.flatnonzero(chosen).tolist()
    return (numbers[start : start + _TEXTS_AT_ONCE] for start in range(0, len(numbers), _TEXTS_AT_ONCE))


def _totals(
    store: Store,
    respondent: int,
    missing: NDArray[np.bool_],
    asked: NDArray[np.int64],
    shown: NDArray[np.int64],
) -> Iterator[tuple[Mapping[str, NDArray[Any]], NDArray[np.int64]]]:
    """A row for each completion that a missing trial shows (0: it shows none), with the size of the whole trial."""
    for part in parts(store, "pieces_between", len(missing) - 1, respondent=respondent):
        chosen = missing[part["trial"]]
        rows = {name: values[chosen] for name, values in part.items()}
        _, first, trial = np.unique(rows["trial"], return_index=True, return_inverse=True)
        sizes = asked[rows["instruction"][first]]
        np.add.at(sizes, trial, shown[rows["completion"]])
        yield rows, sizes[trial]
