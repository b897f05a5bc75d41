"""What budgets cover: how many battles of a list, and whether anything at all, since one that does not is refused.

A plan in rounds is cut to whole battles; any other is paid trial by trial, until a call is not covered any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.campaigns import CampaignSettings, JudgeSettings, TokenPrice
from venire.arena.errors import InputError
from venire.arena.records import Respondent
from venire.arena.wording import money
from venire.orchestrator.costs.budget import BudgetAccount, BudgetView, Reservation, judges_on_record, open_budgets
from venire.orchestrator.costs.call_cost import BattleCost, CallCost, battle_trials, call_costs
from venire.orchestrator.costs.forecast import judge_forecast
from venire.orchestrator.designs import PlannedCampaign
from venire.storage.plans import trial_states
from venire.storage.read import frames
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Funds:
    """What judges may still spend, and what their calls take by what the store holds now; both by name.

    `calls` are of those that are asked. Where nothing is limited, they are as expected before any call.
    """

    budgets: Mapping[str, BudgetView]
    calls: Mapping[str, CallCost]

    @property
    def limited(self) -> bool:
        """Whether any budget has a limit."""
        return any(budget.is_limited for budget in self.budgets.values())


def read_funds(
    store: Store,
    campaign: CampaignSettings,
    judges: Sequence[tuple[JudgeSettings, Respondent]],
    prices: Mapping[str, TokenPrice],
) -> Funds:
    """The funds of a campaign's judges now; `prices` by name, judges without one cost nothing."""
    numbered, paid = judges_on_record(store, campaign, judges)
    budgets = open_budgets(campaign, numbered, paid)[1]
    limited = any(budget.is_limited for budget in budgets.values())
    by_name = {numbered[number].name: budget for number, budget in budgets.items()}
    return Funds(by_name, call_costs(store, numbered, prices, learn=limited))


@dataclass(frozen=True, slots=True)
class _Need:
    """What a judge is expected to take, and the most that one call of it may come to; money in nano-dollars."""

    judge: str
    calls: int
    money: int
    tokens: int
    call: Reservation


def refuse_uncovered(
    store: Store,
    campaign: CampaignSettings,
    planned: PlannedCampaign,
    judges: Sequence[tuple[JudgeSettings, Respondent]],
    prices: Mapping[str, TokenPrice],
) -> None:
    """Raise InputError where nothing was asked yet and budgets cover no battle, or no trial, of any judge.

    `prices` are by judge name. Of each judge's trials the shortest is what has to be covered. A budget that was spent
    is another matter: it ends a run, and nothing is lost.
    """
    if frames.campaign_spending(store, planned.id).calls or frames.progress(store, planned.id).settled:
        return
    funds = read_funds(store, campaign, judges, prices)
    needs = {one.judge: one for one in _needs(store, planned, funds)}
    together = set(campaign.pair_judges) if campaign.in_rounds else set()
    groups = [[one] for name, one in needs.items() if name not in together]
    if battle := [one for name, one in needs.items() if name in together]:
        often = {judge.name: battle_trials(campaign, judge) for judge in campaign.judges}
        groups.append([_times(one, often[one.judge]) for one in battle])
    poor = [_lacking(group, funds.budgets) for group in groups]
    if not poor or any(one is None for one in poor):
        return
    account, asked = next(one for one in poor if one is not None)
    what = "battle" if together & {one.judge for one in asked} else "trial"
    raise InputError(f"{campaign.path}: {_refusal(account, asked, what)}")


def _needs(store: Store, planned: PlannedCampaign, funds: Funds) -> Iterator[_Need]:
    """Of the shortest trial of each judge that has any."""
    for row in trial_states.pending_texts(store, planned.id, planned.referenced):
        judge = planned.judges[row.respondent].name
        if judge not in funds.calls:
            yield _Need(judge, 1, 0, 0, Reservation(0))
            continue
        cost = funds.calls[judge]
        one = judge_forecast(cost, 1, row.shortest)
        tokens = one.input_tokens + one.output_tokens
        yield _Need(judge, one.calls, one.expected, tokens, cost.worst_call(row.shortest))


def _times(one: _Need, trials: int) -> _Need:
    return _Need(one.judge, trials * one.calls, trials * one.money, trials * one.tokens, one.call)


def _lacking(group: Sequence[_Need], budgets: Mapping[str, BudgetView]) -> tuple[BudgetAccount, list[_Need]] | None:
    """Whose limit keeps the last of some judges from asking, and who charges it; None where any of them can ask.

    A judge that cannot pay leaves the others to go on, as in a run.
    """
    left, found = list(group), None
    while left:
        charged: dict[int, tuple[BudgetAccount, list[_Need]]] = {}
        for one in left:
            for account in budgets[one.judge].accounts:
                charged.setdefault(id(account), (account, []))[1].append(one)
        poor = next((one for one in charged.values() if _short_of(*one) is not None), None)
        if poor is None:
            return None
        found, left = poor, [one for one in left if one not in poor[1]]
    return found


def _short_of(account: BudgetAccount, asked: Sequence[_Need]) -> tuple[str, str] | None:
    """A limit that does not cover what some judges take, and what that is; None where all do.

    The last call is sent only where the limit covers its longest answer, on top of what the calls before it took.
    """
    limits, calls = account.limits, sum(one.calls for one in asked)
    if limits.calls is not None and limits.calls < calls:
        return _calls(limits.calls), _calls(calls)
    before = (calls - 1) / calls
    spent = sum(one.money for one in asked)
    least = math.ceil(before * spent) + max(one.call.money for one in asked)
    if limits.money is not None and limits.money < least:
        return money(limits.money, 4), _taken(calls, f"about {_dollars(spent)}", _dollars(least))
    used = sum(one.tokens for one in asked)
    least = math.ceil(before * used) + max(one.call.tokens for one in asked)
    if limits.tokens is not None and limits.tokens < least:
        return f"{limits.tokens:,} tokens", _taken(calls, f"about {used:,} tokens", f"{least:,}")
    return None


def _taken(calls: int, expected: str, least: str) -> str:
    return (
        f"{_calls(calls)} and {expected} (a budget of {least}: a call is only sent where its longest answer is covered)"
    )


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number:,} calls"


def _dollars(nano: int) -> str:
    """Rounded up: a limit of the amount shown is enough."""
    return f"${math.ceil(nano / 1e5) / 1e4:.4f}"


def _refusal(account: BudgetAccount, asked: Sequence[_Need], what: str) -> str:
    short = _short_of(account, asked)
    assert short is not None  # or it would not be poor
    limit, needed = short
    who = f"{len(asked)} judges" if len(asked) > 1 else repr(asked[0].judge)
    return (
        f"{account.whose} of {limit} does not cover one {what}, which takes {who} {needed}: raise it, or ask "
        "cheaper models"
    )


@dataclass(frozen=True, slots=True, eq=False)
class ChargedBattles:
    """A list of battles as one judge is put to them: its budget, and what `characters` (battles,) they show it.

    `left` (battles,) is the share of their trials that is not settled yet, by whichever campaign: the rest is free.
    """

    cost: BattleCost
    budget: BudgetView
    characters: NDArray[np.float64]
    left: NDArray[np.float64]


def affordable(judges: Iterable[ChargedBattles]) -> tuple[int | None, str]:
    """How many battles, from the start of a list, can be paid, and whose limit is reached; None: all of them.

    The costliest call so far is left over, since a call is only made when its accounts cover the worst that it may come
    to: one long text further on does not cut what stands before it.
    """
    accounts: dict[int, tuple[BudgetAccount, list[ChargedBattles]]] = {}
    for one in judges:
        for account in one.budget.accounts:
            accounts.setdefault(id(account), (account, []))[1].append(one)
    least: int | None = None
    whose = ""
    for account, charged in accounts.values():
        if (count := _covered(account, charged)) is not None and (least is None or count < least):
            least, whose = count, account.whose
    return least, whose


def _covered(account: BudgetAccount, charged: Sequence[ChargedBattles]) -> int | None:
    """How many of the first battles an account covers; None: all."""
    limits, many = account.limits, len(charged[0].left)
    worst = [_worst_calls(one) for one in charged]
    paid = [one.left * one.cost.costs(one.characters) for one in charged]
    tokens = [one.left * one.cost.reads(one.characters) for one in charged]
    needs = [
        (limits.calls, account.calls, np.zeros(many), [one.left * one.cost.calls for one in charged]),
        (limits.money, account.money, np.max([call[0] for call in worst], axis=0), paid),
        (limits.tokens, account.tokens, np.max([call[1] for call in worst], axis=0), tokens),
    ]
    counts = []
    for limit, used, spare, needed in needs:
        if limit is not None:
            total = np.cumsum(np.sum(needed, axis=0))
            reached = int(np.searchsorted(total + spare, limit - used + 1e-6, side="right"))
            counts.append(max(reached, int(np.searchsorted(total, 0.0, side="right"))))  # what is settled is free
    least = min(counts, default=many)
    return None if least >= many else least


def _worst_calls(one: ChargedBattles) -> NDArray[np.float64]:
    """Money and tokens (2, battles) of the costliest call of a list up to each of its battles."""
    longest = np.maximum.accumulate(np.where(one.left > 0.0, one.characters, 0.0)).astype(np.int64)
    lengths, place = np.unique(longest, return_inverse=True)
    calls = [one.cost.call.worst_call(int(length)) for length in lengths]
    return np.array([[call.money for call in calls], [call.tokens for call in calls]], dtype=np.float64)[:, place]
