"""What changed from one source of verdicts to another: ratings of the models of both, with intervals of differences."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.boards.rate import Source, Verdicts, read
from venire.ratings.data.judgments import select_battles
from venire.ratings.inference.options import Options
from venire.reports.wording import counted

__all__ = ["changes_section"]


def changes_section(source: Source, before: Source, method: str, level: float) -> dict[str, Any]:
    """Each model of both, rated in each by its battles against the models of both, and the difference.

    Intervals take the two as independent; where they share verdicts, the intervals are too wide. The largest change
    comes first. Raises InputError for fewer than two models in common, and as `venire.rate` does.
    """
    now_read, before_read = read(source), read(before)
    common = set(now_read.battles.models) & set(before_read.battles.models)
    if len(common) < 2:
        raise InputError(f"--against {before.paths[0]}: it has fewer than two models in common with what is reported")
    z = NormalDist().inv_cdf(0.5 + level / 2)
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
            if one.get("se") is not None and other.get("se") is not None:
                half = z * sqrt(one["se"] ** 2 + other["se"] ** 2)
                row |= {"lo": round(row["change"] - half, 6), "hi": round(row["change"] + half, 6)}
        rows.append(row)
    rows.sort(key=lambda row: (row["change"] is None, -abs(row["change"] or 0.0), row["model"]))
    moved = sum(row["lo"] is not None and (row["lo"] > 0.0 or row["hi"] < 0.0) for row in rows)
    says = (
        f"Against {Path(str(before.paths[0])).name}, {moved:,} of {counted(len(rows), 'model')} in common changed "
        f"beyond chance at {100 * level:g}%. "
        "Both are rated on battles among these models alone, and taken as independent."
    )
    return {"against": Path(str(before.paths[0])).name, "level": level, "says": says, "models": rows}


def _rated(verdicts: Verdicts, common: set[str], method: str, level: float) -> dict[str, dict[str, Any]]:
    battles: Battles = verdicts.battles
    if battles.ballots is not None:
        raise InputError("--against compares verdicts on pairs: ballots are rated by themselves")
    known = np.array([name in common for name in battles.models], dtype=np.bool_)
    rows = known[battles.model_a] & known[battles.model_b]
    part = replace(verdicts, battles=select_battles(battles, rows), grades=None, edited={}, ballots=None)
    board = part.board(method, Options(seed=verdicts.seed, level=level)).to_json()
    return {one["model"]: one for one in board["models"]}
