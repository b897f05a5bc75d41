"""A placement for eyes: what it is expected to take, how it runs, and where the model stands in the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from venire.arena.wording import money, plain
from venire.embedded import Embedded
from venire.orchestrator.recording.ending import EXIT_CODES, Ending
from venire.orchestrator.recording.events import Observer
from venire.placement.board import PreparedPlacement
from venire.placement.report import PlacementReport, place_result
from venire.placement.run import PlacementForecast, forecast_placement, placement_session
from venire.prices import price_warnings
from venire.render.outcome import run_shown
from venire.session import Session

if TYPE_CHECKING:
    from venire.live.guard import Guard


def run_placement(
    screen: Console,
    prepared: PreparedPlacement,
    *,
    agree: Callable[[Session], None],
    retry_failed: bool = False,
    embedded: Embedded | None = None,
    environ: Mapping[str, str] | None = None,
    observers: Sequence[Observer] = (),
    guard: Guard | None = None,
) -> tuple[PlacementReport | None, int]:
    """Place a model and show how it goes; returns what it came to (None: no verdict could be read) and the exit code.

    `agree` asks whether to spend, and raises where nobody wants to. Raises InputError and StoreError.
    """
    settings = prepared.settings
    with placement_session(prepared) as session:
        if retry_failed and (cleared := session.retry_failed()):
            screen.print(f"{cleared} failed steps will be tried again")
        _show_prepared(screen, session, prepared)
        if (expected := forecast_placement(session, prepared)) is not None:
            _show_expected(screen, expected)
        agree(session)
        code = _run(screen, session, embedded, environ, observers, guard)
        if code == EXIT_CODES[Ending.INTERRUPTED]:
            return None, code
        found = place_result(session.store, session.planned.id, prepared.campaign.name, prepared.board, settings)
    if found is None:
        screen.print(f"no verdict of {plain(settings.model)} could be read: there is nothing to say of it")
    # to spend the budget is what was asked for, wherever in a round it ends
    return found, 0 if found is not None and code == EXIT_CODES[Ending.BUDGET] else code


def _show_prepared(screen: Console, session: Session, prepared: PreparedPlacement) -> None:
    """What the model is placed on, and what is there already."""
    design = session.planned.design
    screen.print(
        f"{plain(prepared.settings.model)} is placed on {plain(prepared.board.campaign)}: {len(design.models) - 1} "
        f"models, {len(design.instructions)} instructions in common"
    )
    if prepared.already:
        screen.print(
            f"{prepared.already} judgments of it are on the board already: they count, and are not asked again"
        )
    for sentence in (*price_warnings(session.campaign.judges), *map(str, session.oversized())):
        screen.print(plain(sentence), style="yellow")
    if paid := session.spending.nano:
        screen.print(f"{money(paid)} is spent on it already, {session.progress.settled} verdicts are there")


def _show_expected(screen: Console, expected: PlacementForecast) -> None:
    """What a battle costs, how many the limits allow, and how wide the interval will about be."""
    each, battles = expected.each, expected.battles
    if not battles:
        screen.print(f"a battle takes about {money(math.ceil(each))}: the budget covers no further one")
        return
    more, half = "more " if expected.more else "", expected.half
    wide = "" if half is None else f"; its interval will be about {half:.0f} Elo points to either side, by the judge"
    screen.print(
        f"a battle takes {expected.calls:.0f} calls and about {money(math.ceil(each))}: some {battles:,} {more}battles "
        f"are expected, {expected.calls * battles:,.0f} calls and {money(math.ceil(each * battles))}{wide}"
    )


def _run(
    screen: Console,
    session: Session,
    embedded: Embedded | None,
    environ: Mapping[str, str] | None,
    observers: Sequence[Observer],
    guard: Guard | None,
) -> int:
    summary = run_shown(session, screen, embedded, observers, environ, guard)
    if summary.stopped is not None:
        screen.print(f"complete: {plain(summary.stopped)}")
    if summary.ending is Ending.INTERRUPTED:
        screen.print("interrupted: nothing of what was paid is lost; the same command goes on")
    elif summary.ending is not Ending.COMPLETE:
        reasons = (summary.unaffordable, summary.closed_lanes, summary.unreadable)
        why = next(iter([*(one for found in reasons for one in found.values()), *summary.gates]), "")
        screen.print(f"ended: {summary.ending.value}{f': {plain(why)}' if why else ''}")
    return EXIT_CODES[summary.ending]
