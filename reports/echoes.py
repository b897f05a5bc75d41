"""Answers that go on after their end, beside verdicts on pairs: how often one of two does, and which is preferred.

Source: Remeli and Hardt 2026, *Correct Looks Better: Pairwise Comparisons Reveal Accuracy Rankings*, arXiv 2606.09409.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles, Grades
from venire.ratings.data.clustered import clustered_mean
from venire.ratings.data.judgments import Judgments
from venire.ratings.diagnostics.accuracy import PAIR_KINDS
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import merge_selected
from venire.reports.board.board import Board
from venire.reports.graded_pairs import ECHO, grades_of_sides, kinds_of_pairs
from venire.reports.grades import EchoPairs, ShareRow

_KINDS = PAIR_KINDS[:2]


def with_echo_pairs(board: Board, grades: Grades, battles: Battles, options: Options) -> Board:
    """The board with what judges of pairs made of answers that echo: over all pairs and by kind, where that is known.

    `grades` are those of the board's tables and `battles` the verdicts that its ratings come from. It is what was seen:
    an answer that echoes may be worse besides.
    """
    if board.grades is None or board.grades.echo is None or not len(battles.status):
        return board
    judgments = merge_selected(battles, options)
    a, b = grades_of_sides(grades, ECHO, judgments)
    known = (a >= 0) & (b >= 0)
    rows = [_pairs("all pairs", judgments, known, a, b, options.level)]
    if (table := board.grades.accuracy) is not None:
        kinds = kinds_of_pairs(grades, table.protocol, judgments)
        for code, kind in enumerate(_KINDS):
            rows.append(_pairs(kind, judgments, known & (kinds == code), a, b, options.level))
    echo = replace(board.grades.echo, pairs=tuple(row for row in rows if row.judgments))
    return replace(board, grades=replace(board.grades, echo=echo))


def _pairs(
    name: str,
    judgments: Judgments,
    rows: NDArray[np.bool_],
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    level: float,
) -> EchoPairs:
    """What became of judgments of a kind; `a` and `b` (rows,) are 1 where the answer echoes."""
    one = rows & (a != b)
    clean = np.where(a == 0, judgments.y, 1.0 - judgments.y)[one]
    cluster = judgments.instruction[one] if judgments.clustered else None
    found = clustered_mean(clean, cluster)
    lo, hi = found.share_interval(level)
    count = int(np.count_nonzero(rows))
    return EchoPairs(
        pairs=name,
        judgments=count,
        one_echoes=int(np.count_nonzero(one)) / count if count else None,
        clean=ShareRow(found.value, found.se, lo, hi, found.n),
    )
