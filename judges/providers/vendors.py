"""Vendors: where each is asked, by the short name that is written before a model, and how it differs from OpenAI.

What any of them may put into an answer is read wherever it occurs (see `replies`), since gateways pass it on; here is
only what has to be known before a call, and what a status means at one vendor alone. What their models cost is in
`price_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from venire.arena.errors import Fault


class VendorHome(NamedTuple):
    """Where a vendor's models are asked, and what is needed for it."""

    base_url: str
    key_variable: str | None = None
    """The environment variable that the vendor's own tools read the key from; None: a server of one's own."""
    key_page: str | None = None
    """Where to get a key."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor's differences, and the page that documents them with the date on which its stored copy was read."""

    source: str
    date: str
    hosts: tuple[str, ...] = ()
    """A host that begins with a dot matches all hosts that end with it."""
    home: VendorHome | None = None
    """None: each account has an address of its own."""
    provider: str = "openai"
    """The provider that speaks its protocol."""
    aliases: tuple[str, ...] = ()
    """What it is called besides."""

    key_header: str | None = None
    """The header for the bare key; None: `Authorization: Bearer`."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Our names of parameters to the vendor's."""
    statuses: Mapping[int, Fault] = field(default_factory=dict)
    """Statuses whose meaning differs at this vendor; a known machine code takes precedence."""

    structured: bool = False
    """Whether all its models hold an answer to a JSON Schema; what is known of single models is in `openai`."""
    most_logprobs: int = 20
    """Likeliest tokens that may be requested at each position; 0: it returns none, and none are requested."""
    counted_logprobs: bool = False
    """Whether `logprobs` is the number of likeliest tokens, and there is no `top_logprobs`."""

    batches: str | None = "openai"
    """The form of its batch interface, a key of `openai.OPENAI.batches`; None: none, or one that is not spoken."""

    prices: str = ""
    """The prefix of its models' names in the table of prices that litellm ships."""

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
_ADDRESSES = "https://github.com/BerriAI/litellm/blob/v1.106.2/litellm/constants.py"

VENDORS: Mapping[str, Vendor] = {
    "openai": Vendor(
        source="https://github.com/openai/openai-openapi/blob/f85dbe223d40e1a31cba812ab2d755c7e98a92a3/openapi.yaml",
        date="2026-08-21",
        hosts=("api.openai.com",),
        home=VendorHome("https://api.openai.com/v1", "OPENAI_API_KEY", "https://platform.openai.com/api-keys"),
        structured=True,
    ),
    "anthropic": Vendor(
        source="https://platform.claude.com/docs/en/api/errors.md",
        date="2026-11-21",
        hosts=("api.anthropic.com",),
        home=VendorHome(
            "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "https://platform.claude.com/settings/keys"
        ),
        provider="anthropic",
    ),
    "gemini": Vendor(
        source="https://ai.google.dev/gemini-api/docs/generate-content/api-errors",
        date="2026-11-21",
        hosts=("generativelanguage.googleapis.com",),
        home=VendorHome(
            "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", "https://aistudio.google.com/apikey"
        ),
        provider="gemini",
        aliases=("google",),
        prices="gemini",
    ),
    "openrouter": Vendor(
        source=_TABLE,
        date="2026-11-21",
        hosts=("openrouter.ai",),
        home=VendorHome("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "https://openrouter.ai/settings/keys"),
        batches=None,
        prices="openrouter",
    ),
    "groq": Vendor(
        source="https://console.groq.com/docs/flex-processing",
        date="2026-11-21",
        hosts=("api.groq.com",),
        home=VendorHome("https://api.groq.com/openai/v1", "GROQ_API_KEY", "https://console.groq.com/keys"),
        statuses={498: Fault.TRANSIENT},  # no capacity at this moment
        most_logprobs=0,
        prices="groq",
    ),
    "mistral": Vendor(
        source="https://github.com/mistralai/client-python/blob/05629d237bbd7732f6c15ecd7f06fe5bf5a2a275/docs/models/chatcompletionrequest.md",
        date="2026-06-30",
        hosts=("api.mistral.ai",),
        home=VendorHome("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "https://console.mistral.ai/api-keys"),
        renamed={"seed": "random_seed"},
        structured=True,
        most_logprobs=0,
        batches="mistral",
        prices="mistral",
    ),
    "together": Vendor(
        source="https://docs.together.ai/docs/error-codes",
        date="2026-11-21",
        hosts=(".together.xyz", ".together.ai"),
        home=VendorHome("https://api.together.xyz/v1", "TOGETHER_API_KEY", "https://api.together.ai/settings/api-keys"),
        aliases=("together_ai",),
        # A month's spending limit is reached; input and max_tokens together are more than the model's context.
        statuses={402: Fault.QUOTA, 403: Fault.TOO_LONG},
        counted_logprobs=True,
        batches="together",
        prices="together_ai",
    ),
    "fireworks": Vendor(
        source="https://docs.fireworks.ai/guides/inference-error-codes",
        date="2026-11-21",
        hosts=("api.fireworks.ai",),
        home=VendorHome(
            "https://api.fireworks.ai/inference/v1",
            "FIREWORKS_API_KEY",
            "https://app.fireworks.ai/settings/users/api-keys",
        ),
        aliases=("fireworks_ai",),
        statuses={402: Fault.QUOTA, 412: Fault.QUOTA},  # the account is not paid for, or suspended
        structured=True,
        most_logprobs=5,
        batches=None,
        prices="fireworks_ai",
    ),
    "deepseek": Vendor(
        source="https://api-docs.deepseek.com/quick_start/error_codes",
        date="2026-11-21",
        hosts=("api.deepseek.com",),
        home=VendorHome("https://api.deepseek.com", "DEEPSEEK_API_KEY", "https://platform.deepseek.com/api_keys"),
        statuses={402: Fault.QUOTA},  # the balance is used up
        batches=None,
        prices="deepseek",
    ),
    "xai": Vendor(
        source="https://docs.x.ai/developers/model-capabilities/text/structured-outputs.md",
        date="2026-11-21",
        hosts=("api.x.ai",),
        home=VendorHome("https://api.x.ai/v1", "XAI_API_KEY", "https://console.x.ai"),
        structured=True,
        most_logprobs=8,
        batches=None,
        prices="xai",
    ),
    "cohere": Vendor(
        source="https://docs.cohere.com/docs/compatibility-api",
        date="2026-11-26",
        hosts=("api.cohere.ai",),
        home=VendorHome(
            "https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY", "https://dashboard.cohere.com/api-keys"
        ),
    ),
    "perplexity": Vendor(  # without its prices: searches cost besides, and the table has the tokens alone
        source="https://docs.perplexity.ai/docs/getting-started/quickstart",
        date="2026-11-26",
        hosts=("api.perplexity.ai",),
        home=VendorHome(
            "https://api.perplexity.ai", "PERPLEXITY_API_KEY", "https://www.perplexity.ai/account/api/keys"
        ),
    ),
    "cerebras": Vendor(
        source=_ADDRESSES,
        date="2026-11-26",
        hosts=("api.cerebras.ai",),
        home=VendorHome("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", "https://cloud.cerebras.ai"),
        prices="cerebras",
    ),
    "moonshot": Vendor(
        source=_ADDRESSES,
        date="2026-11-26",
        hosts=("api.moonshot.ai",),
        home=VendorHome(
            "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "https://platform.moonshot.ai/console/api-keys"
        ),
        prices="moonshot",
    ),
    "azure": Vendor(
        source="https://github.com/openai/openai-python/blob/v2.54.0/src/openai/lib/azure.py",
        date="2026-11-21",
        hosts=(".openai.azure.com",),
        key_header="api-key",
        prices="azure",
    ),
    "ollama": Vendor(
        source="https://github.com/ollama/ollama/blob/fb30760996871fa9460115c753afd2c60d4ab0f7/docs/api/openai-compatibility.mdx",
        date="2026-08-21",
        home=VendorHome("http://127.0.0.1:11434/v1"),
    ),
    "vllm": Vendor(
        source="https://github.com/vllm-project/vllm/blob/040a2cc2a6295ea9c313d86526ff90a103eacb3e/vllm/entrypoints/openai/engine/protocol.py",
        date="2026-11-21",
        home=VendorHome("http://127.0.0.1:8000/v1"),
    ),
    "sglang": Vendor(
        source="https://github.com/sgl-project/sglang/blob/004c82e07d876f6e4a0ad6e15325706b0f478f1a/python/sglang/srt/entrypoints/openai/protocol.py",
        date="2026-11-21",
        home=VendorHome("http://127.0.0.1:30000/v1"),
    ),
}
"""By the short name that is written before a model, as in `groq:llama-3.3-70b-versatile`."""

_NONE = Vendor(source="", date="")


def vendor_of(base_url: str) -> Vendor:
    """The vendor at a base URL; one without differences where the host is not known."""
    host = (urlsplit(base_url).hostname or "").lower()
    for vendor in VENDORS.values():
        if any(host == name or (name.startswith(".") and host.endswith(name)) for name in vendor.hosts):
            return vendor
    return _NONE


def vendors_by(provider: str) -> Mapping[str, Vendor]:
    """The vendors whose protocol a provider speaks."""
    return {name: vendor for name, vendor in VENDORS.items() if vendor.provider == provider}
