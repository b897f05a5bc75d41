"""arenakit, from ready arrays: the checks and the coding of its records are not counted."""

from __future__ import annotations

import arenakit
import numpy as np
from arenakit import schema
from common import Battles, Call, drive


def _arena(battles: Battles) -> arenakit.Arena:
    arena = object.__new__(arenakit.Arena)
    arena.models, arena.a, arena.b = battles.models, battles.column("a"), battles.column("b")
    words = np.array([schema.B_WINS, schema.TIE, schema.A_WINS], dtype=np.int8)
    arena.y = words[(2.0 * battles.column("y")).astype(np.int8)]
    arena.item = arena.voter = None
    return arena


def fit(battles: Battles) -> Call:
    arena = _arena(battles)
    return lambda: arenakit.fit_bt(arena.counts(), prior=0.0).scores


def bootstrap(battles: Battles) -> Call:
    """Its figures are quantiles of its draws; only its time is used."""
    arena = _arena(battles)

    def call() -> np.ndarray:
        arenakit.bootstrap(arena, n_resamples=battles.options["replicates"])
        return np.full(len(battles.models), np.nan)

    return call


if __name__ == "__main__":
    drive("arenakit", {"fit": fit, "bootstrap": bootstrap})
