"""What of a plan is settled, failed or left to ask, and what is left with its texts; memory hardly grows with the plan.

A join of plan and verdicts holds both in hash tables: 100 bytes a trial and more. Trials are numbered without gaps, so
here each state is one byte a trial, filled by ranges of rows. Views `planned` and `missing` of the schema say the same.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from venire.arena.records import Completion, Instruction, Reply
from venire.storage.store.connection import Row
from venire.storage.store.store import Store
from venire.storage.store.texts import ShownText

if TYPE_CHECKING:
    from numpy.typing import NDArray

_AT_ONCE = 1 << 17
_PAID = ("respondent", "calls", "nano", "tokens")


@dataclass(frozen=True, slots=True, eq=False)
class TrialStates:
    """Which trials are planned, settled and failed: truth values by trial number; number 0 is no trial's.

    A trial may be settled or failed without being planned here: other campaigns share it.
    """

    planned: NDArray[np.bool_]
    settled: NDArray[np.bool_]
    failed: NDArray[np.bool_]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Trials that are still to be asked, by number."""
        return self.planned & ~self.settled & ~self.failed


@dataclass(frozen=True, slots=True, eq=False)
class PendingTrials:
    """Trials left to ask in plan order, by number, with the respondent that each is for."""

    trials: NDArray[np.int64]
    respondents: NDArray[np.int16]

    def of(self, *respondents: int) -> PendingTrials:
        """What is left for some respondents, in plan order."""
        wanted = np.isin(self.respondents, respondents)
        return PendingTrials(self.trials[wanted], self.respondents[wanted])

    def without(self, trials: NDArray[np.int64]) -> PendingTrials:
        """What is left but some trials, in plan order."""
        wanted = ~np.isin(self.trials, trials)
        return PendingTrials(self.trials[wanted], self.respondents[wanted])

    def among(self, trials: Collection[int] | None) -> PendingTrials:
        """What is left of some trials, in plan order; None: of all."""
        if trials is None:
            return self
        wanted = np.isin(self.trials, list(trials))
        return PendingTrials(self.trials[wanted], self.respondents[wanted])


@dataclass(frozen=True, slots=True)
class PendingTexts:
    """Trials left for one respondent, and the characters of the texts that they show: of all, and of the shortest."""

    respondent: int
    trials: int
    characters: int
    shortest: int


@dataclass(frozen=True, slots=True)
class PaidRow:
    """What a campaign paid for one respondent: calls, nano-dollars, tokens; what is not known as it was reserved."""

    respondent: int
    model: str
    calls: int
    nano: int
    tokens: int


def paid(store: Store, campaign: int) -> tuple[PaidRow, ...]:
    """What a campaign paid, by respondent."""
    models: dict[int, str] = dict(store.read("respondent_models"))
    ((last,),) = store.read("last_attempt")
    found: dict[int, NDArray[np.int64]] = {}
    for part in parts(store, "paid_between", last, campaign=campaign):
        for respondent, *sums in zip(*(part[name].tolist() for name in _PAID), strict=True):
            found[respondent] = found.get(respondent, 0) + np.array(sums, dtype=np.int64)
    return tuple(PaidRow(number, models[number], *found[number].tolist()) for number in sorted(found))


def trial_states(store: Store, campaign: int) -> TrialStates:
    """The state of every trial of a campaign; safe in any thread while the writer is at work."""
    return _StateReader(store, campaign).states()


def settled(store: Store) -> NDArray[np.bool_]:
    """Whether each trial of the store is settled, for whichever campaign, by trial number."""
    return _StateReader(store, 0).settled()


def any_failed(store: Store) -> bool:
    """Whether a step of any trial of the store used up its attempts and was not cleared since."""
    return bool(len(_failed(store)))


def _failed(store: Store) -> NDArray[np.int64]:
    return np.asarray(store.arrays("failed_trials")["trial"], dtype=np.int64)


def respondents(store: Store, trials: int) -> NDArray[np.int16]:
    """The respondent of every trial up to number `trials`, by trial number."""
    found = np.zeros(trials + 1, dtype=np.int16)
    for part in parts(store, "respondents_between", trials):
        found[part["trial"]] = part["respondent"]
    return found


def pending_trials(store: Store, campaign: int) -> PendingTrials:
    """What is left to ask, in plan order."""
    reader = _StateReader(store, campaign)
    left = ~reader.settled() & ~reader.failed()
    places: list[NDArray[np.int64]] = []
    parts: list[NDArray[np.int64]] = []
    for part in reader.planned():
        chosen = left[part["trial"]]
        places.append(part["round"][chosen].astype(np.int64) << 40 | part["ordinal"][chosen])
        parts.append(part["trial"][chosen])
    trials = _joined(parts)
    if not _ascending(places):  # rows may lie in another order than they were written in
        trials = trials[np.argsort(_joined(places), kind="stable")]
    places.clear()
    return PendingTrials(trials, respondents(store, reader.trials)[trials])


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """One array of the parts, which are gone from the list then: both at once would be twice the memory."""
    whole = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    parts.clear()
    return whole


def _ascending(parts: list[NDArray[np.int64]]) -> bool:
    filled = [part for part in parts if len(part)]
    within = all(bool(np.all(part[1:] > part[:-1])) for part in filled)
    return within and all(before[-1] < after[0] for before, after in pairwise(filled))


def pending_texts(
    store: Store, campaign: int, referenced: Collection[int] = (), *, only: Collection[int] | None = None
) -> tuple[PendingTexts, ...]:
    """Trials left and their characters, by respondent; those in `referenced` are shown reference answers as well.

    `only` are the trials that are counted; None: all.
    """
    missing = trial_states(store, campaign).missing
    if only is not None:
        missing[~np.isin(np.arange(len(missing)), list(only))] = False
    asked, with_reference = (by_number(store, "instruction_lengths", of) for of in ("characters", "referenced"))
    found: dict[int, tuple[int, int, int]] = {}
    for part in parts(store, "shown_between", len(missing) - 1):
        chosen = missing[part["trial"]]
        column = {name: values[chosen] for name, values in part.items()}
        for number in np.unique(column["respondent"]).tolist():
            of = column["respondent"] == number
            lengths = with_reference if number in referenced else asked
            its = lengths[column["instruction"][of]] + column["shown"][of]
            trials, characters, shortest = found.get(number, (0, 0, int(its[0])))
            found[number] = trials + len(its), characters + int(its.sum()), min(shortest, int(its.min()))
    return tuple(PendingTexts(number, *found[number]) for number in sorted(found))


class _StateReader:
    """Reads of one campaign up to what was there at its construction: rows that come meanwhile are left out."""

    def __init__(self, store: Store, campaign: int) -> None:
        self._store = store
        self._campaign = campaign
        ((self.trials, self._last_plan, self._last_verdict),) = store.read("last_rows")

    def states(self) -> TrialStates:
        planned = np.zeros(self.trials + 1, dtype=np.bool_)
        for part in self.planned():
            planned[part["trial"]] = True
        return TrialStates(planned, self.settled(), self.failed())

    def planned(self) -> Iterator[Mapping[str, NDArray[Any]]]:
        return parts(self._store, "planned_between", self._last_plan, campaign=self._campaign)

    def settled(self) -> NDArray[np.bool_]:
        found = np.zeros(self.trials + 1, dtype=np.bool_)
        for part in parts(self._store, "settled_between", self._last_verdict):
            found[part["trial"]] = True
        return found

    def failed(self) -> NDArray[np.bool_]:
        found = np.zeros(self.trials + 1, dtype=np.bool_)
        trials = _failed(self._store)
        found[trials[trials <= self.trials]] = True
        return found


def parts(store: Store, name: str, last: int, **parameters: Any) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Columns of a named query by ranges of row or trial numbers up to `last`."""
    for low in range(0, last + 1, _AT_ONCE):
        columns = store.arrays(name, low=low, high=min(low + _AT_ONCE - 1, last), **parameters)
        yield {column: np.ma.getdata(values) for column, values in columns.items()}
        store.release_memory()


def by_number(store: Store, name: str, column: str = "characters", **parameters: Any) -> NDArray[np.int64]:
    """Lengths by number, from a column of a named query."""
    columns = store.arrays(name, **parameters)
    found = np.zeros(int(columns["id"].max(initial=0)) + 1, dtype=np.int64)
    found[columns["id"]] = columns[column]
    return found


_BATTLE_COLUMNS = ("model_a", "model_b", "instruction", "respondent", "repeat")


@dataclass(frozen=True, slots=True, eq=False)
class PlannedBattles:
    """Battles (battles, 3): codes of two `models`, which are sorted by name, and the instruction's number.

    `judgments` (battles,) is the number of judges times repeats for each, its two orders being one judgment; `judges`
    and `repeats` are how many judges there are, and how often they are asked at most.
    """

    models: tuple[str, ...]
    battles: NDArray[np.int32]
    judgments: NDArray[np.int64]
    judges: int
    repeats: int


def planned_battles(store: Store, campaign: int) -> PlannedBattles:
    """The battles of a campaign's plan, settled ones included; other trials are left out."""
    ((_, last, _),) = store.read("last_rows")
    found = [
        np.unique(np.column_stack([part[name].astype(np.int32) for name in _BATTLE_COLUMNS]), axis=0)
        for part in parts(store, "battles_planned_between", last, campaign=campaign)
    ]
    asked = np.unique(np.concatenate(found), axis=0) if found else np.zeros((0, len(_BATTLE_COLUMNS)), dtype=np.int32)
    battles, judgments = np.unique(asked[:, :3], axis=0, return_counts=True)
    names: dict[int, str] = dict(store.read("model_names"))
    numbers = sorted(np.unique(battles[:, :2]).tolist(), key=names.__getitem__)
    code = np.zeros(max(numbers, default=0) + 1, dtype=np.int32)
    code[numbers] = np.arange(len(numbers))
    battles[:, :2] = np.sort(code[battles[:, :2]], axis=1)
    return PlannedBattles(
        tuple(names[number] for number in numbers),
        battles,
        judgments,
        len(np.unique(asked[:, 3])),
        len(np.unique(asked[:, 4])),
    )


@dataclass(frozen=True, slots=True, eq=False)
class SettledPairs:
    """Pairs of completions of which one respondent settled trials: `keys` (pairs,) ascending, and how many `trials`."""

    keys: NDArray[np.int64]
    trials: NDArray[np.int64]

    def of(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many trials (pairs,) of some pairs of completions are settled, in whichever order they are named."""
        wanted = _keys(np.minimum(one, other), np.maximum(one, other))
        if not len(self.keys):
            return np.zeros(len(wanted), dtype=np.int64)
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.asarray(np.where(self.keys[place] == wanted, self.trials[place], 0))


def settled_pairs(store: Store, respondents: Collection[int]) -> Mapping[int, SettledPairs]:
    """What of pairs some respondents have settled, by their numbers."""
    rows = store.arrays("settled_pairs", respondents=sorted(respondents))
    keys = _keys(rows["one"].astype(np.int64), rows["other"].astype(np.int64))
    order = np.argsort(keys)
    found = {}
    for number in respondents:
        mine = order[rows["respondent"][order] == number]
        found[number] = SettledPairs(keys[mine], rows["trials"][mine].astype(np.int64))
    return found


def _keys(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(low << 32 | high)


_NO_ATTEMPTS: Mapping[int, int] = MappingProxyType({})


class PendingTrial(NamedTuple):
    """A trial that is left to ask, with its material and what is on record for it.

    `shown` are completions in the order shown; `fences` are that of the instruction and theirs. `swapped` is whether B
    is shown first, None for what is no order of a battle.
    """

    id: int
    key: bytes
    respondent: int
    swapped: bool | None
    repeat: int
    instruction: Instruction
    instruction_number: int
    shown: tuple[Completion, ...]
    shown_keys: tuple[bytes, ...]
    fences: tuple[str, ...]
    replies: tuple[Reply, ...] = ()
    attempts: Mapping[int, int] = _NO_ATTEMPTS
    """Step to the number of its last attempt on record."""
    cost: int = 0
    """Nano-dollars already spent or reserved on it."""
    flagged: bool = False
    """Whether a completion shown is suspected of instructing the judge, as far as the store was screened."""


def load(store: Store, trials: NDArray[np.int64]) -> list[PendingTrial]:
    """The trials of a chunk with texts and replies on record, in the order given; any thread may ask, one at a time."""
    with store.loading:
        return _load(store, trials)


def _load(store: Store, trials: NDArray[np.int64]) -> list[PendingTrial]:
    bounds = {"low": int(trials.min()), "high": int(trials.max()), "ids": trials.tolist()}
    rows = {row[0]: row for row in store.read("trials", **bounds)}
    instructions = store.texts.instructions([row[5] for row in rows.values()])
    completions = store.texts.completions([number for row in rows.values() for number in row[6]])
    attempts: dict[int, dict[int, int]] = {}
    costs: dict[int, int] = {}
    answered: set[int] = set()
    for trial, step, last, cost, answers in store.read("attempts", **bounds):
        attempts.setdefault(trial, {})[step] = last
        costs[trial] = costs.get(trial, 0) + cost
        if answers:
            answered.add(trial)
    replies = _replies(store, sorted(answered))
    found = []
    for one in bounds["ids"]:
        row = rows[one]
        pending = pending_trial(row, instructions[row[5]], [completions[number] for number in row[6]])
        if one in costs:
            said = tuple(replies.get(one, ()))
            pending = pending._replace(replies=said, attempts=attempts[one], cost=costs[one])
        found.append(pending)
    return found


def _replies(store: Store, trials: list[int]) -> Mapping[int, list[Reply]]:
    """The replies of trials in step order; most that are left to ask have none, and then no text is read."""
    found: dict[int, list[Reply]] = {}
    if trials:
        for trial, step, *fields in store.read("replies", low=trials[0], high=trials[-1], ids=trials):
            said = found.setdefault(trial, [])
            if step == len(said) + 1:  # a gap means that an earlier step has no reply: what follows it is not used
                text, finish, reasoning, tokens_in, tokens_out, logprobs = fields
                said.append(
                    Reply(
                        text,
                        finish,
                        reasoning,
                        input_tokens=tokens_in,
                        output_tokens=tokens_out,
                        logprobs=read_logprobs(logprobs),
                    )
                )
    return found


def read_logprobs(text: str | None) -> tuple[tuple[tuple[str, float], ...], ...]:
    """The likeliest tokens at the first places of a reply, from the store's JSON."""
    return tuple(tuple((token, p) for token, p in place) for place in json.loads(text)) if text else ()


def pending_trial(row: Row, prompt: ShownText[Instruction], shown: Sequence[ShownText[Completion]]) -> PendingTrial:
    """A trial without what is on record for it; the row is that of the query `trials`, with its texts."""
    number, key, respondent, swapped, repeat, instruction, _ = row
    texts, keys = tuple(one.what for one in shown), tuple(one.key for one in shown)
    fences = (prompt.fence, *(one.fence for one in shown))
    flagged = any(one.suspected for one in shown)
    return PendingTrial(
        number, key, respondent, swapped, repeat, prompt.what, instruction, texts, keys, fences, flagged=flagged
    )
