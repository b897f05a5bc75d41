"""What a store holds and how far its campaigns are, as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from venire.arena.errors import Fault
from venire.drift import drift_json
from venire.judged import judged_json
from venire.long_input import long_json
from venire.phases import rounds_json
from venire.spending import spending_json
from venire.storage import frames
from venire.storage.recovery import recovered
from venire.storage.store import Store

__all__ = ["failed_steps", "status_json"]


def status_json(store: Store) -> dict[str, Any]:
    """What a store holds, as plain values."""
    (counts,) = store.read("counts")
    names = ("instructions", "completions", "models", "models_with_elo", "attempts", "verdicts")
    found = []
    for one in frames.campaigns(store):
        standing, paid = frames.progress(store, one.id), frames.accounts(store, one.id)
        found.append(
            {
                "campaign": one.name,
                "started_at": one.started_at,
                "progress": asdict(standing) | {"missing": standing.missing},
                "judges": [{"judge": name} | asdict(row) for name, row in frames.judge_progress(store, one.id).items()],
                "plan": rounds_json(store, one.id),
                "judged": judged_json(store, one.id),
                "long_input": long_json(store, one.id),
                "served": drift_json(store, one.id),
                "accounts": asdict(paid),
                "forecast": spending_json(store, one.id),
                "failed_steps": failed_steps(store, one.id),
                "faults": {Fault(fault).name.lower(): count for fault, count in store.read("faults", campaign=one.id)},
            }
        )
    return {
        "store": str(store.path),
        "holds": dict(zip(names, counts, strict=True)),
        "recovered": asdict(recovered(store)),
        "campaigns": found,
    }


def failed_steps(store: Store, campaign: int) -> list[dict[str, Any]]:
    """The first few steps that used up their attempts, with the fault and the message of the last one."""
    names = ("judge", "instruction", "models", "step", "fault", "message")
    rows = store.read("failed_steps", campaign=campaign, limit=5)
    return [dict(zip(names, row, strict=True)) | {"fault": Fault(row[4]).name.lower()} for row in rows]
