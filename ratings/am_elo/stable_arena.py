"""Stable Arena: am-ELO without judges that gave few verdicts or judge no better than by chance.

Source: "am-ELO: A Stable Framework for Arena-based LLM Evaluation" (arXiv 2505.03475). No state is kept between calls:
a judge left out for too few verdicts returns when the table has enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import AmElo, am_elo
from venire.ratings.data.comparisons import Comparisons

_SLACK = 1e-9
"""Added to the threshold: a judge of ties alone has ability 0 up to rounding."""


class NobodyLeftError(InputError):
    """No judge meets the thresholds; the message states how far the best judge is from them."""


@dataclass(frozen=True, slots=True)
class DroppedJudge:
    """A judge that was left out, with the reason and the pass (0: before the first fit, for its number of verdicts).

    `ability` is the value for which it was left out, on the scale of the first fit; NaN if it was never fitted.
    """

    judge: str
    reason: str
    at_pass: int = field(metadata={"key": "pass"})
    verdicts: int
    ability: float


@dataclass(frozen=True, slots=True, eq=False)
class StableArena:
    """am-ELO of the judges that were kept.

    `dropped` are the others, in the order of removal. `passes` counts the fits after which judges were left out.
    `stopped` is the reason why no more judges were left out although some abilities are low; None if none is low.
    """

    fit: AmElo
    dropped: tuple[DroppedJudge, ...]
    passes: int
    stopped: str | None = None

    @property
    def ability(self) -> NDArray[np.float64]:
        """Abilities (judges,): from `fit` for judges kept, at removal for the others, NaN if there is none."""
        found, place = self.fit.ability.copy(), {name: code for code, name in enumerate(self.fit.judges)}
        for one in self.dropped:
            found[place[one.judge]] = one.ability
        return found


def stable_arena(
    data: Comparisons,
    *,
    least_verdicts: int = 50,
    least_ability: float = 0.0,
    until_stable: bool = False,
    first: ArrayLike | None = None,
    **options: Any,
) -> StableArena:
    """Fit am-ELO, leave out the judges whose ability is `least_ability` or less, and fit again without them.

    Judges with fewer than `least_verdicts` rows of weight above 0 are left out first. `least_ability` is on the scale
    of the first fit, where the mean ability is 1. One pass by default; `until_stable` repeats this on the same scale
    until no judge is removed. `first` (rows,) and `options` are those of `am_elo`. Where a fit cannot determine the
    sign of the abilities, no judge is left out for its ability, and `stopped` gives this reason. With `errors="none"` a
    mean near 0 is not detected. Raises `NobodyLeftError` where no judge would remain, `InputError` for an invalid
    threshold, and the errors of `am_elo`.

    >>> from venire.ratings import comparisons, stable_arena
    >>> data = comparisons(list("aba") * 20, list("bcc") * 20, [1, 1, 0, 0, 1, 1] * 10, judge=list("xy") * 30)
    >>> found = stable_arena(data, least_verdicts=10)
    >>> found.fit.ratings.models, found.dropped
    (('a', 'b', 'c'), ())
    """
    _check(data, least_verdicts, least_ability)
    assert data.judge is not None
    counted = data.judge if data.weight is None else data.judge[data.weight > 0.0]
    verdicts = np.bincount(counted, minlength=len(data.judges))
    kept = verdicts >= least_verdicts
    if not kept.any():
        _refuse_few(data.judges, verdicts, least_verdicts)
    dropped = list(_few(data.judges, verdicts, ~kept, least_verdicts))
    fit = _fit(data, kept, first, options)
    passes, scale, stopped = 0, 1.0, None
    while until_stable or not passes:
        ability = scale * fit.ability
        low = kept & (ability <= least_ability + _SLACK)
        if not low.any():
            break
        if stopped := _undecided(fit):
            break
        if not (kept & ~low).any():
            raise NobodyLeftError(
                f"no judge has an ability above {least_ability:g}, the most {float(ability[kept].max()):.3g}: "
                "lower least_ability"
            )
        passes += 1
        dropped += _weak(data.judges, verdicts, low, ability, least_ability, passes)
        kept &= ~low
        finite = kept & np.isfinite(ability)
        # The next fit sets the mean ability of the judges kept to 1; on the scale of the first fit that mean is this.
        scale = float(ability[finite].mean()) if finite.any() else scale
        fit = _fit(data, kept, first, options)
    return StableArena(fit, tuple(dropped), passes, stopped)


def _fit(data: Comparisons, kept: NDArray[np.bool_], first: ArrayLike | None, options: Mapping[str, Any]) -> AmElo:
    """am-ELO of the judges kept (judges,); the others keep their codes and have no ability."""
    assert data.judge is not None
    rows = kept[data.judge]
    if first is None:
        return am_elo(data.select(rows), **options)
    shown = np.asarray(first)
    if shown.shape != rows.shape:
        raise InputError(f"first has shape {shown.shape}, there are {len(rows)} comparisons; give one value a row")
    return am_elo(data.select(rows), first=shown[rows], **options)


def _check(data: Comparisons, least_verdicts: int, least_ability: float) -> None:
    if least_verdicts < 1:
        raise InputError(f"least_verdicts is {least_verdicts}; give 1 or more")
    if not 0.0 <= least_ability < np.inf:
        raise InputError(f"least_ability is {least_ability}; give 0 or more, such as 0.2")
    if data.judge is None:
        raise InputError("the comparisons name no judge: give `judge` to `comparisons`")


def _undecided(fit: AmElo) -> str | None:
    if fit.sign == "as the majority":
        return None
    return f"nobody more is left out for an ability, because its sign is {fit.sign}"


def _refuse_few(judges: tuple[str, ...], verdicts: NDArray[np.intp], least: int) -> None:
    if not verdicts.any():
        raise NobodyLeftError("there is no verdict of any judge")
    most = int(np.argmax(verdicts))
    raise NobodyLeftError(
        f"every judge has fewer than {least} verdicts, the most {judges[most]} with {verdicts[most]}: "
        "lower least_verdicts, or judge more"
    )


def _few(
    judges: tuple[str, ...], verdicts: NDArray[np.intp], few: NDArray[np.bool_], least: int
) -> Iterator[DroppedJudge]:
    for code in np.flatnonzero(few).tolist():
        count = int(verdicts[code])
        said = f"{count} verdict{'s' * (count != 1)}, fewer than {least}"
        yield DroppedJudge(judges[code], said, 0, count, float("nan"))


def _weak(
    judges: tuple[str, ...],
    verdicts: NDArray[np.intp],
    low: NDArray[np.bool_],
    ability: NDArray[np.float64],
    least: float,
    at_pass: int,
) -> Iterator[DroppedJudge]:
    for code in np.flatnonzero(low).tolist():
        found = float(ability[code])
        said = f"ability {found:.3g}" if np.isfinite(found) else "against the ratings in every verdict"
        yield DroppedJudge(judges[code], f"{said}, not above {least:g}", at_pass, int(verdicts[code]), found)
