"""The yardstick: the same calls by bare aiohttp with uvloop and orjson, nothing kept. One measurement, one process.

`python benchmarks/yardstick.py BASE_URL CALLS_FILE CALLS IN_FLIGHT` prints what it saw as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop


@dataclass(slots=True)
class Told:
    """What was done so far."""

    sent: int = 0
    answered: int = 0
    most: int = 0


async def ask(session: aiohttp.ClientSession, url: str, messages: Iterator[Any], told: Told) -> None:
    """One worker: takes calls one after another until none is left."""
    for one in messages:
        told.sent += 1
        told.most = max(told.most, told.sent - told.answered)
        body = orjson.dumps({"model": "judge", "messages": one, "max_tokens": 800, "temperature": 0.0, "seed": 0})
        async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
            answer = orjson.loads(await response.read())
        assert answer["choices"][0]["message"]["content"]
        told.answered += 1


async def go(base_url: str, calls: list[Any], number: int, in_flight: int) -> dict[str, Any]:
    """All calls through so many workers."""
    told = Told()
    left = iter([calls[n % len(calls)] for n in range(number)])
    connector = aiohttp.TCPConnector(limit=in_flight)
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        cpu = time.process_time()
        await asyncio.gather(*(ask(session, f"{base_url}/chat/completions", left, told) for _ in range(in_flight)))
        return {"ended": time.time(), "cpu": time.process_time() - cpu, "calls": told.answered, "most_sent": told.most}


def main() -> None:
    """Measure once."""
    base_url, file, number, in_flight = sys.argv[1:]
    calls = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    found = uvloop.run(go(base_url, calls, int(number), int(in_flight)))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
