"""How often intervals hold what they are about: `python benchmarks/coverage/run.py [--replicates 300] [--only soft]`.

Each cell draws tables from a world whose truth is known, and counts the intervals that hold it. Coverage has Wilson's
interval over the replicates; of one table all models or judges count, so that interval is the width for a single one.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from worlds import (
    Anchored,
    Crowd,
    Field,
    Graded,
    Graders,
    Judging,
    Labelling,
    Panel,
    Planned,
    Rejudged,
    Scored,
    Screened,
    Sharp,
    judge_of,
)

from venire.arena.errors import InputError
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.agreement.chance_corrected import Coefficient, cohen_kappa, krippendorff_alpha
from venire.ratings.agreement.reference import agreement
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.am_elo.evaluation import evaluate, loss_differences, predict_from_ratings
from venire.ratings.data.clustered import ClusteredMean
from venire.ratings.data.judgments import merge_orders
from venire.ratings.design.interval_forecast import DEFAULT_EFFECT, design_effect, forecast_range
from venire.ratings.design.priors import prior_ratings
from venire.ratings.diagnostics.accuracy import direct_accuracy
from venire.ratings.diagnostics.changes import rating_changes
from venire.ratings.diagnostics.corrected_accuracy import corrected_accuracy
from venire.ratings.diagnostics.lack_of_fit import with_lack_of_fit
from venire.ratings.judges.consistency import consistency
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import SeparatedError
from venire.ratings.pairwise.win_rate import win_rate_balanced
from venire.ratings.peers.self_preference import self_preference_odds
from venire.ratings.soft_elo.human_scale import human_scale
from venire.ratings.soft_elo.soft_elo import soft_elo

LEVEL = 0.95
INSTRUCTIONS = 30


@dataclass(frozen=True)
class Cell:
    """An interval in a world: `draw` makes one table and returns the share of its intervals that hold the truth; None
    where there are none."""

    interval: str
    world: str
    draw: Callable[[np.random.Generator], float | None]


def wilson(share: float, number: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of so many cases."""
    z = 1.959964
    middle = (share + z * z / (2 * number)) / (1 + z * z / number)
    half = z * math.sqrt(share * (1 - share) / number + z * z / (4 * number**2)) / (1 + z * z / number)
    return middle - half, middle + half


def of_a_judge(world: Judging, truth: float, instructions: int, decisive: bool, rng: np.random.Generator) -> float:
    """Consistency of one judge."""
    slope = judge_of(world, truth, decisive)
    (row,) = consistency(world.table([slope], instructions, rng), level=LEVEL).judges
    lo, hi = (row.decisive_lo, row.decisive_hi) if decisive else (row.consistency_lo, row.consistency_hi)
    if lo is None or hi is None or not hi > lo:
        return 0.0
    return float(lo <= world.truth(slope, decisive=decisive) <= hi)


def of_two_judges(
    world: Judging, truths: tuple[float, float], instructions: int, decisive: bool, rng: np.random.Generator
) -> float:
    """The difference of two judges on the same instructions."""
    slopes = [judge_of(world, truth, decisive) for truth in truths]
    found = consistency(world.table(slopes, instructions, rng), level=LEVEL)
    first, second = (row.judge for row in found.judges)
    _, lo, hi = found.difference(first, second, "decisive" if decisive else "consistency")
    truth = world.truth(slopes[0], decisive=decisive) - world.truth(slopes[1], decisive=decisive)
    return float(lo <= truth <= hi)


def of_coefficient(name: str, world: Labelling, instructions: int, rng: np.random.Generator) -> float | None:
    """Chance-corrected agreement; None where it is undefined without one of the instructions."""
    labels, instruction = world.draw(instructions, rng)
    found = _coefficient(name, labels, instruction)
    return None if found.lo is None or found.hi is None else float(found.lo <= _long_run(name, world) <= found.hi)


def _coefficient(name: str, labels: NDArray[np.int64], instruction: NDArray[np.int64]) -> Coefficient:
    if name == "Cohen's kappa":
        return cohen_kappa(labels[:, 0], labels[:, 1], cluster=instruction)
    return krippendorff_alpha(labels, cluster=instruction)


@cache
def _long_run(name: str, world: Labelling) -> float:
    found = _coefficient(name, *world.draw(40_000, np.random.default_rng(2026))).value
    assert found is not None
    return found


def of_soft_elo(world: Scored, rows: int, ends: bool, rng: np.random.Generator) -> float:
    """Soft-Elo of all models, or of the first and the last."""
    data, score, human = world.draw(rows, rng)
    lo, hi = soft_elo(data, score, human).ratings.interval(LEVEL)
    held = (lo <= world.truth()) & (world.truth() <= hi)
    return float(held[[0, -1]].mean() if ends else held.mean())


def of_pairs(world: Field, design: str, asked: int, fitted: bool, rng: np.random.Generator) -> float | None:
    """Bradley-Terry of all models, by instructions alone or with the lack of fit; None where a model has no rating."""
    odds = world.odds(rng)
    data = world.draw(odds, world.pairs(design, asked, rng), INSTRUCTIONS, rng)
    try:
        ratings = bradley_terry(data)
    except SeparatedError:
        return None
    lo, hi = (with_lack_of_fit(ratings, data) if fitted else ratings).interval(LEVEL)
    truth = world.truth(odds)
    return float(np.mean((lo <= truth) & (truth <= hi)))


def of_respondents(world: Crowd, crossed: bool, these: bool, rng: np.random.Generator) -> float | None:
    """Bradley-Terry as a board has it, by other respondents or by `these`; None where a model has no rating."""
    tastes = world.tastes(rng)
    data = replace(world.draw(tastes, rng), crossed=crossed)
    try:
        ratings = with_lack_of_fit(bradley_terry(data), data)
    except SeparatedError:
        return None
    lo, hi = ratings.interval(LEVEL)
    truth = world.truth(tastes if these else None)
    return float(np.mean((lo <= truth) & (truth <= hi)))


def of_am_elo(world: Crowd, crossed: bool, rng: np.random.Generator) -> float | None:
    """Ratings by am-ELO, by other respondents; None where a model has no rating."""
    found = am_elo(replace(world.draw(world.tastes(rng), rng), crossed=crossed)).ratings
    lo, hi = found.interval(LEVEL)
    truth = world.am_elo_truth()
    return float(np.mean((lo <= truth) & (truth <= hi))) if np.isfinite(lo).all() else None


def of_agreement(name: str, models: int, rng: np.random.Generator) -> float | None:
    """A correlation of 0.9 with a reference over normal ratings; None where the order is perfect."""
    rho = 0.9
    truth = {
        "pearson": rho,
        "spearman": 6.0 / math.pi * math.asin(rho / 2.0),
        "kendall": 2.0 / math.pi * math.asin(rho),
    }
    ours = rng.normal(size=models)
    theirs = rho * ours + math.sqrt(1.0 - rho**2) * rng.normal(size=models)
    sides = ({f"{place}": float(one) for place, one in enumerate(values)} for values in (ours, theirs))
    interval = agreement(*sides, level=LEVEL).intervals.get(name)
    return None if interval is None else float(interval[0] <= truth[name] <= interval[1])


def of_own_odds(world: Panel, instructions: int, held: tuple[str, ...], rng: np.random.Generator) -> float | None:
    """The first judge's favour for itself."""
    judgments = merge_orders(world.draw(instructions, rng))
    found = self_preference_odds(judgments, np.eye(world.models, dtype=np.bool_), held=held, level=LEVEL)[0]
    return None if found.lo is None or found.hi is None else float(found.lo <= world.favour <= found.hi)


def of_accuracy(world: Graded, questions: int, rng: np.random.Generator) -> float:
    """The accuracy of one model."""
    question, right = world.draw(questions, rng)
    found = direct_accuracy(["m"] * len(right), right.astype(int), question, level=LEVEL)
    return float(found.lo[0] <= world.share <= found.hi[0])


def of_graders(world: Graders, crossed: bool, rng: np.random.Generator) -> float:
    """The accuracy of a model by other such judges, with errors two-way or by question alone."""
    question, judge, right = world.draw(rng)
    found = direct_accuracy(["m"] * len(right), right, question, judge if crossed else None, level=LEVEL)
    return float(found.lo[0] <= world.share <= found.hi[0])


def of_corrected(world: Screened, rng: np.random.Generator) -> float | None:
    """Accuracies of all models corrected for the judge's errors; None where too few labels are of one kind."""
    model, said, truth = world.draw(rng)
    try:
        found = corrected_accuracy(model, said, truth, np.tile(np.arange(world.questions), len(world.shares)))
    except InputError:
        return None
    shares = np.array(world.shares)
    return float(np.mean((found.lo <= shares) & (shares <= found.hi)))


def of_ability(world: Sharp, instructions: int, rng: np.random.Generator) -> float | None:
    """Abilities of judges by am-ELO; None where none is finite."""
    found = am_elo(world.draw(instructions, rng))
    lo, hi = found.ability_interval(LEVEL)
    truth = world.truth()[[int(name) for name in found.judges]]
    known = np.isfinite(found.ability_se)
    return float(np.mean(((lo <= truth) & (truth <= hi))[known])) if known.any() else None


def of_win_rate(world: Field, asked: int, instructions: int, rng: np.random.Generator) -> float | None:
    """Win rates of all models that neither won nor lost everything."""
    odds = world.odds(np.random.default_rng(2026))
    pairs = world.pairs("random", asked, rng) if asked else world.pairs("all", 0, rng)
    lo, hi = win_rate_balanced(world.draw(odds, pairs, instructions, rng)).interval(LEVEL)
    wins = world.wins(odds)
    met = np.zeros_like(wins)
    met[tuple(np.array(pairs).T)] = 1.0
    truth = (wins * (met + met.T)).sum(axis=1) / (met + met.T).sum(axis=1)
    known = np.isfinite(lo)
    return float(np.mean(((lo <= truth) & (truth <= hi))[known])) if known.any() else None


def of_placement(world: Anchored, which: str, rng: np.random.Generator) -> float | None:
    """People's rating of a placed model, at 90 %: any, or where `judge` or `people` put it beyond all anchors."""
    judge, error, people = world.draw(rng)
    by = people if which == "people" else judge
    if which != "all" and by[:-1].min() <= by[-1] <= by[:-1].max():
        return None
    found = human_scale(judge[:-1], error[:-1], people[:-1], judge[-1], error[-1], alpha=0.1)
    return float(found.low <= people[-1] <= found.high)


def of_forecast(world: Planned, share: float, rng: np.random.Generator) -> float | None:
    """The median half width of a campaign's intervals, in the band that was forecast (80 %): before any verdict, or
    after those of a `share` of its battles."""
    data, asked, people = world.draw(rng)
    try:
        found = bradley_terry(data.comparisons())
    except SeparatedError:
        return None
    lo, hi = found.interval(LEVEL)
    reference = dict(zip(data.models, ELO_MEAN + POINTS_PER_LOGIT * people, strict=True)) if world.known else None
    pilot = world.pilot(data, share, rng) if share else None
    belief = prior_ratings(data.models, pilot, reference)
    effect = DEFAULT_EFFECT if pilot is None else design_effect(pilot, belief.logits)
    low, high = forecast_range(data.models, asked, belief.logits, judges=len(data.judges), effect=effect).band()
    return float(low <= np.median((hi - lo) / 2.0) <= high)


def of_changes(world: Rejudged, instructions: int, named: bool, rng: np.random.Generator) -> float:
    """Changes of the models that did not change: whether none of them is `named`, or the share of rows that hold 0."""
    found = rating_changes(*world.draw(instructions, rng), level=LEVEL)
    same = [row for code, row in enumerate(found.models) if not (world.better and code == world.moved)]
    return float(not any(row.changed for row in same) if named else np.mean([row.lo <= 0.0 <= row.hi for row in same]))


def held_out(world: Field, instructions: int, rng: np.random.Generator) -> ClusteredMean:
    """Held-out log loss of ratings shrunk towards each other less that of plain ones, in five folds of instructions."""
    odds = Field(models=world.models, effects=0.0).odds(rng)
    data = world.draw(odds, world.pairs("all", 0, rng), instructions, rng)
    shrunk, plain = (
        evaluate(data, predict_from_ratings(partial(bradley_terry, ridge=ridge, errors="none")))
        for ridge in (30.0, 0.1)
    )
    return loss_differences(data.y, shrunk, plain, data.cluster)["log_loss"]


@cache
def held_out_truth(world: Field, instructions: int) -> float:
    """The mean of that difference over campaigns of this size."""
    rng = np.random.default_rng(2026)
    return float(np.mean([held_out(world, instructions, rng).value for _ in range(400)]))


def of_folds(world: Field, instructions: int, rng: np.random.Generator) -> float:
    """A difference of held-out losses."""
    lo, hi = held_out(world, instructions, rng).interval(LEVEL)
    assert lo is not None
    assert hi is not None
    return float(lo <= held_out_truth(world, instructions) <= hi)


def cells() -> Iterator[Cell]:
    """All cells, by interval."""
    for decisive in (False, True):
        name = "decisive consistency" if decisive else "consistency"
        for instructions in (6, 15, 40):
            for truth in (0.5, 0.8, 0.92, 0.96, 0.98):
                world = Judging() if truth > 0.9 else Judging(widest=3.0)
                what = f"truth {truth}, {world.matchups} matchups x {instructions} instructions"
                yield Cell(name, what, partial(of_a_judge, world, truth, instructions, decisive))
            for truths in ((0.98, 0.92), (0.96, 0.96)):
                what = f"truths {truths[0]} and {truths[1]}, 15 matchups x {instructions} instructions"
                yield Cell(
                    f"difference of {name}", what, partial(of_two_judges, Judging(), truths, instructions, decisive)
                )
    for instructions in (15, 40):
        for puzzling, unlike in ((0.15, 1.0), (0.3, 0.3)):
            for decisive, name in ((False, "consistency"), (True, "decisive consistency")):
                world = Judging(matchups=8, widest=4.0, unlike=unlike, puzzling=puzzling)
                what = f"truth 0.4, puzzling {puzzling:.0%} of instructions, 8 matchups x {instructions} instructions"
                yield Cell(name, what, partial(of_a_judge, world, 0.4, instructions, decisive))
    for name in ("Cohen's kappa", "Krippendorff's alpha"):
        for right in (0.3, 0.6, 0.95):
            for instructions in (6, 12, 30):
                what = f"judges right in {right:.0%}, 6 battles x {instructions} instructions"
                yield Cell(name, what, partial(of_coefficient, name, Labelling(right=right), instructions))
    for rows in (1_000, 4_000):
        for world, what in (
            (Scored(), "all labelled"),
            (Scored(labelled=0.3), "30 % labelled"),
            (Scored(labelled=0.3, instructions=80), "30 % labelled, 80 instructions"),
        ):
            for ends in (False, True):
                which = "first and last model" if ends else "all models"
                yield Cell("Soft-Elo", f"{rows:,} battles, {what}, {which}", partial(of_soft_elo, world, rows, ends))
    for judges, instructions, asked in ((5, 200, 5), (20, 200, 3), (6, 8, 15), (6, 15, 15), (12, 8, 8), (12, 15, 8)):
        what = f"{judges} judges, {asked} battles each of {instructions} instructions"
        yield Cell("am-ELO ability", what, partial(of_ability, Sharp(judges, asked), instructions))
    for known, what in ((False, "nothing known"), (True, "people's ratings known")):
        for share, when in ((0.0, "before any verdict"), (0.1, "after a tenth"), (0.2, "after a fifth")):
            what_known = f"campaigns of unlike sizes, {what}, {when}"
            yield Cell("forecast of half widths, 80 %", what_known, partial(of_forecast, Planned(known), share))
    for anchors in (12, 25):
        for bent in (0.0, 0.4):
            for which, where in (
                ("all", "any model"),
                ("judge", "beyond by the judge"),
                ("people", "beyond by people"),
            ):
                what = f"{anchors} anchors, {'bent' if bent else 'straight'} scale, {where}"
                yield Cell("placement, 90 %", what, partial(of_placement, Anchored(anchors, bent=bent), which))
    for models, asked in ((5, 0), (8, 12)):
        for instructions in (6, 8, 20):
            what = f"{models} models, {asked or 'all'} pairs x {instructions} instructions"
            yield Cell(
                "win rate", what, partial(of_win_rate, Field(models, slope=1.0, unlike=0.9), asked, instructions)
            )
    for favour in (0.0, 0.8):
        for instructions in (40, 100):
            world_of = Panel(favour=favour)
            what = f"favour {favour}, taste for length, 5 peers x {instructions} instructions"
            yield Cell("own odds", what, partial(of_own_odds, world_of, instructions, ("length",)))
    for questions in (15, 40, 150):
        for share in (0.5, 0.9, 0.98):
            what = f"accuracy {share}, {questions} questions x 4 wordings"
            yield Cell("accuracy", what, partial(of_accuracy, Graded(share), questions))
    for sensitivity, specificity in ((0.97, 0.9), (0.9, 0.75), (0.8, 0.6)):
        for questions, labels in ((30, 40), (100, 100), (200, 150)):
            what = f"sensitivity {sensitivity}, specificity {specificity}, {labels} of {4 * questions} answers known"
            screened = Screened(sensitivity, specificity, questions, labels)
            yield Cell("corrected accuracy", what, partial(of_corrected, screened))
    for name in ("pearson", "spearman", "kendall"):
        for models in (5, 8, 15, 30):
            yield Cell(f"{name} with a reference", f"{models} models, truth 0.9", partial(of_agreement, name, models))
    for field, what in (
        (Field(models=8), "8 models, pair effects 0.4"),
        (Field(effects=0.0), "12 models, no effects"),
        (Field(), "12 models, pair effects 0.4"),
        (Field(effects=0.8, lapse=0.05), "12 models, pair effects 0.8, lapses 0.05"),
        (Field(slope=3.0, effects=0.0, lapse=0.08), "12 models, lapses 0.08"),
    ):
        for design, asked in (("widest", 15), ("widest", 30), ("random", 30), ("all", 0)):
            if design != "all" and asked >= field.models * (field.models - 1) // 2:
                continue
            pairs = "all pairs" if design == "all" else f"{asked} {design} pairs"
            for name, fitted in (("Bradley-Terry, by instructions alone", False), ("Bradley-Terry", True)):
                yield Cell(
                    name,
                    f"{what}, {pairs} x {INSTRUCTIONS} instructions",
                    partial(of_pairs, field, design, asked, fitted),
                )
    for instructions in (15, 40):
        what = f"5 models x {instructions} instructions, shrunk ratings less plain ones"
        yield Cell("difference of held-out losses", what, partial(of_folds, Field(models=5), instructions))
    for named in (False, True):
        interval = "no model named that did not change" if named else "change of a rating"
        for models, instructions in ((3, 30), (6, 12), (6, 30), (12, 60)):
            for world, what in (
                (Rejudged(models), "the same instructions anew"),
                (Rejudged(models, other=True), "other instructions"),
                *((Rejudged(models, better=better), f"one model {better} better") for better in (0.3, 1.0)),
            ):
                size = f"{models} models x {instructions} instructions, {what}"
                yield Cell(interval, size, partial(of_changes, world, instructions, named))


def crowd_cells() -> Iterator[Cell]:
    """Cells of boards by several people or judges."""
    for size in (3, 5, 20):
        for world, what in (
            (Crowd(size, votes=60), f"{size} people, 60 votes each on 40 instructions"),
            (Crowd(size, votes=60, uneven=0.7), f"{size} people, 60 votes in the mean, unevenly, on 40 instructions"),
            (Crowd(size, votes=60, taste=0.0), f"{size} people who are alike, 60 votes each on 40 instructions"),
            (Crowd(size, instructions=25, taste=0.3), f"{size} judges of all pairs on 25 instructions"),
        ):
            who = "judges" if "judges" in what else "people"
            yield Cell(
                f"Bradley-Terry, by instruction alone: other {who}", what, partial(of_respondents, world, False, False)
            )
            if size < 5:
                yield Cell(f"Bradley-Terry: these {who}", what, partial(of_respondents, world, True, True))
            else:
                yield Cell(f"Bradley-Terry: other {who}", what, partial(of_respondents, world, True, False))
    for size in (5, 8, 20):
        for world, what in (
            (Crowd(size, votes=100, taste=0.4, sharp=0.4), f"{size} people, 100 votes each on 40 instructions"),
            (Crowd(size, instructions=25, taste=0.3, sharp=0.4), f"{size} judges of all pairs on 25 instructions"),
        ):
            who = "judges" if "judges" in what else "people"
            yield Cell(f"am-ELO, by instruction alone: other {who}", what, partial(of_am_elo, world, False))
            yield Cell(f"am-ELO: other {who}", what, partial(of_am_elo, world, True))
    for size in (5, 8, 20):
        for questions in (15, 40, 150):
            for lenient, kind in ((0.0, "alike"), (0.5, "lenient or strict")):
                graders = Graders(size, questions, lenient=lenient)
                what = f"{size} judges, {kind}, {questions} questions"
                name = "accuracy, by instruction alone: other judges"
                yield Cell(name, what, partial(of_graders, graders, False))
                yield Cell("accuracy: other judges", what, partial(of_graders, graders, True))


def main() -> None:
    """Run the cells and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--only", default="", help="cells whose interval or world contains this")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    begun = time.perf_counter()
    sys.stdout.write("| interval | world | replicates | coverage | its interval |\n|---|---|---|---|---|\n")
    for number, cell in enumerate((*cells(), *crowd_cells())):
        if told.only not in f"{cell.interval} {cell.world}":
            continue
        rng = np.random.default_rng([told.seed, number])
        held = [one for one in (cell.draw(rng) for _ in range(told.replicates)) if one is not None]
        if not held:  # of few replicates none may be of the cell's kind
            continue
        share = float(np.mean(held))
        lo, hi = wilson(share, len(held))
        sys.stdout.write(f"| {cell.interval} | {cell.world} | {len(held)} | {share:.3f} | {lo:.3f} to {hi:.3f} |\n")
        sys.stdout.flush()
    sys.stdout.write(f"\n{time.perf_counter() - begun:.0f} s, seed {told.seed}\n")


if __name__ == "__main__":
    main()
