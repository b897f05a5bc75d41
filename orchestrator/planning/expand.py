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
from venire.arena.records import Battle, Matchup, PlannedTrial, Respondent
from venire.arena.shapes import Shape
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
    """A respondent as its trials know it: its number and key, its protocol's number and shape, and its repeats."""

    number: int
    key: bytes
    protocol: int
    shape: Shape
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
    paired: list[_NumberedRespondent] = []
    replayed: list[_NumberedRespondent] = []
    by_size: dict[int, list[_NumberedRespondent]] = {}
    for number, respondent in judges:
        entry = PROTOCOLS[respondent.protocol]
        key, recording = respondent_key(respondent), recorded.get(number)
        judge = _NumberedRespondent(number, key, entry.number, entry.shape, repeats[number], recording)
        of_size = by_size.setdefault(judge.shape.size(len(chosen.models)), [])
        (replayed if recording is not None else paired if judge.shape.pairwise else of_size).append(judge)
    for name, matchups in zip(chosen.instructions, chosen.matchups_on(), strict=True):
        for repeat in range(1, max(repeats.values()) + 1):
            yield from _battles(matchups, answers, name, repeat, _asked(paired, repeat), equal_texts, drawn, variants)
            for _, those in sorted(by_size.items()):
                yield from _sets(chosen, answers, name, repeat, _asked(those, repeat), seed)
            yield from _replayed(matchups, answers, name, repeat, _asked(replayed, repeat))


def _asked(judges: Sequence[_NumberedRespondent], repeat: int) -> list[_NumberedRespondent]:
    return [one for one in judges if one.repeats >= repeat]


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
    instruction = _, key = answers.instructions[name]
    for matchup in matchups if judges else ():
        a, b = answers.completions[matchup.model_a, name], answers.completions[matchup.model_b, name]
        if a.text == b.text:
            equal_texts[0] += repeat == 1
            continue
        models = answers.models[matchup.model_a], answers.models[matchup.model_b]
        shown = [(a, b), *_edited(matchup, answers, name, variants)]
        for (a, b), judge in product(shown, judges):
            for swapped in BOTH_ORDERS if drawn is None else (_drawn(judge, key, (a.key, b.key), repeat, drawn),):
                battle = Battle(*models, swapped, matchup.gap)
                yield _planned(judge, instruction, arrange(a, b, swapped), repeat, battle)


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


def _sets(
    chosen: RoundDesign, answers: Catalogue, name: str, repeat: int, judges: Sequence[_NumberedRespondent], seed: int
) -> Iterator[PlannedTrial]:
    """All completions of an instruction in sets of one size; several are shown in an order of each judge and repeat."""
    instruction = _, key = answers.instructions[name]
    count = len(chosen.models)
    dealt = []
    for judge in judges:
        order: Sequence[int] = range(count)
        if judge.shape.size(count) > 1:
            order = np.random.default_rng([seed, repeat, *judge.key, *key]).permutation(count).tolist()
        dealt.append(judge.shape.sets(order))
    for sets in zip(*dealt, strict=True):
        for judge, rows in zip(judges, sets, strict=True):
            shown = [answers.completions[chosen.models[row], name] for row in rows]
            yield _planned(judge, instruction, shown, repeat)


def _planned(
    judge: _NumberedRespondent,
    instruction: tuple[int, bytes],
    shown: Sequence[Catalogued],
    repeat: int,
    battle: Battle | None = None,
) -> PlannedTrial:
    """The trial in which a judge is shown these completions to an instruction, given as its number and key."""
    number, key = instruction
    digest = trial_key(judge.key, key, [one.key for one in shown], repeat)
    numbers = tuple(one.number for one in shown)
    return PlannedTrial(digest, judge.protocol, judge.number, number, numbers, repeat, battle)


def _replayed(
    matchups: Sequence[Matchup], answers: Catalogue, name: str, repeat: int, judges: Sequence[_NumberedRespondent]
) -> Iterator[PlannedTrial]:
    """What is on record of an instruction, as it was shown; nothing is paid for it, so equal texts are kept."""
    gaps = {(one.model_a, one.model_b): one.gap for one in matchups} if judges else {}
    for judge in judges:
        assert judge.recording is not None  # or it would be asked
        for models in judge.recording.of(name, repeat, answers):
            battle = None
            if judge.shape.pairwise:
                pair = (min(models), max(models))
                if pair not in gaps:
                    continue
                a, b = (answers.models[model] for model in pair)
                battle = Battle(a, b, models != pair, gaps[pair])
            shown = [answers.completions[model, name] for model in models]
            yield _planned(judge, answers.instructions[name], shown, repeat, battle)


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
        if (not chosen.judges or judge.name in chosen.judges) and (not follows or judge.shape.pairwise)
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
