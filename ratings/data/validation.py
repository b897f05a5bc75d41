"""Validation of arguments: coding of name columns to integers, and levels, draws and seeds of many methods.

Ten million names are coded without sorting. Few names repeat over many rows, so each row is looked up in a hash table.
Strings of fixed width are rows of machine words. A few of these words distinguish the known names; a hash of them gives
the only candidate name of a row, and all its words are then compared with the candidate's. Repeated references to the
same Python string objects are distinguished by their addresses in the same way; other strings use a dict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError

_ROWS = 1 << 14
"""Rows looked up at a time, so that their words stay in the processor's cache."""

_NAMES = 2048
"""Number of names (or addresses) beyond which a dict is faster."""


def column(argument: str, values: Any) -> Any:
    """A one-dimensional column: an array, a list of strings unchanged, or (codes, names) of encoded data.

    Dictionary-encoded columns are recognised by their attributes: pandas Categorical (`codes`, `categories`), also as a
    Series, and Arrow (`indices`, `dictionary`). Raises `InputError` for a missing value in an encoded column, and for
    other shapes.
    """
    values = getattr(values, "cat", values)
    if hasattr(values, "combine_chunks"):
        values = values.combine_chunks()
    for codes_name, names_name in (("codes", "categories"), ("indices", "dictionary")):
        if hasattr(values, codes_name) and hasattr(values, names_name):
            names = getattr(values, names_name)
            given = names.to_pylist() if hasattr(names, "to_pylist") else list(names)
            codes = np.asarray(getattr(values, codes_name))
            _refuse(argument, ~((codes >= 0) & (codes < len(given))), "there is no name")
            return codes.astype(np.int32), _strings(argument, given)
    if isinstance(values, list | tuple) and values and isinstance(values[0], str):
        return values
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{argument} has shape {array.shape}; give one column")
    return array


def code_labels(argument: str, values: Any) -> tuple[list[str], NDArray[np.int32]]:
    """The names of a `column` and each row's code into them; names are unordered and may contain duplicates.

    Raises `InputError` for values that are not names: a missing value, or a number among names.
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "US":
            return _code_fixed(argument, values.astype("U") if values.dtype.kind == "S" else values)
        if values.dtype.kind == "T":
            return _code_fixed(argument, values, max(int(np.strings.str_len(values).max(initial=1)), 1))
        if values.dtype.kind != "O":
            raise InputError(f"{argument} holds {values.dtype}; give names, or integers")
        return _code_objects(argument, values)
    if isinstance(values[0], np.ndarray):
        return list(values[1]), values[0]
    sample = values[:1024]
    if len({*map(id, sample)}) <= 2 * len({*map(str, sample)}):  # few objects, or many names: use addresses
        return _code_objects(argument, np.fromiter(values, dtype=object, count=len(values)))
    return _code_by_dict(argument, values)


def code_integers(codes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The integers that occur, ascending, and each row's index among them; codes without gaps need no sort."""
    rows = len(codes)
    low, high = (int(codes.min()), int(codes.max())) if rows else (0, -1)
    if low < 0 or high >= max(4 * rows, 1024):
        found, places = np.unique(codes, return_inverse=True)
        return found, places.astype(np.int32)
    seen = np.zeros(high + 1, dtype=np.bool_)
    seen[codes] = True
    found = np.flatnonzero(seen)
    if len(found) == high + 1:
        return found, codes.astype(np.int32, copy=False)
    return found, (np.cumsum(seen, dtype=np.int32) - 1)[codes].astype(np.int32, copy=False)


def _code_fixed(argument: str, values: NDArray[Any], width: int | None = None) -> tuple[list[str], NDArray[np.int32]]:
    """Code strings of one width, or strings to be converted to `width` part by part."""

    def words() -> Iterator[NDArray[Any]]:
        for rows in _slices(len(values)):
            part = np.ascontiguousarray(values[rows], dtype=f"U{width}" if width else values.dtype.newbyteorder("="))
            yield part.view("u8" if part.dtype.itemsize % 8 == 0 else "u4").reshape(len(part), -1)

    coded = _code_words(words(), len(values)) if width or values.dtype.itemsize else None
    if coded is None:
        return _code_by_dict(argument, values.tolist())
    rows, codes = coded
    return values[rows].tolist(), codes


def _code_objects(argument: str, values: NDArray[Any]) -> tuple[list[str], NDArray[np.int32]]:
    """Code Python strings in an array: by their addresses, or by a dict where most are separate objects."""
    values = np.ascontiguousarray(values)
    if len(values):
        addresses = np.frombuffer(values, dtype=np.uintp)
        coded = _code_words((addresses[rows, None] for rows in _slices(len(values))), len(values))
        if coded is not None:
            rows, codes = coded
            return _strings(argument, values[rows].tolist(), rows), codes
    return _code_by_dict(argument, values.tolist())


def _code_by_dict(argument: str, values: Sequence[Any]) -> tuple[list[str], NDArray[np.int32]]:
    known: dict[str, int] = {}
    codes = np.empty(len(values), dtype=np.int32)
    for rows in _slices(len(values)):
        part = values[rows]
        while True:
            try:
                found = itemgetter(*part)(known) if len(part) > 1 else (known[part[0]],)
                break
            except (KeyError, TypeError):  # a new name, or a value that cannot be a name
                for row, name in enumerate(part, start=rows.start):
                    if not isinstance(name, str):
                        raise _not_a_name(argument, row, name) from None
                    known.setdefault(name, len(known))
        codes[rows] = np.frombuffer(bytes(found), np.uint8) if len(known) <= 256 else found
    return list(known), codes


def _code_words(parts: Iterator[NDArray[Any]], rows: int) -> tuple[NDArray[np.intp], NDArray[np.int32]] | None:
    """Codes of rows of words and, for each code, a row that has it; None with too many distinct rows."""
    codes = np.empty(rows, dtype=np.int32)
    examples: list[int] = []
    table: _NameTable | None = None
    start = 0
    for words in parts:
        while True:
            found = None if table is None else table.find(words)
            unknown = np.arange(len(words)) if found is None or table is None else table.unlike(words, found)
            if found is not None and not len(unknown):
                break
            unknown = unknown[:1024]
            known = np.empty((0, words.shape[1]), words.dtype) if table is None else table.known
            fresh, where = np.unique(words[unknown], axis=0, return_index=True)
            if len(known) + len(fresh) > _NAMES:
                return None
            examples.extend((start + unknown[where]).tolist())
            table = _NameTable(np.concatenate([known, fresh]))
        codes[start : start + len(words)] = found
        start += len(words)
    return np.array(examples, dtype=np.intp), codes


class _NameTable:
    """Distinct rows of words (names, words), in a hash table without collisions."""

    def __init__(self, known: NDArray[Any]) -> None:
        self.known = known
        self._columns = _distinguishing_columns(known)
        self._bits = max(4, 2 * (len(known) - 1).bit_length())
        odd = np.random.default_rng(0)
        while True:
            self._factors = odd.integers(0, 1 << 63, len(self._columns), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
            places = self._hash(known)
            if len(np.unique(places)) == len(known):
                break
        self._codes = np.zeros(1 << self._bits, dtype=np.int32)
        self._codes[places] = np.arange(len(known), dtype=np.int32)

    def find(self, words: NDArray[Any]) -> NDArray[np.int32]:
        """The code of each row, if it has one."""
        return self._codes.take(self._hash(words))

    def unlike(self, words: NDArray[Any], codes: NDArray[np.int32]) -> NDArray[np.intp]:
        """The rows that differ from the names of their codes."""
        wanted = self.known.take(codes, axis=0)
        return np.zeros(0, np.intp) if np.array_equal(words, wanted) else np.flatnonzero((words != wanted).any(axis=1))

    def _hash(self, words: NDArray[Any]) -> NDArray[np.intp]:
        mixed = np.zeros(len(words), dtype=np.uint64)
        for place, factor in zip(self._columns, self._factors, strict=True):
            mixed += words[:, place] * factor
        mixed >>= np.uint64(64 - self._bits)
        return mixed.view(np.intp)


def _distinguishing_columns(known: NDArray[Any]) -> list[int]:
    """Columns of words (names, words) that together distinguish all names, the last columns that do."""
    columns: list[int] = []
    for place in reversed(range(known.shape[1])):
        if np.all(known[:, place] == known[0, place]):
            continue
        columns.append(place)
        if len(np.unique(known[:, columns], axis=0)) == len(known):
            break
    return columns


def _slices(rows: int) -> Iterator[slice]:
    for start in range(0, rows, _ROWS):
        yield slice(start, min(start + _ROWS, rows))


def _strings(argument: str, names: Sequence[Any], rows: NDArray[np.intp] | None = None) -> list[str]:
    for index, name in enumerate(names):
        if not isinstance(name, str):
            raise _not_a_name(argument, index if rows is None else int(rows[index]), name)
    return list(names)


def _not_a_name(argument: str, row: int, value: Any) -> InputError:
    return InputError(f"{argument}, row {row}: {value!r} is not possible: give a name, or a column of integers")


def _refuse(argument: str, wrong: NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        raise InputError(f"{argument}, row {int(np.argmax(wrong))}: {what}")


def check_level(level: float) -> None:
    """Raise `InputError` for a level of intervals outside (0, 1), such as 95 for 95 %."""
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}; give a share between 0 and 1, such as 0.95")


def check_draws(replicates: int, seed: int) -> None:
    """Raise `InputError` for a negative number of replicates, or a negative seed."""
    if replicates < 0:
        raise InputError(f"replicates is {replicates}; give 0 for none, or a number such as 1000")
    check_seed(seed)


def check_seed(seed: int) -> None:
    """Raise `InputError` for a negative seed, which no generator of NumPy takes."""
    if seed < 0:
        raise InputError(f"seed is {seed}; give a number that is not negative")


def finite_or_none(value: float) -> float | None:
    """A figure for results and JSON: None if it is not finite."""
    return float(value) if math.isfinite(value) else None


def float_array(argument: str, values: Any) -> NDArray[np.float64]:
    """Numbers as an array of any shape; raises `InputError` for words, and for rows of unlike length."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{argument} has values that are no numbers; give numbers, NaN for one that is missing"
        ) from None


def model_column(argument: str, values: Any, models: Sequence[str]) -> NDArray[np.float64]:
    """A number for each of `models` (models,); raises `InputError` for another shape, and as `float_array` does."""
    found = float_array(argument, values)
    if found.shape != (len(models),):
        raise InputError(f"{argument} has shape {found.shape}; give one value for each of {len(models)} models")
    return found
