"""What a plan will cost before anything is asked: calls, tokens, money and time, per judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from venire.arena.campaigns import LaneSettings, Price
from venire.judges import PROTOCOLS
from venire.orchestrator.plan import PlannedCampaign
from venire.storage import plans
from venire.storage.store import Store

__all__ = ["JudgeForecast", "forecast"]

_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class JudgeForecast:
    """What is left for one judge: `expected` money and the `most` it can come to, nano-dollars; seconds at its rate."""

    judge: str
    trials: int
    calls: int
    input_tokens: int
    output_tokens: int
    expected: int
    most: int
    seconds: float | None
    """Shortest time that its limits a minute and a day allow; None without such a limit."""


def forecast(store: Store, planned: PlannedCampaign, prices: Mapping[str, Price]) -> tuple[JudgeForecast, ...]:
    """The forecast for every judge, for what is not settled yet, as if it had no replies on record."""
    referenced = {number for number, judge in planned.judges.items() if PROTOCOLS[judge.protocol].needs_reference}
    left = {row.respondent: row for row in plans.forecast(store, planned.id, referenced)}
    found = []
    for number, judge in sorted(planned.judges.items(), key=lambda item: item[1].name):
        row = left.get(number)
        trials, characters = (row.trials, row.characters) if row is not None else (0, 0)
        if judge.recorded is not None:
            found.append(JudgeForecast(judge.name, trials, trials, 0, 0, 0, 0, None))
            continue
        entry = PROTOCOLS[judge.protocol]
        frame = sum(len(text) for _, _, text in entry.texts(judge.options))
        shown = (characters + trials * frame) // _CHARACTERS_A_TOKEN
        longest = int(judge.options["max_tokens"])
        replies = [trials * min(longest, tokens) for tokens in entry.expects]
        calls = trials * len(replies)
        tokens_in = sum(shown + sum(replies[:step]) for step in range(len(replies)))
        tokens_out = sum(replies)
        repaired = len(replies) + ("repair" in entry.prompts and judge.options.get("repair", "1") == "1")
        # Each of them twice, the second time with twice the tokens, which later ones then show.
        most_in = 2 * (repaired * 2 * shown + trials * 2 * longest * repaired * (repaired - 1) // 2)
        most_out = trials * 3 * longest * repaired
        price = prices[judge.name]
        dearest = {price, *(route.price for route in judge.lane.routes if route.price is not None)}
        found.append(
            JudgeForecast(
                judge.name,
                trials,
                calls,
                tokens_in,
                tokens_out,
                price.cost(tokens_in, tokens_out, written_tokens=0),
                max(one.cost(most_in, most_out) for one in dearest),
                _shortest(judge.lane, calls, tokens_in, tokens_out),
            )
        )
    return tuple(found)


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
