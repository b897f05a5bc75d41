"""Two campaigns, or two judges, side by side: ratings, agreement, and the battles on which they are furthest apart."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.agreement.people_agreement import judges_beside
from venire.ratings.data.judgments import Judgments, combine_keys
from venire.ratings.data.people import human_labels
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import merge_selected
from venire.reports.board.stored import read_stored, select_in_campaign
from venire.reports.board.verdicts import Verdicts
from venire.reports.documents.changes import differences
from venire.reports.json_values import json_values
from venire.reports.wording import DifferenceWords
from venire.storage.read.frames import CampaignRow
from venire.storage.store.store import Store

_LEVEL = 0.95
_DISPUTED = 50
"""Battles that are listed at most."""


def read_for_comparison(
    store: Store, campaign: CampaignRow, other: Store, beside: CampaignRow, judge: str, address: str, other_judge: str
) -> tuple[Verdicts, Verdicts, str, str]:
    """The verdicts of both campaigns, each of one judge or of all (""), and what the two are called.

    `address` tells campaigns of one name apart. Raises InputError as `select_in_campaign` does.
    """
    sides, names = [], []
    same = campaign == beside and store.path == other.path
    for there, row, name in ((store, campaign, judge), (other, beside, other_judge)):
        verdicts = read_stored(there, row)
        sides.append(select_in_campaign(there, verdicts, judges=(name,)) if name else verdicts)
        names.append((name or "all judges") if same else f"{row.name}, {name}" if name else row.name)
    if names[0] == names[1]:
        names[1] += f" ({address})"
    return sides[0], sides[1], names[0], names[1]


def comparison_document(left: Verdicts, right: Verdicts, name: str, other_name: str) -> dict[str, Any]:
    """What two tables of verdicts differ in, as plain values.

    `differences` are as of a report's `--against`, the other less this one; `agreement` has each judge of this one
    beside the other's judgments of the same battles; `battles` and `opposite` count those of both and those of which
    they prefer different sides, `disputed` are those that are furthest apart. Raises InputError for ballots and grades.
    """
    for one in (left, right):
        if one.battles.ballots is not None or not len(one.battles.label):
            raise InputError("only verdicts on pairs are held side by side: ballots and grades are not")
    if len(set(left.battles.models) & set(right.battles.models)) < 2:
        raise InputError(f"{name} and {other_name} have fewer than two models in common: nothing compares")
    words = DifferenceWords.beside(name, other_name)
    options = Options(level=_LEVEL, seed=left.seed)
    ours = merge_selected(left.battles, options)
    disputed = _disputed(ours, right.battles)
    return {
        "names": [name, other_name],
        "differences": differences(left, right, other_name, left.method, options, words=words),
        "agreement": [json_values(asdict(one)) for one in judges_beside(ours, right.battles) if one.votes],
        **disputed,
    }


def _disputed(ours: Judgments, theirs: Battles) -> dict[str, Any]:
    """The battles of both by how far apart the mean sides are that they take, shares for the first model."""
    found = human_labels(ours, theirs)
    seen = np.isfinite(found.human)
    rows = found.rows[seen]
    key = combine_keys(ours.model_a[rows], ours.model_b[rows], ours.instruction[rows] + 1)
    _, first, battle, count = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    shares = [np.bincount(battle, side, len(count)) / count for side in (ours.y[rows], found.human[seen])]
    apart = np.abs(shares[0] - shares[1])
    opposite = (shares[0] - 0.5) * (shares[1] - 0.5) < 0.0
    order = np.lexsort((first, -apart, ~opposite))[:_DISPUTED]
    return {
        "battles": len(count),
        "opposite": int(opposite.sum()),
        "disputed": [
            {
                "instruction": ours.instructions[ours.instruction[row]],
                "model_a": ours.models[ours.model_a[row]],
                "model_b": ours.models[ours.model_b[row]],
                "shares": [round(float(side[index]), 6) for side in shares],
            }
            for index, row in zip(order.tolist(), rows[first[order]].tolist(), strict=True)
            if apart[index] > 0.0
        ],
    }
