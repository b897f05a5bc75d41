"""Time for planning a round of a large plan: 1,000 battles among 200 models and 1,000 instructions, in a store.

`python -m benchmarks.planning [ROUNDS]` prints CPU and wall-clock seconds for the first round, which reads the texts to
judge, and for later rounds, with fixed ratings instead of those from verdicts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from venire.arena.battles import Battles
from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import (
    CampaignSettings,
    DataSettings,
    JudgeSettings,
    LaneSettings,
    PhaseSettings,
    PlanSettings,
    RouteSettings,
    TokenPrice,
)
from venire.arena.planning import Estimates, InterimAnalysis
from venire.arena.records import Completion, Instruction
from venire.orchestrator.planning.plan import plan_campaign
from venire.orchestrator.planning.rounds import Rounds
from venire.storage.store.opening import open_store
from venire.storage.transfer import importing

MODELS, INSTRUCTIONS, BATTLES = 200, 1_000, 1_000

T = TypeVar("T")


class _Known:
    """Ratings that are known without verdicts, and an interim analysis that never stops."""

    def __init__(self, models: tuple[str, ...]) -> None:
        self.models = models

    def estimate(self, battles: Battles) -> Estimates:
        spread = np.linspace(-2.0, 2.0, len(self.models))
        return Estimates(self.models, spread, np.full(len(self.models), 0.3))

    def analyse(self, battles: Battles, nano_usd: int) -> InterimAnalysis:
        return InterimAnalysis(0, 0, 0, nano_usd)


def _timed(what: str, work: Callable[[], T]) -> T:
    wall, busy = time.perf_counter(), time.process_time()
    found = work()
    print(f"{what}: {time.process_time() - busy:.2f} s of processor, {time.perf_counter() - wall:.2f} s")  # noqa: T201
    return found


def main(rounds: int) -> None:
    """Plan this many rounds after the first."""
    models = tuple(f"m{n:03d}" for n in range(MODELS))
    names = [f"i{n:04d}" for n in range(INSTRUCTIONS)]
    rng = np.random.default_rng(1)
    lane = LaneSettings((RouteSettings("openai", "http://127.0.0.1:9/v1", None, "judge"),))
    judge = JudgeSettings(
        "judge", "judge", "binary", {"max_tokens": "50", "repair": "1"}, lane, TokenPrice(10**9, 10**9)
    )
    phases = (PhaseSettings("information", "plan", round=BATTLES),)
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "s.duckdb") as store:
        importing.add(store, [Instruction(name, (f"Question {name}?",)) for name in names])
        texts = (Completion(m, i, f"{m} {i} " + "x" * int(rng.integers(400))) for m in models for i in names)
        importing.add(store, texts)
        asked = CampaignSettings(
            "c",
            1,
            Path("c.toml"),
            store.path,
            DataSettings(),
            PlanSettings(phases),
            (judge,),
            BudgetSettings(10**9),
            "",
            "c",
        )
        prices = {"judge": TokenPrice(10**9, 10**9)}
        planned = _timed("first round", lambda: plan_campaign(store, asked, prices=prices))
        more = Rounds(store, asked, planned, _Known(models), prices)
        for number in range(rounds):
            found = _timed(f"round {number + 2}", more)
            assert found is not None
            assert found.rounds[-1].design.size == BATTLES


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
