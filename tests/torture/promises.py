"""The five promises, checked from the judge server's own ledger against what the store says.

A request's key is `<trial key>-<step>`; its place in the ledger says in which run it was made, since the rig starts a
run only when the server has nothing in flight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from venire.arena.campaigns import TokenPrice
from venire.simulation.ledger import LedgerEntry

DUPLICATE = "a late duplicate that the rig put there"

_ATTEMPTS = """
select lower(hex(t.trial_key)) || '-' || a.step request, c.name paid_by, a.*
  from attempt a join trial t on t.id = a.trial join campaign c on c.id = a.campaign
  order by a.trial, a.step, a.number, a.batch
"""
_VERDICTS = (
    "select lower(hex(t.trial_key)) key, v.* from verdict v join trial t on t.id = v.trial order by v.trial, v.reading"
)


@dataclass(frozen=True)
class Broken:
    """A promise that was broken: its number, what was expected and what was seen."""

    number: int
    expected: str
    seen: str


@dataclass(frozen=True)
class Dump:
    """The rows of a store."""

    attempts: list[dict[str, Any]]
    verdicts: list[tuple[Any, ...]]
    ledger: list[tuple[int, int, int]]
    """Batch, written, running."""

    @classmethod
    def of(cls, connection: Any) -> Dump:
        """All attempts, verdicts and lines of the ledger; texts as digests."""
        result = connection.execute(_ATTEMPTS)
        names = [column[0] for column in result.description]
        attempts = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
        for row in attempts:
            row["raw"] = None if row["raw"] is None else sha256(row["raw"].encode()).hexdigest()
        ledger = connection.execute("select batch, written, running from ledger order by batch").fetchall()
        return cls(attempts, connection.execute(_VERDICTS).fetchall(), ledger)

    def settled(self) -> set[str]:
        """Requests whose answer is on record, and every request of a trial that has a verdict."""
        return {row["request"] for row in self.attempts if row["fault"] == 0}

    def judged(self) -> set[str]:
        """Keys of trials with a verdict."""
        return {row[0] for row in self.verdicts}

    def account(self, campaign: str) -> int:
        """Nano-dollars that a campaign spent or has reserved."""
        return sum(
            row["reserved"] if row["cost"] is None else row["cost"]
            for row in self.attempts
            if row["paid_by"] == campaign
        )


@dataclass
class Run:
    """One `venire run`: what it was, how it ended, and which entries of the ledger are its own."""

    campaign: str
    first: int
    """Entries in the ledger before it."""
    last: int = 0
    """Entries in the ledger after it."""
    code: int = 0
    err: str = ""
    opened: Dump | None = None
    """The store once it was open; None where the process did not get so far."""
    after: Dump | None = None
    """What was committed when it had ended; None where the store could not be looked at."""
    batch: int = 0
    """The last batch whose commit returned."""
    fault: str | None = None
    in_calls: bool = False
    """Whether the fault came while calls could be under way."""
    ended_in_time: bool = True

    @property
    def told(self) -> str:
        """What was done to it."""
        return self.fault or "undisturbed"


@dataclass
class Facts:
    """All that the promises of a round are checked by."""

    entries: Sequence[LedgerEntry]
    runs: list[Run]
    final: Dump | None
    prices: Mapping[str, TokenPrice]
    """By model."""
    calls: Mapping[str, int]
    money: Mapping[str, int]
    """Budgets by campaign, where it has one; nano-dollars."""
    tokens: Mapping[tuple[str, str | None], int]
    """Budgets in tokens by campaign and model; no model: the whole campaign's."""
    group_rows: int
    concurrency: int
    strict: bool = False
    rates: Mapping[str, str] = field(default_factory=dict)
    expected: Mapping[str, str] = field(default_factory=dict)
    problems: list[Broken] = field(default_factory=list)
    """What the rig met on its way."""

    def of(self, run: Run) -> Sequence[LedgerEntry]:
        """The entries of a run."""
        return self.entries[run.first : run.last]

    def charged(self, entry: LedgerEntry) -> int:
        """What the provider would charge for a request, in nano-dollars."""
        return 0 if entry.billed is None else self.prices[str(entry.model)].cost(*entry.billed)


def broken_promises(facts: Facts) -> list[Broken]:
    """Every promise that a round broke."""
    found = list(facts.problems)
    found += _endings(facts)
    if facts.final is not None:
        for check in (_lost, _rewritten, _asked_again, _accounts_of, _quoted, _overspent, _recorded, _whole, _changed):
            found += check(facts, facts.final)
    return found


def _lost(facts: Facts, final: Dump) -> Iterator[Broken]:
    """1. What was answered is on record; a kill or a dead disk may cost a group and what is in flight twice over."""
    there = {(row["request"], row["raw"]) for row in final.attempts}
    for number, run in enumerate(facts.runs, 1):
        answered = [one for one in facts.of(run) if one.answered is not None and one.outcome != "late"]
        missing = [one for one in answered if (str(one.key), one.answer) not in there]
        allowed = _may_lose(facts, run)
        if len(missing) > allowed:
            yield Broken(
                1,
                f"of the {len(answered)} answers of run {number} ({run.told}) all but {allowed} on record",
                f"{len(missing)} missing, such as {missing[0].key} (entry {missing[0].ordinal} of the ledger)",
            )


def _may_lose(facts: Facts, run: Run) -> int:
    if run.code == -9 or run.fault == "disk dead":
        return facts.concurrency if facts.strict else facts.group_rows + 2 * facts.concurrency
    return facts.concurrency if run.fault in ("SIGTERM twice", "SIGSTOP") else 0


def _rewritten(facts: Facts, final: Dump) -> Iterator[Broken]:
    """1. What is on record is byte for byte what the server sent."""
    sent = {(one.key, one.answer) for one in facts.entries}
    for row in final.attempts:
        if row["fault"] == 0 and row["message"] != DUPLICATE and (row["request"], row["raw"]) not in sent:
            yield Broken(1, f"the reply to {row['request']} as the server sent it", f"other bytes, digest {row['raw']}")
            return


def _asked_again(facts: Facts, final: Dump) -> Iterator[Broken]:
    """2. What was settled when a run began is not asked in it."""
    for number, run in enumerate(facts.runs, 1):
        if run.opened is None:
            continue
        settled, judged = run.opened.settled(), run.opened.judged()
        again = [one for one in facts.of(run) if one.key in settled or str(one.key).partition("-")[0] in judged]
        if again:
            yield Broken(
                2,
                f"none of the {len(settled)} settled steps and {len(judged)} judged trials asked in run {number}",
                f"{len(again)} asked again, such as {again[0].key} (entry {again[0].ordinal})",
            )


def _accounts_of(facts: Facts, final: Dump) -> Iterator[Broken]:
    """2 and 3. Each request is an attempt on the account of the campaign that made it."""
    made = Counter((run.campaign, str(one.key)) for run in facts.runs for one in facts.of(run))
    kept = Counter((row["paid_by"], row["request"]) for row in final.attempts if row["message"] != DUPLICATE)
    missing = made - kept
    if missing:
        (campaign, key), count = next(iter(missing.items()))
        yield Broken(
            3,
            f"each of the {made.total()} requests an attempt on the account of the campaign that made it",
            f"{missing.total()} are not, such as {count} of {key} by {campaign}",
        )
    unsent = (kept - made).total()
    allowed = sum(2 * facts.concurrency for run in facts.runs if run.fault is not None or run.code not in (0, 3))
    if unsent > allowed:
        yield Broken(3, f"at most {allowed} attempts on record that the server never saw", f"{unsent}")


def _quoted(facts: Facts, final: Dump) -> Iterator[Broken]:
    """2. Of several answered attempts of a step the first sent is the reply: it is what later steps quote."""
    first: dict[str, str] = {}
    for row in sorted(final.attempts, key=lambda row: (row["number"], row["batch"])):
        if row["fault"] == 0:
            first.setdefault(row["request"], row["text"])
    for one in facts.entries:
        trial, _, step = str(one.key).partition("-")
        said = [first.get(f"{trial}-{earlier}", "") for earlier in range(1, int(step))]
        if said and one.quoted != sha256("\x1f".join(said).encode()).hexdigest():
            if any(f"{trial}-{earlier}" not in first for earlier in range(1, int(step))):
                continue  # its reply was among those that a kill may cost
            yield Broken(2, f"{one.key} (entry {one.ordinal}) asked with the first replies of its trial", "others")
            return


def _overspent(facts: Facts, final: Dump) -> Iterator[Broken]:
    """3. Neither calls nor money beyond the budget, and an account that never says less than was charged."""
    for campaign in sorted({run.campaign for run in facts.runs}):
        runs = [run for run in facts.runs if run.campaign == campaign]
        asked = sum(len(facts.of(run)) for run in runs)
        charged = sum(facts.charged(one) for run in runs for one in facts.of(run))
        if asked > facts.calls.get(campaign, asked):
            yield Broken(3, f"at most {facts.calls[campaign]} calls by {campaign}", f"{asked} requests")
        if charged > facts.money.get(campaign, charged):
            yield Broken(
                3, f"at most ${facts.money[campaign] / 1e9:.6f} charged to {campaign}", f"${charged / 1e9:.6f}"
            )
        for (whose, model), limit in facts.tokens.items():
            mine = [one for run in runs if run.campaign == whose for one in facts.of(run) if model in (None, one.model)]
            used = sum(sum(one.billed) for one in mine if one.billed is not None)
            if used > limit:
                yield Broken(3, f"at most {limit} tokens by {model or 'all judges'} in {campaign}", f"{used}")
        dumps = [(f"when run {n} began", run.first, run.opened) for n, run in enumerate(facts.runs, 1)]
        for when, last, dump in [*dumps, ("at the end", len(facts.entries), final)]:
            if dump is None:
                continue
            due = sum(facts.charged(one) for run in runs if run.last <= last for one in facts.of(run))
            if dump.account(campaign) < due:
                yield Broken(
                    3,
                    f"{when} at least ${due / 1e9:.6f} on the account of {campaign}, which the server charged",
                    f"${dump.account(campaign) / 1e9:.6f}",
                )
                break


def _recorded(facts: Facts, final: Dump) -> Iterator[Broken]:
    """4. No attempt twice, no trial judged twice, a ledger without gaps."""
    for what, rows in (
        ("attempt", [(row["trial"], row["step"], row["number"]) for row in final.attempts]),
        ("verdict", [row[1:3] for row in final.verdicts]),
    ):
        twice = [one for one, count in Counter(rows).items() if count > 1]
        if twice:
            yield Broken(4, f"each {what} on record once", f"{len(twice)} are there twice, such as {twice[0]}")
    running = 0
    for place, (batch, written, total) in enumerate(final.ledger, 1):
        running += written
        if (batch, total) != (place, running):
            yield Broken(
                4, f"line {place} of the ledger: batch {place}, {running} rows", f"batch {batch}, {total} rows"
            )
            return


def _whole(facts: Facts, final: Dump) -> Iterator[Broken]:
    """4. The end is that of a campaign that nobody disturbed."""
    for campaign, expected in facts.expected.items():
        if (seen := facts.rates.get(campaign)) != expected:
            line = _first_difference(expected, seen or "")
            yield Broken(4, f"`rate --json` of {campaign} as without the fault", line)


def _first_difference(expected: str, seen: str) -> str:
    for one, other in zip(expected.splitlines(), seen.splitlines(), strict=False):
        if one != other:
            return f"{other.strip()!r} instead of {one.strip()!r}"
    return "another length" if seen else "nothing"


_CODES = {
    "SIGKILL": (-9,),
    "SIGINT": (130, 0, 3),
    "SIGTERM": (130, 0, 3),
    "SIGTERM twice": (130, 0, 3),
    "disk full": (1, 0, 3),
    "disk dead": (1, 0, 3),
    "store replaced": (1,),
    "store removed": (1,),
}


def _endings(facts: Facts) -> Iterator[Broken]:
    """4. Every run ends in time, with a documented exit code and without a traceback."""
    for number, run in enumerate(facts.runs, 1):
        allowed = _CODES.get(run.fault or "", (0, 3))
        if run.fault in ("store replaced", "store removed") and not run.in_calls:
            allowed = (*allowed, 0, 2, 3)
        if not run.ended_in_time:
            yield Broken(4, f"run {number} ({run.told}) ends in time", "it had to be killed")
        elif run.code not in allowed:
            last = run.err.strip().splitlines()[-1:] or [""]
            told = " or ".join(map(str, allowed))
            yield Broken(4, f"exit code {told} of run {number} ({run.told})", f"{run.code}: {last[0]}")
        if "Traceback" in run.err or run.code == 70:
            yield Broken(4, f"no traceback in run {number}", " | ".join(run.err.strip().splitlines()[-3:]))


def _changed(facts: Facts, final: Dump) -> Iterator[Broken]:
    """5. Every row that was once there is there, and as it was."""
    dumps = [(f"run {n} opened the store", run.opened) for n, run in enumerate(facts.runs, 1)]
    dumps += [(f"run {n} had ended", run.after) for n, run in enumerate(facts.runs, 1)]
    kept = Counter(map(_row, final.attempts)), Counter(final.verdicts), Counter(final.ledger)
    for when, dump in dumps:
        if dump is None:
            continue
        had = Counter(map(_row, dump.attempts)), Counter(dump.verdicts), Counter(dump.ledger)
        for what, there, now in zip(("attempts", "verdicts", "lines of the ledger"), had, kept, strict=True):
            if gone := there - now:
                yield Broken(
                    5,
                    f"all {there.total()} {what} of when {when}",
                    f"{gone.total()} are gone or changed, such as {_unlike(next(iter(gone)), now)}",
                )
    for run, later in zip(facts.runs, facts.runs[1:], strict=False):
        newest = run.batch if later.opened is None else max((line[0] for line in later.opened.ledger), default=0)
        if newest < run.batch:
            yield Broken(5, f"batch {run.batch}, whose commit had returned, on record", f"{newest} is the newest")


def _unlike(row: tuple[Any, ...], now: Counter[tuple[Any, ...]]) -> str:
    """What became of a row: the values that are others now, or that it is gone."""
    heirs = [one for one in now if one[:2] == row[:2] and sum(a != b for a, b in zip(one, row, strict=True)) < 4]
    if not heirs:
        return f"{row[:6]}, which is gone"
    pairs = [f"{before!r} to {after!r}" for before, after in zip(row, heirs[0], strict=True) if before != after]
    return f"{row[:2]}: {', '.join(pairs)}"


def _row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())
