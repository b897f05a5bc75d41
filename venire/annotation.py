"""Blind pages for people's votes: a seeded sample of a store's battles on each, and how many votes are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.choices import AnnotationSample
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.pages.views.annotation import AnnotationPage, annotation_page
from venire.ratings.agreement.people_agreement import people_agreement
from venire.ratings.data.judgments import Judgments, merge_orders, select_battles
from venire.ratings.design.annotation_sample import (
    balanced_sample,
    dispute,
    doubt_of_order,
    shared_places,
    votes_for_agreement,
)
from venire.ratings.design.interval_forecast import (
    DEFAULT_EFFECT_ONE_ORDER,
    design_effect,
    forecast_intervals,
)
from venire.ratings.design.priors import prior_ratings
from venire.reports.board.stored import choose_campaign, read_stored
from venire.storage.read import frames
from venire.storage.read.blind_battles import VotableCompletion, blind_texts, votable_completions
from venire.storage.store.store import Store

DEFAULT_COUNT = 100
"""Battles on a page, where the store has so many."""
_NEEDS = {
    "disputed": "battles on which judges differ",
    "decisive": "battles that decide an order of ratings",
}


@dataclass(frozen=True, slots=True)
class AnnotationPages:
    """One page for each annotator, each with `count` battles, `shared` of them on all pages.

    `battles` is how many differ, out of `available`; `appearances` says in how many of them each model is. `high` is
    how many of them have any of what a sample is made by: judges who differ, or an order in doubt; None: a random one.
    """

    pages: tuple[AnnotationPage, ...]
    count: int
    shared: int
    battles: int
    available: int
    instructions: int
    appearances: Counter[str]
    high: int | None
    judged: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Votable:
    """Battles (battles,) of two completions each; `priority` is that of a sample, None of a random one."""

    models: tuple[str, ...]
    model_a: NDArray[np.int64]
    model_b: NDArray[np.int64]
    instruction: NDArray[np.int64]
    first: Sequence[VotableCompletion]
    second: Sequence[VotableCompletion]
    priority: NDArray[np.float64] | None
    judged: bool


def annotation_pages(
    store: Store,
    *,
    sample: AnnotationSample = "random",
    count: int | None = None,
    annotators: int = 1,
    overlap: float = 0.2,
    seed: int | None = None,
    campaign: str | None = None,
) -> AnnotationPages:
    """Pages for `annotators` people, of `count` battles each, a share `overlap` of them on all pages.

    Battles are those that judges of a campaign gave verdicts on, so that each vote is beside theirs; in a store without
    verdicts all that could be asked. Battles of two equal texts are left out. `count` None is `DEFAULT_COUNT`, or as
    many as there are; `seed` None is the campaign's own. The same store, options and seed make the same pages.

    Raises InputError for a store with fewer battles, and for a sample that needs verdicts where there are none.
    """
    votable, seed = _something_votable(store, sample, seed, campaign)
    available = len(votable.model_a)
    if count is None:
        count = _most(available, annotators, overlap)
    places = shared_places(count, annotators, overlap)
    needed = 1 + max(int(one.max()) for one in places)
    if needed > available:
        most = _most(available, annotators, overlap, available)
        raise InputError(
            f"{annotators} pages of {count} battles need {needed} battles, and {store.path} has {available} to vote "
            f"on: --count {most} is the most" + (", or share more of them with --overlap" if annotators > 1 else "")
        )
    drawn = _drawn(votable, needed, seed)
    shared = set(places[0].tolist()).intersection(*(one.tolist() for one in places))
    pages = tuple(
        _page(store, votable, drawn[mine], number, np.random.default_rng([seed, number]))
        for number, mine in enumerate(places, 1)
    )
    sides = np.concatenate([votable.model_a[drawn], votable.model_b[drawn]])
    return AnnotationPages(
        pages,
        count=count,
        shared=len(shared) if annotators > 1 else 0,
        battles=needed,
        available=available,
        instructions=len(np.unique(votable.instruction[drawn])),
        appearances=Counter(votable.models[code] for code in sides.tolist()),
        high=None if votable.priority is None else int(np.count_nonzero(votable.priority[drawn] > _LOW[sample])),
        judged=votable.judged,
    )


@dataclass(frozen=True, slots=True)
class SharedSample:
    """Battles that everybody votes on, as pairs of completions, each person in an order and with sides of their own.

    `digest` names the sample in this store. Whose the completions are is in `pairs`, which nobody who votes is to see.
    """

    pairs: tuple[tuple[VotableCompletion, VotableCompletion], ...]
    seed: int
    digest: str

    def of_annotator(self, name: str) -> tuple[tuple[VotableCompletion, VotableCompletion], ...]:
        """The battles in the order, and with the sides, of one person: the same whenever they come back."""
        person = int.from_bytes(blake2b(name.encode(), digest_size=8, person=b"venire.person").digest())
        rng = np.random.default_rng([self.seed, person])
        order = rng.permutation(len(self.pairs)).tolist()
        turned = (rng.random(len(order)) < 0.5).tolist()
        pairs = [self.pairs[place] for place in order]
        return tuple((other, one) if turn else (one, other) for (one, other), turn in zip(pairs, turned, strict=True))


def shared_sample(
    store: Store,
    *,
    sample: AnnotationSample = "random",
    count: int | None = None,
    seed: int | None = None,
    campaign: str | None = None,
) -> SharedSample:
    """The battles that `annotation_pages` draws for one page by the same options, for several people to vote on.

    Raises InputError as that does.
    """
    votable, seed = _something_votable(store, sample, seed, campaign)
    available = len(votable.model_a)
    count = min(available, DEFAULT_COUNT) if count is None else count
    if count > available:
        raise InputError(
            f"{store.path} has {available} battles to vote on, not {count}: --count {available} is the most"
        )
    drawn = _drawn(votable, count, seed).tolist()
    pairs = tuple((votable.first[place], votable.second[place]) for place in drawn)
    numbers = repr([(one.number, other.number) for one, other in pairs]).encode()
    digest = blake2b(numbers, key=store.constant, digest_size=8, person=b"venire.sample").hexdigest()
    return SharedSample(pairs, seed, digest)


def _something_votable(
    store: Store, sample: AnnotationSample, seed: int | None, campaign: str | None
) -> tuple[_Votable, int]:
    """What can be voted on, and the seed, by default that of the campaign. Raises InputError where that is nothing."""
    votable, own_seed = _votable(store, sample, campaign)
    if not len(votable.model_a):
        raise InputError(
            f"{store.path} has no two completions of one instruction that differ: there is nothing to vote on"
        )
    return votable, own_seed if seed is None else seed


def _drawn(votable: _Votable, count: int, seed: int) -> NDArray[np.int64]:
    """The places of a sample of so many battles, in the order of their drawing."""
    rng = np.random.default_rng([seed, 0])
    return balanced_sample(votable.model_a, votable.model_b, count, rng, votable.priority)


_LOW = {"disputed": 0.0, "decisive": 0.025}
"""Above it, judges differ; or the order of two models is not certain at 95 %."""


def _most(available: int, annotators: int, overlap: float, ceiling: int = DEFAULT_COUNT) -> int:
    """The most battles a page can have, up to a number."""
    count = min(ceiling, available)
    while count > 1 and 1 + max(int(one.max()) for one in shared_places(count, annotators, overlap)) > available:
        count -= 1
    return count


def _page(
    store: Store, votable: _Votable, drawn: NDArray[np.int64], number: int, rng: np.random.Generator
) -> AnnotationPage:
    """The page of some battles in an order of its own, each with a side by chance."""
    order = rng.permutation(drawn).tolist()
    turned = rng.random(len(order)) < 0.5
    pairs = [
        (votable.second[place].number, votable.first[place].number)
        if turn
        else (votable.first[place].number, votable.second[place].number)
        for place, turn in zip(order, turned.tolist(), strict=True)
    ]
    texts = blind_texts(store, {one for pair in pairs for one in pair})
    return annotation_page([(texts[one], texts[other]) for one, other in pairs], f"annotator {number}")


def _votable(store: Store, sample: AnnotationSample, campaign: str | None) -> tuple[_Votable, int]:
    """What can be voted on, and the seed of the campaign; 0 where there is none."""
    known = {(one.model, one.instruction): one for one in votable_completions(store)}
    if campaign is None and not frames.campaigns(store):
        chosen, battles = None, None
    else:
        chosen = choose_campaign(store, campaign)
        battles = frames.battles(store, chosen.id)
        battles = select_battles(battles, battles.status == Status.OK)
    seed = 0 if chosen is None else chosen.seed
    if battles is not None and len(battles.label):
        return _judged(battles, known, sample), seed
    if sample != "random":
        raise InputError(
            f"--sample {sample} is of {_NEEDS[sample]}, and {store.path} has no verdicts on pairs: --sample random"
        )
    return _all_pairs(known), seed


def _judged(battles: Battles, known: dict[tuple[str, str], VotableCompletion], sample: AnnotationSample) -> _Votable:
    """The battles that have verdicts, with what a sample goes by."""
    judgments = merge_orders(battles)
    measure = doubt_of_order if sample == "decisive" else dispute
    row, priority = measure(judgments)
    first, second = (_completions(judgments, side[row], row, known) for side in (judgments.model_a, judgments.model_b))
    differ = [
        place
        for place, (one, other) in enumerate(zip(first, second, strict=True))
        if one is not None and other is not None and one.text_hash != other.text_hash
    ]
    row = row[differ]
    return _Votable(
        judgments.models,
        judgments.model_a[row].astype(np.int64),
        judgments.model_b[row].astype(np.int64),
        judgments.instruction[row].astype(np.int64),
        [one for place in differ if (one := first[place]) is not None],
        [one for place in differ if (one := second[place]) is not None],
        None if sample == "random" else priority[differ],
        judged=True,
    )


def _completions(
    judgments: Judgments,
    models: NDArray[np.int32],
    row: NDArray[np.int64],
    known: dict[tuple[str, str], VotableCompletion],
) -> list[VotableCompletion | None]:
    instructions = judgments.instruction[row].tolist()
    return [
        known.get((judgments.models[model], judgments.instructions[instruction]))
        for model, instruction in zip(models.tolist(), instructions, strict=True)
    ]


def _all_pairs(known: dict[tuple[str, str], VotableCompletion]) -> _Votable:
    """Every two completions of one instruction."""
    models = tuple(sorted({model for model, _ in known}))
    code = {name: place for place, name in enumerate(models)}
    by_instruction: dict[str, list[VotableCompletion]] = {}
    for one in sorted(known.values(), key=lambda one: (one.instruction, one.model)):
        by_instruction.setdefault(one.instruction, []).append(one)
    pairs = [
        (number, one, other)
        for number, there in enumerate(by_instruction.values())
        for place, one in enumerate(there)
        for other in there[place + 1 :]
        if one.text_hash != other.text_hash
    ]
    return _Votable(
        models,
        np.array([code[one.model] for _, one, _ in pairs], dtype=np.int64),
        np.array([code[other.model] for _, _, other in pairs], dtype=np.int64),
        np.array([number for number, _, _ in pairs], dtype=np.int64),
        [one for _, one, _ in pairs],
        [other for _, _, other in pairs],
        None,
        judged=False,
    )


EXPECTED_AGREEMENT = 0.8
"""An agreement to plan with, beside that of chance, which needs most votes."""
_HALF_WIDTHS = (50.0, 25.0)


@dataclass(frozen=True, slots=True)
class VotesNeeded:
    """How many votes make intervals narrow, at 95 %.

    `by_judge` are the votes after which the interval of a judge's agreement with people ("same winner") is `width` from
    end to end, by the agreement, ties and clustering in the votes that there are; `beforehand` the same without votes,
    by an expected agreement. `ratings` are votes by half widths in Elo points, the median of all models: None where
    more votes on these instructions do not reach it. `measured` is how many votes there are.
    """

    width: float
    measured: int
    by_judge: Mapping[str, int]
    beforehand: Mapping[float, int]
    ratings: Mapping[float, int | None]
    available: int


def votes_needed(store: Store, width: float, *, campaign: str | None = None, human: str | None = None) -> VotesNeeded:
    """The votes that an interval of agreement `width` wide needs, and people's ratings within some Elo points.

    Votes that the store has of the people named, or of its only group, are learned from. The forecast of ratings is
    that of a plan (`ratings.design.interval_forecast`): battles spread as the votable ones are, one order each, ratings
    as judges or people see them so far. Raises InputError for a width that is none of a share, for people of whom the
    store has no votes, and where nobody could vote.
    """
    votable, _ = _something_votable(store, "random", None, campaign)
    beforehand = {share: votes_for_agreement(width, share) for share in (0.5, EXPECTED_AGREEMENT)}
    judged = people = None
    by_judge: dict[str, int] = {}
    if votable.judged:
        found = read_stored(store, choose_campaign(store, campaign), human).battles
        judged, people = merge_orders(found), found.people
    if judged is not None and people is not None:
        for one in people_agreement(judged, people).judges:
            if one.agreement is not None and one.agreement_lo is not None and one.agreement_hi is not None:
                # As many independent votes would have this interval: fewer than there are where votes hang together.
                alike = votes_for_agreement(one.agreement_hi - one.agreement_lo, one.agreement)
                decided = votes_for_agreement(width, one.agreement, one.decided / alike)
                by_judge[one.judge] = round(decided * one.votes / one.decided)
    votes = None if people is None else merge_orders(people)
    return VotesNeeded(
        width=width,
        measured=0 if votes is None else len(votes),
        by_judge=by_judge,
        beforehand=beforehand,
        ratings=_votes_for_ratings(votable, judged, votes),
        available=len(votable.model_a),
    )


def _votes_for_ratings(votable: _Votable, judged: Judgments | None, votes: Judgments | None) -> dict[float, int | None]:
    """Votes by half width in Elo points; a vote on every votable battle is the design that is scaled."""
    prior = prior_ratings(votable.models, judged if votes is None else votes)
    effect = DEFAULT_EFFECT_ONE_ORDER
    if votes is not None:
        known = dict(zip(votable.models, prior.logits.tolist(), strict=True))
        effect = design_effect(votes, np.array([known.get(name, np.nan) for name in votes.models]), effect)
    battles = np.stack([votable.model_a, votable.model_b, votable.instruction], axis=1).astype(np.int32)
    forecast = forecast_intervals(votable.models, battles, prior.logits, effect=effect, grows=False)
    times = {half: forecast.size_needed(half) for half in _HALF_WIDTHS}
    return {half: None if one is None else int(np.ceil(one * len(battles))) for half, one in times.items()}
