"""Venire's public functions with the same timer; validation of the arrays is always part of the call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.scale import POINTS_PER_LOGIT

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from common import Battles, Call, drive

from venire.ratings.data.comparisons import comparisons
from venire.ratings.pairwise.bradley_terry import bradley_terry

Values = NDArray[np.float64]


def fit(battles: Battles) -> Call:
    """Ratings from integer codes, without errors, as the others."""
    a, b, y, models = battles.column("a"), battles.column("b"), battles.column("y"), battles.models
    return lambda: bradley_terry(comparisons(a, b, y, models=models), errors="none").logits


def labels(battles: Battles) -> Call:
    """Ratings from strings: lists, or arrays of objects as in a data frame."""
    a, b, y = battles.labels("a"), battles.labels("b"), battles.column("y")
    left, right = (a.tolist(), b.tolist()) if battles.options["kind"] == "lists" else (a, b)
    return lambda: bradley_terry(comparisons(left, right, y), errors="none").logits


def sandwich(battles: Battles) -> Call:
    """Ratings and their errors with each row as a unit."""
    a, b, y, models = battles.column("a"), battles.column("b"), battles.column("y"), battles.models
    return lambda: bradley_terry(comparisons(a, b, y, models=models), errors="sandwich").se


def clustered(battles: Battles) -> Call:
    """Ratings and their errors by cluster."""
    a, b, y, cluster = (battles.column(name) for name in ("a", "b", "y", "cluster"))
    models = battles.models
    return lambda: bradley_terry(comparisons(a, b, y, models=models, cluster=cluster), errors="cluster").se


def bootstrap(battles: Battles) -> Call:
    """From codes to the standard deviation of the replicates."""
    from venire.ratings.inference.bootstrap import bootstrap_battles

    a, b, y, models = battles.column("a"), battles.column("b"), battles.column("y"), battles.models
    replicates = battles.options["replicates"]

    def call() -> Values:
        data = comparisons(a, b, y, models=models)
        point = bradley_terry(data, errors="none").logits
        return bootstrap_battles(data, point, replicates=replicates).se

    return call


def bootstrap_by_cluster(battles: Battles) -> Call:
    """The same with whole clusters drawn."""
    from venire.ratings.inference.bootstrap import bootstrap_clusters

    a, b, y, cluster = (battles.column(name) for name in ("a", "b", "y", "cluster"))
    models, replicates = battles.models, battles.options["replicates"]

    def call() -> Values:
        data = comparisons(a, b, y, models=models, cluster=cluster)
        point = bradley_terry(data, errors="none").logits
        return bootstrap_clusters(data, point, replicates=replicates).se

    return call


def with_covariates(battles: Battles) -> Call:
    """Ratings and coefficients, without errors, as the others."""
    from venire.ratings.pairwise.covariates import covariates

    a, b, y, x = (battles.column(name) for name in ("a", "b", "y", "x"))
    names = [f"x{column}" for column in range(x.shape[1])]

    def call() -> Values:
        data = comparisons(a, b, y, models=battles.models)
        found = covariates(data, x, names, errors="none")
        return np.concatenate([found.ratings.logits, found.coefficients])

    return call


def soft(battles: Battles) -> Call:
    """Beta, and the ratings by people, by verdicts and by scores."""
    from venire.ratings.soft_elo.soft_elo import hard_elo, human_elo, soft_elo

    a, b, y, score, human = (battles.column(name) for name in ("a", "b", "y", "score", "human"))

    def call() -> Values:
        data = comparisons(a, b, y, models=battles.models)
        fits = human_elo(data, human, errors="none"), hard_elo(data, errors="none")
        found = soft_elo(data, score, human, errors="none")
        return np.concatenate([[found.beta], *(fit.logits for fit in (*fits, found.ratings))])

    return call


def held_out(battles: Battles) -> Call:
    """Every model left out in turn, with bootstraps of its own battles."""
    from venire.ratings.soft_elo.cross_validation import leave_one_out

    a, b, y, score, human = (battles.column(name) for name in ("a", "b", "y", "score", "human"))
    replicates = battles.options["replicates"]

    def call() -> Any:
        data = comparisons(a, b, y, models=battles.models)
        return leave_one_out(data, score, human, replicates=replicates).judge["soft"].elo / POINTS_PER_LOGIT

    return call


def abilities(battles: Battles) -> Call:
    """Ratings and the judges' abilities, without errors, as the others; `restarts` more starts."""
    from venire.ratings.am_elo.am_elo import am_elo

    a, b, y, judge = (battles.column(name) for name in ("a", "b", "y", "judge"))
    restarts = battles.options.get("restarts", 0)

    def call() -> Values:
        data = comparisons(a, b, y, models=battles.models, judge=judge)
        found = am_elo(data, restarts=restarts, errors="none")
        return np.concatenate([found.ratings.logits, found.ability])

    return call


def consistency_of_store(battles: Battles) -> Call:
    """From the file of a settled campaign to every judge's consistency with its interval."""
    from venire.configs.loading import load_campaign
    from venire.ratings.judges.consistency import consistency
    from venire.storage.read import frames
    from venire.storage.store.opening import open_store

    campaign = load_campaign(battles.folder / "campaign.toml")

    def call() -> Values:
        with open_store(campaign.store) as store:
            verdicts = frames.battles(store, 1)
        judges = consistency(verdicts).judges
        return np.array([judge.consistency for judge in judges], dtype=np.float64)

    return call


def kemeny(battles: Battles) -> Call:
    """An order from pairwise votes: the codes, best first, and 1 where it is proved."""
    from venire.ratings.data.votes import Votes
    from venire.ratings.voting.kemeny import kemeny_young

    votes = Votes(tuple(battles.models), battles.column("weight"))
    place = {name: code for code, name in enumerate(votes.models)}

    def call() -> Values:
        found = kemeny_young(votes, seconds=battles.options["limit"])
        return np.array([*(place[name] for name in found.order), found.proved], dtype=np.float64)

    return call


if __name__ == "__main__":
    drive(
        "venire",
        {
            "fit": fit,
            "labels": labels,
            "sandwich": sandwich,
            "clustered": clustered,
            "bootstrap": bootstrap,
            "bootstrap by cluster": bootstrap_by_cluster,
            "covariates": with_covariates,
            "soft": soft,
            "held out": held_out,
            "abilities": abilities,
            "consistency": consistency_of_store,
            "kemeny": kemeny,
        },
    )
