"""What litellm makes of the vendors' documented answers; run by `test_litellm.py` in a process of its own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp.connector
import pytest
from aiohttp.abc import AbstractResolver

from venire.arena.errors import CallError, Fault
from venire.arena.records import Reply
from venire.judges.providers import PROVIDERS, Endpoint

PREFIXES = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "fireworks": "fireworks_ai",
    "gemini": "gemini",
    "groq": "groq",
    "mistral": "mistral",
    "openai": "openai",
    "openrouter": "openrouter",
    "together": "together_ai",
    "vllm": "hosted_vllm",
    "xai": "xai",
}
FILES = {name: json.loads((Path(__file__).parent / "vendors" / f"{name}.json").read_bytes()) for name in PREFIXES}
# What litellm makes of an answer in its own way: it needs a field that the page leaves out, calls every finish that it
# does not know a stop, puts thoughts on lines of their own, and its prefix before the model that served.
OWN_WAY = {
    "anthropic: context window full",
    "anthropic: refused",
    "anthropic: truncated",
    "fireworks: answered",
    "mistral: answered with its thoughts",
    "mistral: broke off",
    "mistral: truncated",
}
ANSWERS = [
    pytest.param(name, answer, id=f"{name}: {answer['name']}")
    for name, vendor in FILES.items()
    for answer in vendor["answers"]
    if f"{name}: {answer['name']}" not in OWN_WAY
]


class Loopback(AbstractResolver):
    """Every host is this machine."""

    async def resolve(self, host, port=0, family=0):
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 0, "flags": 0}]

    async def close(self):
        pass


@pytest.mark.parametrize(("name", "answer"), ANSWERS)
def test_litellm_and_the_native_adapter_understand_a_vendors_answer_alike(
    serving, saying, question, key, monkeypatch, name, answer
):
    """Two independent readings of one documented answer come to the same."""
    monkeypatch.setattr(aiohttp.connector, "DefaultResolver", lambda *args, **kwargs: Loopback())
    home = urlsplit(FILES[name]["base_url"])
    path = "" if name == "anthropic" else home.path

    async def call():
        async with serving(saying(answer["body"], answer["status"], answer.get("headers"))) as vendor:
            address = f"http://{home.hostname}:{urlsplit(vendor.url).port}{path}"
            provider = PROVIDERS["litellm"].open(Endpoint(address, key, 30.0, 4))
            body = provider.encode(f"{PREFIXES[name]}/{FILES[name]['model']}", question)
            try:
                return await provider.send(body, "step-1"), vendor
            except CallError as error:
                return error, vendor
            finally:
                await provider.close()

    came, vendor = asyncio.run(call())
    assert vendor.paths == [FILES[name]["request"]["path"]]
    if isinstance(came, Reply):
        expected = {field: value for field, value in answer["reply"].items() if field != "written_tokens"}
        assert json.loads(json.dumps({field: getattr(came, field) for field in expected})) == expected
    else:
        expected = answer["error"]
        assert (came.fault, came.retry_after) == (Fault[expected["fault"]], expected.get("retry_after"))
