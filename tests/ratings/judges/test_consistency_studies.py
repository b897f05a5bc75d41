"""What the scores of judges are worth, on simulated judges with recorded habits, and what their intervals cover."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.ratings.judges.consistency import consistency
from venire.ratings.judges.elo_from_consistency import elo_from_consistency
from venire.simulation.judge import Profile, load_profiles

JUDGES, MODELS, MATCHUPS, ITEMS = 24, 20, 30, 30
POINTS = 400 / np.log(10)


def habits(*, places: bool) -> list[Profile]:
    """The recorded judges' tie habits and pulls towards a place, in units of their own noise."""
    found = []
    for name, one in load_profiles().items():
        if name != "person":
            noise = np.sqrt(one.sigma_item**2 + one.sigma_order**2 + one.sigma_position**2 + 3.29 * one.temperature**2)
            unit = float(noise) / 1.7
            pull = one.position / unit if places else 0.0
            found.append(replace(one, tie_band=one.tie_band / unit, position=pull))
    return found


def verdicts(slope: float, gap: NDArray[np.float64], who: Profile, rng: np.random.Generator) -> NDArray[np.int64]:
    """Labels for A, shape (gaps, items, 2 orders), of a judge that follows the gap with this slope and these habits."""
    shape = (len(gap), ITEMS, 2)
    side = np.array([1.0, -1.0])
    leaning = slope * gap[:, None, None] * side + who.position + rng.logistic(size=shape)
    tied = (rng.random((*shape[:2], 1)) < who.item_tie) | (np.abs(leaning) < who.tie_band)
    return np.where(tied, 0, np.where(leaning > 0, 1, -1) * side).astype(np.int64)


def table(labels: NDArray[np.int64], sides: NDArray[np.intp], models: int) -> Battles:
    """Battles from labels (judges, matchups, items, 2 orders) of matchups with models `sides` (matchups, 2)."""
    axes = [axis.ravel() for axis in np.meshgrid(*map(np.arange, labels.shape), indexing="ij")]
    judge, matchup, item, order = axes
    return Battles(
        models=tuple(f"m{n:03}" for n in range(models)),
        judges=tuple(f"j{n:02}" for n in range(labels.shape[0])),
        instructions=tuple(f"i{n:03}" for n in range(labels.shape[2])),
        model_a=sides[matchup, 0].astype(np.int32),
        model_b=sides[matchup, 1].astype(np.int32),
        judge=judge.astype(np.int32),
        instruction=item.astype(np.int32),
        repeat=np.ones(len(judge), dtype=np.int32),
        swapped=order == 1,
        status=np.zeros(len(judge), dtype=np.int8),
        label=labels.ravel().astype(np.int8),
    )


def study(seed: int, *, places: bool) -> NDArray[np.float64]:
    """For plain, decisive and discrimination: r over all, r in the top 8, leave-one-out error in Elo points.

    24 judges with Elo 900 to 1350 and slopes 0.3 to 3 along it, on the widest 30 matchups of 20 models (sd 114 Elo) by
    30 instructions in both orders.
    """
    rng = np.random.default_rng(seed)
    elo = np.sort(rng.uniform(900.0, 1350.0, JUDGES))
    known = rng.normal(1000.0, 114.0, MODELS)
    pairs = sorted(((x, y) for x in range(MODELS) for y in range(x)), key=lambda p: -abs(known[p[0]] - known[p[1]]))
    sides = np.array(pairs[:MATCHUPS], dtype=np.intp)
    gap = (known[sides[:, 0]] - known[sides[:, 1]]) / POINTS
    people = habits(places=places)
    order = rng.permutation(JUDGES)
    labels = [
        verdicts(0.3 + 2.7 * (points - 900.0) / 450.0, gap, people[place % len(people)], rng)
        for points, place in zip(elo, order, strict=True)
    ]
    battles = table(np.stack(labels), sides, MODELS)
    found = consistency(battles, elo=dict(zip(battles.models, known.tolist(), strict=True)))
    own = dict(zip(battles.judges, elo.tolist(), strict=True))
    lines = [elo_from_consistency(found, own, score=s, top=1e9) for s in ("consistency", "decisive", "discrimination")]
    return np.array([[line.all.pearson, line.top.pearson, line.all.mae_left_out] for line in lines], dtype=np.float64)


def test_discrimination_tells_good_judges_apart_where_consistency_cannot() -> None:
    plain, decisive, slope = np.mean([study(seed, places=False) for seed in range(6)], axis=0)
    assert plain[0] > 0.85
    assert decisive[0] > 0.85
    assert slope[0] > 0.95
    assert slope[1] > plain[1] + 0.1
    assert decisive[1] > plain[1] + 0.1
    assert slope[2] < 0.8 * plain[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (False, [[0.940, 0.456, 35.9], [0.933, 0.809, 41.0], [0.981, 0.822, 20.2]]),
        (True, [[0.933, 0.494, 40.2], [0.895, 0.469, 50.2], [0.976, 0.773, 21.8]]),
    ],
)
def test_the_study_of_twenty_seeds(places: bool, expected: list[list[float]]) -> None:
    """r over all, r in the top 8 and leave-one-out error of plain, decisive and discrimination; docs/judges.md."""
    found = np.mean([study(seed, places=places) for seed in range(20)], axis=0)
    assert found[:, 0] == pytest.approx([row[0] for row in expected], abs=0.001)
    assert found[:, 1] == pytest.approx([row[1] for row in expected], abs=0.001)
    assert found[:, 2] == pytest.approx([row[2] for row in expected], abs=0.1)


def covered(items: int, slope: float, runs: int) -> float:
    """Share of 95 % intervals of plain consistency that hold what more instructions would show; 30 matchups."""
    rng = np.random.default_rng(1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    sides = np.arange(60).reshape(30, 2)
    hits = 0
    for _ in range(runs):
        gap = np.abs(rng.normal(size=30))
        taste = slope * gap[:, None, None] + rng.normal(size=(30, items, 1))
        won = rng.logistic(size=(30, items, 2)) < taste
        labels = np.where(rng.random(won.shape) < 0.1, 0, np.where(won, 1, -1))
        share = 0.05 + 0.9 * (1 / (1 + np.exp(-slope * gap[:, None] - nodes))) @ weights / weights.sum()
        truth = 1 - 4 * np.mean(share * (1 - share))
        row = consistency(table(labels[None], sides, 60)).judges[0]
        assert row.consistency_lo is not None
        assert row.consistency_hi is not None
        hits += bool(row.consistency_lo <= truth <= row.consistency_hi)
    return hits / runs


def test_intervals_hold_the_truth_with_few_instructions() -> None:
    assert covered(items=3, slope=1.5, runs=40) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("items", [3, 10, 30, 100])
@pytest.mark.parametrize("slope", [0.5, 1.5, 3.0])
def test_intervals_cover_what_they_say(items: int, slope: float) -> None:
    """Of 200 runs each; the shares that were seen are in docs/judges.md."""
    assert covered(items, slope, runs=200) > 0.9
