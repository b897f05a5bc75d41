"""Pairwise comparisons of models: the table that every pairwise rating method reads, validated once on input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from venire.arena.choices import PairErrors
from venire.arena.errors import InputError
from venire.ratings.data.clustered import Units, units_of
from venire.ratings.data.validation import code_integers, code_labels, column, float_array
from venire.ratings.data.wins import WinCounts, win_counts

_PART = 1 << 16
"""Rows validated at a time, so that they stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Comparisons:
    """One row per comparison; all arrays have the same length.

    `a` and `b` are codes into `models`, `cluster` into `clusters`, `judge` into `judges`. `y` is the outcome for the
    model in `a`: 1 a win, 0 a loss, 0.5 a tie, or any share or probability in between. `weight` None counts each row
    once. Rows of one `cluster` (for example an instruction) share effects that the models do not cause; None: one
    cluster per row. `crossed`: so do rows of one `judge`, where there are five or more.
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
    crossed: bool = False

    def __len__(self) -> int:
        return len(self.y)

    @property
    def total(self) -> float:
        """The total weight of all rows; their number where each counts once."""
        return float(len(self.y)) if self.weight is None else float(self.weight.sum())

    @property
    def played(self) -> NDArray[np.float64]:
        """The total weight of each model's rows (models,)."""
        size = len(self.models)
        sums = np.bincount(self.a, self.weight, size) + np.bincount(self.b, self.weight, size)
        return sums.astype(np.float64)

    @cached_property
    def wins(self) -> WinCounts:
        """The pair counts, counted once: every fit and every graph of wins begins with them."""
        return win_counts(self)

    @property
    def errors(self) -> PairErrors:
        """The standard errors that the rows ask for: clustered, where they have clusters."""
        return "sandwich" if self.cluster is None else "cluster"

    def units(self, counted: NDArray[np.bool_] | None = None, *, clustered: bool = True) -> Units:
        """The independent units of the rows (of those `counted` (rows,)) for errors; not `clustered`: each row one."""
        rows = len(self) if counted is None else int(np.count_nonzero(counted))
        if not clustered:
            return units_of(None, None, rows)
        cluster, judge = self.cluster, self.judge if self.crossed else None
        if counted is not None:
            cluster, judge = (one if one is None else one[counted] for one in (cluster, judge))
        return units_of(cluster, judge, rows)

    def select(self, rows: NDArray[Any]) -> Comparisons:
        """The same table with some of its rows, by mask or position; the names keep their codes."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        columns = {name: getattr(self, name) for name in ("a", "b", "y", "weight", "cluster", "judge")}
        return replace(self, **{name: column[rows] for name, column in columns.items() if column is not None})


def comparisons(
    model_a: Any,
    model_b: Any,
    y: ArrayLike,
    *,
    models: Sequence[str] | None = None,
    weight: ArrayLike | None = None,
    cluster: Any = None,
    judge: Any = None,
    crossed: bool = False,
) -> Comparisons:
    """Validate plain columns (rows,) and code their names.

    `model_a` and `model_b` are names (lists, NumPy strings, pandas or Arrow columns, encoded or not), or integer
    indices into `models`; without `models` names are sorted, and integers are their own names, from 0 to the largest.
    `y` is the outcome for A within [0, 1], `weight` not negative, `cluster` and `judge` are names or integers;
    `crossed` clusters errors by judge too. Raises `InputError` that names the argument and the row (the first is 0).

    >>> from venire.ratings import comparisons
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0, 1, 1, 0, 0])
    >>> data.models, len(data)
    (('a', 'b', 'c'), 6)
    """
    names, a, b = _sides(column("model_a", model_a), column("model_b", model_b), models)
    rows = len(a)
    _in_parts("model_b", (a, b), _meets_itself, "a model meets itself: leave such rows out", names)
    outcome = _numbers("y", y, rows)
    _in_parts("y", (outcome,), _no_outcome, "give the outcome for A, from 0 to 1")
    weights = None if weight is None else _numbers("weight", weight, rows)
    if weights is not None:
        _in_parts("weight", (weights,), _no_weight, "give a finite weight, 0 or more")
    clusters, cluster_code = _labels("cluster", cluster, rows)
    judges, judge_code = _labels("judge", judge, rows)
    return Comparisons(names, a, b, outcome, weights, cluster_code, clusters, judge_code, judges, crossed)


def _sides(
    a: Any, b: Any, models: Sequence[str] | None
) -> tuple[tuple[str, ...], NDArray[np.int32], NDArray[np.int32]]:
    listed = None if models is None else tuple(models)
    if listed is not None and len(set(listed)) != len(listed):
        raise InputError("models: a name is listed twice; give every model one name")
    if _rows(a) != _rows(b):
        raise InputError(f"model_a has {_rows(a)} rows, model_b {_rows(b)}; give two columns of one length")
    if _whole(a) and _whole(b):
        size = _largest(a, b) + 1 if listed is None else len(listed)
        _within("model_a", a, size)
        _within("model_b", b, size)
        names = tuple(map(str, range(size))) if listed is None else listed
        return names, a.astype(np.int32, copy=False), b.astype(np.int32, copy=False)
    if not _rows(a):
        return listed or (), np.zeros(0, np.int32), np.zeros(0, np.int32)
    (names_a, codes_a), (names_b, codes_b) = code_labels("model_a", a), code_labels("model_b", b)
    found = tuple(sorted({*names_a, *names_b})) if listed is None else listed
    place = {name: code for code, name in enumerate(found)}
    return found, _placed("model_a", names_a, codes_a, place), _placed("model_b", names_b, codes_b, place)


def _within(argument: str, codes: NDArray[Any], size: int) -> None:
    # Viewed as unsigned, a negative code is a very large code.
    if len(codes) and int(codes.view(codes.dtype.str.replace("i", "u")).max()) >= size:
        row = int(np.argmax((codes < 0) | (codes >= size)))
        raise InputError(f"{argument}, row {row}: {codes[row]} is not possible: models count from 0 to {size - 1}")


def _placed(argument: str, names: list[str], codes: NDArray[np.int32], place: dict[str, int]) -> NDArray[np.int32]:
    table = np.array([place.get(name, -1) for name in names], dtype=np.int32)
    placed = table.take(codes)
    if (table < 0).any() and (placed < 0).any():
        row = int(np.argmax(placed < 0))
        raise InputError(f"{argument}, row {row}: {names[codes[row]]!r} is not possible: models does not list it")
    return placed


def _largest(a: NDArray[Any], b: NDArray[Any]) -> int:
    largest = int(max(a.max(), b.max())) if len(a) else -1
    if largest > max(1_000_000, 4 * len(a)):
        raise InputError(f"model_a or model_b has the number {largest}; models count from 0, or give names as strings")
    return largest


def _rows(values: Any) -> int:
    return len(values[0]) if isinstance(values, tuple) and values and isinstance(values[0], np.ndarray) else len(values)


def _whole(values: Any) -> bool:
    return isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.integer)


def _numbers(argument: str, values: ArrayLike, rows: int) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{argument} is not numbers: {error}") from None
    if array.shape != (rows,):
        raise InputError(f"{argument} has shape {array.shape}, model_a has {rows} rows; give one number a row")
    return array


def _labels(argument: str, values: Any, rows: int) -> tuple[tuple[str, ...], NDArray[np.int32] | None]:
    if values is None:
        return (), None
    given = column(argument, values)
    if _rows(given) != rows:
        raise InputError(f"{argument} has {_rows(given)} rows, model_a has {rows}; give one value a row")
    if _whole(given):
        found, codes = code_integers(given)
        return tuple(map(str, found.tolist())), codes
    if not rows:
        return (), np.zeros(0, np.int32)
    names, codes = code_labels(argument, given)
    ordered = tuple(sorted(set(names)))
    return ordered, _placed(argument, names, codes, {name: code for code, name in enumerate(ordered)})


def _in_parts(
    argument: str,
    columns: tuple[NDArray[Any], ...],
    wrong: Callable[..., NDArray[np.bool_] | None],
    what: str,
    names: Sequence[str] | None = None,
) -> None:
    """Reject the first invalid row; `wrong` receives cache-sized parts and returns None where all rows are valid.

    `names` are the names of the codes, so that the message shows a row as the caller gave it.
    """
    for start in range(0, len(columns[0]), _PART):
        found = wrong(*(values[start : start + _PART] for values in columns))
        if found is not None:
            row = start + int(np.argmax(found))
            value = columns[-1][row]
            shown = value if names is None else names[value]
            raise InputError(f"{argument}, row {row}: {shown!s} is not possible: {what}")


def _meets_itself(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.bool_] | None:
    same = a == b
    return same if same.any() else None


def _no_outcome(y: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    return None if y.min() >= 0.0 and y.max() <= 1.0 else ~((y >= 0.0) & (y <= 1.0))


def _no_weight(weight: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    return None if weight.min() >= 0.0 and weight.max() < np.inf else ~((weight >= 0.0) & np.isfinite(weight))


def hard_targets(labels: ArrayLike) -> NDArray[np.float64]:
    """1, 0.5 and 0 for labels (rows,) of 1 (A won), 0 (a tie) and -1 (B won); raises `InputError` for others.

    >>> from venire.ratings import hard_targets
    >>> hard_targets([1, 0, -1]).tolist()
    [1.0, 0.5, 0.0]
    """
    values = np.asarray(labels)
    wrong = ~((values == 1) | (values == 0) | (values == -1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"labels, row {row}: {values[row]} is not possible: give 1 (A won), 0 (a tie) or -1 (B won)")
    return 0.5 + 0.5 * values.astype(np.float64)


def soft_targets(score: ArrayLike, beta: float) -> NDArray[np.float64]:
    """`sigma(beta score)` for scores (rows,) of A less B; beta is 0 or more. Raises `InputError`.

    >>> from venire.ratings import soft_targets
    >>> soft_targets([2.0, -1.0, 0.0], 0.5).round(3).tolist()
    [0.731, 0.378, 0.5]
    """
    if not (beta >= 0.0 and np.isfinite(beta)):
        raise InputError(f"beta is {beta}; give a finite number, 0 or more")
    values = float_array("score", score)
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"score, row {row}: {values[row]} is not possible: give the score of A less that of B")
    return np.asarray(expit(beta * values), dtype=np.float64)
