"""Checks of the judges as a panel: whether they change while a campaign runs, and how they agree.

A check worries only about an effect that is both clear (beyond chance, corrected for multiple comparisons) and large.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from venire.arena.errors import InputError, VenireError
from venire.ratings.agreement.judge_agreement import AgreementWithOthers, JudgeAgreement, RedundantPair, judge_agreement
from venire.ratings.agreement.people_agreement import JudgeAndPeople, people_agreement
from venire.ratings.data.people import free_name, with_people
from venire.ratings.diagnostics.influence import critical_value
from venire.ratings.judges.drift import Drift, RatingDrift, drift, rating_drift
from venire.ratings.judges.order_agreement import FEWEST_BATTLES, order_agreement
from venire.reports.audit.finding import Case, CheckResult, check
from venire.reports.wording import coin_words, coins_text

_NO_TIMES = "no times are known"
DRIFT_SHARE = 0.1
"""How far a habit may change while a campaign runs: one verdict in ten."""

DRIFT_POINTS = 50.0
"""Elo points by which late ratings may differ from early ratings: 7 wins of 100 between even models."""

ODD_SHARE = 0.5
"""A judge's agreement with the others should reach this part of the others' agreement among themselves."""

MIN_ALPHA = 0.667
"""Krippendorff's alpha from which on he allows tentative conclusions; from 0.8 on data are reliable."""

CHANCE_ALPHA = 0.1
"""Alpha below which, beyond its interval, the judges agree hardly more than by chance."""

MIN_SAME_WINNER = 0.55
"""Share of votes for a judge's winner, of those that both decided; a judge that draws lots has 0.5."""

MIN_VOTES = 30
"""Decided votes on a judge's battles below which its agreement with people says nothing."""

ALIKE_EXCESS = 0.1
"""How far two judges may agree beyond the agreement that all judges share."""

_LEVEL = 0.99
"""With few instructions the tails of errors are inexact: at 0.95 nearly one honest campaign in ten was flagged."""

_SHOWN = 5


@check("drift", "at most", DRIFT_SHARE, "Did judges change while they judged?", unless="chance", scope="judges")
def check_drift(case: Case) -> CheckResult:
    """Whether a judge's habits, or the ratings, differ between the early and the late part of the campaign.

    Without times it reports changes along the rows and does not worry: a file may be sorted by anything.
    """
    timed = "in time" if case.seconds is not None else "from the first rows to the last"
    found = drift(case.battles, case.seconds)
    try:
        ratings: RatingDrift | None = rating_drift(case.battles, case.seconds, level=_LEVEL)
        why = None
    except VenireError as error:
        ratings, why = None, str(error)
    if not found and ratings is None:
        raise InputError(
            _NO_TIMES if case.seconds is None else f"early and late verdicts do not compare {timed}: {why}"
        )
    clear = [one for one in found if one.change.beyond(0.0) > critical_value(len(found), one.change.clusters, _LEVEL)]
    most = max(clear, key=_drifted) if clear else max(found, key=lambda one: one.change.beyond(0.0), default=None)
    habits = bool(clear) and most is not None and _drifted(most) >= DRIFT_SHARE
    moved = ratings is not None and _moved_clearly(ratings)
    details = {
        "by": "time" if case.seconds is not None else "row",
        "habits": [_of_drift(one) for one in sorted(found, key=_drifted, reverse=True)[:_SHOWN]],
        "ratings": why if ratings is None else asdict(ratings),
    }
    figure = None if most is None else round(_drifted(most), 6)
    says = _drift_sentence(most, ratings, habits, moved, timed)
    if case.seconds is None:
        return CheckResult(None, figure, f"{_NO_TIMES}, and rows may be sorted; {says}", details)
    return CheckResult(habits or moved, figure, says, details)


@check(
    "better-than-coin",
    "at least",
    0.0,
    "Does every judge decide better than a coin?",
    scope="judges",
    calls=("flips",),
)
def check_coins(case: Case) -> CheckResult:
    """Whether every judge's two orders agree more than its preference for a place alone would make them."""
    found = [one for one in order_agreement(case.battles) if one.value is not None]
    if not found:
        raise InputError(f"no judge has {FEWEST_BATTLES} battles, by instruction, that it judged in both orders")
    least = min(found, key=lambda one: (not one.is_coin, one.value or 0.0, one.judge))
    coins = [one for one in found if one.is_coin]
    says = coins_text(coins) or f"{coin_words(least)}: more than a coin's would, as every judge's"
    details = {"judges": [asdict(one) for one in sorted(found, key=lambda one: (one.value or 0.0, one.judge))[:_SHOWN]]}
    return CheckResult(bool(coins), round(least.value or 0.0, 6), says, details)


@check(
    "judge-agreement",
    "at least",
    ODD_SHARE,
    "Does a judge disagree with all others?",
    unless="chance",
    scope="judges",
    calls=("disagreements",),
)
def check_agreement(case: Case) -> CheckResult:
    """Whether judges agree beyond chance, and whether one judge disagrees with the rest."""
    found = _agreement(case)
    if not found.judges:
        raise InputError("every verdict is a tie: there are no sides to agree on")
    odd = [one for one in found.judges if (one.behind_lo or 0.0) > 0.0 and _part(one) < ODD_SHARE]
    least = min(odd or found.judges, key=lambda one: (_part(one), one.judge))
    value = found.alpha.value
    by_chance = found.alpha.hi is not None and found.alpha.hi < CHANCE_ALPHA
    alpha = "none" if value is None else f"{value:.2f}"
    says = f"{least.judge} agrees least with the others ({least.agreement:.2f}"
    says += "" if least.behind is None else f", the median judge {least.agreement + least.behind:.2f}"
    says += f"); Krippendorff's alpha is {alpha}"
    people = None if case.battles.people is None else free_name(case.judgments)
    if odd and least.judge == people:
        says += ": judges share what people do not see, or these vote by lot"
    elif odd:
        says += ": it judges by something else, or by nothing"
    elif by_chance:
        says += ": together they say hardly more than chance"
    elif value is not None and value < MIN_ALPHA:
        says += f": below {MIN_ALPHA}, single verdicts of one judge are no reliable measure"
    details = {
        "alpha": {"value": found.alpha.value, "lo": found.alpha.lo, "hi": found.alpha.hi},
        "judges": [asdict(one) for one in found.judges[:_SHOWN]],
        "left_out": list(found.left_out[:_SHOWN]),
    }
    if odd or value is None or value >= MIN_ALPHA:
        return CheckResult(bool(odd), round(_part(least), 6), says, details)
    return CheckResult(by_chance, round(value, 6), says, details, MIN_ALPHA)


@check(
    "alike-judges",
    "at most",
    ALIKE_EXCESS,
    "Are two judges so alike that they count as hardly more than one?",
    unless="chance",
    scope="judges",
    calls=("disagreements",),
)
def check_alike(case: Case) -> CheckResult:
    """Whether two judges agree beyond the agreement that all judges share: they then count as less than two."""
    found = _agreement(case)
    if not found.pairs:
        raise InputError("judges who are alike are told from four judges on, with battles in common")
    clear = [one for one in found.pairs if (one.excess_lo or 0.0) > 0.0]
    most: RedundantPair = (clear or list(found.pairs))[0]
    worry = bool(clear) and most.excess >= ALIKE_EXCESS
    says = f"{' and '.join(most.judges)} agree by {most.agreement:.2f}, where what all share gives {most.expected:.2f}"
    says += ": they count as less than two judges" if worry else "; no two are clearly more alike than that by much"
    details = {"pairs": [{**asdict(one), "judges": list(one.judges)} for one in found.pairs[:_SHOWN]]}
    return CheckResult(worry, round(most.excess, 6), says, details)


@check(
    "people-agreement",
    "at least",
    MIN_SAME_WINNER,
    "Do judges agree with people?",
    unless="chance",
    scope="judges",
    calls=("disagreements",),
)
def check_people(case: Case) -> CheckResult:
    """Whether every judge names people's winners more often than lots would.

    Ties are left out: people who tie often have a small kappa with everybody, and with one another.
    """
    people = case.battles.people
    if people is None or not len(people.label):
        raise InputError(
            "there are no votes of people: `venire import votes` brings them, --human NAME names those of several"
        )
    found = people_agreement(case.judgments, people)
    judges = sorted((one for one in found.judges if one.decided >= MIN_VOTES), key=_same_winner)
    if not judges:
        raise InputError(f"no judge shares {MIN_VOTES} decided votes with people")
    against = [one for one in judges if one.agreement_hi is not None and one.agreement_hi < MIN_SAME_WINNER]
    least = (against or judges)[0]
    says = f"{least.judge} names people's winner in {_same_winner(least)[0]:.0%} of {least.decided:,} decided votes"
    if least.kappa.value is not None:
        says += f" (kappa with ties {least.kappa.value:.2f}{_among(found.among.value)})"
    if against:
        says += ": hardly more often than lots would"
    details = {
        "judges": [
            {
                "judge": one.judge,
                "votes": one.votes,
                "decided": one.decided,
                "agreement": one.agreement,
                "lo": one.agreement_lo,
                "hi": one.agreement_hi,
                "kappa": one.kappa.value,
            }
            for one in judges[:_SHOWN]
        ],
        "alpha": found.alpha.value,
        "alpha_among_people": found.among.value,
    }
    return CheckResult(bool(against), round(_same_winner(least)[0], 6), says, details)


def _same_winner(one: JudgeAndPeople) -> tuple[float, str]:
    """The share of decided votes for the judge's winner, and the judge's name, to sort by."""
    return (1.0 if one.agreement is None else one.agreement), one.judge


def _among(alpha: float | None) -> str:
    """What people reach among themselves, where it is known."""
    return "" if alpha is None else f"; alpha of people among themselves {alpha:.2f}"


def _agreement(case: Case) -> JudgeAgreement:
    """The agreement of the judges, people among them as one; raises VenireError where it cannot be estimated."""
    judgments, people = case.judgments, case.battles.people
    if people is not None and judgments.instructions:
        judgments = with_people(judgments, people, free_name(judgments))
    return judge_agreement(judgments, seed=case.options.seed)


def _part(one: AgreementWithOthers) -> float:
    """A judge's agreement with the others over that of the median judge; 1 where there is no comparison."""
    if one.behind is None or one.agreement + one.behind <= 0.0:
        return 1.0
    return one.agreement / (one.agreement + one.behind)


def _drifted(one: Drift) -> float:
    return abs(one.change.value or 0.0)


def _moved_clearly(found: RatingDrift) -> bool:
    return found.changed and abs(found.points) >= DRIFT_POINTS


def _drift_sentence(most: Drift | None, ratings: RatingDrift | None, habits: bool, moved: bool, timed: str) -> str:
    said = []
    if most is not None:
        beside = " beside other judges" if most.matched else ""
        said.append(
            f"after {most.cut:.0%} of its verdicts {most.judge}'s share of {most.habit} is "
            f"{100.0 * (most.change.value or 0.0):+.0f} of 100{beside}"
        )
    if ratings is not None:
        said.append(f"{ratings.model} is {ratings.points:+.0f} points in the late half")
        if ratings.leaders[0] != ratings.leaders[1] and moved:
            said.append(f"{ratings.leaders[1]} leads in place of {ratings.leaders[0]}")
    end = f"more than chance does, {timed}" if habits or moved else f"no clear and large change {timed}"
    return f"{'; '.join(said)}: {end}"


def _of_drift(one: Drift) -> dict[str, Any]:
    return {
        "judge": one.judge,
        "habit": one.habit,
        "after": one.cut,
        "early": one.early,
        "late": one.late,
        "change": one.change.value,
        "se": one.change.se,
        "matched": one.matched,
    }
