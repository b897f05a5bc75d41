"""The leaderboard: ratings with intervals on one scale, ranks, tied sets, and wins seen beside wins expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from venire.arena.errors import InputError
from venire.arena.registry import METHODS
from venire.arena.wording import suggest
from venire.pages.bars import drawn_board
from venire.pages.context import PageContext
from venire.reports.documents.people import people_blocks
from venire.reports.documents.rows import POINTS, expected, tied, win_matrix
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
        raise InputError(f"there is no method {chosen['method'][:80]!r}; {suggest(chosen['method'][:80], METHODS)}")
    board = here.board(*chosen.values())
    models = {one.name: one for one in known_models(here.store)}
    rows = board["models"]
    judges = chosen["judge"].split("\n") if chosen["judge"] else []
    wanted = TrialFilter(judge=judges[0] if len(judges) == 1 else None, category=chosen["category"] or None)
    return {
        "board": board,
        "drawn": drawn_board(rows, partial(board_links, here, models)),
        "chosen": chosen,
        "judges": judges,
        "wins": _wins(here, rows, models, board["seen"], wanted),
        "judge_names": [one.name for one in judges_of(here.store, here.campaign.id)],
        "categories": here.memo("categories", lambda: categories(here.store)),
        "notes": board["diagnostics"].get("notes") or (),
        "not_rated": board["diagnostics"].get("no_estimate") or {},
        "points": [(gap, expected(float(gap))) for gap in POINTS],
        "tied": tied(rows),
        "people": list(people_blocks(board["diagnostics"].get("people"))),
        "methods": [(name, METHODS[name].purpose) for name in METHODS],
    }


def board_links(here: PageContext, models: Mapping[str, ContestantRow], row: Mapping[str, Any]) -> dict[str, Any]:
    """Where a row of a board leads: the page of its model and that model's calls; None for a model of elsewhere."""
    known = models.get(row["model"])
    return {
        "page": here.links.contestant(known.number) if known else None,
        "calls": here.links.calls(model=known.number) if known else None,
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
