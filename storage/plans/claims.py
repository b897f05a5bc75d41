"""Which shard of a campaign may spend a part: kept as events in the stores of those that were taken over.

A store whose last claim names another shard is read from then on and never asked for again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from venire.storage.store.store import Store

_CLAIMED, _TOOK = "shard claimed", "shards taken over"


def owner(store: Store, campaign: str) -> int | None:
    """The shard that claimed this one last; None: nobody ever did."""
    claims = _details(store, _CLAIMED, campaign)
    return int(claims[-1]["by"]) if claims else None


def taken_over(store: Store, campaign: str) -> frozenset[int]:
    """The shards whose parts this one took over at any time."""
    return frozenset(number for one in _details(store, _TOOK, campaign) for number in one["shards"])


def assign(store: Store, campaign: str, by: int) -> None:
    """Give the part of a shard, whose store this is, to another, or back to itself.

    Raises StoreError when the store cannot be written.
    """
    _note(store, _CLAIMED, {"campaign": campaign, "by": by})


def note_taken(store: Store, campaign: str, shards: Sequence[int]) -> None:
    """Note in the store of a shard which others it has claimed. Raises StoreError when it cannot be written."""
    _note(store, _TOOK, {"campaign": campaign, "shards": list(shards)})


def _details(store: Store, kind: str, campaign: str) -> list[dict[str, Any]]:
    found = [json.loads(detail) for (detail,) in store.read("events_of_kind", kind=kind)]
    return [one for one in found if one["campaign"] == campaign]


def _note(store: Store, kind: str, detail: dict[str, Any]) -> None:
    with store.commit() as commit:  # of no campaign of the store: the shard may not have planned its own yet
        fields = {"campaign": None, "kind": kind, "detail": json.dumps(detail), "batch": commit.batch}
        commit.run("insert_event", now=store.clock.wall(), **fields)
