"""How many matchups, and of which kind, make the consistency of judges predict their Elo; arXiv 2509.23510."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.ratings.data.judgments import canonical
from venire.ratings.data.statistics import FEWEST_FOR_CORRELATION
from venire.ratings.data.validation import check_seed
from venire.ratings.judges.elo_from_consistency import RegressionLine, elo_from_scores
from venire.ratings.judges.habits import own_family_rows
from venire.ratings.judges.matchups import code_rows, count_verdicts, gaps_from_elo, matchup_shares

MatchupChoice = Literal["widest", "narrowest", "random", "all", "all, by gap"]

SIZES = (5, 10, 20, 30, 50, 100, 200)
"""Numbers of matchups that are tried, where there are more of them."""


@dataclass(frozen=True, slots=True)
class AblationRow:
    """Elo predicted from the consistency over some matchups: `pearson` of the two over judges, and errors in points.

    `choice` says which matchups: the widest or narrowest gaps by the models' Elo, random ones (figures are means over
    draws, and `lo` to `hi` where 95 % of them lie), all of them, or all with each weighted by its gap. Else `lo` to
    `hi` is Fisher's 95 % interval, about other judges of the same kind. None where a figure is undefined.
    """

    choice: MatchupChoice
    matchups: int
    pearson: float | None
    lo: float | None
    hi: float | None
    mae_left_out: float | None


@dataclass(frozen=True, slots=True)
class MatchupAblation:
    """What `matchup_ablation` finds: its rows, the number of judges and matchups, and draws of random ones."""

    judges: int
    matchups: int
    draws: int
    rows: tuple[AblationRow, ...]


def matchup_ablation(
    battles: Battles,
    elo: Mapping[str, float],
    judge_elo: Mapping[str, float],
    *,
    families: Mapping[str, str] | None = None,
    judge_families: Mapping[str, str] | None = None,
    sizes: Sequence[int] = SIZES,
    draws: int = 200,
    seed: int = 0,
) -> MatchupAblation:
    """How the correlation of judges' consistency with their Elo grows with the matchups asked; arXiv 2509.23510.

    `elo` are ratings by model, which order matchups by gap, `judge_elo` those of judges by name. Only matchups between
    rated models count, and only those that every judge with an Elo was asked, so that all figures are of the same
    judges; those of a judge's own family are left out as in `consistency`. Raises `InputError` for fewer than 4 judges
    with an Elo, and for fewer than 2 such matchups.

    >>> from venire.ratings import battles, matchup_ablation
    >>> rng = np.random.default_rng(0)
    >>> a, b = np.array([(0, 1), (1, 2), (0, 2)] * 80).T
    >>> y = (rng.random(960) < np.repeat([0.6, 0.7, 0.8, 0.9], 240)).astype(float)
    >>> judges, i = np.repeat(["w", "x", "y", "z"], 240), np.tile(np.arange(240) // 3, 4)
    >>> asked = battles(np.tile(a, 4), np.tile(b, 4), y, judge=judges, instruction=i)
    >>> found = matchup_ablation(
    ...     asked, {"0": 1200, "1": 1100, "2": 1000}, {"w": 900, "x": 1000, "y": 1100, "z": 1200}, sizes=[2]
    ... )
    >>> [(row.choice, row.matchups) for row in found.rows]
    [('widest', 2), ('narrowest', 2), ('random', 2), ('all', 3), ('all, by gap', 3)]
    """
    check_seed(seed)
    if draws < 1 or any(size < 2 for size in sizes):
        raise InputError(f"draws is {draws} and sizes {list(sizes)}: give 1 draw or more, and sizes of 2 or more")
    rows = canonical(battles)
    kin = own_family_rows(rows, families, judge_families)
    used = code_rows(rows, (rows.status == Status.OK) & ~kin)
    shares = matchup_shares(used, count_verdicts(used))
    names = [name for name in used.judges if name in judge_elo]
    if len(names) < FEWEST_FOR_CORRELATION:
        raise InputError(
            f"{len(names)} judges have an Elo of their own; to predict it from consistency takes "
            f"{FEWEST_FOR_CORRELATION} or more: give judges an elo in the campaign, or name them as models of the "
            "reference"
        )
    chosen = [used.judges.index(name) for name in names]
    spread = _spread(shares.u, shares.judge, shares.pair, (len(used.judges), len(used.pairs)))[chosen]
    gap = np.abs(gaps_from_elo(used, elo)[0]) if len(used.judges) else np.empty(0)
    common = np.flatnonzero(np.isfinite(spread).all(axis=0) & np.isfinite(gap))
    if len(common) < 2:
        raise InputError(
            f"{len(common)} matchups of models with an Elo were judged by all of {', '.join(names[:8])}: give ratings "
            "of the models, or ask every judge for the same matchups"
        )
    spread, gap = spread[:, common], gap[common]
    points = [judge_elo[name] for name in names]
    by_gap = np.argsort(-gap, kind="stable")
    rng, found = np.random.default_rng(seed), []
    for size in [size for size in dict.fromkeys(sizes) if size < len(common)]:
        found.append(_row("widest", size, _line(names, spread[:, by_gap[:size]].mean(axis=1), points)))
        found.append(_row("narrowest", size, _line(names, spread[:, by_gap[-size:]].mean(axis=1), points)))
        lines = [
            _line(names, spread[:, rng.permutation(len(common))[:size]].mean(axis=1), points) for _ in range(draws)
        ]
        found.append(_of_draws(size, lines))
    found.append(_row("all", len(common), _line(names, spread.mean(axis=1), points)))
    if gap.sum() > 0.0:
        found.append(_row("all, by gap", len(common), _line(names, spread @ gap / gap.sum(), points)))
    return MatchupAblation(len(names), len(common), draws, tuple(found))


def _spread(
    u: NDArray[np.float64], judge: NDArray[np.intp], pair: NDArray[np.intp], shape: tuple[int, int]
) -> NDArray[np.float64]:
    """1 - 4 p (1 - p) of each judge's matchups (judges, pairs), NaN where it was not asked."""
    key, size = judge * shape[1] + pair, shape[0] * shape[1]
    count = np.bincount(key, minlength=size)
    share = np.bincount(key, u, size) / np.where(count, count, np.nan)
    return np.asarray((1.0 - 4.0 * share * (1.0 - share)).reshape(shape))


def _line(judges: Sequence[str], score: NDArray[np.float64], elo: Sequence[float]) -> RegressionLine:
    return elo_from_scores(judges, score, elo, name="consistency").all


def _row(choice: MatchupChoice, size: int, line: RegressionLine) -> AblationRow:
    lo, hi = line.intervals.get("pearson", (None, None))
    return AblationRow(choice, size, line.pearson, lo, hi, line.mae_left_out)


def _of_draws(size: int, lines: Sequence[RegressionLine]) -> AblationRow:
    """Means over draws of random matchups, and where the middle 95 % of their correlations lie."""
    pearson = [line.pearson for line in lines if line.pearson is not None]
    errors = [line.mae_left_out for line in lines if line.mae_left_out is not None]
    if not pearson:
        return AblationRow("random", size, None, None, None, None)
    lo, hi = np.quantile(pearson, (0.025, 0.975)).tolist()
    mae = float(np.mean(errors)) if errors else None
    return AblationRow("random", size, float(np.mean(pearson)), lo, hi, mae)
