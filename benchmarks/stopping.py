"""Coverage of intervals at the time of stopping, and at any of many looks: whole campaigns, simulated by formula.

    python benchmarks/stopping.py --policy balanced --models 20 --battles 20 --looks 150 --campaigns 500

A campaign is planned in rounds by a policy of the product, judged by the formula of `simulation/profiles.json` and
analysed after each round as a real campaign is. True ratings are those that the same judge would give with infinitely
many verdicts on every pair and on instructions of the same kind, with equal weights of pairs. They are not the Elo of
the field, since a judge has its own response to a gap. One run prints the results of each rule, with intervals
clustered by campaign."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from venire.arena.battles import Battles
from venire.arena.campaigns import PhaseSettings, StopSettings
from venire.arena.planning import InterimAnalysis, PlanState
from venire.arena.scale import LOGITS_PER_POINT
from venire.feedback import RatingFeedback
from venire.orchestrator.policies import POLICIES
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.simulation.judge import Profile, load_profiles, simulate

FIELD = (815.2, 841.6, 864.1, 898.1, 907.5, 922.2, 926.3, 942.8, 953.0, 960.0, 1007.3, 1015.5, 1046.0, 1052.4, 1071.0,
         1087.4, 1123.2, 1159.5, 1178.4, 1228.6)  # fmt: skip
"""The field of the simulated figures in `profiles.json`, Elo points by people's votes."""

LENGTH_SD = 0.347
"""Standard deviation of a reply's log length about that of its instruction, as in the same figures."""

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """One kind of campaign."""

    policy: str
    purpose: str
    models: int
    instructions: int
    battles: int
    looks: int
    profile: str
    half_width: float
    top: int
    indifference: float
    plain: bool = False

    @property
    def even(self) -> bool:
        """Whether analyses weight all pairs equally, as in a campaign with this policy."""
        return POLICIES[self.policy].adaptive and not self.plain

    @property
    def elo(self) -> Vector:
        """Evenly spaced models of the field, including both ends."""
        places = np.linspace(0, len(FIELD) - 1, self.models).round().astype(int)
        return np.array(FIELD)[places]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"m{code:02}" for code in range(self.models))


def drawn(profile: Profile, rng: np.random.Generator, gap: Vector, ell: Vector) -> NDArray[np.int8]:
    """Labels for A (battles, 2), A shown first and then B, of battles with these gaps in Elo points; 9 is unreadable.

    The formula of `simulation.judge.simulate`, vectorised, for battles that are judged once each.
    """
    size = len(gap)
    mean = profile.slope * gap * LOGITS_PER_POINT + profile.length * np.clip(ell, -2.0, 2.0)
    taste = profile.sigma_item * rng.standard_normal(size)
    pull = profile.position + profile.sigma_position * rng.standard_normal(size)
    tied = rng.random(size) < profile.item_tie
    label = np.empty((size, 2), dtype=np.int8)
    for column, side in enumerate((1.0, -1.0)):
        order = profile.sigma_order * rng.standard_normal(size)
        z = side * (mean + taste + order) + pull + profile.temperature * rng.logistic(size=size)
        first = np.where(tied | (np.abs(z) <= profile.tie_band), 0, np.sign(z))
        label[:, column] = np.where(rng.random(size) < profile.invalid, 9, side * first)
    return label


def expected(profile: Profile, gap: float) -> float:
    """Mean outcome for A over both orders and all instructions: the integrated formula, to about 1e-6."""
    spread = math.sqrt(
        profile.sigma_item**2 + profile.sigma_order**2 + profile.sigma_position**2
        + 2.0 * (profile.length * LENGTH_SD) ** 2
    )  # fmt: skip
    nodes = np.linspace(-8.0, 8.0, 8001)
    share = np.exp(-0.5 * nodes**2)
    noise, share = spread * nodes, share / share.sum()
    total = 0.0
    for side in (1.0, -1.0):
        z = side * profile.slope * gap * LOGITS_PER_POINT + profile.position + noise
        above = 1.0 / (1.0 + np.exp(-np.clip((z - profile.tie_band) / profile.temperature, -700, 700)))
        below = 1.0 / (1.0 + np.exp(np.clip((z + profile.tie_band) / profile.temperature, -700, 700)))
        y = 0.5 + 0.5 * side * float(share @ (above - below))
        total += 0.5 * (profile.item_tie * 0.5 + (1.0 - profile.item_tie) * y)
    return total


def truth(plan: Plan) -> Vector:
    """Ratings (models,) in Elo points, mean 1000, from infinitely many verdicts, with equal weights of pairs."""
    elo, profile = plan.elo, load_profiles()[plan.profile]
    wins = np.zeros((len(elo), len(elo)))
    for a, b in combinations(range(len(elo)), 2):
        wins[a, b] = expected(profile, elo[a] - elo[b])
        wins[b, a] = 1.0 - wins[a, b]
    return bradley_terry_wins(wins, plan.names).elo


class Arena:
    """A campaign with its verdicts so far."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan = plan
        self.rng = np.random.default_rng((seed, 7))
        self.chooser = np.random.default_rng((seed, 8))
        self.instructions = tuple(f"i{code:04}" for code in range(plan.instructions))
        self.lengths = LENGTH_SD * self.rng.standard_normal((plan.models, plan.instructions))
        self.asked = np.zeros((0, 3), dtype=np.int32)
        self.label = np.zeros((0, 2), dtype=np.int8)

    def judge(self, picks: NDArray[np.int32]) -> None:
        elo, profile = self.plan.elo, load_profiles()[self.plan.profile]
        a, b, on = picks.T
        ell = self.lengths[a, on] - self.lengths[b, on]
        self.label = np.concatenate([self.label, drawn(profile, self.rng, elo[a] - elo[b], ell)])
        self.asked = np.concatenate([self.asked, picks])

    def battles(self) -> Battles:
        size = len(self.asked)
        a, b, on = np.repeat(self.asked, 2, axis=0).T
        label = self.label.ravel()
        return Battles(
            models=self.plan.names,
            judges=("judge",),
            instructions=self.instructions,
            model_a=a,
            model_b=b,
            judge=np.zeros(2 * size, dtype=np.int32),
            instruction=on,
            repeat=np.ones(2 * size, dtype=np.int32),
            swapped=np.tile([False, True], size),
            status=np.where(label == 9, 1, 0).astype(np.int8),
            label=np.where(label == 9, 0, label).astype(np.int8),
        )

    def next_round(self, steerer: RatingFeedback) -> NDArray[np.int32]:
        plan, policy = self.plan, POLICIES[self.plan.policy]
        known: dict[str, Any] = {}
        if policy.adaptive and len(self.asked):
            found = steerer.estimate(self.battles())
            known = {"logits": found.logits, "se": found.se, "judges": tuple(found.judges.values())}
        state = PlanState(plan.names, {}, self.instructions, asked=self.asked, **known)
        phase = PhaseSettings(
            policy=plan.policy,
            purpose=plan.purpose,
            top=plan.top,
            battles=plan.battles * plan.looks,
            round=plan.battles,
        )
        picks = policy.choose(state, phase, plan.battles, self.chooser)
        name, on = ({one: code for code, one in enumerate(names)} for names in (plan.names, self.instructions))
        return np.array([(name[p.model_a], name[p.model_b], on[p.instruction or ""]) for p in picks], dtype=np.int32)


def figures(analysis: InterimAnalysis, true: Vector) -> dict[str, Any]:
    """Intervals that miss at one look, for each model with a rating; both kinds, and 1.96 plain clustered errors."""
    rows = [(code, one) for code, one in enumerate(analysis.models) if one.low is not None]
    code = np.array([number for number, _ in rows], dtype=np.intp)
    at = true[code] - true[code].sum() / max(1, len(code)) + 1000.0
    elo, se, low, high, low_any, high_any = (
        np.array([getattr(one, column) for _, one in rows], dtype=np.float64)
        for column in ("elo", "se", "low", "high", "low_any", "high_any")
    )
    return {
        "rated": code,
        "fixed": (at < low) | (at > high),
        "any": (at < low_any) | (at > high_any),
        "plain": np.abs(elo - at) > 1.96 * se,
        "error": elo - at,
        "half": 0.5 * (high - low),
    }


def wrong(analysis: InterimAnalysis, true: Vector, rule: str, plan: Plan) -> bool:
    """Whether the conclusion of a rule is wrong."""
    elo = np.array([one.elo if one.elo is not None else np.nan for one in analysis.models])
    if np.isnan(elo).any():  # a model that won or lost everything has the position of its results
        elo = np.where(np.isnan(elo), np.where(true < true.mean(), -np.inf, np.inf), elo)
    order = np.argsort(-elo, kind="stable")
    first = plan.top if rule == "top" else len(order)
    worse = [(i, j) for n, i in enumerate(order) for j in order[n + 1 :] if n < first]
    if rule == "top":
        worse = [(i, j) for i in order[:first] for j in order[first:]]
    return any(true[j] - true[i] > plan.indifference for i, j in worse)


def campaign(plan: Plan, seed: int) -> dict[str, Any]:
    """One campaign to its last look: the look at which each rule would stop it, and the truth at that look."""
    true, arena = truth(plan), Arena(plan, seed)
    rules: dict[str, dict[str, Any]] = {
        "half_width": {"half_width": plan.half_width},
        "top": {"top": plan.top},
        "ranks": {"ranks": True},
    }
    missed = {kind: np.zeros(plan.models, dtype=bool) for kind in ("fixed", "any", "plain")}
    told: dict[str, Any] = {}
    analysis, found = None, {}
    for _ in range(plan.looks):
        steerer = RatingFeedback(plan.names, StopSettings())
        arena.judge(arena.next_round(steerer))
        table = arena.battles()
        while True:
            asked = {key: value for rule in rules.values() for key, value in rule.items()}
            stop = StopSettings(**asked, indifference=plan.indifference)
            analysis = RatingFeedback(plan.names, stop, even=plan.even).analyse(table, 0)
            if analysis.stop is None:
                break
            rule = "half_width" if "interval" in analysis.stop else "top" if "best" in analysis.stop else "ranks"
            held = figures(analysis, true)
            told[rule] = outcome(held, plan, analysis)
            if rule != "half_width":
                told[rule]["wrong"] = wrong(analysis, true, rule, plan)
            del rules[rule]
        found = figures(analysis, true)
        for kind, ever in missed.items():
            ever[found["rated"]] |= found[kind]
    told["number"] = outcome(found, plan, analysis)
    told["ever"] = {kind: float(ever.mean()) for kind, ever in missed.items()}
    return told


def outcome(found: dict[str, Any], plan: Plan, analysis: InterimAnalysis) -> dict[str, Any]:
    rated = len(found["rated"])
    return {
        "battles": analysis.battles,
        "rated": rated,
        "fixed": 1.0 - float(np.mean(found["fixed"])) if rated else None,
        "any": 1.0 - float(np.mean(found["any"])) if rated else None,
        "plain": 1.0 - float(np.mean(found["plain"])) if rated else None,
        "half": float(np.mean(found["half"])) if rated else None,
        "error": float(np.sqrt(np.mean(found["error"] ** 2))) if rated else None,
        "bias": float(found["error"][-1]) if rated == plan.models else None,
    }


def interval(shares: Vector, level: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson bounds of a mean of shares (campaigns,), with the effective number of independent trials.

    Models of one campaign are not independent, so campaigns are counted instead of models.
    """
    mean, number = float(shares.mean()), float(len(shares))
    scatter = float(shares.var(ddof=1)) / number if number > 1 else 0.0
    if scatter > 0.0:
        number = mean * (1.0 - mean) / scatter
    hits = mean * number
    tail = 0.5 * (1.0 - level)
    low = float(beta.ppf(tail, hits, number - hits + 1.0)) if hits > 0 else 0.0
    high = float(beta.ppf(1.0 - tail, hits + 1.0, number - hits)) if hits < number else 1.0
    return low, high


def shown(shares: list[float]) -> str:
    low, high = interval(np.array(shares))
    return f"{np.mean(shares):.3f} ({low:.3f}-{high:.3f})"


def report(plan: Plan, told: list[dict[str, Any]]) -> list[str]:
    heads = ("fixed-time covers", "any-time covers", "1.96 se covers")
    lines = [f"{'rule':<12} {'stopped':>9} {'battles: median (5-95 %)':>26} " + " ".join(f"{one:>22}" for one in heads)]
    lines[0] += f" {'half':>6} {'rmse':>6}  wrong"
    for rule in ("number", "half_width", "top", "ranks"):
        rows = [one[rule] for one in told if rule in one and one[rule]["rated"]]
        if not rows:
            lines.append(f"{rule:<12} {0:>5}/{len(told)}")
            continue
        battles = np.percentile([one["battles"] for one in rows], [50, 5, 95])
        cells = [shown([one[kind] for one in rows]) for kind in ("fixed", "any", "plain")]
        half, error = (float(np.mean([one[key] for one in rows])) for key in ("half", "error"))
        bad = shown([float(one["wrong"]) for one in rows]) if "wrong" in rows[0] else ""
        lines.append(
            f"{rule:<12} {len(rows):>5}/{len(told)} {f'{battles[0]:,.0f} ({battles[1]:,.0f}-{battles[2]:,.0f})':>26} "
            f"{cells[0]:>22} {cells[1]:>22} {cells[2]:>22} {half:>6.1f} {error:>6.1f}  {bad}"
        )
    for kind, name in (("any", "any-time"), ("fixed", "fixed-time"), ("plain", "1.96 se")):
        lines.append(f"missed at any of {plan.looks} looks, {name}: {shown([one['ever'][kind] for one in told])}")
    return lines


def check_formula(profile: Profile) -> None:
    """Check that drawn verdicts match `simulate`: shares of each over battles of one gap, within four errors."""
    rng, size = np.random.default_rng(0), 4000
    mine = drawn(profile, rng, np.full(size, 60.0), np.zeros(size))[:, 1]
    theirs = [
        simulate(profile, 3, instruction_id=code, first="b", second="a", gap=-60.0, chars_first=900, chars_second=900)
        for code in range(size)
    ]
    label = np.array([{"second": 1, "tie": 0, "first": -1, None: 9}[one.verdict] for one in theirs])
    for value in (1, 0, -1, 9):
        one, other = float(np.mean(mine == value)), float(np.mean(label == value))
        if abs(one - other) > 4.0 * math.sqrt(max(one, other, 1e-4) / size * 2):
            raise SystemExit(f"the drawn verdicts are not those of the formula: {value}: {one} and {other}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="balanced")
    parser.add_argument("--purpose", default="mean")
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--instructions", type=int, default=300)
    parser.add_argument("--battles", type=int, default=20, help="of a round")
    parser.add_argument("--looks", type=int, default=150)
    parser.add_argument("--profile", default="gpt-4-0613")
    parser.add_argument("--half-width", type=float, default=60.0)
    parser.add_argument("--top", type=int, default=3)
    parser.add_argument("--indifference", type=float, default=15.0)
    parser.add_argument("--plain", action="store_true", help="look by Bradley-Terry whatever the policy")
    parser.add_argument("--campaigns", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", help="write the figures of every campaign to this file, a line each")
    given = vars(parser.parse_args())
    campaigns, first, processes, path = (given.pop(key) for key in ("campaigns", "seed", "processes", "json"))
    plan = Plan(**given)
    check_formula(load_profiles()[plan.profile])
    time.monotonic()
    started = time.monotonic()
    told: list[dict[str, Any]] = []
    with ProcessPoolExecutor(processes) as pool, open(path or os.devnull, "w", encoding="utf-8") as file:
        for one in pool.map(campaign, [plan] * campaigns, range(first, first + campaigns)):
            told.append(one)
            file.write(json.dumps(one) + "\n")
            file.flush()
    took = time.monotonic() - started
    sys.stdout.write(f"verdicts: simulated; {plan}; seeds {first} to {first + campaigns - 1}; {took:.0f} s\n")
    sys.stdout.write("\n".join(report(plan, told)) + "\n")


if __name__ == "__main__":
    main()
