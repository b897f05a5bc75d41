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
from venire.arena.keys import respondent_key
from venire.arena.planning import Pick
from venire.arena.wording import money
from venire.judges import PROTOCOLS
from venire.judges.context_window import TRUNCATIONS
from venire.orchestrator.costs.budget import BudgetAccount, BudgetView
from venire.orchestrator.costs.call_cost import CallCost
from venire.orchestrator.planning.plan_state import text_lengths
from venire.orchestrator.planning.respondents import respondents
from venire.storage.plans.plans import Catalogue
from venire.storage.plans.trial_states import by_number, settled_pairs
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
        return self.sentence(f"{what}instruction {self.instruction!r}", "plan anew")

    def sentence(self, text: str, again: str) -> str:
        """What is left out, and what to do; `text` names it, `again` is how it is then asked about."""
        return (
            f"left out: {text} has about {self.tokens:,} tokens, and {self.whose} does not cover the longest answer "
            f"of {self.judge!r} to it: shorten the text, or raise that and {again}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What is asked about, an instruction or a battle each: lengths in characters, all of one shape.

    `longest` is the longest answer, `authors` whose it is, and `shown` are the answers that one call surely shows.
    """

    names: Sequence[str]
    authors: Sequence[str | None]
    instructions: NDArray[np.float64]
    referenced: NDArray[np.float64]
    longest: NDArray[np.float64]
    shown: NDArray[np.float64]


def has_oversized(
    store: Store, campaign: CampaignSettings, prices: Mapping[str, TokenPrice], budgets: Mapping[str, BudgetView]
) -> bool:
    """Whether the longest texts of a store, of whatever models, are more than a budget covers: seldom, and quick."""
    plain, referenced = (by_number(store, "instruction_lengths", of) for of in ("characters", "referenced"))
    most = 2.0 * float(by_number(store, "completion_lengths").max(initial=0))
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
    written = np.nan_to_num(lengths.completions)
    longest = written.max(axis=0, initial=0.0)
    authors = [models[row] for row in written.argmax(axis=0)] if len(models) else [None] * len(names)
    asked = _Asked(names, authors, lengths.instructions, lengths.referenced, longest, longest)
    found = _oversized(campaign, asked, prices, budgets)
    return tuple(found[place] for place in sorted(found))


def oversized_battles(
    store: Store,
    campaign: CampaignSettings,
    answers: Catalogue,
    battles: Sequence[Pick],
    prices: Mapping[str, TokenPrice],
    budgets: Mapping[str, BudgetView],
) -> Mapping[int, OversizedText]:
    """The same of battles that were chosen, by their place: both texts are shown. What was judged is not left out."""
    if not has_oversized(store, campaign, prices, budgets):
        return {}
    names = [str(one.instruction) for one in battles]
    numbers = [answers.instructions[name][0] for name in names]
    plain, referenced = (by_number(store, "instruction_lengths", of)[numbers] for of in ("characters", "referenced"))
    pairs = [(one.model_a, one.model_b) for one in battles]
    sides = np.array(
        [[answers.completions[model, name].number for model in pair] for pair, name in zip(pairs, names, strict=True)]
    ).reshape(-1, 2)
    texts = by_number(store, "completion_lengths")[sides].astype(np.float64)
    authors = [pair[row] for pair, row in zip(pairs, texts.argmax(axis=1), strict=True)]
    asked = _Asked(names, authors, plain.astype(float), referenced.astype(float), texts.max(axis=1), texts.sum(axis=1))
    found = _oversized(campaign, asked, prices, budgets)
    keys = [respondent_key(one) for _, one in respondents(campaign)] if found else []
    known = {row[0] for key in keys for row in store.read("respondent_id", respondent_key=key)}
    settled = np.zeros(len(battles), dtype=np.int64)
    for one in settled_pairs(store, known).values() if known else ():
        settled += one.of(sides[:, 0], sides[:, 1])
    return {place: found[place] for place in sorted(found) if not settled[place]}


def _oversized(
    campaign: CampaignSettings, asked: _Asked, prices: Mapping[str, TokenPrice], budgets: Mapping[str, BudgetView]
) -> dict[int, OversizedText]:
    """By place, what a judge cannot be asked about."""
    found: dict[int, OversizedText] = {}
    for judge in filter(_is_asked_in_full, campaign.judges):
        before = asked.referenced if PROTOCOLS[judge.protocol].needs_reference else asked.instructions
        cost = _call_cost(judge, prices)
        for account in budgets[judge.name].accounts:
            for place in _beyond(cost, account, before + asked.shown):
                alone = not _is_covered(cost, account, int(before[place]))
                model = None if alone else asked.authors[place]
                tokens = int(before[place] if alone else asked.longest[place]) // _CHARACTERS_A_TOKEN
                one = OversizedText(asked.names[place], model, tokens, judge.name, _limit(account))
                found.setdefault(place, one)
    return found


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
