"""What the registry knows of a provider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from venire.judges.providers.base import Endpoint, Provider

__all__ = ["ProviderEntry"]


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """A provider, an entry of `registry.PROVIDERS`: `open` makes one for an endpoint and raises InputError where it
    cannot.

    >>> from venire.judges.providers import PROVIDERS, Endpoint
    >>> provider = PROVIDERS["openai"].open(Endpoint("http://127.0.0.1:8000/v1", None, 60.0, 4))
    """

    open: Callable[[Endpoint], Provider]
    home: str | None = None
    """The base URL of its one vendor; None: a campaign file must give base_url."""
    proxies: bool = True
    """Whether it can ask through a proxy."""
    max_temperature: int = 2
