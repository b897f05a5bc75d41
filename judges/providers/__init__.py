"""Providers: the only place that knows a vendor.

To add one, write a class with the methods of `Provider`, a `ProviderEntry` for it, and a line in
`venire.arena.registry.PROVIDERS` or an entry point of the group `venire.providers`. The contract in
`tests/judges/providers` is what it has to keep. Where one vendor deviates from OpenAI's protocol is recorded in
`vendors`, and its answers in `tests/judges/providers/vendors`.
"""

from __future__ import annotations

from venire.arena import registry
from venire.arena.registry import Registry
from venire.judges.providers.base import Endpoint, Provider, ProviderEntry

__all__ = ["PROVIDERS", "Endpoint", "Provider", "ProviderEntry"]

PROVIDERS: Registry[ProviderEntry] = registry.PROVIDERS
"""Every provider by the name used in a campaign file."""
