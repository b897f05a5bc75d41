"""Checks of what verdicts follow beside the answers: the order shown, length, and the judge's own family.

Each worries only about what is both clear (beyond what chance does, with as many looks as were taken) and large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from venire.arena.errors import VenireError
from venire.ratings.clustered import Mean
from venire.ratings.held_equal import HeldEqual, held_equal
from venire.ratings.influence import clear_beyond, effects, rated_together
from venire.ratings.judgments import Judgments
from venire.ratings.order_effect import OrderEffect, order_effects, place_held_equal
from venire.ratings.own_family import OwnFamily, own_family, own_models
from venire.reports.finding import Case, Finding

__all__ = ["check_length", "check_order", "check_own_family"]

FIRST_SHARE = 0.1
"""How far the share of first places may be from half: at 0.6 one decisive verdict in five follows the place."""

LENGTH_EFFECT = 0.2
"""Logits that a usual difference of lengths may weigh: 5 wins of 100 between models that are equal otherwise."""

OWN_EXCESS = 0.05
"""What a judge may give its own beyond what others give them: 5 wins of 100."""

_LENGTHS = ("length", "chars", "characters", "words", "tokens")

_LEVEL = 0.99
"""Errors of few instructions are rough in the tails: at 0.95 nearly one honest campaign in ten was called."""

_SHOWN = 5


def check_order(case: Case) -> Finding:
    """Whether a judge's verdicts follow the place in which answers were shown, and what that does to the ranking."""
    name = "order-effects"
    try:
        found = order_effects(case.battles)
    except VenireError as error:
        return Finding(name, None, None, FIRST_SHARE, str(error))
    known = [one for one in found if one.first.value is not None and one.first.se is not None]
    if not known:
        why = next((one.reason for one in found if one.reason), "no verdict is decisive")
        return Finding(name, None, None, FIRST_SHARE, f"no judge's first places can be told: {why}")
    clear = [one for one in known if _clear(one.first, 0.5, len(known))]
    most = max(clear or known, key=lambda one: (_lean(one), one.judge))
    worry = bool(clear) and _lean(most) >= FIRST_SHARE
    details = {
        "judges": [_of_order(one) for one in sorted(known, key=_lean, reverse=True)[:_SHOWN]],
        **_ranking_without_order(case),
    }
    return Finding(name, worry, round(_lean(most), 6), FIRST_SHARE, _order_says(most, known, worry, details), details)


def check_length(case: Case) -> Finding:
    """Whether longer answers win beyond what models are worth, and what holding length equal does to the ranking."""
    name, column = "length", _length_column(case)
    if column is None:
        lost = "no lengths are known: a store knows them, of a table --covariate length names a column of A's less B's"
        return Finding(name, None, None, LENGTH_EFFECT, lost)
    try:
        found = held_equal(case.judgments.comparisons(), case.judgments.features[column], column)
    except VenireError as error:
        return Finding(name, None, None, LENGTH_EFFECT, str(error))
    size = abs(found.coefficient)
    worry = size >= LENGTH_EFFECT and found.clear > clear_beyond(1, found.clusters, _LEVEL)
    longer = "longer" if found.coefficient > 0.0 else "shorter"
    says = (
        f"{longer} answers win by {size:.2f} logits a usual difference of {column} ({found.clear:.1f} standard errors)"
    )
    says += f"; with it held equal {_moved(found)}"
    details = {**_held(found), "column": column, "rows": found.rows, "own_information": found.own_information}
    return Finding(name, worry, round(size, 6), LENGTH_EFFECT, says, details)


def check_own_family(case: Case) -> Finding:
    """Whether a judge gives its own family's models more than other judges give them on the same battles."""
    name = "own-family"
    own = own_models(case.judgments, case.families, case.judge_families, case.battles.peers)
    try:
        found = own_family(case.judgments, own)
    except VenireError as error:
        return Finding(name, None, None, OWN_EXCESS, str(error))
    known = [one for one in found if one.excess.value is not None]
    clear = [one for one in known if _excess(one) > 0.0 and _clear(one.excess, 0.0, len(known))]
    most = max(clear or known, key=lambda one: (_excess(one), one.judge))
    worry = bool(clear) and _excess(most) >= OWN_EXCESS
    says = (
        f"{most.judge} gives {', '.join(most.models[:3])} {most.own or 0.0:.0%} of their battles, "
        f"other judges {most.others or 0.0:.0%} of the same"
    )
    says += ": it favours its own" if worry else "; no judge clearly favours its own by much"
    details = {"judges": [_of_family(one) for one in sorted(known, key=_excess, reverse=True)[:_SHOWN]]}
    return Finding(name, worry, round(_excess(most), 6), OWN_EXCESS, says, details)


def _clear(mean: Mean, middle: float, looks: int) -> bool:
    return mean.beyond(middle) > clear_beyond(looks, mean.clusters, _LEVEL)


def _lean(one: OrderEffect) -> float:
    return 0.0 if one.first.value is None else abs(one.first.value - 0.5)


def _order_says(most: OrderEffect, known: Sequence[OrderEffect], worry: bool, details: dict[str, Any]) -> str:
    share = most.first.value or 0.0
    place = "first" if share >= 0.5 else "second"
    says = f"{most.judge} gives {max(share, 1.0 - share):.0%} of its decisive verdicts to the {place} place"
    if most.flips.value is not None:
        says += f" and turns {most.flips.value:.0%} of them with the order"
        if most.again.value is not None:
            says += f" ({most.again.value:.0%} between tries of one order)"
    if worry:
        others = sum(_lean(one) >= FIRST_SHARE for one in known if one is not most)
        says += f"; {others} more lean{'s' if others == 1 else ''} as far" if others else ""
    else:
        says += ": no judge clearly leans by much"
    without = details.get("leader_without_flips")
    return says + (f"; without flipped judgments {without} leads" if without != details.get("leader") else "")


def _of_order(one: OrderEffect) -> dict[str, Any]:
    return {
        "judge": one.judge,
        "first": one.first.value,
        "first_se": one.first.se,
        "fitted": one.fitted,
        "flips": one.flips.value,
        "changed_again": one.again.value,
        "excess": one.excess.value,
        "excess_se": one.excess.se,
        "both_first": one.to_first,
        "both_second": one.to_second,
    }


def _ranking_without_order(case: Case) -> dict[str, Any]:
    """Who leads with the place held equal, and with flipped judgments left out."""
    details: dict[str, Any] = {}
    try:
        details["place_held_equal"] = _held(place_held_equal(case.battles))
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
    ratings = effects(data).ratings
    return ratings.models[int(np.argmax(np.round(ratings.logits, 10)))]


def _length_column(case: Case) -> str | None:
    """The covariate that holds lengths: by its whole name, else the first whose name ends like one."""
    names = list(case.judgments.features)
    whole = [name for name in names if name in _LENGTHS]
    return next(iter([*whole, *(name for name in names if name.lower().endswith(_LENGTHS))]), None)


def _moved(found: HeldEqual) -> str:
    before, after = found.leaders
    lead = f"{before} still leads" if before == after else f"{after} leads in place of {before}"
    return f"{lead} and {len(found.moved)} of {len(found.plain.models)} models change places"


def _held(found: HeldEqual) -> dict[str, Any]:
    return {
        "logits": found.coefficient,
        "se": found.se if np.isfinite(found.se) else None,
        "leader": found.leaders[0],
        "leader_held_equal": found.leaders[1],
        "kendall": found.kendall if np.isfinite(found.kendall) else None,
        "change_places": list(found.moved[:_SHOWN]),
    }


def _excess(one: OwnFamily) -> float:
    return one.excess.value or 0.0


def _of_family(one: OwnFamily) -> dict[str, Any]:
    return {
        "judge": one.judge,
        "models": list(one.models[:_SHOWN]),
        "own": one.own,
        "others": one.others,
        "excess": one.excess.value,
        "se": one.excess.se,
        "battles": one.excess.n,
    }
