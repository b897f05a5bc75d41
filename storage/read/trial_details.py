"""Everything on record of a few trials: what was shown, every attempt with its reply, and the verdict in force."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from venire.arena.errors import InputError, fault_name
from venire.storage.read.trial_table import STATUSES
from venire.storage.store.store import Store

_NO_VERDICT = None, None, None, None, None, None, False, None, None
_NO_FAILURE = False, None, None, None
"""Of a trial that has none, as their queries have columns."""


class AttemptDetail(NamedTuple):
    """One call sent: times in ms, money in nano-dollars, `fault` as in `arena.errors.Fault`; texts where answered."""

    trial: int
    step: int
    number: int
    route: str | None
    endpoint: str | None
    sent_at: datetime
    latency_ms: int | None
    fault: int
    http_status: int | None
    message: str | None
    wait_ms: int | None
    finish: str | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    reserved: int
    cost: int | None
    served_model: str | None
    request_digest: bytes
    text: str | None
    reasoning: str | None
    raw: str | None
    logprobs: str | None


@dataclass(frozen=True, slots=True)
class InstructionDetail:
    """An instruction with its text, a turn each."""

    number: int
    name: str
    category: str | None
    turns: tuple[str, ...]
    reference: str | None


@dataclass(frozen=True, slots=True)
class ShownCompletion:
    """A completion as it was shown; `suspicions` are the rules by which it tries to instruct its judge."""

    number: int
    model_number: int
    model: str
    variant: str
    sample: int
    text: str
    characters: int
    suspicions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrialDetail:
    """A trial with its verdict in force and its attempts; label, score and criteria are A minus B."""

    id: int
    key: bytes
    respondent: int
    judge: str | None
    respondent_model: str
    protocol: str
    origin: str
    instruction: int
    swapped: bool | None
    repeat: int
    shown: tuple[int, ...]
    models: tuple[str, ...]
    """In the order shown."""
    status: str
    rule: str | None
    label: int | None
    score: float | None
    criteria: tuple[float, ...] | None
    places: tuple[int, ...] | None
    flagged: bool
    failed_step: int | None
    fault: str | None
    attempts: tuple[AttemptDetail, ...] = field(default=())

    @property
    def in_order(self) -> tuple[int, ...]:
        """The completions shown, those of a battle A first."""
        return tuple(reversed(self.shown)) if self.swapped else self.shown

    @property
    def is_battle(self) -> bool:
        """Whether it compares two models."""
        return self.swapped is not None

    @property
    def winner(self) -> str | None:
        """The model preferred, "tie", or what a grade or ballot says; None without a verdict."""
        if self.status != "ok":
            return None
        if self.places is not None:
            ranked = sorted((place, name) for place, name in zip(self.places, self.models, strict=False) if place)
            return " > ".join(name for _, name in ranked)
        if self.label is None:
            return "answered"
        if not self.is_battle:
            return {1: "yes", 0: "no"}.get(self.label, "not attempted")
        a, b = reversed(self.models) if self.swapped else self.models
        return {1: a, -1: b}.get(self.label, "tie")

    @property
    def verdict(self) -> tuple[Any, ...]:
        """What a reading says: status, label, score and places."""
        return self.status, self.label, self.score, self.places


class VoteDetail(NamedTuple):
    """What one person said of a battle: a model's name or "tie", which model they saw first, if known, and a note."""

    people: str
    origin: str
    annotator: str
    winner: str
    first: str | None
    repeat: int
    note: str | None


def trial_details(store: Store, campaign: int, trials: Sequence[int]) -> tuple[TrialDetail, ...]:
    """Trials with their attempts, by judge, repeat and order; those that are not there are left out.

    Raises StoreError where the store cannot be read.
    """
    if not trials:
        return ()
    chosen = list(trials)
    bounds = {"trials": chosen, "low": min(chosen), "high": max(chosen)}
    attempts: dict[int, list[AttemptDetail]] = {}
    for one in sorted(map(AttemptDetail._make, store.read("attempts_in_detail", **bounds)), key=itemgetter(0, 1, 2)):
        attempts.setdefault(one.trial, []).append(one)
    found = []
    # by judge, repeat and order; of verdicts and failures the one in force is the last
    rows = sorted(
        store.read("trials_in_detail", campaign=campaign, **bounds),
        key=lambda row: (row[2], row[9], row[8] is None, row[8], row[0]),
    )
    verdicts = {row[0]: row[1:] for row in sorted(store.read("verdicts_in_detail", **bounds), key=itemgetter(8, 9))}
    failures = {
        row[0]: row[1:] for row in sorted(store.read("failures_in_detail", trials=chosen), key=itemgetter(4, 1))
    }
    models = _models_shown(store, {one for row in rows for one in row[10]})
    for row in rows:
        number, key, respondent, judge, model, protocol, origin, asked, swapped, repeat, shown = row
        status, rule, label, score, criteria, places, flagged, _, _ = verdicts.get(number, _NO_VERDICT)
        cleared, step, fault, _ = failures.get(number, _NO_FAILURE)
        if cleared:
            step = fault = None
        words = STATUSES[status] if status is not None else "failed" if step is not None else "pending"
        found.append(
            TrialDetail(
                number,
                key,
                respondent,
                judge,
                model,
                protocol,
                origin,
                asked,
                swapped,
                repeat,
                tuple(shown),
                tuple(models[one] for one in shown),
                words,
                rule,
                label,
                score,
                None if criteria is None else tuple(criteria),
                None if places is None else tuple(places),
                flagged,
                step,
                None if fault is None else fault_name(fault),
                tuple(attempts.get(number, ())),
            )
        )
    return tuple(found)


def completions(store: Store, trial: TrialDetail) -> tuple[ShownCompletion, ...]:
    """The completions that a trial shows, those of a battle A first."""
    names = dict(zip(trial.shown, trial.models, strict=True))
    chosen = list(names)
    rules: dict[int, list[str]] = {}
    for number, rule in sorted(store.read("suspicions_of", completions=chosen)):
        rules.setdefault(number, []).append(rule)
    there = {
        number: ShownCompletion(
            number, model, names[number], variant, sample, text, characters, tuple(rules.get(number, ()))
        )
        for number, model, variant, sample, text, characters in store.read("completion_texts", completions=chosen)
    }
    return tuple(there[one] for one in trial.in_order if one in there)


def votes_on(store: Store, instruction: int, shown: Sequence[ShownCompletion]) -> tuple[VoteDetail, ...]:
    """People's votes on a battle as it came, those with notes first; none where it shows an edited completion."""
    if len(shown) != 2 or any(one.variant for one in shown):
        return ()
    one, other = (each.model_number for each in shown)
    return tuple(map(VoteDetail._make, store.read("votes_on_battle", instruction=instruction, one=one, other=other)))


def _models_shown(store: Store, completions: Collection[int]) -> dict[int, str]:
    """Name of each completion's model."""
    return dict(store.read("models_shown", completions=sorted(completions)))


def instruction(store: Store, number: int) -> InstructionDetail:
    """An instruction by its number in the store. Raises InputError for one that is not there."""
    rows = store.read("instruction_text", instruction=number)
    if not rows:
        raise InputError(f"the store has no instruction {number}")
    number, name, category, turns, reference = rows[0]
    return InstructionDetail(number, name, category, tuple(json.loads(turns)), reference)
