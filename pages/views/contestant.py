"""A contestant: its wins against each other one and by category, and its answers, the best and the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from venire.arena.errors import InputError
from venire.pages.context import PageContext
from venire.pages.texts import first_line
from venire.reports.documents.rows import expected
from venire.reports.numbers import count, share
from venire.reports.texts import name
from venire.storage.read.activity import known_models
from venire.storage.read.trial_table import AnswerTally

_ORDERS = {"best": "most wins first", "worst": "fewest wins first", "instruction": "as they were planned"}
"""Orders of answers (`storage.read.trial_table.ANSWER_ORDERS`) in words."""

_ANSWERS = 25


def contestant(here: PageContext) -> dict[str, Any]:
    """The values of a model's page. Raises InputError for no model, and for an address that cannot be read."""
    number = here.number
    known = next((one for one in known_models(here.store) if one.number == number), None)
    if known is None:
        raise InputError(f"the store has no model {number}")
    order, after = _choice(here.query)
    board = _board(here)
    ratings = {one["model"]: one for one in board.get("models", ())}
    opponents, categories = _opponents(here, known.name, ratings), _categories(here)
    answers = here.table.answers(number, order=order, limit=_ANSWERS + 1, after=after)
    ends = [(words, here.table.answers(number, order=key, limit=1)) for words, key in _ENDS]

    def link(start: int) -> str:
        return here.links.to(f"contestant/{number}", answers=order, after=start or None) + "#answers"

    return {
        "title": known.name,
        "model": known,
        "rating": ratings.get(known.name),
        "pending": board == {},
        "estimand": board.get("diagnostics", {}).get("estimand"),
        "opponents": opponents,
        "categories": categories,
        "charts": {"opponents": _bars(opponents), "categories": _bars(categories)},
        "ends": [(words, _answer(here, one)) for words, found in ends for one in found if one.verdicts],
        "answers": [_answer(here, one) for one in answers[:_ANSWERS]],
        "orders": [
            (words, here.links.to(f"contestant/{number}", answers=key) + "#answers", key == order)
            for key, words in _ORDERS.items()
        ],
        "previous": link(max(0, after - _ANSWERS)) if after else None,
        "next": link(after + _ANSWERS) if len(answers) > _ANSWERS else None,
        "calls": here.links.calls(model=number),
        "lost": here.links.calls(model=number, flipped=True),
        "leaderboard": here.links.to("leaderboard"),
    }


def _board(here: PageContext) -> Mapping[str, Any]:
    """The board, empty while it is under way; without models where there is none."""
    try:
        return here.board()
    except InputError:
        return {"models": ()}


_ENDS = (("Best", "best"), ("Worst", "worst"))


def _choice(query: Mapping[str, str]) -> tuple[str, int]:
    """The order of answers, and after how many of them the page begins."""
    order, after = query.get("answers", "best"), query.get("after", "0")
    if order not in _ORDERS:
        raise InputError(f"answers: they are not sorted by {order[:80]!r}; there are: {', '.join(_ORDERS)}")
    if not (after.isascii() and after.isdigit() and len(after) < 10):
        raise InputError("after: a number of answers")
    return order, int(after)


def _opponents(here: PageContext, model: str, ratings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each opponent, the strongest against it first."""

    def likely(other: str) -> float | None:
        mine, theirs = ((ratings.get(one) or {}).get("elo") for one in (model, other))
        return None if mine is None or theirs is None else expected(mine - theirs)

    rows = [
        {
            "name": one.name,
            "share": one.wins / one.verdicts if one.verdicts else None,
            "count": one.verdicts,
            "expected": likely(one.name),
            "tally": one,
            "link": here.links.calls(model=here.number, opponent=one.number),
            "page": here.links.contestant(one.number),
        }
        for one in here.table.opponents(here.number)
    ]
    return sorted(rows, key=lambda row: 2.0 if row["share"] is None else row["share"])


def _categories(here: PageContext) -> list[dict[str, Any]]:
    return [
        {
            "name": called,
            "share": wins / verdicts if verdicts else None,
            "count": verdicts,
            "link": here.links.calls(model=here.number, category=called),
        }
        for called, wins, verdicts in here.table.own_categories(here.number)
    ]


def _bars(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Shares of wins as the chart of wins takes them."""
    return [
        {
            "name": name(row["name"], 30),
            "value": row["share"],
            "other": row.get("expected"),
            "written": f"{share(row['share'], 0)} of {count(row['count'])}",
        }
        for row in rows
        if row["share"] is not None
    ]


def _answer(here: PageContext, one: AnswerTally) -> dict[str, Any]:
    return {
        "tally": one,
        "start": None if one.start is None else first_line(one.start),
        "page": here.links.instruction(one.number),
        "battle": here.links.battle(one.trial, {"model": here.number, "instruction": one.number}),
        "calls": here.links.calls(model=here.number, instruction=one.number),
    }
