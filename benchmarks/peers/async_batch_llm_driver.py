"""async-batch-llm: its one-line entry point over its client for endpoints that speak OpenAI."""

from __future__ import annotations

import asyncio

from async_batch_llm import llm, process_prompts
from common import Messages, drive


async def _go(url: str, calls: list[Messages], in_flight: int) -> int:
    judge = llm("openai-compatible:judge", api_key="none", base_url=url)
    found = await process_prompts(judge, [(str(n), one) for n, one in enumerate(calls)], concurrency=in_flight)
    return sum(1 for one in found.results if one.success)


if __name__ == "__main__":
    drive("async-batch-llm", lambda url, calls, in_flight: asyncio.run(_go(url, calls, in_flight)))
