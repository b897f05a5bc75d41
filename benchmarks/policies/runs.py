"""One campaign of a policy in rounds, and the precision of the ratings from its battles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from world import ELO, MODELS, Truth, Vector, World

from venire.arena.campaigns import PhaseSettings, StopSettings
from venire.arena.planning import PlanState
from venire.arena.scale import POINTS_PER_LOGIT
from venire.feedback import RatingFeedback
from venire.orchestrator.policies import POLICIES
from venire.ratings.design.optimal_design import OptimalDesign, optimal_design
from venire.ratings.design.stopping import evidence
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.simulation.judge import load_profiles

_TEXTS = 400
_WEAK = 0.01
"""Ridge of the final fit: enough for a finite rating of a model that lost everything."""


@dataclass(frozen=True, slots=True)
class Task:
    """The purpose of a campaign, its number of battles, and the number planned per round."""

    purpose: str
    battles: int
    round: int
    place: int | None = None

    def phase(self, policy: str) -> PhaseSettings:
        """The settings as in the campaign file."""
        place = None if self.place is None else MODELS[self.place]
        return PhaseSettings(policy, matchups=30, purpose=self.purpose, place=place)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Seen:
    """The share of these battles that the optimal design needs, and the squared error of the target, in Elo."""

    efficiency: float
    error: float


def limit(truth: Truth, task: Task) -> OptimalDesign:
    """The optimal design at the true ratings."""
    return optimal_design(truth.logits, judges=(truth.habit,), purpose=task.purpose, place=task.place)  # type: ignore[arg-type]


def run(profile: str, seed: int, policy: str, task: Task, truth: Truth, best: OptimalDesign) -> Seen:
    """Have a simulated judge answer the battles that a policy chooses, round by round."""
    world = World(load_profiles()[profile], seed, _TEXTS)
    rng = np.random.default_rng((seed, 2))
    if POLICIES[policy].crossed:
        _cross(world, policy, task, rng)
    else:
        learn = _placing(world, truth, task.place) if task.place is not None else _rating(world)
        while len(world.asked) < task.battles:
            number = min(task.round, task.battles - len(world.asked))
            picks = POLICIES[policy].choose(learn(), task.phase(policy), number, rng)
            world.ask(picks)
    off = _error(world, truth, task, best)
    return Seen(best.efficiency(world.counts()), off / truth.slope**2 * POINTS_PER_LOGIT**2)


def _cross(world: World, policy: str, task: Task, rng: np.random.Generator) -> None:
    """Matchups by people's ratings, each on the same instructions."""
    state = replace(world.state(), elo=dict(zip(MODELS, ELO, strict=True)))
    picks = POLICIES[policy].choose(state, task.phase(policy), 30, rng)
    for text in world.instructions[: task.battles // len(picks)]:
        world.ask([replace(one, instruction=text) for one in picks])


def _rating(world: World) -> Callable[[], PlanState]:
    """The ratings of all models from the verdicts so far."""
    steerer = RatingFeedback(MODELS, StopSettings())

    def learn() -> PlanState:
        if not world.asked:
            return world.state()
        found = steerer.estimate(world.battles())
        judges = tuple(found.judges.values())
        return world.state(logits=found.logits, se=found.se, judges=judges)

    return learn


def _placing(world: World, truth: Truth, place: int) -> Callable[[], PlanState]:
    """The rating of one model from the verdicts so far, with the others known."""

    def learn() -> PlanState:
        logits = truth.logits.copy()
        logits[place] = _placed(world, truth, place)[0] if world.asked else np.nan
        held = frozenset(name for n, name in enumerate(MODELS) if n != place)
        return world.state(logits=logits, se=np.zeros(len(MODELS)), judges=(truth.habit,), held=held)

    return learn


def _placed(world: World, truth: Truth, place: int) -> tuple[float, float]:
    """A model's rating against known others under a prior of one logit, and its error."""
    told = world.battles()
    read = told.status == 0
    first = told.model_a[read] == place
    other = truth.logits[np.where(first, told.model_b[read], told.model_a[read])]
    won = np.where(first, 0.5 + 0.5 * told.label[read], 0.5 - 0.5 * told.label[read])
    found, curve = 0.0, 1.0
    for _ in range(100):
        chance = 1.0 / (1.0 + np.exp(other - found))
        curve = 1.0 + float((chance * (1.0 - chance)).sum())
        # Far from the maximum Newton's step overshoots.
        found += float(np.clip((float((won - chance).sum()) - found) / curve, -1.0, 1.0))
    return found, curve**-0.5


def _error(world: World, truth: Truth, task: Task, best: OptimalDesign) -> float:
    """e' L e of the estimated ratings, in the judge's own log odds.

    No judge follows the logistic curve exactly, so close and distant pairs imply different slopes: where all ratings
    are the target, they are rescaled by one factor to the slope of the truth.
    """
    off: Vector | NDArray[np.float64] = np.zeros(len(MODELS))
    if task.place is not None:
        off[task.place] = _placed(world, truth, task.place)[0] - truth.logits[task.place]
    else:
        data = evidence(world.battles(), MODELS).data
        found = bradley_terry(data, ridge=_WEAK, errors="none").logits
        found = found - found.mean()
        stretch = found @ truth.logits / (truth.logits @ truth.logits) if task.purpose == "mean" else 1.0
        off = found / stretch - truth.logits
    return float(off @ best.aim @ off)
