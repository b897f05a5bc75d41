"""Judgments: verdicts with their two orders brought together, and the way from them to comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons

__all__ = ["Cluster", "Judgments", "Merge"]

Merge = Literal["mean", "strict", "none"]
Cluster = Literal["auto", "instruction", "none"]


@dataclass(frozen=True, slots=True, eq=False)
class Judgments:
    """One row a (pair, instruction, judge, repeat), sorted by these; arrays have the same length.

    Codes point into the sorted names, and `model_a` sorts before `model_b`. `y` is the outcome for A (0, 0.25, 0.5,
    0.75 or 1; any share where the verdicts were shares), `flipped` says that the two orders chose opposite winners,
    `readable` how many orders could be read. `merged` is False where each verdict is its own judgment: a table knows no
    orders or no instructions, or `merge` is "none". `unreadable` counts the verdicts left out, `dropped` the flipped
    judgments left out.

    None where no verdict says it: `first` (1: A was shown first, -1: second, 0: both orders), `weight` (the mean of the
    orders'), `score` (A less B) and `human` (1, 0.5 or 0 for A), both NaN in rows that do not say. `features` are
    covariates by name, of A less B. `cluster` are codes into `clusters`, of a table that names them; `clustered` False
    says that rows share nothing.
    """

    models: tuple[str, ...]
    judges: tuple[str, ...]
    instructions: tuple[str, ...]
    model_a: NDArray[np.int32]
    model_b: NDArray[np.int32]
    judge: NDArray[np.int32]
    instruction: NDArray[np.int32]
    repeat: NDArray[np.int32]
    y: NDArray[np.float64]
    flipped: NDArray[np.bool_]
    readable: NDArray[np.int8]
    merge: Merge
    merged: bool
    unreadable: int
    dropped: int = 0
    first: NDArray[np.int8] | None = None
    weight: NDArray[np.float64] | None = None
    score: NDArray[np.float64] | None = None
    human: NDArray[np.float64] | None = None
    features: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    cluster: NDArray[np.int32] | None = None
    clusters: tuple[str, ...] = ()
    clustered: bool = True

    def __len__(self) -> int:
        return len(self.y)

    @property
    def one_order(self) -> int:
        """How many judgments rest on one order alone; 0 where orders are not known."""
        return int(np.count_nonzero(self.readable == 1)) if self.merged else 0

    @property
    def flips(self) -> int:
        """How many judgments changed their winner with the order shown."""
        return int(np.count_nonzero(self.flipped))

    @property
    def ties(self) -> int:
        """How many judgments count as a tie without a flip behind it."""
        return int(np.count_nonzero((self.y == 0.5) & ~self.flipped))

    def select(self, rows: NDArray[Any]) -> Judgments:
        """The same judgments with some of the rows, by mask or by position; the names stay as they are."""
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        kept = {name: column[rows] for name, column in columns.items() if isinstance(column, np.ndarray)}
        return replace(self, **kept, features={name: column[rows] for name, column in self.features.items()})

    def between(self, models: Sequence[str]) -> NDArray[np.bool_]:
        """Which rows compare two of these models. Raises `InputError` for a name that is not among the models."""
        among = _places(self.models, models) >= 0
        return np.asarray(among[self.model_a] & among[self.model_b], dtype=np.bool_)

    def of_judge(self, judge: str) -> Judgments:
        """One judge's rows. Raises `InputError` for a judge that is not there."""
        if judge not in self.judges:
            raise InputError(f"no judge {judge!r}; there are: {', '.join(self.judges)}")
        return self.select(self.judge == self.judges.index(judge))

    def comparisons(self, models: Sequence[str] | None = None, *, cluster: Cluster = "auto") -> Comparisons:
        """The judgments as comparisons, row by row; with `models`, those between them alone, coded in that order.

        Rows of one cluster are those of one instruction, or of one cluster where the table names clusters
        ("instruction" takes instructions even so); "none", and a table that names neither: each row is its own. Judges
        and clusters that have no row are left out of the lists. Raises `InputError` for a model that is not there.
        """
        rows = self if models is None else self.select(self.between(models))
        place = np.arange(len(self.models)) if models is None else _places(self.models, models)
        codes, names = rows.cluster, rows.clusters
        if codes is None or cluster == "instruction":
            codes, names = (rows.instruction, rows.instructions) if rows.instructions else (None, ())
        if cluster == "none" or (cluster == "auto" and not self.clustered):
            codes, names = None, ()
        judge, judges = _present(rows.judge, rows.judges)
        found, clusters = (None, ()) if codes is None else _present(codes, names)
        return Comparisons(
            models=self.models if models is None else tuple(models),
            a=place[rows.model_a].astype(np.int32),
            b=place[rows.model_b].astype(np.int32),
            y=rows.y,
            weight=rows.weight,
            cluster=found,
            clusters=clusters,
            judge=judge,
            judges=judges,
        )


def _places(names: Sequence[str], chosen: Sequence[str]) -> NDArray[np.int64]:
    """For each name its place among the chosen, -1 for the others."""
    place = {name: number for number, name in enumerate(chosen)}
    if len(place) < len(chosen):
        raise InputError("models: a name is listed twice; give every model one name")
    if unknown := sorted(place.keys() - set(names)):
        raise InputError(f"models: no model {unknown[0]!r}; there are: {', '.join(names[:30])}")
    return np.array([place.get(name, -1) for name in names], dtype=np.int64)


def _present(codes: NDArray[np.int32], names: tuple[str, ...]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """The codes counted anew over the names that occur."""
    there = np.bincount(codes, minlength=len(names)) > 0
    if there.all():
        return codes, names
    fresh = (np.cumsum(there) - 1).astype(np.int32)
    return fresh[codes], tuple(name for name, occurs in zip(names, there.tolist(), strict=True) if occurs)
