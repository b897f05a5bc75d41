"""Robustness of ratings to bad judges: perturb verdicts on purpose, fit again, and detect the perturbed judges.

The study of "am-ELO: A Stable Framework for Arena-based LLM Evaluation" (arXiv 2505.03475): perturb the verdicts of
some judges in one of four ways, fit again, and compare each method with itself on the original verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError, VenireError
from venire.arena.wording import suggest
from venire.ratings.am_elo.am_elo import AmElo
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.validation import check_seed, float_array

Perturbation = Literal["random", "equal", "flip", "mixed"]

_RANDOM, _EQUAL, _FLIP = range(3)

_SAME = 1e-9
"""Difference in logits up to which two models count as equal."""

Fit = Callable[[Comparisons], Ratings | AmElo]


def perturb(data: Comparisons, judges: Collection[str], kind: Perturbation, *, seed: int = 0) -> Comparisons:
    """Perturb the verdicts of some judges; the verdicts of the others do not change.

    "equal" makes every verdict a tie; "flip" reverses winners; "random" makes a preference a tie or the opposite
    preference with equal probability; "mixed" does one of the three to each verdict, with equal probability. A tie
    stays a tie. Draws do not depend on the order of rows, of sides or of `judges`. Raises `InputError` for an unknown
    kind or judge.

    >>> from venire.ratings import comparisons, perturb
    >>> data = comparisons(list("aba") * 20, list("bcc") * 20, [1, 1, 0, 0, 1, 1] * 10, judge=list("xy") * 30)
    >>> len(perturb(data, ["x"], "flip"))
    60
    """
    if kind not in get_args(Perturbation):
        raise InputError(f"kind is {kind!r}; {suggest(kind, get_args(Perturbation))}")
    check_seed(seed)
    if data.judge is None:
        raise InputError("the comparisons name no judge: give `judge` to `comparisons`")
    rows = _by_name(data, np.flatnonzero(np.isin(data.judge, _codes_of_judges(data, judges))))
    rng = np.random.default_rng(seed)
    if kind == "mixed":
        done = rng.integers(_RANDOM, _FLIP + 1, len(rows))
    else:
        done = np.full(len(rows), {"random": _RANDOM, "equal": _EQUAL, "flip": _FLIP}[kind])
    tied = (done == _EQUAL) | ((done == _RANDOM) & (rng.random(len(rows)) < 0.5))
    y = data.y.copy()
    y[rows] = np.where(tied, 0.5, 1.0 - y[rows])
    return replace(data, y=y)


def _codes_of_judges(data: Comparisons, judges: Collection[str]) -> NDArray[np.intp]:
    """The codes of judges by name, ascending; raises `InputError` for an unknown judge."""
    place = {name: code for code, name in enumerate(data.judges)}
    if strange := sorted(set(judges) - place.keys()):
        known = ", ".join(data.judges[:10]) or "not named"
        raise InputError(f"no judge is called {strange[0]!r}; the judges are {known}")
    return np.array(sorted(place[name] for name in set(judges)), dtype=np.intp)


def _by_name(data: Comparisons, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """These rows sorted by names and outcome; rows that compare equal are interchangeable."""
    assert data.judge is not None
    a, b = _ranks(data.models)[data.a[rows]], _ranks(data.models)[data.b[rows]]
    turn, y = a > b, data.y[rows]
    keys = [np.where(turn, 1.0 - y, y), np.maximum(a, b), np.minimum(a, b), _ranks(data.judges)[data.judge[rows]]]
    if data.weight is not None:
        keys.insert(0, data.weight[rows])
    if data.cluster is not None:
        keys.insert(0, _ranks(data.clusters)[data.cluster[rows]])
    return rows[np.lexsort(keys)]


def _ranks(names: tuple[str, ...]) -> NDArray[np.intp]:
    """The place (names,) of each name in their alphabetical order."""
    ranks = np.empty(len(names), dtype=np.intp)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return ranks


@dataclass(frozen=True, slots=True, eq=False)
class Robustness:
    """Robustness of ratings to one kind of perturbation.

    `inconsistency` (methods, seeds) is the share of pairs of models whose order differs from that of the same method on
    the original verdicts; NaN where the method had no estimate. `f1` (methods, thresholds, seeds) is the F1 score of
    detecting the `count` perturbed judges among all by an ability at or below each of `thresholds`; NaN for methods
    without abilities. `undecided` (methods, seeds) marks where the data do not determine the sign of the abilities.
    """

    kind: Perturbation
    count: int
    seeds: tuple[int, ...]
    methods: tuple[str, ...]
    thresholds: tuple[float, ...]
    inconsistency: NDArray[np.float64]
    f1: NDArray[np.float64]
    undecided: NDArray[np.bool_]

    def rows(self) -> list[dict[str, str | int | float | None]]:
        """One row per method: means over the seeds with an estimate (None where none has one), and their number."""
        found: list[dict[str, str | int | float | None]] = []
        for index, name in enumerate(self.methods):
            row: dict[str, str | int | float | None] = {"method": name, "kind": self.kind, "perturbed": self.count}
            row["seeds"] = int(np.isfinite(self.inconsistency[index]).sum())
            row["inconsistency"] = mean_known(self.inconsistency[index])
            row |= {
                f"f1_at_{threshold:g}": mean_known(self.f1[index, at]) for at, threshold in enumerate(self.thresholds)
            }
            row["undecided"] = int(self.undecided[index].sum())
            found.append(row)
        return found


def inconsistency(one: ArrayLike, other: ArrayLike) -> float:
    """Inconsistency: the share of pairs of models that two sets of ratings (models,) order differently.

    A pair that is equal in one of them counts half. Models without a rating (NaN) in either are left out; NaN where no
    pair is left. Raises `InputError` for ratings of different lengths.
    """
    first, second = float_array("one", one), float_array("other", other)
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(f"ratings have shapes {first.shape} and {second.shape}; give one number a model in both")
    known = ~(np.isnan(first) | np.isnan(second))
    upper = np.triu_indices(int(known.sum()), 1)
    signs = [_sign(ratings[known][upper[0]], ratings[known][upper[1]]) for ratings in (first, second)]
    return float(np.abs(signs[0] - signs[1]).mean() / 2.0) if len(upper[0]) else float("nan")


def _sign(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(one > other + _SAME, 1.0, np.where(other > one + _SAME, -1.0, 0.0))


def f1_score(found: Collection[str], spoilt: Collection[str]) -> float:
    """F1 of detecting the perturbed judges: 2 hits / (2 hits + false alarms + misses); NaN if both are empty."""
    hits, either = len(set(found) & set(spoilt)), len(set(found)) + len(set(spoilt))
    return 2.0 * hits / either if either else float("nan")


def robustness(
    data: Comparisons,
    methods: Mapping[str, Fit],
    *,
    share: float = 0.25,
    kind: Perturbation = "flip",
    seeds: Sequence[int] = range(10),
    thresholds: Sequence[float] = (0.0,),
) -> Robustness:
    """Perturb the verdicts of a random `share` of the judges, once per seed, and fit each method again.

    `methods` are functions from comparisons to `Ratings` or `AmElo`. `AmElo` also contains abilities; it detects the
    judges at or below each of `thresholds`. A fit of perturbed verdicts without an estimate gives NaN. Raises
    `InputError` for a share outside (0, 1) or of no judge, and passes on a method's errors on the original verdicts.

    >>> from venire.ratings import bradley_terry, comparisons, robustness
    >>> data = comparisons(list("aba") * 20, list("bcc") * 20, [1, 1, 0, 0, 1, 1] * 10, judge=list("xyzw") * 15)
    >>> found = robustness(data, {"bradley-terry": bradley_terry}, seeds=[0, 1])
    >>> found.methods, found.count
    (('bradley-terry',), 1)
    """
    count = _count(data, share)
    for seed in seeds:
        check_seed(seed)
    whole = {name: _ratings(fit(data)) for name, fit in methods.items()}
    unlike = np.full((len(methods), len(seeds)), np.nan)
    f1 = np.full((len(methods), len(thresholds), len(seeds)), np.nan)
    undecided = np.zeros((len(methods), len(seeds)), dtype=np.bool_)
    names = sorted(_judges_with_verdicts(data))
    for at, seed in enumerate(seeds):
        chosen = sorted(np.random.default_rng((seed, 1)).choice(len(names), count, replace=False).tolist())
        spoilt = [names[code] for code in chosen]
        table = perturb(data, spoilt, kind, seed=seed)
        for index, (name, fit) in enumerate(methods.items()):
            try:
                found = fit(table)
            except VenireError:
                continue
            unlike[index, at] = inconsistency(whole[name].logits, _ratings(found).logits)
            if isinstance(found, AmElo):
                undecided[index, at] = found.sign != "as the majority"
                f1[index, :, at] = [f1_score(_low(found, threshold), spoilt) for threshold in thresholds]
    return Robustness(kind, count, tuple(seeds), tuple(methods), tuple(thresholds), unlike, f1, undecided)


def _count(data: Comparisons, share: float) -> int:
    if data.judge is None:
        raise InputError("the comparisons name no judge: give `judge` to `comparisons`")
    judges = len(_judges_with_verdicts(data))
    if not 0.0 < share < 1.0 or not 1 <= round(share * judges) < judges:
        raise InputError(f"share is {share}: of {judges} judges give one that is at least one judge and not all")
    return round(share * judges)


def _judges_with_verdicts(data: Comparisons) -> list[str]:
    """The judges that have at least one verdict."""
    assert data.judge is not None
    return [data.judges[code] for code in np.unique(data.judge).tolist()]


def _ratings(found: Ratings | AmElo) -> Ratings:
    return found.ratings if isinstance(found, AmElo) else found


def _low(found: AmElo, threshold: float) -> list[str]:
    return [found.judges[code] for code in np.flatnonzero(found.ability <= threshold + _SAME).tolist()]


def mean_known(values: NDArray[np.float64]) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
