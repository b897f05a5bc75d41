"""FastChat: the functions of its rating_systems.py, which Chatbot Arena used."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from common import Battles, Call, drive

sys.path.insert(0, str(Path(sys.prefix)))
import rating_systems

_POINTS = 400.0 / np.log(10.0)


def fit(battles: Battles) -> Call:
    frame = battles.frame()
    return lambda: rating_systems.compute_bt(frame).reindex(battles.models).to_numpy() / _POINTS


def bootstrap(battles: Battles) -> Call:
    frame = battles.frame()

    def call() -> np.ndarray:
        found = rating_systems.compute_bootstrap_bt(frame, battles.options["replicates"], num_cpu=1)
        return found.std(ddof=1).reindex(battles.models).to_numpy() / _POINTS

    return call


def covariates(battles: Battles) -> Call:
    matchups = np.column_stack([battles.column("a"), battles.column("b")])
    x, y, models = battles.column("x"), battles.column("y"), battles.models
    return lambda: rating_systems.fit_contextual_bt(matchups, x, y, models, alpha=1.0, reg=1e-6)


if __name__ == "__main__":
    drive("", {"fit": fit, "labels": fit, "bootstrap": bootstrap, "covariates": covariates})
