"""Judge language models with language models: plan matchups, ask judges in both orders, keep every reply, rate.

The public names are loaded when they are first used, so that `import venire` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venire.arena.campaigns import CampaignSettings
    from venire.arena.errors import InputError, StoreError, VenireError
    from venire.boards.audit import audit
    from venire.boards.rate import rate
    from venire.configs.loading import load_campaign
    from venire.orchestrator.recording.ending import CampaignSummary, Ending
    from venire.reports.board import Board
    from venire.session import Embedded, Session
    from venire.storage.store.opening import open_store
    from venire.storage.store.store import Store

__all__ = [
    "Board",
    "CampaignSettings",
    "CampaignSummary",
    "Embedded",
    "Ending",
    "InputError",
    "Session",
    "Store",
    "StoreError",
    "VenireError",
    "audit",
    "load_campaign",
    "open_store",
    "rate",
]

_HOMES = {
    "Board": "venire.reports.board",
    "CampaignSettings": "venire.arena.campaigns",
    "CampaignSummary": "venire.orchestrator.recording.ending",
    "Embedded": "venire.session",
    "Ending": "venire.orchestrator.recording.ending",
    "InputError": "venire.arena.errors",
    "Session": "venire.session",
    "Store": "venire.storage.store.store",
    "StoreError": "venire.arena.errors",
    "VenireError": "venire.arena.errors",
    "audit": "venire.boards.audit",
    "load_campaign": "venire.configs.loading",
    "open_store": "venire.storage.store.opening",
    "rate": "venire.boards.rate",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("venire")
    if name not in _HOMES:
        raise AttributeError(f"module 'venire' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
