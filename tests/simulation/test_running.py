"""Starting and stopping the simulated provider: nothing waits that need not, nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from venire.arena.errors import InputError
from venire.simulation.server import serve_in_thread

STEADY = "simulated/gpt-4-0613@1"

Ask = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("speed", [-1.0, float("nan")])
def test_a_speed_below_zero_is_refused(speed: float, make_server: Any) -> None:
    with pytest.raises(InputError, match="speed"):
        make_server(speed=speed)


@pytest.mark.parametrize("speed", [0, float("inf")])
def test_speed_zero_or_infinite_waits_for_nothing(
    speed: float, field: Any, ask: Ask, talk: Any, make_server: Any
) -> None:
    async def script(client: Any) -> None:
        async with asyncio.timeout(5):
            assert (await client.chat(ask("simulated/gpt-4-0613@1", field.prompt("ant", "cat")))).status == 200

    talk(make_server(speed=speed), script)


def test_stopping_ends_what_is_in_flight_at_once(field: Any, ask: Ask, talk: Any, make_server: Any) -> None:
    arrived = asyncio.Event()

    async def script(client: Any) -> None:
        slow = asyncio.create_task(client.chat(ask(STEADY, field.prompt("ant", "cat"))))
        await arrived.wait()
        began = time.monotonic()
        await client.server.stop()
        (lost,) = await asyncio.gather(slow, return_exceptions=True)
        assert isinstance(lost, aiohttp.ClientError)
        assert time.monotonic() - began < 2
        assert client.server.ledger.entries[0].answered is None

    talk(make_server(speed=1e-3, on_request=lambda _: arrived.set()), script)


def test_a_thread_serves_synchronous_code_and_leaves_nothing_behind(field: Any, ask: Ask, make_server: Any) -> None:
    threads = threading.active_count()
    with serve_in_thread(make_server()) as server:
        sent = json.dumps(ask(STEADY, field.prompt("ant", "cat"), "verdict")).encode()
        with urllib.request.urlopen(f"{server.base_url}/chat/completions", sent) as response:
            assert json.load(response)["choices"][0]["message"]["content"] == "2"
        port = int(server.base_url.split(":")[2].split("/")[0])
    assert threading.active_count() == threads
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.base_url


def test_a_port_that_is_taken_is_reported_by_both_ways_of_starting(make_server: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=str(port)):
            asyncio.run(make_server(port=port).start())
        with pytest.raises(InputError, match=str(port)), serve_in_thread(make_server(port=port)):
            raise AssertionError("the server started")
