"""Judge protocols, the reading of replies, and the providers that carry the calls."""

from __future__ import annotations

from venire.arena import registry
from venire.arena.registry import Registry
from venire.judges.entry import REASONS_TOKENS, VERDICT_TOKENS, ProtocolEntry, ProtocolOption, ReplyExample

__all__ = ["PROTOCOLS", "REASONS_TOKENS", "VERDICT_TOKENS", "ProtocolEntry", "ProtocolOption", "ReplyExample"]

PROTOCOLS: Registry[ProtocolEntry] = registry.PROTOCOLS
"""Every protocol by the name used in a campaign file."""
