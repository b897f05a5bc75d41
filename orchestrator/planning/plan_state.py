"""What policies may know: which battles there are, which were asked, what they cost and what verdicts say by now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.campaigns import CampaignSettings, JudgeSettings, TokenPrice
from venire.arena.keys import respondent_key
from venire.arena.planning import Estimates, JudgeHabit, Pick, PlanState
from venire.judges.context_window import TRUNCATIONS
from venire.orchestrator.costs.budget import BudgetView
from venire.orchestrator.costs.call_cost import BattleCost, CallCost, battle_costs, call_costs
from venire.orchestrator.costs.coverage import ChargedBattles, affordable
from venire.orchestrator.designs import RoundDesign
from venire.orchestrator.planning.recorded import Recording
from venire.orchestrator.planning.respondents import respondents
from venire.storage.plans.plans import Catalogue
from venire.storage.plans.trial_states import SettledPairs, by_number, settled_pairs
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MAX_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True, eq=False)
class TextLengths:
    """Characters of instructions (instructions,), with their reference answers too, and completions (models, ...)."""

    instructions: NDArray[np.float64]
    referenced: NDArray[np.float64]
    completions: NDArray[np.float64]


@dataclass(frozen=True)
class PlanInputs:
    """The models and instructions of a plan, with their completions: all that stays the same from round to round."""

    store: Store
    campaign: CampaignSettings
    models: tuple[str, ...]
    instructions: tuple[str, ...]
    answers: Catalogue
    recordings: Mapping[str, Recording]
    prices: Mapping[str, TokenPrice]

    @cached_property
    def lengths(self) -> TextLengths:
        """Characters of all texts."""
        return text_lengths(self.store, self.answers, self.models, self.instructions)

    @cached_property
    def costs(self) -> tuple[BattleCost, ...]:
        """What each judge that is asked takes for a battle, as expected before any was: what policies weigh."""
        free = TokenPrice(0, 0)
        judges = self.campaign.judges
        return battle_costs(self.campaign, [CallCost(one, self.prices.get(one.name, free)) for one in judges])

    def learned_costs(self) -> tuple[BattleCost, ...]:
        """The same with what the store holds of each judge by now: what budgets are held against."""
        judges = {number or -place: judge for place, (judge, number) in enumerate(self._numbered, start=1)}
        return battle_costs(self.campaign, call_costs(self.store, judges, self.prices).values())

    @cached_property
    def places(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """The codes of models and of instructions."""
        return ({name: n for n, name in enumerate(self.models)}, {name: n for n, name in enumerate(self.instructions)})

    @cached_property
    def barred(self) -> NDArray[np.int32]:
        """Battles (battles, 3) whose two texts are equal."""
        found = []
        for place, name in enumerate(self.instructions):
            same: dict[int, list[int]] = {}
            for code, model in enumerate(self.models):
                same.setdefault(self.answers.completions[model, name].text, []).append(code)
            found += [(a, b, place) for codes in same.values() for a, b in combinations(codes, 2)]
        return _codes(found)

    @cached_property
    def only(self) -> NDArray[np.int32] | None:
        """Battles (battles, 3) on record, where nobody is asked about pairs; else None."""
        judges = self.campaign.pair_judges
        if any(name not in self.recordings for name in judges):
            return None
        models, instructions = self.places
        found = {
            (*sorted(models[one] for one in shown), instructions[name])
            for judge in judges
            for name, rows in self.recordings[judge].texts.items()
            if name in instructions
            for shown, _ in rows
            if set(shown) <= models.keys()
        }
        return _codes(sorted(found))

    def asked(self, designs: Iterable[RoundDesign], judges: Collection[str] = ()) -> NDArray[np.int32]:
        """Battles (battles, 3) of some rounds, each once, in the order planned; with `judges`, theirs alone."""
        models, instructions = self.places
        barred = set(map(tuple, self.barred.tolist()))
        found: dict[tuple[int, int, int], None] = {}
        for design in designs:
            if judges and design.judges and not set(judges) & set(design.judges):
                continue
            for name, matchups in zip(design.instructions, design.matchups_on(), strict=True):
                place = instructions[name]
                for one in matchups:
                    found[models[one.model_a], models[one.model_b], place] = None
        return _codes([battle for battle in found if battle not in barred])

    def characters(self, cost: BattleCost, battles: NDArray[np.int32]) -> NDArray[np.float64]:
        """How much text each of some battles (battles, 3) shows a judge; if it cuts, what fits its context."""
        asked_text = self.lengths.referenced if cost.needs_reference else self.lengths.instructions
        shown = self.lengths.completions
        a, b, place = battles.T
        judge, characters = cost.call.judge, np.asarray(asked_text[place] + shown[a, place] + shown[b, place])
        if judge.context is None or judge.options.get("too_long", "error") not in TRUNCATIONS:
            return characters
        return np.asarray(np.minimum(characters, judge.context * _MAX_CHARACTERS_A_TOKEN))

    def left(self, cost: BattleCost, battles: NDArray[np.int32]) -> NDArray[np.float64]:
        """The share (battles,) of the trials of some battles (battles, 3) that a judge has not settled yet."""
        a, b, place = battles.T
        settled = self._settled[cost.judge].of(self._numbers[a, place], self._numbers[b, place])
        return np.asarray(1.0 - np.minimum(1.0, settled / cost.trials))

    @cached_property
    def _settled(self) -> Mapping[str, SettledPairs]:
        """What was judged by each judge, in any campaign, when it was first asked for."""
        found = settled_pairs(self.store, {number for _, number in self._numbered})
        return {judge.name: found[number] for judge, number in self._numbered}

    @cached_property
    def _numbered(self) -> Sequence[tuple[JudgeSettings, int]]:
        """The judges with their respondent numbers; 0, which is nobody's, for one that the store does not know."""
        return [
            (judge, rows[0][0] if rows else 0)
            for judge, respondent in respondents(self.campaign)
            for rows in [self.store.read("respondent_id", respondent_key=respondent_key(respondent))]
        ]

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """The number (models, instructions) of each completion."""
        answers = self.answers.completions
        return np.array([[answers[model, name].number for name in self.instructions] for model in self.models])


def payable_battles(
    inputs: PlanInputs, picks: Sequence[Pick], costs: Iterable[BattleCost], budgets: Mapping[str, BudgetView]
) -> tuple[int, str]:
    """How many of the first battles chosen the budgets cover at these costs, and whose does not cover more ("": all).

    `budgets` by judge name.
    """
    models, instructions = inputs.places
    battles = _codes([(models[one.model_a], models[one.model_b], instructions[str(one.instruction)]) for one in picks])
    asked = [(one, budgets[one.judge]) for one in costs]
    if not any(budget.is_limited for _, budget in asked):
        return len(picks), ""
    count, whose = affordable(
        [
            ChargedBattles(one, budget, inputs.characters(one, battles), inputs.left(one, battles))
            for one, budget in asked
        ]
    )
    return (len(picks) if count is None else count), whose


def policy_state(
    inputs: PlanInputs,
    *,
    elo: Mapping[str, float],
    models: Sequence[str] | None = None,
    asked: NDArray[np.int32] | None = None,
    estimates: Estimates | None = None,
    judges: Collection[str] = (),
    costs: Sequence[BattleCost] | None = None,
) -> PlanState:
    """What a policy may know of a plan now.

    `elo` are ratings in Elo points, `asked` (battles, 3) what was asked already, `estimates` what verdicts say (None:
    nobody asked them), `judges` who will be asked (none named: all), `costs` what they take (None: as expected).
    `models` are left alone where only some are to be matched: then codes are of these.
    """
    kept = np.arange(len(inputs.models)) if models is None else np.array([inputs.places[0][name] for name in models])
    who = tuple(judges) or inputs.campaign.pair_judges
    habits = estimates.judges if estimates is not None else {}
    logits, se = _ratings(inputs.models, estimates)
    mine = [one for one in (inputs.costs if costs is None else costs) if one.judge in who]
    fixed, shown = _prices(inputs, mine)
    return PlanState(
        tuple(inputs.models[code] for code in kept.tolist()),
        {name: elo[name] for name in inputs.models if name in elo},
        inputs.instructions,
        None if logits is None else logits[kept],
        None if se is None else se[kept],
        None if asked is None else _recoded(asked, kept, len(inputs.models)),
        _recoded(inputs.barred, kept, len(inputs.models)),
        None if inputs.only is None else _recoded(inputs.only, kept, len(inputs.models)),
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
    inputs: PlanInputs, costs: Sequence[BattleCost]
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Nano-dollars of an instruction and of a completion, for all judges together; None where nothing costs."""
    fixed = np.zeros(len(inputs.instructions))
    for one in costs:
        asked_text = inputs.lengths.referenced if one.needs_reference else inputs.lengths.instructions
        fixed += one.costs(asked_text)
    shown = inputs.lengths.completions * sum(one.nano_a_character for one in costs)
    return (fixed, shown) if fixed.any() else (None, None)


def _recoded(battles: NDArray[np.int32], kept: NDArray[np.int64], models: int) -> NDArray[np.int32]:
    """Battles of the models kept, by their new codes."""
    codes = np.full(models, -1, dtype=np.int32)
    codes[kept] = np.arange(len(kept), dtype=np.int32)
    found = np.column_stack([codes[battles[:, 0]], codes[battles[:, 1]], battles[:, 2]]).astype(np.int32)
    return found[(found[:, :2] >= 0).all(axis=1)]


def _codes(battles: Sequence[tuple[int, ...]]) -> NDArray[np.int32]:
    return np.array(battles, dtype=np.int32).reshape(-1, 3)


def text_lengths(store: Store, answers: Catalogue, models: Sequence[str], instructions: Sequence[str]) -> TextLengths:
    """How long the texts of some models and instructions are, in that order; NaN where a completion is missing."""
    numbers = [answers.instructions[name][0] for name in instructions]
    plain, referenced = (by_number(store, "instruction_lengths", of)[numbers] for of in ("characters", "referenced"))
    characters = by_number(store, "completion_lengths")
    found = np.full((len(models), len(instructions)), np.nan)
    for row, model in enumerate(models):
        for column, name in enumerate(instructions):
            if (there := answers.completions.get((model, name))) is not None:
                found[row, column] = characters[there.number]
    return TextLengths(plain.astype(np.float64), referenced.astype(np.float64), found)
