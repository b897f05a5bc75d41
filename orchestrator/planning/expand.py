"""From a design to its trials: what is shown to whom, in which order. A stream, since a plan may be long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from typing import Literal

import numpy as np

from venire.arena.keys import respondent_key, trial_key
from venire.arena.records import Battle, Matchup, PlannedTrial, Respondent
from venire.arena.shapes import Shape
from venire.judges import PROTOCOLS
from venire.judges.orientation import BOTH_ORDERS, arrange
from venire.orchestrator.designs import PlannedRound, RoundDesign, write_design
from venire.orchestrator.planning.inputs import PlanInputs
from venire.orchestrator.planning.recorded import Recording
from venire.storage.plans import plans
from venire.storage.plans.plans import Catalogue, Catalogued
from venire.storage.store.store import Store


@dataclass(frozen=True, slots=True)
class NumberedRespondent:
    """A respondent as its trials know it: its numbers and key, what it is shown, how often it is asked."""

    number: int
    key: bytes
    protocol: int
    shape: Shape
    repeats: int
    recording: Recording | None
    """What it said elsewhere; None: it is asked."""

    @staticmethod
    def of(
        number: int, respondent: Respondent, repeats: int = 1, recording: Recording | None = None
    ) -> NumberedRespondent:
        """A respondent by its number in the store."""
        entry = PROTOCOLS[respondent.protocol]
        return NumberedRespondent(number, respondent_key(respondent), entry.number, entry.shape, repeats, recording)


def expand(
    design: RoundDesign,
    answers: Catalogue,
    asked: Sequence[NumberedRespondent],
    equal_texts: list[int],
    *,
    seed: int = 0,
    orders: Literal["both", "random"] = "both",
    variants: Sequence[str] = (),
) -> Iterator[PlannedTrial]:
    """The trials of a design as a stream, instruction by instruction; a battle is asked in both orders or a drawn one.

    Within an instruction every battle comes once before any is repeated. Prompts of one instruction begin alike, and a
    provider that caches prompts reads that again; a repeat, alike to its end, is found there only when it does not
    leave together with the first (benchmarks/prefixes.py measures it).

    `seed` draws the order in which a list is shown, and that of a battle, which depends on nothing else in the plan.
    Battles with equal texts are left out and counted in `equal_texts[0]`. A battle is asked again for each of the
    `variants`, with A's completion edited and with B's, where both edits are there and changed the text. Of a
    respondent with a recording those trials are taken that are on record, in the orders that are.
    """
    drawn = None if orders == "both" else seed
    paired: list[NumberedRespondent] = []
    replayed: list[NumberedRespondent] = []
    by_size: dict[int, list[NumberedRespondent]] = {}
    for who in asked:
        of_size = by_size.setdefault(who.shape.size(len(design.models)), [])
        (replayed if who.recording is not None else paired if who.shape.pairwise else of_size).append(who)
    for name, matchups in zip(design.instructions, design.matchups_on(), strict=True):
        for repeat in range(1, max(respondent.repeats for respondent in asked) + 1):
            here = _Repeat(answers, name, *answers.instructions[name], repeat)
            yield from _battles(matchups, here, here.asked(paired), equal_texts, drawn, variants)
            for _, group in sorted(by_size.items()):
                yield from _sets(design, here, here.asked(group), seed)
            yield from _replayed(matchups, here, here.asked(replayed))


@dataclass(frozen=True, slots=True)
class _Repeat:
    """One repeat of the trials of an instruction, by its name."""

    answers: Catalogue
    name: str
    instruction: int
    instruction_key: bytes
    number: int

    def asked(self, respondents: Sequence[NumberedRespondent]) -> list[NumberedRespondent]:
        """Those that are asked so often."""
        return [who for who in respondents if who.repeats >= self.number]

    def key(self, who: NumberedRespondent, shown: Sequence[Catalogued]) -> bytes:
        """The key of a trial that shows some completions in this order."""
        return trial_key(who.key, self.instruction_key, [text.key for text in shown], self.number)

    def trial(self, who: NumberedRespondent, shown: Sequence[Catalogued], battle: Battle | None = None) -> PlannedTrial:
        """That trial."""
        return PlannedTrial(
            self.key(who, shown),
            who.protocol,
            who.number,
            self.instruction,
            tuple(text.number for text in shown),
            self.number,
            battle,
        )


def _battles(
    matchups: Sequence[Matchup],
    here: _Repeat,
    judges: Sequence[NumberedRespondent],
    equal_texts: list[int],
    drawn: int | None,
    variants: Sequence[str],
) -> Iterator[PlannedTrial]:
    """The orders of every battle on an instruction: both, or with a seed the one that it draws for each trial."""
    answers, name = here.answers, here.name
    for matchup in matchups if judges else ():
        a, b = answers.completions[matchup.model_a, name], answers.completions[matchup.model_b, name]
        if a.text == b.text:
            equal_texts[0] += here.number == 1
            continue
        models = answers.models[matchup.model_a], answers.models[matchup.model_b]
        for sides, judge in product([(a, b), *_edited(matchup, answers, name, variants)], judges):
            for swapped in BOTH_ORDERS if drawn is None else (_drawn(here.key(judge, sides), drawn),):
                yield here.trial(judge, arrange(*sides, swapped), Battle(*models, swapped, matchup.gap))


def _edited(
    matchup: Matchup, answers: Catalogue, name: str, variants: Sequence[str]
) -> Iterator[tuple[Catalogued, Catalogued]]:
    """The completions of a battle with A's edited, and with B's; none where an edit is lacking or changed nothing."""
    sides = [answers.completions[model, name] for model in (matchup.model_a, matchup.model_b)]
    texts = {side.text for side in sides}
    for variant in variants:
        a, b = (answers.edited.get((model, name, variant)) for model in (matchup.model_a, matchup.model_b))
        if a is not None and b is not None and not {a.text, b.text} & texts:
            yield a, sides[1]
            yield sides[0], b


def _drawn(trial: bytes, seed: int) -> bool:
    """Whether B is shown first: drawn by the seed from what the trial is, so that it stays whatever else is planned."""
    return blake2b(trial, digest_size=1, key=b"%d" % seed, person=b"venire-order-1").digest()[0] % 2 == 1


def _sets(
    design: RoundDesign, here: _Repeat, judges: Sequence[NumberedRespondent], seed: int
) -> Iterator[PlannedTrial]:
    """All completions of an instruction in sets of one size; several are shown in an order of each judge and repeat."""
    count = len(design.models)
    dealt = []
    for judge in judges:
        order: Sequence[int] = range(count)
        if judge.shape.size(count) > 1:
            key = (seed, here.number, *judge.key, *here.instruction_key)
            order = np.random.default_rng(key).permutation(count).tolist()
        dealt.append(judge.shape.sets(order))
    for sets in zip(*dealt, strict=True):
        for judge, rows in zip(judges, sets, strict=True):
            yield here.trial(judge, [here.answers.completions[design.models[row], here.name] for row in rows])


def _replayed(
    matchups: Sequence[Matchup], here: _Repeat, judges: Sequence[NumberedRespondent]
) -> Iterator[PlannedTrial]:
    """What is on record of an instruction, as it was shown; nothing is paid for it, so equal texts are kept."""
    answers, name = here.answers, here.name
    gaps = {(matchup.model_a, matchup.model_b): matchup.gap for matchup in matchups} if judges else {}
    for judge in judges:
        assert judge.recording is not None  # or it would be asked
        for models in judge.recording.of(name, here.number, answers):
            battle = None
            if judge.shape.pairwise:
                pair = (min(models), max(models))
                if pair not in gaps:
                    continue
                a, b = (answers.models[model] for model in pair)
                battle = Battle(a, b, models != pair, gaps[pair])
            yield here.trial(judge, [answers.completions[model, name] for model in models], battle)


def write_round(
    store: Store,
    campaign: int,
    numbers: Mapping[str, int],
    inputs: PlanInputs,
    design: RoundDesign,
    *,
    follows: bool = False,
) -> PlannedRound:
    """Write the trials of a design into the plan of the campaign of that number; `numbers` are its judges' by name.

    What follows an earlier round is for judges of pairs alone: the others are asked all in the first.
    """
    settings, equal_texts = inputs.campaign, [0]
    policy = next(phase.policy for phase in settings.plan.phases if phase.name == design.phase)
    asked = [
        NumberedRespondent.of(
            numbers[judge.name],
            respondent,
            judge.repeats or settings.plan.repeats,
            inputs.recordings.get(judge.name),
        )
        for judge, respondent in inputs.judges
        if (not design.judges or judge.name in design.judges) and (not follows or judge.shape.pairwise)
    ]
    trials = expand(
        design,
        inputs.answers,
        asked,
        equal_texts,
        seed=settings.seed,
        orders=settings.plan.orders,
        variants=settings.plan.variants,
    )
    count = plans.append_round(
        store,
        campaign,
        trials,
        policy=policy,
        seed=settings.seed,
        equal_texts=equal_texts,
        design=write_design(design),
        phase=design.phase,
        follows=follows,
    )
    last = store.read("next_round", campaign=campaign)[0][0] - 1
    return PlannedRound(last, design.phase, policy, count, equal_texts[0], design)
