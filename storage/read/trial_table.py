"""One row a planned trial of a campaign, held in memory beside a store: filters, sorts, pages and searches of trials.

The store's tables have no indexes, and what pages ask for (flips, disagreement, the cost of a trial's attempts) joins
four of them. So the rows are made once, in DuckDB's memory, and again when verdicts have come in; a million take a
second to make and 70 MB to hold, and every page of them some milliseconds.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import duckdb

from venire.arena.errors import InputError, StoreError
from venire.arena.wording import suggest
from venire.storage.store.connection import first_line, query, quoted
from venire.storage.store.store import Store

STATUSES = ("ok", "unreadable", "refused", "truncated", "filtered", "too_long", "failed", "pending")
"""What became of a trial, by the number in the table; the last two have no verdict."""

ORDERS: Mapping[str, str] = {
    "battle": "c.battle",
    "trial": "c.trial",
    "cost": "c.cost",
    "latency": "c.latency",
    "attempts": "c.attempts",
    "time": "coalesce(epoch_us(c.sent_at), 0)",
    "score": "coalesce(abs(c.score), -1)",
    "instruction": "c.instruction",
}
"""What rows can be sorted by, with the expression of it: a number, so that a page can be continued after it."""

ANSWER_ORDERS: Mapping[str, str] = {
    "best": "wins / nullif(verdicts, 0) desc nulls last, verdicts desc, trial",
    "worst": "wins / nullif(verdicts, 0) nulls last, verdicts desc, trial",
    "instruction": "trial",
}
"""What the answers of a model can be sorted by, in SQL."""

_STALE = 20.0
"""A table is made again at the earliest after so many times as long as it took: 5 % of one core at most."""

_ANSWER_START = 400
"""Characters of an answer that a list of them reads."""

_NEAR = 2_000
"""Trials on either side of one among which its neighbours are looked for first."""

_SEARCH_ROWS = 40_000
"""Attempts that are searched at a time: some milliseconds, after which there is news and can be an end."""


@dataclass(frozen=True, slots=True)
class TrialFilter:
    """Which trials are wanted; every field that is given narrows the choice.

    Models and the instruction are the store's numbers; `winner` is a model, 0 a tie; `opponent` only counts beside
    `model`. `min_cost` and `max_cost` are dollars, latencies are seconds of all attempts of a trial together, `since`
    and `until` times of its last attempt in UTC.

    >>> TrialFilter(judge="gpt-4", flipped=True).judge
    'gpt-4'
    """

    judge: str | None = None
    protocol: str | None = None
    model: int | None = None
    opponent: int | None = None
    instruction: int | None = None
    category: str | None = None
    status: str | None = None
    winner: int | None = None
    flipped: bool | None = None
    disagree: bool | None = None
    flagged: bool | None = None
    retried: bool | None = None
    min_cost: float | None = None
    max_cost: float | None = None
    min_latency: float | None = None
    max_latency: float | None = None
    since: datetime | None = None
    until: datetime | None = None

    def clauses(self) -> tuple[str, dict[str, Any]]:
        """The condition in SQL, and its parameters."""
        parts: list[str] = []
        values: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value is None:
                continue
            if isinstance(value, bool):
                parts.append(_FLAGS[one.name] if value else f"not ({_FLAGS[one.name]})")
                continue
            if one.name == "opponent" and self.model is not None:
                continue  # with the model, below
            if one.name == "winner" and value == 0:
                parts.append("c.status = 0 and c.model_b is not null and c.winner = 0")
                continue
            if one.name == "status":
                if value not in STATUSES:
                    raise InputError(f"there is no status {value!r}; {suggest(value, STATUSES)}")
                value = STATUSES.index(value)
            parts.append(_CLAUSES[one.name])
            values[f"f_{one.name}"] = round(_SCALES[one.name] * value) if one.name in _SCALES else value
        if self.model is not None and self.opponent is not None:
            parts.append(_CLAUSES["opponent"])
            values["f_opponent"] = self.opponent
        return " and ".join(f"({part})" for part in parts) or "true", values


_FLAGS = {
    "flipped": "c.flipped",
    "disagree": "c.disagree",
    "flagged": "c.flagged",
    "retried": "c.faults > 0",
}
_CLAUSES = {
    "judge": "c.respondent in (select respondent from campaign_judge where campaign = $campaign and name = $f_judge)",
    "protocol": "c.respondent in (select id from respondent where protocol = $f_protocol)",
    "model": "$f_model in (c.model_a, c.model_b)",
    "opponent": "$f_opponent in (c.model_a, c.model_b)",
    "instruction": "c.instruction = $f_instruction",
    "category": "c.instruction in (select id from instruction where category = $f_category)",
    "status": "c.status = $f_status",
    "winner": "c.status = 0 and c.model_b is not null "
    "and $f_winner = case c.winner when 1 then c.model_a when -1 then c.model_b end",
    "min_cost": "c.cost >= $f_min_cost",
    "max_cost": "c.cost <= $f_max_cost",
    "min_latency": "c.latency >= $f_min_latency",
    "max_latency": "c.latency <= $f_max_latency",
    "since": "c.sent_at >= $f_since",
    "until": "c.sent_at <= $f_until",
}
_SCALES = {"min_cost": 1e9, "max_cost": 1e9, "min_latency": 1e3, "max_latency": 1e3}


class TrialRow(NamedTuple):
    """One trial as the table of trials shows it; cost in nano-dollars, latency in milliseconds, of all its attempts.

    `winner` is 1 for A, 0 for a tie, -1 for B; of single completions 1 yes, 0 no, 2 not attempted. `battle` is the
    first trial that shows the same completions.
    """

    trial: int
    judge: str
    protocol: str
    instruction: str
    category: str | None
    model_a: str | None
    model_b: str | None
    swapped: bool | None
    repeat: int
    status: str
    winner: int | None
    score: float | None
    flipped: bool
    disagree: bool
    flagged: bool
    attempts: int
    faults: int
    cost: int
    latency: int
    sent_at: datetime | None
    instruction_number: int
    number_a: int | None
    number_b: int | None
    battle: int
    sort_key: float


@dataclass(frozen=True, slots=True)
class TrialPage:
    """Rows of one page in order, and whether there are rows before and after them."""

    rows: tuple[TrialRow, ...]
    before: bool
    after: bool


@dataclass(frozen=True, slots=True)
class Facets:
    """What there is to choose from: judges with their protocols, models by number, and categories."""

    judges: tuple[tuple[str, str], ...]
    models: tuple[tuple[int, str], ...]
    categories: tuple[str, ...]


class ReplyHit(NamedTuple):
    """A reply, or its reasoning, that holds the text that was searched for."""

    row: int
    trial: int
    step: int
    attempt: int
    text: str


class ReplyStart(NamedTuple):
    """The beginning of a trial's longest reply; of its last call without one fault and message."""

    trial: int
    reply: str | None
    fault: int | None
    message: str | None


class TextHit(NamedTuple):
    """An instruction (without a model) or a completion that holds the text that was searched for."""

    number: int
    """Of the instruction."""
    instruction: str
    model: str | None
    text: str


class InstructionTally(NamedTuple):
    """How the verdicts on one instruction came out, as shares: ties, flips, disagreements, decided verdicts."""

    number: int
    name: str
    category: str | None
    verdicts: int
    ties: float
    flips: float
    disagreements: float
    decisive: float


class OpponentTally(NamedTuple):
    """How a model did against another: wins with ties as halves, readable verdicts, shares of flips, disagreements."""

    number: int
    name: str
    wins: float
    verdicts: int
    flips: float
    disagreements: float


class AnswerTally(NamedTuple):
    """How a model's answer to one instruction did: wins with ties as halves, readable verdicts on pairs.

    `trial` is the first that shows it, `start` the beginning of its text.
    """

    number: int
    """Of the instruction."""
    instruction: str
    category: str | None
    wins: float | None
    verdicts: int
    trial: int
    start: str | None

    @property
    def share(self) -> float | None:
        """The share of wins."""
        return None if self.wins is None or not self.verdicts else float(self.wins) / self.verdicts


def categories(store: Store) -> tuple[str, ...]:
    """The categories of a store's instructions, by name."""
    return tuple(name for (name,) in store.read("category_names"))


@dataclass(frozen=True, slots=True)
class SearchPart:
    """Hits of a part of a search, newest first; the next part goes on below row `next`, None: all was searched."""

    hits: tuple[ReplyHit, ...]
    next: int | None
    searched: int
    rows: int


class TrialTable:
    """The trials of one campaign of an open store; safe in any thread while the writer is at work."""

    def __init__(self, store: Store, campaign: int) -> None:
        self.store, self.campaign = store, campaign
        self._name = f"trial_table_{campaign}"
        self._making = threading.Lock()
        self._batch = -1
        self._made = 0.0
        self._took = 0.0
        self.made_at: datetime | None = None
        """When the rows were read, in UTC; None before `refresh`."""
        self._facets: tuple[datetime | None, Facets] = None, Facets((), (), ())

    @property
    def is_current(self) -> bool:
        """Whether the rows hold everything that is committed."""
        return self._batch == self.store.batch

    def refresh(self, *, at_once: bool = False) -> None:
        """Make the rows, or make them again where the store has grown, not more often than is cheap unless `at_once`.

        Raises StoreError where the store cannot be read.
        """
        with self._making:
            if self.is_current:
                return
            if self.made_at and not at_once and monotonic() - self._made < _STALE * self._took:
                return
            batch, start = self.store.batch, monotonic()
            self._run("make_trial_table", campaign=self.campaign)
            self._batch, self._made, self._took = batch, monotonic(), max(monotonic() - start, 0.05)
            self.made_at = datetime.now(UTC)

    def page(
        self,
        wanted: TrialFilter,
        *,
        order: str = "trial",
        descending: bool = False,
        after: tuple[float, int] | None = None,
        before: tuple[float, int] | None = None,
        limit: int = 100,
    ) -> TrialPage:
        """Rows of a filter in an order, those after (or just before) a row given by its sort key and trial.

        Raises InputError for an order that `ORDERS` does not have.
        """
        if order not in ORDERS:
            raise InputError(f"rows are not sorted by {order!r}; {suggest(order, ORDERS)}")
        expression = ORDERS[order]
        backwards = before is not None
        falling = descending != backwards
        where, values = wanted.clauses()
        place = before or after
        if place is not None:
            where += f" and {_beyond(expression, falling=falling)}"
            values |= {"k_key": _exact(place[0]), "k_trial": place[1]}
        way = "desc" if falling else "asc"
        found = self._run(
            "trial_table_rows",
            where=where,
            order=f"{expression} {way}, c.trial {way}",
            key=expression,
            status=_STATUS_WORDS,
            campaign=self.campaign,
            limit=limit + 1,
            **values,
        )
        more, rows = len(found) > limit, [TrialRow._make(row) for row in found[:limit]]
        if backwards:
            return TrialPage(tuple(reversed(rows)), before=more, after=True)
        return TrialPage(tuple(rows), before=after is not None, after=more)

    def count(self, wanted: TrialFilter) -> int:
        """How many trials a filter keeps."""
        return sum(self.statuses(wanted).values())

    def statuses(self, wanted: TrialFilter) -> dict[str, int]:
        """How many trials of a filter have each status, those that none has left out."""
        where, values = wanted.clauses()
        rows = self._run("trial_table_count", where=where, status=_STATUS_WORDS, campaign=self.campaign, **values)
        counts = dict(rows)
        return {status: counts[status] for status in STATUSES if status in counts}

    def replies(self, trials: Sequence[int], characters: int) -> dict[int, ReplyStart]:
        """What calls for some trials came to."""
        rows = self._run("trial_replies", trials=list(trials), characters=characters)
        return {one.trial: one for one in map(ReplyStart._make, rows)}

    def facets(self) -> Facets:
        """What filters can be made of."""
        made_at, kept = self._facets
        if made_at is not None and made_at == self.made_at:
            return kept
        made_at = self.made_at
        judges = self._run("trial_table_judges", campaign=self.campaign)
        models = self._run("trial_table_models")
        found = Facets(
            tuple((name, protocol) for name, protocol, _ in judges),
            tuple((number, name) for number, name in models),
            categories(self.store),
        )
        self._facets = made_at, found
        return found

    def matrix(self, wanted: TrialFilter) -> tuple[tuple[int, int, float, int, int], ...]:
        """Of each pair A, B of models by number: wins of A with ties as halves, verdicts, planned trials."""
        where, values = wanted.clauses()
        rows = self._run("trial_table_matrix", where=where, campaign=self.campaign, **values)
        return tuple((a, b, float(wins), int(count), int(planned)) for a, b, wins, count, planned in rows)

    def instructions(
        self, wanted: TrialFilter, *, order: str = "verdicts desc", limit: int = 50
    ) -> tuple[InstructionTally, ...]:
        """Instructions with verdicts, in the order of one of their figures with its direction."""
        where, values = wanted.clauses()
        rows = self._run(
            "trial_table_instructions", where=where, order=f"{order}, 1", campaign=self.campaign, limit=limit, **values
        )
        return tuple(InstructionTally(*row[:4], *(float(one or 0.0) for one in row[4:])) for row in rows)

    def opponents(self, model: int) -> tuple[OpponentTally, ...]:
        """How a model did against each other one."""
        rows = self._run("trial_table_opponents", model=model)
        return tuple(OpponentTally(one, name, float(w or 0.0), n, f, d) for one, name, w, n, f, d in rows)

    def own_categories(self, model: int) -> tuple[tuple[str | None, float, int], ...]:
        """How a model did in each category: wins with ties as halves, and verdicts."""
        rows = self._run("trial_table_own_categories", model=model)
        return tuple((name, float(wins or 0.0), int(count)) for name, wins, count in rows)

    def answers(self, model: int, *, order: str, limit: int, after: int = 0) -> tuple[AnswerTally, ...]:
        """How the answers of a model did, `limit` of them behind the first `after` in an order of `ANSWER_ORDERS`."""
        rows = self._run(
            "trial_table_answers",
            order=ANSWER_ORDERS[order],
            model=model,
            limit=limit,
            offset=after,
            characters=_ANSWER_START,
        )
        return tuple(map(AnswerTally._make, rows))

    def battle(self, trial: int, *, limit: int = 200) -> tuple[int, ...]:
        """The trials that show the same completions as one does, that one among them."""
        return tuple(int(row[0]) for row in self._run("trial_table_battle", trial=trial, limit=limit))

    def neighbours(
        self, wanted: TrialFilter, *, order: str, descending: bool, trial: int, without: Sequence[int]
    ) -> tuple[int | None, int | None]:
        """The trials of a filter before and after one in an order, some left out; None where there is none."""
        expression = ORDERS[order]
        key = _exact(trial if order == "trial" else self.sort_key(trial, order))
        where, values = wanted.clauses()
        found = self._near(where, values, expression, key, trial, without)
        if descending:
            found.reverse()
        for index, falling in enumerate((not descending, descending)):
            if found[index] is not None:
                continue
            way = "desc" if falling else "asc"
            rows = self._run(
                "trial_neighbour",
                where=f"{where} and {_beyond(expression, falling=falling)}",
                order=f"{expression} {way}, c.trial {way}",
                campaign=self.campaign,
                without=list(without),
                k_key=key,
                k_trial=trial,
                **values,
            )
            found[index] = int(rows[0][0]) if rows else None
        return found[0], found[1]

    def _near(
        self, where: str, values: Mapping[str, Any], expression: str, key: float, trial: int, without: Sequence[int]
    ) -> list[int | None]:
        """The trials before and after one in an upward order, if they are near: then most rows need not be read."""
        numbers_trials = expression in (ORDERS["trial"], ORDERS["battle"])
        is_near = f"between $k_key - {_NEAR} and $k_key + {_NEAR}" if numbers_trials else "= $k_key"
        rows = self._run(
            "trial_neighbours_near",
            key=expression,
            where=f"{expression} {is_near} and {where}",
            campaign=self.campaign,
            without=list(without),
            k_key=key,
            k_trial=trial,
            **values,
        )
        return list(rows[0])

    def sort_key(self, trial: int, order: str) -> float:
        """Where a trial stands in an order; 0 of one that is not there."""
        rows = self._run("trial_sort_key", key=ORDERS[order], trial=trial)
        return float(rows[0][0]) if rows else 0.0

    def search(self, text: str, wanted: TrialFilter, *, below: int | None, seconds: float, limit: int) -> SearchPart:
        """Search replies for a text, the newest first, below a row of attempts, for so many seconds or hits."""
        ((rows,),) = self._run("attempt_rows")
        high = rows if below is None else min(below, rows)
        where, values = wanted.clauses()
        until, hits = monotonic() + seconds, list[ReplyHit]()
        while high > 0 and len(hits) < limit and monotonic() < until:
            low = max(0, high - _SEARCH_ROWS)
            found = self._run(
                "search_replies",
                where=where,
                text=text.lower(),
                low=low,
                high=high,
                limit=limit - len(hits),
                campaign=self.campaign,
                **values,
            )
            hits += [ReplyHit(row, trial, step, number, reply) for row, trial, step, number, _, reply in found]
            high = hits[-1].row if len(hits) >= limit else low
        return SearchPart(tuple(hits), high or None, rows - high, rows)

    def first_trials(self, battles: Sequence[tuple[str, str, str]]) -> dict[tuple[str, str, str], int]:
        """The first trial of each battle, which is given by the names of its instruction, of A and of B."""
        instructions, models_a, models_b = map(list, zip(*battles, strict=True)) if battles else ([], [], [])
        rows = self._run("first_trials", instructions=instructions, models_a=models_a, models_b=models_b)
        return {(instruction, a, b): trial for instruction, a, b, trial in rows}

    def names(self, trials: Sequence[int]) -> dict[int, tuple[str | None, str | None, str | None]]:
        """Judge and models of some trials."""
        rows = self._run("trial_table_names", trials=list(trials), campaign=self.campaign)
        return {trial: (judge, a, b) for trial, judge, a, b in rows}

    def search_texts(self, text: str, *, completions: bool, limit: int) -> tuple[TextHit, ...]:
        """Instructions, or completions, that hold a text, in the order in which they were imported."""
        if not completions:
            found = self._run("search_instructions", text=text.lower(), limit=limit)
            return tuple(TextHit(number, name, None, turns) for number, name, turns in found)
        found = self._run("search_completions", text=text.lower(), limit=limit)
        return tuple(TextHit(number, name, model, text_found) for number, name, model, text_found in found)

    def rows(self, name: str, /) -> list[Any]:
        """All rows of a named query on the table, or on the campaign."""
        return self._run(name, campaign=self.campaign)

    def _run(self, name: str, *, where: str = "true", **values: Any) -> list[Any]:
        text = query(name)
        shapes = {key: values.pop(key) for key in ("order", "key", "status") if key in values}
        text = text.format(table=self._name, where=where, **shapes)
        given = {key: value for key, value in values.items() if f"${key}" in text}
        try:
            cursor = self.store.lend_cursor()
            rows: list[Any] = cursor.execute(text, given).fetchall()
            self.store.keep_cursor(cursor)
            return rows
        except duckdb.Error as error:
            raise StoreError(f"the store {self.store.path} cannot be read: {first_line(error)}") from error


def _beyond(expression: str, *, falling: bool) -> str:
    """The condition for rows behind a place; its first half follows from the other, and leaves row groups unread."""
    sign = "<" if falling else ">"
    return f"{expression} {sign}= $k_key and ({expression}, c.trial) {sign} ($k_key, $k_trial)"


def _exact(key: float) -> float | int:
    """A sort key, whole where it can be: beside a fraction DuckDB would convert a column of whole numbers."""
    return int(key) if abs(key) < 2**62 and key == int(key) else key


_STATUS_WORDS = f"{list(STATUSES)}[c.status + 1]"


_PARQUET = {
    **dict.fromkeys(("trial", "cost"), "bigint"),
    **dict.fromkeys(("repeat", "attempts", "faults", "latency"), "integer"),
    **dict.fromkeys(("swapped", "flipped", "disagree", "flagged"), "boolean"),
    "score": "double",
    "sent_at": "timestamptz",
}


def parquet_parts(lines: Iterator[bytes], names: Sequence[str]) -> Iterator[bytes]:
    """Rows of trials, given as JSON lines, as the parts of a Parquet file; columns that are not numbers are texts.

    Parts are empty while rows are still gathered.
    """
    with tempfile.TemporaryDirectory(prefix="venire-") as folder, duckdb.connect(":memory:") as connection:
        source, target = Path(folder) / "rows.jsonl", Path(folder) / "rows.parquet"
        with source.open("wb") as file:
            for part in lines:
                file.write(part)
                yield b""  # so that whoever takes the parts can stop in between
        columns = ", ".join(f"{quoted(name)}: {quoted(_PARQUET.get(name, 'varchar'))}" for name in names)
        connection.execute("set enable_progress_bar = false")
        connection.execute("set memory_limit = '256MB'")
        connection.execute(
            f"copy (from read_json({quoted(source)}, format = 'nd', columns = {{{columns}}})) to {quoted(target)} "
            "(format parquet)"
        )
        with target.open("rb") as file:
            while block := file.read(1 << 20):
                yield block
