"""evalica: its public functions on lists of labels, and its kernel on lists of positions."""

from __future__ import annotations

import evalica
import numpy as np
from common import Battles, Call, drive
from evalica import _brzo


def _winners(battles: Battles) -> list[evalica.Winner]:
    by_half = [evalica.Winner.Y, evalica.Winner.Draw, evalica.Winner.X]
    return [by_half[half] for half in (2.0 * battles.column("y")).astype(int).tolist()]


def fit(battles: Battles) -> Call:
    left, right, winners = battles.labels("a").tolist(), battles.labels("b").tolist(), _winners(battles)
    limits = {"limit": battles.options["limit"]} if "limit" in battles.options else {}

    def call() -> np.ndarray:
        found = evalica.bradley_terry(left, right, winners, **limits)
        return np.log(found.scores.reindex(battles.models).to_numpy())

    return call


def kernel(battles: Battles) -> Call:
    left, right, winners = battles.column("a").tolist(), battles.column("b").tolist(), _winners(battles)
    weights = [1.0] * len(left)

    def call() -> np.ndarray:
        scores, _ = _brzo.bradley_terry(left, right, winners, weights, len(battles.models), 1.0, 0.5, 1e-6, 100)
        return np.log(scores)

    return call


def bootstrap(battles: Battles) -> Call:
    left, right, winners = battles.labels("a").tolist(), battles.labels("b").tolist(), _winners(battles)

    def call() -> np.ndarray:
        found = evalica.bootstrap(
            evalica.bradley_terry,
            left,
            right,
            winners,
            n_resamples=battles.options["replicates"],
            bootstrap_method="percentile",
            random_state=0,
        )
        return np.log(found.distribution).std(ddof=1).reindex(battles.models).to_numpy()

    return call


if __name__ == "__main__":
    drive("evalica", {"fit": fit, "labels": fit, "kernel": kernel, "bootstrap": bootstrap})
