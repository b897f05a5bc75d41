"""Each system left out in turn and placed for a notional dollar: by information and by balanced anchors.

VENIRE_DATA=... python benchmarks/placing/bench.py --out placed.csv
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from field import Field, nano_dollars, read_field
from summary import summary

from venire.arena.campaigns import PhaseSettings
from venire.arena.planning import PlanState
from venire.orchestrator.policies import POLICIES
from venire.placement.backtest import joined, place_anchors, place_anew
from venire.ratings.data.judgments import Judgments, merge_orders, select_battles
from venire.ratings.design.placement import place_model
from venire.ratings.soft_elo.human_scale import human_scale

POLICIES_TRIED = ("information", "balanced")


@dataclass(frozen=True)
class Row:
    """One placement: truth and estimates in Elo points; `judge_truth` is based on all battles of the model."""

    profile: str
    policy: str
    seed: int
    model: str
    people: float
    elo: float
    low: float
    high: float
    judge: float
    se: float
    judge_low: float
    judge_high: float
    judge_truth: float
    slope: float
    battles: int
    verdicts: int
    dollars: float
    calibrated_on: int
    seconds: float


def board_of(field: Field, battles: int, profile: str, seed: int) -> Judgments:
    """Judgments of `battles` balanced battles of all systems, for the board."""
    phase = PhaseSettings(policy="balanced")
    state = PlanState(field.models, {}, field.names)
    picks = POLICIES["balanced"].choose(state, phase, battles, np.random.default_rng(seed))
    places = {name: code for code, name in enumerate(field.models)}
    texts = {name: code for code, name in enumerate(field.names)}
    rows = np.array([(places[one.model_a], places[one.model_b], texts[str(one.instruction)]) for one in picks])
    return field.judged(rows, profile, seed)


def all_of(field: Field, model: int, profile: str, seed: int):
    """The judge's verdicts on every battle of one model, from which a placement chooses."""
    others = np.array([code for code in range(len(field.models)) if code != model])
    grid = np.array(np.meshgrid(others, np.arange(len(field.names)), indexing="ij")).reshape(2, -1).T
    a, b = np.minimum(grid[:, 0], model), np.maximum(grid[:, 0], model)
    return field.judged(np.column_stack([a, b, grid[:, 1]]), profile, seed)


def placements(field: Field, seed: int, given: argparse.Namespace) -> Iterable[Row]:
    """Every system placed on a board of the others, by each policy."""
    profile = given.profile
    board = board_of(field, given.board, profile, seed)

    def prices(models, names):
        return nano_dollars(field, given.row, models, names)

    for code in range(given.first, len(field.models) if given.last is None else given.last):
        name = field.models[code]
        others = select_battles(board, (board.model_a != code) & (board.model_b != code))
        own = all_of(field, code, profile, seed)
        everything = merge_orders(joined(others, own))
        truth = place_model(everything.comparisons(), name).held.elo
        for policy in POLICIES_TRIED:
            start = time.perf_counter()
            phase = PhaseSettings(policy=policy, purpose="place", round=given.round)
            choose = POLICIES[policy].choose
            placed = place_anew(
                everything, name, choose, phase, 10**6, seed=seed, prices=prices, money=given.dollars * 1e9
            )
            mine = (everything.model_a == code) | (everything.model_b == code)
            kept = ~mine
            kept[placed.rows] = True
            found = place_model(everything.select(kept).comparisons(), name)
            rest = merge_orders(others)
            names = [one for one in rest.models if one != name]
            anchors = place_anchors(
                rest.select(rest.between(names)), names, choose, phase, placed.battles, seed=seed, prices=prices
            )
            human = [float(field.elo[field.models.index(one)]) for one in anchors.models]
            people = human_scale(anchors.elo, anchors.se, human, found.held.elo, found.held.se)
            fixed, each = prices(field.models, field.names)
            rows = everything.select(placed.rows)
            cost = fixed[rows.instruction] + each[rows.model_a, rows.instruction] + each[rows.model_b, rows.instruction]
            yield Row(
                profile, policy, seed, name, float(field.elo[code]), people.elo, people.low, people.high,
                found.held.elo, found.held.se, found.held.low, found.held.high, truth, people.slope,
                placed.battles, int(rows.readable.sum()), float(cost.sum()) / 1e9, len(human),
                time.perf_counter() - start,
            )  # fmt: skip


def study(
    about: str | None, each: Callable[[Field, int, argparse.Namespace], Iterable[Row]], seeds: list[int], out: Path
) -> None:
    """Read the command line, write each placement of each seed to a table when done, and print its summary."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=seeds)
    parser.add_argument("--profile", default="gpt-4-0125-preview", help="the simulated judge")
    parser.add_argument("--row", default="gpt-4.1", help="the row of the price table that a battle is paid by")
    parser.add_argument("--dollars", type=float, default=1.0)
    parser.add_argument("--board", type=int, default=11_100, help="battles of the board with all systems")
    parser.add_argument("--instructions", type=int, default=200)
    parser.add_argument("--round", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=None)
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("--summary", type=Path, nargs="+", help="only sum up tables that are there")
    given = parser.parse_args()
    if given.summary:
        sys.stdout.write(summary(given.summary))
        return
    data = Path(os.environ["VENIRE_DATA"])
    with given.out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([one.name for one in fields(Row)])
        for seed in given.seeds:
            for row in each(read_field(data, given.instructions, seed), seed, given):
                table.writerow(astuple(row))
                file.flush()
    sys.stdout.write(summary([given.out]))


if __name__ == "__main__":
    study(__doc__, placements, [1, 2, 3, 4, 5], Path("placed.csv"))
