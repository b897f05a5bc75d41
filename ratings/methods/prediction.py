"""Prediction of judgments by any method that rates models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.result import Rated
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import METHODS


def predict_rows(
    battles: Battles,
    judgments: Judgments,
    method: str,
    options: Options,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> NDArray[np.float64]:
    """P(A) of `test` rows (k,) by a method that saw the `train` rows, with each judge's ability where it has any.

    NaN where the two models have no common rating. Raises `InputError` for a method that gives an order alone, and
    passes on the method's errors.
    """
    rated = METHODS[method].run(battles, judgments.select(train), options)
    if rated.position is not None:
        raise InputError("gives an order, and no probability of a verdict")
    place = {name: code for code, name in enumerate(rated.ratings.models)}
    codes = np.array([place.get(name, -1) for name in judgments.models])
    logits = np.append(rated.ratings.logits, np.nan)[codes]
    group = np.append(np.asarray(rated.group, dtype=np.float64), np.nan)[codes]
    a, b = judgments.model_a[test], judgments.model_b[test]
    gap = np.where(group[a] == group[b], logits[a] - logits[b], np.nan)
    ability = _ability(rated, judgments)[judgments.judge[test]]
    return np.asarray(expit(np.multiply(ability, gap, out=np.zeros(len(gap)), where=gap != 0.0)))


def _ability(rated: Rated, judgments: Judgments) -> NDArray[np.float64]:
    """The ability of each judge (judges,); 1 where a method has none, or not of this judge."""
    known = rated.judge_figures.get("ability")
    if known is None:
        return np.ones(max(len(judgments.judges), 1))
    by_name = dict(zip(rated.judges, known.tolist(), strict=True))
    found = np.array([by_name.get(name, 1.0) for name in judgments.judges])
    return np.where(np.isnan(found), 1.0, found)
