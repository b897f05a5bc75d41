"""The quality of a campaign's judges: replies read, flips by order, texts too long, and the models that answered."""

from __future__ import annotations

from dataclasses import dataclass

from venire.arena.records import GENERATE
from venire.storage.store.store import Store


@dataclass(frozen=True, slots=True)
class JudgeReadability:
    """Counts over the settled trials of one judge."""

    judge: str
    protocol: str
    settled: int
    read: int
    """Those with status ok."""
    too_long: int
    """Those that the judge was not shown, or could not take whole."""
    a_first: int
    """Battles shown with model A first, settled."""
    a_first_read: int
    b_first: int
    b_first_read: int
    both_read: int
    """Battles read in both orders."""
    flips: int
    """Of these with opposite winners: the order decided."""
    flagged: int
    """Trials that showed a completion which tries to instruct the judge."""
    cost: int
    """Nano-dollars, of all attempts."""

    @property
    def readable(self) -> float | None:
        """Share that could be read, of the settled trials that were not too long; None where all were."""
        answered = self.settled - self.too_long
        return self.read / answered if answered else None

    @property
    def flip_rate(self) -> float | None:
        """Share of the battles read in both orders that had opposite winners; None without any."""
        return self.flips / self.both_read if self.both_read else None


def judge_readability(store: Store, campaign: int) -> tuple[JudgeReadability, ...]:
    """The judges of a campaign that have settled trials, by name."""
    return tuple(JudgeReadability(*row) for row in store.read("judge_readability", campaign=campaign))


@dataclass(frozen=True, slots=True)
class CompletionCost:
    """What a contestant's completions cost in nano-dollars, with all attempts; `deviation` is between completions."""

    model: str
    completions: int
    nano: int
    deviation: float | None
    """The standard deviation; None of a single one."""


def completion_costs(store: Store) -> tuple[CompletionCost, ...]:
    """The contestants that campaigns of this store asked for completions, by name."""
    return tuple(CompletionCost(*row) for row in store.read("completion_costs", protocol=GENERATE))


def recent_verdicts(store: Store, campaign: int, most: int) -> tuple[tuple[int, int, int], ...]:
    """(respondent, instruction, status) of each respondent's last `most` verdicts in force, the oldest first."""
    return tuple(store.read("recent_verdicts", campaign=campaign, most=most))


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A name that a provider gave to the model that answered; times as 2026-11-20T10:02Z."""

    name: str
    replies: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class ServedModels:
    """What a judge's replies were served by, as far as the provider said; models in the order first seen."""

    judge: str
    models: tuple[ServedModel, ...] = ()
    fingerprints: int = 0
    newest_fingerprint: str | None = None

    @property
    def drift(self) -> bool:
        """Whether more than one model name answered for this judge."""
        return len(self.models) > 1


def served_models(store: Store, campaign: int) -> tuple[ServedModels, ...]:
    """By judge, what served the replies to the trials in force, whichever campaign paid for them."""
    models: dict[str, list[ServedModel]] = {}
    for judge, *fields in store.read("served_models", campaign=campaign):
        models.setdefault(judge, []).append(ServedModel(*fields))
    prints = {judge: (count, newest) for judge, count, newest in store.read("served_fingerprints", campaign=campaign)}
    judges = sorted({*models, *prints})
    return tuple(ServedModels(judge, tuple(models.get(judge, ())), *prints.get(judge, (0, None))) for judge in judges)


@dataclass(frozen=True, slots=True)
class LongInput:
    """Trials of one judge with long texts; `most_cut` is the characters that were cut out of one trial at most."""

    judge: str
    unsent: int
    """Counted and not sent, since they would not have fitted."""
    refused: int
    """Sent, and refused by the provider as too long."""
    cut: int
    """Sent with texts that were cut to fit."""
    most_cut: int


def long_input(store: Store, campaign: int, rule: str) -> tuple[LongInput, ...]:
    """The judges of a campaign that were shown, or would have been shown, more than they take in; by name.

    `rule` is that of verdicts whose request was not sent.
    """
    return tuple(LongInput(*row) for row in store.read("long_input", campaign=campaign, rule=rule))
