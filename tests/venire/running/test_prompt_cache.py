"""A campaign against a provider that really caches prompts: the order asked decides what is read from there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venire.configs.loading import load_campaign
from venire.session import Session
from venire.simulation.prefix_cache import CacheSize
from venire.simulation.server import JudgeServer
from venire.storage.plans import trial_states
from venire.storage.plans.trial_states import PendingTrials

Write = Callable[..., Path]
Serve = Callable[..., AbstractContextManager[JudgeServer]]

JUDGE = """
[[judge]]
name = "j"
model = "simulated/gpt-4-0613@1"
base_url = "{url}"
concurrency = 1
price = {{ input = 1.0, output = 4.0, cached = 0.1 }}
"""
READ = "select sum(cached_tokens)::bigint, sum(input_tokens)::bigint from attempt where step = 1"


def shuffled(left: PendingTrials) -> PendingTrials:
    order = np.random.default_rng(1).permutation(len(left.trials))
    return PendingTrials(left.trials[order], left.respondents[order])


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [1, 2])
def test_the_plan_s_order_reads_more_from_a_small_cache_than_a_random_one(
    write_campaign: Write, serve: Serve, monkeypatch: pytest.MonkeyPatch, repeats: int
) -> None:
    pending, shares = trial_states.pending_trials, []
    for number, order in enumerate((lambda left: left, shuffled)):
        monkeypatch.setattr(trial_states, "pending_trials", lambda *of, order=order: order(pending(*of)))
        with serve(cache=CacheSize(60, 0)) as server:
            judge = JUDGE.format(url=server.base_url)
            path = write_campaign(name=f"{number}.toml", instructions=f"4\nrepeats = {repeats}", judges=judge)
            with Session(load_campaign(path)) as session:
                assert session.run(environ={}).progress.missing == 0
                ((cached, whole),) = session.store.connection.execute(READ).fetchall()
        shares.append(cached / whole)
    planned, random = shares
    assert planned > random + 0.05


def test_mock_provider_takes_the_size_of_its_cache(start: Callable[..., Any], write_campaign: Write) -> None:
    words = ("-m", "venire", "mock-provider", write_campaign(), "--cache-prompts", "100")
    process = start(*words)
    assert "base_url" in process.stdout.readline()
