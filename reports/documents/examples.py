"""Battles that show what a board rests on: of the closest models, most disputed between judges, flipped with the order.

Which battles are shown follows from the verdicts alone, so that two reports of the same store show the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from venire.storage.read.activity import known_models
from venire.storage.read.trial_details import TrialDetail, completions, instruction, trial_details
from venire.storage.read.trial_table import TrialFilter, TrialRow, TrialTable
from venire.storage.store.store import Store

_LOOKED_AT = 2_000
_EACH = 2
_MAX_TRIALS = 12
_TEXT = 1_200
_REASONS = 900


def closest_pair(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """The two neighbours of a board whose ratings are closest; None with fewer than two ratings.

    >>> closest_pair([{"model": "a", "elo": 9.0}, {"model": "b", "elo": 3.0}, {"model": "c", "elo": 2.0}])
    ('b', 'c')
    """
    rated = [one for one in rows if one.get("elo") is not None]
    if len(rated) < 2:
        return None
    upper, lower = min(pairwise(rated), key=lambda pair: abs(pair[0]["elo"] - pair[1]["elo"]))
    return upper["model"], lower["model"]


def example_battles(store: Store, table: TrialTable, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Up to two battles of each kind, with texts and each judge's verdict and reasons, all of them clipped."""
    found: list[dict[str, Any]] = []
    used: set[tuple[int, int | None, int | None]] = set()
    pair, numbers = closest_pair(rows), {one.name: one.number for one in known_models(store)}
    kinds: list[tuple[str, str, TrialFilter]] = []
    if pair is not None and all(one in numbers for one in pair):
        wanted = TrialFilter(model=numbers[pair[0]], opponent=numbers[pair[1]])
        kinds.append(("closest", "Of the two neighbours whose ratings are closest", wanted))
    kinds.append(("disputed", "Most disputed: judges prefer different sides", TrialFilter(disagree=True)))
    kinds.append(("flipped", "Flipped: a judge's two orders name opposite winners", TrialFilter(flipped=True)))
    for kind, words, wanted in kinds:
        there = [one for one in table.page(wanted, limit=_LOOKED_AT).rows if one.model_b is not None]
        fresh = [one for one in there if _place(one) not in used]
        for row in _first_battles(fresh):
            used.add(_place(row))
            found.append({"kind": kind, "why": words, **_battle(store, table, row)})
    return found


def _place(row: TrialRow) -> tuple[int, int | None, int | None]:
    return row.instruction_number, row.number_a, row.number_b


def _first_battles(rows: Sequence[TrialRow]) -> list[TrialRow]:
    """A trial of each of the battles with the most trials among these, the earliest first where they are equal."""
    counts = Counter(map(_place, rows))
    firsts = {_place(one): one for one in reversed(rows)}
    ranked = sorted(firsts.values(), key=lambda one: (-counts[_place(one)], one.trial))
    return ranked[:_EACH]


def _battle(store: Store, table: TrialTable, row: TrialRow) -> dict[str, Any]:
    numbers = table.battle(row.trial)
    details = trial_details(store, table.campaign, numbers[:_MAX_TRIALS])
    chosen = next((one for one in details if one.id == row.trial), details[0])
    asked = instruction(store, chosen.instruction)
    return {
        "instruction": asked.name,
        "category": asked.category,
        "text": _clip("\n\n".join(asked.turns), _TEXT),
        "completions": [{"model": one.model, "text": _clip(one.text, _TEXT)} for one in completions(store, chosen)],
        "trials": len(numbers),
        "verdicts": [_verdict(one) for one in details],
    }


def _verdict(trial: TrialDetail) -> dict[str, Any]:
    said = [one.text for one in trial.attempts if one.fault == 0 and one.text]
    reasons = max(said, key=len) if said else None
    return {
        "judge": trial.judge,
        "shown_first": trial.models[0] if trial.models else None,
        "status": trial.status,
        "winner": trial.winner,
        "reasons": None if reasons is None else _clip(reasons, _REASONS),
    }


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rstrip() + "…"
