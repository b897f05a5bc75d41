"""Texts that no budget covers: one call that shows such a text may come to more than all that may be spent.

Nobody can be asked about them, whatever else is asked, so their instructions are left out of a plan: otherwise one
answer of ten megabytes ends it, since what has to be kept free for the dearest call of a plan is more than there is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.campaigns import CampaignSettings, JudgeSettings, TokenPrice
from venire.arena.wording import money
from venire.judges import PROTOCOLS
from venire.judges.context_window import TRUNCATIONS
from venire.orchestrator.costs.budget import BudgetAccount, BudgetView
from venire.orchestrator.costs.call_cost import CallCost
from venire.orchestrator.planning.plan_state import text_lengths
from venire.storage.plans.plans import Catalogue
from venire.storage.plans.trial_states import by_number
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class OversizedText:
    """An instruction (`model` None) or an answer to one that a judge cannot be shown, and whose limit is too low."""

    instruction: str
    model: str | None
    tokens: int
    """About, at four characters each."""
    judge: str
    whose: str

    def __str__(self) -> str:
        what = "" if self.model is None else f"the answer of {self.model!r} to "
        return (
            f"left out: {what}instruction {self.instruction!r} has about {self.tokens:,} tokens, and {self.whose} does "
            f"not cover the longest answer of {self.judge!r} to it: shorten the text, or raise that and plan anew"
        )


def has_oversized(
    store: Store, campaign: CampaignSettings, prices: Mapping[str, TokenPrice], budgets: Mapping[str, BudgetView]
) -> bool:
    """Whether the longest texts of a store, of whatever models, are more than a budget covers: seldom, and quick."""
    plain, referenced = (by_number(store, "instruction_lengths", of) for of in ("characters", "referenced"))
    most = float(by_number(store, "completion_lengths").max(initial=0))
    most += float(max(plain.max(initial=0), referenced.max(initial=0)))
    return any(
        _beyond(_call_cost(judge, prices), account, np.array([most]))
        for judge in campaign.judges
        if _is_asked_in_full(judge)
        for account in budgets[judge.name].accounts
    )


def oversized_texts(
    store: Store,
    campaign: CampaignSettings,
    answers: Catalogue,
    models: Sequence[str],
    prices: Mapping[str, TokenPrice],
    budgets: Mapping[str, BudgetView],
) -> tuple[OversizedText, ...]:
    """The longest text of each instruction that cannot be asked about, in the order of instructions.

    Of contestants that are to write, `models` are none. `prices` and `budgets` are by judge name; limits count in full,
    whatever of them is spent.
    """
    names = tuple(sorted(answers.instructions))
    if not names or not has_oversized(store, campaign, prices, budgets):
        return ()
    lengths = text_lengths(store, answers, models, names)
    longest = np.nan_to_num(lengths.completions).max(axis=0, initial=0.0)
    found: dict[str, OversizedText] = {}
    for judge in filter(_is_asked_in_full, campaign.judges):
        asked = lengths.referenced if PROTOCOLS[judge.protocol].needs_reference else lengths.instructions
        cost = _call_cost(judge, prices)
        for account in budgets[judge.name].accounts:
            for place in _beyond(cost, account, asked + longest):
                alone = not _is_covered(cost, account, int(asked[place]))
                model = None if alone else models[int(np.nan_to_num(lengths.completions[:, place]).argmax())]
                shown = asked[place] if alone else longest[place]
                tokens = int(shown) // _CHARACTERS_A_TOKEN
                found.setdefault(names[place], OversizedText(names[place], model, tokens, judge.name, _limit(account)))
    return tuple(found[name] for name in names if name in found)


def without_oversized(names: Sequence[str], found: Sequence[OversizedText]) -> tuple[str, ...]:
    """Instructions that were drawn, without those of some texts; all of them where none would be left."""
    dropped = {one.instruction for one in found}
    return tuple(name for name in names if name not in dropped) or tuple(names)


def _is_asked_in_full(judge: JudgeSettings) -> bool:
    cuts = judge.context is not None and judge.options.get("too_long", "error") in TRUNCATIONS
    return judge.recorded is None and not cuts


def _call_cost(judge: JudgeSettings, prices: Mapping[str, TokenPrice]) -> CallCost:
    return CallCost(judge, prices.get(judge.name, TokenPrice(0, 0)))


def _beyond(cost: CallCost, account: BudgetAccount, characters: NDArray[np.float64]) -> list[int]:
    """Where texts are too long for a call that an account covers in full; nowhere where it covers none at all."""
    most = int(characters.max(initial=0.0))
    if _is_covered(cost, account, most) or not _is_covered(cost, account, 0):
        return []
    first = bisect_left(range(most + 1), True, key=lambda length: not _is_covered(cost, account, length))
    return np.flatnonzero(characters >= first).tolist()


def _is_covered(cost: CallCost, account: BudgetAccount, characters: int) -> bool:
    needed, limits = cost.worst_call(characters), account.limits
    return (limits.money is None or needed.money <= limits.money) and (
        limits.tokens is None or needed.tokens <= limits.tokens
    )


def _limit(account: BudgetAccount) -> str:
    limits = account.limits
    cost = [money(limits.money, 4)] if limits.money is not None else []
    tokens = [f"{limits.tokens:,} tokens"] if limits.tokens is not None else []
    return f"{account.whose} of {' and '.join(cost + tokens)}"
