"""What a campaign may spend: checked before each call, settled after it, in whole numbers of each unit."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import attrgetter

from venire.arena.budgets import NOTHING, Amount, BudgetSettings, BudgetUnit
from venire.arena.campaigns import CampaignSettings, JudgeSettings
from venire.arena.errors import BudgetReachedError
from venire.arena.records import Respondent
from venire.storage.plans import plans, trial_states
from venire.storage.store.store import Store

MARKS = (50, 80, 100)
"""Shares of the money, in percent, that are worth an event."""


class BudgetAccount:
    """What a campaign, a judge or a model took: used plus reserved never exceeds its limits.

    Calls of earlier runs whose cost is not known count at what was reserved for them.
    """

    def __init__(self, whose: str, limits: BudgetSettings, used: Amount = NOTHING) -> None:
        self.whose = whose
        self.limits = limits
        self.used = used
        self.reserved = NOTHING
        self.parked = NOTHING
        """Of what is reserved, what this run does not wait for: batches that a later start collects."""
        self._limited = tuple((unit, attrgetter(unit.name), limit) for unit, limit in limits.limited)

    def taken(self, unit: BudgetUnit) -> int:
        """What is used of a unit for sure."""
        return unit.of_amount(self.used) + (unit.of_amount(self.reserved) if unit.is_certain else 0)

    def refusal(self, call: Amount) -> str | None:
        """Why a call may not be made, or None."""
        for unit, amount_of, limit in self._limited:
            used, reserved, needed = amount_of(self.used), amount_of(self.reserved), amount_of(call)
            if used + reserved + needed <= limit:
                continue
            if unit.is_certain:
                return f"{self.whose} of {unit.text(limit)} is reached"
            spent, held, up_to = map(unit.precise, (used, reserved, needed))
            return (
                f"{self.whose} of {unit.text(limit, precise=True)} does not cover the next call: {spent} {unit.used}, "
                f"{held} reserved, up to {up_to} needed"
            )
        return None

    def may_fit_later(self, call: Amount) -> bool:
        """Whether only what others have reserved is in the way, so that waiting for it may help."""
        for unit, _, limit in self._limited:
            parked = 0 if unit.is_certain else unit.of_amount(self.parked)
            if self.taken(unit) + parked + unit.of_amount(call) > limit:
                return False
        return True


class BudgetMarks:
    """Shares of an account's money that a run passes, each once; what was passed before it began is not its own."""

    def __init__(self, account: BudgetAccount) -> None:
        self._account = account
        self.limit = account.limits.money or 0
        self._remaining = [percent for percent in MARKS if self.limit and not self._is_passed(percent)]

    def passed(self) -> list[int]:
        """The percentages that were passed since this was last asked."""
        found = [percent for percent in self._remaining if self._is_passed(percent)]
        self._remaining = [percent for percent in self._remaining if percent not in found]
        return found

    def _is_passed(self, percent: int) -> bool:
        return 100 * self._account.used.money >= percent * self.limit


class BudgetView:
    """The accounts that every call of one judge is charged to, all of them or none.

    `freed` is shared by the budgets of a campaign: it is set whenever a reservation ends. `reserve` has no await in it,
    so no two workers can pass the check together.
    """

    def __init__(self, accounts: Sequence[BudgetAccount], freed: asyncio.Event | None = None) -> None:
        self.accounts = tuple(accounts)
        self._freed = freed or asyncio.Event()

    @property
    def is_limited(self) -> bool:
        """Whether any of the accounts has a limit."""
        return any(account.limits.limited for account in self.accounts)

    def reserve(self, call: Amount) -> None:
        """Set aside one call. Raises BudgetReachedError when that could exceed a limit of one of the accounts."""
        for account in self.accounts:
            if (why := account.refusal(call)) is not None:
                raise BudgetReachedError(why)
        self.hold(call)

    def hold(self, calls: Amount) -> None:
        """Set aside what some calls may take that were sent before this run began, whatever the limits are now."""
        for account in self.accounts:
            account.reserved = account.reserved.plus(calls)

    def park(self, calls: Amount) -> None:
        """Of what is set aside, wait for this no longer: nothing in this run will end it."""
        for account in self.accounts:
            account.parked = account.parked.plus(calls)
        self._freed.set()

    def unpark(self, calls: Amount) -> None:
        """What was parked is about to end after all."""
        for account in self.accounts:
            account.parked = account.parked.minus(calls)

    def may_fit_later(self, call: Amount) -> bool:
        """Whether only what others have reserved is in the way of a call, so that waiting for it may help."""
        return all(account.may_fit_later(call) for account in self.accounts)

    async def reserve_when_free(self, call: Amount) -> None:
        """As `reserve`, but while only what others have reserved is in the way, wait until some of it is settled."""
        while True:
            try:
                return self.reserve(call)
            except BudgetReachedError:
                if not self.may_fit_later(call):
                    raise
            self._freed.clear()
            await self._freed.wait()

    def settle(self, reserved: Amount, taken: Amount) -> None:
        """Turn what was set aside for a call into what it took."""
        for account in self.accounts:
            account.used = account.used.plus(taken)
            account.reserved = account.reserved.minus(reserved)
        self._freed.set()

    def release(self, call: Amount) -> None:
        """Give back what was set aside for a call: it was not sent."""
        for account in self.accounts:
            account.reserved = account.reserved.minus(call)
        self._freed.set()


def open_budgets(
    campaign: CampaignSettings, judges: Mapping[int, JudgeSettings], paid: Mapping[tuple[int, str], Amount]
) -> tuple[BudgetAccount, Mapping[int, BudgetView]]:
    """The campaign's account, and a budget for each judge by its respondent number; for others that account alone.

    `paid` is what earlier runs paid, by respondent number and model. A judge whose settings changed is another
    respondent: its own account begins anew, while those of the campaign and of the model go on.
    """
    account = BudgetAccount("the budget", campaign.budget, _sum(paid))
    models: dict[str, BudgetAccount] = {}
    for name, limits in campaign.model_budgets.items():
        models[name] = BudgetAccount(f"the budget of model {name!r}", limits, _sum(paid, model=name))
    freed = asyncio.Event()
    budgets: dict[int, BudgetView] = defaultdict(lambda: BudgetView([account], freed))
    for number, judge in judges.items():
        accounts = [account]
        if judge.name in campaign.judge_budgets:
            own, spent = campaign.judge_budgets[judge.name], _sum(paid, respondent=number)
            accounts.append(BudgetAccount(f"the budget of judge {judge.name!r}", own, spent))
        if judge.model in models:
            accounts.append(models[judge.model])
        budgets[number] = BudgetView(accounts, freed)
    return account, budgets


def without_spent(
    limits: CampaignSettings, store: Store, judges: Sequence[tuple[JudgeSettings, Respondent]]
) -> CampaignSettings:
    """The campaign with what it spent by another store taken off its budgets; where that was too much, nothing is left.

    Calls of unknown cost count as in `open_budgets`: at what was reserved for them.
    """
    known = plans.known_campaign(store, limits, judges)
    paid = paid_so_far(store, known.number)
    of_judges, of_models = limits.judge_budgets, limits.model_budgets
    return replace(
        limits,
        budget=limits.budget.less(_sum(paid)),
        judge_budgets={
            name: own.less(_sum(paid, respondent=known.numbers.get(name, 0))) for name, own in of_judges.items()
        },
        model_budgets={name: own.less(_sum(paid, model=name)) for name, own in of_models.items()},
    )


def _sum(paid: Mapping[tuple[int, str], Amount], *, respondent: int | None = None, model: str | None = None) -> Amount:
    """What was paid in all, or for one respondent or model."""
    mine = (
        amount
        for (number, name), amount in paid.items()
        if respondent in (None, number) and (model is None or model == name)
    )
    return reduce(Amount.plus, mine, NOTHING)


def paid_so_far(store: Store, campaign: int | None) -> Mapping[tuple[int, str], Amount]:
    """What a campaign paid, by respondent number and model; None for a new one."""
    rows = () if campaign is None else trial_states.paid(store, campaign)
    return {(row.respondent, row.model): Amount(row.calls, row.nano, row.tokens) for row in rows}
