"""Contracts of the parts that packages can add: protocols, providers, policies, rating methods and file formats.

Each is a function that raises AssertionError with a sentence, so that a test in any framework is one line:

    def test_the_contract() -> None:
        venire.testing.check_protocol("scale")

The names are those of the registries, so the installed part is tested. The same functions test our own parts.
"""

from __future__ import annotations

from venire.arena.clock import VirtualClock
from venire.testing.formats import check_format
from venire.testing.methods import check_method
from venire.testing.policies import check_policy
from venire.testing.protocols import check_protocol
from venire.testing.providers import check_provider

__all__ = ["VirtualClock", "check_format", "check_method", "check_policy", "check_protocol", "check_provider"]
