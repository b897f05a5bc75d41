"""The columns of a table of ballots, checked one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.data.validation import code_integers, code_labels, column

__all__ = ["names_of", "ranks_of", "repeats_of", "weights_of"]


def names_of(argument: str, values: Any, rows: int | None = None) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The names sorted, and each row's code. Raises `InputError` for what is no name, and another number of rows."""
    given = column(argument, values)
    encoded = isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], np.ndarray)
    length = len(given[0]) if encoded else len(given)
    if rows is not None and length != rows:
        raise InputError(f"{argument} has {length} rows, model has {rows}; give one value a row")
    if not length:
        return (), np.zeros(0, dtype=np.int32)
    if isinstance(given, np.ndarray) and np.issubdtype(given.dtype, np.integer):
        found, codes = code_integers(given)
        names = list(map(str, found.tolist()))
    else:
        names, codes = code_labels(argument, given)
    ordered = tuple(sorted(set(names)))
    place = {name: code for code, name in enumerate(ordered)}
    return ordered, np.array([place[name] for name in names], dtype=np.int32)[codes]


def ranks_of(rank: ArrayLike, rows: int) -> NDArray[np.float64]:
    """Ranks (rows,) as given, infinite where a model was shown and not ranked. Raises `InputError` for a bad one."""
    places = _numbers("rank", rank, rows)
    wrong = places <= 0
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"rank, row {row}: {places[row]:g} is not possible: give a number above 0, smaller being better, or NaN "
            "for a model that was shown and not ranked"
        )
    return np.where(np.isnan(places), np.inf, places)


def repeats_of(repeat: ArrayLike | None, rows: int) -> NDArray[np.int32]:
    """Repeats (rows,), 1 where none are given. Raises `InputError` for one that is no whole number from 1 on."""
    if repeat is None:
        return np.ones(rows, dtype=np.int32)
    times = _numbers("repeat", repeat, rows)
    wrong = ~((times >= 1) & (times == np.floor(times)) & (times < 2**31))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"repeat, row {row}: {times[row]:g} is not possible: give a whole number from 1 on")
    return times.astype(np.int32)


def weights_of(
    weight: ArrayLike | None, rows: int, ballot: NDArray[np.intp], first: NDArray[np.intp]
) -> NDArray[np.float64] | None:
    """The weight of each ballot; `ballot` (rows,) is each row's, `first` (ballots,) the first row of each.

    Raises `InputError` for a weight that is none, and where rows of a ballot differ.
    """
    if weight is None:
        return None
    given = _numbers("weight", weight, rows)
    wrong = ~((given >= 0) & np.isfinite(given))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"weight, row {row}: {given[row]:g} is not possible: give a finite weight, 0 or more")
    of_ballot = given[first]
    other = given != of_ballot[ballot]
    if other.any():
        row = int(np.argmax(other))
        raise InputError(
            f"weight, row {row}: {given[row]:g}, and {of_ballot[ballot[row]]:g} in row {first[ballot[row]]} of the "
            "same ballot; a ballot has one weight"
        )
    return of_ballot


def _numbers(argument: str, values: ArrayLike, rows: int) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        row, value = _no_number(list(np.asarray(values, dtype=object)))
        raise InputError(f"{argument}, row {row}: {value!r} is not a number") from None
    if array.shape != (rows,):
        raise InputError(f"{argument} has shape {array.shape}, model has {rows} rows; give one number a row")
    return array


def _no_number(values: list[Any]) -> tuple[int, Any]:
    """The first value that is no number, and its row."""
    for row, value in enumerate(values):
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None:
                return row, value
    return 0, values
