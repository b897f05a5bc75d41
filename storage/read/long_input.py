"""What was too long for a campaign's judges, and what was cut for them."""

from __future__ import annotations

from dataclasses import dataclass

from venire.storage.store.store import Store

__all__ = ["LongInput", "long_input"]


@dataclass(frozen=True, slots=True)
class LongInput:
    """Trials of one judge with long texts; `most_cut` is the characters that were cut out of one trial at most."""

    judge: str
    unsent: int
    """Counted and not sent, since they would not have fitted."""
    refused: int
    """Sent, and refused by the provider as too long."""
    cut: int
    """Sent with texts that were cut to fit."""
    most_cut: int


def long_input(store: Store, campaign: int, rule: str) -> tuple[LongInput, ...]:
    """The judges of a campaign that were shown, or would have been shown, more than they take in; by name.

    `rule` is that of verdicts whose request was not sent.
    """
    return tuple(LongInput(*row) for row in store.read("long_input", campaign=campaign, rule=rule))
