"""Why a judge has no finite ability, and a model no finite rating beside the others, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from venire.ratings.am_elo.ability_cells import Cells
from venire.ratings.am_elo.separation import Limit

__all__ = ["judge_reasons", "model_reasons"]

Vector = NDArray[np.float64]


def judge_reasons(judges: Sequence[str], cells: Cells, logits: Vector, ability: Vector, limit: Limit) -> dict[str, str]:
    """Why an ability (judges,) is not finite, or a habit not known, by the judge's name."""
    some, edge = cells.by_judge(None), set(limit.edge.tolist())
    level = np.isfinite(logits)
    among = cells.among(np.flatnonzero(level), np.arange(cells.judges)).by_judge(None)
    reasons = {}
    for code in np.flatnonzero(~np.isfinite(ability)).tolist():
        way = "agree" if ability[code] > 0.0 else "disagree"
        if code in edge:
            why = (
                f"its verdicts {way} with the order of the ratings, however close they are: models that it tells apart "
                "come out equal"
            )
        elif np.isinf(ability[code]):
            why = f"its verdicts all {way} with the order of the ratings"
        elif some[code] == 0.0:
            why = "it has no readable judgment"
        elif among[code] == 0.0:
            why = "it judged no two of the models that are rated together"
        else:
            why = "it compared only models of equal ratings"
        reasons[judges[code]] = why
    if cells.first is not None:
        shown = cells.by_judge(np.abs(cells.first)) > 0.0
        for code in np.flatnonzero(shown & limit.fixed[:, 1] & np.isfinite(ability)).tolist():
            reasons[judges[code]] = "its verdicts do not tell a habit of place from its ability: fitted without"
    return reasons


def model_reasons(models: Sequence[str], cells: Cells, limit: Limit, ability: Vector) -> dict[str, str]:
    """Why a model has no rating, by its name; wins by a judge of negative ability are losses."""
    left = np.setdiff1d(np.arange(cells.models), limit.models)
    if not len(left):
        return {}
    theta = ability[cells.judge]
    turned = theta < 0.0
    tied = np.zeros(len(cells)) if cells.tied is None else cells.tied
    won, lost = np.where(turned, cells.lost, cells.won) + tied, np.where(turned, cells.won, cells.lost) + tied
    wins = np.bincount(cells.upper, won, cells.models) + np.bincount(cells.lower, lost, cells.models)
    losses = np.bincount(cells.upper, lost, cells.models) + np.bincount(cells.lower, won, cells.models)
    tail = ": no finite rating exists" + (
        "; wins by judges of negative ability count as losses" if turned.any() else ""
    )
    reasons = {}
    for code in left.tolist():
        if wins[code] + losses[code] == 0.0:
            why = "took part in no readable judgment"
        elif losses[code] == 0.0:
            why = "won every judgment it took part in" + tail
        elif wins[code] == 0.0:
            why = "lost every judgment it took part in" + tail
        else:
            why = (
                f"no chain of wins leads both to it and back from it among the {len(limit.models)} models rated" + tail
            )
        reasons[models[code]] = why
    return reasons
