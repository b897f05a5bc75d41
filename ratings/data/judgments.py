"""Judgments: verdicts with their two presentation orders merged, and the comparisons derived from them.

All input is first put into one canonical form (names sorted, A before B by name, rows sorted), so that no estimate
depends on the order of rows or names, or on which model a table calls A.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles, Clustering
from venire.arena.choices import Flips, Merge
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.arena.wording import suggest
from venire.ratings.data.comparisons import Comparisons

Cluster = Literal["auto", "instruction", "none"]
T = TypeVar("T")

_COLUMNS = ("model_a", "model_b", "judge", "instruction", "repeat", "swapped", "status", "label")
_OPTIONAL = ("outcome", "weight", "score", "human", "cluster")


@dataclass(frozen=True, eq=False)
class Judgments:
    """One row per (pair, instruction, judge, repeat), sorted by these; all arrays have the same length.

    Codes point into the sorted names, and `model_a` sorts before `model_b`. `y` is the outcome for A (0, 0.25, 0.5,
    0.75 or 1; any share where the verdicts were shares), `flipped` marks rows whose two orders chose opposite winners,
    `readable` is the number of readable orders. `merged` is False where each verdict is its own judgment: the table has
    no orders or no instructions, or `merge` is "none". `unreadable` counts the verdicts left out, `dropped` the flipped
    judgments left out.

    None where no verdict has the value: `first` (1: A was shown first, -1: second, 0: both orders), `weight` (the mean
    over the orders), `score` (A minus B) and `human` (1, 0.5 or 0 for A); the last two are NaN in rows without a value.
    `features` are covariates by name, A minus B. `cluster` are codes into `clusters`, if the table has clusters;
    `clustering` says which rows share their noise.
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
    clustering: Clustering = "cluster"

    def __len__(self) -> int:
        return len(self.y)

    @property
    def clustered(self) -> bool:
        """Whether rows of an instruction share their noise."""
        return self.clustering in ("crossed", "cluster")

    @property
    def one_order(self) -> int:
        """The number of judgments based on one order only; 0 where orders are unknown."""
        return int(np.count_nonzero(self.readable == 1)) if self.merged else 0

    @property
    def flips(self) -> int:
        """The number of judgments whose winner changed with the presentation order."""
        return int(np.count_nonzero(self.flipped))

    @property
    def ties(self) -> int:
        """The number of judgments that count as a tie and are not flips."""
        return int(np.count_nonzero((self.y == 0.5) & ~self.flipped))

    def select(self, rows: NDArray[Any]) -> Judgments:
        """The same judgments with some of the rows, by mask or position; the names do not change."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        kept = {name: column[rows] for name, column in columns.items() if isinstance(column, np.ndarray)}
        return replace(self, **kept, features={name: column[rows] for name, column in self.features.items()})

    def between(self, models: Sequence[str]) -> NDArray[np.bool_]:
        """Which rows compare two of these models. Raises `InputError` for a name that is not among the models."""
        among = _places(self.models, models) >= 0
        return np.asarray(among[self.model_a] & among[self.model_b], dtype=np.bool_)

    def of_judge(self, judge: str) -> Judgments:
        """One judge's rows. Raises `InputError` for an unknown judge."""
        if judge not in self.judges:
            raise InputError(f"no judge {judge!r}; {suggest(judge, self.judges)}")
        return self.select(self.judge == self.judges.index(judge))

    def comparisons(self, models: Sequence[str] | None = None, *, cluster: Cluster = "auto") -> Comparisons:
        """The judgments as comparisons, row by row; with `models`, only those between them, coded in that order.

        Clusters are those of the table, otherwise its instructions ("instruction" always uses instructions), or judges
        where these alone share their noise. With "none", and for a table without any, each row is its own cluster. The
        comparisons are crossed with judges where `clustering` says so. Judges and clusters without rows are left
        out of the lists. Raises `InputError` for an unknown model.
        """
        return self._comparisons if models is None and cluster == "auto" else self._compared(models, cluster)

    @cached_property
    def _comparisons(self) -> Comparisons:
        return self._compared(None, "auto")

    def _compared(self, models: Sequence[str] | None, cluster: Cluster) -> Comparisons:
        rows = self if models is None else self.select(self.between(models))
        place = np.arange(len(self.models)) if models is None else _places(self.models, models)
        codes, names = rows.cluster, rows.clusters
        if codes is None or cluster == "instruction":
            codes, names = (rows.instruction, rows.instructions) if rows.instructions else (None, ())
        if cluster == "auto" and self.clustering == "judge":
            codes, names = rows.judge, rows.judges
        elif cluster == "none" or (cluster == "auto" and not self.clustered):
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
            crossed=cluster == "auto" and self.clustering == "crossed",
        )


def _places(names: Sequence[str], chosen: Sequence[str]) -> NDArray[np.int64]:
    """The index of each name among the chosen, -1 for the others."""
    place = {name: number for number, name in enumerate(chosen)}
    if len(place) < len(chosen):
        raise InputError("models: a name is listed twice; give every model one name")
    if unknown := sorted(place.keys() - set(names)):
        raise InputError(f"models: no model {unknown[0]!r}; {suggest(unknown[0], names)}")
    return np.array([place.get(name, -1) for name in names], dtype=np.int64)


def _present(codes: NDArray[np.int32], names: tuple[str, ...]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """The codes renumbered over the names that occur, and these names."""
    there = np.bincount(codes, minlength=len(names)) > 0
    if there.all():
        return codes, names
    fresh = (np.cumsum(there) - 1).astype(np.int32)
    return fresh[codes], tuple(name for name, occurs in zip(names, there.tolist(), strict=True) if occurs)


def combine_keys(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """One int64 key per row that sorts like the columns of non-negative codes, the first most significant."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    span = 1
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if span * size >= 2**63:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            span = int(key.max(initial=0)) + 1
        key = key * size + column
        span *= size
    return key


def derived(battles: Battles, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` makes of a table of verdicts, made once a key: kept as long as the table, which never changes."""
    kept = _DERIVED.setdefault(battles, {})
    found: T = kept[key] if key in kept else make()
    if found is not battles:  # a table that is its own value would never be freed
        kept[key] = found
    return found


_DERIVED: WeakKeyDictionary[Battles, dict[Hashable, Any]] = WeakKeyDictionary()


def select_battles(battles: Battles, rows: NDArray[Any]) -> Battles:
    """The same table with some of its rows, by mask or position; the table itself, with what is derived, with all."""
    if rows.dtype == np.bool_ and rows.all():
        return battles
    there = [name for name in (*_COLUMNS, *_OPTIONAL) if getattr(battles, name) is not None]
    features = {name: column[rows] for name, column in battles.features.items()}
    return replace(battles, **{name: getattr(battles, name)[rows] for name in there}, features=features)


def canonical(battles: Battles) -> Battles:
    """The same verdicts with sorted names and A before B by name in every row; the order of rows does not change.

    Raises `InputError` for columns of unequal length, codes without a name, a name listed twice, a model paired with
    itself, an unknown label or status, and a number outside the range of its column.
    """
    _check(battles)
    models, model_code = _sorted(battles.models)
    judges, judge_code = _sorted(battles.judges)
    instructions, instruction_code = _sorted(battles.instructions)
    clusters, cluster_code = _sorted(battles.clusters)
    model_a, model_b = model_code[battles.model_a], model_code[battles.model_b]
    turn = model_a > model_b
    instruction = instruction_code[battles.instruction] if instructions else np.full(len(turn), -1, dtype=np.int32)
    outcome, score, human = battles.outcome, battles.score, battles.human
    return replace(
        battles,
        models=models,
        judges=judges,
        instructions=instructions,
        model_a=np.where(turn, model_b, model_a),
        model_b=np.where(turn, model_a, model_b),
        judge=judge_code[battles.judge],
        instruction=instruction,
        swapped=battles.swapped ^ turn,
        label=np.where(turn, -battles.label, battles.label),
        outcome=None if outcome is None else np.where(turn, 1.0 - outcome, outcome),
        score=None if score is None else np.where(turn, -score, score),
        human=None if human is None else np.where(turn, 1.0 - human, human),
        features={name: np.where(turn, -column, column) for name, column in battles.features.items()},
        cluster=None if battles.cluster is None else cluster_code[battles.cluster],
        clusters=clusters,
    )


def merge_orders(battles: Battles, merge: Merge = "mean", *, flips: Flips = "tie") -> Judgments:
    """Merge the two presentation orders of each (pair, instruction, judge, repeat).

    Source: docs/ratings.md, "Two orders to one judgment".

    Both orders agree: that winner. A tie and a winner: that winner at half strength under `mean`, a tie under `strict`.
    Opposite winners: a tie, kept as a flip, or left out under `flips="drop"`. Outcomes that are shares are averaged, by
    weight where there are weights; under `strict` orders that do not name the same winner are a tie. Scores, human
    labels, weights and covariates are averaged over the orders that have them. A single readable order is used alone;
    unreadable verdicts are left out. Where the table has no orders or no instructions, and under `none`, each row is
    its own judgment (`first` gives the order). Raises `InputError` for an unknown option, two verdicts on the same
    presentation, and two orders in different clusters.

    >>> from venire.ratings import ballots, merge_orders, to_battles
    >>> given = ballots(list("aaabbbccc"), ["q"] * 9, list("abc") * 3, [1, 2, 3, 2, 1, 3, 1, 3, 2])
    >>> found = merge_orders(to_battles(given))
    >>> found.models, len(found.y)
    (('a', 'b', 'c'), 9)
    """
    for name, word, words in (("merge", merge, get_args(Merge)), ("flips", flips, get_args(Flips))):
        if word not in words:
            raise InputError(f"{name} is {word!r}; {suggest(word, words)}")
    if flips == "drop" and merge == "none":
        raise InputError('flips are found by merging the two orders: with merge "none" there are none to drop')
    return derived(battles, (merge, flips), lambda: _merged(canonical(battles), merge, flips))


def _merged(rows: Battles, merge: Merge, flips: Flips) -> Judgments:
    readable = rows.status == Status.OK
    kept = select_battles(rows, readable)
    merged = kept.ordered and bool(kept.instructions) and merge != "none"
    found = _judgments(kept, *_grouped(kept, merged), merge, merged, len(readable) - len(kept.status))
    if flips == "drop" and found.flips:
        return replace(found.select(~found.flipped), dropped=found.flips)
    return found


def _grouped(kept: Battles, merged: bool) -> tuple[NDArray[np.intp] | slice, NDArray[np.intp]]:
    """The permutation that makes rows of one judgment adjacent, and the start of each judgment in it."""
    parts = [kept.model_a, kept.model_b, kept.instruction + 1, kept.judge, kept.repeat]
    key = combine_keys(*parts, *([] if merged else [kept.label + 1]), *([kept.swapped] if kept.ordered else []))
    # Rows with equal keys may differ in other columns; no estimate may depend on which comes first.
    more = [] if merged else [getattr(kept, name) for name in _OPTIONAL if getattr(kept, name) is not None]
    more += [] if merged else list(kept.features.values())
    order: NDArray[np.intp] | slice = slice(None)
    if more:
        order = np.lexsort([*more, key])
    elif not np.all(key[1:] >= key[:-1]):
        order = _order(key)
    if not merged:
        return order, np.arange(len(key))
    swapped = kept.swapped[order]
    # `swapped` is the last part of the key; the remaining parts are the battle, judge and repeat.
    battle = key[order] // (int(swapped.max(initial=False)) + 1)
    again = battle[1:] == battle[:-1]
    _refuse_pair(kept, order, again & (swapped[1:] == swapped[:-1]), "one order and one repeat")
    if kept.cluster is not None:
        cluster = kept.cluster[order]
        _refuse_pair(kept, order, again & (cluster[1:] != cluster[:-1]), "two clusters")
    return order, np.concatenate([[0], np.flatnonzero(~again) + 1]) if len(battle) else np.flatnonzero(battle)


def _order(key: NDArray[np.int64]) -> NDArray[np.intp]:
    """The stable order of the keys. Sorting keys with the index in their low bits is faster than an argsort."""
    bits = len(key).bit_length()
    if int(key.max()).bit_length() + bits > 63:
        return np.argsort(key, kind="stable")
    packed = (key << bits) | np.arange(len(key))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def _judgments(
    kept: Battles,
    order: NDArray[np.intp] | slice,
    starts: NDArray[np.intp],
    merge: Merge,
    merged: bool,
    unreadable: int,
) -> Judgments:
    readable = np.diff(starts, append=len(kept.label))
    label = kept.label[order].astype(np.int64)
    total, decisive = _sums(label, starts), _sums(np.abs(label), starts)
    y = 0.5 + 0.5 * total / readable
    weight = None if kept.weight is None else kept.weight[order]
    if kept.outcome is not None or weight is not None:
        y = _mean(0.5 + 0.5 * label.astype(np.float64) if kept.outcome is None else kept.outcome[order], starts, weight)
    if merge == "strict":
        y = np.where((readable == 1) | (np.abs(total) == 2), y, 0.5)
    rows = starts if isinstance(order, slice) else order[starts]

    def mean(column: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        return None if column is None else _mean(column[order], starts)

    return Judgments(
        models=kept.models,
        judges=kept.judges,
        instructions=kept.instructions,
        model_a=kept.model_a[rows],
        model_b=kept.model_b[rows],
        judge=kept.judge[rows],
        instruction=kept.instruction[rows],
        repeat=kept.repeat[rows],
        y=y,
        flipped=(decisive == 2) & (total == 0),
        readable=readable.astype(np.int8),
        merge=merge,
        merged=merged,
        unreadable=unreadable,
        first=_sums(np.where(kept.swapped[order], -1, 1), starts).astype(np.int8) if kept.ordered else None,
        weight=mean(kept.weight),
        score=mean(kept.score),
        human=mean(kept.human),
        features={name: _mean(column[order], starts) for name, column in kept.features.items()},
        cluster=None if kept.cluster is None else kept.cluster[rows],
        clusters=kept.clusters,
        clustering=kept.clustering,
    )


def _sums(column: NDArray[Any], starts: NDArray[np.intp]) -> NDArray[Any]:
    """Sums over the rows of each judgment."""
    return np.add.reduceat(column, starts) if 0 < len(starts) < len(column) else column


def _mean(
    column: NDArray[np.float64], starts: NDArray[np.intp], weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Means over the non-missing rows of each judgment, NaN where all are missing; weighted where weights are not 0."""
    if len(starts) == len(column):
        return column
    known = ~np.isnan(column)
    value = np.where(known, column, 0.0)
    count = _sums(known.astype(np.float64), starts)
    plain: NDArray[np.float64] = np.divide(
        _sums(value, starts), count, out=np.full(len(starts), np.nan), where=count > 0
    )
    if weight is None:
        return plain
    whole = _sums(known * weight, starts)
    np.divide(_sums(value * weight, starts), whole, out=plain, where=whole > 0)
    return plain


def _sorted(names: tuple[str, ...]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The sorted names, and the new code of each old code."""
    order = sorted(range(len(names)), key=names.__getitem__)
    codes = np.empty(len(names), dtype=np.int32)
    codes[order] = np.arange(len(names), dtype=np.int32)
    return tuple(names[position] for position in order), codes


def _check(battles: Battles) -> None:
    length = len(battles.model_a)
    optional = {name: getattr(battles, name) for name in _OPTIONAL if getattr(battles, name) is not None}
    for name, column in {**{name: getattr(battles, name) for name in _COLUMNS}, **optional, **battles.features}.items():
        if len(column) != length:
            raise InputError(f"column {name} has {len(column)} rows, model_a has {length}")
    codes = [("model_a", battles.models), ("model_b", battles.models), ("judge", battles.judges)]
    if battles.instructions:
        codes.append(("instruction", battles.instructions))
    if battles.cluster is not None:
        codes.append(("cluster", battles.clusters))
    for name, names in codes:
        column = getattr(battles, name)
        if len(set(names)) != len(names):
            raise InputError(f"column {name}: a name is listed twice; give every name one code")
        _refuse_row(name, (column < 0) | (column >= len(names)), "a code that stands for no name")
    itself = battles.model_a == battles.model_b
    if itself.any():
        model = battles.models[int(battles.model_a[np.argmax(itself)])]
        raise InputError(f"row {int(np.argmax(itself))}: {model} meets itself; take such rows out")
    _refuse_row("repeat", battles.repeat < 0, "a negative number")
    _refuse_row("status", ~np.isin(battles.status, list(Status)), "an unknown status")
    _refuse_row("label", (battles.status == Status.OK) & (np.abs(battles.label) > 1), "a label that is not -1, 0 or 1")
    _check_numbers(battles.status == Status.OK, optional, battles.features)


def _check_numbers(
    readable: NDArray[np.bool_], optional: Mapping[str, NDArray[Any]], features: Mapping[str, NDArray[np.float64]]
) -> None:
    for name, column in optional.items():
        if name == "outcome":
            _refuse_row(name, readable & ~((column >= 0) & (column <= 1)), "an outcome that is not from 0 to 1")
        elif name == "weight":
            _refuse_row(name, ~((column >= 0) & np.isfinite(column)), "a weight that is not finite, or below 0")
        elif name == "human":
            _refuse_row(name, (column < 0) | (column > 1), "an outcome that is not from 0 to 1")
    for name, column in {**features, **{name: column for name, column in optional.items() if name == "score"}}.items():
        _refuse_row(name, np.isinf(column), "a figure that is not finite")


def _refuse_row(column: str, wrong: NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        raise InputError(f"column {column}, row {int(np.argmax(wrong))}: {what}")


def _refuse_pair(rows: Battles, order: NDArray[np.intp] | slice, wrong: NDArray[np.bool_], where: str) -> None:
    """Raise `InputError` for the first row, in this order, that conflicts with the next row."""
    if wrong.any():
        row = np.arange(len(rows.label))[order][int(np.argmax(wrong))]
        advice = "give both orders of a battle one cluster" if "cluster" in where else "give each its own repeat number"
        raise InputError(
            f"two verdicts of judge {rows.judges[rows.judge[row]]} on {rows.models[rows.model_a[row]]} against "
            f"{rows.models[rows.model_b[row]]}, instruction {rows.instructions[rows.instruction[row]]}, in {where} "
            f"({rows.repeat[row]}); {advice}"
        )
