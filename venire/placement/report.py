"""What became of a placement: its figures from the store, as JSON and for eyes."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console

from venire.arena.campaigns import PhaseSettings
from venire.orchestrator.policies import POLICIES
from venire.placement.backtest import Anchors, place_anchors
from venire.placement.rounds import Board, PlaceSettings, PlacingSteerer
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.validation import finite
from venire.ratings.design.placement import PlacedElo, Placement, place_model
from venire.ratings.judges.planning_habits import planning_habits
from venire.ratings.soft_elo.human_scale import HumanScale, human_scale
from venire.render.screen import tabulate
from venire.storage.read import frames
from venire.storage.store.store import Store
from venire.wording import money, plain

__all__ = ["Placed", "expected_half", "place_result", "placed_json", "show_placed"]

_TRIED = 5


@dataclass(frozen=True)
class Placed:
    """A placement with what it rests on; `people` is None where no model of the board has an Elo by people.

    `known` is what people say of the model itself, where that is known: it is no part of any figure.
    """

    settings: PlaceSettings
    campaign: str
    board: Board
    placement: Placement
    people: HumanScale | None
    anchors: Anchors | None
    known: float | None
    nano: int
    battles: int
    verdicts: int
    warnings: tuple[str, ...]


def place_result(store: Store, campaign: int, name: str, board: Board, settings: PlaceSettings) -> Placed | None:
    """Rate the model by all of its verdicts, and calibrate by placing every anchor anew; None: no verdict yet."""
    steerer = PlacingSteerer(board, settings.model)
    found = steerer.judgments(frames.battles(store, campaign))
    code = found.models.index(settings.model)
    mine = found.select((found.model_a == code) | (found.model_b == code))
    if not len(mine):
        return None
    placement = place_model(found.comparisons(), settings.model, level=settings.level, seed=settings.seed)
    battles = len(np.unique(np.column_stack([mine.model_a, mine.model_b, mine.instruction]), axis=0))
    anchors, people = _by_people(board, settings, placement, battles)
    said = [*placement.warnings, *(() if people is None else people.warnings)]
    said += _few_to_choose(anchors, battles)
    return Placed(
        settings,
        name,
        board,
        placement,
        people,
        anchors,
        board.elo.get(settings.model),
        frames.accounts(store, campaign).nano,
        battles,
        int(mine.readable.sum()),
        tuple(said),
    )


def place_phase(settings: PlaceSettings) -> PhaseSettings:
    """How battles of one model are chosen."""
    return PhaseSettings(
        policy=settings.policy, name="place", round=settings.round, purpose="place", place=settings.model
    )


def _by_people(
    board: Board, settings: PlaceSettings, placement: Placement, battles: int
) -> tuple[Anchors | None, HumanScale | None]:
    others = _others(board.judgments, settings.model)
    names = [one for one in others.models if one in board.elo and one != settings.model]
    if not names:
        return None, None
    choose, phase = POLICIES[settings.policy].choose, place_phase(settings)
    habits = _habits(board, placement)
    anchors = place_anchors(others, names, choose, phase, battles, seed=settings.seed, habits=habits)
    if not anchors.models:
        return anchors, None
    people = human_scale(
        anchors.elo,
        anchors.se,
        [board.elo[one] for one in anchors.models],
        placement.held.elo,
        placement.held.se,
        alpha=settings.alpha,
        family=board.families.get(settings.model),
        families=[board.families.get(one, "") for one in anchors.models],
    )
    return anchors, people


def _habits(board: Board, placement: Placement) -> tuple[Any, ...]:
    told = planning_habits(board.battles, placement.ratings.models, placement.ratings.logits)
    return tuple(told[name] for name in sorted(told))


def _others(judgments: Judgments, model: str) -> Judgments:
    """The board's judgments without the model that is placed."""
    if model not in judgments.models:
        return judgments
    return judgments.select(judgments.between([one for one in judgments.models if one != model]))


def _few_to_choose(anchors: Anchors | None, battles: int) -> list[str]:
    if anchors is None or not len(anchors.models):
        return []
    said = [f"{name} is no anchor: {why}" for name, why in list(anchors.skipped.items())[:3]]
    middle = int(np.median(anchors.available))
    if middle < 2 * battles:
        said.append(
            f"the anchors have {middle} battles in the store (median) and the new model {battles}: the policy could "
            "choose less freely for them"
        )
    return said


def expected_half(board: Board, settings: PlaceSettings, battles: int) -> float | None:
    """Half of the interval to expect after so many battles, in Elo points: what models of the board came to.

    A few of them are placed anew; where they have fewer battles, their error shrinks with the root. None: no telling.
    """
    others = _others(board.judgments, settings.model)
    step = max(1, len(others.models) // _TRIED)
    found = place_anchors(
        others, others.models[step // 2 :: step], POLICIES[settings.policy].choose, place_phase(settings), battles,
        seed=settings.seed,
    )  # fmt: skip
    if not len(found.se):
        return None
    half = 2.0 * found.se * np.sqrt(found.battles / battles)
    known = half[np.isfinite(half)]
    return float(np.median(known)) if len(known) else None


def placed_json(found: Placed) -> dict[str, Any]:
    """All of a placement as plain JSON; None stands for what is without end or cannot be told."""
    one = found.placement
    return {
        "model": one.model,
        "campaign": found.campaign,
        "board": found.board.campaign,
        "verdicts": "+".join(sorted(origin.value for origin in found.board.origins)),
        "level": one.level,
        "held": _figures(one.held),
        "held_with_the_board_s_error": _figures(one.measured),
        "joint": None if one.joint is None else _figures(one.joint),
        "moved": _moved(one),
        "rank": None
        if one.rank is None
        else {name: value for name, value in asdict(one.rank).items() if name != "model"},
        "neighbours": [{"model": n.model, "elo": n.elo, "above": finite(n.above)} for n in one.neighbours],
        "people": _people(found),
        "battles": found.battles,
        "judgments": one.judgments,
        "readable_verdicts": found.verdicts,
        "instructions": one.instructions,
        "opponents": one.opponents,
        "cost_dollars": found.nano / 1e9,
        "warnings": list(found.warnings),
    }


def _figures(one: PlacedElo) -> dict[str, float | None]:
    return {name: finite(value) for name, value in asdict(one).items()}


def _moved(one: Placement) -> dict[str, float]:
    """By how much the joint fit moves the board's models, in Elo points, those that are moved most first."""
    moved = np.zeros(0) if one.moved is None else one.moved
    known = np.flatnonzero(np.isfinite(moved))
    order = known[np.argsort(-np.abs(moved[known]), kind="stable")].tolist()
    return {one.ratings.models[code]: float(moved[code]) for code in order[:5]}


def _people(found: Placed) -> dict[str, Any] | None:
    people = found.people
    if people is None or found.anchors is None:
        return None
    return {
        "elo": people.elo,
        "low": finite(people.low),
        "high": finite(people.high),
        "level": 1.0 - people.interval.alpha,
        "expected_coverage": people.interval.expected,
        "calibrated_on": len(found.anchors.models),
        "battles_an_anchor": float(np.median(found.anchors.battles)),
        "rule": people.rule,
        "points_per_point_of_the_judge": people.slope,
        "mean_error_left_out": dict(people.errors),
        "known": found.known,
    }


def show_placed(screen: Console, found: Placed) -> None:
    """Where a model stands: by the judge, among the others, and by people; what it cost; what to be wary of."""
    one, origins = found.placement, ", ".join(sorted(origin.value for origin in found.board.origins))
    screen.print(
        f"{plain(one.model)} on the board of {plain(found.board.campaign)}: {found.battles:,} battles, "
        f"{found.verdicts:,} readable verdicts on {one.instructions:,} instructions against {one.opponents} models, "
        f"cost {money(found.nano)}; verdicts: {origins}\n"
    )
    rows = [("the board held", one.held), ("with the board's own error", one.measured)]
    rows += [("all fitted together", one.joint)] if one.joint is not None else []
    head = ("by the judge", "Elo", "se", f"{_share(one.level)} interval", "at every look")
    tabulate(screen, head, [(name, *_cells(figures)) for name, figures in rows])
    if (moved := _moved(one)) and one.joint is not None:
        name, points = next(iter(moved.items()))
        screen.print(f"fitted together, nobody else moves by more than {abs(points):.0f} Elo points ({plain(name)})")
    _show_ranks(screen, one)
    _show_people(screen, found)
    for warning in found.warnings:
        screen.print(f"note: {plain(warning)}")


def _cells(figures: PlacedElo) -> tuple[str, ...]:
    return (
        f"{figures.elo:.0f}",
        f"{figures.se:.0f}" if math.isfinite(figures.se) else "unknown",
        _span(figures.low, figures.high),
        _span(figures.low_any, figures.high_any),
    )


def _span(low: float, high: float) -> str:
    told = [f"{one:.0f}" if math.isfinite(one) else "no bound" for one in (low, high)]
    return "no bound" if not math.isfinite(low) and not math.isfinite(high) else f"{told[0]} to {told[1]}"


def _show_ranks(screen: Console, one: Placement) -> None:
    if one.rank is not None:
        told = f"{_share(one.level)} interval {one.rank.lo} to {one.rank.hi}"
        screen.print(f"\nrank {one.rank.rank} of {len(one.ratings.order)}, {told}")
    rows = [
        (plain(n.model), f"{n.elo:.0f}", f"{n.above:.2f}" if math.isfinite(n.above) else "unknown")
        for n in one.neighbours
    ]
    if rows:
        tabulate(screen, ("neighbour", "Elo", "chance to be above it"), rows)


def _show_people(screen: Console, found: Placed) -> None:
    people = found.people
    if people is None or found.anchors is None:
        screen.print(
            "\non people's scale: no model of the board has an Elo by people (`venire import table --kind elo`)"
        )
        return
    known = "" if found.known is None else f" (people say {found.known:.0f})"
    error = people.errors.get(people.rule, math.nan)
    screen.print(
        f"\non people's scale: {people.elo:.0f}, {_share(1.0 - people.interval.alpha)} conformal interval "
        f"{_span(people.low, people.high)}{known}; calibrated on {len(found.anchors.models)} models placed anew with "
        f"{np.median(found.anchors.battles):.0f} battles each, which it missed by {error:.0f} on average"
    )


def _share(level: float) -> str:
    return f"{100.0 * level:g} %"
