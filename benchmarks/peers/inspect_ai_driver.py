"""inspect_ai: `eval` of a task that generates once a sample and looks for a text in the answer."""

from __future__ import annotations

import os
import tempfile

from common import Messages, drive
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

_SAYS = {"user": ChatMessageUser, "assistant": ChatMessageAssistant}


def _ask(url: str, calls: list[Messages], in_flight: int) -> int:
    os.environ |= {"BENCH_BASE_URL": url, "BENCH_API_KEY": "none"}
    samples = [
        Sample(id=n + 1, target="e", input=[_SAYS[one["role"]](content=one["content"]) for one in messages])
        for n, messages in enumerate(calls)
    ]
    with tempfile.TemporaryDirectory() as logs:
        log = evaluate(
            Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes()),
            model="openai-api/bench/judge",
            display="none",
            log_dir=logs,
            max_connections=in_flight,
            max_samples=in_flight,
            max_tokens=800,
            temperature=0.0,
            max_retries=0,
        )[0]
    return log.results.completed_samples if log.results else 0


if __name__ == "__main__":
    drive("inspect-ai", _ask)
