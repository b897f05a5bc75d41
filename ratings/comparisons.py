"""Comparisons of models in pairs: the one table that every rating from pairs reads, checked once at the door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError

__all__ = ["Comparisons", "comparisons"]


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """One row a comparison; all arrays have the same length.

    `a` and `b` are codes into `models`, `cluster` into `clusters`, `judge` into `judges`. `y` is the outcome for the
    model in `a`: 1 a win, 0 a loss, 0.5 a tie, or any share or probability between. `weight` None counts each row
    once. Rows of one `cluster` share what is not the models' doing (an instruction); None: each row is its own.
    """

    models: tuple[str, ...]
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None = None
    cluster: NDArray[np.int32] | None = None
    clusters: tuple[str, ...] = ()
    judge: NDArray[np.int32] | None = None
    judges: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.y)

    @property
    def total(self) -> float:
        """The weight of all rows; their number where each counts once."""
        return float(len(self.y)) if self.weight is None else float(self.weight.sum())


def comparisons(
    model_a: ArrayLike,
    model_b: ArrayLike,
    y: ArrayLike,
    *,
    models: Sequence[str] | None = None,
    weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    judge: ArrayLike | None = None,
) -> Comparisons:
    """Check plain columns (rows,) and code their names.

    `model_a` and `model_b` are names, or integers that count into `models`; without `models` names are sorted and
    integers are their own names. `y` is the outcome for A within [0, 1], `weight` not negative, `cluster` and `judge`
    are names or codes. Raises `InputError` that names the argument and the row (the first is 0).
    """
    names, a, b = _sides(np.asarray(model_a), np.asarray(model_b), None if models is None else tuple(models))
    rows = len(a)
    outcome = _numbers("y", y, rows)
    _refuse("y", ~((outcome >= 0.0) & (outcome <= 1.0)), outcome, "give the outcome for A, from 0 to 1")
    _refuse("model_b", a == b, np.asarray(model_b), "a model meets itself: leave such rows out")
    weights = None if weight is None else _numbers("weight", weight, rows)
    if weights is not None:
        _refuse("weight", ~((weights >= 0.0) & np.isfinite(weights)), weights, "give a finite weight, 0 or more")
    clusters, cluster_code = _labels("cluster", cluster, rows)
    judges, judge_code = _labels("judge", judge, rows)
    return Comparisons(names, a, b, outcome, weights, cluster_code, clusters, judge_code, judges)


def _sides(
    model_a: NDArray[Any], model_b: NDArray[Any], models: tuple[str, ...] | None
) -> tuple[tuple[str, ...], NDArray[np.int32], NDArray[np.int32]]:
    if model_a.ndim != 1 or model_a.shape != model_b.shape:
        raise InputError(f"model_a has shape {model_a.shape}, model_b {model_b.shape}; give two columns of one length")
    if models is not None and len(set(models)) != len(models):
        raise InputError("models: a name is listed twice; give every model one name")
    whole = all(np.issubdtype(side.dtype, np.integer) for side in (model_a, model_b))
    if not whole:
        both = np.concatenate([model_a, model_b]).astype(str)
        found, codes = np.unique(both, return_inverse=True)
        if models is None:
            names = tuple(found.tolist())
        else:
            names, place = models, {name: code for code, name in enumerate(models)}
            codes = np.array([place.get(name, -1) for name in found.tolist()], dtype=np.int64)[codes]
        a, b = codes[: len(model_a)].astype(np.int32), codes[len(model_a) :].astype(np.int32)
    else:
        a, b = model_a.astype(np.int32, copy=False), model_b.astype(np.int32, copy=False)
        size = int(max(a.max(initial=-1), b.max(initial=-1))) + 1
        names = tuple(str(code) for code in range(size)) if models is None else models
    for argument, codes_of, given in (("model_a", a, model_a), ("model_b", b, model_b)):
        _refuse(argument, (codes_of < 0) | (codes_of >= len(names)), given, "no model of that name or number is listed")
    return names, a, b


def _numbers(argument: str, values: ArrayLike, rows: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (rows,):
        raise InputError(f"{argument} has shape {array.shape}, model_a has {rows} rows; give one number a row")
    return array


def _labels(argument: str, values: ArrayLike | None, rows: int) -> tuple[tuple[str, ...], NDArray[np.int32] | None]:
    if values is None:
        return (), None
    array = np.asarray(values)
    if array.shape != (rows,):
        raise InputError(f"{argument} has shape {array.shape}, model_a has {rows} rows; give one value a row")
    found, codes = np.unique(array, return_inverse=True)
    return tuple(str(name) for name in found.tolist()), codes.astype(np.int32)


def _refuse(argument: str, wrong: NDArray[np.bool_], given: NDArray[Any], what: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"{argument}, row {row}: {given[row]!s} is not possible: {what}")
