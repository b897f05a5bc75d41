"""The table of trials with its filter, and the search in replies, instructions and completions."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from venire.arena.errors import InputError, fault_name
from venire.pages.addresses import COLUMNS, TableChoice, read_choice, read_filter
from venire.pages.context import PageContext
from venire.pages.texts import first_line, with_hits
from venire.reports.texts import name
from venire.storage.read.trial_table import STATUSES, ReplyHit, ReplyStart, TrialRow, TrialTable, parquet_parts
from venire.storage.transfer.delimited import header_line, write_cells

DOWNLOADS: Mapping[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
"""Forms in which the rows of a filter are to be had, with their content types."""

_SORTED_BY = {
    "trial": "trial",
    "instruction": "instruction",
    "score": "score",
    "attempts": "attempts",
    "cost": "cost",
    "latency": "latency",
    "time": "time",
}
_NUMERIC = ("trial", "repeat", "score", "attempts", "cost", "latency")
_HITS = 50
_SECONDS = 0.5
_AT_ONCE = 10_000
_UNSAVED = ("instruction_number", "number_a", "number_b", "battle", "sort_key")
_OF_BATTLE = ("instruction", "category", "models")
"""Columns that say the same of each trial of a battle: its head has them, where trials stand battle by battle."""

_PREVIEW = 400
"""Characters of a reply that are read for its first line."""

_LONGEST_WORD = 200


def winner_of(row: TrialRow) -> str | None:
    """Who won a battle by its verdict, or what a grade says; None without a verdict."""
    if row.winner is None:
        return None
    if row.model_b is None:
        return {1: "yes", 0: "no", 2: "not attempted"}.get(row.winner)
    return {1: row.model_a, -1: row.model_b}.get(row.winner, "tie")


def calls(here: PageContext) -> dict[str, Any]:
    """The values of the page of calls. Raises InputError for an address that cannot be read."""
    choice = read_choice(here.query)
    found = here.table.page(
        choice.filter,
        order=choice.order,
        descending=choice.descending,
        after=choice.after,
        before=choice.before,
        limit=choice.rows,
    )
    here_query = choice.query(after=None, before=None)
    replies = here.table.replies([row.trial for row in found.rows], _PREVIEW) if "reply" in choice.columns else {}
    rows = [
        {
            "row": row,
            "battle": here.links.battle(row.trial, here_query),
            "instruction": here.links.instruction(row.instruction_number),
            "winner": winner_of(row),
            "first": row.model_b if row.swapped else row.model_a,
            "reply": _preview(row, replies.get(row.trial)),
        }
        for row in found.rows
    ]
    by_battle = choice.order == "battle"
    statuses = here.table.statuses(choice.filter)
    first, last = (found.rows[0], found.rows[-1]) if found.rows else (None, None)
    return {
        "choice": choice,
        "groups": _groups(rows, by_battle=by_battle),
        "head": [column for column in choice.columns if by_battle and column in _OF_BATTLE],
        "count": sum(statuses.values()),
        "odd": [
            (status.replace("_", " "), count, here.links.to("calls", choice.elsewhere(status=status)))
            for status, count in statuses.items()
            if status != "ok" and choice.filter.status is None
        ],
        "facets": here.table.facets(),
        "statuses": STATUSES,
        "all_columns": COLUMNS,
        "columns": [
            _heading(here, choice, column) for column in choice.columns if not (by_battle and column in _OF_BATTLE)
        ],
        "chosen": list(_chips(here, choice)),
        "first_page": here.links.to("calls", choice.query(after=None, before=None)),
        "last_page": here.links.to("calls", choice.query(after=None, before=_end(choice))),
        "previous": first
        and found.before
        and here.links.to("calls", choice.query(after=None, before=(first.sort_key, first.trial))),
        "next": last
        and found.after
        and here.links.to("calls", choice.query(before=None, after=(last.sort_key, last.trial))),
        "downloads": {form: here.links.to(f"calls.{form}", choice.elsewhere()) for form in DOWNLOADS},
        "search": here.links.to("search"),
    }


def _groups(rows: Sequence[dict[str, Any]], *, by_battle: bool) -> list[list[dict[str, Any]]]:
    """Rows battle by battle, or all of them together."""
    return [list(group) for _, group in groupby(rows, lambda one: one["row"].battle if by_battle else 0)]


def _preview(row: TrialRow, start: ReplyStart | None) -> str:
    """The first line of a reply; of a trial without a verdict what its last call failed by."""
    if start is None:
        return ""
    if row.status in ("failed", "pending") and start.fault:
        words = fault_name(start.fault).replace("_", " ")
        return words if start.message is None else f"{words}: {name(start.message, 120)}"
    return "" if start.reply is None else first_line(start.reply)


def _end(choice: TableChoice) -> tuple[float, int]:
    """A place behind the last row."""
    return (-1e300, 0) if choice.descending else (1e300, 2**62)


def _heading(here: PageContext, choice: TableChoice, column: str) -> dict[str, Any]:
    key = _SORTED_BY.get(column)
    sorted_by = key is not None and key == choice.order
    link = key and here.links.to(
        "calls", choice.query(order=key, descending=sorted_by and not choice.descending, after=None, before=None)
    )
    way = ("descending" if choice.descending else "ascending") if sorted_by else None
    return {"key": column, "title": COLUMNS[column], "link": link, "way": way, "numeric": column in _NUMERIC}


def _chips(here: PageContext, choice: TableChoice) -> Iterator[dict[str, Any]]:
    """Each field that narrows the choice, and the address without it."""
    models = dict(here.table.facets().models)
    for key, value in TableChoice(choice.filter).query().items():
        shown = value
        if key in ("model", "opponent", "winner"):
            shown = "tie" if value == "0" else name(models.get(int(value)), 40)
        words = key.replace("_", " ").replace("min ", "at least ").replace("max ", "at most ")
        yield {"words": f"{words}: {shown}", "without": here.links.to("calls", choice.elsewhere(**{key: None}))}


def search(here: PageContext) -> dict[str, Any]:
    """Hits of a text in replies, instructions or completions; of replies the newest first, a part at a time.

    Raises InputError for an address that cannot be read.
    """
    query = here.query
    text, where = query.get("q", "").strip(), query.get("in", "replies")
    if where not in ("replies", "instructions", "completions"):
        raise InputError("in: replies, instructions or completions")
    if len(text) > _LONGEST_WORD:
        raise InputError(f"q: at most {_LONGEST_WORD} characters")
    wanted = read_filter(query)
    values: dict[str, Any] = {"q": text, "where": where, "hits": [], "part": None, "more": None}
    values["kept"] = TableChoice(wanted).query()
    if not text:
        return values
    if where != "replies":
        texts = here.table.search_texts(text, completions=where == "completions", limit=_HITS)
        values["hits"] = [
            {
                "link": here.links.instruction(one.number),
                "what": f"{name(one.instruction)}" + (f", {name(one.model)}" if one.model is not None else ""),
                "text": with_hits(one.text, text),
            }
            for one in texts
        ]
        return values
    below = query.get("below", "")
    if below and not (below.isascii() and below.isdigit() and len(below) < 16):
        raise InputError("below: a number of a reply")
    part = here.table.search(text, wanted, below=int(below) if below else None, seconds=_SECONDS, limit=_HITS)
    values["part"] = part
    names = here.table.names([one.trial for one in part.hits]) if part.hits else {}
    values["hits"] = [
        {
            "link": here.links.battle(one.trial),
            "what": _hit(one, *names.get(one.trial, (None, None, None))),
            "text": with_hits(one.text, text),
        }
        for one in part.hits
    ]
    if part.next is not None:
        values["more"] = here.links.to("search", values["kept"], q=text, **{"in": where, "below": part.next})
    return values


def _hit(hit: ReplyHit, judge: str | None, a: str | None, b: str | None) -> str:
    """What a reply was said of."""
    of = f" on {name(a, 40)}" + (f" against {name(b, 40)}" if b is not None else "") if a is not None else ""
    return f"trial {hit.trial}: {name(judge, 40)}{of}, step {hit.step}"


def download(table: TrialTable, query: Mapping[str, str], form: str) -> Iterator[bytes]:
    """The rows of a filter in their order as CSV, JSON lines or Parquet, ten thousand at a time.

    Raises InputError for another form, and for an address that cannot be read.
    """
    if form not in DOWNLOADS:
        raise InputError(f"rows are to be had as {', '.join(DOWNLOADS)}")
    choice = replace(read_choice({"order": "trial"} | dict(query)), after=None, before=None)
    parts = _parts(table, choice)
    if form == "parquet":
        return parquet_parts(_jsonl(parts), _NAMES)
    return _csv(parts) if form == "csv" else _jsonl(parts)


def _parts(table: TrialTable, choice: TableChoice) -> Iterator[list[dict[str, Any]]]:
    after: tuple[float, int] | None = None
    while True:
        page = table.page(choice.filter, order=choice.order, descending=choice.descending, after=after, limit=_AT_ONCE)
        rows = []
        for row in page.rows:
            values = {key: value for key, value in row._asdict().items() if key not in _UNSAVED}
            values["winner"] = winner_of(row)
            values["sent_at"] = None if row.sent_at is None else row.sent_at.isoformat()
            rows.append(values)
        yield rows
        if not page.after:
            return
        after = page.rows[-1].sort_key, page.rows[-1].trial


_NAMES = tuple(key for key in TrialRow._fields if key not in _UNSAVED)


def _csv(parts: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    out = io.StringIO()
    out.write(header_line(_NAMES) + "\n")
    for rows in parts:
        write_cells(out, ([row[name] for name in _NAMES] for row in rows))
        yield out.getvalue().encode("utf-8", "replace")
        out.seek(0)
        out.truncate()


def _jsonl(parts: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    for rows in parts:
        yield "".join(json.dumps(row) + "\n" for row in rows).encode()
