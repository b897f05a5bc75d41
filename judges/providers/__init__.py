"""Providers: the only place that knows a vendor.

To add one, write a class with the methods of `Provider` and give it a line here; the contract in
`tests/judges/providers` is what it has to keep. What one vendor of OpenAI's protocol does in its own way stands in
`vendors`, and its answers in `tests/judges/providers/vendors`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from venire.judges.providers.anthropic import AnthropicProvider
from venire.judges.providers.base import Endpoint, Provider
from venire.judges.providers.gemini import GeminiProvider
from venire.judges.providers.litellm import LiteLLMProvider
from venire.judges.providers.openai import OpenAIProvider

__all__ = ["BASE_URLS", "PROVIDERS", "Endpoint", "Provider"]

PROVIDERS: dict[str, Callable[[Endpoint], Provider]] = {
    "anthropic": AnthropicProvider,
    "gemini": GeminiProvider,
    "litellm": LiteLLMProvider,
    "openai": OpenAIProvider,
}

BASE_URLS: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
    "openai": "https://api.openai.com/v1",
}
"""A provider's own address, where it has one; for any other the base URL must be given."""
