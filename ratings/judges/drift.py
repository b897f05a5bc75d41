"""Drift: whether judges change during a campaign, by their early and late habits and the resulting ratings.

The model behind a name can be replaced, and so can a prompt. The questions change too. Therefore the mean of other
judges on the same battle, where there is one, is subtracted from each verdict; early and late verdicts are compared
within pairs of models and presentation orders, since a plan may ask some before others; and errors are clustered by
instruction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError, VenireError
from venire.arena.records import Status
from venire.ratings.data.clustered import ClusteredMean, clustered_error
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import canonical, combine_keys, merge_orders, select_battles
from venire.ratings.data.validation import float_array
from venire.ratings.diagnostics.changes import rating_changes
from venire.ratings.judges.matchups import outcomes
from venire.ratings.pairwise.bradley_terry import bradley_terry

_HABITS = ("readable", "first place", "ties", "agreement")
"""Shares: readable verdicts; decisive verdicts for the first place and for the better rated model; ties."""

_MIN_VERDICTS = 20
"""Minimum number of instructions that compare early and late; with fewer, errors are too imprecise."""

_CUTS = (0.25, 0.5, 0.75)
"""Shares of a judge's verdicts at which early ends and late begins."""

_MATCHED = 0.5
"""Minimum share of a judge's verdicts on battles that other judges saw for a comparison with them."""

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Drift:
    """Change of the frequency of a judge's `habit` after the share `cut` of its verdicts, relative to before.

    `change` is within pairs of models and orders, with its error clustered by instruction, and relative to other judges
    on the same battles where `matched`; `early` and `late` are plain shares.
    """

    judge: str
    habit: str
    cut: float
    early: float
    late: float
    change: ClusteredMean
    matched: bool


@dataclass(frozen=True, slots=True)
class RatingDrift:
    """Ratings from the late half of each judge's verdicts minus those from the early half, for the most changed model.

    `points` is in Elo points with its standard error `se`, beside the models that did not change, over `clusters`
    clusters; `changed` takes account of all `models`. `leaders` lead early and late.
    """

    model: str
    points: float
    se: float
    changed: bool
    leaders: tuple[str, str]
    models: int
    clusters: int


def drift(battles: Battles, seconds: ArrayLike | None = None, *, cuts: tuple[float, ...] = _CUTS) -> tuple[Drift, ...]:
    """The change of each judge's habits at each cut, in the order of `seconds` (verdicts,), or of rows without them.

    Rows whose time is NaN are left out, as are habits that do not vary or that fewer than `_MIN_VERDICTS` instructions
    compare. Raises `InputError` for a wrong number of times, and as `canonical` does.

    >>> from venire.ratings import battles, drift
    >>> rng = np.random.default_rng(0)
    >>> a, b = np.array([(0, 1), (1, 2), (0, 2)] * 160).T
    >>> y = (rng.random(480) < 0.7).astype(float)
    >>> asked = battles(a, b, y, instruction=np.arange(480) // 6, swapped=np.arange(480) % 6 > 2)
    >>> found = drift(asked)
    >>> [(one.habit, one.cut) for one in found][:2]
    [('first place', 0.25), ('first place', 0.5)]
    """
    rows, when = _timed(battles, seconds)
    shown = np.unique(combine_keys(*_shown(rows), rows.instruction + 1), return_inverse=True)[1]
    places = [(judge, np.flatnonzero(rows.judge == code)) for code, judge in enumerate(rows.judges)]
    found = []
    for habit, value in _habits(rows).items():
        for judge, mine in places:
            less, matched = _beside_others(value, shown, mine) if rows.instructions else (value[mine], False)
            said, rank = np.isfinite(less), _rank(when[mine])
            for cut in cuts:
                late = rank >= cut * len(mine)
                one = _change(rows, mine[said], less[said], late[said])
                if one is not None:
                    early, after = (float(np.nanmean(value[mine][side & said])) for side in (~late, late))
                    found.append(Drift(judge, habit, cut, early, after, one, matched))
    return tuple(sorted(found, key=lambda one: (one.judge, _HABITS.index(one.habit), one.cut)))


def rating_drift(battles: Battles, seconds: ArrayLike | None = None, *, level: float = 0.95) -> RatingDrift:
    """Compare ratings from each judge's early half with those from its late half; arguments as in `drift`.

    They are compared as by `rating_changes`, at `level`. The two orders of a battle are merged, at the mean of their
    times, so position effects cancel. Raises `InputError`
    where the halves rate fewer than two models in common, for too few instructions, and as `merge_orders` does.

    >>> from venire.ratings import battles, rating_drift
    >>> rng = np.random.default_rng(0)
    >>> a, b = np.array([(0, 1), (1, 2), (0, 2)] * 160).T
    >>> y = (rng.random(480) < 0.7).astype(float)
    >>> asked = battles(a, b, y, instruction=np.arange(480) // 6, swapped=np.arange(480) % 6 > 2)
    >>> found = rating_drift(asked)
    >>> found.models, found.leaders
    (3, ('0', '0'))
    """
    rows, when = _timed(battles, seconds)
    # A covariate of rows that are already canonical keeps its sign, and is averaged over the two orders.
    judgments = merge_orders(replace(rows, features={"when": when}))
    when = judgments.features["when"]
    late = np.zeros(len(when), dtype=np.bool_)
    for code in range(len(judgments.judges)):
        mine = np.flatnonzero(judgments.judge == code)
        late[mine] = _rank(when[mine]) >= 0.5 * len(mine)
    data = judgments.comparisons()
    found = rating_changes(data.select(~late), data.select(late), level=level)
    clusters, models = sum(found.clusters) - found.shared, found.models
    if clusters < max(_MIN_VERDICTS, len(models) + 1):
        raise InputError(
            f"{clusters} instructions for {len(models)} models: too few to tell a change of ratings from chance"
        )
    most = max(models, key=lambda row: (row.changed, round(abs(row.change), 9)))
    early, after = (max(models, key=lambda row: round(getattr(row, side), 6)) for side in ("before", "now"))
    return RatingDrift(
        model=most.model,
        points=most.change,
        se=most.se,
        changed=most.changed,
        leaders=(early.model, after.model),
        models=len(models),
        clusters=clusters,
    )


def _timed(battles: Battles, seconds: ArrayLike | None) -> tuple[Battles, Vector]:
    rows = canonical(battles)
    when = np.arange(len(rows.status), dtype=np.float64) if seconds is None else float_array("seconds", seconds)
    if when.shape != (len(rows.status),):
        raise InputError(f"seconds has shape {when.shape}; give a time for each of {len(rows.status)} verdicts")
    known = np.isfinite(when)
    return (rows, when) if known.all() else (select_battles(rows, known), when[known])


def _rank(when: Vector) -> NDArray[np.intp]:
    """Rank in time (rows,); rows of equal time share the first rank of these, so that they stay together."""
    return np.searchsorted(np.sort(when), when)


def _habits(rows: Battles) -> dict[str, Vector]:
    """Each habit of each verdict: 1, 0, or NaN where the verdict has no value for it."""
    read = rows.status == Status.OK
    y = np.where(read, outcomes(rows.label, rows.outcome), np.nan)
    decided = read & (y != 0.5)
    first = np.where(decided, (y > 0.5) ^ rows.swapped, np.nan)
    agrees = np.full(len(y), np.nan)
    try:
        rated = bradley_terry(_comparisons(select_battles(rows, read)), ridge=1.0, errors="none")
    except VenireError:
        rated = None
    if rated is not None:
        gap = rated.logits[rows.model_a] - rated.logits[rows.model_b]
        agrees = np.where(decided & (gap != 0.0), (y > 0.5) == (gap > 0.0), np.nan)
    found = (read.astype(np.float64), first, np.where(read, y == 0.5, np.nan), agrees)
    return {name: value for name, value in zip(_HABITS, found, strict=True) if rows.ordered or name != "first place"}


def _shown(rows: Battles) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    return rows.model_a, rows.model_b, rows.swapped.astype(np.int32)


def _beside_others(value: Vector, shown: NDArray[np.intp], mine: NDArray[np.intp]) -> tuple[Vector, bool]:
    """A judge's values minus the mean of others on the same battle and order; plain where few battles have others."""
    said, size = np.isfinite(value), int(shown.max(initial=-1)) + 1
    others = said.copy()
    others[mine] = False
    count = np.bincount(shown[others], minlength=size)
    sums = np.bincount(shown[others], value[others], size)
    own = shown[mine]
    seen = count[own] > 0
    if not len(mine) or np.count_nonzero(seen) < _MATCHED * len(mine):
        return value[mine], False
    return np.where(seen, value[mine] - sums[own] / np.maximum(count[own], 1), np.nan), True


def _change(rows: Battles, mine: NDArray[np.intp], value: Vector, late: NDArray[np.bool_]) -> ClusteredMean | None:
    """The change within pairs of models and orders; None where too little is known."""
    if not late.any() or late.all() or np.ptp(value) == 0.0:
        return None
    cell = np.unique(combine_keys(*(column[mine] for column in _shown(rows))), return_inverse=True)[1]
    count = np.bincount(cell)
    side, habit = (column - (np.bincount(cell, column) / count)[cell] for column in (late.astype(np.float64), value))
    # A cell that is entirely early or entirely late compares nothing.
    used = np.abs(side) > 1e-12
    unit = (rows.instruction[mine] if rows.instructions else np.arange(len(mine)))[used]
    names, code = np.unique(unit, return_inverse=True)
    weight, clusters = float(side @ side), len(names)
    if clusters < _MIN_VERDICTS:
        return None
    slope = float(side @ habit) / weight
    # Subtracting the mean of a small cell removes some of its variance too.
    full = np.sqrt(count / np.maximum(count - 1, 1))[cell]
    error = clustered_error((full * side * (habit - slope * side))[used] / weight, code, clusters)
    return ClusteredMean(slope, error, int(np.count_nonzero(used)), clusters)


def _comparisons(rows: Battles) -> Comparisons:
    cluster: tuple[Any, Any] = (rows.instruction, rows.instructions) if rows.instructions else (None, ())
    return Comparisons(
        rows.models, rows.model_a, rows.model_b, outcomes(rows.label, rows.outcome), rows.weight, *cluster
    )
