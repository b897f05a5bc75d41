"""The audit: each check with its figure, its threshold, what it says, and the calls behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from venire.pages.addresses import Links
from venire.pages.context import PageContext
from venire.storage.read.activity import known_models

CALLS: Mapping[str, tuple[str, Callable[[Links], str]]] = {
    "unreadable": ("replies that could not be read", lambda links: links.calls(status="unreadable")),
    "ties": ("ties", lambda links: links.calls(winner=0)),
    "flips": ("flipped battles", lambda links: links.calls(flipped=True)),
    "failed": ("failed", lambda links: links.calls(status="failed")),
    "pending": ("pending", lambda links: links.calls(status="pending")),
    "instructions": ("instructions", lambda links: links.to("instructions")),
    "disagreements": ("battles on which judges disagree", lambda links: links.calls(disagree=True)),
}
"""The words and the address of a link to each set of calls that a check names (`reports.audit.finding.Calls`)."""


def audit(here: PageContext) -> dict[str, Any]:
    """The values of the audit's page, from `reports.documents.boards.audit_document`."""
    document = here.audit()
    models = {one.name: one.number for one in known_models(here.store)}
    findings = document["findings"]
    return {
        "audit": document,
        "findings": [{"facts": one, "links": _links(here, one, models)} for one in findings],
        "made": sum(one["word"] != "not made" for one in findings),
        "worries": sum(one["word"] == "worry" for one in findings),
        "unsure": sum(one["word"] == "unsure" for one in findings),
    }


def _links(here: PageContext, finding: Mapping[str, Any], models: Mapping[str, int]) -> list[tuple[str, str]]:
    """Tables of the calls that a check speaks of."""
    if finding["word"] == "not made":
        return []
    links = here.links
    found = [(words, address(links)) for words, address in (CALLS[one] for one in finding["calls"])]
    details = finding.get("details") or {}
    for pair in (details.get("pairs") if isinstance(details.get("pairs"), list) else None) or []:
        names = pair.get("models") if isinstance(pair, Mapping) else None
        if names and len(names) == 2 and all(one in models for one in names) and len(found) < 4:
            found.append(
                (f"{names[0]} against {names[1]}", links.calls(model=models[names[0]], opponent=models[names[1]]))
            )
    if not found:
        found.append(("all calls", links.calls()))
    return found
