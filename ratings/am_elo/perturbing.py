"""Judges made worse on purpose, to see what becomes of ratings and whether the judges are found.

Four ways to spoil a judge's verdicts, from "am-ELO: A Stable Framework for Arena-based LLM Evaluation"
(arXiv 2505.03475).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.validation import check_seed

__all__ = ["Perturbation", "codes_of_judges", "perturbed"]

Perturbation = Literal["random", "equal", "flip", "mixed"]

_RANDOM, _EQUAL, _FLIP = range(3)


def perturbed(data: Comparisons, judges: Collection[str], kind: Perturbation, *, seed: int = 0) -> Comparisons:
    """The same table with the verdicts of some judges spoilt; those of the others stay as they are.

    "equal" makes every verdict a tie; "flip" turns winners round; "random" makes a preference a tie or the opposite
    preference with equal chance; "mixed" does one of the three to each verdict, with equal chances. A tie stays a tie.
    Draws do not depend on the order of rows, of sides or of `judges`. Raises `InputError` for a kind or a judge that is
    not there.
    """
    if kind not in get_args(Perturbation):
        raise InputError(f"kind is {kind!r}; choose one of {', '.join(get_args(Perturbation))}")
    check_seed(seed)
    if data.judge is None:
        raise InputError("the comparisons name no judge: give `judge` to `comparisons`")
    rows = _by_name(data, np.flatnonzero(np.isin(data.judge, codes_of_judges(data, judges))))
    rng = np.random.default_rng(seed)
    if kind == "mixed":
        done = rng.integers(_RANDOM, _FLIP + 1, len(rows))
    else:
        done = np.full(len(rows), {"random": _RANDOM, "equal": _EQUAL, "flip": _FLIP}[kind])
    tied = (done == _EQUAL) | ((done == _RANDOM) & (rng.random(len(rows)) < 0.5))
    y = data.y.copy()
    y[rows] = np.where(tied, 0.5, 1.0 - y[rows])
    return replace(data, y=y)


def codes_of_judges(data: Comparisons, judges: Collection[str]) -> NDArray[np.intp]:
    """The codes of judges by name, ascending; raises `InputError` for one that is not there."""
    place = {name: code for code, name in enumerate(data.judges)}
    if strange := sorted(set(judges) - place.keys()):
        known = ", ".join(data.judges[:10]) or "not named"
        raise InputError(f"no judge is called {strange[0]!r}; the judges are {known}")
    return np.array(sorted(place[name] for name in set(judges)), dtype=np.intp)


def _by_name(data: Comparisons, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """These rows sorted by names and outcome; rows that stay equal are alike, so that any draw serves any of them."""
    assert data.judge is not None
    a, b = _ranks(data.models)[data.a[rows]], _ranks(data.models)[data.b[rows]]
    turn, y = a > b, data.y[rows]
    keys = [np.where(turn, 1.0 - y, y), np.maximum(a, b), np.minimum(a, b), _ranks(data.judges)[data.judge[rows]]]
    if data.weight is not None:
        keys.insert(0, data.weight[rows])
    if data.cluster is not None:
        keys.insert(0, _ranks(data.clusters)[data.cluster[rows]])
    return rows[np.lexsort(keys)]


def _ranks(names: tuple[str, ...]) -> NDArray[np.intp]:
    """The place (names,) of each name in their alphabetical order."""
    ranks = np.empty(len(names), dtype=np.intp)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return ranks
