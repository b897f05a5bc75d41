"""The budget: what is spent and what is set aside together never pass the limits."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.budgets import UNITS, Amount, BudgetSettings
from venire.arena.clock import VirtualClock
from venire.arena.errors import BudgetReachedError
from venire.orchestrator.costs.budget import BudgetAccount, BudgetMarks, BudgetView

money = st.integers(0, 10**12)
"""Nano-dollars."""


class One:
    """A budget view with one account, and short ways to ask it for money alone."""

    def __init__(self, limits: BudgetSettings, *, spent: int = 0, calls: int = 0) -> None:
        self.account = BudgetAccount("the budget", limits, Amount(calls, spent, 0))
        self.budget_view = BudgetView([self.account])

    @property
    def spent(self) -> int:
        return self.account.used.money

    @property
    def reserved(self) -> int:
        return self.account.reserved.money

    @property
    def calls(self) -> int:
        return self.account.taken(UNITS["calls"])

    def reserve(self, worst: int) -> None:
        self.budget_view.reserve(Amount(1, worst, 0))

    async def reserve_when_free(self, worst: int) -> None:
        await self.budget_view.reserve_when_free(Amount(1, worst, 0))

    def settle(self, worst: int, paid: int | None) -> None:
        self.budget_view.settle(Amount(1, worst, 0), Amount(1, worst if paid is None else paid, 0))

    def release(self, worst: int) -> None:
        self.budget_view.release(Amount(1, worst, 0))


@given(
    limit=st.none() | money,
    most_calls=st.none() | st.integers(0, 30),
    before=st.integers(0, 10**11),
    calls_before=st.integers(0, 10),
    data=st.data(),
)
def test_no_interleaving_of_calls_passes_a_limit_and_none_is_refused_that_fits(
    limit: int | None, most_calls: int | None, before: int, calls_before: int, data: st.DataObject
) -> None:
    if limit is not None:
        before = min(before, limit)
    if most_calls is not None:
        calls_before = min(calls_before, most_calls)
    budget_view = One(BudgetSettings(most_calls, limit), spent=before, calls=calls_before)
    spent, calls = before, calls_before
    open_: list[int] = []
    for action in data.draw(st.lists(st.sampled_from(["reserve", "settle", "unknown", "release"]), max_size=60)):
        if action == "reserve":
            worst = data.draw(st.integers(0, 10**11))
            fits = (most_calls is None or calls < most_calls) and (limit is None or spent + sum(open_) + worst <= limit)
            if not fits:
                with pytest.raises(BudgetReachedError):
                    budget_view.reserve(worst)
            else:
                budget_view.reserve(worst)
                open_.append(worst)
                calls += 1
        elif open_:
            worst = open_.pop(data.draw(st.integers(0, len(open_) - 1)))
            if action == "release":
                budget_view.release(worst)
                calls -= 1
            else:
                paid = None if action == "unknown" else data.draw(st.integers(0, worst))
                budget_view.settle(worst, paid)
                spent += worst if paid is None else paid
        assert (budget_view.spent, budget_view.reserved, budget_view.calls) == (spent, sum(open_), calls)
        assert limit is None or budget_view.spent + budget_view.reserved <= limit
        assert most_calls is None or budget_view.calls <= most_calls
        assert {type(budget_view.spent), type(budget_view.reserved), type(budget_view.calls)} == {int}


def test_the_last_nano_dollar_may_be_spent_and_not_one_more() -> None:
    budget_view = One(BudgetSettings(money=100), spent=40)
    budget_view.reserve(60)
    budget_view.reserve(0)
    with pytest.raises(BudgetReachedError, match=r"does not cover the next call"):
        budget_view.reserve(1)


def test_the_limit_of_calls_is_exact_and_counts_those_of_earlier_runs() -> None:
    budget_view = One(BudgetSettings(calls=5), calls=3)
    budget_view.reserve(1)
    budget_view.reserve(1)
    with pytest.raises(BudgetReachedError, match="5 calls"):
        budget_view.reserve(1)
    budget_view.settle(1, 1)
    with pytest.raises(BudgetReachedError):
        budget_view.reserve(1)
    budget_view.release(1)
    budget_view.reserve(1)


def test_a_refused_call_sets_nothing_aside() -> None:
    budget_view = One(BudgetSettings(money=10))
    with pytest.raises(BudgetReachedError):
        budget_view.reserve(11)
    assert (budget_view.spent, budget_view.reserved, budget_view.calls) == (0, 0, 0)


def test_a_call_of_unknown_cost_counts_at_its_reservation_and_a_known_one_at_its_cost() -> None:
    budget_view = One(BudgetSettings(money=100))
    budget_view.reserve(50)
    budget_view.reserve(50)
    budget_view.settle(50, None)
    budget_view.settle(50, 7)
    assert (budget_view.spent, budget_view.reserved) == (57, 0)


def test_without_limits_nothing_is_refused() -> None:
    budget_view = One(BudgetSettings())
    for _ in range(100):
        budget_view.reserve(10**15)
    assert (budget_view.reserved, budget_view.calls) == (10**17, 100)


@given(limit=st.integers(1, 300), calls=st.integers(1, 40), seed=st.integers())
def test_calls_that_wait_for_reservations_to_be_settled_spend_the_budget_and_never_pass_it(
    limit: int, calls: int, seed: int
) -> None:
    clock, draw = VirtualClock(), Random(seed)
    budget_view = One(BudgetSettings(money=limit))
    refused: list[int] = []

    async def call(worst: int, paid: int | None, seconds: float) -> None:
        try:
            await budget_view.reserve_when_free(worst)
        except BudgetReachedError:
            refused.append(worst)
            assert budget_view.reserved == 0 or budget_view.spent + worst > limit
            return
        assert budget_view.spent + budget_view.reserved <= limit
        await clock.sleep(seconds)
        if draw.random() < 0.2:
            budget_view.release(worst)
        else:
            budget_view.settle(worst, paid)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(calls):
                worst = draw.randrange(1, 50)
                group.create_task(call(worst, draw.choice([None, draw.randrange(worst)]), draw.random()))

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        runner.run(main())
    assert budget_view.reserved == 0
    assert budget_view.spent <= limit
    assert all(budget_view.spent + worst > limit for worst in refused)


@pytest.mark.parametrize("ending", ["settled", "released", "unknown"])
def test_a_call_waits_while_only_what_is_reserved_stands_in_its_way(ending: str) -> None:
    async def main() -> None:
        budget_view = One(BudgetSettings(calls=9, money=100))
        budget_view.reserve(60)
        waiting = asyncio.create_task(budget_view.reserve_when_free(60))
        await asyncio.sleep(0)
        assert not waiting.done()
        assert (budget_view.reserved, budget_view.calls) == (60, 1)
        if ending == "released":
            budget_view.release(60)
        else:
            budget_view.settle(60, 10 if ending == "settled" else None)
        if ending == "unknown":
            with pytest.raises(BudgetReachedError):
                await waiting
        else:
            await waiting
            assert budget_view.reserved == 60

    asyncio.run(main())


@pytest.mark.parametrize(
    ("limits", "spent", "reserved"),
    [
        (BudgetSettings(money=100), 50, 10),
        (BudgetSettings(money=100), 41, 0),
        (BudgetSettings(calls=1, money=200), 0, 150),
        (BudgetSettings(1), 0, 5),
    ],
)
def test_a_call_that_no_settlement_could_help_is_refused_at_once(
    limits: BudgetSettings, spent: int, reserved: int
) -> None:
    async def main() -> None:
        budget_view = One(limits, spent=spent)
        if reserved:
            budget_view.reserve(reserved)
        with pytest.raises(BudgetReachedError):
            await asyncio.wait_for(budget_view.reserve_when_free(60), 5)

    asyncio.run(main())


MAYBE = st.none()


@given(
    limits=st.lists(
        st.builds(
            BudgetSettings,
            st.none() | st.integers(1, 12),
            st.none() | st.integers(0, 300),
            st.none() | st.integers(0, 99),
        ),
        min_size=3,
        max_size=3,
    ),
    actions=st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 60), st.integers(0, 20), st.none() | st.integers(0, 9)), max_size=50
    ),
)
def test_a_call_is_charged_to_all_its_accounts_or_to_none_and_none_passes_its_limit(
    limits: list[BudgetSettings], actions: list[tuple[int, int, int, int | None]]
) -> None:
    """Two judges with an account each, and the campaign's for both."""
    shared, *own = (BudgetAccount(f"the budget {n}", budget) for n, budget in enumerate(limits))
    budget_views = [BudgetView([shared, account]) for account in own]
    open_: list[tuple[int, Amount]] = []
    for judge, worst, tokens, tenth in actions:
        if open_ and tenth is not None:
            whose, reservation = open_.pop(0)
            taken = Amount(1, reservation.money * tenth // 10, reservation.tokens * tenth // 10)
            budget_views[whose].settle(reservation, taken)
        before = [one.reserved for one in (shared, *own)]
        try:
            budget_views[judge].reserve(Amount(1, worst, tokens))
            open_.append((judge, Amount(1, worst, tokens)))
        except BudgetReachedError:
            assert before == [one.reserved for one in (shared, *own)]
        for account, budget in zip((shared, *own), limits, strict=True):
            assert budget.calls is None or account.taken(UNITS["calls"]) <= budget.calls
            assert budget.money is None or account.used.money + account.reserved.money <= budget.money
            assert budget.tokens is None or account.used.tokens + account.reserved.tokens <= budget.tokens
        assert shared.taken(UNITS["calls"]) == sum(one.taken(UNITS["calls"]) for one in own)
        assert shared.used.money + shared.reserved.money == sum(one.used.money + one.reserved.money for one in own)


def test_the_sentence_says_whose_budget_and_which_limit() -> None:
    budget_view = BudgetView(
        [
            BudgetAccount("the budget", BudgetSettings()),
            BudgetAccount("the budget of judge 'j'", BudgetSettings(tokens=1_000), Amount(0, 0, 950)),
        ]
    )
    with pytest.raises(
        BudgetReachedError, match=r"the budget of judge 'j' of 1,000 tokens .* 950 used, 0 reserved, up to 60"
    ):
        budget_view.reserve(Amount(1, 0, 60))


def test_shares_of_the_money_are_passed_once_and_those_of_earlier_runs_not_again() -> None:
    one = One(BudgetSettings(money=100), spent=50)
    marks = BudgetMarks(one.account)
    assert marks.passed() == []
    one.reserve(40)
    assert marks.passed() == [], "what is reserved is not spent"
    one.budget_view.settle(Amount(1, 40, 0), Amount(1, 30, 0))
    assert marks.passed() == [80]
    assert marks.passed() == []
    one.reserve(20)
    one.budget_view.settle(Amount(1, 20, 0), Amount(1, 20, 0))
    assert marks.passed() == [100]
    assert BudgetMarks(One(BudgetSettings(calls=3)).account).passed() == []
