"""How long the texts are that a trial shows together: told by their bytes where that is enough, else counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from venire.storage.plans.trial_states import by_number, parts, standing
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["longer"]

_AT_ONCE = 500


def longer(
    store: Store, campaign: int, respondent: int, tokens: int, count: Callable[[str], int], *, reference: bool = False
) -> int:
    """How many trials left for a respondent show texts of more than so many tokens together.

    A text has no more tokens than bytes, so that `count` hears only of texts that are shown in a trial of more bytes,
    and of each once. `reference` says whether reference answers are shown too.
    """
    missing = standing(store, campaign).missing
    asked, shown = by_number(store, "instruction_bytes", reference=reference), by_number(store, "completion_bytes")
    doubtful = [np.zeros(len(sizes), dtype=np.bool_) for sizes in (asked, shown)]
    for part, totals in _totals(store, respondent, missing, asked, shown):
        over = totals > tokens
        doubtful[0][part["instruction"][over]] = True
        doubtful[1][part["completion"][over]] = True
    doubtful[1][0] = False  # stands for no completion
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
    return (numbers[start : start + _AT_ONCE] for start in range(0, len(numbers), _AT_ONCE))


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
