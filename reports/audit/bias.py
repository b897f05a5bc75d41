"""Checks of biases in verdicts: the order of the answers, their length, and the judge's own family.

A check worries only about an effect that is both clear (beyond chance, corrected for multiple comparisons) and large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venire.arena.errors import InputError, VenireError
from venire.ratings.data.clustered import ClusteredMean
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.models import own_models
from venire.ratings.diagnostics.influence import critical_value, first_order_effects, rated_together
from venire.ratings.judges.length import AdjustedRatings, adjust_for
from venire.ratings.judges.position import PositionEffect, adjust_for_position, position_effects
from venire.ratings.peers.self_preference import (
    FamilyPreference,
    SelfPreferenceOdds,
    family_preference,
    features_held,
    self_preference_odds,
)
from venire.reports.audit.finding import Case, CheckResult, check

FIRST_SHARE = 0.1
"""How far the first place's share of wins may be from half: at 0.6 one decisive verdict in five follows the place."""

LENGTH_EFFECT = 0.2
"""Logits that a typical difference of lengths may add: 5 wins of 100 between otherwise equal models."""

OWN_ODDS = 0.2
"""Logits by which a judge may favour its own family: 5 wins of 100 between otherwise equal models."""

_LENGTHS = ("length", "chars", "characters", "words", "tokens")

_LEVEL = 0.99
"""With few instructions the tails of errors are inexact: at 0.95 nearly one honest campaign in ten was flagged."""

_SHOWN = 5


@check(
    "order-effects",
    "at most",
    FIRST_SHARE,
    "Do judges prefer the completion shown first or second?",
    unless="chance",
    scope="judges",
    calls=("flips",),
)
def check_order(case: Case) -> CheckResult:
    """Whether a judge's verdicts follow the place in which answers were shown, and the effect on the ranking."""
    found = position_effects(case.battles)
    known = [one for one in found if one.first.value is not None and one.first.se is not None]
    if not known:
        why = next((one.reason for one in found if one.reason), "no verdict is decisive")
        raise InputError(f"no judge's first places can be told: {why}")
    clear = [one for one in known if _clear(one.first, 0.5, len(known))]
    most = max(clear or known, key=lambda one: (_lean(one), one.judge))
    worry = bool(clear) and _lean(most) >= FIRST_SHARE
    details = {
        "judges": [_of_order(one) for one in sorted(known, key=_lean, reverse=True)[:_SHOWN]],
        **_ranking_without_order(case),
    }
    return CheckResult(worry, round(_lean(most), 6), _order_sentence(most, known, worry, details), details)


@check("length", "at most", LENGTH_EFFECT, "Do longer answers win?", unless="chance", scope="judges")
def check_length(case: Case) -> CheckResult:
    """Whether longer answers win beyond the models' ratings, and the effect of length control on the ranking."""
    column = _length_column(case)
    if column is None:
        raise InputError(
            "no lengths are known: a store has those of pairs; for a table --covariate length names a column of A's "
            "less B's"
        )
    found = adjust_for(case.judgments.comparisons(), case.judgments.features[column], column)
    size = abs(found.coefficient)
    clear = found.clear > critical_value(1, found.clusters, _LEVEL)
    worry = clear and size >= LENGTH_EFFECT
    longer = "longer" if found.coefficient > 0.0 else "shorter"
    often = f"wins {'far ' if worry else ''}more often than" if clear else "does not clearly win more often than"
    says = (
        f"the {longer} answer {often} the models' ratings explain ({size:.2f} logits a usual difference of {column}, "
        f"{found.clear:.1f} standard errors); with length held equal {_moved(found)}"
    )
    details = {**_held(found), "column": column, "rows": found.rows, "own_information": found.own_information}
    return CheckResult(worry, round(size, 6), says, details)


@check(
    "own-family",
    "at most",
    OWN_ODDS,
    "Do judges favour models of their own family?",
    unless="chance",
    scope="judges",
    calls=("disagreements",),
)
def check_own_family(case: Case) -> CheckResult:
    """Whether a judge favours its own family's models more than its sharpness and the ratings explain."""
    judgments = case.judgments
    own = own_models(judgments.judges, judgments.models, case.battles.peers, case.families, case.judge_families)
    shares = {one.judge: one for one in family_preference(judgments, own)}
    held = features_held(judgments)
    found = self_preference_odds(judgments, own, held=held, level=1.0 - (1.0 - _LEVEL) / len(shares))
    told = [_OwnFavour(shares[judgments.judges[code]], odds) for code, odds in found.items()]
    told.sort(key=lambda one: (-one.size, one.shares.judge))
    known = [one for one in told if one.odds.lo is not None]
    clear = [one for one in told if one.clear]
    worry = bool(clear) if known or clear else None
    most = (clear or known or [one for one in told if one.shares.excess.value is not None])[0]
    figure = None if most.odds.value is None else round(most.odds.value, 6)
    details = {"judges": [one.plain() for one in told[:_SHOWN]], "held": held}
    says = _own_sentence(most, worry, held)
    if worry is False and (untold := [one.shares.judge for one in told if one.odds.lo is None]):
        says += f"; of {', '.join(untold[:3])}{' and more' if len(untold) > 3 else ''} it cannot be told"
    return CheckResult(worry, figure, says, details)


@dataclass(frozen=True, slots=True)
class _OwnFavour:
    """A judge and its own family: the win share it gives them, other judges' on the same battles, and its odds."""

    shares: FamilyPreference
    odds: SelfPreferenceOdds

    @property
    def size(self) -> float:
        return -np.inf if self.odds.value is None else self.odds.value

    @property
    def beyond_sharpness(self) -> bool:
        """Whether it gives its own family every win where other judges give them no more than half.

        Its odds are then infinite. Even the sharpest judge does not prefer a weaker model to a stronger one.
        """
        gives = self.shares.own == 1.0 and self.shares.others is not None and self.shares.others <= 0.5
        return gives and _clear(self.shares.excess, 0.0, 1)

    @property
    def clear(self) -> bool:
        """Whether the bias is both large and beyond chance."""
        if self.odds.lo is None:
            return self.odds.value is None and self.beyond_sharpness
        return self.odds.favours_own is True and self.size >= OWN_ODDS

    def plain(self) -> dict[str, Any]:
        return {
            "judge": self.shares.judge,
            "models": list(self.shares.models[:_SHOWN]),
            "odds": self.odds.value,
            "odds_se": self.odds.se,
            "slope": self.odds.slope,
            "reason": self.odds.reason,
            "own": self.shares.own,
            "others": self.shares.others,
            "excess": self.shares.excess.value,
            "excess_se": self.shares.excess.se,
            "battles": self.shares.excess.n,
        }


def _own_sentence(most: _OwnFavour, worry: bool | None, held: Sequence[str]) -> str:
    one, odds = most.shares, most.odds
    says = f"{one.judge} gives {', '.join(one.models[:3])}{' and more' if len(one.models) > 3 else ''}"
    if one.own is not None and one.others is not None:
        says += f" {one.own:.0%} of their battles, others {one.others:.0%}"
    if odds.value is None or odds.se is None:
        rest = "however sharp it is, it favours its own" if worry else f"its favour cannot be told: {odds.reason}"
        return f"{says}; {rest}"
    beyond = f"its sharpness and taste for {', '.join(held)}" if held else "its sharpness"
    says += f"; beyond {beyond} that is {odds.value:+.2f} logits (se {odds.se:.2f})"
    if not worry:
        return says + ": no judge clearly favours its own by much"
    return says + (": it favours its own" if held else ": it favours its own, or what looks like it (no lengths known)")


def _clear(mean: ClusteredMean, middle: float, looks: int) -> bool:
    return mean.beyond(middle) > critical_value(looks, mean.clusters, _LEVEL)


def _lean(one: PositionEffect) -> float:
    return 0.0 if one.first.value is None else abs(one.first.value - 0.5)


def _order_sentence(most: PositionEffect, known: Sequence[PositionEffect], worry: bool, details: dict[str, Any]) -> str:
    share = most.first.value or 0.0
    place = "first" if share >= 0.5 else "second"
    of = "verdicts between equals (fitted)" if most.fitted else "its decisive verdicts"
    says = f"{most.judge} gives {max(share, 1.0 - share):.0%} of {of} to the {place} place"
    if most.fitted and most.counted is not None:
        says += f", {most.counted if place == 'first' else 1.0 - most.counted:.0%} of those that were given"
    if most.flips.value is not None:
        says += f" and turns {most.flips.value:.0%} of its battles with the order"
        if most.again.value is not None:
            says += f" ({most.again.value:.0%} between tries of one order)"
    if worry:
        others = sum(_lean(one) >= FIRST_SHARE for one in known if one is not most)
        says += f"; {others} more lean{'s' if others == 1 else ''} as far" if others else ""
    else:
        says += ": no judge clearly leans by much"
    without = details.get("leader_without_flips")
    return says + (f"; without flipped judgments {without} leads" if without != details.get("leader") else "")


def _of_order(one: PositionEffect) -> dict[str, Any]:
    return {
        "judge": one.judge,
        "first": one.first.value,
        "first_se": one.first.se,
        "fitted": one.fitted,
        "counted": one.counted,
        "flips": one.flips.value,
        "changed_again": one.again.value,
        "excess": one.excess.value,
        "excess_se": one.excess.se,
        "both_first": one.to_first,
        "both_second": one.to_second,
    }


def _ranking_without_order(case: Case) -> dict[str, Any]:
    """The leader with the effect of the place controlled, and with flipped judgments left out."""
    details: dict[str, Any] = {}
    try:
        details["place_held_equal"] = _held(adjust_for_position(case.battles))
    except VenireError as error:
        details["place_held_equal"] = str(error)
    if case.judgments.flips:
        details["leader"] = _leader(case.judgments)
        details["leader_without_flips"] = _leader(case.judgments.select(~case.judgments.flipped))
    return details


def _leader(judgments: Judgments) -> str | None:
    data = rated_together(judgments.comparisons())
    if len(data.models) < 2 or not len(data):
        return None
    return first_order_effects(data).ratings.order[0]


def _length_column(case: Case) -> str | None:
    """The covariate that holds lengths: matched by its whole name, else the first with a matching end of its name."""
    names = list(case.judgments.features)
    whole = [name for name in names if name in _LENGTHS]
    return next(iter([*whole, *(name for name in names if name.lower().endswith(_LENGTHS))]), None)


def _moved(found: AdjustedRatings) -> str:
    before, after = found.leaders
    lead = f"{before} still leads" if before == after else f"{after} leads in place of {before}"
    return f"{lead} and {len(found.moved)} of {len(found.plain.models)} models change places"


def _held(found: AdjustedRatings) -> dict[str, Any]:
    return {
        "logits": found.coefficient,
        "se": found.se if np.isfinite(found.se) else None,
        "leader": found.leaders[0],
        "leader_held_equal": found.leaders[1],
        "kendall": found.kendall if np.isfinite(found.kendall) else None,
        "change_places": list(found.moved[:_SHOWN]),
    }
