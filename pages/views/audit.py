"""The audit: each check with its figure, its threshold, what it says, and the calls behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from venire.pages.context import PageContext
from venire.storage.read.activity import known_models


def audit(here: PageContext, document: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the audit's page, from the document of `venire audit --json`."""
    order = {"worry": 0, "unsure": 1, "fine": 2, "not made": 3}
    models = {one.name: one.number for one in known_models(here.store)}
    findings = sorted(document["findings"], key=lambda one: order.get(one["word"], 4))
    return {
        "audit": document,
        "findings": [{"facts": one, "links": _links(here, one, models)} for one in findings],
        "made": sum(one["word"] != "not made" for one in findings),
        "worries": sum(one["word"] == "worry" for one in findings),
        "unsure": sum(one["word"] == "unsure" for one in findings),
    }


def _links(here: PageContext, finding: Mapping[str, Any], models: Mapping[str, int]) -> list[tuple[str, str]]:
    """Tables of the calls that a check speaks of."""
    name, links = finding["check"], here.links
    if finding["word"] == "not made":
        return []
    found: list[tuple[str, str]] = []
    if name in ("unread", "unread-by-model"):
        found.append(("replies that could not be read", links.calls(status="unreadable")))
    elif name == "tie-rule":
        found += [("ties", links.calls(winner=0)), ("flips", links.calls(flipped=True))]
    elif name in ("order-effects", "better-than-coin"):
        found.append(("flipped battles", links.calls(flipped=True)))
    elif name == "complete":
        found += [("failed", links.calls(status="failed")), ("pending", links.calls(status="pending"))]
    elif name in ("instructions", "single-instructions", "first-place", "smallest-removal"):
        found.append(("instructions", links.to("instructions")))
    elif name in ("single-judges", "judge-agreement", "alike-judges", "own-family", "people-agreement"):
        found.append(("battles on which judges disagree", links.calls(disagree=True)))
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
