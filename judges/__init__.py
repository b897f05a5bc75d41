"""Judge protocols, the reading of replies, and the providers that carry the calls."""

from __future__ import annotations

from dataclasses import dataclass

from venire.arena.records import Protocol
from venire.judges import prompts, two_stage

__all__ = ["PROTOCOLS", "ProtocolEntry"]


@dataclass(frozen=True, slots=True)
class ProtocolEntry:
    """A protocol in the registry: its number in the store, its conversation and the prompts it sends."""

    number: int
    talk: Protocol
    prompts: tuple[str, ...]
    folder: str
    calls: int
    """Calls of a trial that needs no repair."""

    def digests(self) -> tuple[bytes, ...]:
        """Digests of its prompt texts, part of a respondent's key."""
        return prompts.digests(self.folder, *self.prompts)


PROTOCOLS: dict[str, ProtocolEntry] = {
    "two-stage": ProtocolEntry(1, two_stage.two_stage, two_stage.PROMPTS, "two_stage", calls=2),
}
"""Every protocol by the name used in a campaign file; a number, once given, is never used again."""
