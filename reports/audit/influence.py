"""Checks of how far a winner depends on little: single instructions, judges or models, and the smallest removal.

A check worries only about an effect that is both clear (beyond chance, corrected for multiple comparisons) and large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.validation import finite_or_none
from venire.ratings.diagnostics.influence import (
    Influence,
    LeaveOneOutChange,
    Removal,
    RemovalUnit,
    Unit,
    critical_value,
    influence,
    outlier_critical_value,
    smallest_removal,
)
from venire.reports.audit.finding import Case, CheckResult, check

INSTRUCTION_POINTS = 10.0
"""Elo points by which one of many instructions should not move a rating: 1.4 wins of 100 between even models."""

UNIT_POINTS = 50.0
"""Elo points by which one judge, or one other model, should not move a rating: 7 wins of 100 between even models."""

REMOVAL_SHARE = 0.005
"""In many campaigns 1 of 200 judgments is misread or lost; that should not decide the winner."""

PART_OF_ERROR = 0.7
"""Standard errors by which one instruction should not move a rating: it then makes up half of the variance."""

_OUTLYING = 0.999
"""Effects of instructions have longer tails than the normal distribution of Grubbs' test: at 0.99 one small honest
campaign in twelve was flagged."""

DISTANCE = 2.9
"""Standard deviations on a scale of short tails: where instructions differ by a skewed distribution, as difficulty
often does, the largest of 30 to 200 effects are up to 2.8 away, and one that counts ten times 3.2 and more."""

_STRETCHED = 0.02
"""A common stretch of ratings less than this is not worth a word."""

_SHOWN = 5


@check(
    "single-instructions",
    "at most",
    INSTRUCTION_POINTS,
    "Does a single instruction weigh too much?",
    unless="usual",
    calls=("instructions",),
)
def check_instructions(case: Case) -> CheckResult:
    """Whether one instruction moves a rating by much and is an outlier among the instructions."""
    return _single(case, "instruction", INSTRUCTION_POINTS)


@check(
    "single-judges",
    "at most",
    UNIT_POINTS,
    "Do the ratings depend on a single judge?",
    unless="chance",
    calls=("disagreements",),
)
def check_judges(case: Case) -> CheckResult:
    """Whether leaving out one judge changes the leader, or moves a rating by much."""
    return _single(case, "judge", UNIT_POINTS)


@check(
    "single-models",
    "at most",
    UNIT_POINTS,
    "Do the ratings depend on which other models take part?",
    unless="chance",
)
def check_models(case: Case) -> CheckResult:
    """Whether leaving out another model changes the leader, or moves a rating by much."""
    return _single(case, "model", UNIT_POINTS)


@check(
    "smallest-removal",
    "at least",
    REMOVAL_SHARE,
    "Would the leader change if a few judgments were removed?",
    unless="no winner yet",
    calls=("instructions",),
)
def check_removal(case: Case) -> CheckResult:
    """Whether removing a few judgments would replace a clear winner; `details` has instructions and judges too."""
    data, ridge = _by_instruction(case), case.options.ridge or 0.0
    units: list[RemovalUnit] = ["judgment", *_named_units(case)]
    found = [smallest_removal(data, unit, ridge=ridge) for unit in units]
    first = found[0]
    clusters = len(data.clusters) if data.cluster is not None else len(data)
    sure = first.se > 0.0 and first.lead / first.se > critical_value(1, clusters)
    share = first.share
    worry = bool(sure and share is not None and share < REMOVAL_SHARE)
    return CheckResult(worry, share, _of_removal(found, sure, worry), _removal_details(found))


def _by_instruction(case: Case) -> Comparisons:
    """The comparisons whose clusters are instructions, or what a table names, also where judges alone are clustered."""
    return case.judgments.comparisons(cluster="instruction" if case.judgments.clustering == "judge" else "auto")


def _named_units(case: Case) -> list[RemovalUnit]:
    units: list[RemovalUnit] = []
    if len(case.judgments.instructions) > 1:
        units.append("instruction")
    if len(case.judgments.judges) > 1:
        units.append("judge")
    return units


def _of_removal(found: Sequence[Removal], sure: bool, worry: bool) -> str:
    first = found[0]
    lead = f"{first.leader} leads {first.rival} by {first.lead:.0f} points"
    if first.removed is None:
        return f"{lead}, and leaving out no judgments in favour of it makes another lead"
    rest = [f"at most {one.removed:,} of {_some(one.units, one.unit)}" for one in found if one.removed is not None]
    same = {one.rival for one in found if one.removed is not None} == {first.rival}
    without = f"without {' or '.join(rest)} {first.rival}{'' if same else ' or another'} leads"
    if worry:
        return f"{lead}, beyond its error, but {without}: few wrong verdicts would decide who wins"
    if not sure:
        return f"{lead}, within its error, so nobody is the winner yet; {without}"
    return f"{lead}; {without}"


def _some(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def _removal_details(found: Sequence[Removal]) -> dict[str, Any]:
    return {
        f"{one.unit}s": {
            "units": one.units,
            "removed_at_most": one.removed,
            "share": one.share,
            "first_order": one.predicted,
            "leader": one.leader,
            "rival": one.rival,
            "lead_points": one.lead,
            "lead_se": one.se,
            **({"names": list(one.names)} if one.names else {}),
        }
        for one in found
    }


def _single(case: Case, unit: Unit, points: float) -> CheckResult:
    found = influence(_by_instruction(case), unit, ridge=case.options.ridge or 0.0)
    if not found.without:
        raise InputError(f"without any one {unit} the models have no common ratings")
    beyond = outlier_critical_value(found.units, len(found.ratings.models), _OUTLYING)
    models = len(found.ratings.models)
    # With fewer instructions than models the errors cannot be estimated, and no effect is called clear.
    quantile = critical_value(found.units * models, found.clusters if found.clusters > models else 1)
    moved = [one for one in found.without if _moves(one, unit, points, beyond, quantile)]
    turned = [one for one in found.without if _turns(one, unit, quantile)]
    most = (turned or moved or list(found.without))[0]
    details = {
        "units": found.units,
        "leader": found.leader,
        "unusual_beyond": finite_or_none(beyond if unit == "instruction" else quantile),
        "strongest": [_sentence(one) for one in found.without[:_SHOWN]],
        "turning": [_sentence(one) for one in found.without if one.leader != _leader_but(found, one, unit)][:_SHOWN],
        "separated_without": list(found.separated[:_SHOWN]),
        "not_rated": list(found.left_out),
    }
    worry = bool(moved or turned)
    bound = _usual_points(most, points, beyond) if unit == "instruction" else None
    return CheckResult(worry, round(most.change, 6), _of_single(found, most, unit, worry), details, bound)


def _usual_points(one: LeaveOneOutChange, points: float, beyond: float) -> float:
    """Points by which an instruction may move its model's rating: `points`, or what is usual among the instructions.

    With few instructions each of them moves ratings by more than `points`, and a threshold that every campaign is
    beyond says nothing.
    """
    return round(max(points, PART_OF_ERROR * one.error, one.change * beyond / max(one.outlying, 1e-9)), 6)


def _moves(one: LeaveOneOutChange, unit: Unit, points: float, beyond: float, quantile: float) -> bool:
    if unit == "instruction":
        clear = one.outlying > beyond and one.distance > DISTANCE and one.change > PART_OF_ERROR * one.error
    else:
        clear = one.change > quantile * one.se
    return bool(clear and one.change >= points)


def _turns(one: LeaveOneOutChange, unit: Unit, quantile: float) -> bool:
    # A lead that one instruction reverses is less than its own standard error: there is no winner then.
    if one.change_of_lead is None or unit == "instruction":
        return False
    change, error = one.change_of_lead
    return bool(change > quantile * error > 0.0)


def _leader_but(found: Influence, one: LeaveOneOutChange, unit: Unit) -> str:
    """The leader by all the data, among the models that remain."""
    return found.top[1] if unit == "model" and one.name == found.leader and len(found.top) > 1 else found.leader


def _of_single(found: Influence, most: LeaveOneOutChange, unit: Unit, worry: bool) -> str:
    leader = _leader_but(found, most, unit)
    stays = f"{leader} leads" if unit == "model" and most.name == found.leader else f"{leader} still leads"
    what = stays if most.leader == leader else f"{most.leader} leads in place of {leader}"
    stretched = f" beside a stretch of all by {most.stretch:.2f}" if abs(most.stretch - 1.0) > _STRETCHED else ""
    text = f"without {unit} {most.name} {most.model} moves by {most.change:.0f} points{stretched} and {what}"
    if worry:
        return f"{text}: more than chance and than one {unit} should do"
    return f"{text}, the most that one of {_some(found.units, unit)} does; none stands out"


def _sentence(one: LeaveOneOutChange) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": one.name, "model": one.model, "points": one.change, "leader": one.leader}
    if one.stretch != 1.0:
        facts["stretch"] = one.stretch
    if one.se == one.se:
        facts["se"] = one.se
    if one.outlying == one.outlying:
        facts["times_usual"], facts["distance"] = one.outlying, one.distance
    if one.change_of_lead is not None:
        facts["change_of_lead"], facts["change_of_lead_se"] = one.change_of_lead
    return {**facts, "same_top": one.top}
