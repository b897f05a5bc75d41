"""What a report says of judges and of pairs: how verdicts came out, and how reliably each judge follows ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.wording import interval_text
from venire.ratings.data.judgments import canonical, select_battles
from venire.ratings.judges.elo_from_consistency import elo_from_scores
from venire.reports.board.verdicts import Verdicts
from venire.storage.read import frames
from venire.storage.read.activity import judge_activity, pairwise_agreement
from venire.storage.read.judge_quality import served_models
from venire.storage.read.trial_table import TrialTable
from venire.storage.store.store import Store

_EDGES = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def verdict_digest(battles: Battles) -> str:
    """SHA-256 over verdicts, whatever their order and how their names are numbered: the same verdicts, the same digest.

    Raises InputError as `canonical` does.
    """
    sorted_rows = canonical(replace(battles, people=None))
    columns = [
        sorted_rows.judge,
        sorted_rows.instruction,
        sorted_rows.model_a,
        sorted_rows.model_b,
        sorted_rows.repeat,
        sorted_rows.swapped,
        sorted_rows.status,
        np.where(sorted_rows.status == 0, sorted_rows.label, 0),
    ]
    table = np.column_stack([np.asarray(one, dtype=np.int64) for one in columns])
    table = table[np.lexsort(table.T[::-1])]
    found = sha256()
    for names in (sorted_rows.models, sorted_rows.judges, sorted_rows.instructions):
        found.update(repr(names).encode())
    found.update(np.ascontiguousarray(table, dtype="<i8").tobytes())
    return found.hexdigest()


def reliability(battles: Battles, elo: Mapping[str, float]) -> list[dict[str, Any]]:
    """Of each judge, and of all (judge None), in five bands: the share that ratings predict, and the share seen.

    Pairs are turned so that the model rated higher comes first. Verdicts of ballots have no pairs of their own.
    """
    if battles.ballots is not None:
        return []
    rating = np.array([elo.get(name, np.nan) for name in battles.models])
    rows = battles.status == 0
    rows &= np.isfinite(rating[battles.model_a]) & np.isfinite(rating[battles.model_b])
    if not rows.any():
        return []
    read = select_battles(battles, rows)
    gap: NDArray[np.float64] = rating[read.model_a] - rating[read.model_b]
    won = np.asarray((read.label + 1.0) / 2.0, dtype=np.float64)
    won = np.where(gap < 0, 1.0 - won, won)
    likely: NDArray[np.float64] = np.asarray(1.0 / (1.0 + 10.0 ** (-np.abs(gap) / 400.0)), dtype=np.float64)
    found: list[dict[str, Any]] = [{"judge": None, "bands": _bands(likely, won)}]
    for code, name in enumerate(read.judges):
        own = read.judge == code
        if own.any():
            found.append({"judge": name, "bands": _bands(likely[own], won[own])})
    return found


def _bands(likely: NDArray[np.float64], won: NDArray[np.float64]) -> list[dict[str, Any]]:
    place = np.clip(np.searchsorted(_EDGES, likely, side="right") - 1, 0, len(_EDGES) - 2)
    return [
        {
            "from": float(_EDGES[band]),
            "to": float(_EDGES[band + 1]),
            "verdicts": int(here.sum()),
            "expected": round(float(likely[here].mean()), 6) if here.any() else None,
            "seen": round(float(won[here].mean()), 6) if here.any() else None,
        }
        for band in range(len(_EDGES) - 1)
        for here in (place == band,)
    ]


def judge_rows(board: Mapping[str, Any], store: Store | None, table: TrialTable | None) -> list[dict[str, Any]]:
    """The judges with the board's figures, and from a store their model, protocol, cost and served models.

    The most consistent comes first, judges without a figure last.
    """
    known: dict[str, dict[str, Any]] = {one["judge"]: dict(one) for one in board["judges"]}
    if store is not None and table is not None:
        reference = {one.name: one.elo for one in frames.judges(store, table.campaign)}
        served = {one.judge: one for one in served_models(store, table.campaign)}
        for one in judge_activity(table):
            known[one.judge] = {
                "judge": one.judge,
                **known.get(one.judge, {}),
                "model": one.model,
                "protocol": one.protocol,
                "reference_elo": reference.get(one.judge),
                "planned": one.planned,
                "failed": one.failed,
                "cost_nano": one.cost,
                "cost_per_verdict_nano": one.cost_per_verdict,
                "served": _served(served.get(one.judge)),
                "changed": bool(one.judge in served and served[one.judge].drift),
            }
    rows = list(known.values())
    return sorted(rows, key=lambda row: (row.get("corrected") is None, -(row.get("corrected") or 0.0), row["judge"]))


def judge_ratings(board: Mapping[str, Any], verdicts: Verdicts) -> dict[str, Any] | None:
    """The judges that have a consistency and are rated as models themselves, and how far both agree; None of one judge.

    Ratings are those known before, of the judge or of the model that it is. Where fewer than two are known, they are
    those of the board itself, of judges that are contestants: of one scale, where groups were rated apart.
    """
    models = {one["model"]: one for one in board["models"] if one.get("elo") is not None}
    peers = verdicts.battles.peers
    known: dict[str, dict[str, Any]] = {}
    own: dict[str, dict[str, Any]] = {}
    for one in board["judges"]:
        name = one["judge"]
        model = peers.get(name, name)
        elo = verdicts.judge_elo.get(name, verdicts.reference.get(model))
        if elo is not None:
            known[name] = {"elo": elo, "lo": None, "hi": None}
        if model in models:
            own[name] = {key: models[model].get(key) for key in ("elo", "lo", "hi", "group")}
    groups = Counter(one["group"] for one in own.values())
    (largest, _), *_ = groups.most_common(1) or [(None, 0)]
    own = {name: one for name, one in own.items() if one["group"] == largest}
    for words, rated in (("known before", known), ("of this board", own)):
        rows = [
            {"judge": one["judge"], **{key: one.get(key) for key in _CONSISTENCY}}
            | {key: rated[one["judge"]][key] for key in ("elo", "lo", "hi")}
            for one in board["judges"]
            if one["judge"] in rated and one.get("corrected") is not None
        ]
        if len(rows) > 1:
            return {"ratings": words, "judges": rows, "says": _agreement_text(rows)}
    return None


_CONSISTENCY = ("corrected", "consistency_lo", "consistency_hi")


def _agreement_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """How far the order of judges by consistency is that by rating, with an interval over judges of the same kind."""
    scores, ratings = ([one[key] for one in rows] for key in ("corrected", "elo"))
    line = elo_from_scores([one["judge"] for one in rows], scores, ratings).all
    if line.pearson is None or line.spearman is None:
        return f"{len(rows)} judges are too few, or too much alike, to say whether consistent judges are rated higher."
    found = {"Pearson": line.pearson, "Spearman": line.spearman}
    parts = [
        f"{name}'s correlation {value:.2f}"
        + ("" if bounds is None else f" (95% interval: {interval_text(*bounds, '.2f')})")
        for name, value in found.items()
        for bounds in (line.intervals.get(name.lower()),)
    ]
    return f"Of {len(rows)} judges: {', '.join(parts)}."


def _served(models: Any) -> list[dict[str, Any]]:
    found = [] if models is None else models.models
    return [{"name": one.name, "replies": one.replies, "first": str(one.first), "last": str(one.last)} for one in found]


def agreement_rows(table: TrialTable) -> list[dict[str, Any]]:
    """How often two judges preferred the same side, of the battles where both preferred one; the least first."""
    rows: Sequence[Any] = [one for one in pairwise_agreement(table) if one.battles]
    found = [
        {"judges": [one.one, one.other], "battles": one.battles, "share": round(one.same / one.battles, 6)}
        for one in rows
    ]
    return sorted(found, key=lambda one: one["share"])
