"""Contracts of the parts that packages can add: what a protocol, provider, policy, rating method or file format keeps.

Each is a function that raises AssertionError with a sentence, so that a test of any framework is one line:

    def test_the_contract() -> None:
        venire.testing.check_protocol("scale")

The names are those of the registries, so the part is tried as it is installed. Our own are held by the same functions.
"""

from __future__ import annotations

from venire.arena.clock import VirtualClock
from venire.testing.formats import check_format
from venire.testing.methods import check_method
from venire.testing.policies import check_policy
from venire.testing.protocols import check_protocol
from venire.testing.providers import check_provider

__all__ = ["VirtualClock", "check_format", "check_method", "check_policy", "check_protocol", "check_provider"]
