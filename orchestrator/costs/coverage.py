"""What budgets cover: how many battles of a list, and whether anything at all, since one that does not is refused.

A plan in rounds is cut to whole battles; any other is paid trial by trial, until a call is not covered any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.budgets import NOTHING, UNITS, Amount
from venire.arena.campaigns import TokenPrice
from venire.arena.errors import InputError
from venire.orchestrator.costs.budget import BudgetAccount, BudgetView, open_budgets, paid_so_far
from venire.orchestrator.costs.call_cost import BattleCost, CallCost, battle_trials, call_costs
from venire.orchestrator.costs.forecast import judge_forecast
from venire.orchestrator.designs import PlannedCampaign
from venire.storage.plans import trial_states
from venire.storage.plans.plans import KnownCampaign
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


def read_funds(store: Store, known: KnownCampaign, prices: Mapping[str, TokenPrice]) -> Funds:
    """The funds of a campaign's judges now; `prices` by name, judges without one cost nothing."""
    judges = known.by_number
    budgets = open_budgets(known.settings, judges, paid_so_far(store, known.number))[1]
    limited = any(budget.is_limited for budget in budgets.values())
    by_name = {judges[number].name: budget for number, budget in budgets.items()}
    return Funds(by_name, call_costs(store, judges, prices, learn=limited))


_ONE_CALL = NOTHING._replace(calls=1)


@dataclass(frozen=True, slots=True)
class _Need:
    """What a judge is expected to take, and the most that one call of it may come to."""

    judge: str
    expected: Amount
    call: Amount


def refuse_uncovered(
    store: Store, known: KnownCampaign, planned: PlannedCampaign, prices: Mapping[str, TokenPrice]
) -> None:
    """Raise InputError where nothing was asked yet and budgets cover no battle, or no trial, of any judge.

    `prices` are by judge name. Of each judge's trials the shortest is what has to be covered. A budget that was spent
    is another matter: it ends a run, and nothing is lost.
    """
    if frames.campaign_spending(store, planned.id).calls or frames.progress(store, planned.id).settled:
        return
    campaign, funds = known.settings, read_funds(store, known, prices)
    needs = {need.judge: need for need in _needs(store, planned, funds)}
    together = set(campaign.pair_judges) if campaign.in_rounds else set()
    groups = [[need] for name, need in needs.items() if name not in together]
    if battle := [need for name, need in needs.items() if name in together]:
        often = {judge.name: battle_trials(campaign, judge) for judge in campaign.judges}
        groups.append([_times(need, often[need.judge]) for need in battle])
    poor = [_lacking(group, funds.budgets) for group in groups]
    if not poor or any(shortage is None for shortage in poor):
        return
    account, asked = next(shortage for shortage in poor if shortage is not None)
    what = "battle" if together & {need.judge for need in asked} else "trial"
    raise InputError(f"{campaign.path}: {_refusal(account, asked, what)}")


def _needs(store: Store, planned: PlannedCampaign, funds: Funds) -> Iterator[_Need]:
    """Of the shortest trial of each judge that has any."""
    for row in trial_states.pending_texts(store, planned.id, planned.referenced):
        judge = planned.judges[row.respondent].name
        if judge not in funds.calls:
            yield _Need(judge, _ONE_CALL, _ONE_CALL)
            continue
        cost = funds.calls[judge]
        one = judge_forecast(cost, 1, row.shortest)
        expected = Amount(one.calls, one.expected, one.input_tokens + one.output_tokens)
        yield _Need(judge, expected, cost.worst_call(row.shortest))


def _times(one: _Need, trials: int) -> _Need:
    return _Need(one.judge, Amount._make(trials * part for part in one.expected), one.call)


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
        poor = next((charge for charge in charged.values() if _short_of(*charge) is not None), None)
        if poor is None:
            return None
        found, left = poor, [need for need in left if need not in poor[1]]
    return found


def _short_of(account: BudgetAccount, asked: Sequence[_Need]) -> tuple[str, str] | None:
    """A limit that does not cover what some judges take, and what that is; None where all do.

    The last call is sent only where the limit covers its longest answer, on top of what the calls before it took.
    """
    calls = sum(need.expected.calls for need in asked)
    for unit, limit in account.limits.limited:
        expected = sum(unit.of_amount(need.expected) for need in asked)
        least = math.ceil((calls - 1) / calls * expected) + max(unit.of_amount(need.call) for need in asked)
        if limit >= least:
            continue
        if unit.is_certain:
            return unit.text(limit), unit.text(least)
        about, enough = unit.text(unit.round_up(expected), precise=True), unit.precise(unit.round_up(least))
        return unit.text(limit, precise=True), (
            f"{UNITS['calls'].text(calls)} and about {about} (a budget of {enough}: a call is only sent where its "
            "longest answer is covered)"
        )
    return None


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
    for judge in judges:
        for account in judge.budget.accounts:
            accounts.setdefault(id(account), (account, []))[1].append(judge)
    least: int | None = None
    whose = ""
    for account, charged in accounts.values():
        if (count := _covered(account, charged)) is not None and (least is None or count < least):
            least, whose = count, account.whose
    return least, whose


def _covered(account: BudgetAccount, charged: Sequence[ChargedBattles]) -> int | None:
    """How many of the first battles an account covers; None: all."""
    many = len(charged[0].left)
    worst = np.max([_worst_calls(charge) for charge in charged], axis=0)
    taken = np.sum([charge.left * charge.cost.takes(charge.characters) for charge in charged], axis=0)
    counts = []
    for unit, limit in account.limits.limited:
        row = Amount._fields.index(unit.name)
        total = np.cumsum(taken[row])
        spare = 0.0 if unit.is_certain else worst[row]
        reached = int(np.searchsorted(total + spare, limit - account.taken(unit) + 1e-6, side="right"))
        counts.append(max(reached, int(np.searchsorted(total, 0.0, side="right"))))  # what is settled is free
    least = min(counts, default=many)
    return None if least >= many else least


def _worst_calls(one: ChargedBattles) -> NDArray[np.float64]:
    """What the costliest call takes of a list up to each of its battles (units, battles)."""
    longest = np.maximum.accumulate(np.where(one.left > 0.0, one.characters, 0.0)).astype(np.int64)
    lengths, index = np.unique(longest, return_inverse=True)
    calls = [one.cost.call.worst_call(int(length)) for length in lengths]
    return np.array(calls, dtype=np.float64).reshape(-1, len(UNITS)).T[:, index]
