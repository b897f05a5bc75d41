"""litellm: `acompletion` in a bare loop, as in its documentation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import litellm
from common import Messages, drive


async def _worker(url: str, left: Iterator[Messages]) -> int:
    answered = 0
    for messages in left:
        reply = await litellm.acompletion(
            model="openai/judge",
            messages=messages,
            api_base=url,
            api_key="none",
            temperature=0.0,
            max_tokens=800,
            max_retries=0,
        )
        answered += bool(reply.choices[0].message.content)
    return answered


async def _go(url: str, calls: list[Messages], in_flight: int) -> int:
    left = iter(calls)
    return sum(await asyncio.gather(*(_worker(url, left) for _ in range(in_flight))))


if __name__ == "__main__":
    drive("litellm", lambda url, calls, in_flight: asyncio.run(_go(url, calls, in_flight)))
