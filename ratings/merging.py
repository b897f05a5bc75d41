"""Verdicts to judgments: the two orders of one battle, judge and repeat taken together.

Everything is first put into one canonical form (names sorted, A before B by name, rows sorted), so that no estimate
can depend on the order of rows, on the order of names, or on which model a table happens to call A.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Status

__all__ = ["Judgments", "Merge", "canonical", "combine", "merge_orders", "select"]

Merge = Literal["mean", "strict"]

_COLUMNS = ("model_a", "model_b", "judge", "instruction", "repeat", "swapped", "status", "label")


@dataclass(frozen=True, slots=True, eq=False)
class Judgments:
    """One row a (pair, instruction, judge, repeat), sorted by these; arrays have the same length.

    Codes point into the sorted names, and `model_a` sorts before `model_b`. `y` is the outcome for A (0, 0.25, 0.5,
    0.75 or 1), `flipped` says that the two orders chose opposite winners, `readable` how many orders could be read.
    `merged` is False where a table knows no orders or no instructions, so that each verdict is its own judgment;
    `unreadable` counts the verdicts left out.
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


def combine(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """One int64 key a row that sorts as the columns of non-negative codes do, the first being most significant."""
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


def select(battles: Battles, rows: NDArray[Any]) -> Battles:
    """The same table with some of its rows, by mask or by position."""
    return replace(battles, **{name: getattr(battles, name)[rows] for name in _COLUMNS})


def canonical(battles: Battles) -> Battles:
    """The same verdicts with names sorted and A before B by name in every row; the rows stay in place.

    Raises `InputError` for columns of unequal length, codes without a name, a name listed twice, a model that meets
    itself, and an unknown label or status.
    """
    _check(battles)
    models, model_code = _sorted(battles.models)
    judges, judge_code = _sorted(battles.judges)
    instructions, instruction_code = _sorted(battles.instructions)
    model_a, model_b = model_code[battles.model_a], model_code[battles.model_b]
    turn = model_a > model_b
    instruction = instruction_code[battles.instruction] if instructions else np.full(len(turn), -1, dtype=np.int32)
    return Battles(
        models=models,
        judges=judges,
        instructions=instructions,
        model_a=np.where(turn, model_b, model_a),
        model_b=np.where(turn, model_a, model_b),
        judge=judge_code[battles.judge],
        instruction=instruction,
        repeat=battles.repeat,
        swapped=battles.swapped ^ turn,
        status=battles.status,
        label=np.where(turn, -battles.label, battles.label),
        ordered=battles.ordered,
    )


def merge_orders(battles: Battles, merge: Merge = "mean") -> Judgments:
    """Bring the two orders of each (pair, instruction, judge, repeat) together; SPEC 1, "Two orders to one judgment".

    Both orders agree: that winner. A tie and a winner: that winner at half strength under `mean`, a tie under
    `strict`. Opposite winners: a tie, kept as a flip. One readable order is used alone; unreadable verdicts are left
    out. Where the table knows no orders or no instructions each row is its own judgment. Raises `InputError` for an
    unknown merge and for two verdicts on the same showing.
    """
    if merge not in get_args(Merge):
        raise InputError(f"merge is {merge!r}; choose one of {', '.join(get_args(Merge))}")
    rows = canonical(battles)
    kept = select(rows, rows.status == Status.OK)
    merged = kept.ordered and bool(kept.instructions)
    battle = combine(kept.model_a, kept.model_b, kept.instruction + 1, kept.judge, kept.repeat)
    order = np.argsort(combine(battle, kept.swapped if merged else kept.label + 1))
    kept, battle = select(kept, order), battle[order]
    fresh = np.ones(len(battle), dtype=np.bool_)
    if merged:
        fresh[1:] = battle[1:] != battle[:-1]
        _refuse_doubles(kept, ~fresh[1:] & (kept.swapped[1:] == kept.swapped[:-1]))
    starts = np.flatnonzero(fresh)
    label = kept.label.astype(np.int64)
    total = np.add.reduceat(label, starts) if len(starts) else label
    decisive = np.add.reduceat(np.abs(label), starts) if len(starts) else label
    readable = np.diff(starts, append=len(battle))
    if merge == "strict":
        total = np.where((readable == 2) & (decisive == 1), 0, total)
    return Judgments(
        models=kept.models,
        judges=kept.judges,
        instructions=kept.instructions,
        model_a=kept.model_a[starts],
        model_b=kept.model_b[starts],
        judge=kept.judge[starts],
        instruction=kept.instruction[starts],
        repeat=kept.repeat[starts],
        y=0.5 + 0.5 * total / readable,
        flipped=(decisive == 2) & (total == 0),
        readable=readable.astype(np.int8),
        merge=merge,
        merged=merged,
        unreadable=len(rows.status) - len(battle),
    )


def _sorted(names: tuple[str, ...]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The names sorted, and for each old code the new one."""
    order = sorted(range(len(names)), key=names.__getitem__)
    codes = np.empty(len(names), dtype=np.int32)
    codes[order] = np.arange(len(names), dtype=np.int32)
    return tuple(names[position] for position in order), codes


def _check(battles: Battles) -> None:
    length = len(battles.model_a)
    for name in _COLUMNS:
        if len(getattr(battles, name)) != length:
            raise InputError(f"column {name} has {len(getattr(battles, name))} rows, model_a has {length}")
    codes = [("model_a", battles.models), ("model_b", battles.models), ("judge", battles.judges)]
    if battles.instructions:
        codes.append(("instruction", battles.instructions))
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


def _refuse_row(column: str, wrong: NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        raise InputError(f"column {column}, row {int(np.argmax(wrong))}: {what}")


def _refuse_doubles(rows: Battles, double: NDArray[np.bool_]) -> None:
    if double.any():
        row = int(np.argmax(double))
        raise InputError(
            f"two verdicts of judge {rows.judges[rows.judge[row]]} on {rows.models[rows.model_a[row]]} against "
            f"{rows.models[rows.model_b[row]]}, instruction {rows.instructions[rows.instruction[row]]}, in one order "
            f"and one repeat ({rows.repeat[row]}); give each its own repeat number"
        )
