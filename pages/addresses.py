"""Addresses of pages, and the choices in them: a filter of trials, an order, columns and a place in the table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, get_args, get_type_hints
from urllib.parse import urlencode

from venire.arena.errors import InputError
from venire.arena.wording import suggest
from venire.storage.read.trial_table import ORDERS, TrialFilter

COLUMNS: Mapping[str, str] = {
    "trial": "trial",
    "judge": "judge",
    "protocol": "protocol",
    "instruction": "instruction",
    "category": "category",
    "models": "A against B",
    "order": "shown first",
    "repeat": "repeat",
    "winner": "winner",
    "score": "score",
    "status": "status",
    "marks": "marks",
    "reply": "reply",
    "attempts": "attempts",
    "cost": "cost",
    "latency": "latency",
    "time": "last call",
}
"""Columns of the table of trials, with their headings."""

DEFAULT_COLUMNS = (
    "trial", "judge", "instruction", "models", "order", "winner", "status", "marks", "reply", "cost", "latency",
)  # fmt: skip
DEFAULT_ORDER = "battle"

_ROWS = (25, 50, 100, 250)
MAX_IN_ADDRESS = 400
"""Characters of a category or another text that an address may name."""
_TYPES: Mapping[str, type] = {
    name: next(one for one in get_args(kind) if one is not type(None))
    for name, kind in get_type_hints(TrialFilter).items()
}


@dataclass(frozen=True, slots=True)
class TableChoice:
    """What of the table of trials a page shows: all of it is in the address."""

    filter: TrialFilter = field(default_factory=TrialFilter)
    order: str = DEFAULT_ORDER
    descending: bool = False
    after: tuple[float, int] | None = None
    before: tuple[float, int] | None = None
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    rows: int = 100

    def query(self, **changes: Any) -> dict[str, str]:
        """The choice as parameters of an address; what is as by default is left out."""
        return _query(replace(self, **changes))

    def elsewhere(self, **changes: Any) -> dict[str, str]:
        """The same from the first row on, with other fields of the filter."""
        return self.query(filter=replace(self.filter, **changes), after=None, before=None)


def _query(choice: TableChoice) -> dict[str, str]:
    found = {}
    for one in fields(choice.filter):
        if (value := getattr(choice.filter, one.name)) is not None:
            found[one.name] = _written(value)
    if choice.order != DEFAULT_ORDER:
        found["order"] = choice.order
    if choice.descending:
        found["down"] = "1"
    if choice.columns != DEFAULT_COLUMNS:
        found["columns"] = " ".join(choice.columns)
    if choice.rows != 100:
        found["rows"] = str(choice.rows)
    for name, place in (("after", choice.after), ("before", choice.before)):
        if place is not None:
            found[name] = f"{place[0]!r}~{place[1]}"
    return found


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat()
    return repr(value) if isinstance(value, float) else str(value)


def read_filter(query: Mapping[str, str]) -> TrialFilter:
    """The filter in the parameters of an address. Raises InputError that names a parameter which cannot be read."""
    return TrialFilter(
        **{one.name: _read(one.name, query[one.name]) for one in fields(TrialFilter) if query.get(one.name, "").strip()}
    )


def _read(name: str, text: str) -> Any:
    kind = _TYPES[name]
    if len(text) > MAX_IN_ADDRESS:
        raise InputError(f"{name}: at most {MAX_IN_ADDRESS} characters")
    if kind is not str:
        text = text.strip()
    try:
        if kind is bool:
            return {"yes": True, "no": False}[text]
        if kind is datetime:
            found = datetime.fromisoformat(text)
            return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        if kind is float:
            value = float(text)
            if not math.isfinite(value) or abs(value) > 1e9:
                raise ValueError
            return value
        if kind is int:
            whole = int(text)
            if not 0 <= whole < 2**31:
                raise ValueError
            return whole
    except (ValueError, KeyError, OverflowError) as error:
        raise InputError(f"{name}: {text!r} cannot be read: it takes {_TAKES[kind]}") from error
    return text


_TAKES = {
    bool: "yes or no",
    datetime: "a time such as 2026-11-23T19:00",
    float: "a number",
    int: "a number of the store",
}


def read_choice(query: Mapping[str, str]) -> TableChoice:
    """The choice in the parameters of an address. Raises InputError for one that cannot be read."""
    order = query.get("order", DEFAULT_ORDER)
    if order not in ORDERS:
        order = order[:MAX_IN_ADDRESS]
        raise InputError(f"order: rows are not sorted by {order!r}; {suggest(order, ORDERS)}")
    asked = query.get("columns", "").split()
    columns = tuple(name for name in COLUMNS if name in asked) if asked else DEFAULT_COLUMNS
    rows = query.get("rows", "100")
    if rows not in map(str, _ROWS):
        raise InputError(f"rows: {', '.join(map(str, _ROWS))}")
    return TableChoice(
        read_filter(query),
        order,
        query.get("down") == "1",
        _place(query, "after"),
        _place(query, "before"),
        columns or DEFAULT_COLUMNS,
        int(rows),
    )


def _place(query: Mapping[str, str], name: str) -> tuple[float, int] | None:
    if not (text := query.get(name, "")):
        return None
    key, _, trial = text.partition("~")
    try:
        place = float(key), int(trial)
        if not math.isfinite(place[0]) or not 0 <= place[1] < 2**63:
            raise ValueError
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name}: {text[:60]!r} is no place in the table") from error
    return place


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses of the pages of one campaign of one store."""

    store: str
    campaign: int

    @property
    def base(self) -> str:
        """What all of them begin with."""
        return f"/s/{self.store}/c/{self.campaign}"

    def to(self, page: str, query: Mapping[str, Any] | None = None, **parameters: Any) -> str:
        """The address of a page; parameters that are None are left out."""
        given = {name: value for name, value in {**(query or {}), **parameters}.items() if value not in (None, "")}
        return f"{self.base}/{page}" + (f"?{urlencode(given)}" if given else "")

    def calls(self, **wanted: Any) -> str:
        """The table of trials with a filter."""
        return self.to("calls", TableChoice(TrialFilter(**wanted)).query())

    def battle(self, trial: int, query: Mapping[str, Any] | None = None) -> str:
        """The battle that a trial belongs to; with a query, its neighbours are those of the table of that address."""
        return self.to(f"battle/{trial}", query) + f"#t{trial}"

    def instruction(self, number: int) -> str:
        """The page of an instruction."""
        return self.to(f"instruction/{number}")

    def contestant(self, number: int) -> str:
        """The page of a model."""
        return self.to(f"contestant/{number}")
