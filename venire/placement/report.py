"""The result of a placement: the model's rating by the judge, its rank, and its rating on people's scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from venire.arena.wording import interval_text, money
from venire.orchestrator.policies import POLICIES
from venire.placement.backtest import Anchors, place_anchors
from venire.placement.board import PlacementBoard
from venire.placement.run import PlacementFeedback, others_of, place_phase
from venire.placement.settings import PlaceSettings
from venire.ratings.data.validation import finite_or_none
from venire.ratings.design.placement import PlacedElo, Placement, place_model
from venire.ratings.judges.habits import planning_habits
from venire.ratings.soft_elo.human_scale import HumanScale, human_scale
from venire.reports.board.stored import PLACING
from venire.reports.plots import Plotted, plot
from venire.reports.sections import Block, Gap, Paragraph, TextTable, columns_of, faint
from venire.reports.tables import RowTable
from venire.reports.wording import estimand_text
from venire.storage.read import frames
from venire.storage.read.activity import campaign_settings
from venire.storage.store.store import Store


@dataclass(frozen=True, repr=False)
class PlacementReport(RowTable):
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
    judges: int
    nano: int
    battles: int
    verdicts: int
    warnings: tuple[str, ...]

    @property
    def estimand(self) -> str:
        """What intervals by the judge are about: errors are by instruction."""
        return estimand_text("instructions", "judges", self.judges)

    @property
    def people_estimand(self) -> str:
        """What the interval on people's scale is about: it is calibrated over models."""
        return estimand_text("models like these anchors", "judges", self.judges)

    @property
    def moved(self) -> dict[str, float]:
        """How far the joint fit moves each model of the board, in Elo points, in descending order."""
        moved = np.zeros(0) if self.placement.moved is None else self.placement.moved
        known = np.flatnonzero(np.isfinite(moved))
        order = known[np.argsort(-np.abs(moved[known]), kind="stable")].tolist()
        return {self.placement.ratings.models[code]: float(moved[code]) for code in order[:5]}

    def rows(self) -> list[dict[str, Any]]:
        """The model's ratings, one flat dict for each basis: `elo`, `se` and the interval `lo` to `hi` at `level`.

        The bases are those of `to_json`: held, held with the board's error, joint, and people's scale. A figure that is
        not known, and an end that is infinite, is None.
        """
        one = self.placement
        bases = {"held": one.held, "held with the board's error": one.measured}
        bases |= {} if one.joint is None else {"joint": one.joint}
        found = [(name, rating.elo, rating.se, rating.low, rating.high, one.level) for name, rating in bases.items()]
        if (scale := self.people) is not None:
            found.append(("people's scale", scale.elo, math.nan, scale.low, scale.high, 1.0 - scale.interval.alpha))
        return [
            {"model": one.model, "basis": name, **dict(zip(_FIGURES, map(finite_or_none, figures), strict=True))}
            for name, *figures in found
        ]

    def _columns(self) -> dict[str, type]:
        return {"model": str, "basis": str, **dict.fromkeys(_FIGURES, float)}

    def sections(self) -> Iterator[Block]:
        """Where the model stands: by the judge, among the others, and by people; what it cost; what to be wary of."""
        one, origins = self.placement, ", ".join(sorted(origin.value for origin in self.board.origins))
        yield Paragraph(
            f"{one.model} on the board of {self.board.campaign}: {self.battles:,} battles, {self.verdicts:,} readable "
            f"verdicts on {one.instructions:,} instructions against {one.opponents} models, cost {money(self.nano)}; "
            f"verdicts: {origins}"
        )
        yield Gap()
        named = {"the board held": one.held, "with the board's own error": one.measured}
        named |= {"all fitted together": one.joint} if one.joint is not None else {}
        heads = ("by the judge", "Elo", "se", f"{_percent(one.level)} interval", "at every look")
        yield TextTable(columns_of(heads, [(name, *_cells(figures)) for name, figures in named.items()]))
        yield faint(f"{_percent(one.level)} intervals: {self.estimand}")
        if (moved := self.moved) and one.joint is not None:
            name, points = next(iter(moved.items()))
            yield Paragraph(f"fitted together, nobody else moves by more than {abs(points):.0f} Elo points ({name})")
        if one.rank is not None:
            interval = f"{_percent(one.level)} interval {one.rank.lo} to {one.rank.hi}"
            yield Gap()
            yield Paragraph(f"rank {one.rank.rank} of {len(one.ratings.order)}, {interval}")
        if one.neighbours:
            rows = [
                (n.model, f"{n.elo:.0f}", f"{n.above:.2f}" if math.isfinite(n.above) else "unknown")
                for n in one.neighbours
            ]
            yield TextTable(columns_of(("neighbour", "Elo", "chance to be above it"), rows))
        yield Gap()
        yield Paragraph(self._by_people())
        for warning in self.warnings:
            yield Paragraph(f"note: {warning}")

    def _by_people(self) -> str:
        people = self.people
        if people is None or self.anchors is None:
            return "on people's scale: no model of the board has an Elo by people (`venire import table --kind elo`)"
        known = "" if self.known is None else f" (people say {self.known:.0f})"
        error = people.errors.get(people.rule, math.nan)
        return (
            f"on people's scale: {people.elo:.0f}, {_percent(1.0 - people.interval.alpha)} conformal interval "
            f"{_span(people.low, people.high)}{known}; calibrated on {len(self.anchors.models)} models placed anew "
            f"with {np.median(self.anchors.battles):.0f} battles each, which it missed by {error:.0f} on average; "
            f"about {self.people_estimand}"
        )

    def plot(self, kind: str | None = None) -> Any:
        """A chart as altair shows it in a notebook: leaderboard (the default), intervals or calibration.

        The leaderboard is the board with the new model in its place, intervals are its ratings by basis, and
        calibration shows the models that people rated, placed again, with the line to people's scale. Raises InputError
        for another kind, naming those that it draws, and where altair is not installed.
        """
        plotted = Plotted(rows=self.rows(), placement=self.placement, anchors=self._anchor_rows())
        return plot("placement", kind, plotted)

    def _anchor_rows(self) -> list[dict[str, Any]]:
        """The anchors by the judge, placed again, and by people; empty without a scale."""
        if self.people is None or self.anchors is None:
            return []
        anchors = zip(self.anchors.models, self.anchors.elo.tolist(), strict=True)
        return [{"model": name, "judge": elo, "people": float(self.board.elo[name])} for name, elo in anchors]

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON; None stands for an infinite or unknown value."""
        one = self.placement
        return {
            "model": one.model,
            "campaign": self.campaign,
            "board": self.board.campaign,
            "verdicts": "+".join(sorted(origin.value for origin in self.board.origins)),
            "level": one.level,
            "estimand": self.estimand,
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


_FIGURES = ("elo", "se", "lo", "hi", "level")


def _cells(figures: PlacedElo) -> tuple[str, ...]:
    return (
        f"{figures.elo:.0f}",
        f"{figures.se:.0f}" if math.isfinite(figures.se) else "unknown",
        _span(figures.low, figures.high),
        _span(figures.low_any, figures.high_any),
    )


def _span(low: float, high: float) -> str:
    return interval_text(low, high) or "no bound"


def _percent(level: float) -> str:
    return f"{100.0 * level:g} %"


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
    said += [*_several(store, board, placement), *_few_to_choose(anchors, battles)]
    return PlacementReport(
        settings,
        name,
        board,
        placement,
        people,
        anchors,
        board.elo.get(settings.model),
        len(np.unique(mine.judge)),
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


def _several(store: Store, board: PlacementBoard, placement: Placement) -> list[str]:
    """What is said where the store has placed other models on this board: the best of several is best by luck too."""
    settings = [campaign_settings(store, row.id) for row in frames.campaigns(store) if row.name.startswith(PLACING)]
    placed = {placement.model, *(one["place"] for one in settings if one.get("board") == board.campaign)}
    span = placement.best_of(len(placed))
    if len(placed) < 2 or span is None:
        return []
    return [
        f"{len(placed)} models were placed on this board: if {placement.model} is kept as the best of them, the judge "
        f"rates it {_span(*span)} ({_percent(placement.level)} for all of them at once)"
    ]


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
        "estimand": found.people_estimand,
        "expected_coverage": people.interval.expected,
        "calibrated_on": len(found.anchors.models),
        "battles_an_anchor": float(np.median(found.anchors.battles)),
        "rule": people.rule,
        "points_per_point_of_the_judge": people.slope,
        "mean_error_left_out": dict(people.errors),
        "known": found.known,
    }
