"""The yardsticks: the same calls by a bare client with uvloop and orjson, storing nothing. One run per process.

`python benchmarks/yardstick.py BASE_URL CALLS_FILE CALLS IN_FLIGHT aiohttp|ry` prints its measurements as JSON. aiohttp
is the usual choice for such a loop; ry is the transport of the engine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import ry
import uvloop

_SECONDS = 120
Post = Callable[[bytes], Awaitable[bytes]]


@dataclass(slots=True)
class Told:
    """Progress so far."""

    sent: int = 0
    answered: int = 0
    most: int = 0


@contextlib.asynccontextmanager
async def by_aiohttp(url: str, in_flight: int) -> AsyncIterator[Post]:
    """Posts by aiohttp."""
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=in_flight),
        timeout=aiohttp.ClientTimeout(total=_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:

        async def post(body: bytes) -> bytes:
            async with session.post(url, data=body, headers=headers) as response:
                return await response.read()

        yield post


@contextlib.asynccontextmanager
async def by_ry(url: str, in_flight: int) -> AsyncIterator[Post]:
    """Posts by reqwest, through the bindings of ry."""
    client = ry.Client(
        headers={"Content-Type": "application/json"},
        timeout=ry.Duration(_SECONDS),
        http1_only=True,
        hickory_dns=False,
        pool_max_idle_per_host=in_flight,
    )

    async def post(body: bytes) -> bytes:
        response = await client.post(url, body=body)
        return bytes(await response.bytes())

    yield post


CLIENTS = {"aiohttp": by_aiohttp, "ry": by_ry}


async def ask(post: Post, messages: Iterator[Any], told: Told) -> None:
    """One worker: takes calls sequentially until none is left."""
    for one in messages:
        told.sent += 1
        told.most = max(told.most, told.sent - told.answered)
        body = orjson.dumps({"model": "judge", "messages": one, "max_tokens": 800, "temperature": 0.0, "seed": 0})
        answer = orjson.loads(await post(body))
        assert answer["choices"][0]["message"]["content"]
        told.answered += 1


async def go(given: argparse.Namespace, calls: list[Any]) -> dict[str, Any]:
    """Send all calls through the given number of workers."""
    told = Told()
    left = iter([calls[n % len(calls)] for n in range(given.calls)])
    async with CLIENTS[given.client](f"{given.base_url}/chat/completions", given.in_flight) as post:
        cpu = time.process_time()
        await asyncio.gather(*(ask(post, left, told) for _ in range(given.in_flight)))
        return {"ended": time.time(), "cpu": time.process_time() - cpu, "calls": told.answered, "most_sent": told.most}


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("base_url")
    parser.add_argument("file", type=Path)
    parser.add_argument("calls", type=int)
    parser.add_argument("in_flight", type=int)
    parser.add_argument("client", choices=CLIENTS)
    given = parser.parse_args()
    calls = [json.loads(line) for line in given.file.read_text(encoding="utf-8").splitlines()]
    found = uvloop.run(go(given, calls))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
