"""Batches at the simulated provider: their states by a clock, their record, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import aiohttp
import orjson
import pytest

from venire.arena.errors import InputError
from venire.simulation.batches import BatchDesk, BatchFaults, BatchLine

NOW = datetime(2026, 11, 24, tzinfo=UTC)
LINES = [BatchLine(f"line-{number}", b"{}") for number in range(6)]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def desk_of(clock: Clock, seed: int = 0, pace: float = 1.0, **faults: Any) -> BatchDesk:
    def work(batch: Any, line: Any, outcome: str) -> tuple[int, bytes]:
        return (429, b"{}") if outcome == "failed" else (200, b"{}")

    return BatchDesk(BatchFaults(**faults), seed, work, clock=clock, pace=pace)


def test_a_batch_takes_its_seconds_a_third_in_each_state() -> None:
    clock = Clock()
    desk = desk_of(clock, seconds=30.0)
    batch = desk.make("openai", "wave-1", LINES, NOW)
    seen = []
    for clock.now in (0.0, 9.9, 15.0, 21.0, 30.0):
        desk.poll(batch)
        seen.append((batch.phase, len(batch.results)))
    assert seen == [("validating", 0), ("validating", 0), ("in_progress", 3), ("finalizing", 6), ("ended", 6)]


def test_pace_divides_the_seconds_and_none_at_all_end_a_batch_at_the_first_question() -> None:
    clock = Clock()
    quick, at_once = desk_of(clock, seconds=30.0, pace=0.1), desk_of(clock, seconds=30.0, pace=0.0)
    batches = [desk.make("openai", "wave-1", LINES, NOW) for desk in (quick, at_once)]
    clock.now = 1.5
    quick.poll(batches[0])
    at_once.poll(batches[1])
    assert [batch.phase for batch in batches] == ["in_progress", "ended"]


def test_every_line_is_answered_at_the_third_asking_at_the_latest() -> None:
    desk = desk_of(Clock(), failed=0.4, expired=0.3, lost=0.3)
    for _ in range(3):
        batch = desk.make("openai", "wave", LINES, NOW)
        desk.poll(batch)
    assert Counter(one.outcome for one in batch.results) == {"answered": 6}
    assert batch.phase == "ended"
    first = desk.batches[0]
    assert first.count("failed", "expired", "lost") == 6
    assert len(desk.delivered(first)) == 6 - first.count("lost")


def test_the_desk_knows_how_often_each_wave_was_made() -> None:
    desk = desk_of(Clock())
    desk.make("openai", "wave-1", LINES, NOW)
    desk.make("openai", "wave-2", LINES, NOW)
    desk.make("openai", "wave-1", LINES, NOW)
    assert desk.created == {"wave-1": 2, "wave-2": 1}
    desk.make("anthropic", "", LINES, NOW)
    assert desk.created[BatchDesk.digest([line.custom_id for line in reversed(LINES)])] == 1


@pytest.mark.parametrize("wrong", [{"failed": 1.1}, {"expired": -0.1}, {"polls": -1}, {"failed": 0.6, "lost": 0.6}])
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="must be 0 or more"):
        BatchFaults(**wrong)


def test_files_and_batches_that_openai_would_refuse(make_server: Callable[..., Any], talk: Callable[..., None]) -> None:
    async def script(client: Any) -> None:
        async def send(path: str, body: Any) -> tuple[int, dict[str, Any]]:
            data = body if isinstance(body, aiohttp.FormData) else orjson.dumps(body)
            async with client.session.post(client.server.base_url + path, data=data) as response:
                return response.status, await response.json()

        def form(purpose: str) -> aiohttp.FormData:
            data = aiohttp.FormData()
            data.add_field("purpose", purpose)
            data.add_field("file", b"", filename="wave.jsonl")
            return data

        assert (await send("/files", {}))[0] == 400
        assert "purpose must be batch" in (await send("/files", form("answers")))[1]["error"]["message"]
        status, file = await send("/files", form("batch"))
        assert (status, file["bytes"], file["filename"]) == (200, 0, "wave.jsonl")
        good = {"input_file_id": file["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"}
        for name, wrong in (("input_file_id", "file-9"), ("endpoint", "/v1/embeddings"), ("completion_window", "1h")):
            status, said = await send("/batches", {**good, name: wrong})
            assert (status, said["error"]["param"]) == (400, name)
        assert client.server.batches.batches == []
        _, made = await send("/batches", good)
        shown = (await client.get(f"/batches/{made['id']}")).json
        assert (shown["status"], shown["errors"]["data"][0]["code"]) == ("failed", "empty_file")
        assert (await send(f"/batches/{made['id']}/cancel", {}))[0] == 409
        ledger = client.server.base_url.removesuffix("/v1") + "/ledger"
        async with client.session.get(ledger) as response:
            assert sum((await response.json())["batches"].values()) == 1

    talk(make_server(), script)
