"""The audit: each check with its figure, its threshold, what it says, and the calls behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from venire.pages.addresses import Links
from venire.pages.context import PageContext
from venire.reports.numbers import figure
from venire.reports.sections import CellLink, Column, TextTable
from venire.reports.texts import name
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
        "checks": [_checks(findings, [_links(here, one, models) for one in findings])],
        "made": sum(one["word"] != "not made" for one in findings),
        "worries": sum(one["word"] == "worry" for one in findings),
        "unsure": sum(one["word"] == "unsure" for one in findings),
    }


def _checks(findings: Sequence[Mapping[str, Any]], links: Sequence[Sequence[CellLink]]) -> TextTable:
    limited = [
        one["harmless"] and isinstance(one["threshold"], int | float) and isinstance(one["figure"], int | float)
        for one in findings
    ]
    return TextTable(
        [
            Column("check", [one["check"] for one in findings], below=[one.get("asks") or "" for one in findings]),
            Column("result", [one["word"] for one in findings], text=True, badges=True),
            Column("what it says", [one["says"] for one in findings], text=True),
            Column("figure", [figure(one["figure"]) for one in findings]),
            Column(
                "harmless",
                [
                    f"{one['harmless']} {figure(one['threshold'])}" if known else ""
                    for one, known in zip(findings, limited, strict=True)
                ],
                below=[
                    f"or {one['unless']}" if known and one["unless"] else ""
                    for one, known in zip(findings, limited, strict=True)
                ],
            ),
            Column("calls behind it", [""] * len(findings), text=True, links=links),
        ],
        label="Checks",
        stacked=True,
    )


def _links(here: PageContext, finding: Mapping[str, Any], models: Mapping[str, int]) -> list[CellLink]:
    """Tables of the calls that a check speaks of."""
    if finding["word"] == "not made":
        return []
    links = here.links
    found = [CellLink(words, address(links)) for words, address in (CALLS[one] for one in finding["calls"])]
    details = finding.get("details") or {}
    for pair in (details.get("pairs") if isinstance(details.get("pairs"), list) else None) or []:
        names = pair.get("models") if isinstance(pair, Mapping) else None
        if names and len(names) == 2 and all(one in models for one in names) and len(found) < 4:
            address = links.calls(model=models[names[0]], opponent=models[names[1]])
            found.append(CellLink(name(f"{names[0]} against {names[1]}"), address))
    if not found:
        found.append(CellLink("all calls", links.calls()))
    return found
