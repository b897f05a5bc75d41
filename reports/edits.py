"""What an edit of a completion does to verdicts: each battle judged as it is, with A's answer edited, and with B's.

Source: Remeli and Hardt 2026, *Correct Looks Better: Pairwise Comparisons Reveal Accuracy Rankings*, arXiv 2606.09409.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles, Grades
from venire.ratings.data.judgments import Judgments
from venire.ratings.diagnostics.accuracy import PAIR_KINDS, paired_preference_shift
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import merge_selected
from venire.reports.graded_pairs import ECHO, grades_of_sides, kinds_of_pairs

Edited = Mapping[tuple[str, str], Battles]


@dataclass(frozen=True, slots=True)
class EditContrast:
    """How far an edit moves one judge, or all (`judge` None), on pairs of a kind.

    `battles` were judged with the edit on A and on B; `on_a` and `on_b` are how often A was preferred then (a tie
    counts one half), and `unedited` how often as both came, None where that was not judged. `shift` is `on_a` less
    `on_b`, below 0 where the edit repels, with its interval `lo` to `hi`, clustered by instruction; None where too few
    instructions were judged. `echoing` counts battles left out since an answer echoes without the edit.
    """

    variant: str
    judge: str | None
    pairs: str
    battles: int
    unedited: float | None
    on_a: float
    on_b: float
    shift: float
    lo: float | None
    hi: float | None
    echoing: int


def edit_contrasts(
    edited: Edited, battles: Battles, options: Options, *, grades: Grades | None = None, protocol: str | None = None
) -> tuple[EditContrast, ...]:
    """The contrast of each edit: over all judges by kind of pair, where `grades` by `protocol` tell it, then by judge.

    `edited` are verdicts by the name of the edit and the side, "a" or "b", that has it; `battles` those on completions
    as they came. Where grades say which answers echo, the contrast of an edit named `echo` is over pairs in which
    neither does, as in the source.
    """
    plain = merge_selected(battles, options)
    found: list[EditContrast] = []
    for variant in sorted({name for name, _ in edited}):
        on_a, on_b = (edited.get((variant, side)) for side in "ab")
        if on_a is None or on_b is None:
            continue
        pairs = _Paired.of(merge_selected(on_a, options), merge_selected(on_b, options), plain)
        echoing = np.zeros(len(pairs), dtype=np.bool_)
        if grades is not None and variant == ECHO:
            a, b = grades_of_sides(grades, ECHO, pairs.judgments)
            echoing = (a == 1) | (b == 1)
        kinds = None if grades is None or protocol is None else kinds_of_pairs(grades, protocol, pairs.judgments)
        found += pairs.contrasts(variant, echoing, kinds, options.level)
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Paired:
    """Judgments that were made with the edit on A and on B: outcomes for A (rows,); NaN for one not made unedited."""

    judgments: Judgments
    on_a: NDArray[np.float64]
    on_b: NDArray[np.float64]
    unedited: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.on_a)

    @classmethod
    def of(cls, with_a: Judgments, with_b: Judgments, plain: Judgments) -> _Paired:
        other, before = ({key: row for row, key in enumerate(_keys(one))} for one in (with_b, plain))
        both = [(row, other[key], before.get(key)) for row, key in enumerate(_keys(with_a)) if key in other]
        rows = np.array([row for row, _, _ in both], dtype=np.intp)
        return cls(
            judgments=with_a.select(rows),
            on_a=with_a.y[rows],
            on_b=with_b.y[np.array([row for _, row, _ in both], dtype=np.intp)],
            unedited=np.array([np.nan if row is None else plain.y[row] for _, _, row in both], dtype=np.float64),
        )

    def contrasts(
        self, variant: str, echoing: NDArray[np.bool_], kinds: NDArray[np.int64] | None, level: float
    ) -> Iterator[EditContrast]:
        every = np.ones(len(self), dtype=np.bool_)
        chosen: list[tuple[str | None, str, NDArray[np.bool_]]] = [(None, "all pairs", every)]
        if kinds is not None:
            chosen += [(None, kind, kinds == code) for code, kind in enumerate(PAIR_KINDS)]
        judges = self.judgments.judges
        if len(judges) > 1:
            chosen += [(name, "all pairs", self.judgments.judge == code) for code, name in enumerate(judges)]
        for judge, kind, rows in chosen:
            kept = rows & ~echoing
            if kept.any():
                yield self._contrast(variant, judge, kind, kept, int(np.count_nonzero(rows & echoing)), level)

    def _contrast(
        self, variant: str, judge: str | None, kind: str, rows: NDArray[np.bool_], echoing: int, level: float
    ) -> EditContrast:
        cluster = self.judgments.instruction[rows] if self.judgments.clustered else None
        moved = paired_preference_shift(self.on_a[rows], self.on_b[rows], cluster, level=level)
        unedited = self.unedited[rows]
        known = unedited[np.isfinite(unedited)]
        return EditContrast(
            variant=variant,
            judge=judge,
            pairs=kind,
            battles=int(np.count_nonzero(rows)),
            unedited=float(known.mean()) if len(known) else None,
            on_a=float(self.on_a[rows].mean()),
            on_b=float(self.on_b[rows].mean()),
            shift=moved.shift,
            lo=None if np.isnan(moved.lo) else moved.lo,
            hi=None if np.isnan(moved.hi) else moved.hi,
            echoing=echoing,
        )


def _keys(judgments: Judgments) -> Iterator[tuple[str, str, str, str, int]]:
    """Who judged which pair on what, by name: codes of two tables differ."""
    for a, b, judge, instruction, repeat in zip(
        judgments.model_a.tolist(),
        judgments.model_b.tolist(),
        judgments.judge.tolist(),
        judgments.instruction.tolist(),
        judgments.repeat.tolist(),
        strict=True,
    ):
        named = judgments.models[a], judgments.models[b], judgments.judges[judge]
        yield (*named, judgments.instructions[instruction], repeat)
