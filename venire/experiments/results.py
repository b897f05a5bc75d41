"""The results of a simulation: means over seeds, paired differences of runs, and conclusions in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from venire.experiments.contestants import ContestantField
from venire.experiments.experiment import Simulation
from venire.experiments.figures import FIGURES
from venire.experiments.variations import StandIn, Variation
from venire.ratings.data.statistics import student
from venire.storage.transfer.delimited import write_rows

_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class FigureMean:
    """A figure over runs: its mean, spread (standard deviation) and standard error, None where they do not exist."""

    mean: float | None
    sd: float | None
    se: float | None
    runs: int
    """Number of runs that have the figure."""


@dataclass(frozen=True, slots=True)
class FigureDifference:
    """A figure of one variation minus that of another, over the runs of both; `beyond_chance` at a joint 95 %.

    `calls` is the ratio of the first variation's calls to the second's.
    """

    figure: str
    first: int
    second: int
    mean: float
    se: float
    runs: int
    beyond_chance: bool
    calls: float | None


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """All runs of a simulation, with the variations, the judges and the contestants."""

    simulation: Simulation
    variations: tuple[Variation, ...]
    field: ContestantField
    judges: tuple[StandIn, ...]

    def rows(self) -> list[dict[str, Any]]:
        """The runs, one flat dict each: variation, seed, ending and every figure, as `simulate --csv` writes them."""
        return [
            {"variation": self.variations[run.variation].name, "seed": run.number, "ending": run.ending, **run.figures}
            for run in self.simulation.runs
        ]

    def __len__(self) -> int:
        return len(self.simulation.runs)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON values, as `venire simulate --json` prints it."""
        return simulation_document(self.simulation, self.variations, self.field, self.judges)


def means(found: Simulation, variation: int) -> dict[str, FigureMean]:
    """Every figure of one variation over its runs."""
    runs = [run.figures for run in found.runs if run.variation == variation]
    return {name: _mean([value for run in runs if (value := run[name]) is not None]) for name in FIGURES}


def _mean(values: Sequence[float]) -> FigureMean:
    if not values:
        return FigureMean(None, None, None, 0)
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return FigureMean(float(np.mean(values)), sd, None if sd is None else sd / math.sqrt(len(values)), len(values))


def differences(found: Simulation, rows: int, figure: str) -> tuple[FigureDifference, ...]:
    """Paired comparison of every two variations: runs of the same number have the same judges and contestants.

    The level is corrected for the number of pairs, so that many comparisons alone do not produce a finding.
    """
    table = {(run.variation, run.number): run.figures for run in found.runs}
    numbers = sorted({run.number for run in found.runs})
    pairs = list(combinations(range(rows), 2))
    made = []
    for first, second in pairs:
        both = [
            (a, b)
            for number in numbers
            if (a := table[first, number][figure]) is not None and (b := table[second, number][figure]) is not None
        ]
        if len(both) < 2:
            continue
        apart = np.array([a - b for a, b in both])
        mean, se = float(apart.mean()), float(apart.std(ddof=1) / math.sqrt(len(apart)))
        least = float(student.ppf(1.0 - (1.0 - _LEVEL) / (2 * len(pairs)), len(apart) - 1))
        calls = [means(found, place)["calls"].mean for place in (first, second)]
        ratio = calls[0] / calls[1] if calls[0] and calls[1] else None
        # Without any scatter, as of "top" in a few runs, chance cannot be estimated.
        made.append(FigureDifference(figure, first, second, mean, se, len(both), 0.0 < least * se < abs(mean), ratio))
    return tuple(made)


def conclusions(found: Simulation, rows: Sequence[Variation]) -> list[str]:
    """Sentences: which variation ranks the models best, which the judges, and whether that is beyond chance."""
    said = []
    for figure, what in (
        ("error", "Ranking the models"),
        ("consistency", "Telling the judges apart"),
        ("discrimination", "Telling the judges apart by discrimination"),
    ):
        sentence = _conclusion(found, rows, figure, what)
        if sentence is not None:
            said.append(sentence)
    return said


def _conclusion(found: Simulation, rows: Sequence[Variation], figure: str, what: str) -> str | None:
    known = {place: mean for place in range(len(rows)) if (mean := means(found, place)[figure].mean) is not None}
    unrated = {place: means(found, place)["unrated"].mean or 0.0 for place in known} if figure == "error" else {}
    left = {place: count for place, count in unrated.items() if count and len(rows) > 1}
    if len(left) < len(known):  # a variation that rates only a few models cannot be called the best
        known = {place: mean for place, mean in known.items() if place not in left}
    beside = "".join(
        f" {rows[place].name} left {count:.1f} models unrated on average." for place, count in left.items()
    )
    if len(known) < 2:
        return f"{what}: nothing to compare.{beside}" if beside else None
    sign = 1.0 if FIGURES[figure].less else -1.0
    order = sorted(known, key=lambda place: (sign * known[place], place))
    best, next_best = order[0], order[1]
    digits = 1 if figure == "error" else 3
    word = "the smallest error is" if figure == "error" else "the highest correlation with their known slope is"
    sentence = f"{what}: {word} that of {rows[best].name}, {known[best]:.{digits}f}"
    by_pair = {(one.first, one.second): one for one in differences(found, len(rows), figure)}
    one = by_pair.get((best, next_best)) or by_pair.get((next_best, best))
    if one is None:
        return f"{sentence}; of one seed nobody can tell what is chance.{beside}"
    better = [
        place
        for place in order[1:]
        if (pair := by_pair.get((best, place)) or by_pair.get((place, best))) is not None and pair.beyond_chance
    ]
    sentence += (
        f", against {known[next_best]:.{digits}f} of {rows[next_best].name} (difference {abs(one.mean):.{digits}f}, "
    )
    sentence += f"standard error {one.se:.{digits + 1}f}, {one.runs} seeds)"
    if one.beyond_chance:
        sentence += ": beyond chance"
    elif better:
        others = ", ".join(rows[place].name for place in better)
        sentence += f": not beyond chance; it is beyond chance that it is better than {others}"
    else:
        sentence += ": not beyond chance"
    return sentence + _at_what_cost(one, best) + "." + beside


def _at_what_cost(one: FigureDifference, best: int) -> str:
    if one.calls is None:
        return ""
    ratio = one.calls if one.first == best else 1.0 / one.calls
    return "" if 0.95 < ratio < 1.05 else f", at {ratio:.2g} times its calls"


def simulation_document(
    found: Simulation, rows: Sequence[Variation], field: ContestantField, judges: Sequence[StandIn]
) -> dict[str, Any]:
    """Everything as plain JSON values; only `speed` differs from one time to the next."""
    return {
        "verdicts": "simulated",
        "field": {
            "made_up": field.made_up,
            "instructions": field.instructions,
            "elo": dict(sorted(field.elo.items())),
            "left_out": list(field.left_out),
        },
        "judges": [
            {"judge": one.judge.name, "profile": one.profile, "protocol": one.judge.protocol, "notes": list(one.notes)}
            for one in judges
        ],
        "figures": {name: one.about for name, one in FIGURES.items()},
        "variations": [
            {
                "name": row.name,
                **{name: value for name, value in asdict(row).items() if value is not None},
                "figures": {name: asdict(mean) for name, mean in means(found, place).items()},
                "runs": [
                    {"seed": run.number, "ending": run.ending, **run.figures}
                    for run in found.runs
                    if run.variation == place
                ],
            }
            for place, row in enumerate(rows)
        ],
        "differences": [
            asdict(one)
            for name in FIGURES
            if FIGURES[name].less is not None
            for one in differences(found, len(rows), name)
        ],
        "conclusions": conclusions(found, rows),
        "speed": {
            "simulated_seconds": found.simulated,
            "wall_seconds": found.wall,
            "workers": found.workers,
        },
    }


def write_csv(path: Path, found: Simulation, rows: Sequence[Variation]) -> None:
    """Write one line for each run: variation, seed, ending and every figure. Raises OSError."""
    with path.open("w", encoding="utf-8", newline="") as file:
        names = ["verdicts", "variation", "seed", "ending", *FIGURES]
        write_rows(
            file,
            names,
            (
                [
                    "simulated",
                    rows[run.variation].name,
                    run.number,
                    run.ending,
                    *(run.figures[name] for name in FIGURES),
                ]
                for run in found.runs
            ),
        )
