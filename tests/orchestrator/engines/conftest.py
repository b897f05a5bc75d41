"""Campaigns that actors of this process ask: the engine of a cluster without the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.demo import DATA
from venire.orchestrator.engines.asker import Asker
from venire.orchestrator.engines.messages import Begun, Down, LinkLostError, Setup, Up
from venire.orchestrator.engines.remote import RemoteEngine


class HereLink:
    """The way to an actor in this event loop: it can be lost, held up, and killed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asker = Asker()
        self.passes = asyncio.Event()
        self.passes.set()
        self.kills = self.exchanges = 0
        self._lost = asyncio.Event()

    async def begin(self, lease: int, setup: Setup | None) -> Begun:
        await self.passes.wait()
        return await self._or_lost(self.asker.begin(lease, setup))

    async def exchange(self, down: Down) -> Up:
        self.exchanges += 1
        await self.passes.wait()
        up = await self._or_lost(self.asker.exchange(down))
        await self.passes.wait()
        return up

    async def _or_lost(self, answer: Any) -> Any:
        work, lost = asyncio.ensure_future(answer), asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait((work, lost), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise LinkLostError("its process has ended")
            return work.result()
        finally:
            work.cancel()
            lost.cancel()

    async def kill(self) -> None:
        self.lose()

    def lose(self) -> None:
        """End the actor as a kill would: nothing that it had is heard of again, and another one takes its place."""
        self.kills += 1
        before, self.asker = self.asker, Asker()
        for session in {before._session, *before._leaving} - {None}:
            assert session is not None
            session.ended.cancel()
        self._lost.set()
        self._lost = asyncio.Event()


@dataclass
class HereCrew:
    """So many actors of this process."""

    number: int = 3
    lease_seconds: float = 5.0
    links: list[HereLink] = field(default_factory=list)
    made: list[RemoteEngine] = field(default_factory=list)

    @property
    def description(self) -> str:
        return f"{self.number} actors here"

    @property
    def options(self) -> str:
        return f"--engine ray --actors {self.number}"

    @property
    def under_way(self) -> frozenset[tuple[int, int, int]]:
        return frozenset()

    def engine(self, store_id: bytes, campaign: Any, open_providers: Any, **named: Any) -> RemoteEngine:
        self.links = [HereLink(str(number)) for number in range(self.number)]
        engine = RemoteEngine(self.links, campaign, open_providers, lease_seconds=self.lease_seconds, **named)
        self.made.append(engine)
        return engine


@pytest.fixture
def write(demo_is_imported: None, tmp_path: Path) -> Callable[..., Path]:
    """Writes a campaign of one simulated judge on the demo's texts: 15 matchups, both orders."""

    def written(name: str = "campaign", *, instructions: int = 2, judge: str = "", more: str = "") -> Path:
        path = tmp_path / f"{name}.toml"
        path.write_text(
            f"""
seed = 7
{DATA}
[plan]
policy = "all-pairs"
instructions = {instructions}
[[judge]]
name = "judge"
model = "simulated/gpt-4-0613@1"
price = {{ input = 1.0, output = 4.0 }}
concurrency = 8
{judge}
{more}
""",
            encoding="utf-8",
        )
        return path

    return written
