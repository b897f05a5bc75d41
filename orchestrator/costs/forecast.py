"""What a plan will cost before anything is asked: calls, tokens, money and time, per judge.

Where the store has settled trials of the same judge, in any campaign, what these took is what the rest is expected to
take; where it has none, defaults are stated that lie in the middle of recorded judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np

from venire.arena.campaigns import JudgeSettings, LaneSettings, TokenPrice
from venire.arena.records import Completion, Instruction, Material, Outcome, Reply, Shape, Trial
from venire.judges import PROTOCOLS
from venire.judges.context_window import count_tokens, request_tokens, tokens_left
from venire.judges.conversation import advance
from venire.orchestrator.designs import PlannedCampaign
from venire.storage.plans import plans, usage
from venire.storage.plans.usage import OnRecord, on_record
from venire.storage.store.store import Store

__all__ = ["LEVEL", "MIN_INSTRUCTIONS", "JudgeForecast", "forecast", "of_judge"]

LEVEL = 0.9
"""How often the truth should lie between low and high."""
MIN_INSTRUCTIONS = 5
"""With trials on fewer instructions on record, defaults are the better guess."""

_CHARACTERS_A_TOKEN = 4.0
_MIN_CHARACTERS, _MAX_CHARACTERS = 3.0, 5.0
"""Characters of a token: code and unusual words have fewer, plain English has more."""
_SHORT_REPLIES, _LONG_REPLIES = 70 / 250, 411 / 250
"""Recorded judges' median reasons have 70 to 411 tokens where 250 are expected."""


@dataclass(frozen=True, slots=True)
class JudgeForecast:
    """What is left for one judge: money is in nano-dollars, times in seconds.

    Nine times in ten it should cost between `low` and `high`; `most` is for replies as long as may be, all
    asked for twice. `reasoning_tokens` are those of the output tokens that are thought and not shown. `learnt` is the
    number of settled trials that all this was learnt from; 0: from defaults, which know nothing of thinking.
    """

    judge: str
    trials: int
    calls: int
    input_tokens: int
    output_tokens: int
    low: int
    expected: int
    high: int
    most: int
    seconds: float | None
    """Shortest time that its limits a minute and a day allow; None without such a limit."""
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    learnt: int = 0
    waiting: float | None = None
    """Time that its calls take at their latency so far, as many in flight as may be; None where none was answered."""
    paid_over_price: float | None = None
    """What answered calls cost on record over what their tokens cost at the price; None without any, or for nothing."""


@dataclass(frozen=True, slots=True)
class _Usage:
    """Expected calls and tokens of all that is left for one judge."""

    calls: float
    input: float
    output: float
    cached: float = 0.0
    reasoning: float = 0.0

    def cost(self, price: TokenPrice) -> int:
        return price.cost(round(self.input), round(self.output), round(self.cached), written_tokens=0)


def forecast(store: Store, planned: PlannedCampaign, prices: Mapping[str, TokenPrice]) -> tuple[JudgeForecast, ...]:
    """The forecast for every judge, for what is not settled yet (of a part of the plan: of that), as if it had no
    replies on record."""
    referenced = {number for number, judge in planned.judges.items() if PROTOCOLS[judge.protocol].needs_reference}
    asked = [number for number, judge in planned.judges.items() if judge.recorded is None]
    learnt = on_record(store, planned.id, asked, referenced)
    left = {row.respondent: row for row in plans.pending_texts(store, planned.id, referenced, only=planned.only)}
    found = []
    for number, judge in sorted(planned.judges.items(), key=lambda item: item[1].name):
        row = left.get(number)
        trials, characters = (row.trials, row.characters) if row is not None else (0, 0)
        if judge.recorded is not None:
            found.append(JudgeForecast(judge.name, trials, trials, 0, 0, 0, 0, 0, 0, None))
            continue
        found.append(of_judge(judge, trials, characters, learnt.get(number), prices[judge.name]))
    return tuple(found)


def of_judge(
    judge: JudgeSettings, trials: int, characters: int, record: OnRecord | None, price: TokenPrice
) -> JudgeForecast:
    """The forecast of one judge for so many trials, which show so many characters of texts, from its own record."""
    texts = characters + trials * _frame(judge)
    if record is not None and len(record.trials) >= MIN_INSTRUCTIONS:
        usage, low, expected, high = _learnt(judge, trials, texts, record, price)
        learnt = int(record.trials.sum())
    else:
        usage = _expected(judge, trials, texts, _CHARACTERS_A_TOKEN, 1.0)
        low = _expected(judge, trials, texts, _MAX_CHARACTERS, _SHORT_REPLIES).cost(price)
        high = _expected(judge, trials, texts, _MIN_CHARACTERS, _LONG_REPLIES).cost(price)
        expected, learnt = usage.cost(price), 0
    most = _most(judge, trials, texts, price)
    calls, given, made = round(usage.calls), round(usage.input), round(usage.output)
    return JudgeForecast(
        judge.name,
        trials,
        calls,
        given,
        made,
        min(low, most),
        min(expected, most),
        min(high, most),
        most,
        _shortest(judge.lane, calls, given, made),
        round(usage.cached),
        round(usage.reasoning),
        learnt,
        _waiting(judge.lane, calls, record),
        _paid_over_price(record, price),
    )


def _frame(judge: JudgeSettings) -> int:
    """Characters of the prompts that come with every trial."""
    return sum(len(text) for _, _, text in PROTOCOLS[judge.protocol].texts(judge.options))


def _expected(judge: JudgeSettings, trials: int, texts: int, a_token: float, scale: float) -> _Usage:
    """Of a judge that nobody has asked, at so many characters a token and replies of so many times the usual length."""
    shown = texts // a_token
    longest = int(judge.options["max_tokens"])
    replies = [trials * min(longest, max(1.0, scale * tokens)) for tokens in PROTOCOLS[judge.protocol].expects]
    given = sum(shown + sum(replies[:step]) for step in range(len(replies)))
    return _Usage(trials * len(replies), given, sum(replies))


def _learnt(
    judge: JudgeSettings, trials: int, texts: int, record: OnRecord, price: TokenPrice
) -> tuple[_Usage, int, int, int]:
    """Usage and low, expected and high money by what is on record: input by the characters shown, the rest a trial.

    The error of a sum is that of instructions, since texts of one are alike: of those learnt from, and of those left.
    """
    done = record.trials.astype(np.float64)
    shown = record.characters + done * _frame(judge)
    more, a_trial = texts / shown.sum(), trials / done.sum()
    usage = _Usage(
        calls=record.calls.sum() * a_trial,
        input=record.input.sum() * more,
        output=record.output.sum() * a_trial,
        cached=record.cached.sum() * more,
        reasoning=record.reasoning.sum() * a_trial,
    )
    lost = record.unanswered.sum() * a_trial
    expected = usage.cost(price) + round(lost)
    a_cached = price.input if price.cached is None else price.cached
    cost = (record.input - record.cached) * price.input + record.cached * a_cached + record.output * price.output
    took = cost / 1e6 + record.unanswered
    by_text = float((record.input - record.cached).sum() * price.input + record.cached.sum() * a_cached) / 1e6
    by_trial = float(record.output.sum() * price.output) / 1e6 + float(record.unanswered.sum())
    off = took - by_text * shown / shown.sum() - by_trial * done / done.sum()
    groups = len(done)
    scatter = float(off @ off) * groups / (groups - 1) * (a_trial**2 + a_trial)
    reach = round(_reach(groups - 1) * scatter**0.5)
    return usage, max(0, expected - reach), expected, expected + reach


def _reach(degrees: int) -> float:
    """Standard errors to each side, by Student's t (its first terms beyond the normal distribution)."""
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2.0)
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def _most(judge: JudgeSettings, trials: int, texts: int, price: TokenPrice) -> int:
    """What all that is left should not exceed: every reply as long as may be, a repair, each asked for twice."""
    entry = PROTOCOLS[judge.protocol]
    shown = texts // int(_CHARACTERS_A_TOKEN)
    longest = int(judge.options["max_tokens"])
    repaired = len(entry.expects) + ("repair" in entry.prompts and judge.options.get("repair", "1") == "1")
    # Each of them twice, the second time with twice the tokens, which later ones then show.
    most_in = 2 * (repaired * 2 * shown + trials * 2 * longest * repaired * (repaired - 1) // 2)
    most_out = trials * 3 * longest * repaired
    dearest = {price, *(route.price for route in judge.lane.routes if route.price is not None)}
    return max(one.cost(most_in, most_out) for one in dearest)


def _shortest(lane: LaneSettings, calls: int, tokens_in: int, tokens_out: int) -> float | None:
    """Seconds that the limits of a lane's keys ask for; those that are only learnt on the way are not known yet."""
    limits = lane.limits
    keys = lane.workers // lane.concurrency
    asked = (
        (calls, limits.requests_per_minute, 60),
        (calls, limits.requests_per_day, 86_400),
        (tokens_in + tokens_out, limits.tokens_per_minute, 60),
        (tokens_in, limits.input_tokens_per_minute, 60),
        (tokens_out, limits.output_tokens_per_minute, 60),
    )
    return max((used * each / (limit * lane.share * keys) for used, limit, each in asked if limit), default=None)


def _waiting(lane: LaneSettings, calls: int, record: OnRecord | None) -> float | None:
    if record is None or not record.answered.sum():
        return None
    return calls * float(record.latency.sum() / record.answered.sum()) / 1000.0 / lane.workers


def _paid_over_price(record: OnRecord | None, price: TokenPrice) -> float | None:
    if record is None:
        return None
    given, made, cached = (int(column.sum()) for column in (record.input, record.output, record.cached))
    cost = price.cost(given, made, cached, written_tokens=0)
    return float(record.paid.sum()) / cost if cost else None


_WORD = "so "
"""A token."""

_FENCE = 16 * "0"


@dataclass(frozen=True, slots=True)
class LongForecast:
    """How many of the trials left for one judge will not fit its context (None: not known), and what is done then."""

    judge: str
    context: int | None
    too_long: int | None
    policy: str


def forecast_long(store: Store, planned: PlannedCampaign) -> tuple[LongForecast, ...]:
    """What of the trials left will not fit, by judge, if its replies are as long as is expected of its protocol.

    Texts are counted one by one and only where a trial may be too long.
    """
    found = []
    for number, judge in sorted(planned.judges.items(), key=lambda item: item[1].name):
        many = None
        if judge.context is not None:
            reference = PROTOCOLS[judge.protocol].needs_reference
            counted = partial(count_tokens, vocabulary=judge.vocabulary)
            left = _room(judge, judge.context, len(planned.design.models))
            many = usage.longer(store, planned.id, number, left, counted, reference=reference)
        found.append(LongForecast(judge.name, judge.context, many, judge.options.get("too_long", "error")))
    return tuple(found)


def _room(judge: JudgeSettings, context: int, models: int) -> int:
    """Tokens that instruction and completions may have together, beside what is said around them.

    Told by what the judge would be asked about empty texts, after replies of the length that is expected.
    """
    entry = PROTOCOLS[judge.protocol]
    many = {Shape.NONE: 0, Shape.SINGLE: 1, Shape.PAIR: 2, Shape.LIST: models}[entry.shape]
    empty = Material(Instruction("", ("",), ""), (Completion("", "", ""),) * many, (_FENCE,) * (1 + many))
    longest = int(judge.options["max_tokens"])
    replies = [Reply(_WORD * min(longest, tokens)) for tokens in entry.expects[:-1]]
    asked = advance(entry.talk, Trial(b"", b"", judge.protocol, "", (), 1), empty, judge.options, replies)
    if isinstance(asked, Outcome):
        return -1  # too long without any text
    return tokens_left(asked, context) - request_tokens(asked, judge.vocabulary)
