"""A placement from the question whether to spend to its figures: what `venire place` does."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console

from venire.arena.errors import InputError
from venire.arena.planning import Look
from venire.cli.options import write_json
from venire.orchestrator.recording.ending import Ending
from venire.placement.report import Placed, expected_half, place_result, placed_json, show_placed
from venire.placement.rounds import PlaceSettings, PlacingSteerer, Prepared, prepare
from venire.render.interim import format_interim
from venire.render.outcome import EXIT_CODES
from venire.render.screen import console, progress
from venire.session import Session
from venire.wording import is_reported_round, money, plain

if TYPE_CHECKING:
    from venire.session import Embedded

__all__ = ["place_and_show"]

Agree = Callable[[Console, Session], None]


def place_and_show(
    settings: PlaceSettings, *, yes: bool, retry_failed: bool = False, as_json: bool = False,
    embedded: Embedded | None = None,
) -> int:  # fmt: skip
    """Place a model, show where it stands, and return the exit code of the run; raises InputError and StoreError."""
    from venire.cli.run import agree

    screen = console(stderr=True)
    prepared = prepare(settings)
    steering = PlacingSteerer(prepared.board, settings.model, prepared.campaign.plan.stop)
    with Session(prepared.campaign, amend=True, steering=steering, estimates=steering.before()) as session:
        if retry_failed and (cleared := session.retry_failed()):
            screen.print(f"{cleared} failed steps will be tried again")
        show_expected(screen, session, prepared, settings)
        agree(screen, session, yes=yes)
        code = _run(screen, session, embedded)
        if code == EXIT_CODES[Ending.INTERRUPTED]:
            return code
        found = place_result(session.store, session.planned.id, prepared.campaign.name, prepared.board, settings)
    _show(found, settings, as_json=as_json)
    # to spend the budget is what was asked for, wherever in a round it ends
    return 0 if found is not None and code == EXIT_CODES[Ending.BUDGET] else code


def show_expected(screen: Console, session: Session, prepared: Prepared, settings: PlaceSettings) -> None:
    """What is there, what a battle costs, how many the budget covers, and how wide the interval will about be.

    Raises InputError for a budget that does not cover one battle.
    """
    board, design = prepared.board, session.planned.design
    screen.print(
        f"{plain(settings.model)} is placed on {plain(board.campaign)}: {len(design.models) - 1} models, "
        f"{len(design.instructions)} instructions in common"
    )
    if prepared.already:
        screen.print(
            f"{prepared.already} judgments of it are on the board already: they count, and are not asked again"
        )
    paid, left = session.accounts.nano, session.progress.missing
    if paid:
        screen.print(f"{money(paid)} is spent on it already, {session.progress.settled} verdicts are there")
    rows = session.forecast()
    if not left:
        return
    battles = max(1, sum(one.design.size for one in session.planned.rounds))
    trials = session.planned.trials / battles  # of a battle, those on the board included
    calls, each = (sum(getattr(row, name) for row in rows) * trials / left for name in ("calls", "expected"))
    if not calls:
        return
    affordable = None if settings.money is None or not each else int((settings.money - paid) // each)
    if affordable is not None and affordable < 1 and not session.progress.settled:
        raise InputError(
            f"--budget {money(settings.money or 0)} does not cover one battle: it takes {calls:.0f} calls, about "
            f"{money(math.ceil(each))}"
        )
    _refuse_endless(settings, each)
    asked = _asked(settings, affordable, len(design.models) - 1, len(design.instructions))
    there = max(round(session.progress.settled / trials), round(prepared.already / len(rows)))
    half = expected_half(board, settings, max(1, asked + there))
    if not asked:
        screen.print(f"a battle takes about {money(math.ceil(each))}: the budget covers no further one")
        return
    more = "more " if there else ""
    wide = "" if half is None else f"; its interval will be about {half:.0f} Elo points to either side, by the judge"
    screen.print(
        f"a battle takes {calls:.0f} calls and about {money(math.ceil(each))}: some {asked:,} {more}battles are "
        f"expected, "
        f"{calls * asked:,.0f} calls and {money(math.ceil(each * asked))}{wide}"
    )


def _asked(settings: PlaceSettings, affordable: int | None, opponents: int, instructions: int) -> int:
    """How many battles are expected: as many as the first limit to be reached allows."""
    limits = [affordable, settings.battles, opponents * instructions]
    return max(0, min(one for one in limits if one is not None))


def _refuse_endless(settings: PlaceSettings, each: float) -> None:
    """Without a limit every battle of the model with everybody would be asked."""
    if settings.battles is None and settings.half_width is None and (settings.money is None or not each):
        why = "its judges cost nothing" if settings.money is not None else "no --budget is given"
        raise InputError(f"{why}: say when it is enough with --battles, --half-width or --budget")


def _run(screen: Console, session: Session, embedded: Embedded | None) -> int:
    from venire.render.outcome import fast_loop

    def warn(message: str) -> None:
        screen.print(plain(message))

    def seen(number: int, phase: str, look: Look) -> None:
        if is_reported_round(number) or look.stop is not None:
            screen.print(plain(format_interim(look, phase, number)))

    with progress(screen) as tell:
        summary = session.run(
            environ=os.environ, embedded=embedded, progress=tell, warn=warn, on_look=seen, loop_factory=fast_loop()
        )
    if summary.stopped is not None:
        screen.print(f"complete: {plain(summary.stopped)}")
    if summary.ending is Ending.INTERRUPTED:
        screen.print("interrupted: nothing of what was paid is lost; the same command goes on")
    elif summary.ending is not Ending.COMPLETE:
        why = next(iter([*summary.unaffordable.values(), *summary.closed_lanes.values()]), "")
        screen.print(f"ended: {summary.ending.value}{f': {plain(why)}' if why else ''}")
    return EXIT_CODES[summary.ending]


def _show(found: Placed | None, settings: PlaceSettings, *, as_json: bool) -> None:
    if found is None:
        console(stderr=True).print(
            f"no verdict of {plain(settings.model)} could be read: there is nothing to say of it"
        )
        if as_json:
            write_json({"model": settings.model, "held": None, "people": None})
    elif as_json:
        write_json(placed_json(found))
    else:
        show_placed(console(), found)
