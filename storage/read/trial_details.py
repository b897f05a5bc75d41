"""Everything on record of a few trials: what was shown, every attempt with its reply, and the verdict in force."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from venire.arena.errors import InputError, fault_name
from venire.storage.read.trial_table import STATUSES
from venire.storage.store.store import Store

__all__ = [
    "AttemptDetail",
    "InstructionDetail",
    "ShownCompletion",
    "TrialDetail",
    "completions",
    "instruction",
    "trial_details",
]

_NO_VERDICT = None, None, None, None, None, None, False
_NO_FAILURE = False, None, None
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


def trial_details(store: Store, campaign: int, trials: Sequence[int]) -> tuple[TrialDetail, ...]:
    """Trials with their attempts, by judge, repeat and order; those that are not there are left out.

    Raises StoreError where the store cannot be read.
    """
    if not trials:
        return ()
    chosen = list(trials)
    bounds = {"trials": chosen, "low": min(chosen), "high": max(chosen)}
    attempts: dict[int, list[AttemptDetail]] = {}
    for row in store.read("attempts_in_detail", **bounds):
        one = AttemptDetail._make(row)
        attempts.setdefault(one.trial, []).append(one)
    found = []
    rows = store.read("trials_in_detail", campaign=campaign, **bounds)
    verdicts = {row[0]: row[1:] for row in store.read("verdicts_in_detail", **bounds)}
    failures = {row[0]: row[1:] for row in store.read("failures_in_detail", trials=chosen)}
    models = _models_shown(store, {one for row in rows for one in row[10]})
    for row in rows:
        number, key, respondent, judge, model, protocol, origin, asked, swapped, repeat, shown = row
        status, rule, label, score, criteria, places, flagged = verdicts.get(number, _NO_VERDICT)
        cleared, step, fault = failures.get(number, _NO_FAILURE)
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
                tuple(models[one][1] for one in shown),
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


def completions(store: Store, numbers: Sequence[int]) -> tuple[ShownCompletion, ...]:
    """Completions by number, in the order given."""
    chosen, there = list(numbers), {}
    models = _models_shown(store, chosen)
    rules: dict[int, list[str]] = {}
    for number, rule in store.read("suspicions_of", completions=chosen):
        rules.setdefault(number, []).append(rule)
    for number, variant, sample, text, characters in store.read("completion_texts", completions=chosen):
        suspected = tuple(rules.get(number, ()))
        there[number] = ShownCompletion(number, *models[number], variant, sample, text, characters, suspected)
    return tuple(there[one] for one in numbers if one in there)


def _models_shown(store: Store, completions: Collection[int]) -> dict[int, tuple[int, str]]:
    """Number and name of each completion's model."""
    rows = store.read("models_shown", completions=sorted(completions))
    return {number: (model, name) for number, model, name in rows}


def instruction(store: Store, number: int) -> InstructionDetail:
    """An instruction by its number in the store. Raises InputError for one that is not there."""
    rows = store.read("instruction_text", instruction=number)
    if not rows:
        raise InputError(f"the store has no instruction {number}")
    number, name, category, turns, reference = rows[0]
    return InstructionDetail(number, name, category, tuple(json.loads(turns)), reference)
