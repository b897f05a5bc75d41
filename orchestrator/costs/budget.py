"""What a campaign may spend: checked before each call, settled after it, in integers of nano-dollars and tokens."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from venire.arena.campaigns import BudgetSettings, CampaignSettings, JudgeSettings
from venire.arena.errors import BudgetReachedError
from venire.arena.records import Respondent
from venire.arena.wording import money
from venire.storage.plans import plans, trial_states
from venire.storage.store.store import Store


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one call may cost at worst: money in nano-dollars, and tokens of request and reply together."""

    money: int
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Paid:
    """What an account paid in earlier runs; calls whose cost is not known count at what was reserved for them."""

    calls: int = 0
    money: int = 0
    tokens: int = 0

    def __add__(self, other: Paid) -> Paid:
        return Paid(self.calls + other.calls, self.money + other.money, self.tokens + other.tokens)


class BudgetAccount:
    """Calls, money and tokens of a campaign, a judge or a model: paid plus reserved never exceeds its limits."""

    def __init__(self, whose: str, limits: BudgetSettings, paid: Paid | None = None) -> None:
        paid = paid or Paid()
        self.whose = whose
        self.limits = limits
        self.calls, self.money, self.tokens = paid.calls, paid.money, paid.tokens
        self.reserved_money = self.reserved_tokens = 0
        self.parked_money = self.parked_tokens = 0
        """Of what is reserved, what this run does not wait for: batches that a later start collects."""

    def refusal(self, reservation: Reservation) -> str | None:
        """Why a call may not be made, or None."""
        limits = self.limits
        if limits.calls is not None and self.calls + 1 > limits.calls:
            return f"{self.whose} of {limits.calls} calls is reached"
        if limits.money is not None and self.money + self.reserved_money + reservation.money > limits.money:
            return (
                f"{self.whose} of {money(limits.money, 4)} does not cover the next call: {money(self.money, 4)} "
                f"spent, {money(self.reserved_money, 4)} reserved, up to {money(reservation.money, 4)} needed"
            )
        if limits.tokens is not None and self.tokens + self.reserved_tokens + reservation.tokens > limits.tokens:
            return (
                f"{self.whose} of {limits.tokens:,} tokens does not cover the next call: {self.tokens:,} used, "
                f"{self.reserved_tokens:,} reserved, up to {reservation.tokens:,} needed"
            )
        return None

    def may_fit_later(self, reservation: Reservation) -> bool:
        """Whether only what others have reserved is in the way, so that waiting for it may help."""
        limits = self.limits
        return (
            (limits.calls is None or self.calls < limits.calls)
            and (limits.money is None or self.money + self.parked_money + reservation.money <= limits.money)
            and (limits.tokens is None or self.tokens + self.parked_tokens + reservation.tokens <= limits.tokens)
        )


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
        return any(account.limits != BudgetSettings() for account in self.accounts)

    def reserve(self, reservation: Reservation) -> None:
        """Set aside one call. Raises BudgetReachedError when that could exceed a limit of one of the accounts."""
        for account in self.accounts:
            if (why := account.refusal(reservation)) is not None:
                raise BudgetReachedError(why)
        self.hold(reservation)

    def hold(self, reservation: Reservation, calls: int = 1) -> None:
        """Set aside what some calls may cost that were sent before this run began, whatever the limits are now."""
        for account in self.accounts:
            account.calls += calls
            account.reserved_money += reservation.money
            account.reserved_tokens += reservation.tokens

    def park(self, reservation: Reservation) -> None:
        """Of what is set aside, wait for this no longer: nothing in this run will end it."""
        for account in self.accounts:
            account.parked_money += reservation.money
            account.parked_tokens += reservation.tokens
        self._freed.set()

    def unpark(self, reservation: Reservation) -> None:
        """What was parked is about to end after all."""
        for account in self.accounts:
            account.parked_money -= reservation.money
            account.parked_tokens -= reservation.tokens

    def may_fit_later(self, reservation: Reservation) -> bool:
        """Whether only what others have reserved is in the way of a call, so that waiting for it may help."""
        return all(account.may_fit_later(reservation) for account in self.accounts)

    async def reserve_when_free(self, reservation: Reservation) -> None:
        """As `reserve`, but while only what others have reserved is in the way, wait until some of it is settled."""
        while True:
            try:
                return self.reserve(reservation)
            except BudgetReachedError:
                if not self.may_fit_later(reservation):
                    raise
            self._freed.clear()
            await self._freed.wait()

    def settle(self, reservation: Reservation, money: int | None, tokens: int | None) -> None:
        """Turn a reservation into what was paid; None: not known, counted at the reservation."""
        for account in self.accounts:
            account.money += reservation.money if money is None else money
            account.tokens += reservation.tokens if tokens is None else tokens
            account.reserved_money -= reservation.money
            account.reserved_tokens -= reservation.tokens
        self._freed.set()

    def release(self, reservation: Reservation) -> None:
        """Give a reservation back: the call was not sent."""
        for account in self.accounts:
            account.calls -= 1
            account.reserved_money -= reservation.money
            account.reserved_tokens -= reservation.tokens
        self._freed.set()


def open_budgets(
    campaign: CampaignSettings, judges: Mapping[int, JudgeSettings], paid: Mapping[tuple[int, str], Paid]
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
    numbers, paid = judges_on_record(store, limits, judges)
    by_name = {judge.name: number for number, judge in numbers.items()}
    of_judges, of_models = limits.judge_budgets, limits.model_budgets
    return replace(
        limits,
        budget=_less(limits.budget, _sum(paid)),
        judge_budgets={name: _less(own, _sum(paid, respondent=by_name[name])) for name, own in of_judges.items()},
        model_budgets={name: _less(own, _sum(paid, model=name)) for name, own in of_models.items()},
    )


def judges_on_record(
    store: Store, campaign: CampaignSettings, judges: Sequence[tuple[JudgeSettings, Respondent]]
) -> tuple[Mapping[int, JudgeSettings], Mapping[tuple[int, str], Paid]]:
    """Judges by respondent number, below 0 for one that the store does not know, and what the campaign paid."""
    known, numbers = plans.find_campaign(store, campaign.name), plans.respondent_numbers(store, judges)
    by_number = {numbers.get(judge.name, -n): judge for n, (judge, _) in enumerate(judges, start=1)}
    return by_number, {} if known is None else paid_so_far(store, known.id)


def _sum(paid: Mapping[tuple[int, str], Paid], *, respondent: int | None = None, model: str | None = None) -> Paid:
    """What was paid in all, or for one respondent or model."""
    mine = (
        one for (number, name), one in paid.items() if respondent in (None, number) and (model is None or model == name)
    )
    return sum(mine, Paid())


def _less(limits: BudgetSettings, paid: Paid) -> BudgetSettings:
    """What is left of limits, not below nothing."""
    left = ((limits.calls, paid.calls), (limits.money, paid.money), (limits.tokens, paid.tokens))
    return BudgetSettings(*(None if limit is None else max(0, limit - used) for limit, used in left))


def paid_so_far(store: Store, campaign: int) -> Mapping[tuple[int, str], Paid]:
    """What a campaign paid, by respondent number and model."""
    return {
        (one.respondent, one.model): Paid(one.calls, one.nano, one.tokens) for one in trial_states.paid(store, campaign)
    }
