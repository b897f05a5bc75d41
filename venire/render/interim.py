"""What was known of a campaign after each of its rounds: how its intervals shrank, and what the last look says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from venire.arena.campaigns import StopSettings
from venire.arena.planning import Look, ModelLook
from venire.render.screen import money, plain, tabulate
from venire.reports.wording import counted, few
from venire.storage.plans import plans
from venire.storage.plans.interim import read
from venire.storage.store.store import Store

__all__ = [
    "MIN_INSTRUCTIONS",
    "look_of",
    "looks_json",
    "rounds_json",
    "show_looks",
    "show_rounds",
    "stops_when",
    "told_last",
    "told_look",
]

_MOST = 10
"""Looks that are shown, first and last among them."""

_MOST_MODELS = 40

_STARVED_TOLD = 5

MIN_INSTRUCTIONS = 20
"""As `ratings.stopping`, which brings scipy: below it errors by instruction are too uncertain for a width."""


def show_looks(
    screen: Console, looks: Sequence[tuple[int, Look]], *, verdicts: str | None = None, first: int = 1
) -> None:
    """A line a look of how the widest interval shrank, and the models at the last one; nothing of no looks.

    `looks` are rounds with what was known after them, in this order; that of the number `first` is told as round 1.
    `verdicts` says where verdicts come from.
    """
    if not looks:
        return
    looks = [(number - first + 1, look) for number, look in looks]
    origin = "" if verdicts is None else f"   verdicts: {verdicts}"
    screen.print()
    if len(looks) > 1:
        _show_history(screen, looks, origin)
    number, last = looks[-1]
    _show_models(screen, last, f"Known after round {number}{origin}")
    for warning in last.warnings:
        screen.print(plain(warning), style="yellow")


def looks_json(looks: Sequence[tuple[int, Look]]) -> list[dict[str, Any]]:
    """The same as plain values, all looks, the models of each with both intervals in Elo points."""
    return [{"round": number} | asdict(look) for number, look in looks]


def look_of(told: Mapping[str, Any]) -> Look:
    """A look again, of what `looks_json` tells of it."""
    figures = {name: value for name, value in told.items() if name != "round"}
    return Look(**figures | {"models": tuple(ModelLook(**one) for one in told["models"])})


def rounds_json(store: Store, campaign: int) -> dict[str, Any]:
    """The rounds of a campaign in force, the looks taken after them, and its rules to stop, as plain values."""
    names = ("round", "phase", "policy", "trials", "equal_texts", "planned_at")
    return {
        "rounds": [dict(zip(names, one[:6], strict=True)) for one in plans.rounds(store, campaign)],
        "looks": looks_json(read(store, campaign)),
        "stops_when": stops_when(_rules(store.read("campaign_settings", campaign=campaign)[0][0])),
    }


def _rules(settings: str) -> StopSettings:
    """The rules to stop in a campaign's settings, which leave out what their file does not say."""
    told = json.loads(settings).get("plan", {}).get("stop", {})
    half_width, points = told.get("half_width"), told.get("indifference")
    return StopSettings(
        battles=told.get("battles"),
        half_width=None if half_width is None else float(half_width),
        top=told.get("top"),
        ranks=bool(told.get("ranks")),
        indifference=StopSettings().indifference if points is None else float(points),
    )


def show_rounds(screen: Console, facts: Mapping[str, Any], missing: int = 0) -> None:
    """Where a campaign stands that is planned in rounds: a document of `rounds_json`; nothing of one without looks.

    `missing` trials of it are still to be asked, of judges that could not be.
    """
    if not facts["looks"] and len(facts["rounds"]) < 2:
        return
    last = facts["rounds"][-1]
    screen.print(plain(f"  round {len(facts['rounds'])}, phase {last['phase']} ({last['policy']})"))
    known = [(one["round"], look_of(one)) for one in facts["looks"]]
    if known and known[-1][1].stop is not None:
        screen.print(plain(f"  {'stopped' if missing else 'complete'}: {known[-1][1].stop}"))
    elif facts["stops_when"]:
        screen.print(f"  stops when {' or '.join(facts['stops_when'])}")
    show_looks(screen, known, first=facts["rounds"][0]["round"])


def told_last(facts: Mapping[str, Any]) -> list[str]:
    """What was known after the last round that was looked at, and the rules to stop, a line each; none without a look.

    `facts` is a document of `rounds_json`.
    """
    if not facts["looks"]:
        return []
    told, first = facts["looks"][-1], facts["rounds"][0]["round"]
    phase = next(one["phase"] for one in facts["rounds"] if one["round"] == told["round"])
    lines = [f"after {told_look(look_of(told), phase, told['round'] - first + 1)}"]
    if facts.get("stops_when"):
        lines.append(f"stops when {' or '.join(facts['stops_when'])}")
    return lines


def told_look(look: Look, phase: str = "", number: int | None = None) -> str:
    """What is known after a round, in a line."""
    head = "" if number is None else f"round {number}{f' ({phase})' if phase else ''}: "
    width = ", no interval yet" if look.half_width is None else f", intervals within {look.half_width:.0f} points"
    if look.half_width is None and look.instructions < MIN_INSTRUCTIONS:
        width += f" (fewer than {MIN_INSTRUCTIONS} instructions)"
    left = "" if look.open is None else f", {counted(look.open, 'pair')} open"
    return (
        f"{head}{counted(look.battles, 'battle')} judged{width}{left}, {money(look.nano)} spent{_starved(look.models)}"
    )


def _starved(models: Sequence[ModelLook]) -> str:
    starved = [one.model for one in models if one.starved]
    return f"; too few battles: {few(starved, _STARVED_TOLD)}" if starved else ""


def stops_when(stop: StopSettings) -> list[str]:
    """The rules to stop that a plan has, each as a clause."""
    points = f"{stop.indifference:g} points"
    told = (
        [f"{stop.battles:,} {'battle is' if stop.battles == 1 else 'battles are'} judged"]
        if stop.battles is not None
        else []
    )
    told += [f"every interval is within {stop.half_width:g} points"] if stop.half_width is not None else []
    told += [f"the best {stop.top} are known up to {points}"] if stop.top is not None else []
    return told + ([f"the order is known up to {points}"] if stop.ranks else [])


def _show_history(screen: Console, looks: Sequence[tuple[int, Look]], origin: str) -> None:
    count = len(looks)
    shown = sorted({round(place * (count - 1) / (_MOST - 1)) for place in range(_MOST)})
    columns: dict[str, list[str]] = {"round": [], "battles": [], "instructions": [], "spent": []}
    columns |= {"half width": [], "pairs open": [], "starved": []}
    for number, look in (looks[place] for place in shown):
        starved = sum(one.starved for one in look.models)
        cells = (
            f"{number}",
            f"{look.battles:,}",
            f"{look.instructions:,}",
            money(look.nano),
            "none yet" if look.half_width is None else f"{look.half_width:.1f}",
            "" if look.open is None else f"{look.open:,}",
            f"{starved:,}" if starved else "",
        )
        for column, cell in zip(columns.values(), cells, strict=True):
            column.append(cell)
    kept = {head: cells for head, cells in columns.items() if any(cells)}
    some = f", {len(shown)} of {count}" if len(shown) < count else ""
    tabulate(screen, list(kept), list(zip(*kept.values(), strict=True)), title=f"Looks{some}{origin}")
    told = {
        "half width": "half width: of the widest interval at that look, in Elo points (none yet: fewer than 20 "
        "instructions, or a model that cannot be rated yet)",
        "pairs open": "pairs open: pairs of models whose order the rule to stop still waits for",
        "starved": "starved: models with too few battles to be rated well",
    }
    screen.print("; ".join(sentence for head, sentence in told.items() if head in kept), style="dim")


def _show_models(screen: Console, look: Look, title: str) -> None:
    rows = sorted(look.models, key=lambda one: (one.elo is None, -(one.elo or 0.0), one.model))
    level = f"{100 * look.level:g} %"
    columns = {
        "": [f"{place}" if one.elo is not None else "" for place, one in enumerate(rows[:_MOST_MODELS], start=1)],
        "model": [plain(one.model) for one in rows[:_MOST_MODELS]],
        "Elo": ["none" if one.elo is None else f"{one.elo:.0f}" for one in rows[:_MOST_MODELS]],
        f"{level} now": [_between(one.low, one.high) for one in rows[:_MOST_MODELS]],
        f"{level} at any look": [_between(one.low_any, one.high_any) for one in rows[:_MOST_MODELS]],
        "battles": [_battles(one) for one in rows[:_MOST_MODELS]],
    }
    kept = {head: cells for head, cells in columns.items() if any(cells)}
    if rows:
        tabulate(
            screen, list(kept), list(zip(*kept.values(), strict=True)), name=list(kept).index("model"), title=title
        )
    if len(rows) > _MOST_MODELS:
        screen.print(f"and {len(rows) - _MOST_MODELS} more models")
    if any(one.low is not None for one in rows):
        screen.print(
            f"now: right for {level} of models if this were the only look; at any look: right however often one looks, "
            "and whenever one stops",
            style="dim",
        )


def _battles(one: ModelLook) -> str:
    return f"{one.battles:,}, starved" if one.starved else f"{one.battles:,}"


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.0f} to {high:.0f}"
