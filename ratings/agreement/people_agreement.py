"""Agreement of judges with people, beside the agreement of people among themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.ratings.agreement.chance_corrected import Coefficient, human_kappa, krippendorff_alpha
from venire.ratings.data.clustered import clustered_mean
from venire.ratings.data.judgments import Judgments, combine_keys, merge_orders
from venire.ratings.data.people import HumanLabels, free_name, human_labels, with_people

Vector = NDArray[np.float64]

MAX_ANNOTATORS = 20
"""With more people than these, nobody is held against the others alone: a crowd's members share few battles."""
_MAX_PAIRS = 5_000_000
"""Pairs of votes on one battle, above which people are compared by alpha alone."""


@dataclass(frozen=True, slots=True)
class JudgeAndPeople:
    """One judge, or one person, beside people, over `votes` on `battles` that it judged as well.

    `agreement` is the share of votes for the same side where both decided (`decided` of them), from `agreement_lo` to
    `agreement_hi` at 95 %, clustered by instruction. `kappa` is Cohen's over win, tie and loss, a vote at a time: what
    one person says more of another's vote is in `PeopleAgreement.among`.
    """

    judge: str
    battles: int
    votes: int
    decided: int
    agreement: float | None
    agreement_lo: float | None
    agreement_hi: float | None
    kappa: Coefficient


@dataclass(frozen=True, slots=True)
class PeopleAgreement:
    """`judges` by name, `annotators` each beside the votes of the others.

    `alpha` is Krippendorff's over judges and people together, `among` that over people alone. Both are nominal over
    win, tie and loss. In `alpha` people are one judge, whose side on a battle is that of their mean vote; in `among`
    each annotator is one. `together` is one annotator's vote beside another's, over all pairs of them on one battle,
    each pair from both sides: what a judge's own figures can be held against. It is None, and `annotators` are empty,
    where no battle has votes of two people.
    """

    judges: tuple[JudgeAndPeople, ...]
    alpha: Coefficient
    among: Coefficient
    annotators: tuple[JudgeAndPeople, ...] = ()
    together: JudgeAndPeople | None = None


def people_agreement(judgments: Judgments, people: Battles) -> PeopleAgreement:
    """Agreement of each judge with people's votes on the same battles; intervals are clustered by instruction.

    Raises `InputError` as `human_labels` does.

    >>> from venire.ratings import battles, merge_orders, people_agreement
    >>> judge = battles(["a", "a"], ["b", "b"], [1, 0], judge=["j", "j"], instruction=["q", "r"])
    >>> people = battles(["a", "a"], ["b", "b"], [1, 0], judge=["ann", "bob"], instruction=["q", "r"])
    >>> people_agreement(merge_orders(judge), people).judges[0].kappa.value
    1.0
    """
    votes = merge_orders(people)
    annotators, together = _of_people(votes)
    return PeopleAgreement(
        judges_beside(judgments, people),
        _alpha(with_people(judgments, people, free_name(judgments))),
        _alpha(votes),
        annotators,
        together,
    )


def judges_beside(judgments: Judgments, people: Battles) -> tuple[JudgeAndPeople, ...]:
    """Each judge beside the votes on the battles that it judged, or beside the verdicts of others in their place.

    Raises `InputError` as `human_labels` does.
    """
    found = human_labels(judgments, people)
    voted = ~np.isnan(found.human)
    return tuple(
        _of_judge(judgments, found, voted & (judgments.judge[found.rows] == code), name)
        for code, name in enumerate(judgments.judges)
    )


def _of_judge(judgments: Judgments, found: HumanLabels, rows: NDArray[np.bool_], name: str) -> JudgeAndPeople:
    at = found.rows[rows]
    return _beside(name, judgments.y[at], found.human[rows], judgments.instruction[at], at)


def _of_people(votes: Judgments) -> tuple[tuple[JudgeAndPeople, ...], JudgeAndPeople | None]:
    """Each of a few people beside the others, and all of them; empty and None where no two voted on one battle."""
    key = combine_keys(votes.model_a, votes.model_b, votes.instruction + 1)
    _, battle, count = np.unique(key, return_inverse=True, return_counts=True)
    if not 0 < int((count.astype(np.int64) ** 2).sum()) <= _MAX_PAIRS:
        return (), None
    order, start = np.argsort(battle, kind="stable"), np.cumsum(count) - count
    others = count[battle]
    one = np.repeat(np.arange(len(key)), others)
    nth = np.arange(len(one)) - np.repeat(np.cumsum(others) - others, others)
    other = order[start[battle[one]] + nth]
    kept = votes.judge[one] != votes.judge[other]
    one, other = one[kept], other[kept]
    if not len(one):
        return (), None

    def beside(name: str, rows: NDArray[np.bool_]) -> JudgeAndPeople:
        at, to = one[rows], other[rows]
        return _beside(name, votes.y[at], votes.y[to], votes.instruction[at], battle[at])

    few = enumerate(votes.judges) if len(votes.judges) <= MAX_ANNOTATORS else ()
    each = tuple(beside(name, rows) for code, name in few if (rows := votes.judge[one] == code).any())
    return each, beside("", np.ones(len(one), dtype=np.bool_))


def _beside(
    name: str,
    y: Vector,
    human: Vector,
    instruction: NDArray[np.int32],
    item: NDArray[np.intp],
) -> JudgeAndPeople:
    """Outcomes beside votes, row by row; `item` numbers the judgments or battles that they are of."""
    decided = (y != 0.5) & (human != 0.5)
    same = ((y > 0.5) == (human > 0.5))[decided]
    share = clustered_mean(same.astype(np.float64), instruction[decided])
    lo, hi = share.share_interval()
    return JudgeAndPeople(
        judge=name,
        battles=len(np.unique(item)),
        votes=len(item),
        decided=int(decided.sum()),
        agreement=share.value,
        agreement_lo=lo,
        agreement_hi=hi,
        kappa=human_kappa(y, human, cluster=instruction),
    )


def _alpha(judgments: Judgments) -> Coefficient:
    """Krippendorff's alpha of the judges' mean sides on each battle."""
    key = combine_keys(judgments.model_a, judgments.model_b, judgments.instruction + 1)
    _, first, battle = np.unique(key, return_index=True, return_inverse=True)
    cells, cell = np.unique(battle * len(judgments.judges) + judgments.judge, return_inverse=True)
    total = np.bincount(cell, 2.0 * judgments.y - 1.0)
    of = cells // max(len(judgments.judges), 1)
    # Who said it does not matter to alpha: a column for each place, not for each annotator of a crowd.
    place = np.arange(len(of)) - np.searchsorted(of, of)
    side = np.full((len(first), int(place.max(initial=0)) + 1), np.nan)
    side[of, place] = np.sign(np.where(np.abs(total) < 1e-9, 0.0, total))
    cluster = judgments.instruction[first] if judgments.instructions else None
    return krippendorff_alpha(side, cluster=cluster)
