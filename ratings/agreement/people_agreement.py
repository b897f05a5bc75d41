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

__all__ = ["JudgeAndPeople", "PeopleAgreement", "people_agreement"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class JudgeAndPeople:
    """One judge beside people, over `votes` on `battles` that it judged as well.

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
    """`judges` by name; `alpha` is Krippendorff's over judges and people together, `among` that over people alone.

    Both are nominal over win, tie and loss. In `alpha` people are one judge, whose side on a battle is that of their
    mean vote; in `among` each annotator is one.
    """

    judges: tuple[JudgeAndPeople, ...]
    alpha: Coefficient
    among: Coefficient


def people_agreement(judgments: Judgments, people: Battles, *, replicates: int = 400, seed: int = 0) -> PeopleAgreement:
    """Agreement of each judge with people's votes on the same battles; bootstrap over instructions.

    Raises `InputError` as `human_labels` does.

    >>> from venire.ratings import battles, merge_orders, people_agreement
    >>> judge = battles(["a", "a"], ["b", "b"], [1, 0], judge=["j", "j"], instruction=["q", "r"])
    >>> people = battles(["a", "a"], ["b", "b"], [1, 0], judge=["ann", "bob"], instruction=["q", "r"])
    >>> people_agreement(merge_orders(judge), people, replicates=20).judges[0].kappa.value
    1.0
    """
    found = human_labels(judgments, people)
    voted = ~np.isnan(found.human)
    judges = tuple(
        _of_judge(judgments, found, voted & (judgments.judge[found.rows] == code), name, replicates, seed)
        for code, name in enumerate(judgments.judges)
    )
    return PeopleAgreement(
        judges,
        _alpha(with_people(judgments, people, free_name(judgments)), replicates, seed),
        _alpha(merge_orders(people), replicates, seed),
    )


def _of_judge(
    judgments: Judgments, found: HumanLabels, rows: NDArray[np.bool_], name: str, replicates: int, seed: int
) -> JudgeAndPeople:
    at, human = found.rows[rows], found.human[rows]
    y = judgments.y[at]
    decided = (y != 0.5) & (human != 0.5)
    same = ((y > 0.5) == (human > 0.5))[decided]
    share = clustered_mean(same.astype(np.float64), judgments.instruction[at][decided])
    lo, hi = share.share_interval()
    return JudgeAndPeople(
        judge=name,
        battles=len(np.unique(at)),
        votes=len(at),
        decided=int(decided.sum()),
        agreement=share.value,
        agreement_lo=lo,
        agreement_hi=hi,
        kappa=human_kappa(y, human, cluster=judgments.instruction[at], replicates=replicates, seed=seed),
    )


def _alpha(judgments: Judgments, replicates: int, seed: int) -> Coefficient:
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
    return krippendorff_alpha(side, replicates=replicates, seed=seed, cluster=cluster)
