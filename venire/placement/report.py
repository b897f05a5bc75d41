"""The result of a placement: the model's rating by the judge, its rank, and its rating on people's scale."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from venire.orchestrator.policies import POLICIES
from venire.placement.backtest import Anchors, place_anchors
from venire.placement.board import PlacementBoard, PlaceSettings
from venire.placement.run import PlacementFeedback, others_of, place_phase
from venire.ratings.data.validation import finite_or_none
from venire.ratings.design.placement import PlacedElo, Placement, place_model
from venire.ratings.judges.habits import planning_habits
from venire.ratings.soft_elo.human_scale import HumanScale, human_scale
from venire.storage.read import frames
from venire.storage.store.store import Store

__all__ = ["PlacementReport", "place_result"]


@dataclass(frozen=True)
class PlacementReport:
    """A placement and its basis; `people` is None where no model of the board has an Elo by people.

    `known` is people's rating of the model itself, where known: no figure uses it.
    """

    settings: PlaceSettings
    campaign: str
    board: PlacementBoard
    placement: Placement
    people: HumanScale | None
    anchors: Anchors | None
    known: float | None
    nano: int
    battles: int
    verdicts: int
    warnings: tuple[str, ...]

    @property
    def moved(self) -> dict[str, float]:
        """How far the joint fit moves each model of the board, in Elo points, in descending order."""
        moved = np.zeros(0) if self.placement.moved is None else self.placement.moved
        known = np.flatnonzero(np.isfinite(moved))
        order = known[np.argsort(-np.abs(moved[known]), kind="stable")].tolist()
        return {self.placement.ratings.models[code]: float(moved[code]) for code in order[:5]}

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON; None stands for an infinite or unknown value."""
        one = self.placement
        return {
            "model": one.model,
            "campaign": self.campaign,
            "board": self.board.campaign,
            "verdicts": "+".join(sorted(origin.value for origin in self.board.origins)),
            "level": one.level,
            "held": _figures(one.held),
            "held_with_the_board_s_error": _figures(one.measured),
            "joint": None if one.joint is None else _figures(one.joint),
            "moved": self.moved,
            "rank": None
            if one.rank is None
            else {name: value for name, value in asdict(one.rank).items() if name != "model"},
            "neighbours": [{"model": n.model, "elo": n.elo, "above": finite_or_none(n.above)} for n in one.neighbours],
            "people": _people(self),
            "battles": self.battles,
            "judgments": one.judgments,
            "readable_verdicts": self.verdicts,
            "instructions": one.instructions,
            "opponents": one.opponents,
            "cost_dollars": self.nano / 1e9,
            "warnings": list(self.warnings),
        }


def place_result(
    store: Store, campaign: int, name: str, board: PlacementBoard, settings: PlaceSettings
) -> PlacementReport | None:
    """Rate the model by all of its verdicts, and calibrate by placing every anchor again; None: no verdict yet."""
    steerer = PlacementFeedback(board, settings.model)
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
    return PlacementReport(
        settings,
        name,
        board,
        placement,
        people,
        anchors,
        board.elo.get(settings.model),
        frames.campaign_spending(store, campaign).nano,
        battles,
        int(mine.readable.sum()),
        tuple(said),
    )


def _by_people(
    board: PlacementBoard, settings: PlaceSettings, placement: Placement, battles: int
) -> tuple[Anchors | None, HumanScale | None]:
    others = others_of(board.judgments, settings.model)
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


def _habits(board: PlacementBoard, placement: Placement) -> tuple[Any, ...]:
    habits = planning_habits(board.battles, placement.ratings.models, placement.ratings.logits)
    return tuple(habits[name] for name in sorted(habits))


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


def _figures(one: PlacedElo) -> dict[str, float | None]:
    return {name: finite_or_none(value) for name, value in asdict(one).items()}


def _people(found: PlacementReport) -> dict[str, Any] | None:
    people = found.people
    if people is None or found.anchors is None:
        return None
    return {
        "elo": people.elo,
        "low": finite_or_none(people.low),
        "high": finite_or_none(people.high),
        "level": 1.0 - people.interval.alpha,
        "expected_coverage": people.interval.expected,
        "calibrated_on": len(found.anchors.models),
        "battles_an_anchor": float(np.median(found.anchors.battles)),
        "rule": people.rule,
        "points_per_point_of_the_judge": people.slope,
        "mean_error_left_out": dict(people.errors),
        "known": found.known,
    }
