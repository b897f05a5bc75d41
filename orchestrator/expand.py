"""From a design to its trials: what is shown to whom, in which order. A stream, since a plan may be long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from venire.arena.keys import respondent_key, trial_key
from venire.arena.records import Battle, Matchup, PlannedTrial, Respondent, Shape
from venire.judges import PROTOCOLS
from venire.judges.orientation import BOTH_ORDERS, arrange
from venire.orchestrator.recorded import Recording, Replayed
from venire.storage.plans import Answers

__all__ = ["Design", "LeftOut", "expand"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A model that is in the store and not in the campaign, and why."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class Design:
    """What a plan is made of: matchups and instruction ids, drawn once and the same for all matchups."""

    matchups: tuple[Matchup, ...]
    instructions: tuple[str, ...]
    models: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    recorded: tuple[Replayed, ...] = ()
    """What is taken of judgments on record, by judge."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A respondent as its trials know it: its number, its key, the number of its protocol, how often it is asked."""

    number: int
    key: bytes
    protocol: int
    repeats: int
    recording: Recording | None = None
    """What it said elsewhere; None: it is asked."""


def expand(
    chosen: Design,
    answers: Answers,
    judges: Sequence[tuple[int, Respondent]],
    repeats: Mapping[int, int],
    equal_texts: list[int],
    *,
    seed: int = 0,
    recorded: Mapping[int, Recording] = {},
) -> Iterator[PlannedTrial]:
    """The trials of a design as a stream, instruction by instruction; every battle is asked in both orders.

    Within an instruction every battle comes once before any is repeated. Prompts of one instruction begin alike, and a
    provider that caches prompts reads that again; a repeat, alike to its end, is found there only when it does not
    leave together with the first (benchmarks/prefixes.py measures it).

    `judges` are respondent numbers with their records, `repeats` says how often each is asked; `seed` draws the order
    in which a list is shown. Battles with equal texts are left out and counted in `equal_texts[0]`. Of a respondent in
    `recorded` those trials are taken that are on record, in the orders that are.
    """
    asked: dict[Shape, list[_Asked]] = {shape: [] for shape in Shape}
    replayed: list[_Asked] = []
    for number, one in judges:
        entry = PROTOCOLS[one.protocol]
        who = _Asked(number, respondent_key(one), entry.number, repeats[number], recorded.get(number))
        (asked[entry.shape] if who.recording is None else replayed).append(who)
    for name in chosen.instructions:
        for repeat in range(1, max(repeats.values()) + 1):
            now = {shape: [one for one in those if one.repeats >= repeat] for shape, those in asked.items()}
            yield from _answers(answers, name, repeat, now[Shape.NONE])
            yield from _battles(chosen, answers, name, repeat, now[Shape.PAIR], equal_texts)
            yield from _singles(chosen, answers, name, repeat, now[Shape.SINGLE])
            yield from _lists(chosen, answers, name, repeat, now[Shape.LIST], seed)
            yield from _replayed(chosen, answers, name, repeat, [one for one in replayed if one.repeats >= repeat])


def _answers(answers: Answers, name: str, repeat: int, contestants: Sequence[_Asked]) -> Iterator[PlannedTrial]:
    instruction, key = answers.instructions[name]
    for one in contestants:
        yield PlannedTrial(trial_key(one.key, key, (), repeat), one.protocol, one.number, instruction, (), repeat)


def _battles(
    chosen: Design, answers: Answers, name: str, repeat: int, judges: Sequence[_Asked], equal_texts: list[int]
) -> Iterator[PlannedTrial]:
    instruction, key = answers.instructions[name]
    for matchup in chosen.matchups if judges else ():
        a, b = answers.completions[matchup.model_a, name], answers.completions[matchup.model_b, name]
        if a.text == b.text:
            equal_texts[0] += repeat == 1
            continue
        models = answers.models[matchup.model_a], answers.models[matchup.model_b]
        for judge in judges:
            for swapped in BOTH_ORDERS:
                first, second = arrange(a, b, swapped)
                yield PlannedTrial(
                    trial_key(judge.key, key, (first.key, second.key), repeat),
                    judge.protocol,
                    judge.number,
                    instruction,
                    (first.number, second.number),
                    repeat,
                    Battle(*models, swapped, matchup.gap),
                )


def _singles(
    chosen: Design, answers: Answers, name: str, repeat: int, judges: Sequence[_Asked]
) -> Iterator[PlannedTrial]:
    instruction, key = answers.instructions[name]
    for model, judge in product(chosen.models, judges):
        one = answers.completions[model, name]
        digest = trial_key(judge.key, key, (one.key,), repeat)
        yield PlannedTrial(digest, judge.protocol, judge.number, instruction, (one.number,), repeat)


def _lists(
    chosen: Design, answers: Answers, name: str, repeat: int, judges: Sequence[_Asked], seed: int
) -> Iterator[PlannedTrial]:
    """All completions of an instruction at once, in an order of its own for each judge and repeat."""
    instruction, key = answers.instructions[name]
    for judge in judges:
        drawn = np.random.default_rng([seed, repeat, *judge.key, *key]).permutation(len(chosen.models))
        shown = [answers.completions[chosen.models[n], name] for n in drawn]
        digest = trial_key(judge.key, key, [one.key for one in shown], repeat)
        numbers = tuple(one.number for one in shown)
        yield PlannedTrial(digest, judge.protocol, judge.number, instruction, numbers, repeat)


def _replayed(
    chosen: Design, answers: Answers, name: str, repeat: int, judges: Sequence[_Asked]
) -> Iterator[PlannedTrial]:
    """What is on record of an instruction, as it was shown; nothing is paid for it, so equal texts are kept."""
    gaps = {(one.model_a, one.model_b): one.gap for one in chosen.matchups} if judges else {}
    for judge in judges:
        assert judge.recording is not None  # or it would be asked
        for models in judge.recording.of(name, repeat, answers):
            battle = None
            if judge.recording.shape is Shape.PAIR:
                pair = (min(models), max(models))
                if pair not in gaps:
                    continue
                a, b = (answers.models[model] for model in pair)
                battle = Battle(a, b, models != pair, gaps[pair])
            instruction, key = answers.instructions[name]
            shown = [answers.completions[model, name] for model in models]
            digest = trial_key(judge.key, key, [one.key for one in shown], repeat)
            numbers = tuple(one.number for one in shown)
            yield PlannedTrial(digest, judge.protocol, judge.number, instruction, numbers, repeat, battle)
