"""Campaign records: what tokens cost, with a provider's cache and without, and what follows from what was written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from venire.arena.campaigns import PhaseSettings, PlanSettings, StopSettings, TokenPrice

PLAIN = TokenPrice(1_000_000, 10_000_000)
CACHING = TokenPrice(1_000_000, 10_000_000, cached=100_000, written=1_250_000)

tokens = st.integers(0, 10**7)
rates = st.integers(0, 10**12)


def test_without_rates_of_its_own_a_cache_changes_nothing() -> None:
    assert PLAIN.cost(1_000, 10) == 1_100
    assert PLAIN.cost(1_000, 10, 600) == 1_100
    assert PLAIN.cost(1_000, 10, 600, 400) == 1_100


def test_what_was_read_from_a_cache_and_written_to_it_is_paid_at_its_own_rate() -> None:
    assert CACHING.cost(1_000, 10, 600, 0) == 400 + 60 + 100
    assert CACHING.cost(1_000, 10, 600, 300) == 100 + 375 + 60 + 100


def test_where_nobody_says_what_was_written_all_of_the_rest_may_have_been() -> None:
    assert CACHING.cost(1_000, 10, 600) == CACHING.cost(1_000, 10, 600, 400) == 500 + 60 + 100


def test_the_cost_of_tokens_alone_assumes_no_cached_token() -> None:
    assert CACHING.cost(1_000, 10) == 1_250 + 100


def test_more_cached_or_written_tokens_than_there_are_do_not_make_a_call_cheaper_than_it_can_be() -> None:
    assert CACHING.cost(1_000, 0, 5_000, 5_000) == CACHING.cost(1_000, 0, 1_000, 0) == 100


@given(rates, rates, st.none() | rates, tokens, tokens, tokens, st.none() | tokens)
def test_no_call_costs_more_than_its_tokens_alone(
    given_rate: int, output: int, written: int | None, count: int, out: int, cached: int, wrote: int | None
) -> None:
    price = TokenPrice(given_rate, output, given_rate // 2, written)
    assert price.cost(count, out, cached, wrote) <= price.cost(count, out)


def test_a_round_is_no_larger_than_what_is_left_of_its_phase_and_of_the_rule_for_battles() -> None:
    phase = PhaseSettings("information", battles=250, round=100)
    assert [PlanSettings((phase,)).round_size(phase, planned) for planned in (0, 100, 200)] == [100, 100, 50]
    stopping = PlanSettings((phase,), stop=StopSettings(battles=130))
    assert [stopping.round_size(phase, done, done) for done in (0, 100, 130)] == [100, 30, 1]


def test_a_phase_that_needs_to_see_no_verdict_is_planned_at_once() -> None:
    phase = PhaseSettings("balanced", battles=250, round=100)
    assert PlanSettings((phase,)).round_size(phase) == 250
    assert PlanSettings((phase,), stop=StopSettings(half_width=30.0)).round_size(phase) == 100
