"""Which server answers at an address of one's own, by name and version, where the server says so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from venire.arena.errors import InputError
from venire.judges.providers.base import Endpoint
from venire.judges.providers.connections import Connections, get_quietly, open_connections
from venire.judges.providers.error_bodies import parse_json
from venire.judges.providers.faults import short
from venire.judges.providers.vendors import vendor_of

_SECONDS = 3.0


class ServerKind(NamedTuple):
    """A server, the path at which it says its version, and the page that documents it with its date."""

    name: str
    path: str
    """From the root of the host, or beside the part of the address that clients call."""
    version: str
    """The name of the version in the answer."""
    beside: frozenset[str]
    """Names that the answer has too, since others say a version at the same path."""
    source: str
    date: str


def _kind(name: str, path: str, version: str, source: str, date: str, *beside: str) -> ServerKind:
    return ServerKind(name, path, version, frozenset(beside), source, date)


_SGLANG = "https://docs.sglang.io/docs/basic_usage/native_api.md"
_TGI = "https://raw.githubusercontent.com/api-evangelist/hugging-face/refs/heads/main/json-schema/"
SERVERS = (
    _kind("llama.cpp", "props", "build_info", "https://github.com/ggml-org/llama.cpp/pull/21835", "2026-04-13"),
    _kind("Ollama", "api/version", "version", "https://docs.ollama.com/api-reference/get-version.md", "2026-11-26"),
    _kind(
        *("TGI", "info", "version", f"{_TGI}hugging-face-text-generation-inference-info-schema.json", "2026-11-26"),
        "model_id",
    ),
    _kind("SGLang", "server_info", "version", _SGLANG, "2026-11-26", "model_path"),
    _kind(
        *("SGLang", "get_server_info", "version"),
        *("https://docs.sglang.io/get_started/../basic_usage/native_api.html", "2026-03-12"),
        "model_path",
    ),
    _kind(
        *("LiteLLM", "health/readiness", "litellm_version", "https://docs.litellm.ai/docs/proxy/health", "2026-10-10")
    ),
    _kind("vLLM", "version", "version", "https://github.com/vllm-project/vllm/pull/3161", "2024-03-03"),
)
"""In the order in which they are believed: of a gateway before another server the first one that answers."""


async def identify_server(endpoint: Endpoint) -> str | None:
    """The name and version of the server at an address of no known vendor; None where it does not say them.

    It is asked at its own host, without the key and the headers of the campaign file, each path for 3 s at most.
    """
    if vendor_of(endpoint.base_url).hosts:
        return None
    try:
        connections = open_connections(endpoint)
    except InputError:
        return None
    answers = await asyncio.gather(*(_ask(connections, _root(endpoint.base_url) + kind.path) for kind in SERVERS))
    for kind, answer in zip(SERVERS, answers, strict=True):
        version = answer.get(kind.version)
        if isinstance(version, str) and version and kind.beside <= answer.keys():
            return short(endpoint.redact(f"{kind.name} {version[:80]}"))
    return None


def _root(base_url: str) -> str:
    """The address beside the part that clients call, such as `v1`, with a slash at its end."""
    parts = urlsplit(base_url)
    above, _, last = parts.path.rstrip("/").rpartition("/")
    path = above if last[:1] == "v" and last[1:2].isdigit() else f"{above}/{last}".rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}/"


async def _ask(connections: Connections, url: str) -> Mapping[str, Any]:
    """The JSON object at an address; an empty one where there is none."""
    status, text = await get_quietly(connections, url, _SECONDS)
    answer = parse_json(text) if status == 200 else None
    return answer if isinstance(answer, dict) else {}
