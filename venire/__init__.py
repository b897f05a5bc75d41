"""Judge language models with language models: plan matchups, ask judges in both orders, keep every reply, rate.

The public names are loaded when they are first used, so that `import venire` costs nothing.

>>> import venire as vn
>>> pair = {"instruction": "Name a prime number.", "a": "Seven is a prime number.", "b": "Nine."}
>>> [row] = vn.judge([pair], judge=vn.Judge(model="simulated/gpt-4-0613@1"), elo={"a": 1400, "b": 800})
>>> row.winner
'a'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venire import ratings, testing
    from venire.api import (
        CampaignPlan,
        RunResult,
        arun,
        edit,
        generate,
        judge,
        parse,
        place,
        plan,
        reparse,
        run,
        simulate,
    )
    from venire.arena.errors import InputError, StoreError, VenireError
    from venire.configs.loading import load_campaign
    from venire.configs.schema import (
        Budget,
        BudgetLimits,
        Campaign,
        Contestant,
        Data,
        Editor,
        Fallback,
        Judge,
        Phase,
        Plan,
        Price,
        Quality,
        Stop,
    )
    from venire.embedded import Embedded
    from venire.orchestrator.recording.ending import Ending
    from venire.pairs import JudgedPair
    from venire.ratings.inference.options import Options
    from venire.reports.audit.cases import audit
    from venire.reports.board.board import Board
    from venire.reports.board.rate import compare, rate
    from venire.session import Session
    from venire.storage.store.opening import open_store
    from venire.storage.store.store import Store

__all__ = [
    "Board",
    "Budget",
    "BudgetLimits",
    "Campaign",
    "CampaignPlan",
    "Contestant",
    "Data",
    "Editor",
    "Embedded",
    "Ending",
    "Fallback",
    "InputError",
    "Judge",
    "JudgedPair",
    "Options",
    "Phase",
    "Plan",
    "Price",
    "Quality",
    "RunResult",
    "Session",
    "Stop",
    "Store",
    "StoreError",
    "VenireError",
    "arun",
    "audit",
    "compare",
    "edit",
    "generate",
    "judge",
    "load_campaign",
    "open_store",
    "parse",
    "place",
    "plan",
    "rate",
    "ratings",
    "reparse",
    "run",
    "simulate",
    "testing",
]

_SUBPACKAGES = ("ratings", "testing")
_HOMES = {
    "venire.api": (
        "CampaignPlan",
        "RunResult",
        "arun",
        "edit",
        "generate",
        "judge",
        "parse",
        "place",
        "plan",
        "reparse",
        "run",
        "simulate",
    ),
    "venire.arena.errors": ("InputError", "StoreError", "VenireError"),
    "venire.reports.audit.cases": ("audit",),
    "venire.reports.board.rate": ("compare", "rate"),
    "venire.configs.loading": ("load_campaign",),
    "venire.configs.schema": (
        "Budget",
        "BudgetLimits",
        "Campaign",
        "Contestant",
        "Data",
        "Editor",
        "Fallback",
        "Judge",
        "Phase",
        "Plan",
        "Price",
        "Quality",
        "Stop",
    ),
    "venire.orchestrator.recording.ending": ("Ending",),
    "venire.pairs": ("JudgedPair",),
    "venire.ratings.inference.options": ("Options",),
    "venire.reports.board.board": ("Board",),
    "venire.embedded": ("Embedded",),
    "venire.session": ("Session",),
    "venire.storage.store.opening": ("open_store",),
    "venire.storage.store.store": ("Store",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("venire")
    if name in _SUBPACKAGES:
        return import_module(f"venire.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'venire' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
