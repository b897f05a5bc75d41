"""How vendors that speak OpenAI's chat completions differ from OpenAI, by their host.

What any of them may put into an answer is read wherever it stands (see `replies`), since gateways pass it on; here is
only what has to be known before a call, and what a status means at one vendor alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from venire.arena.errors import Fault

__all__ = ["VENDORS", "Vendor", "vendor_of"]


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor's differences, and the page that says so with the date on which its stored copy was read."""

    source: str
    date: str
    key_header: str | None = None
    """The header for the bare key; None: `Authorization: Bearer`."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Our names of parameters to the vendor's."""
    statuses: Mapping[int, Fault] = field(default_factory=dict)
    """What a status means that means something else, or nothing, elsewhere; a machine code that is known says more."""

    structured: bool = False
    """Whether all its models hold an answer to a JSON Schema; what is known of single models is in `openai`."""
    most_logprobs: int = 20
    """Likeliest tokens that may be asked for at each place; 0: it tells none, and they are not asked for."""
    counted_logprobs: bool = False
    """Whether `logprobs` is the number of likeliest tokens, and there is no `top_logprobs`."""

    prices: str = ""
    """What stands before the names of its models in the table of prices that litellm ships."""

    def credentials(self, key: str | None) -> dict[str, str]:
        """The headers that carry a key; none without a key."""
        if key is None:
            return {}
        return {"Authorization": f"Bearer {key}"} if self.key_header is None else {self.key_header: key}

    def logprobs(self, wanted: int) -> dict[str, Any]:
        """The parameters that ask for so many likeliest tokens, or as many as there are to be had; none where none."""
        most = min(wanted, self.most_logprobs)
        if not most:
            return {}
        return {"logprobs": most} if self.counted_logprobs else {"logprobs": True, "top_logprobs": most}


_TABLE = "https://github.com/BerriAI/litellm/blob/v1.106.2/model_prices_and_context_window.json"

# A host that begins with a dot stands for all hosts that end so.
VENDORS: Mapping[str, Vendor] = {
    "api.openai.com": Vendor(
        source="https://github.com/openai/openai-openapi/blob/f85dbe223d40e1a31cba812ab2d755c7e98a92a3/openapi.yaml",
        date="2026-08-21",
        structured=True,
    ),
    ".openai.azure.com": Vendor(
        source="https://github.com/openai/openai-python/blob/v2.54.0/src/openai/lib/azure.py",
        date="2026-11-21",
        key_header="api-key",
        prices="azure",
    ),
    "api.fireworks.ai": Vendor(
        source="https://docs.fireworks.ai/guides/inference-error-codes",
        date="2026-11-21",
        statuses={402: Fault.QUOTA, 412: Fault.QUOTA},  # the account is not paid for, or suspended
        structured=True,
        most_logprobs=5,
        prices="fireworks_ai",
    ),
    "api.groq.com": Vendor(
        source="https://console.groq.com/docs/flex-processing",
        date="2026-11-21",
        statuses={498: Fault.TRANSIENT},  # no capacity at this moment
        most_logprobs=0,
        prices="groq",
    ),
    "api.mistral.ai": Vendor(
        source="https://github.com/mistralai/client-python/blob/05629d237bbd7732f6c15ecd7f06fe5bf5a2a275/docs/models/chatcompletionrequest.md",
        date="2026-06-30",
        renamed={"seed": "random_seed"},
        structured=True,
        most_logprobs=0,
        prices="mistral",
    ),
    ".together.ai": Vendor(
        source="https://docs.together.ai/docs/error-codes",
        date="2026-11-21",
        # A month's spending limit is reached; input and max_tokens together are more than the model's context.
        statuses={402: Fault.QUOTA, 403: Fault.TOO_LONG},
        counted_logprobs=True,
        prices="together_ai",
    ),
    ".together.xyz": Vendor(
        source="https://docs.together.ai/docs/error-codes",
        date="2026-11-21",
        statuses={402: Fault.QUOTA, 403: Fault.TOO_LONG},
        counted_logprobs=True,
        prices="together_ai",
    ),
    "api.deepseek.com": Vendor(
        source="https://api-docs.deepseek.com/quick_start/error_codes",
        date="2026-11-21",
        statuses={402: Fault.QUOTA},  # the balance is used up
        prices="deepseek",
    ),
    "api.x.ai": Vendor(
        source="https://docs.x.ai/developers/model-capabilities/text/structured-outputs.md",
        date="2026-11-21",
        structured=True,
        most_logprobs=8,
        prices="xai",
    ),
    "openrouter.ai": Vendor(source=_TABLE, date="2026-11-21", prices="openrouter"),
}
_NONE = Vendor(source="", date="")


def vendor_of(base_url: str) -> Vendor:
    """The vendor at a base URL; one without differences where the host is not known."""
    host = (urlsplit(base_url).hostname or "").lower()
    for name, vendor in VENDORS.items():
        if host == name or (name.startswith(".") and host.endswith(name)):
            return vendor
    return _NONE
