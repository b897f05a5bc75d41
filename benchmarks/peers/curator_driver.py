"""Bespoke Labs' curator: a class with `prompt` and `parse` over a list of rows, its own OpenAI client, no cache."""

from __future__ import annotations

from typing import Any

from bespokelabs import curator
from common import Messages, drive

_NO_LIMIT = 10**9


class _Judge(curator.LLM):  # type: ignore[misc]  # curator has no type hints
    def prompt(self, row: dict[str, Any]) -> Any:
        return row["messages"]

    def parse(self, row: dict[str, Any], response: str) -> dict[str, str]:
        return {"text": response}


def _ask(url: str, calls: list[Messages], in_flight: int) -> int:
    judge = _Judge(
        model_name="judge",
        backend="openai",
        generation_params={"temperature": 0.0, "max_tokens": 800},
        backend_params={
            "base_url": url,
            "max_requests_per_minute": _NO_LIMIT,
            "max_tokens_per_minute": _NO_LIMIT,
            "max_concurrent_requests": in_flight,
            "max_retries": 0,
        },
    )
    return sum(1 for text in judge([{"messages": one} for one in calls]).dataset["text"] if text)


if __name__ == "__main__":
    drive("bespokelabs-curator", _ask)
