"""Labels that several judges gave to the same items: one table of codes, validated once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError

_MISSING = -1


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """`codes` (items, judges) into `categories`; -1 where a judge gave an item no label.

    `values` (categories,) are the categories as numbers where all of them are numbers, else None.
    """

    categories: tuple[str, ...]
    codes: NDArray[np.int64]
    values: NDArray[np.float64] | None = None

    @property
    def items(self) -> int:
        """The number of items, labelled or not."""
        return len(self.codes)

    def counts(self) -> NDArray[np.float64]:
        """The number of judges that gave each item each category (items, categories)."""
        size = len(self.categories)
        item, judge = np.nonzero(self.codes != _MISSING)
        cell = item * size + self.codes[item, judge]
        return np.bincount(cell, minlength=self.items * size).reshape(self.items, size).astype(np.float64)


def labels(table: ArrayLike, *, categories: Sequence[object] | None = None) -> Labels:
    """Code a table (items, judges) of names or numbers, in which None, NaN and "" are missing.

    Without `categories` they are sorted, numbers by value. Raises `InputError` for another shape, an unlisted label,
    and a category listed twice.
    """
    given = np.asarray(table)
    if given.ndim != 2:
        raise InputError(f"labels have shape {given.shape}; give a table of one row an item, one column a judge")
    numeric = given.dtype.kind in "iufb"
    flat = given.astype(np.float64).ravel() if numeric else given.astype(object).ravel()
    missing = np.isnan(flat) if numeric else np.array([_is_missing(label) for label in flat], dtype=np.bool_)
    present = flat[~missing]
    if not numeric and all(isinstance(label, int | float | np.number) for label in present):
        present, numeric = present.astype(np.float64), True
    if categories is not None:
        return _listed(given.shape, missing, present.tolist(), list(categories))
    if not numeric:
        present = present.astype(str)
    found, places = np.unique(present, return_inverse=True)
    names = tuple(f"{value:.15g}" if numeric else str(value) for value in found.tolist())
    return Labels(names, _filled(given.shape, missing, places), found.astype(np.float64) if numeric else None)


def _is_missing(label: object) -> bool:
    return label is None or label == "" or (isinstance(label, float | np.floating) and bool(np.isnan(label)))


def _listed(
    shape: tuple[int, ...], missing: NDArray[np.bool_], present: list[object], categories: list[object]
) -> Labels:
    place = {category: code for code, category in enumerate(categories)}
    if len(place) != len(categories):
        raise InputError("categories: one is listed twice; list each once")
    rows = np.flatnonzero(~missing) // max(shape[1], 1)
    for row, label in zip(rows.tolist(), present, strict=True):
        if label not in place:
            raise InputError(f"labels, row {row}: {label!r} is not in categories; list it, or leave the item out")
    codes = np.array([place[label] for label in present], dtype=np.int64)
    numbers = [float(category) for category in categories if isinstance(category, int | float)]
    values = np.array(numbers) if len(numbers) == len(categories) else None
    return Labels(tuple(str(category) for category in categories), _filled(shape, missing, codes), values)


def _filled(shape: tuple[int, ...], missing: NDArray[np.bool_], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    table = np.full(missing.shape, _MISSING, dtype=np.int64)
    table[~missing] = codes
    return table.reshape(shape)
