"""From a design to its trials: what is shown to whom, in which order. A stream, since a plan may be long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from typing import Literal

import numpy as np

from venire.arena.campaigns import CampaignSettings
from venire.arena.keys import respondent_key, trial_key
from venire.arena.records import Battle, Matchup, PlannedTrial, Respondent, Shape
from venire.judges import PROTOCOLS
from venire.judges.orientation import BOTH_ORDERS, arrange
from venire.orchestrator.designs import PlannedRound, RoundDesign, write_design
from venire.orchestrator.planning.recorded import Recording
from venire.orchestrator.planning.respondents import respondents
from venire.storage.plans import plans
from venire.storage.plans.plans import Catalogue, Catalogued
from venire.storage.store.store import Store


@dataclass(frozen=True, slots=True)
class _NumberedRespondent:
    """A respondent as its trials know it: its number, its key, the number of its protocol, how often it is asked."""

    number: int
    key: bytes
    protocol: int
    repeats: int
    recording: Recording | None = None
    """What it said elsewhere; None: it is asked."""


def expand(
    chosen: RoundDesign,
    answers: Catalogue,
    judges: Sequence[tuple[int, Respondent]],
    repeats: Mapping[int, int],
    equal_texts: list[int],
    *,
    seed: int = 0,
    recorded: Mapping[int, Recording] = {},
    orders: Literal["both", "random"] = "both",
    variants: Sequence[str] = (),
) -> Iterator[PlannedTrial]:
    """The trials of a design as a stream, instruction by instruction; a battle is asked in both orders or a drawn one.

    Within an instruction every battle comes once before any is repeated. Prompts of one instruction begin alike, and a
    provider that caches prompts reads that again; a repeat, alike to its end, is found there only when it does not
    leave together with the first (benchmarks/prefixes.py measures it).

    `judges` are respondent numbers with their records, `repeats` is how often each is asked; `seed` draws the order
    in which a list is shown, and that of a battle, which depends on nothing else in the plan. Battles with equal
    texts are left out and counted in `equal_texts[0]`. A battle is asked again for each of the `variants`, with A's
    completion edited and with B's, where both edits are there and changed the text. Of a respondent in `recorded` those
    trials are taken that are on record, in the orders that are.
    """
    drawn = None if orders == "both" else seed
    asked: dict[Shape, list[_NumberedRespondent]] = {shape: [] for shape in Shape}
    replayed: list[_NumberedRespondent] = []
    for number, one in judges:
        entry = PROTOCOLS[one.protocol]
        who = _NumberedRespondent(number, respondent_key(one), entry.number, repeats[number], recorded.get(number))
        (asked[entry.shape] if who.recording is None else replayed).append(who)
    for name, matchups in zip(chosen.instructions, chosen.matchups_on(), strict=True):
        for repeat in range(1, max(repeats.values()) + 1):
            now = {shape: [one for one in those if one.repeats >= repeat] for shape, those in asked.items()}
            yield from _answers(answers, name, repeat, now[Shape.NONE])
            yield from _battles(matchups, answers, name, repeat, now[Shape.PAIR], equal_texts, drawn, variants)
            yield from _singles(chosen, answers, name, repeat, [*now[Shape.EDIT], *now[Shape.SINGLE]])
            yield from _lists(chosen, answers, name, repeat, now[Shape.LIST], seed)
            yield from _replayed(matchups, answers, name, repeat, [one for one in replayed if one.repeats >= repeat])


def _answers(
    answers: Catalogue, name: str, repeat: int, contestants: Sequence[_NumberedRespondent]
) -> Iterator[PlannedTrial]:
    instruction, key = answers.instructions[name]
    for one in contestants:
        yield PlannedTrial(trial_key(one.key, key, (), repeat), one.protocol, one.number, instruction, (), repeat)


def _battles(
    matchups: Sequence[Matchup],
    answers: Catalogue,
    name: str,
    repeat: int,
    judges: Sequence[_NumberedRespondent],
    equal_texts: list[int],
    drawn: int | None,
    variants: Sequence[str],
) -> Iterator[PlannedTrial]:
    """The orders of every battle on an instruction: both, or with a seed the one that it draws for each trial."""
    instruction, key = answers.instructions[name]
    for matchup in matchups if judges else ():
        a, b = answers.completions[matchup.model_a, name], answers.completions[matchup.model_b, name]
        if a.text == b.text:
            equal_texts[0] += repeat == 1
            continue
        models = answers.models[matchup.model_a], answers.models[matchup.model_b]
        shown = [(a, b), *_edited(matchup, answers, name, variants)]
        for (a, b), judge in product(shown, judges):
            for swapped in BOTH_ORDERS if drawn is None else (_drawn(judge, key, (a.key, b.key), repeat, drawn),):
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


def _edited(
    matchup: Matchup, answers: Catalogue, name: str, variants: Sequence[str]
) -> Iterator[tuple[Catalogued, Catalogued]]:
    """The completions of a battle with A's edited, and with B's; none where an edit is lacking or changed nothing."""
    sides = [answers.completions[model, name] for model in (matchup.model_a, matchup.model_b)]
    for variant in variants:
        edits = [answers.edited.get((model, name, variant)) for model in (matchup.model_a, matchup.model_b)]
        a, b = edits
        if (
            a is None
            or b is None
            or any(one is not None and one.text in {side.text for side in sides} for one in edits)
        ):
            continue
        yield a, sides[1]
        yield sides[0], b


def _drawn(judge: _NumberedRespondent, instruction: bytes, sides: tuple[bytes, bytes], repeat: int, seed: int) -> bool:
    """Whether B is shown first: drawn by the seed from what the trial is, so that it stays whatever else is planned."""
    asked = trial_key(judge.key, instruction, sides, repeat)
    return blake2b(asked, digest_size=1, key=b"%d" % seed, person=b"venire-order-1").digest()[0] % 2 == 1


def _singles(
    chosen: RoundDesign, answers: Catalogue, name: str, repeat: int, judges: Sequence[_NumberedRespondent]
) -> Iterator[PlannedTrial]:
    instruction, key = answers.instructions[name]
    for model, judge in product(chosen.models, judges):
        one = answers.completions[model, name]
        digest = trial_key(judge.key, key, (one.key,), repeat)
        yield PlannedTrial(digest, judge.protocol, judge.number, instruction, (one.number,), repeat)


def _lists(
    chosen: RoundDesign, answers: Catalogue, name: str, repeat: int, judges: Sequence[_NumberedRespondent], seed: int
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
    matchups: Sequence[Matchup], answers: Catalogue, name: str, repeat: int, judges: Sequence[_NumberedRespondent]
) -> Iterator[PlannedTrial]:
    """What is on record of an instruction, as it was shown; nothing is paid for it, so equal texts are kept."""
    gaps = {(one.model_a, one.model_b): one.gap for one in matchups} if judges else {}
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


def write_round(
    store: Store,
    campaign: CampaignSettings,
    number: int,
    numbers: Mapping[str, int],
    chosen: RoundDesign,
    answers: Catalogue,
    recordings: Mapping[str, Recording],
    *,
    follows: bool = False,
) -> PlannedRound:
    """Write the trials of a design into the plan of the campaign of that number; `numbers` are its judges' by name.

    What follows an earlier round is for judges of pairs alone: the others are asked all in the first.
    """
    asked = [
        (judge, one)
        for judge, one in respondents(campaign)
        if (not chosen.judges or judge.name in chosen.judges) and (not follows or judge.shape is Shape.PAIR)
    ]
    equal_texts = [0]
    policy = next(one.policy for one in campaign.plan.phases if one.name == chosen.phase)
    trials = expand(
        chosen,
        answers,
        [(numbers[judge.name], respondent) for judge, respondent in asked],
        {numbers[judge.name]: judge.repeats or campaign.plan.repeats for judge, _ in asked},
        equal_texts,
        seed=campaign.seed,
        recorded={numbers[judge.name]: recordings[judge.name] for judge, _ in asked if judge.name in recordings},
        orders=campaign.plan.orders,
        variants=campaign.plan.variants,
    )
    count = plans.append_round(
        store,
        number,
        trials,
        policy=policy,
        seed=campaign.seed,
        equal_texts=equal_texts,
        design=write_design(chosen),
        phase=chosen.phase,
        follows=follows,
    )
    last = store.rows("next_round", campaign=number)[0][0] - 1
    return PlannedRound(last, chosen.phase, policy, count, equal_texts[0], chosen)
