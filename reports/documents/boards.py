"""What boards and audits for pages are made of, and the documents that are made of it: functions that a process gets.

Reading needs the store, computing does not: `live.fits` says where each is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from venire.arena.battles import Battles
from venire.storage.read import frames
from venire.storage.read.frames import CampaignRow, CampaignSpending
from venire.storage.store.store import Store


def read_for_board(
    store: Store, campaign: CampaignRow, method: str | None, judge: str, category: str, people: str | None = None
) -> tuple[Any, str | None, dict[str, Any]]:
    """The campaign's verdicts, or those of some judges (a line each) or of one category; the method; what all cost.

    Beside them are the votes of the group `people` once it has any, else of the only group. Raises InputError as
    `venire.rate` does.
    """
    from venire.reports.board.stored import read_stored, select_in_campaign

    known = any(one.name == people for one in frames.people(store))
    verdicts = read_stored(store, campaign, people if known else None)
    if judge or category:
        judges = judge.split("\n") if judge else ()
        verdicts = select_in_campaign(store, verdicts, judges=judges, category=category or None)
    return verdicts, method, cost_document(frames.campaign_spending(store, campaign.id))


def board_document(verdicts: Any, method: str | None, cost: dict[str, Any]) -> dict[str, Any]:
    """The document of a board, how its verdicts were seen to come out (`seen`), their `counts` and what they `cost`.

    Raises InputError as `venire.rate` does.
    """
    board = with_pairs_seen(verdicts.board(method, None), verdicts.battles)
    return board | {"counts": counts_document(board, verdicts.battles), "cost": cost}


def with_pairs_seen(board: Any, battles: Battles) -> dict[str, Any]:
    """The document of a board, and how its verdicts were seen to come out (`seen`: A, B, wins of A, verdicts).

    Wins have ties as halves; of ballots nothing is seen pair by pair.
    """
    found: dict[str, Any] = board.to_json()
    return found | {"seen": [] if battles.ballots is not None else _pairs_seen(battles)}


def counts_document(board: Mapping[str, Any], battles: Battles) -> dict[str, Any]:
    """How much a board is of: its models, judges by name, instructions, verdicts, and those that were read.

    Where no verdict compares models, they are of the grades.
    """
    graded = (board.get("grades") or {}).get("accuracy")
    if graded and not len(battles.status):
        (first, *_), models = graded, graded[0]["models"]
        verdicts, unparsed = (sum(one[key] for one in models) for key in ("graded", "unparsed"))
        counts = {"models": len(models), "judges": first["judges"], "instructions": first["instructions"]}
        return counts | {"verdicts": verdicts + unparsed, "read": verdicts}
    return {
        "models": len(battles.models),
        "judges": list(battles.judges),
        "instructions": len(battles.instructions),
        "verdicts": len(battles.status),
        "read": int((battles.status == 0).sum()),
    }


def cost_document(spent: CampaignSpending) -> dict[str, Any]:
    """What the verdicts of a campaign cost, in nano-dollars, calls and tokens."""
    return {
        "nano": spent.nano,
        "calls": spent.calls,
        "reserved_nano": spent.unknown,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
    }


def _pairs_seen(battles: Battles) -> list[tuple[str, str, float, int]]:
    read, models = battles.status == 0, battles.models
    pairs = battles.model_a[read].astype(np.int64) * len(models) + battles.model_b[read]
    size = len(models) ** 2
    counts = np.bincount(pairs, minlength=size)
    wins = np.bincount(pairs, weights=(battles.label[read] + 1.0) / 2.0, minlength=size)
    return [
        (models[pair // len(models)], models[pair % len(models)], float(wins[pair]), int(counts[pair]))
        for pair in np.flatnonzero(counts).tolist()
    ]


def read_for_audit(store: Store, campaign: CampaignRow) -> tuple[Any, Any, str | None]:
    """The case of an audit, whence its verdicts are, and what is to be noted. Raises InputError for grades alone."""
    from venire.reports.audit.cases import case_of_campaign
    from venire.reports.board.stored import read_stored

    verdicts = read_stored(store, campaign)
    return case_of_campaign(store, campaign, verdicts), verdicts.origins, verdicts.note


def audit_document(case: Any, origins: Any, note: str | None) -> dict[str, Any]:
    """The document of an audit, worries first, each finding with what its check asks, is about and rests on."""
    from venire.reports.audit.audit import CHECKS, WORDS, audit

    made = audit(case, origins=origins, note=note)
    found = made.to_json()
    for one, finding in zip(found["findings"], made.findings, strict=True):
        check = CHECKS[finding.check]
        one["figure"] = finding.figure  # not rounded: a page rounds once, as the command does
        one |= {"asks": check.asks, "scope": check.scope, "calls": check.calls}
    found["findings"].sort(key=lambda one: WORDS.index(one["word"]))
    return found
