"""What a battle is expected to cost, by the lengths of its texts: what policies weigh and what rounds are cut to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.campaigns import CampaignSettings, JudgeSettings, TokenPrice
from venire.arena.records import Shape
from venire.judges import PROTOCOLS
from venire.orchestrator.costs.budget import BudgetAccount, BudgetView
from venire.storage.plans.plans import Catalogue
from venire.storage.plans.trial_states import by_number
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Asked", "JudgeCost", "Lengths", "affordable", "judge_costs", "learnt", "lengths"]

_CHARACTERS_A_TOKEN = 4
_MIN_TRIALS = 20


@dataclass(frozen=True, slots=True)
class JudgeCost:
    """What one judge takes for one battle, all its orders and repeats together, as a line over the characters shown.

    Money in nano-dollars; `longest` is how many tokens a reply may have, `price` that of one call.
    """

    judge: str
    trials: int
    calls: int
    nano: float
    nano_a_character: float
    tokens: float
    tokens_a_character: float
    longest: int
    price: TokenPrice
    needs_reference: bool = False

    def costs(self, characters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nano-dollars of battles whose instruction and completions have so many characters together."""
        return self.nano + self.nano_a_character * characters

    def reads(self, characters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Tokens, of requests and replies, of battles whose texts have so many characters together."""
        return self.tokens + self.tokens_a_character * characters


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """Characters of instructions (instructions,), with their reference answers too, and completions (models, ...)."""

    instructions: NDArray[np.float64]
    referenced: NDArray[np.float64]
    completions: NDArray[np.float64]


def judge_costs(campaign: CampaignSettings, prices: Mapping[str, TokenPrice]) -> tuple[JudgeCost, ...]:
    """The judges of a campaign that are asked about pairs, by name; `prices` by judge name, none known cost nothing.

    Every step shows all texts again with the replies so far (4 characters a token).
    """
    return tuple(
        _cost(campaign, judge, prices.get(judge.name, TokenPrice(0, 0)))
        for judge in sorted(campaign.judges, key=lambda one: one.name)
        if judge.shape is Shape.PAIR and judge.recorded is None
    )


def _cost(campaign: CampaignSettings, judge: JudgeSettings, price: TokenPrice) -> JudgeCost:
    entry = PROTOCOLS[judge.protocol]
    longest = int(judge.options["max_tokens"])
    replies = [min(longest, expected) for expected in entry.expects]
    frame = sum(len(text) for _, _, text in entry.texts(judge.options))
    trials = (2 if campaign.plan.orders == "both" else 1) * (judge.repeats or campaign.plan.repeats)
    steps = len(replies)
    tokens_in = steps * frame / _CHARACTERS_A_TOKEN + sum(sum(replies[:step]) for step in range(steps))
    nano = (tokens_in * price.input + sum(replies) * price.output) / 1e6
    shown = steps / _CHARACTERS_A_TOKEN
    return JudgeCost(
        judge.name,
        trials,
        calls=trials * steps,
        nano=trials * nano,
        nano_a_character=trials * shown * price.input / 1e6,
        tokens=trials * (tokens_in + sum(replies)),
        tokens_a_character=trials * shown,
        longest=longest,
        price=price,
        needs_reference=entry.needs_reference,
    )


def lengths(store: Store, answers: Catalogue, models: Sequence[str], instructions: Sequence[str]) -> Lengths:
    """How long the texts of some models and instructions are, in that order; NaN where a completion is missing."""
    numbers = [answers.instructions[name][0] for name in instructions]
    plain, referenced = (by_number(store, "instruction_lengths", of)[numbers] for of in ("characters", "referenced"))
    characters = by_number(store, "completion_lengths")
    found = np.full((len(models), len(instructions)), np.nan)
    for row, model in enumerate(models):
        for column, name in enumerate(instructions):
            if (there := answers.completions.get((model, name))) is not None:
                found[row, column] = characters[there.number]
    return Lengths(plain.astype(np.float64), referenced.astype(np.float64), found)


def learnt(
    costs: Iterable[JudgeCost], characters: Mapping[str, float], paid: Mapping[str, tuple[int, int]]
) -> tuple[JudgeCost, ...]:
    """The same at what battles turned out to cost.

    `paid` has the settled trials of each judge with their nano-dollars; `characters` is the mean of what its battles
    show. A judge with fewer than 20 such trials keeps what was expected of it.
    """
    found = []
    for one in costs:
        trials, nano = paid.get(one.judge, (0, 0))
        expected = one.costs(np.array(characters.get(one.judge, 0.0))) * trials / one.trials
        if trials >= _MIN_TRIALS and nano and expected:
            ratio = float(nano / expected)
            one = replace(one, nano=one.nano * ratio, nano_a_character=one.nano_a_character * ratio)
        found.append(one)
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A list of battles as one judge is put to them: its budget, what `characters` (battles,) they show it.

    `left` (battles,) is the share of their trials that is not settled yet, by whichever campaign: the rest is free.
    """

    cost: JudgeCost
    budget: BudgetView
    characters: NDArray[np.float64]
    left: NDArray[np.float64]


def affordable(judges: Iterable[Asked]) -> tuple[int | None, str]:
    """How many battles of a list can be paid, the first ones, and whose limit says so; None: all of them.

    The dearest call of the list is left over, since a call is only made when its accounts cover the worst that it may
    come to.
    """
    accounts: dict[int, tuple[BudgetAccount, list[Asked]]] = {}
    for one in judges:
        for account in one.budget.accounts:
            accounts.setdefault(id(account), (account, []))[1].append(one)
    least: int | None = None
    whose = ""
    for account, charged in accounts.values():
        if (count := _covered(account, charged)) is not None and (least is None or count < least):
            least, whose = count, account.whose
    return least, whose


def _covered(account: BudgetAccount, charged: Sequence[Asked]) -> int | None:
    """How many of the first battles an account covers; None: all."""
    limits, many = account.limits, len(charged[0].left)
    longest = [float(one.characters[one.left > 0.0].max(initial=0)) for one in charged]
    worst_tokens = [shown + one.cost.longest for one, shown in zip(charged, longest, strict=True)]
    worst_money = [
        one.cost.price.cost(int(shown), one.cost.longest) for one, shown in zip(charged, longest, strict=True)
    ]
    found = [
        (limits.calls, account.calls, 0.0, [one.left * one.cost.calls for one in charged]),
        (limits.money, account.money, max(worst_money), [one.left * one.cost.costs(one.characters) for one in charged]),
        (
            limits.tokens,
            account.tokens,
            max(worst_tokens),
            [one.left * one.cost.reads(one.characters) for one in charged],
        ),
    ]
    counts = []
    for limit, used, spare, needed in found:
        if limit is not None:
            total = np.cumsum(np.sum(needed, axis=0))
            reached = int(np.searchsorted(total, limit - used - spare + 1e-6, side="right"))
            counts.append(max(reached, int(np.searchsorted(total, 0.0, side="right"))))  # what is settled is free
    least = min(counts, default=many)
    return None if least >= many else least
