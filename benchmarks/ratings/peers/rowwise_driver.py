"""Row-by-row references, written for this benchmark, for methods that no other library implements.

Soft-Elo follows the script that its authors published: a data frame is converted row by row to a dense design, ratings
are fitted by L-BFGS-B with the gradient, beta by a bounded search, and every resample of a model's battles is solved
separately. The bootstrap of consistency reweights every verdict for each draw of instructions. Kemeny-Young is one
program with all its constraints at once.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from common import Battles, Call, drive
from scipy.optimize import Bounds, LinearConstraint, milp, minimize, minimize_scalar
from scipy.sparse import csr_array

_RIDGE = 0.01


def _sigma(logits: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-logits))


def _frame(battles: Battles) -> pd.DataFrame:
    columns = {name: battles.column(name) for name in ("y", "score", "human")}
    return pd.DataFrame({"model_a": battles.labels("a"), "model_b": battles.labels("b"), **columns})


def _target(row: pd.Series, signal: str, beta: float) -> float:
    value = float(_sigma(beta * float(row["score"]))) if signal == "soft" else float(row[signal])
    return min(max(value, 1e-6), 1.0 - 1e-6)


def _rate(frame: pd.DataFrame, models: list[str], signal: str, beta: float) -> np.ndarray:
    """Ratings (models,) with mean 0 by people, verdicts or scores."""
    place = {name: at for at, name in enumerate(models)}
    rows, targets = [], []
    for _, row in frame.iterrows():
        sides = np.zeros(len(models))
        sides[place[str(row["model_a"])]] = 1.0
        sides[place[str(row["model_b"])]] = -1.0
        rows.append(sides)
        targets.append(_target(row, signal, beta))
    design, goal = np.vstack(rows), np.array(targets)

    def objective(logits: np.ndarray) -> float:
        chance = _sigma(design @ logits)
        return float(-(goal @ np.log(chance) + (1.0 - goal) @ np.log(1.0 - chance)) + _RIDGE / 2.0 * logits @ logits)

    def gradient(logits: np.ndarray) -> np.ndarray:
        return design.T @ (_sigma(design @ logits) - goal) + _RIDGE * logits

    found = minimize(objective, np.zeros(len(models)), jac=gradient, method="L-BFGS-B", options={"ftol": 1e-10}).x
    return found - found.mean()


def _beta(frame: pd.DataFrame) -> float:
    scores, labels = [], []
    for _, row in frame.iterrows():
        if row["human"] != 0.5:
            scores.append(float(row["score"]))
            labels.append(float(row["human"]))
    score, label = np.array(scores), np.array(labels)

    def loss(log_beta: float) -> float:
        chance = np.clip(_sigma(np.exp(log_beta) * score), 1e-9, 1.0 - 1e-9)
        return float(-(label @ np.log(chance) + (1.0 - label) @ np.log(1.0 - chance)))

    bounds = (np.log(1e-3), np.log(50.0))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-5}).x))


def soft(battles: Battles) -> Call:
    frame, models = _frame(battles), battles.models

    def call() -> np.ndarray:
        beta = _beta(frame)
        fits = [_rate(frame, models, signal, beta) for signal in ("human", "y", "soft")]
        return np.concatenate([[beta], *fits])

    return call


def _place(goal: np.ndarray, opponents: np.ndarray) -> float:
    """One rating against fixed opponents, by Newton's method."""
    logit = 0.0
    for _ in range(100):
        chance = _sigma(logit - opponents)
        step = ((goal - chance).sum() - _RIDGE * logit) / ((chance * (1.0 - chance)).sum() + _RIDGE)
        logit += float(step)
        if abs(step) < 1e-8:
            break
    return logit


def held_out(battles: Battles) -> Call:
    frame, models = _frame(battles), battles.models
    replicates = battles.options["replicates"]

    def call() -> np.ndarray:
        rng, found = np.random.default_rng(0), []
        for model in models:
            anchors = [name for name in models if name != model]
            own = (frame["model_a"] == model) | (frame["model_b"] == model)
            beta = _beta(frame[~own])
            placed = {}
            for signal in ("human", "y", "soft"):
                ratings = dict(zip(anchors, _rate(frame[~own], anchors, signal, beta), strict=True))
                goals, opponents = [], []
                for _, row in frame[own].iterrows():
                    first = row["model_a"] == model
                    goal = _target(row, signal, beta)
                    goals.append(goal if first else 1.0 - goal)
                    opponents.append(ratings[row["model_b"] if first else row["model_a"]])
                goal, against = np.array(goals), np.array(opponents)
                placed[signal] = _place(goal, against)
                if signal != "human":
                    for _ in range(replicates):
                        drawn = rng.integers(0, len(goal), len(goal))
                        _place(goal[drawn], against[drawn])
            found.append(placed["soft"])
        return np.array(found)

    return call


def consistency(battles: Battles) -> Call:
    """Columns judge, pair, instruction and y (rows,): sequentially by judge and by draw."""
    judge, pair, unit, y = (battles.column(name) for name in ("judge", "pair", "instruction", "y"))
    judges, pairs, units = (int(codes.max()) + 1 for codes in (judge, pair, unit))

    def call() -> np.ndarray:
        rng, spread = np.random.default_rng(0), []
        for code in range(judges):
            mine = judge == code
            key, value, drawn_by = pair[mine], y[mine], unit[mine]
            draws = []
            for _ in range(battles.options["replicates"]):
                weight = np.bincount(rng.integers(0, units, units), minlength=units)[drawn_by]
                share = np.bincount(key, weight * value, pairs) / np.maximum(np.bincount(key, weight, pairs), 1e-9)
                draws.append(1.0 - 4.0 * (share * (1.0 - share)).mean())
            spread.append(np.std(draws))
        return np.array(spread)

    return call


def kemeny(battles: Battles) -> Call:
    """Kemeny-Young as one integer program with all three-cycle constraints, by SciPy's HiGHS."""
    weight = battles.column("weight")
    size = len(weight)

    def call() -> np.ndarray:
        above, under = np.triu_indices(size, 1)
        pair = np.zeros((size, size), dtype=np.int64)
        pair[above, under] = np.arange(len(above))
        threes = np.array(list(combinations(range(size), 3)))
        columns = [pair[threes[:, one], threes[:, other]] for one, other in ((0, 1), (1, 2), (0, 2))]
        at = np.tile(np.arange(len(threes)), 3), np.concatenate(columns)
        rows = csr_array((np.repeat([1.0, 1.0, -1.0], len(threes)), at), shape=(len(threes), len(above)))
        price = weight[under, above] - weight[above, under]
        options = {"time_limit": battles.options["limit"], "mip_rel_gap": 0.0}
        limits = LinearConstraint(rows, 0.0, 1.0)
        found = milp(price, constraints=limits, integrality=np.ones(len(price)), bounds=Bounds(0, 1), options=options)
        wins = np.zeros((size, size))
        wins[above, under] = np.rint(found.x)
        wins[under, above] = 1.0 - np.rint(found.x)
        return np.argsort(-wins.sum(axis=1), kind="stable")

    return call


if __name__ == "__main__":
    drive("", {"soft": soft, "held out": held_out, "consistency": consistency, "kemeny": kemeny})
