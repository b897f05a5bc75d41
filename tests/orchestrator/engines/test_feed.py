"""The feed hands every trial out once, in chunks that grow only where a lane is quick and its texts are short."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from venire.arena.records import Completion, Instruction
from venire.orchestrator.engines.feed import Feed
from venire.storage.plans.trial_states import PendingTrial, PendingTrials
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRIALS = 12_000


def chunks(
    monkeypatch: pytest.MonkeyPatch, *, seconds: float, characters: int, respondents: int = 1
) -> tuple[list[int], list[int]]:
    """Sizes of the chunks of a lane that takes so many seconds for one, and the trials that were handed out."""
    read: list[int] = []
    now = 1000.0
    text = "x" * characters

    def load(store: Store, trials: NDArray[np.int64]) -> list[PendingTrial]:
        nonlocal now
        now += seconds
        read.append(len(trials))
        return [pending(number, text) for number in trials.tolist()]

    monkeypatch.setattr("venire.orchestrator.engines.feed.load", load)
    monkeypatch.setattr("venire.orchestrator.engines.feed.monotonic", lambda: now)
    left = PendingTrials(np.arange(1, TRIALS + 1), np.arange(TRIALS) % respondents)

    async def take_all() -> list[int]:
        feed, taken = Feed(cast("Store", None), left, {1}), []
        while (one := await feed.take()) is not None:
            taken.append(one.id)
        return taken

    return read, asyncio.run(take_all())


def pending(number: int, text: str) -> PendingTrial:
    shown = (Completion("a", "q", text), Completion("b", "q", text))
    return PendingTrial(number, b"", 0, False, 1, Instruction("q", ("?",)), 1, shown, (), ())


def test_chunks_grow_while_a_lane_uses_them_up_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    read, taken = chunks(monkeypatch, seconds=0.1, characters=10)
    assert read[:5] == [500, 500, 1000, 2000, 2000]
    assert taken == list(range(1, TRIALS + 1))


def test_a_slow_lane_and_one_with_long_texts_hold_little(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, characters in ((60.0, 10), (0.1, 20_000)):
        read, taken = chunks(monkeypatch, seconds=seconds, characters=characters)
        assert set(read) == {500}
        assert taken == list(range(1, TRIALS + 1))


def test_trials_of_a_respondent_that_is_left_out_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    _, taken = chunks(monkeypatch, seconds=0.1, characters=10, respondents=3)
    assert taken == [number for number in range(1, TRIALS + 1) if (number - 1) % 3 != 1]
