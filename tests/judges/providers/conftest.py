"""A vendor on loopback, and the provider under test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.servers import site
from venire.arena.records import Request
from venire.judges.providers import PROVIDERS, Endpoint, Provider

KEY = "sk-proj-Zx81/Qf+7mW_2d"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Vendor:
    """What a server heard: one entry a request, in order."""

    url: str = ""
    paths: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    peers: list[object] = field(default_factory=list)

    def body(self) -> Any:
        """The last body, parsed."""
        return orjson.loads(self.bodies[-1])


@asynccontextmanager
async def _serving(answer: Answer) -> AsyncIterator[Vendor]:
    vendor = Vendor()

    async def handle(request: web.Request) -> web.StreamResponse:
        vendor.paths.append(request.path)
        vendor.queries.append(request.query_string)
        vendor.headers.append({name.lower(): value for name, value in request.headers.items()})
        vendor.bodies.append(await request.read())
        vendor.peers.append(request.transport and request.transport.get_extra_info("peername"))
        return await answer(request)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    async with site(application, handler_cancellation=True) as address:
        vendor.url = f"{address}/v1"
        yield vendor


@pytest.fixture
def serving() -> Callable[[Answer], AbstractAsyncContextManager[Vendor]]:
    """Opens a server that gives one answer to everything."""
    return _serving


@pytest.fixture
def saying() -> Callable[..., Answer]:
    """Makes an answer from a JSON value or a text, a status and headers."""

    def make(payload: object = None, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
        async def answer(request: web.Request) -> web.StreamResponse:
            if isinstance(payload, str):
                return web.Response(text=payload, status=status, headers=headers)
            return web.Response(
                body=orjson.dumps(payload), content_type="application/json", status=status, headers=headers
            )

        return answer

    return make


@pytest.fixture
def hanging() -> Answer:
    """Hears the request and never answers."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    return answer


@pytest.fixture
def cutting() -> Answer:
    """Hears the request and hangs up."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return answer


@pytest.fixture
def good() -> dict[str, Any]:
    """An answer in which everything is said."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "judge-2026-11-01",
        "system_fingerprint": "fp_1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "The first is better.", "reasoning_content": "It is true."},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 120,
            "completion_tokens": 9,
            "total_tokens": 129,
            "cost": 0.00012,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    }


@pytest.fixture
def question() -> Request:
    """A request with all parameters."""
    return Request(
        messages=({"role": "system", "content": "Judge."}, {"role": "user", "content": "naïve “1” or 2?\n"}),
        max_tokens=64,
        temperature=0.0,
        seed=7,
    )


@dataclass(frozen=True)
class Subject:
    """The provider that a contract is held against."""

    name: str
    model: str
    timeout: float
    """Long enough for the provider's own work, short for a test to wait."""

    def open(self, url: str, key: str | None = KEY, timeout: float = 30.0, structured: bool | None = None) -> Provider:
        """A provider for an address."""
        return PROVIDERS[self.name].open(Endpoint(url, key, timeout, 4, structured=structured))


@pytest.fixture
def subject() -> Subject:
    """By default `openai`; the environment variable VENIRE_CONTRACT names another."""
    name = os.environ.get("VENIRE_CONTRACT", "openai")
    return {
        "openai": Subject("openai", "judge", timeout=0.05),
        "litellm": Subject("litellm", "openai/judge", timeout=1.0),
    }[name]


@pytest.fixture
def key() -> str:
    """A key with characters that JSON, URLs and base64 write otherwise."""
    return KEY
