"""Two judges, or two campaigns of what is served, side by side: where their ratings and their verdicts differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from venire.arena.errors import InputError
from venire.pages.context import PageContext, ServedCampaign
from venire.reports.documents.people import agreement_columns
from venire.reports.documents.sections import changes_blocks
from venire.reports.numbers import count, share
from venire.reports.sections import Block, Column, TextTable
from venire.reports.texts import name
from venire.reports.wording import DifferenceWords


class _Sides(NamedTuple):
    """What is held side by side: a judge of this campaign, and of the one at an address; "" is all judges."""

    judge: str
    address: str
    other_judge: str


def compare(here: PageContext) -> dict[str, Any]:
    """The values of the page; what cannot be held side by side is said on it."""
    campaigns = here.served()
    sides = _chosen(here, campaigns)
    found: Mapping[str, Any] | None = None
    problem = None
    try:
        found = None if sides is None else here.compared(*sides)
    except InputError as error:
        problem = str(error)
    own = _own(here)
    asked = sides or _Sides("", own, "")
    by_address = {one.address: one for one in campaigns}
    names = found["names"] if found else ["", ""]
    return {
        "sides": asked,
        "judges": by_address[own].judges if own in by_address else (),
        "other_judges": by_address[asked.address].judges if asked.address in by_address else (),
        "served": [(one.address, _called(one, own, campaigns)) for one in campaigns],
        "found": found,
        "names": names,
        "problem": problem,
        "differences": [
            replace(one, stacked=True) if isinstance(one, TextTable) else one
            for one in changes_blocks(found and found["differences"], DifferenceWords.beside(*names))
        ],
        "chart": _chart(found["differences"]["models"]) if found else [],
        "agreement": [_agreement(found["agreement"], names[1])] if found and found["agreement"] else [],
        "disputed": _disputed(here, found["disputed"]) if found else [],
    }


def begin_comparison(here: PageContext) -> None:
    """Start what the page waits for."""
    if (sides := _chosen(here, here.served())) is not None:
        here.compared(*sides)


def _own(here: PageContext) -> str:
    return f"{here.links.store}/{here.links.campaign}"


def _chosen(here: PageContext, campaigns: Sequence[ServedCampaign]) -> _Sides | None:
    """What the address asks for, else the first two judges, else the first other campaign; None where there is none."""
    query, own = here.query, _own(here)
    if "with" in query or "other" in query or query.get("judge"):
        sides = _Sides(query.get("judge", ""), query.get("with", own), query.get("other", ""))
        return None if (sides.address, sides.other_judge) == (own, sides.judge) else sides
    judges = next((one.judges for one in campaigns if one.address == own), ())
    if len(judges) > 1:
        return _Sides(judges[0], own, judges[1])
    another = next((one.address for one in campaigns if one.address != own), None)
    return None if another is None else _Sides("", another, "")


def _called(one: ServedCampaign, own: str, campaigns: Sequence[ServedCampaign]) -> str:
    """A campaign by its name, with its store where several are served."""
    if one.address == own:
        return "this campaign"
    stores = {each.address.partition("/")[0] for each in campaigns}
    return f"{one.name} ({one.address.partition('/')[0]})" if len(stores) > 1 else one.name


def _chart(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"name": name(row["model"], 30), "value": row["change"], "lo": row["lo"], "hi": row["hi"]}
        for row in rows
        if row["change"] is not None
    ]


def _agreement(rows: Sequence[Mapping[str, Any]], beside: str) -> Block:
    return TextTable(
        [
            Column("judge", [name(row["judge"], 40) for row in rows]),
            Column("battles of both", [count(row["battles"]) for row in rows]),
            *agreement_columns(rows),
        ],
        label=f"Agreement with {beside}",
        stacked=True,
    )


def _disputed(here: PageContext, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    battles = [(row["instruction"], row["model_a"], row["model_b"]) for row in rows]
    trials = here.table.first_trials(battles)
    return [
        {
            **row,
            "link": here.links.battle(trials[battle]) if battle in trials else None,
            "preferred": [_preferred(row, side) for side in range(2)],
        }
        for row, battle in zip(rows, battles, strict=True)
    ]


def _preferred(row: Mapping[str, Any], side: int) -> str:
    """Which model a side prefers, and in what share of its judgments where they are not one."""
    won = row["shares"][side]
    if won == 0.5:
        return "tie"
    better, certain = (row["model_a"], won) if won > 0.5 else (row["model_b"], 1.0 - won)
    return name(better, 40) if certain == 1.0 else f"{name(better, 40)} ({share(certain, 0)})"
