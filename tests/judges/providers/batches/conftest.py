"""Simulated judges behind a batch interface on loopback, and waves to ask them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from venire.arena.keys import fence
from venire.arena.records import Request
from venire.judges.providers import PROVIDERS, Endpoint
from venire.judges.providers.base import Provider
from venire.judges.providers.batches.base import BatchAnswer, BatchProvider, BatchState, BatchStatus
from venire.judges.safety.sanitize import enclose
from venire.simulation.answer_key import AnswerKey
from venire.simulation.batches import BatchFaults
from venire.simulation.server import JudgeServer

MODEL = "simulated/gpt-4-0613@1"
ELO = {"ant": 900.0, "bee": 1100.0}
TEXTS = {name: f"{name} says so, and so on." for name in ELO}


def question(repeat: int = 1) -> Request:
    """A trial of two completions that the simulated judges know."""
    shown = "\n\n".join(enclose(text, fence(text, b"constant")) for text in ("Say.", *TEXTS.values()))
    return Request(
        messages=({"role": "user", "content": f"Compare.\n{shown}\nGive reasons."},), max_tokens=400, seed=repeat
    )


@dataclass
class Desk:
    """Simulated judges, the adapter under test, and a folder for waves."""

    server: JudgeServer
    provider: Provider
    batches: BatchProvider
    folder: Path

    def body(self, repeat: int = 1, model: str = MODEL) -> bytes:
        """The body that is sent for one repeat of the question."""
        return self.provider.encode(model, question(repeat))

    def wave(self, number: int, model: str = MODEL) -> Path:
        """A file of so many lines, `line-1` and on."""
        path = self.folder / f"wave-{number}.jsonl"
        lines = (self.batches.line(f"line-{place}", self.body(place, model)) for place in range(1, number + 1))
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    async def ended(self, batch: str) -> BatchStatus:
        """Ask until the batch is no longer running."""
        for _ in range(100):
            status = await self.batches.status(batch)
            if status.state is not BatchState.RUNNING:
                return status
        raise AssertionError("the batch never ended")

    async def answers(self, batch: str) -> list[BatchAnswer]:
        """All its answers."""
        return [answer async for answer in self.batches.answers(batch)]

    async def run(self, number: int) -> tuple[BatchStatus, Sequence[BatchAnswer]]:
        """Submit a wave and take its answers in."""
        made = await self.batches.submit("wave-1", MODEL, self.wave(number))
        return await self.ended(made.id), await self.answers(made.id)


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Desk]]:
    """Opens simulated judges and a provider's batch interface to them; options are those of `BatchFaults`."""

    @asynccontextmanager
    async def open(
        name: str, *, key: str | None = None, server_key: str | None = None, seed: int = 0, **faults: Any
    ) -> AsyncIterator[Desk]:
        rows = [("q-1", "Say.", model, text) for model, text in TEXTS.items()]
        server = JudgeServer(
            AnswerKey(rows, ELO),
            speed=0,
            seed=seed,
            require_key=key if server_key is None else server_key,
            batch_faults=BatchFaults(**faults),
        )
        async with server:
            endpoint = Endpoint(server.base_url, key, 30.0, 4)
            entry = PROVIDERS[name]
            desk = Desk(server, entry.open(endpoint), entry.open_batches(endpoint), tmp_path)
            try:
                yield desk
            finally:
                await desk.batches.close()
                await desk.provider.close()

    return open


@pytest.fixture
def as_sent() -> Callable[[BatchStatus], BatchStatus]:
    """A status without what differs from run to run."""
    return lambda status: replace(status, created_at=None, expires_at=None)
