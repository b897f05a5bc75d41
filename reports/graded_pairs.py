"""Grades of single completions put beside pairs of them: the grade of each answer, and the kind of each pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles, Grades
from venire.arena.records import AnswerGrade, Status
from venire.ratings.data.judgments import Judgments
from venire.ratings.diagnostics.accuracy import pair_kinds

ECHO = "echo"
"""The protocol that asks whether an answer goes on after its end; all others grade answers."""
REFERENCE = "direct-reference"
DIRECT = "direct"


def of_protocol(grades: Grades, protocol: str) -> NDArray[np.bool_]:
    """Which rows (rows,) judges of a protocol gave."""
    asked = np.array([name == protocol for name in grades.protocols], dtype=np.bool_)
    return np.asarray(asked[grades.judge])


def completion_grades(grades: Grades, protocol: str) -> NDArray[np.int64]:
    """The grade of each completion by a protocol (models, instructions), -1 where there is none.

    Of several grades of one completion, by judges or repeats, the most frequent; -1 where two are equally frequent.
    """
    rows = of_protocol(grades, protocol) & (grades.status == Status.OK)
    shape = (len(grades.models), len(grades.instructions), len(AnswerGrade))
    cell = np.ravel_multi_index((grades.model[rows], grades.instruction[rows], grades.label[rows]), shape)
    counts = np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)
    most = counts.max(axis=2)
    alone = (counts == most[:, :, None]).sum(axis=2) == 1
    return np.where(alone & (most > 0), counts.argmax(axis=2), -1)


def kinds_of_pairs(grades: Grades, protocol: str, pairs: Battles | Judgments) -> NDArray[np.int64]:
    """Codes into `PAIR_KINDS` of pairs (rows,) by the grades of a protocol; -1 where either answer has none."""
    a, b = grades_of_sides(grades, protocol, pairs)
    known = (a >= 0) & (b >= 0)
    kinds = np.full(len(a), -1)
    kinds[known] = pair_kinds(a[known], b[known])
    return kinds


def grades_of_sides(
    grades: Grades, protocol: str, pairs: Battles | Judgments
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The grades of both answers of pairs (rows,), by a protocol; -1 where an answer has none."""
    table = completion_grades(grades, protocol)
    models, instructions = _places(pairs.models, grades.models), _places(pairs.instructions, grades.instructions)
    table = np.pad(table, ((0, 1), (0, 1)), constant_values=-1)  # place -1 is what was not graded
    if not pairs.instructions:
        nothing = np.full(len(pairs.model_a), -1)
        return nothing, nothing
    instruction = instructions[pairs.instruction]
    a, b = (table[models[side], instruction] for side in (pairs.model_a, pairs.model_b))
    return a, b


def _places(names: Sequence[str], among: Sequence[str]) -> NDArray[np.int64]:
    place = {name: code for code, name in enumerate(among)}
    return np.array([place.get(name, -1) for name in names], dtype=np.int64)
