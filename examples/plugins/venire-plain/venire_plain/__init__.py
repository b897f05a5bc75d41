"""A provider with a wire form of its own: one prompt in, {"output": ..., "tokens": [in, out]} back."""

import orjson

from venire.arena.errors import Fault
from venire.arena.records import Reply
from venire.judges.providers import ProviderEntry
from venire.judges.providers.faults import failure, refusal
from venire.judges.providers.http_provider import HttpProvider


class PlainProvider(HttpProvider):
    """One account at an endpoint that speaks this form; connections, limits and secrets are `HttpProvider`'s."""

    def __init__(self, endpoint):
        super().__init__(endpoint, {} if endpoint.key is None else {"X-Token": endpoint.key})
        self._url = endpoint.url("generate")

    def encode(self, model, request):
        """The same bytes for the same model and request."""
        prompt = "\n\n".join(f"{one['role']}: {one['content']}" for one in request.messages)
        body = {"model": model, "prompt": prompt, "limit": request.max_tokens, "seed": request.seed}
        return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)

    def is_structured(self, model):
        """This form knows no schema."""
        return False

    async def send(self, body, idempotency_key):
        """One HTTP request, one reply."""
        status, headers, text = await self.post(self._url, body, idempotency_key)
        if not 200 <= status < 300:
            raise refusal(status, headers, text, self._wall())
        try:
            answer = orjson.loads(text)
            output, (tokens_in, tokens_out) = answer["output"], answer["tokens"]
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            raise failure("HTTP 200 without an output", Fault.TRANSIENT, status=status, may_be_billed=True) from None
        return Reply(output, input_tokens=tokens_in, output_tokens=tokens_out, raw=text)


PLAIN = ProviderEntry(PlainProvider)
