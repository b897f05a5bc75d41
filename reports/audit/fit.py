"""Checks of the rating model behind a board: cycles of wins, and win shares that ratings cannot explain."""

from __future__ import annotations

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.diagnostics.goodness_of_fit import goodness_of_fit
from venire.ratings.diagnostics.transitivity import Cycle, transitivity
from venire.reports.audit.coverage import largest_group
from venire.reports.audit.finding import CLEAR, Case, CheckResult, check
from venire.reports.wording import counted

CIRCLES = 0.02
"""Share of cyclic triads beyond chance; random winners give 0.25."""

MISFIT = 0.05
"""Root mean square residual of the pairs' win shares: 0.05 is 35 Elo points between equal models."""

STEP = 0.55
"""Share of wins in the weakest step of a cycle; 35 Elo points against the ratings."""

ODD = 0.1
"""Residual of one pair's win share against its ratings: 0.1 is 70 Elo points between equal models."""

_MIN_UNITS = 10


@check("transitivity", "at most", CIRCLES, "Are there more circles of wins than chance makes?", unless="chance")
def check_transitivity(case: Case) -> CheckResult:
    """Whether there are more cycles of majorities than chance produces with these ratings."""
    data, ratings = _rated(case)
    found = transitivity(data, ratings, seed=case.options.seed)
    worry = found.p_value < CLEAR and found.excess > CIRCLES
    says = f"{found.cyclic} of {found.triads} triads are circles; chance makes {found.expected * found.triads:.1f}"
    says += f" (p {_p(found.p_value)})" + _unclear(found.p_value, found.excess > CIRCLES)
    details = {
        "triads": found.triads,
        "cyclic": found.cyclic,
        "expected_share": found.expected,
        "p": found.p_value,
        "zeta": found.zeta,
        "models": found.models,
    }
    return CheckResult(worry, found.excess, says, details)


@check("circle", "at most", STEP, "Do three models beat one another in a circle?", unless="chance")
def check_circle(case: Case) -> CheckResult:
    """Whether three models beat one another in a cycle that no order of them explains."""
    data, ratings = _rated(case)
    found = transitivity(data, ratings, draws=1, seed=case.options.seed)
    if not found.strongest:
        return CheckResult(False, None, "no three models beat one another in a circle", {"strongest": []})
    clearest = found.strongest[0]
    weakest = min(clearest.shares)
    worry = clearest.p_value < CLEAR and weakest > STEP
    says = _circle(clearest)
    says += f" (p {_p(clearest.p_value)})" if clearest.p_value < CLEAR else ": no clearer than chance makes one"
    details = {
        "strongest": [
            {"models": list(one.models), "shares": list(one.shares), "weakest_in_se": one.weakest, "p": one.p_value}
            for one in found.strongest
        ]
    }
    return CheckResult(worry, weakest, says, details)


@check("fit", "at most", MISFIT, "Does one rating for each model explain who wins?", unless="chance")
def check_fit(case: Case) -> CheckResult:
    """Whether the win shares of pairs match those that the ratings predict."""
    data, ratings = _rated(case)
    found = goodness_of_fit(data, ratings, seed=case.options.seed)
    worry = found.p_value < CLEAR and found.misfit > MISFIT
    says = f"win shares of pairs miss the ratings by {100 * found.misfit:.1f} points beyond chance"
    says += f" (p {_p(found.p_value)})" + _unclear(found.p_value, found.misfit > MISFIT)
    details = {
        "misfit": found.misfit,
        "with_chance": found.raw,
        "p": found.p_value,
        "naive_p": found.naive_p,
        "pairs": found.pairs,
        "degrees": found.degrees,
    }
    return CheckResult(worry, found.misfit, says, details)


@check("single-pairs", "at most", ODD, "Do pairs meet as their ratings predict?", unless="chance")
def check_single_pairs(case: Case) -> CheckResult:
    """Whether the outcome of two models' battles contradicts their ratings, which other battles determine too."""
    data, ratings = _rated(case)
    found = goodness_of_fit(data, ratings, draws=99, seed=case.options.seed).worst
    odd = max(found, key=lambda pair: (pair.p_value < CLEAR, abs(pair.share - pair.expected), pair.models))
    apart = abs(odd.share - odd.expected)
    one, two = odd.models if odd.share >= odd.expected else odd.models[::-1]
    share, expected = (value if odd.share >= odd.expected else 1.0 - value for value in (odd.share, odd.expected))
    worry = odd.p_value < CLEAR and apart > ODD
    says = f"{one} wins {share:.0%} against {two}, where ratings say {expected:.0%}"
    says += f" (p {_p(odd.p_value)})" if odd.p_value < CLEAR else ", and no pair is clearer than chance makes one"
    details = {
        "pairs": [
            {"models": list(one.models), "share": one.share, "expected": one.expected, "in_se": one.z, "p": one.p_value}
            for one in found
        ]
    }
    return CheckResult(worry, apart, says, details)


def _rated(case: Case) -> tuple[Comparisons, Ratings]:
    """The largest group with its ratings; raises `InputError` for too few units.

    With few units, random sign flips have too few outcomes to distinguish rare from common results.
    """
    data, ratings = largest_group(case)
    units = ratings.diagnostics.get("clusters")
    if data.cluster is not None and units is not None and units < _MIN_UNITS:
        unit = "judge" if case.judgments.clustering == "judge" else "instruction"
        raise InputError(f"{counted(units, unit)}: {_MIN_UNITS} are needed to tell what chance makes of them")
    return data, ratings


def _unclear(p_value: float, large: bool) -> str:
    """The reason why a figure beyond its threshold is no worry."""
    return ": no more than chance may make" if large and p_value >= CLEAR else ""


def _circle(cycle: Cycle) -> str:
    one, two, three = cycle.models
    first, second, third = (f"{share:.0%}" for share in cycle.shares)
    return f"{one} beats {two} ({first}), {two} {three} ({second}), {three} {one} ({third})"


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.0005 else "< 0.001"
