"""Whether judges favour their own: their verdicts on models of their family, beside other judges' on the same battles.

A strong judge's own answers may be the better ones, so its share of wins for them says nothing by itself. What it gives
them beyond what judges of other families give them, battle by battle, does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.data.clustered import ClusteredMean, clustered_mean
from venire.ratings.data.judgments import Judgments, combine_keys

__all__ = ["OwnFamily", "own_family"]


@dataclass(frozen=True, slots=True)
class OwnFamily:
    """One judge on battles between `models`, its own, and others: the share that it gives its `own`, what the `others`
    give them on the same battles, and the difference, `excess`, with its error by instruction.

    A judge that decides more sharply than others gives a strong family more, and a weak one less, without any favour.
    """

    judge: str
    models: tuple[str, ...]
    own: float | None
    others: float | None
    excess: ClusteredMean


def own_family(judgments: Judgments, own: NDArray[np.bool_]) -> tuple[OwnFamily, ...]:
    """What each judge that has models of its `own` (judges, models) gives them beyond judges that share none of these.

    Raises `InputError` where no judge has, or no other judge saw the same battles.
    """
    if not own.any():
        raise InputError("no judge is one of the models or of their families: nobody can favour its own")
    parts = (judgments.model_a, judgments.model_b, judgments.instruction + 1)
    battle = np.unique(combine_keys(*parts), return_inverse=True)[1] if len(judgments) else np.zeros(0, dtype=np.intp)
    judges = np.flatnonzero(own.any(axis=1)).tolist()
    made = [_of_judge(judgments, battle, code, own[code], ~(own & own[code]).any(axis=1)) for code in judges]
    if all(one.excess.value is None for one in made):
        raise InputError("no other judge saw the battles of a judge's own family: there is nothing to hold it against")
    return tuple(made)


def _of_judge(
    judgments: Judgments, battle: NDArray[np.intp], code: int, kin: NDArray[np.bool_], strangers: NDArray[np.bool_]
) -> OwnFamily:
    of_a, of_b = kin[judgments.model_a], kin[judgments.model_b]
    share = np.where(of_a, judgments.y, 1.0 - judgments.y)
    matched = of_a != of_b
    count = int(battle.max(initial=-1)) + 1
    means = []
    for rows in (matched & (judgments.judge == code), matched & strangers[judgments.judge]):
        seen = np.bincount(battle[rows], minlength=count)
        sums = np.bincount(battle[rows], share[rows], count)
        means.append(np.divide(sums, seen, out=np.full(count, np.nan), where=seen > 0))
    both = np.flatnonzero(np.isfinite(means[0]) & np.isfinite(means[1]))
    place = np.zeros(count, dtype=np.intp)
    place[battle] = np.arange(len(battle))
    cluster = judgments.instruction[place[both]] if judgments.instructions else None
    excess = clustered_mean((means[0] - means[1])[both], cluster)
    own, others = (float(one[both].mean()) if len(both) else None for one in means)
    models = tuple(name for name, mine in zip(judgments.models, kin.tolist(), strict=True) if mine)
    return OwnFamily(judgments.judges[code], models, own, others, excess)
