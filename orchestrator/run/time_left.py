"""How long a run will still take: for what is planned now by lane, and for the rounds that the plan may still have."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from venire.arena.campaigns import CampaignSettings, Identity
from venire.arena.records import RECORDED
from venire.orchestrator.costs.budget import BudgetAccount
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.planning.first_round import needs_other_judges, pairs_of

_WINDOW_SECONDS = 60.0
"""What the pace of a lane is measured over; a pause between rounds counts for later rounds alone."""

_SAMPLE_SECONDS = 1.0
_FEW = 5
"""Trials of a lane in that time from which its pace is of that time, and not of the whole run."""

LaneIdentity = tuple[Identity, ...]


@dataclass(frozen=True, slots=True)
class FutureRounds:
    """What a plan may still have, at most: rounds, and their trials. A rule may end it before (`may_stop`)."""

    rounds: int = 0
    trials: float = 0.0
    may_stop: bool = False


def future_rounds(campaign: CampaignSettings, planned: PlannedCampaign, elo: Mapping[str, float]) -> FutureRounds:
    """The rounds that a plan may still have after those that stand; `elo` are the ratings known before it."""
    plan, everybody, first = campaign.plan, len(campaign.pair_judges), planned.design
    asked = sum(one.design.size * (len(one.design.judges) or everybody) for one in planned.rounds)
    if not asked or not everybody:
        return FutureRounds()
    there_are = pairs_of(first.models) * len(first.instructions)
    rounds = battles = judged = 0
    may_stop = plan.stop.has_rules
    for number, phase in enumerate(plan.phases):
        mine = [one.design for one in planned.rounds if one.phase == phase.name]
        done = sum(design.size for design in mine)
        own = number > 0 and needs_other_judges(phase, first.models, elo)
        times = everybody if own else 1  # each judge has rounds of its own, and so many battles
        if phase.policy == RECORDED or (phase.crosses and len(mine) >= times):
            continue
        may_stop = may_stop or (phase.battles is None and not phase.crosses)
        size = (phase.matchups or pairs_of(first.models)) * len(first.instructions) if phase.crosses else phase.battles
        left = max(0, times * min(there_are, size or there_are) - done)
        rounds += (
            times - len(mine) if phase.crosses else math.ceil(left / max(1, plan.round_size(phase, done // times)))
        )
        battles += left * (1 if own else everybody)
        judged += left
    if plan.stop.battles is not None and judged:
        share = min(1.0, max(0, plan.stop.battles - sum(one.design.size for one in planned.rounds)) / judged)
        rounds, battles = math.ceil(rounds * share), round(battles * share)
    return FutureRounds(rounds, battles * planned.trials / asked, may_stop)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is left: seconds (None: not known), rounds in all; whether a rule may end it before, or a budget will."""

    seconds: float | None = None
    rounds: int = 0
    at_most: bool = False
    until_budget: bool = False


class TimeLeft:
    """Estimates what is left from the pace of each lane in the last minute, and of the whole run for later rounds."""

    def __init__(self, campaign: CampaignSettings, elo: Mapping[str, float]) -> None:
        self._campaign, self._elo = campaign, elo
        self._future = FutureRounds()
        self._rounds = 0
        self._missing: Counter[str] = Counter()
        self._done_before: Counter[str] = Counter()
        self._lanes: dict[str, LaneIdentity] = {}
        self._at = 0.0
        self._at_work: dict[LaneIdentity, float] = {}
        """Seconds in which a lane had trials left: it may be through with a round long before the others."""
        self._with_work: Collection[LaneIdentity] = ()
        self._recent: deque[_Sample] = deque()

    def begin(self, planned: PlannedCampaign, missing: Mapping[int, int], done: Counter[str], *, follows: bool) -> None:
        """Begin a round: trials that are missing, by respondent; those done in this run before, by judge.

        `follows`: more rounds may follow.
        """
        self._lanes |= {judge.name: judge.lane.identity for judge in planned.judges.values()}
        self._missing = Counter({planned.judges[number].name: many for number, many in missing.items()})
        self._done_before = Counter(done)
        self._future = future_rounds(self._campaign, planned, self._elo) if follows else FutureRounds()
        rounds = len(planned.rounds) + self._future.rounds
        self._rounds = rounds if follows and rounds > 1 else 0

    def outlook(
        self,
        elapsed: float,
        done: Counter[str],
        affordable: float,
        *,
        silent: Collection[str] = (),
        closed: Collection[LaneIdentity] = (),
    ) -> Outlook:
        """What is left `elapsed` seconds after the start, when `done` trials are done in this run, by judge.

        `affordable` is how many more the budget covers at the cost of those so far. Judges that are `silent` and lanes
        that are `closed` are asked no more.
        """
        left: Counter[LaneIdentity] = Counter()
        for name, many in self._missing.items():
            if name not in silent and self._lanes[name] not in closed:
                left[self._lanes[name]] += max(0, many - (done[name] - self._done_before[name]))
        self._sample(elapsed, done, {lane for lane, many in left.items() if many})
        future, now, total = self._future, left.total(), done.total()
        whole = now + future.trials
        paid = min(whole, affordable)
        at_most, rounds = future.may_stop and future.trials > 0, self._rounds
        if rounds and paid < whole:  # those that are not paid for are not planned
            unpaid = min(1.0, (whole - paid) / future.trials) if future.trials else 0.0
            rounds -= math.floor(future.rounds * unpaid)
        seconds = self._of_lanes(left)
        if seconds is None or (future.trials and not total):
            return Outlook(None, rounds, at_most, paid < whole)
        if now:  # what is planned now is asked first
            seconds *= min(1.0, paid / now)
        if future.trials:
            seconds += max(0.0, paid - now) * elapsed / total
        return Outlook(round(seconds, 1), rounds, at_most, paid < whole)

    def _sample(self, elapsed: float, done: Counter[str], with_work: Collection[LaneIdentity]) -> None:
        for lane in self._with_work:
            self._at_work[lane] = self._at_work.get(lane, 0.0) + elapsed - self._at
        self._at, self._with_work = elapsed, with_work
        recent, by_lane = self._recent, Counter[LaneIdentity]()
        for name, many in done.items():
            by_lane[self._lanes[name]] += many
        if len(recent) > 1 and elapsed - recent[-2].at < _SAMPLE_SECONDS:
            recent.pop()
        recent.append(_Sample(elapsed, by_lane, dict(self._at_work)))
        while elapsed - recent[0].at > _WINDOW_SECONDS:
            recent.popleft()

    def _of_lanes(self, left: Mapping[LaneIdentity, int]) -> float | None:
        """Seconds until the slowest lane is through; None where one with trials left has none done yet."""
        first, last = self._recent[0], self._recent[-1]
        found = 0.0
        for lane in self._with_work:
            whole = last.at_work.get(lane, 0.0)
            lately, seconds = last.done[lane] - first.done[lane], whole - first.at_work.get(lane, 0.0)
            if lately < _FEW and not last.done[lane]:
                return None
            pace = seconds / lately if lately >= _FEW else whole / last.done[lane]
            found = max(found, left[lane] * pace)
        return found


class _Sample(NamedTuple):
    """How far each lane was at a time, and how long it had been at work."""

    at: float
    done: Counter[LaneIdentity]
    at_work: dict[LaneIdentity, float]


def affordable_trials(account: BudgetAccount, trials: int) -> float:
    """How many trials an account still covers, if they take what `trials` took that are done.

    Infinite where nothing is limited, or nothing is known.
    """
    found = math.inf
    for unit, limit in account.limits.limited:
        used = account.taken(unit)
        if used > 0 and trials > 0:
            found = min(found, max(0, limit - used) * trials / used)
    return found
