"""Instructions: where models differ, what decides the order, and what says nothing or looks odd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.pages.context import PageContext
from venire.storage.read.activity import instruction_numbers, known_models
from venire.storage.read.trial_details import instruction as instruction_detail
from venire.storage.read.trial_table import TrialFilter

ORDERS: Mapping[str, tuple[str, str]] = {
    "decisive": ("decisive desc", "most decisive"),
    "ties": ("ties desc", "most ties: these say little"),
    "flips": ("flips desc", "most flips: the order decides"),
    "disagreements": ("disagreements desc", "judges disagree most"),
    "verdicts": ("verdicts desc", "most verdicts"),
}
"""What instructions can be sorted by: in SQL, and in words."""

_USELESS, _SUSPICIOUS = 0.9, 0.6
"""Shares of ties, and of flips, from which an instruction is marked."""


def instructions(here: PageContext) -> dict[str, Any]:
    """The values of the list of instructions. Raises InputError for an order that there is not."""
    findings = (here.audit_at_hand() or {}).get("findings", ())
    influence = next((one for one in findings if one["check"] == "single-instructions"), None)
    order = here.query.get("order", "decisive")
    if order not in ORDERS:
        raise InputError(f"order: instructions are not sorted by {order[:80]!r}; {suggest(order[:80], ORDERS)}")
    rows = here.memo(
        f"instructions {order}", lambda: here.table.instructions(TrialFilter(), order=ORDERS[order][0], limit=200)
    )
    return {
        "order": order,
        "orders": {key: (words, here.links.to("instructions", order=key)) for key, (_, words) in ORDERS.items()},
        "rows": [
            {
                "tally": one,
                "link": here.links.instruction(one.number),
                "calls": here.links.calls(instruction=one.number),
                "useless": one.ties >= _USELESS,
                "suspicious": one.flips >= _SUSPICIOUS,
            }
            for one in rows
        ],
        "influence": influence,
        "decide": _decide(here, influence),
        "audit": here.links.to("audit"),
    }


def _decide(here: PageContext, influence: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The instructions without which a rating moves most: model, points, and whether another model would lead."""
    strongest = ((influence or {}).get("details") or {}).get("strongest") or ()
    numbers = here.memo("instruction numbers", lambda: instruction_numbers(here.store)) if strongest else {}
    return [
        {**one, "link": here.links.instruction(numbers[one["name"]]) if one["name"] in numbers else None}
        for one in strongest
    ]


def instruction(here: PageContext) -> dict[str, Any]:
    """The values of an instruction's page. Raises InputError for one that is not there."""
    number = here.number
    detail = instruction_detail(here.store, number)
    wanted = TrialFilter(instruction=number)
    models = {one.number: one for one in known_models(here.store)}
    pairs = []
    for a, b, wins, count, planned in here.table.matrix(wanted):
        share = wins / count if count else None
        link = here.links.calls(instruction=number, model=a, opponent=b)
        if share is not None and share < 0.5:  # whoever wins stands first
            a, b, share = b, a, 1.0 - share
        row = {"a": models[a].name, "b": models[b].name, "share": share, "count": count, "planned": planned}
        pairs.append((0.0 if share is None else -abs(share - 0.5), row | {"link": link}))
    pairs.sort(key=lambda one: one[0])
    summary = here.table.instructions(wanted, limit=1)
    return {
        "title": detail.name,
        "instruction": detail,
        "pairs": [row for _, row in pairs],
        "summary": summary[0] if summary else None,
        "calls": here.links.calls(instruction=number),
        "flipped": here.links.calls(instruction=number, flipped=True),
        "disagree": here.links.calls(instruction=number, disagree=True),
    }
