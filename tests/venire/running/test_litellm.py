"""litellm as a provider, in a process of its own, one for all: importing it takes seconds and warns."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from venire.simulation.faults import Faults
from venire.simulation.server import JudgeServer

Serve = Callable[..., AbstractContextManager[JudgeServer]]

SEND = """
import asyncio, json, sys
from venire.arena.errors import TransientError
from venire.arena.records import Request
from venire.judges.providers import PROVIDERS
from venire.judges.providers.base import Endpoint

async def go():
    provider = PROVIDERS["litellm"].open(Endpoint(sys.argv[1], None, 20.0, 1))
    request = Request(({"role": "user", "content": "Which?"},), 50, seed=1)
    body = provider.encode("openai/simulated/gpt-4-0613@1", request)
    try:
        await provider.send(body, "one-1")
    except TransientError as error:
        print(json.dumps([error.fault.name, error.status, error.retry_after]))
    print(json.dumps((await provider.send(body, "one-1")).served_model))
    await provider.close()

asyncio.run(go())

from venire.cli import main
sys.argv = ["venire", "run", sys.argv[2], "--yes"]
main()
"""


def test_a_campaign_through_litellm_is_planned_like_any_other(
    venire: Callable[..., Any], write_campaign: Callable[..., Path]
) -> None:
    """That litellm keeps to what a provider promises is held among the providers."""
    judge = '[[judge]]\nname = "j"\nmodel = "openai/m"\nprovider = "litellm"\nfree = true\n'
    judge += 'base_url = "http://127.0.0.1:9"\n'
    done = venire("plan", write_campaign(judges=judge, instructions=1), "--json")
    assert done.code == 0, done.err
    assert {row["judge"]: row["calls"] for row in done.json()["judges"]} == {"j": 60}


@pytest.mark.slow
def test_a_429_is_one_request_on_the_ledger_and_an_error_of_ours_and_a_campaign_runs_to_its_end(
    start: Callable[..., Any], serve: Serve, write_campaign: Callable[..., Path]
) -> None:
    drawn: list[str] = []

    class Once(Faults):
        def draw(self, seed: int, body_digest: str, asked: int) -> Any:
            drawn.append(body_digest)
            return "rate_limited" if len(drawn) == 1 else None

    with serve(faults=Once(retry_after_s=3.0)) as server:
        judge = (
            f'[[judge]]\nname = "j"\nmodel = "openai/simulated/gpt-4-0613@1"\nprovider = "litellm"\n'
            f'base_url = "{server.base_url}"\nfree = true\n'
        )
        campaign = write_campaign(judges=judge, instructions=1)
        process = start("-c", SEND, server.base_url, campaign)
        out, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
        assert [json.loads(line) for line in out.splitlines()[:2]] == [
            ["RATE_LIMITED", 429, 3.0],
            "simulated/gpt-4-0613@1",
        ]
        assert [(entry.key, entry.outcome) for entry in server.ledger.entries[:2]] == [
            ("one-1", "rate_limited"),
            ("one-1", "answered"),
        ]
        assert len(server.ledger.entries[2:]) == 15 * 2 * 2
