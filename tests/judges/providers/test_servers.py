"""A server of one's own is known by what it says at its own paths, and is told nothing in return."""

from __future__ import annotations

import asyncio
import re
from datetime import date
from typing import Any

import pytest
from aiohttp import web

from tests.servers import site
from venire.judges.providers import Endpoint
from venire.judges.providers.servers import SERVERS, identify_server

KEY = "sk-never-sent-01234"
SAID = {
    "llama.cpp": {"build_info": "b8771-9ef1fab9c", "total_slots": 1},
    "Ollama": {"version": "0.12.6"},
    "TGI": {"model_id": "m", "version": "3.3.4"},
    "SGLang": {"version": "0.5.20", "model_path": "m"},
    "LiteLLM": {"status": "connected", "litellm_version": "1.108.0"},
    "vLLM": {"version": "0.32.0"},
}


async def identified(paths: dict[str, Any], base: str = "/v1") -> tuple[str | None, list[web.Request]]:
    heard: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append(request)
        said = paths.get(request.path)
        return web.Response(status=404) if said is None else web.json_response(said)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with site(application) as address:
        endpoint = Endpoint(f"{address}{base}", KEY, 5.0, 4, headers={"X-Team": "secret-team"})
        return await identify_server(endpoint), heard


@pytest.mark.parametrize("kind", SERVERS, ids=lambda kind: f"{kind.name}: {kind.path}")
@pytest.mark.parametrize("base", ["/v1", "/proxy/v1", ""])
def test_a_server_is_named_with_its_version_and_never_sent_the_key(kind: Any, base: str) -> None:
    said = SAID[kind.name]
    found, heard = asyncio.run(identified({f"{base.removesuffix('/v1')}/{kind.path}": said}, base))
    assert found == f"{kind.name} {said[kind.version]}"
    assert all(request.method == "GET" for request in heard)
    for request in heard:
        sent = str(request.headers) + str(request.url)
        assert KEY not in sent
        assert "secret-team" not in sent
    assert date.fromisoformat(kind.date)
    assert re.match(r"https://\S+\.\S+/\S+", kind.source)


@pytest.mark.parametrize("said", [{}, {"version": 5}, [], {"version": ""}, {"detail": "Not Found"}])
def test_a_server_that_says_nothing_known_has_no_name(said: Any) -> None:
    assert asyncio.run(identified({"/version": said}))[0] is None


def test_a_known_vendor_is_not_asked() -> None:
    assert asyncio.run(identify_server(Endpoint("https://api.openai.com/v1", KEY, 5.0, 4))) is None
