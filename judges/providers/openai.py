"""Any endpoint that speaks OpenAI's chat completions, over plain HTTP: OpenAI, OpenRouter, vLLM, Ollama and others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson

from venire.arena.clock import SystemClock
from venire.arena.records import Reply, Request
from venire.judges.providers.base import Endpoint, ProviderEntry
from venire.judges.providers.batches.mistral import MistralBatches
from venire.judges.providers.batches.openai import OpenAIBatches
from venire.judges.providers.batches.together import TogetherBatches
from venire.judges.providers.faults import refusal
from venire.judges.providers.http_provider import HttpProvider, limits_key_of
from venire.judges.providers.replies import read_reply
from venire.judges.providers.schemas import in_order, openai_schema
from venire.judges.providers.vendors import vendor_of, vendors_by

_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True, slots=True)
class ModelParameters:
    """How the parameters of some models differ, and why."""

    reason: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()


# Patterns over the whole model name; the first that matches counts. Names with a vendor before a slash are a
# gateway's, which translates parameters itself.
MODEL_PARAMETERS: Mapping[str, ModelParameters] = {
    r"gpt-5(\.\d+)?-chat.*": ModelParameters("no reasoning model in spite of its name"),
    r"(o1|o3|o4|gpt-[56])([-.].*)?": ModelParameters(
        "reasoning models count hidden reasoning too, under another name, and accept no temperature but their own",
        renamed={"max_tokens": "max_completion_tokens"},
        refused=frozenset({"temperature", "logprobs"}),
    ),
}

# Models from before gpt-4o of August 2024 hold to no schema, wherever they are asked for by their own names.
_NO_SCHEMA = re.compile(r"gpt-3\.5.*|gpt-4(-.*)?|gpt-4o-2024-05-13|chatgpt-4o-latest|o1-(mini|preview)(-.*)?")


class OpenAIProvider(HttpProvider):
    """One account at an endpoint that speaks OpenAI's chat completions; see `Provider` and `HttpProvider`."""

    def __init__(
        self,
        endpoint: Endpoint,
        wall: Callable[[], datetime] = SystemClock().wall,
        monotonic: Callable[[], float] = SystemClock().monotonic,
    ) -> None:
        self._vendor = vendor_of(endpoint.base_url)
        super().__init__(endpoint, self._vendor.credentials(endpoint.key), wall, monotonic)
        self._url = endpoint.url("chat/completions")

    def limits_key(self, model: str) -> tuple[str, ...]:
        """As OpenAI and OpenRouter count: a dated model under its family's limit, all free models as one."""
        host, key, _ = limits_key_of(self._endpoint, model)
        if host == "api.openai.com":
            return host, key, _DATED.sub("", model)
        if host == "openrouter.ai" and model.endswith(":free"):
            return host, key, ":free"
        return host, key, model

    def encode(self, model: str, request: Request) -> bytes:
        """The JSON body of a request, with sorted names: the same bytes for the same model and request."""
        body: dict[str, Any] = {"model": model, "messages": request.messages}
        dialect = _parameters_of(model)
        renamed = self._vendor.renamed
        for name, value in (
            ("max_tokens", request.max_tokens),
            ("temperature", request.temperature),
            ("seed", request.seed),
        ):
            if value is not None and name not in dialect.refused:
                name = dialect.renamed.get(name, name)
                body[renamed.get(name, name)] = value
        if request.schema is not None and self.is_structured(model):
            body["response_format"] = response_format(request.schema)
        if request.top_logprobs and "logprobs" not in dialect.refused:
            body |= self._vendor.logprobs(request.top_logprobs)
        return orjson.dumps(body, default=dict, option=orjson.OPT_SORT_KEYS)

    def is_structured(self, model: str) -> bool:
        """The campaign file's setting, else what is known of the vendor and the model; see `Provider`."""
        if self._endpoint.structured is not None:
            return self._endpoint.structured
        return self._vendor.structured and not _NO_SCHEMA.fullmatch(model)

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        """Send a body in one HTTP request, without following a redirect, and read the reply; see `Provider`."""
        status, headers, text = await self.post(self._url, body, idempotency_key)
        if not 200 <= status < 300:
            raise refusal(status, headers, text, self._wall(), self._vendor.statuses)
        return read_reply(text, body)


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What asks for an answer that holds to a schema, in OpenAI's form."""
    schema_as_sent = in_order(openai_schema, schema)
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema_as_sent}}


@lru_cache(maxsize=256)
def _parameters_of(model: str) -> ModelParameters:
    for pattern, dialect in MODEL_PARAMETERS.items():
        if re.fullmatch(pattern, model):
            return dialect
    return ModelParameters("none")


OPENAI = ProviderEntry(
    OpenAIProvider,
    batches={"openai": OpenAIBatches, "mistral": MistralBatches, "together": TogetherBatches},
    vendors=vendors_by("openai"),
)
