"""The battles that a plan has still to choose, as its policies would choose them by what is believed now.

A policy that wants to see verdicts between two rounds is asked for the rest at once, as if these told nothing new: each
pick accounts for those before it, so that the pairs and instructions are much what the rounds will come to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.campaigns import PhaseSettings
from venire.arena.errors import InputError
from venire.arena.planning import Estimates, Pick
from venire.arena.records import RECORDED
from venire.orchestrator.planning.plan_state import Field, state_of
from venire.orchestrator.policies import POLICIES
from venire.session import Session
from venire.storage.plans import plans
from venire.storage.read import frames

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Ahead", "ahead"]

_AT_MOST = 1_000
"""Battles of a phase that are really chosen; where there are more, each stands for several."""


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """Battles (battles, 3) that are still to be chosen: two models' names by `models`, and the instruction's number.

    `weight` (battles,) is how many each stands for. `until` says what their number was taken from; None: there are
    none, and `open` says whether that is because nobody knows how many there will be.
    """

    battles: NDArray[np.int32]
    weight: NDArray[np.float64]
    until: str | None = None
    open: bool = False


def ahead(session: Session, estimates: Estimates | None, affordable: float | None) -> Ahead:
    """What a session's plan has still to choose; `affordable` battles more are what its budget covers, None: no end.

    `estimates` are what verdicts say so far, None without any.
    """
    rounds = session.rounds
    ended = rounds is not None and rounds.stopped is not None and not rounds.short
    if ended or not session.campaign.in_rounds:
        return Ahead(_none(), np.zeros(0))
    planned = session.planned
    models, names = planned.design.models, planned.design.instructions
    answers = plans.catalogue(session.store, models)
    field = Field(session.store, session.campaign, models, names, answers, {}, session.prices)
    asked, many = field.asked(one.design for one in planned.rounds), sum(one.design.size for one in planned.rounds)
    found: list[NDArray[np.int32]] = []
    weights: list[NDArray[np.float64]] = []
    until, is_open = None, False
    elo = frames.elos(session.store)
    for phase in session.campaign.plan.phases:
        done = sum(one.design.size for one in planned.rounds if one.phase == phase.name)
        number, reason = _number(session, phase, done, many, affordable)
        if number is None:
            is_open = True
            break
        if number <= 0:
            continue
        there = len(models) * (len(models) - 1) // 2 * len(names) - len(field.barred) - len(asked)
        number = min(number, there)
        chosen = _chosen(session, field, phase, min(number, _AT_MOST), elo, asked, estimates)
        if not len(chosen):
            continue
        number = number if len(chosen) == _AT_MOST else len(chosen)
        found.append(chosen)
        weights.append(np.full(len(chosen), number / len(chosen)))
        asked, many, until = np.concatenate([asked, chosen]), many + number, reason
    if not found:
        return Ahead(_none(), np.zeros(0), None, is_open)
    battles = np.concatenate(found)
    numbers = np.array([answers.instructions[name][0] for name in names], dtype=np.int32)
    battles[:, 2] = numbers[battles[:, 2]]
    return Ahead(battles, np.concatenate(weights), until, is_open)


def _none() -> NDArray[np.int32]:
    return np.zeros((0, 3), dtype=np.int32)


def _number(
    session: Session, phase: PhaseSettings, done: int, many: int, affordable: float | None
) -> tuple[int | None, str]:
    """Battles that a phase has left to choose, and what says so; None where nobody knows."""
    if phase.policy == RECORDED or (phase.crosses and done):
        return 0, ""
    if phase.crosses:
        return _AT_MOST, "the plan"
    rule = session.campaign.plan.stop.battles
    ends = [
        (None if phase.battles is None else phase.battles - done, "the plan"),
        (None if rule is None else rule - many, "[plan.stop] battles"),
        (None if affordable is None else int(affordable), "the budget") if phase.battles is None else (None, ""),
    ]
    known = [(number, why) for number, why in ends if number is not None]
    return min(known) if known else (None, "")


def _chosen(
    session: Session,
    field: Field,
    phase: PhaseSettings,
    number: int,
    elo: Mapping[str, float],
    asked: NDArray[np.int32],
    estimates: Estimates | None,
) -> NDArray[np.int32]:
    """Battles (battles, 3) of a phase by places in the field; none where its policy cannot choose yet."""
    policy, rng = POLICIES[phase.policy], np.random.default_rng([session.campaign.seed, len(asked)])
    state = state_of(field, elo=elo, asked=asked, estimates=estimates if policy.adaptive else None)
    wanted = (phase.matchups or len(field.models) ** 2) if policy.crossed else number
    try:
        picks = policy.choose(state, phase, wanted, rng)
    except InputError:  # ratings that only the verdicts of an earlier phase will give
        return _none()
    models, instructions = field.places
    rows = [
        (models[one.model_a], models[one.model_b], place)
        for one in picks
        for place in (_on(one, instructions, len(field.instructions)))
    ]
    return np.array(rows, dtype=np.int32).reshape(-1, 3)


def _on(pick: Pick, instructions: Mapping[str, int], number: int) -> range | tuple[int]:
    return range(number) if pick.instruction is None else (instructions[pick.instruction],)
