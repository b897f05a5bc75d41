"""Whose models are whose: which model a judge is, and which are of its family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["model_of_judge", "own_models"]


def model_of_judge(judges: Sequence[str], models: Sequence[str], peers: Mapping[str, str]) -> NDArray[np.int64]:
    """Which model each judge is: the one in `peers`, else the one of its name; -1 where it is none (judges,)."""
    place = {name: code for code, name in enumerate(models)}
    return np.array([place.get(peers.get(name, name), -1) for name in judges], dtype=np.int64)


def own_models(
    judges: Sequence[str],
    models: Sequence[str],
    peers: Mapping[str, str] | None = None,
    families: Mapping[str, str] | None = None,
    judge_families: Mapping[str, str] | None = None,
) -> NDArray[np.bool_]:
    """Which models are each judge's own (judges, models): the one that it is, and those of its family.

    `peers` says which model a judge of another name is, `families` and `judge_families` the family of each model and
    judge, where known. A judge that `judge_families` does not name is of the family of the model that it is.
    """
    of_model, of_judge = families or {}, judge_families or {}
    table = np.zeros((len(judges), len(models)), dtype=np.bool_)
    for row, judge in zip(table, judges, strict=True):
        model = (peers or {}).get(judge, judge)
        family = of_judge.get(judge, of_model.get(model))
        row[:] = [name == model or bool(family and of_model.get(name) == family) for name in models]
    return table
