"""The expected widths of a plan, told: a table of money and widths for eyes, and plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console

from venire.forecasts.intervals import PlanWidths
from venire.ratings.design.interval_forecast import DEFAULT_SPREAD
from venire.render.screen import tabulate
from venire.reports.wording import counted
from venire.wording import money, plain

__all__ = ["show_widths", "widths_json"]

_TIMES = (0.5, 1.0, 2.0, 4.0)
_WANTED = (50.0, 25.0, 15.0)
"""Half widths in Elo points for which the price is told."""


def show_widths(screen: Console, found: PlanWidths | str | None) -> None:
    """A table of money and widths, what other widths would cost, and what this rests on."""
    if found is None:
        return
    if isinstance(found, str):
        screen.print(plain(found))
        return
    half = found.widths.half()
    screen.print(
        f"expected half width of the {found.widths.level:.0%} intervals, in Elo points on the judges' own scale: "
        + (
            f"{np.median(half):.0f} in the middle of {len(half)} models, {half.min():.0f} to {half.max():.0f}"
            if np.isfinite(half).all()
            else "without end, on a single instruction"
        )
    )
    head = ("plan", "battles", *(("money",) if found.nano(1.0) else ()), "half width")
    tabulate(screen, head, [_line(found, name, times) for name, times in _sizes(found)])
    screen.print(_priced(found))
    if found.widths.instructions < 20:
        screen.print(
            f"only {counted(found.widths.instructions, 'instruction')}: the intervals themselves are uncertain with "
            "fewer than 20, and so are these widths"
        )
    if found.ahead.until is not None:
        ahead = round(float(found.ahead.weight.sum()))
        many = f"{ahead:,} of {found.battles:,}" if ahead <= found.battles else f"{ahead:,}"
        screen.print(
            f"{many} battles are still to be chosen, here by what is believed now ({found.ahead.until} says how many)"
        )
    if found.ahead.open:
        screen.print("how many battles follow is not known (no number, no budget): this is of those that are planned")
    for sentence in _rests_on(found):
        screen.print(sentence, style="dim")
    screen.print()


def _sizes(found: PlanWidths) -> list[tuple[str, float]]:
    """Names and sizes of plans, none smaller than what is done or larger than can be."""
    named = [("this plan" if times == 1.0 else f"{times:g} x", times) for times in _TIMES]
    if 0.0 < found.covered < 1.0:
        named.append(("as the budget covers", found.covered))
    if found.largest < _TIMES[-1]:
        named.append(("every battle there is", found.largest))
    done = found.done / max(1, found.trials)
    return sorted([one for one in named if done <= one[1] <= found.largest], key=lambda one: one[1])


def _line(found: PlanWidths, name: str, times: float) -> tuple[str, ...]:
    price = (money(found.nano(times)),) if found.nano(1.0) else ()
    half = _known(_middle(found, times))
    return (name, f"{found.battles * times:,.0f}", *price, "no end" if half is None else f"{half:.0f}")


def _middle(found: PlanWidths, times: float) -> float:
    return float(np.median(found.widths.half(times)))


def _priced(found: PlanWidths) -> str:
    """What each of some widths takes."""
    told, not_here = [], []
    for half in _WANTED:
        times = found.needed(half)
        if times is None:
            not_here.append(f"{half:.0f}")
        else:
            price = money(found.nano(times)) if found.nano(1.0) else f"{found.battles * times:,.0f} battles"
            told.append(f"{half:.0f} takes {price}")
    if not_here:
        few = counted(found.widths.instructions, "instruction")
        told.append(f"{', '.join(not_here)} cannot be had on {few}: it takes more of them")
    more = "more instructions" if found.widths.grows else "more battles on the same instructions"
    return f"half widths in the middle: {'; '.join(told)} (a larger plan: {more})"


def _rests_on(found: PlanWidths) -> list[str]:
    seen, effect = found.belief, found.effect
    if seen.source == "verdicts":
        ratings = f"ratings by {seen.judgments:,} judgments so far"
    elif seen.source == "reference":
        whose = f"fitted to {seen.judgments:,} judgments" if seen.judgments else "as usual judges see them"
        ratings = f"reference ratings x {seen.slope:.1f}, {whose}"
    else:
        ratings = f"nothing is known of the models: ratings with a spread of {DEFAULT_SPREAD:g} logit"
    told = [
        f"believed: {ratings}; judgments scatter {effect.scatter:.2f} of p (1 - p), correlations: judges "
        f"{effect.judges:.2f}, completions {effect.completions:.2f}, repeats {effect.repeats:.2f}"
    ]
    if not effect.judgments:
        return [*told, "the scatter and correlations are usual ones: widths may be off by 40 %; --pilot 40 measures"]
    assert effect.ties is not None
    assert effect.flips is not None
    measured = f"measured on {effect.judgments:,} judgments: {effect.ties:.0%} ties, {effect.flips:.0%} flips"
    return [*told, measured]


def _known(points: float) -> float | None:
    """None for a width without end, which JSON has no word for."""
    return points if np.isfinite(points) else None


def widths_json(found: PlanWidths | str | None) -> dict[str, Any] | None:
    """The same as plain values: half widths in Elo points, money in nano-dollars."""
    if found is None:
        return None
    if isinstance(found, str):
        return {"reason": found}
    half, floor = found.widths.half(), found.widths.floor()
    return {
        "level": found.widths.level,
        "median": _known(_middle(found, 1.0)),
        "models": {
            name: {"half_width": _known(wide), "by_the_model_alone": _known(least)}
            for name, wide, least in zip(found.widths.models, half.tolist(), floor.tolist(), strict=True)
        },
        "curve": [
            {
                "plan": name,
                "times": times,
                "battles": round(found.battles * times),
                "nano": found.nano(times),
                "half_width": _known(_middle(found, times)),
            }
            for name, times in _sizes(found)
        ],
        "needed": [
            {"half_width": half, "nano": None if times is None else found.nano(times), "times": times}
            for half, times in ((half, found.needed(half)) for half in _WANTED)
        ],
        "ahead": {
            "battles": round(float(found.ahead.weight.sum())),
            "until": found.ahead.until,
            "open": found.ahead.open,
        },
        "grows_by": "instructions" if found.widths.grows else "battles",
        "believed": {"source": found.belief.source, "slope": found.belief.slope, "judgments": found.belief.judgments},
        "design_effect": asdict(found.effect),
    }
