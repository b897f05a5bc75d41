"""The tables of battles to rate: generated from a seed, saved as arrays, and read by every library's driver."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_TIES = 0.15
_MEETINGS = 200
_LADDER_GAP = 0.1
_COVARIATES = 10
_CLUSTERS = 2000
_PART = 1 << 20


def save(folder: Path, models: list[str], **columns: NDArray[np.generic]) -> Path:
    """Write columns (rows,) and the names behind the codes, as the drivers read them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", column)
    (folder / "models.json").write_text(json.dumps(models), encoding="utf-8")
    return folder


def _save(folder: Path, models: int, **columns: NDArray[np.generic]) -> Path:
    return save(folder, [f"model-{number:04}" for number in range(models)], **columns)


def battles(folder: Path, rows: int, models: int, *, covariates: bool = False, seed: int = 0) -> Path:
    """Battles of models whose strengths have a standard deviation of one logit; some meet five times as often.

    Columns a and b (int32), y (float64) and cluster (int32); with `covariates` x (rows, 10), on which y depends.
    """
    rng = np.random.default_rng(seed)
    strength = rng.standard_normal(models)
    share = rng.uniform(0.3, 1.7, models)
    edges = np.cumsum(share / share.sum())
    a, b = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int32)
    y = np.empty(rows)
    x = rng.standard_normal((rows, _COVARIATES)) if covariates else np.zeros((rows, 0))
    effect = 0.2 * rng.standard_normal(x.shape[1])
    for start in range(0, rows, _PART):
        part = slice(start, min(start + _PART, rows))
        size = part.stop - part.start
        a[part] = np.minimum(np.searchsorted(edges, rng.random(size)), models - 1)
        other = np.minimum(np.searchsorted(edges, rng.random(size)), models - 1)
        same = other == a[part]
        other[same] = (a[part][same] + rng.integers(1, models, same.sum())) % models
        b[part] = other
        chance = 1.0 / (1.0 + np.exp(strength[b[part]] - strength[a[part]] - x[part] @ effect))
        y[part] = np.where(rng.random(size) < _TIES, 0.5, rng.random(size) < chance)
    cluster = rng.integers(0, _CLUSTERS, rows).astype(np.int32)
    extra = {"x": x} if covariates else {}
    return _save(folder, models, a=a, b=b, y=y, cluster=cluster, **extra)


def _ladder_wins(models: int, seed: int) -> NDArray[np.int64]:
    chance = 1.0 / (1.0 + np.exp(-_LADDER_GAP))
    wins = np.random.default_rng(seed).binomial(_MEETINGS, chance, models - 1)
    return np.asarray(np.clip(wins, 1, _MEETINGS - 1))


def ladder(folder: Path, models: int, seed: int = 0) -> Path:
    """Models in a row, each slightly stronger than the next, that meet only their neighbours, 200 times each."""
    wins = _ladder_wins(models, seed)
    a = np.repeat(np.arange(models - 1, dtype=np.int32), _MEETINGS)
    y = (np.tile(np.arange(_MEETINGS), models - 1) < np.repeat(wins, _MEETINGS)).astype(np.float64)
    return _save(folder, models, a=a, b=a + np.int32(1), y=y)


def ladder_logits(models: int, seed: int = 0) -> NDArray[np.float64]:
    """The exact ratings of that ladder: the graph is a tree, so each gap is the log of wins over losses."""
    wins = _ladder_wins(models, seed).astype(np.float64)
    gaps = np.log(wins / (_MEETINGS - wins))
    logits = np.concatenate([[0.0], -np.cumsum(gaps)])
    return np.asarray(logits - logits.mean())


def scored(folder: Path, rows: int, models: int, seed: int = 0) -> Path:
    """Battles with a judge's score A minus B in steps of a twelfth, its verdict y, and human labels."""
    rng = np.random.default_rng(seed)
    strength = rng.standard_normal(models)
    a = rng.integers(0, models, rows).astype(np.int32)
    b = ((a + rng.integers(1, models, rows)) % models).astype(np.int32)
    gap = strength[a] - strength[b]
    score = np.round(12.0 * (1.2 * gap + 1.5 * rng.standard_normal(rows))) / 12.0
    human = np.where(rng.random(rows) < 0.3, 0.5, rng.random(rows) < 1.0 / (1.0 + np.exp(-gap)))
    return _save(folder, models, a=a, b=b, y=np.where(score == 0, 0.5, score > 0), score=score, human=human)


def judged(folder: Path, rows: int, models: int, judges: int, seed: int = 0) -> Path:
    """Battles by judges of different ability (mean 1, deviation 0.4) with different numbers of verdicts."""
    rng = np.random.default_rng(seed)
    strength, ability = rng.standard_normal(models), 1.0 + 0.4 * rng.standard_normal(judges)
    share = rng.uniform(0.5, 1.5, judges)
    judge = rng.choice(judges, rows, p=share / share.sum()).astype(np.int32)
    a = rng.integers(0, models, rows).astype(np.int32)
    b = ((a + rng.integers(1, models, rows)) % models).astype(np.int32)
    chance = 1.0 / (1.0 + np.exp(-ability[judge] * (strength[a] - strength[b])))
    y = np.where(rng.random(rows) < _TIES, 0.5, rng.random(rows) < chance)
    return _save(folder, models, a=a, b=b, y=y, judge=judge)


def ballots(folder: Path, models: int, voters: int, agreement: float, seed: int = 0) -> Path:
    """Rankings by voters who agree on one order to the given degree: ballots (voters, models), codes best first.

    And weight (models, models): how many prefer each model to each other.
    """
    rng = np.random.default_rng(seed)
    score = agreement * rng.permutation(models) + rng.gumbel(size=(voters, models))
    weight = (score[:, :, None] < score[:, None, :]).sum(axis=0).astype(np.float64)
    return _save(folder, models, ballots=np.argsort(score, axis=1), weight=weight)


def tournament(folder: Path, models: int, seed: int = 0) -> Path:
    """One random vote per pair, as weight (models, models): the hardest votes to order."""
    won = np.triu(np.random.default_rng(seed).random((models, models)) < 0.5, 1)
    return _save(folder, models, weight=np.where(won, 1.0, np.tril(~won.T, -1).astype(np.float64)))
