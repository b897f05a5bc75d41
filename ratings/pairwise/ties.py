"""Tie models: ratings that treat a tie as a separate outcome, by Rao and Kupper (1967) and Davidson (1970)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, log_expit

from venire.arena.errors import InputError, VenireError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.data.wins import WinCounts
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import tie_parameter_exists
from venire.ratings.pairwise.covariance import Errors
from venire.ratings.pairwise.solvers import Local, climb


class NoTieParameterError(VenireError):
    """Ties explain everything: the tie parameter has no finite estimate."""


@dataclass(frozen=True, slots=True, eq=False)
class TieRatings:
    """`ratings` with the covariance of the full information matrix, and the fitted tie parameter.

    `tie` is Rao and Kupper's k (1: no ties) or Davidson's nu (0: no ties), `tie_se` its standard error, NaN where the
    table has no tie and the estimate is at its bound. `ties` is their weight. `log_likelihood` is that of wins, ties
    and losses; it is comparable between the two methods, but not with Bradley-Terry's on halved ties.
    """

    ratings: Ratings
    tie: float
    tie_se: float
    ties: float
    log_likelihood: float


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Wins, losses and ties of the first of each pair."""

    counts: WinCounts
    won: NDArray[np.float64]
    lost: NDArray[np.float64]
    tied: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _TieTerms:
    """Each pair's contribution to a log-likelihood: value, slopes and negated second derivatives in gap and parameter.

    `up` minus `down` is the slope in the gap, `tie_up` minus `tie_down` that in the tie parameter.
    """

    value: NDArray[np.float64]
    up: NDArray[np.float64]
    down: NDArray[np.float64]
    tie_up: NDArray[np.float64]
    tie_down: NDArray[np.float64]
    bend: NDArray[np.float64]
    tie_bend: NDArray[np.float64]
    cross: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """The parts specific to one method: likelihood, parameter value and slope in t, start value of t, bound."""

    method: str
    terms: Callable[[_Pairs, NDArray[np.float64], float], _TieTerms]
    value: Callable[[float], tuple[float, float]]
    begin: Callable[[float], float]
    bound: float


def rao_kupper(data: Comparisons, *, ridge: float = 0.0, anchors: Mapping[str, float] | None = None) -> TieRatings:
    """Ratings under `p_i / (p_i + k p_j)` for a win and the remaining probability for a tie, k >= 1.

    An outcome of exactly 0.5 is a tie; other fractional outcomes are rejected. `ridge` and `anchors` are as in
    `bradley_terry`; the tie parameter has no ridge. Raises `SeparatedError`, `NoTieParameterError`, `InputError` and
    `NotConvergedError`.

    >>> from venire.ratings import comparisons, rao_kupper
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0.5, 0.5, 1, 1, 0.5])
    >>> rao_kupper(data).ratings.elo.round(1).tolist()
    [1224.4, 1000.0, 775.6]
    """

    def value(logit: float) -> tuple[float, float]:
        k = float(np.exp(0.5 * np.logaddexp(0.0, logit)))
        return k, (k * k - 1.0) / (2.0 * k)

    def begin(share: float) -> float:
        return float(np.log(4.0 * share / (1.0 - share) ** 2))

    return _rate(_Form("rao-kupper", _rao_kupper_terms, value, begin, 1.0), data, ridge, anchors)


def davidson(data: Comparisons, *, ridge: float = 0.0, anchors: Mapping[str, float] | None = None) -> TieRatings:
    """Ratings under `P(tie)` proportional to `nu sqrt(p_i p_j)`, wins to p_i and p_j, nu >= 0.

    Arguments and errors are those of `rao_kupper`.

    >>> from venire.ratings import comparisons, davidson
    >>> data = comparisons(list("aababc"), list("bbccca"), [1, 0.5, 0.5, 1, 1, 0.5])
    >>> davidson(data).ratings.elo.round(1).tolist()
    [1403.0, 1000.0, 597.0]
    """

    def value(logit: float) -> tuple[float, float]:
        return float(np.exp(logit)), float(np.exp(logit))

    def begin(share: float) -> float:
        return float(np.log(2.0 * share / (1.0 - share)))

    return _rate(_Form("davidson", _davidson_terms, value, begin, 0.0), data, ridge, anchors)


def _rao_kupper_terms(pairs: _Pairs, gap: NDArray[np.float64], logit: float) -> _TieTerms:
    log_k, slope = 0.5 * np.logaddexp(0.0, logit), 0.5 * float(expit(logit))
    ahead, behind = pairs.won + pairs.tied, pairs.lost + pairs.tied
    miss_ahead, miss_behind = expit(log_k - gap), expit(log_k + gap)
    up, down = ahead * miss_ahead, behind * miss_behind
    bend_up, bend_down = up * expit(gap - log_k), down * expit(-gap - log_k)
    return _TieTerms(
        value=ahead * log_expit(gap - log_k) + behind * log_expit(-gap - log_k) + pairs.tied * logit,
        up=up,
        down=down,
        tie_up=pairs.tied,
        tie_down=slope * (up + down),
        bend=bend_up + bend_down,
        tie_bend=slope**2 * (bend_up + bend_down) + slope * float(expit(-logit)) * (up + down),
        cross=slope * (bend_down - bend_up),
    )


def _davidson_terms(pairs: _Pairs, gap: NDArray[np.float64], logit: float) -> _TieTerms:
    log_sum = np.logaddexp(0.5 * np.abs(gap) + np.log1p(np.exp(-np.abs(gap))), logit)
    win, loss, tie = np.exp(0.5 * gap - log_sum), np.exp(-0.5 * gap - log_sum), np.exp(logit - log_sum)
    met, lead = pairs.won + pairs.lost + pairs.tied, win - loss
    return _TieTerms(
        value=0.5 * gap * (pairs.won - pairs.lost) + pairs.tied * logit - met * log_sum,
        up=0.5 * (pairs.won * (2.0 * loss + tie) + pairs.tied * loss),
        down=0.5 * (pairs.lost * (2.0 * win + tie) + pairs.tied * win),
        tie_up=pairs.tied * (win + loss),
        tie_down=(pairs.won + pairs.lost) * tie,
        bend=0.25 * met * (tie * (win + loss) + 4.0 * win * loss),
        tie_bend=met * tie * (win + loss),
        cross=-0.5 * met * lead * tie,
    )


class _Curve:
    """A log-likelihood of the ratings (n,) and, last, the tie parameter; the ridge is on the ratings only."""

    def __init__(self, pairs: _Pairs, form: _Form, ridge: float) -> None:
        self.size = len(pairs.counts.models) + 1
        self._pairs, self._form, self._ridge = pairs, form, ridge

    def terms(self, point: NDArray[np.float64]) -> _TieTerms:
        counts = self._pairs.counts
        return self._form.terms(self._pairs, point[counts.first] - point[counts.second], float(point[-1]))

    def at(self, point: NDArray[np.float64]) -> Local:
        counts, terms, size = self._pairs.counts, self.terms(point), self.size
        gains = np.append(self._sum(terms.up, terms.down), terms.tie_up.sum())
        losses = np.append(self._sum(terms.down, terms.up), terms.tie_down.sum())
        diagonal = np.append(self._sum(terms.bend, terms.bend), terms.tie_bend.sum())
        coupling = np.zeros((size, size))
        coupling[counts.first, counts.second] = coupling[counts.second, counts.first] = terms.bend
        coupling[-1, :-1] = coupling[:-1, -1] = -self._sum(terms.cross, -terms.cross)
        pull = self._ridge * np.append(point[:-1], 0.0)
        diagonal[:-1] += self._ridge
        return Local(gains - losses - pull, gains + losses + np.abs(pull), diagonal, coupling)

    def _sum(self, first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
        counts, size = self._pairs.counts, self.size - 1
        sums = np.bincount(counts.first, first, size) + np.bincount(counts.second, second, size)
        return np.asarray(sums, dtype=np.float64)


def _rate(form: _Form, data: Comparisons, ridge: float, anchors: Mapping[str, float] | None) -> TieRatings:
    """Fit a tie model; Bradley-Terry with halved ties validates the table and gives components and start values."""
    pairs = _counted(data)
    ties = float(pairs.tied.sum())
    errors: Errors = "none" if ties else "hessian"
    half = replace(bradley_terry(data, ridge=ridge, anchors=anchors, errors=errors), method=form.method)
    if ties == 0.0:
        return TieRatings(half, form.bound, np.nan, 0.0, half.diagnostics["log_likelihood"])
    anchored = np.isin(data.models, list(anchors or ()))
    if not tie_parameter_exists(pairs.counts, pairs.won, pairs.lost, pairs.tied, ridged=ridge > 0.0, fixed=anchored):
        raise NoTieParameterError(
            "the wins contradict one another nowhere, and every tie fits between them: the more ties are expected, "
            "the better the fit, without end; compare more, or rate with ties as halves"
        )
    known = half.battles > 0.0
    inside = replace(pairs, counts=pairs.counts.only(known))
    held = np.array([name in (anchors or {}) for name in inside.counts.models], dtype=np.bool_)
    several = np.count_nonzero(held) > 1
    fixed = np.append(held & several, False)
    if ridge == 0.0 and not several:
        fixed[np.argmax(half.battles[known])] = True
    curve, total = _Curve(inside, form, ridge), float((pairs.won + pairs.lost + pairs.tied).sum())
    begin = half.logits[known] - (0.0 if several else half.logits[known].mean())
    found = climb(curve, np.append(begin, form.begin(ties / total)), fixed=fixed)
    spread = _inverse(curve.at(found.logits), fixed)
    likelihood = float(curve.terms(found.logits).value.sum())
    notes = {"log_likelihood": likelihood, "iterations": found.steps, "gradient": found.gradient / total}
    ratings = _gauged(half, known, held, found.logits[:-1], spread[:-1, :-1], notes)
    tie, slope = form.value(float(found.logits[-1]))
    return TieRatings(ratings, tie, slope * float(np.sqrt(spread[-1, -1])), ties, likelihood)


def _gauged(
    half: Ratings,
    known: NDArray[np.bool_],
    held: NDArray[np.bool_],
    found: NDArray[np.float64],
    spread: NDArray[np.float64],
    notes: dict[str, Any],
) -> Ratings:
    """Bring ratings and covariance of known models into the gauge of `half`: their mean, one anchor, or several."""
    size, anchored = len(found), np.count_nonzero(held)
    turn = np.eye(size)
    if anchored < 2:
        turn = turn - (held.astype(np.float64) if anchored else np.full(size, 1.0 / size))
    logits, covariance = half.logits.copy(), np.full((len(known), len(known)), np.nan)
    covariance[np.ix_(~np.isnan(logits), ~np.isnan(logits))] = 0.0
    logits[known] = turn @ found + (half.logits[known][held].sum() if anchored == 1 else 0.0)
    covariance[np.ix_(known, known)] = turn @ spread @ turn.T
    diagnostics = {**half.diagnostics, **notes}
    return replace(half, logits=logits, covariance=covariance, errors="hessian", diagnostics=diagnostics)


def _inverse(local: Local, fixed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The inverse of the information matrix, with zeros where a rating is held."""
    free = np.flatnonzero(~fixed)
    information = np.diag(local.diagonal) - local.coupling
    spread = np.zeros_like(information)
    factor = cho_factor(information[np.ix_(free, free)], lower=True, overwrite_a=True)
    spread[np.ix_(free, free)] = cho_solve(factor, np.eye(len(free)))
    return spread


def _counted(data: Comparisons) -> _Pairs:
    """Wins, losses and ties by pair; raises `InputError` for other outcomes."""
    tie = data.y == 0.5
    wrong = ~(tie | (data.y == 0.0) | (data.y == 1.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"y, row {row}: {data.y[row]} is not possible: with ties as an outcome give 1, 0.5 or 0")
    counts, drawn, decided = data.wins, _some(data, tie).wins, _some(data, ~tie).wins
    size = len(data.models)
    keys = counts.first * size + counts.second

    def spread(values: NDArray[np.float64], part: WinCounts) -> NDArray[np.float64]:
        whole = np.zeros(len(keys))
        whole[np.searchsorted(keys, part.first * size + part.second)] = values
        return whole

    return _Pairs(counts, spread(decided.won, decided), spread(decided.lost, decided), spread(2.0 * drawn.won, drawn))


def _some(data: Comparisons, rows: NDArray[np.bool_]) -> Comparisons:
    weight = None if data.weight is None else data.weight[rows]
    return Comparisons(data.models, data.a[rows], data.b[rows], data.y[rows], weight)
