"""Which matchups and battles to judge: seeded pure functions from the state of a plan to the next battles."""

from __future__ import annotations

from venire.arena import registry
from venire.arena.planning import Policy
from venire.arena.registry import Registry

__all__ = ["POLICIES"]

POLICIES: Registry[Policy] = registry.POLICIES
"""Every policy by the name used in a campaign file."""
