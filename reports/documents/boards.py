"""What boards and audits for pages are made of, and the documents that are made of it: functions that a process gets.

Reading needs the store, computing does not: `live.fits` says where each is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from venire.arena.battles import Battles
from venire.storage.read import frames
from venire.storage.read.frames import CampaignRow
from venire.storage.store.store import Store


def read_for_board(
    store: Store, campaign: CampaignRow, method: str | None, judge: str, category: str, people: str | None = None
) -> tuple[Any, str | None]:
    """The campaign's verdicts, or those of some judges (a line each) or of one category; and the method.

    Beside them are the votes of the group `people` once it has any, else of the only group. Raises InputError as
    `venire.rate` does.
    """
    from venire.reports.board.stored import read_stored, select_in_campaign

    known = any(one.name == people for one in frames.people(store))
    verdicts = read_stored(store, campaign, people if known else None)
    if judge or category:
        judges = judge.split("\n") if judge else ()
        verdicts = select_in_campaign(store, verdicts, judges=judges, category=category or None)
    return verdicts, method


def board_document(verdicts: Any, method: str | None, options: Any = None) -> dict[str, Any]:
    """The document of a board, and how its verdicts were seen to come out (`seen`: A, B, wins of A, verdicts).

    Wins have ties as halves; of ballots nothing is seen pair by pair. Raises InputError as `venire.rate` does.
    """
    return with_pairs_seen(verdicts.board(method, options), verdicts.battles)


def with_pairs_seen(board: Any, battles: Battles) -> dict[str, Any]:
    """The same of a board that is there already."""
    found: dict[str, Any] = board.to_json()
    return found | {"seen": [] if battles.ballots is not None else _pairs_seen(battles)}


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
