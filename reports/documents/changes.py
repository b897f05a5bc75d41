"""What changed from one source of verdicts to another: ratings of the models of both, with intervals of differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.data.judgments import select_battles
from venire.ratings.inference.options import Options
from venire.reports.board.rate import read
from venire.reports.board.source import VerdictSource
from venire.reports.board.verdicts import Verdicts
from venire.reports.wording import counted


def changes_section(source: VerdictSource, before: VerdictSource, method: str, level: float) -> dict[str, Any]:
    """Each model of both, rated in each by its battles against the models of both, and the difference.

    Intervals are those of a difference of two independent ratings; what they leave out is said, and no change is called
    one. The largest comes first. Raises InputError for fewer than two models in common, and as `venire.rate` does.
    """
    named = _named(before)
    now_read, before_read = read(source), read(before)
    common = set(now_read.battles.models) & set(before_read.battles.models)
    if len(common) < 2:
        raise InputError(f"--against {named}: it has fewer than two models in common with what is reported")
    now, earlier = (_rated(one, common, method, level) for one in (now_read, before_read))
    rows: list[dict[str, Any]] = []
    for model in sorted(common):
        one, other = now.get(model, {}), earlier.get(model, {})
        row: dict[str, Any] = {
            "model": model,
            "before": other.get("elo"),
            "now": one.get("elo"),
            "change": None,
            "lo": None,
            "hi": None,
        }
        if row["before"] is not None and row["now"] is not None:
            row["change"] = round(row["now"] - row["before"], 6)
            lo, hi = _difference(row["change"], one, other)
            row |= {"lo": lo, "hi": hi}
        rows.append(row)
    rows.sort(key=lambda row: (row["change"] is None, -abs(row["change"] or 0.0), row["model"]))
    says = (
        f"{counted(len(rows), 'model')} in common with {named}, each rated on battles among these alone, and "
        f"differences with {100 * level:g}% intervals. These are no test of change: {_LEFT_OUT}."
    )
    return {"against": named, "level": level, "says": says, "models": rows}


_LEFT_OUT = (
    "they take the two as independent, and are too wide where both judged the same instructions or answers; they hold "
    "for one model at a time, so that of several some leave out 0 by chance alone; ratings are about the mean of these "
    "models, so that one that changed moves the others; with few instructions they are too narrow"
)


def _named(source: VerdictSource) -> str:
    """The file of a source and, where one was asked for, its campaign."""
    return Path(str(source.paths[0])).name + ("" if source.campaign is None else f", campaign {source.campaign}")


def _difference(change: float, now: Mapping[str, Any], before: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The interval of a difference of independent ratings from their own intervals; None for an end that is open.

    Zou and Donner 2008, *Construction of confidence limits about effect measures*: distances to the bounds, squared and
    added, so that Student's quantiles of few instructions are kept.
    """

    def end(one: Mapping[str, Any], other: Mapping[str, Any], low: str, high: str) -> float | None:
        if one.get(low) is None or other.get(high) is None:
            return None
        return hypot(one["elo"] - one[low], other["elo"] - other[high])

    down, up = end(now, before, "lo", "hi"), end(now, before, "hi", "lo")
    return None if down is None else round(change - down, 6), None if up is None else round(change + up, 6)


def _rated(verdicts: Verdicts, common: set[str], method: str, level: float) -> dict[str, dict[str, Any]]:
    battles: Battles = verdicts.battles
    if battles.ballots is not None:
        raise InputError("--against compares verdicts on pairs: ballots are rated by themselves")
    known = np.array([name in common for name in battles.models], dtype=np.bool_)
    rows = known[battles.model_a] & known[battles.model_b]
    part = replace(verdicts, battles=select_battles(battles, rows), grades=None, edited={}, ballots=None)
    board = part.board(method, Options(seed=verdicts.seed, level=level)).to_json()
    return {one["model"]: one for one in board["models"]}
