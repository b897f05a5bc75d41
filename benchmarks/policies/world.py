"""A field of models with known ratings, and one simulated judge, without store and server."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.planning import JudgeHabit, Pick, PlanState
from venire.arena.scale import LOGITS_PER_POINT
from venire.ratings.judges.habits import planning_habits
from venire.simulation.judge import Profile, load_profiles, simulate

ELO = (815.2, 841.6, 864.1, 898.1, 907.5, 922.2, 926.3, 942.8, 953.0, 960.0)
ELO += (1007.3, 1015.5, 1046.0, 1052.4, 1071.0, 1087.4, 1123.2, 1159.5, 1178.4, 1228.6)
"""Twenty recorded systems by people's votes; the field that the profiles were checked on."""

_LOGITS = np.array(ELO) * LOGITS_PER_POINT
MODELS = tuple(f"m{n:02}" for n in range(len(ELO)))
_ORDERS = (False, True)

Vector = NDArray[np.float64]
_Told = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Truth:
    """A judge's parameters from many verdicts: ratings (models,) in its own log odds, centred, and its habits.

    `slope` is its log odds per logit of human ratings.
    """

    logits: Vector
    slope: float
    habit: JudgeHabit


@dataclass
class World:
    """The field on a number of instructions with one judge; `seed` draws texts and verdicts."""

    profile: Profile
    seed: int
    texts: int
    _told: dict[tuple[int, int, int], _Told] = field(default_factory=dict)
    asked: list[tuple[int, int, int]] = field(default_factory=list)

    @cached_property
    def instructions(self) -> tuple[str, ...]:
        return tuple(f"i{n:04}" for n in range(self.texts))

    @cached_property
    def _characters(self) -> NDArray[np.int64]:
        rng = np.random.default_rng((self.seed, 1))
        common = rng.normal(7.0, 0.6, self.texts)
        return np.exp(common + 0.347 * rng.normal(size=(len(ELO), self.texts))).round().astype(np.int64)

    def ask(self, picks: list[Pick]) -> None:
        """Have battles judged in both orders."""
        self.asked += [
            (MODELS.index(one.model_a), MODELS.index(one.model_b), self.instructions.index(str(one.instruction)))
            for one in picks
        ]

    def battles(self) -> Battles:
        """The verdicts so far, two rows per battle."""
        rows = np.array(self.asked, dtype=np.int32).reshape(-1, 3)
        told = [self._verdict(*row, swapped=swapped) for swapped in _ORDERS for row in self.asked]
        twice = np.tile(rows, (2, 1))
        return Battles(
            models=MODELS,
            judges=(self.profile.name,),
            instructions=self.instructions,
            model_a=twice[:, 0],
            model_b=twice[:, 1],
            judge=np.zeros(len(twice), dtype=np.int32),
            instruction=twice[:, 2],
            repeat=np.zeros(len(twice), dtype=np.int32),
            swapped=np.repeat(_ORDERS, len(rows)),
            status=np.array([label is None for label in told], dtype=np.int8),
            label=np.array([label or 0 for label in told], dtype=np.int8),
        )

    def state(self, **known: object) -> PlanState:
        """The information available to a policy."""
        rows = np.array(self.asked, dtype=np.int32).reshape(-1, 3)
        return PlanState(MODELS, {}, self.instructions, asked=rows, **known)  # type: ignore[arg-type]  # its fields

    def counts(self) -> NDArray[np.int64]:
        """The number of battles of each pair (models, models)."""
        found = np.zeros((len(MODELS), len(MODELS)), dtype=np.int64)
        for a, b, _ in self.asked:
            found[a, b] += 1
        return found

    def _verdict(self, a: int, b: int, text: int, *, swapped: bool) -> int | None:
        found = self._told.get((a, b, text))
        if found is None:
            found = self._told[a, b, text] = (self._says(a, b, text, 1), self._says(b, a, text, -1))
        return found[swapped]

    def _says(self, first: int, second: int, text: int, sign: int) -> int | None:
        said = simulate(
            self.profile,
            self.seed,
            instruction_id=self.instructions[text],
            first=MODELS[first],
            second=MODELS[second],
            gap=ELO[first] - ELO[second],
            chars_first=int(self._characters[first, text]),
            chars_second=int(self._characters[second, text]),
        ).verdict
        return None if said is None else sign * {"first": 1, "second": -1, "tie": 0}[said]


def truth(profile: str, battles: int = 8000) -> Truth:
    """The judge's habits from battles of evenly drawn pairs, with human ratings times its slope."""
    world = World(load_profiles()[profile], 999_983, battles)
    rng = np.random.default_rng(5)
    world.asked = [(*sorted(rng.choice(len(ELO), 2, replace=False).tolist()), n) for n in range(battles)]
    told = world.battles()
    read = told.status == 0
    gap = (_LOGITS[told.model_a] - _LOGITS[told.model_b])[read]
    slope = _slope(gap, np.where(told.swapped, -1.0, 1.0)[read], 0.5 + 0.5 * told.label[read])
    logits = slope * (_LOGITS - _LOGITS.mean())
    return Truth(logits, slope, planning_habits(told, MODELS, logits)[profile])


def _slope(gap: Vector, side: Vector, won: Vector) -> float:
    """theta of P(A) = sigma(side * b + theta * gap), by Newton's steps."""
    rows, found = np.stack([side, gap], axis=1), np.zeros(2)
    for _ in range(50):
        chance = 1.0 / (1.0 + np.exp(-rows @ found))
        step = np.linalg.solve(rows.T @ (rows * (chance * (1.0 - chance))[:, None]), rows.T @ (won - chance))
        found += step
    return float(found[1])
