"""Expected interval widths compared with those of the fit, for simulated judges: `python benchmarks/widths.py`.

Twenty models from 815 to 1229 Elo. Forecasts: with the defaults; after a pilot of 15 % of the judgments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.statistics import student
from venire.ratings.design.interval_forecast import DEFAULT_EFFECT, design_effect, forecast_intervals
from venire.ratings.design.priors import prior_ratings
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.simulation.judge import load_profiles, simulate

LOWER = (815.2, 841.6, 864.1, 898.1, 907.5, 922.2, 926.3, 942.8, 953.0, 960.0)
UPPER = (1007.3, 1015.5, 1046.0, 1052.4, 1071.0, 1087.4, 1123.2, 1159.5, 1178.4, 1228.6)
ELO = np.array((*LOWER, *UPPER))
NAMES = tuple(f"m{n:02}" for n in range(len(ELO)))
JUDGES = (("gpt-4-0613",), ("gemini-pro",), ("claude-v1",), ("gpt-4-0613", "claude-v1", "gemini-pro"))
DESIGNS = {"battles": ((1000, 200), (4000, 200)), "crossed": ((30, 50), (60, 100))}
PILOT = 0.15


def battles(kind: str, number: int, instructions: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Distinct battles drawn over pairs and instructions, or `number` connected matchups on all instructions."""
    pairs = np.array(list(combinations(range(len(ELO)), 2)))
    if kind == "battles":
        cells = rng.choice(len(pairs) * instructions, number, replace=False)
        return np.column_stack([pairs[cells % len(pairs)], cells // len(pairs)]).astype(np.int32)
    chain = np.sort(np.column_stack([order := rng.permutation(len(ELO)), np.roll(order, 1)]), axis=1)
    others = rng.permutation([pair for pair in pairs.tolist() if pair not in chain.tolist()])
    chosen = np.concatenate([chain, others])[:number]
    told = np.repeat(np.arange(instructions), number)
    return np.column_stack([np.tile(chosen, (instructions, 1)), told]).astype(np.int32)


def judged(judges: Sequence[str], asked: NDArray[np.int32], seed: int) -> Judgments:
    """Simulated judges' verdicts on battles in both orders, with a length for each completion."""
    rng = np.random.default_rng(seed)
    count = int(asked[:, 2].max()) + 1
    characters = np.exp(rng.normal(7.0, 0.6, count) + 0.347 * rng.normal(size=(len(ELO), count))).astype(int)
    rows, outcomes = [], []
    for code, judge in enumerate(judges):
        for a, b, i in asked.tolist():
            both = [_says(judge, seed, i, a, b, characters), 1.0 - _says(judge, seed, i, b, a, characters)]
            rows.append((a, b, i, code))
            outcomes.append(both)
    told, column = np.array(outcomes), np.array(rows, dtype=np.int32).T
    return Judgments(
        NAMES,
        tuple(judges),
        tuple(f"q{n:04}" for n in range(count)),
        column[0],
        column[1],
        column[3],
        column[2],
        np.ones(len(told), dtype=np.int32),
        told.mean(axis=1),
        np.abs(told[:, 0] - told[:, 1]) == 1.0,
        np.full(len(told), 2, dtype=np.int8),
        "mean",
        True,
        0,
    )


def _says(judge: str, seed: int, i: int, first: int, second: int, characters: NDArray[np.int64]) -> float:
    said = simulate(
        load_profiles()[judge],
        seed,
        instruction_id=i,
        first=NAMES[first],
        second=NAMES[second],
        gap=ELO[first] - ELO[second],
        chars_first=int(characters[first, i]),
        chars_second=int(characters[second, i]),
    )
    return {"first": 1.0, "second": 0.0, "tie": 0.5}[said.leaning]


def ratios(judges: Sequence[str], kind: str, number: int, instructions: int, seed: int) -> tuple[float, float, float]:
    """The observed median half width, and the ratio of the forecast to it: by default, and after a pilot."""
    asked = battles(kind, number, instructions, np.random.default_rng(seed))
    whole = judged(judges, asked, seed)
    fit = bradley_terry(whole.comparisons())
    assert fit.covariance is not None
    reach = float(POINTS_PER_LOGIT * student.ppf(0.975, fit.degrees))
    seen = float(np.median(reach * np.sqrt(np.diagonal(fit.covariance))))
    reference = dict(zip(NAMES, ELO.tolist(), strict=True))
    pilot = whole.select(np.random.default_rng(seed + 99).random(len(whole)) < PILOT)
    found = []
    for part in (None, pilot):
        seen_so_far = prior_ratings(NAMES, part, reference)
        effect = DEFAULT_EFFECT if part is None else design_effect(part, seen_so_far.logits)
        widths = forecast_intervals(NAMES, asked, seen_so_far.logits, judges=len(judges), effect=effect)
        found.append(float(np.median(widths.half_width())) / seen)
    return seen, found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    seeds = parser.parse_args().seeds
    sys.stdout.write("| judges | plan | seen, points | by default | after a pilot |\n|---|---|---|---|---|\n")
    for judges in JUDGES:
        for kind, sizes in DESIGNS.items():
            for number, instructions in sizes:
                told = np.array([ratios(judges, kind, number, instructions, seed) for seed in range(seeds)])
                spread = [f"{told[:, n].mean():.2f} ({told[:, n].min():.2f} to {told[:, n].max():.2f})" for n in (1, 2)]
                plan = f"{number} {'battles on' if kind == 'battles' else 'matchups x'} {instructions}"
                line = (" + ".join(judges), plan, f"{told[:, 0].mean():.0f}", *spread)
                sys.stdout.write(f"| {' | '.join(line)} |\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
