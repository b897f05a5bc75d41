"""The monitor of rate-limit responses: what raises the alarm, in whichever order calls end."""

from __future__ import annotations

from random import Random

import pytest

from venire.orchestrator.lanes.monitor import RateLimitMonitor


def calls_until_alarm(share: float, most: int, *, by_end: bool = False, seed: int = 1) -> int | None:
    """How many calls, each ending before the next is sent, until the alarm; None: it was not raised."""
    monitor, random = RateLimitMonitor(), Random(seed)
    monitor.by_end = by_end
    for number in range(1, most + 1):
        if random.random() >= share:
            monitor.answered()
        elif monitor.refused(number):
            return number
    return None


@pytest.mark.parametrize("by_end", [False, True])
def test_a_share_within_what_is_tolerated_hardly_ever_raises_the_alarm(by_end: bool) -> None:
    early = [calls_until_alarm(0.01, 5_000, by_end=by_end, seed=seed) for seed in range(40)]
    assert sum(one is not None for one in early) <= 4


@pytest.mark.parametrize("by_end", [False, True])
@pytest.mark.parametrize(("share", "at_most"), [(1.0, 6), (0.5, 40), (0.2, 120), (0.1, 300)])
def test_a_high_share_raises_it_soon(share: float, at_most: int, by_end: bool) -> None:
    found = [calls_until_alarm(share, 10_000, by_end=by_end, seed=seed) for seed in range(20)]
    assert all(one is not None and one <= at_most for one in found)


def test_refusals_that_come_before_any_answer_are_measured_in_calls_sent() -> None:
    """Of 1,000 calls sent at once one in fifty is refused within moments; the answers take minutes."""
    monitor = RateLimitMonitor()
    assert not any(monitor.refused(number) for number in range(50, 1_001, 50))
    assert not monitor.nothing_passes


def test_a_share_once_known_as_usual_raises_no_alarm() -> None:
    monitor, random = RateLimitMonitor(), Random(3)
    monitor.learn(50, 1_000)
    alarms = 0
    for number in range(1, 5_000):
        if random.random() < 0.05:
            alarms += monitor.refused(number)
        else:
            monitor.answered()
    assert alarms == 0
    assert monitor.background == pytest.approx(0.05, abs=0.03)


def test_calls_sent_before_the_rate_was_changed_do_not_count() -> None:
    monitor = RateLimitMonitor()
    monitor.begin(100)
    assert [monitor.counts(number) for number in (99, 100, 101)] == [False, False, True]
    monitor.refused(101)
    assert monitor.measured(110) == (1, 10)


@pytest.mark.parametrize("by_end", [False, True])
def test_nothing_passes_once_the_latest_calls_were_all_refused(by_end: bool) -> None:
    monitor = RateLimitMonitor()
    monitor.by_end = by_end
    for _ in range(20):
        monitor.answered()
    seen = []
    for number in range(21, 29):
        monitor.refused(number)
        seen.append(monitor.nothing_passes)
    assert seen == [False] * 7 + [True]
    monitor.answered()
    monitor.refused(60)
    assert not monitor.nothing_passes


def test_refusals_in_another_order_than_sent_are_found_as_well() -> None:
    """All of 40 calls in flight are refused, as the network shuffles them."""
    monitor, numbers = RateLimitMonitor(), list(range(1, 41))
    Random(2).shuffle(numbers)
    assert any((monitor.refused(number), monitor.nothing_passes)[1] for number in numbers)


def test_the_background_is_a_mean_over_the_latest_hundreds_of_calls() -> None:
    monitor = RateLimitMonitor()
    for _ in range(100):
        monitor.learn(10, 100)
    assert monitor.background == pytest.approx(0.1, abs=1e-3)
    monitor.learn(0, 5_000)
    assert monitor.background == 0.0


def test_counts_of_refused_calls_go_by_number() -> None:
    monitor = RateLimitMonitor()
    for number in (3, 5, 9):
        monitor.refused(number)
    assert [monitor.refused_after(number) for number in (0, 3, 8, 9)] == [3, 2, 1, 0]
