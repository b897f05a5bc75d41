"""What a plan will take before anything is asked, by judge: calls, tokens, money and time, and what will not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from venire.arena.campaigns import JudgeSettings, LaneSettings, TokenPrice
from venire.arena.records import Completion, Instruction, Material, Outcome, Reply, Trial
from venire.judges import PROTOCOLS
from venire.judges.context_window import count_tokens, request_tokens, tokens_left
from venire.judges.conversation import advance
from venire.orchestrator.costs.call_cost import CallCost, call_costs
from venire.orchestrator.designs import PlannedCampaign
from venire.storage.plans import trial_states, usage
from venire.storage.plans.usage import OnRecord
from venire.storage.read import frames
from venire.storage.read.frames import CampaignSpending, Progress
from venire.storage.store.store import Store

_WORD = "so "
"""A token."""

_FENCE = 16 * "0"

_SUMMED = ("trials", "calls", "input_tokens", "output_tokens", "low", "expected", "high", "most")


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


def in_all(rows: Iterable[JudgeForecast]) -> JudgeForecast:
    """The sums over some judges: of low and high as if all of them erred to one side, and of no time."""
    rows = list(rows)
    sums: dict[str, int] = {name: sum(getattr(row, name) for row in rows) for name in _SUMMED}
    return JudgeForecast("in all", **sums, seconds=None)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What of a plan is done and paid, and what the rest is expected to take: by judge, and in all."""

    judges: tuple[JudgeForecast, ...]
    whole: JudgeForecast
    progress: Progress
    spending: CampaignSpending


@dataclass(frozen=True, slots=True)
class LongForecast:
    """How many of the trials left for one judge will not fit its context (None: not known), and what is done then."""

    judge: str
    context: int | None
    too_long: int | None
    policy: str


def forecast(store: Store, planned: PlannedCampaign, prices: Mapping[str, TokenPrice]) -> Forecast:
    """The forecast for every judge, for what is not settled yet (of a part of the plan: of that), as if it had no
    replies on record."""
    progress = frames.progress(store, planned.id, planned.only)
    calls, left = call_costs(store, planned.judges, prices), {}
    if progress.missing:
        pending = trial_states.pending_texts(store, planned.id, planned.referenced, only=planned.only)
        left = {row.respondent: row for row in pending}
    rows = []
    for number, judge in sorted(planned.judges.items(), key=lambda item: item[1].name):
        row = left.get(number)
        trials, characters = (row.trials, row.characters) if row is not None else (0, 0)
        if judge.name in calls:
            rows.append(judge_forecast(calls[judge.name], trials, characters))
        else:
            rows.append(JudgeForecast(judge.name, trials, trials, 0, 0, 0, 0, 0, 0, None))
    return Forecast(tuple(rows), in_all(rows), progress, frames.campaign_spending(store, planned.id))


def judge_forecast(cost: CallCost, trials: int, characters: int) -> JudgeForecast:
    """The forecast of one judge for so many trials, which show so many characters of texts."""
    taken, lane = cost.usage(trials, characters), cost.judge.lane
    low, expected, high = cost.interval(trials, characters)
    most = cost.worst(trials, characters)
    calls, given, made = round(taken.calls), round(taken.input), round(taken.output)
    return JudgeForecast(
        cost.judge.name,
        trials,
        calls,
        given,
        made,
        min(low, most),
        min(expected, most),
        min(high, most),
        most,
        _shortest(lane, calls, given, made),
        round(taken.cached),
        round(taken.reasoning),
        cost.learned,
        _waiting(lane, calls, cost.record),
        cost.charged,
    )


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


def forecast_long(store: Store, planned: PlannedCampaign) -> tuple[LongForecast, ...]:
    """What of the trials left will not fit, by judge, if its replies are as long as is expected of its protocol.

    Texts are counted one by one and only where a trial may be too long.
    """
    found = []
    for number, judge in sorted(planned.judges.items(), key=lambda item: item[1].name):
        many = None
        if judge.context is not None:
            reference = number in planned.referenced
            counted = partial(count_tokens, vocabulary=judge.vocabulary)
            left = _room(judge, judge.context, len(planned.design.models))
            many = usage.longer(store, planned.id, number, left, counted, reference=reference)
        found.append(LongForecast(judge.name, judge.context, many, judge.options.get("too_long", "error")))
    return tuple(found)


def _room(judge: JudgeSettings, context: int, models: int) -> int:
    """Tokens that instruction and completions may have together, without the rest of the prompt.

    Computed from the request for empty texts, after replies of the expected length.
    """
    entry = PROTOCOLS[judge.protocol]
    many = entry.shape.size(models)
    empty = Material(Instruction("", ("",), ""), (Completion("", "", ""),) * many, (_FENCE,) * (1 + many))
    longest = int(judge.options["max_tokens"])
    replies = [Reply(_WORD * min(longest, tokens)) for tokens in entry.expects[:-1]]
    asked = advance(entry.talk, Trial(b"", b"", judge.protocol, "", (), 1), empty, judge.options, replies)
    if isinstance(asked, Outcome):
        return -1  # too long without any text
    return tokens_left(asked, context) - request_tokens(asked, judge.vocabulary)
