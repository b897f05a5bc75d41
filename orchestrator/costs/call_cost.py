"""What the calls of one judge cost: one model with three views, expected, learned and worst.

Forecasts, the check of a budget, the cutting of rounds and the prices that policies weigh all ask this model. Expected
is what recorded judges took in the middle; where the store has enough settled trials of the same judge, in any
campaign, what these took is learned and comes in its place; worst is every reply as long as may be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.budgets import UNITS, Amount
from venire.arena.campaigns import CampaignSettings, JudgeSettings, TokenPrice
from venire.judges import PROTOCOLS
from venire.judges.context_window import TRUNCATIONS
from venire.storage.plans.usage import OnRecord, on_record
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVEL = 0.9
"""How often the truth should lie between low and high."""
MIN_INSTRUCTIONS = 5
"""With trials on fewer instructions on record, defaults are the better guess."""

CHARACTERS_A_TOKEN = 4
_MIN_CHARACTERS, _MAX_CHARACTERS = 3.0, 5.0
"""Characters of a token: code and unusual words have fewer, plain English has more."""
_SHORT_REPLIES, _LONG_REPLIES = 70 / 250, 411 / 250
"""Recorded judges' median reasons have 70 to 411 tokens where 250 are expected."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls and tokens of some trials, and nano-dollars that calls without an answer take."""

    calls: float
    input: float
    output: float
    cached: float = 0.0
    reasoning: float = 0.0
    unanswered: float = 0.0

    def cost(self, price: TokenPrice) -> int:
        """Nano-dollars, in whole tokens as they are billed."""
        tokens = price.cost(round(self.input), round(self.output), round(self.cached), written_tokens=0)
        return tokens + round(self.unanswered)

    def rate(self, price: TokenPrice) -> float:
        """Nano-dollars, of parts of tokens too: for what is added up over many battles."""
        a_cached = price.input if price.cached is None else price.cached
        tokens = (self.input - self.cached) * price.input + self.cached * a_cached + self.output * price.output
        return tokens / 1e6 + self.unanswered


@dataclass(frozen=True, slots=True)
class BattleCost:
    """What one judge takes for one battle, all its orders and repeats together, as a line over the characters shown.

    Money in nano-dollars; `call` is what any call of it is made of.
    """

    judge: str
    trials: int
    calls: float
    nano: float
    nano_a_character: float
    tokens: float
    tokens_a_character: float
    call: CallCost

    def costs(self, characters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nano-dollars of battles whose instruction and completions have so many characters together."""
        return self.nano + self.nano_a_character * characters

    def takes(self, characters: NDArray[np.float64]) -> NDArray[np.float64]:
        """What such battles take of each unit of budgets (units, battles)."""
        taken = {
            "calls": np.full(len(characters), self.calls),
            "money": self.costs(characters),
            "tokens": self.tokens + self.tokens_a_character * characters,
        }
        return np.array([taken[unit] for unit in UNITS])


@dataclass(frozen=True, eq=False)
class CallCost:
    """What a judge's calls take at a price, by how many trials they are for and the characters that these show.

    `record` is what its settled trials took; None or of too few instructions: what is expected of its protocol.
    """

    judge: JudgeSettings
    price: TokenPrice
    record: OnRecord | None = None

    @property
    def needs_reference(self) -> bool:
        """Whether the judge is shown the reference answer too."""
        return PROTOCOLS[self.judge.protocol].needs_reference

    @property
    def cuts(self) -> bool:
        """Whether texts that are too long for the judge's context are cut."""
        return self.judge.context is not None and self.judge.options.get("too_long", "error") in TRUNCATIONS

    @property
    def learned(self) -> int:
        """How many settled trials the usage is learned from; 0: from none, it is expected."""
        enough = self.record is not None and len(self.record.trials) >= MIN_INSTRUCTIONS
        return int(self.record.trials.sum()) if self.record is not None and enough else 0

    @property
    def charged(self) -> float | None:
        """What answered calls cost on record over what their tokens cost at the price; None without any, or free."""
        if self.record is None:
            return None
        given, made, cached = (int(x.sum()) for x in (self.record.input, self.record.output, self.record.cached))
        cost = self.price.cost(given, made, cached, written_tokens=0)
        return float(self.record.paid.sum()) / cost if cost else None

    @cached_property
    def _frame(self) -> int:
        """Characters of the prompts that come with every trial."""
        return sum(len(text) for _, _, text in PROTOCOLS[self.judge.protocol].texts(self.judge.options))

    @property
    def _longest(self) -> int:
        return int(self.judge.options["max_tokens"])

    def usage(self, trials: int, characters: int) -> Usage:
        """What so many trials, whose texts have so many characters together, are expected to take."""
        texts = characters + trials * self._frame
        return self._learned(trials, texts) if self.learned else self._expected(trials, texts // CHARACTERS_A_TOKEN)

    def _expected(self, trials: float, shown: float, scale: float = 1.0) -> Usage:
        """Of a judge that nobody has asked, at so many tokens shown and replies of so many times the usual length.

        Every step shows all texts again, with the replies so far.
        """
        expects = PROTOCOLS[self.judge.protocol].expects
        replies = [trials * min(self._longest, max(1.0, scale * tokens)) for tokens in expects]
        given = sum(shown + sum(replies[:step]) for step in range(len(replies)))
        return Usage(trials * len(replies), given, sum(replies))

    def _learned(self, trials: float, texts: float) -> Usage:
        """By what is on record: input by the characters shown, the rest by the trial."""
        assert self.record is not None
        record, done = self.record, self.record.trials.astype(np.float64)
        more = texts / (record.characters + done * self._frame).sum()
        a_trial = trials / done.sum()
        return Usage(
            calls=record.calls.sum() * a_trial,
            input=record.input.sum() * more,
            output=record.output.sum() * a_trial,
            cached=record.cached.sum() * more,
            reasoning=record.reasoning.sum() * a_trial,
            unanswered=record.unanswered.sum() * a_trial,
        )

    def interval(self, trials: int, characters: int) -> tuple[int, int, int]:
        """Low, expected and high nano-dollars of so many trials: nine times in ten the truth lies between."""
        expected = self.usage(trials, characters).cost(self.price)
        texts = characters + trials * self._frame
        if not self.learned:
            low = self._expected(trials, texts // _MAX_CHARACTERS, _SHORT_REPLIES).cost(self.price)
            return low, expected, self._expected(trials, texts // _MIN_CHARACTERS, _LONG_REPLIES).cost(self.price)
        reach = self._reach(trials)
        return max(0, expected - reach), expected, expected + reach

    def _reach(self, trials: int) -> int:
        """How far the cost of so many trials may be off what is learned.

        The error of a sum is that of instructions, since texts of one are alike: of those learned from, and of those
        left.
        """
        assert self.record is not None
        record, price, done = self.record, self.price, self.record.trials.astype(np.float64)
        shown, a_trial = record.characters + done * self._frame, trials / done.sum()
        a_cached = price.input if price.cached is None else price.cached
        cost = (record.input - record.cached) * price.input + record.cached * a_cached + record.output * price.output
        took = cost / 1e6 + record.unanswered
        by_text = float((record.input - record.cached).sum() * price.input + record.cached.sum() * a_cached) / 1e6
        by_trial = float(record.output.sum() * price.output) / 1e6 + float(record.unanswered.sum())
        off = took - by_text * shown / shown.sum() - by_trial * done / done.sum()
        groups = len(done)
        scatter = float(off @ off) * groups / (groups - 1) * (a_trial**2 + a_trial)
        reach: float = _standard_errors(groups - 1) * scatter**0.5
        return round(reach)

    def battle(self, trials: int) -> BattleCost:
        """The same of one battle that is put to the judge so many times, as budgets count it.

        Budgets count what was charged, so that where this was another than the price it is another here too.
        """
        if self.learned:
            alone, a_character = self._learned(1.0, self._frame), self._learned(0.0, 1.0)
            charged = self.charged or 1.0
        else:
            alone = self._expected(1.0, self._frame / CHARACTERS_A_TOKEN)
            a_character, charged = self._expected(0.0, 1.0 / CHARACTERS_A_TOKEN), 1.0
        return BattleCost(
            self.judge.name,
            trials,
            calls=trials * alone.calls,
            nano=trials * charged * alone.rate(self.price),
            nano_a_character=trials * charged * a_character.rate(self.price),
            tokens=trials * (alone.input + alone.output),
            tokens_a_character=trials * a_character.input,
            call=self,
        )

    def worst(self, trials: int, characters: int) -> int:
        """Nano-dollars that so many trials should not exceed: replies as long as may be, a repair, all asked twice."""
        entry = PROTOCOLS[self.judge.protocol]
        shown = (characters + trials * self._frame) // CHARACTERS_A_TOKEN
        repaired = len(entry.expects) + ("repair" in entry.prompts and self.judge.options.get("repair", "1") == "1")
        # Each of them twice, the second time with twice the tokens, which later ones then show.
        most_in = 2 * (repaired * 2 * shown + trials * 2 * self._longest * repaired * (repaired - 1) // 2)
        most_out = trials * 3 * self._longest * repaired
        prices = {self.price, *(route.price for route in self.judge.lane.routes if route.price is not None)}
        return max(price.cost(most_in, most_out) for price in prices)

    def worst_call(self, characters: int) -> Amount:
        """The most that one call may be reserved for whose texts have so many characters: each byte may be a token."""
        shown = characters + self._prompt
        highest = max((route.price or self.price).cost(shown, self._longest) for route in self.judge.lane.routes)
        return Amount(1, highest, shown + self._longest)

    @cached_property
    def _prompt(self) -> int:
        """Bytes of the longest prompt that every trial is sent; that of a repair is not."""
        entry = PROTOCOLS[self.judge.protocol]
        texts = entry.texts(self.judge.options)
        sent = [text for name, (_, _, text) in zip(entry.prompts, texts, strict=True) if name != "repair"]
        return max((len(text.encode()) for text in sent), default=0)


def _standard_errors(degrees: int) -> float:
    """Standard errors to each side, by Student's t (its first terms beyond the normal distribution)."""
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2.0)
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def call_costs(
    store: Store, judges: Mapping[int, JudgeSettings], prices: Mapping[str, TokenPrice], *, learn: bool = True
) -> Mapping[str, CallCost]:
    """What the calls of those judges cost that are asked, by name, learned where the store has enough of them.

    `judges` by respondent number, `prices` by name; judges without one cost nothing. Without `learn`: as expected.
    """
    asked = {number: judge for number, judge in judges.items() if judge.recorded is None}
    referenced = {number for number, judge in asked.items() if PROTOCOLS[judge.protocol].needs_reference}
    records = on_record(store, list(asked), referenced) if learn else {}
    free = TokenPrice(0, 0)
    return {
        judge.name: CallCost(judge, prices.get(judge.name, free), records.get(number))
        for number, judge in asked.items()
    }


def battle_trials(campaign: CampaignSettings, judge: JudgeSettings) -> int:
    """How often a judge is asked about a battle: in all its orders and repeats."""
    return (2 if campaign.plan.orders == "both" else 1) * (judge.repeats or campaign.plan.repeats)


def battle_costs(campaign: CampaignSettings, calls: Collection[CallCost]) -> tuple[BattleCost, ...]:
    """What the judges of a campaign that are asked about pairs take for a battle, by name."""
    return tuple(
        call.battle(battle_trials(campaign, call.judge))
        for call in sorted(calls, key=lambda call: call.judge.name)
        if call.judge.shape.pairwise
    )
