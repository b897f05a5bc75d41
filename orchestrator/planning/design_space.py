"""What policies may know: which battles there are, which were asked, what they cost and what verdicts say by now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.planning import Estimates, JudgeHabit, Pick, PlanState
from venire.orchestrator.costs.call_cost import CHARACTERS_A_TOKEN, BattleCost, battle_costs
from venire.orchestrator.costs.coverage import ChargedBattles, Funds, affordable
from venire.orchestrator.designs import RoundDesign
from venire.orchestrator.planning.inputs import PlanInputs
from venire.orchestrator.planning.oversized import TextLengths

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class DesignSpace:
    """The models and instructions of a plan, with all battles that there may be: what rounds are chosen from."""

    inputs: PlanInputs
    models: tuple[str, ...]
    instructions: tuple[str, ...]

    @cached_property
    def lengths(self) -> TextLengths:
        """Characters of all texts."""
        return self.inputs.lengths.of(self.inputs.answers, self.models, self.instructions)

    @cached_property
    def codes(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """The codes of models and of instructions."""
        return ({name: n for n, name in enumerate(self.models)}, {name: n for n, name in enumerate(self.instructions)})

    def battles(self, picks: Iterable[Pick]) -> NDArray[np.int32]:
        """Battles (battles, 3) that a policy chose; of a matchup without an instruction those on all of them."""
        models, instructions = self.codes
        everywhere = range(len(self.instructions))
        return _battles(
            (models[pick.model_a], models[pick.model_b], instruction)
            for pick in picks
            for instruction in (everywhere if pick.instruction is None else (instructions[pick.instruction],))
        )

    @cached_property
    def barred(self) -> NDArray[np.int32]:
        """Battles (battles, 3) whose two texts are equal."""
        rows: list[tuple[int, int, int]] = []
        for instruction, name in enumerate(self.instructions):
            same: dict[int, list[int]] = {}
            for code, model in enumerate(self.models):
                same.setdefault(self.inputs.answers.completions[model, name].text, []).append(code)
            rows += [(a, b, instruction) for codes in same.values() for a, b in combinations(codes, 2)]
        return _battles(rows)

    @cached_property
    def only(self) -> NDArray[np.int32] | None:
        """Battles (battles, 3) on record, where nobody is asked about pairs; else None."""
        judges, recordings = self.inputs.campaign.pair_judges, self.inputs.recordings
        if any(name not in recordings for name in judges):
            return None
        models, instructions = self.codes
        rows = {
            (*sorted(models[model] for model in shown), instructions[name])
            for judge in judges
            for name, texts in recordings[judge].texts.items()
            if name in instructions
            for shown, _ in texts
            if set(shown) <= models.keys()
        }
        return _battles(sorted(rows))

    def asked(self, designs: Iterable[RoundDesign], judges: Collection[str] = ()) -> NDArray[np.int32]:
        """Battles (battles, 3) of some rounds, each once, in the order planned; with `judges`, theirs alone."""
        models, instructions = self.codes
        barred = set(map(tuple, self.barred.tolist()))
        rows: dict[tuple[int, int, int], None] = {}
        for design in designs:
            if judges and design.judges and not set(judges) & set(design.judges):
                continue
            for name, matchups in zip(design.instructions, design.matchups_on(), strict=True):
                for matchup in matchups:
                    rows[models[matchup.model_a], models[matchup.model_b], instructions[name]] = None
        return _battles(row for row in rows if row not in barred)

    def characters(self, cost: BattleCost, battles: NDArray[np.int32]) -> NDArray[np.float64]:
        """How much text each of some battles (battles, 3) shows a judge; if it cuts, what fits its context."""
        asked_text = self.lengths.referenced if cost.call.needs_reference else self.lengths.instructions
        shown = self.lengths.completions
        a, b, instruction = battles.T
        characters = np.asarray(asked_text[instruction] + shown[a, instruction] + shown[b, instruction])
        context = cost.call.judge.context
        fits = np.inf if context is None or not cost.call.cuts else context * CHARACTERS_A_TOKEN
        return np.asarray(np.minimum(characters, fits))

    def left(self, cost: BattleCost, battles: NDArray[np.int32]) -> NDArray[np.float64]:
        """The share (battles,) of the trials of some battles (battles, 3) that a judge has not settled yet."""
        a, b, instruction = battles.T
        if (pairs := self.inputs.settled.get(cost.judge)) is None:
            return np.ones(len(battles))
        settled = pairs.of(self._numbers[a, instruction], self._numbers[b, instruction])
        return np.asarray(1.0 - np.minimum(1.0, settled / cost.trials))

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """The number (models, instructions) of each completion."""
        answers = self.inputs.answers.completions
        return np.array([[answers[model, name].number for name in self.instructions] for model in self.models])


def payable_battles(
    space: DesignSpace, picks: Sequence[Pick], judges: Collection[str], funds: Funds
) -> tuple[int, str]:
    """How many of the first battles chosen some judges can be paid for, and whose budget covers no more ("": all)."""
    battles = space.battles(picks)
    if not any(funds.budgets[name].is_limited for name in judges):
        return len(picks), ""
    count, whose = affordable(
        ChargedBattles(cost, funds.budgets[cost.judge], space.characters(cost, battles), space.left(cost, battles))
        for cost in battle_costs(space.inputs.campaign, funds.calls.values())
        if cost.judge in judges
    )
    return (len(picks) if count is None else count), whose


def policy_state(
    space: DesignSpace,
    *,
    elo: Mapping[str, float],
    models: Sequence[str] | None = None,
    asked: NDArray[np.int32] | None = None,
    estimates: Estimates | None = None,
    judges: Collection[str] = (),
) -> PlanState:
    """What a policy may know of a plan now.

    `elo` are ratings in Elo points, `asked` (battles, 3) what was asked already, `estimates` what verdicts say (None:
    nobody asked them), `judges` who will be asked (none named: all). `models` are left alone where only some are to be
    matched: then codes are of these.
    """
    kept = np.arange(len(space.models)) if models is None else np.array([space.codes[0][name] for name in models])
    who = tuple(judges) or space.inputs.campaign.pair_judges
    habits = estimates.judges if estimates is not None else {}
    logits, se = _ratings(space.models, estimates)
    fixed, shown = _prices(space, [cost for cost in space.inputs.costs if cost.judge in who])
    return PlanState(
        tuple(space.models[code] for code in kept.tolist()),
        {name: elo[name] for name in space.models if name in elo},
        space.instructions,
        None if logits is None else logits[kept],
        None if se is None else se[kept],
        None if asked is None else _recoded(asked, kept, len(space.models)),
        _recoded(space.barred, kept, len(space.models)),
        None if space.only is None else _recoded(space.only, kept, len(space.models)),
        tuple(habits.get(name, JudgeHabit()) for name in who),
        fixed,
        None if shown is None else shown[kept],
        frozenset() if estimates is None else estimates.held,
    )


def _ratings(
    models: Sequence[str], estimates: Estimates | None
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    if estimates is None:
        return None, None
    known = {name: place for place, name in enumerate(estimates.models)}
    logits, se = np.full(len(models), np.nan), np.full(len(models), np.nan)
    for place, name in enumerate(models):
        if name in known:
            logits[place], se[place] = estimates.logits[known[name]], estimates.se[known[name]]
    return logits, se


def _prices(
    space: DesignSpace, costs: Sequence[BattleCost]
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Nano-dollars of an instruction and of a completion, for all judges together; None where nothing costs."""
    fixed = np.zeros(len(space.instructions))
    for one in costs:
        asked_text = space.lengths.referenced if one.call.needs_reference else space.lengths.instructions
        fixed += one.costs(asked_text)
    shown = space.lengths.completions * sum(cost.nano_a_character for cost in costs)
    return (fixed, shown) if fixed.any() else (None, None)


def _recoded(battles: NDArray[np.int32], kept: NDArray[np.int64], models: int) -> NDArray[np.int32]:
    """Battles of the models kept, by their new codes."""
    codes = np.full(models, -1, dtype=np.int32)
    codes[kept] = np.arange(len(kept), dtype=np.int32)
    found = np.column_stack([codes[battles[:, 0]], codes[battles[:, 1]], battles[:, 2]]).astype(np.int32)
    return found[(found[:, :2] >= 0).all(axis=1)]


def _battles(rows: Iterable[tuple[int, ...]]) -> NDArray[np.int32]:
    return np.array(list(rows), dtype=np.int32).reshape(-1, 3)
