"""A circuit opens after repeated failure, lets one probe pass at a time, and closes when anybody answers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.clock import VirtualClock
from venire.orchestrator.lanes.circuit import FAILURES, Circuit


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def circuit(clock: VirtualClock) -> Circuit:
    return Circuit(clock)


def fail(circuit: Circuit, times: int) -> list[float | None]:
    return [circuit.failed(probe=0) for _ in range(times)]


def probe(circuit: Circuit, clock: VirtualClock) -> int:
    clock.advance(circuit.opens_in())
    return circuit.enter()


def test_it_opens_at_the_fourth_failure_without_an_answer_between(clock: VirtualClock, circuit: Circuit) -> None:
    assert fail(circuit, FAILURES - 1) == [None] * (FAILURES - 1)
    assert not circuit.answered()
    assert fail(circuit, FAILURES - 1) == [None] * (FAILURES - 1)
    assert circuit.opens_in() == 0.0
    assert not circuit.is_open
    clock.advance(30)
    (wait,) = fail(circuit, 1)
    assert wait is not None
    assert 0.75 <= wait <= 1.0
    assert circuit.is_open
    assert circuit.opened_at == 30
    assert circuit.opens_in() == pytest.approx(wait)


def test_one_probe_passes_at_a_time_and_another_call_is_none(clock: VirtualClock, circuit: Circuit) -> None:
    assert circuit.enter() == 0
    fail(circuit, FAILURES)
    assert circuit.opens_in() > 0
    assert probe(circuit, clock) == 1
    assert circuit.opens_in() == math.inf
    circuit.failed(probe=1)
    assert probe(circuit, clock) == 2


def test_waits_between_probes_double_up_to_a_minute_and_are_shortened_by_a_quarter_at_most(
    clock: VirtualClock, circuit: Circuit
) -> None:
    waits = fail(circuit, FAILURES)[-1:]
    for _ in range(8):
        waits.append(circuit.failed(probe=probe(circuit, clock)))
    for wait, full in zip(waits, (1, 2, 4, 8, 16, 32, 60, 60, 60), strict=True):
        assert wait is not None
        assert 0.75 * full <= wait <= full
    assert len({wait / 60 for wait in waits[-3:] if wait is not None}) == 3, "drawn each time"


def test_failures_of_calls_that_were_on_their_way_lengthen_nothing(clock: VirtualClock, circuit: Circuit) -> None:
    fail(circuit, FAILURES)
    before, since = circuit.opens_in(), circuit.opened_at
    assert fail(circuit, 10) == [None] * 10
    assert (circuit.opens_in(), circuit.opened_at) == (before, since)
    number = probe(circuit, clock)
    assert fail(circuit, 10) == [None] * 10
    assert circuit.opens_in() == math.inf, "the probe is still on its way"
    wait = circuit.failed(probe=number)
    assert wait is not None
    assert wait <= 2


def test_an_answer_closes_it_whoever_got_it_and_waits_begin_anew(clock: VirtualClock, circuit: Circuit) -> None:
    for _ in range(2):
        fail(circuit, FAILURES)
        circuit.failed(probe=probe(circuit, clock))
        assert circuit.answered()
        assert not circuit.is_open
        assert circuit.opens_in() == 0.0
        assert circuit.failures == 0
        assert circuit.enter() == 0
        assert not circuit.answered()
    wait = fail(circuit, FAILURES)[-1]
    assert wait is not None
    assert wait <= 1


def test_after_a_probe_that_was_given_up_another_one_may_go_at_once(clock: VirtualClock, circuit: Circuit) -> None:
    fail(circuit, FAILURES)
    number = probe(circuit, clock)
    circuit.abandoned(probe=0)
    assert circuit.opens_in() == math.inf, "a call that was no probe leaves the probe alone"
    circuit.abandoned(probe=number)
    assert circuit.opens_in() == 0.0
    assert circuit.is_open


def test_a_probe_of_an_earlier_outage_is_a_call_like_others(clock: VirtualClock, circuit: Circuit) -> None:
    fail(circuit, FAILURES)
    old = probe(circuit, clock)
    circuit.answered()
    fail(circuit, FAILURES)
    new = probe(circuit, clock)
    assert circuit.failed(probe=old) is None
    circuit.abandoned(probe=old)
    assert circuit.opens_in() == math.inf, "the new probe is still on its way"
    assert circuit.failed(probe=new) is not None


@given(st.lists(st.tuples(st.sampled_from(["pass", "answer", "fail", "leave"]), st.integers(0, 20)), max_size=80))
def test_whatever_happens_one_probe_is_on_its_way_at_most_and_a_next_one_comes_within_a_minute(
    moves: list[tuple[str, int]],
) -> None:
    clock = VirtualClock()
    circuit = Circuit(clock)
    under_way: list[int] = []
    probes: set[int] = set()
    """Under way since the circuit opened last."""
    for move, which in moves:
        if move == "pass":
            if math.isfinite(circuit.opens_in()):
                clock.advance(circuit.opens_in())
                number = circuit.enter()
                under_way.append(number)
                assert not (number and probes), "one at a time"
                probes |= {number} - {0}
        elif under_way:
            number = under_way.pop(which % len(under_way))
            probes -= {number}
            if move == "answer":
                circuit.answered()
                probes = set()
            elif move == "fail":
                circuit.failed(probe=number)
            else:
                circuit.abandoned(probe=number)
        assert math.isinf(circuit.opens_in()) == bool(probes)
        assert probes or circuit.opens_in() <= 60
