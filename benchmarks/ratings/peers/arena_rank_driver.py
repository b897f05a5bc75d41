"""arena-rank, the successor of FastChat's ratings, on jax."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from arena_rank.models.bradley_terry import BradleyTerry, fit_single_bootstrap_sample
from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry
from arena_rank.utils.data_utils import ContextualPairDataset, PairDataset
from common import Battles, Call, drive


def _ordered(values: object, competitors: list[str], models: list[str]) -> np.ndarray:
    place = {name: at for at, name in enumerate(competitors)}
    return np.asarray(values)[[place[name] for name in models]]


def fit(battles: Battles) -> Call:
    frame = battles.frame()

    def call() -> np.ndarray:
        data = PairDataset.from_pandas(frame)
        model = BradleyTerry(len(data.competitors))
        model.fit(data)
        return _ordered(model.params["ratings"], data.competitors, battles.models)

    return call


def bootstrap(battles: Battles) -> Call:
    """Counts of pairs drawn as its own bootstrap draws them, one refit after the other."""
    frame, replicates = battles.frame(), battles.options["replicates"]

    def call() -> np.ndarray:
        data = PairDataset.from_pandas(frame)
        model = BradleyTerry(len(data.competitors))
        model.fit(data)
        counts, rows = np.asarray(data.counts, dtype=np.float64), len(frame)
        drawn = np.random.default_rng(0).multinomial(rows, counts / counts.sum(), size=replicates)
        refits = [
            np.asarray(fit_single_bootstrap_sample(jnp.asarray(row, dtype=jnp.float64), model, data)["ratings"])
            for row in drawn
        ]
        return _ordered(np.std(refits, axis=0, ddof=1), data.competitors, battles.models)

    return call


def covariates(battles: Battles) -> Call:
    frame, x = battles.frame(), battles.column("x")
    names = [f"x{column}" for column in range(x.shape[1])]
    for column, name in enumerate(names):
        frame[name] = x[:, column]

    def call() -> np.ndarray:
        data = ContextualPairDataset.from_pandas(frame, names, reweighted=False, normalize_features=False)
        model = ContextualBradleyTerry(len(battles.models), len(names), reg=0.0)
        model.fit(data)
        ratings = _ordered(model.params["ratings"], data.competitors, battles.models)
        return np.concatenate([ratings, np.asarray(model.params["coeffs"])])

    return call


if __name__ == "__main__":
    drive("arena-rank", {"fit": fit, "labels": fit, "bootstrap": bootstrap, "covariates": covariates})
