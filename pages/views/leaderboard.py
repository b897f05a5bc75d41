"""The leaderboard: ratings with intervals on one scale, ranks, tied sets, and wins seen beside wins expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from venire.arena.errors import InputError
from venire.arena.registry import METHODS
from venire.pages.bars import axis, bar, scale
from venire.pages.context import PageContext
from venire.reports.documents.people import people_blocks
from venire.reports.documents.rows import POINTS, expected, rank_range, tied, win_matrix
from venire.reports.sections import Block, faint
from venire.storage.read.activity import ContestantRow, known_models
from venire.storage.read.frames import judges as judges_of
from venire.storage.read.trial_table import TrialFilter, categories


def leaderboard(here: PageContext) -> dict[str, Any]:
    """The values of the leaderboard's page, from a board's document (docs/documents.md) and how it was chosen.

    Raises InputError for a method that there is not.
    """
    chosen = {name: here.query.get(name, "").strip("\n") for name in ("method", "judge", "category")}
    if chosen["method"] and chosen["method"] not in METHODS:
        raise InputError(f"there is no method {chosen['method'][:80]!r}; there are: {', '.join(METHODS)}")
    board = here.board(*chosen.values())
    models = {one.name: one for one in known_models(here.store)}
    rows = board["models"]
    ends = scale(rows)
    judges = chosen["judge"].split("\n") if chosen["judge"] else []
    wanted = TrialFilter(judge=judges[0] if len(judges) == 1 else None, category=chosen["category"] or None)
    return {
        "board": board,
        "rows": [_row(here, one, models, ends) for one in rows],
        "ordered": bool(rows) and all(one.get("elo") is None for one in rows),
        "axis": None if ends is None else axis(*ends),
        "chosen": chosen,
        "judges": judges,
        "wins": _wins(here, rows, models, board["seen"], wanted),
        "judge_names": [one.name for one in judges_of(here.store, here.campaign.id)],
        "categories": here.memo("categories", lambda: categories(here.store)),
        "notes": board["diagnostics"].get("notes") or (),
        "not_rated": board["diagnostics"].get("no_estimate") or {},
        "has_reference": any(one.get("reference") is not None for one in rows),
        "points": [(gap, expected(float(gap))) for gap in POINTS],
        "tied": tied(rows),
        "people": list(people_blocks(board["diagnostics"].get("people"))),
        "methods": [(name, METHODS[name].purpose) for name in METHODS],
    }


def _row(
    here: PageContext, one: Mapping[str, Any], models: Mapping[str, ContestantRow], ends: tuple[float, float] | None
) -> dict[str, Any]:
    known = models.get(one["model"])
    return {
        "facts": one,
        "bar": bar(one, ends),
        "rank": rank_range(one),
        "page": here.links.contestant(known.number) if known else None,
        "calls": here.links.calls(model=known.number) if known else None,
        "family": known.family if known else None,
    }


def _wins(
    here: PageContext,
    rows: Sequence[Mapping[str, Any]],
    models: Mapping[str, ContestantRow],
    pairs: Sequence[tuple[str, str, float, int]],
    wanted: TrialFilter,
) -> list[Block]:
    """The matrix of wins, each cell with a link to its calls."""

    def calls(model: str, opponent: str) -> str:
        numbers = models[model].number, models[opponent].number
        return here.links.calls(model=numbers[0], opponent=numbers[1], judge=wanted.judge, category=wanted.category)

    ordered = all(one.get("elo") is None for one in rows)
    text = "Each row's share of verdicts won against each column, ties as halves"
    text += "" if ordered else "; in brackets what the ratings expect"
    known = [one for one in rows if one["model"] in models]
    return [faint(f"{text}. A cell leads to its calls."), win_matrix(known, pairs, address=calls)]
