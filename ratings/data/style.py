"""Style features of an answer: length and markdown counts, as covariates of ratings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.ratings.data.validation import float_array

STYLE_NAMES = ("length", "headers", "bold", "lists")

FAMILY = "same-family"
"""The covariate of `same_family`, which is about who wrote an answer and not about what it looks like."""

_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"`[^`\n]+`")
_HEADER = re.compile(r"[ \t]{0,3}#{1,6}[ \t]")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_BOLD = re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__")


@dataclass(frozen=True, slots=True)
class Style:
    """Counts of one text.

    `characters` and `words` count everything. `headers` are lines of one to six `#` and a space, `lists` lines that
    begin an item (`-`, `*`, `+`, `1.`, `1)`), `bold` runs between `**` or `__` on one line. None of these three are
    counted inside code.
    """

    characters: int
    words: int
    headers: int
    bold: int
    lists: int


def style(text: str) -> Style:
    """Count the style features of one text; never raises.

    >>> from venire.ratings import style
    >>> found = style("A **bold** claim.")
    >>> found.characters
    17
    """
    headers = bold = lists = 0
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            # A block ends at a fence of the same kind that is at least as long as its opening fence.
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            headers += _HEADER.match(line) is not None
            lists += _ITEM.match(line) is not None
            if "**" in line or "__" in line:
                bold += len(_BOLD.findall(_CODE.sub("", line)))
    return Style(len(text), len(text.split()), headers, bold, lists)


def relative_difference(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """(a - b) / (a + b) elementwise for counts of equal shape, within [-1, 1]; 0 where both are 0.

    Raises `InputError` for a count that is negative, infinite or unknown (NaN).
    """
    first, second = float_array("a", a), float_array("b", b)
    for side, counts in (("a", first), ("b", second)):
        wrong = ~((counts >= 0.0) & np.isfinite(counts))
        if wrong.any():
            row = np.unravel_index(int(np.argmax(wrong)), counts.shape)[0] if counts.ndim else 0
            raise InputError(
                f"{side}, row {row}: {counts[wrong].flat[0]} is not possible: give counts, finite numbers of 0 or more"
            )
    total = first + second
    return np.asarray(np.divide(first - second, total, out=np.zeros_like(total), where=total > 0.0))


def unit_scale(x: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Columns (rows, k) divided by their standard deviations (k,), and these; a column of zeros is unchanged.

    The deviation is taken about 0. It equals that of all rows in both orientations, so it does not depend on which
    model a table calls A. Columns are not centred.
    """
    table = np.asarray(x, dtype=np.float64)
    spread = np.sqrt(np.mean(table * table, axis=0))
    spread = np.where(spread > 0.0, spread, 1.0)
    return table / spread, spread


def style_covariates(
    a: Sequence[str], b: Sequence[str], *, length: Literal["characters", "words"] = "characters"
) -> NDArray[np.float64]:
    """Relative differences (rows, 4) of the texts of A and B, named by `STYLE_NAMES`, each divided by its deviation.

    `length` selects the measure of length. Raises `InputError` for columns of unequal length.

    >>> from venire.ratings import style_covariates
    >>> style_covariates(["a long answer"], ["short"]).shape
    (1, 4)
    """
    if len(a) != len(b):
        raise InputError(f"there are {len(a)} texts for A and {len(b)} for B; give one each a comparison")
    if length not in ("characters", "words"):
        raise InputError(f"length is {length!r}; {suggest(length, ('characters', 'words'))}")
    known = {text: style(text) for text in {*a, *b}}
    sides = [
        np.array(
            [(getattr(of, length), of.headers, of.bold, of.lists) for of in (known[text] for text in side)],
            dtype=np.float64,
        ).reshape(len(side), len(STYLE_NAMES))
        for side in (a, b)
    ]
    difference = relative_difference(*sides)
    return unit_scale(difference)[0] if len(difference) else difference


def same_family(judge: Sequence[str | None], a: Sequence[str | None], b: Sequence[str | None]) -> NDArray[np.float64]:
    """The covariate (rows,) for the judge's own family: +1 where only A belongs to it, -1 where only B does, else 0.

    None is an unknown family and matches no judge. Raises `InputError` for columns of unequal length.

    >>> from venire.ratings import same_family
    >>> same_family(["gpt", "gpt"], ["gpt", "llama"], ["llama", "claude"]).tolist()
    [1.0, 0.0]
    """
    if not len(judge) == len(a) == len(b):
        raise InputError(
            f"there are families of {len(judge)} judges, {len(a)} and {len(b)} answers; give one each a row"
        )
    return np.array(
        [
            float(own is not None and own == of_a) - float(own is not None and own == of_b)
            for own, of_a, of_b in zip(judge, a, b, strict=True)
        ],
        dtype=np.float64,
    )
