"""The judges: what each reads, how consistent it is, what it is given to, what it costs, and how far they agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from venire.pages.addresses import MAX_IN_ADDRESS
from venire.pages.context import PageContext
from venire.reports.documents.people import people_blocks
from venire.reports.documents.sentences import MEANINGS
from venire.reports.numbers import count, share
from venire.reports.sections import Block, Matrix, MatrixCell
from venire.reports.texts import name
from venire.storage.read.activity import JudgeAgreementRow, judge_activity, pairwise_agreement
from venire.storage.read.judge_quality import served_models

_CALLED = {"discrimination": "slope", "first": "first place"}
"""What the table calls figures whose keys say something else."""

_SECONDS = 10.0


def judges(here: PageContext) -> dict[str, Any]:
    """The values of the judges' page: a board's document, the campaign's trials, the audit where it is at hand."""
    board, audit = here.board(), here.audit_at_hand() or {}
    active = here.memo("judges", lambda: judge_activity(here.table), _SECONDS)
    served = {
        one.judge: one for one in here.memo("served", lambda: served_models(here.store, here.campaign.id), _SECONDS)
    }
    agreement = here.memo("agreement", lambda: pairwise_agreement(here.table), _SECONDS)
    by_name = {one["judge"]: one for one in board["judges"]}
    names = [one.judge for one in active]
    return {
        "board": board,
        "meanings": MEANINGS,
        "called": _CALLED,
        "judges": [
            {
                "active": one,
                "figures": by_name.get(one.judge),
                "served": served.get(one.judge),
                "links": {
                    "all": here.links.calls(judge=one.judge),
                    "flipped": here.links.calls(judge=one.judge, flipped=True),
                    "ties": here.links.calls(judge=one.judge, winner=0),
                    "unread": here.links.calls(judge=one.judge, status="unreadable"),
                    "failed": here.links.calls(judge=one.judge, status="failed"),
                    "retried": here.links.calls(judge=one.judge, retried=True),
                    "flagged": here.links.calls(judge=one.judge, flagged=True),
                    "disagree": here.links.calls(judge=one.judge, disagree=True),
                },
            }
            for one in active
        ],
        "has_ability": any(one.get("ability") is not None for one in by_name.values()),
        "agreement": _agreement(here, names, agreement),
        "people": list(people_blocks(board["diagnostics"].get("people"))),
        "peers": board["diagnostics"].get("peers"),
        "checks": [one for one in audit.get("findings", ()) if one["scope"] == "judges"],
        "audit": here.links.to("audit"),
        "chart": [
            {
                "name": name(one["judge"], 30),
                "lo": one["consistency_lo"],
                "hi": one["consistency_hi"],
                "value": one["corrected"],
            }
            for one in board["judges"]
            if one.get("corrected") is not None and one.get("consistency_lo") is not None
        ],
        "disagreements": here.links.calls(disagree=True),
    }


def _agreement(here: PageContext, names: Sequence[str], rows: Sequence[JudgeAgreementRow]) -> list[Block]:
    """How often each two judges prefer the same side; each cell leads to these two side by side."""
    seen = {}
    for one in rows:
        seen[one.one, one.other] = seen[one.other, one.one] = one

    def cell(judge: str, other: str) -> MatrixCell | None:
        if judge == other:
            return None
        found = seen.get((judge, other))
        if found is None or not found.battles:
            return MatrixCell("·")
        same = found.same / found.battles
        words = f"{name(judge, 40)} and {name(other, 40)}: {share(same, 0)} of {count(found.battles)}"
        short = max(len(judge), len(other)) <= MAX_IN_ADDRESS
        address = here.links.to("compare", judge=judge, other=other) if short else ""
        return MatrixCell(share(same, 0), f"of {count(found.battles)}", round(10 * same), address, words)

    heads, sides = [name(judge, 20) for judge in names], [name(judge, 24) for judge in names]
    cells = [[cell(judge, other) for other in names] for judge in names]
    return [Matrix("Agreement between judges", heads, sides, cells)] if len(names) > 1 else []
