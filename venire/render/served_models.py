"""How drift is told: a judge whose replies were served by more than one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from venire.render.screen import plain
from venire.storage.read.served_models import served
from venire.storage.store.store import Store

__all__ = ["drift_json", "show_drift"]


def drift_json(store: Store, campaign: int) -> list[dict[str, Any]]:
    """What served each judge of a campaign, as plain values."""
    return [asdict(one) | {"drift": one.drift} for one in served(store, campaign)]


def show_drift(screen: Console, judges: Sequence[Mapping[str, Any]]) -> None:
    """Nothing where each judge was served by one model; else a warning for each that was not, and its fingerprints.

    `judges` is what `drift_json` gives.
    """
    for one in judges:
        judge = plain(one["judge"])
        if one["drift"]:
            screen.print(f"drift: judge {judge} was served by {' and by '.join(map(_told, one['models']))}")
        if one["fingerprints"] > 1:
            newest = plain(one["newest_fingerprint"] or "")
            screen.print(f"judge {judge}: {one['fingerprints']:,} fingerprints, the newest {newest}", style="dim")


def _told(model: Mapping[str, Any]) -> str:
    first, last = (time.removesuffix("Z").replace("T", " ") for time in (model["first"], model["last"]))
    day = f"{first[:10]} "
    until = "" if last == first else f" to {last.removeprefix(day)}"
    replies = "1 reply" if model["replies"] == 1 else f"{model['replies']:,} replies"
    return f"{plain(model['name'])} ({replies}, {first}{until} UTC)"
