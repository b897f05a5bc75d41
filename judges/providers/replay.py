"""Answers that were given elsewhere: a provider that asks nobody and looks up what is on record."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson

from venire.arena.campaigns import Limits
from venire.arena.errors import CallError, Fault
from venire.arena.records import Reply, Request

REPLAY = "replay"
"""The provider's name in a campaign file; a judge that it answers for has the origin `recorded`."""


class ReplayProvider:
    """Answers from recorded texts, by the key of the trial, which is what a call's idempotency key begins with."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.on_limits: Callable[[Limits, float], None] | None = None
        self._texts = texts

    def limits_key(self, model: str) -> tuple[str, ...]:
        """Nobody's account: a judge's records are shared with nobody."""
        return (REPLAY, "", model)

    def encode(self, model: str, request: Request) -> bytes:
        """What would have to be sent; of recorded judgments the messages are not known, and there are none."""
        return orjson.dumps({"model": model, "messages": [dict(message) for message in request.messages]})

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        """The recorded reply of a trial's first step, at no cost; raises CallError where there is none."""
        trial, _, step = idempotency_key.partition("-")
        if step != "1" or trial not in self._texts:
            raise CallError("this trial has no such reply on record", Fault.BAD_REQUEST)
        return Reply(self._texts[trial], cost=0, served_model="")

    def is_structured(self, model: str) -> bool:
        """No schema holds what was written already."""
        return False

    async def check(self) -> str | None:
        """There is nothing to reach."""
        return None

    async def close(self) -> None:
        """There is nothing to let go."""
