"""A running placement: its expected cost, how its verdicts steer the rounds, and when it stops."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from venire.arena.battles import Battles
from venire.arena.campaigns import PhaseSettings, StopSettings
from venire.arena.errors import InputError
from venire.arena.hints import setting
from venire.arena.planning import Estimates, InterimAnalysis, InterimRating
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.arena.wording import money
from venire.orchestrator.policies import POLICIES
from venire.placement.backtest import joined, place_anchors
from venire.placement.board import PlacementBoard, PreparedPlacement, with_model
from venire.placement.settings import PlaceSettings
from venire.ratings.data.judgments import Judgments, merge_orders, select_battles
from venire.ratings.data.result import Ratings
from venire.ratings.data.statistics import student
from venire.ratings.design.placement import fit_board, place_among
from venire.ratings.inference.any_time import MIN_CLUSTERS, any_time_interval
from venire.ratings.judges.habits import planning_habits
from venire.session import Session

_MODELS_TRIED = 5
"""Number of the board's models that are placed again to estimate the width of the interval."""


@dataclass(frozen=True, slots=True)
class PlacementForecast:
    """The cost of a battle of the placed model, and the expected number within the limits; money in nano-dollars.

    `more` is true if some battles are judged already. `half` is the expected final half-width of the interval in Elo
    points, None where it cannot be estimated.
    """

    calls: float
    each: float
    battles: int
    more: bool
    half: float | None


@contextmanager
def placement_session(prepared: PreparedPlacement) -> Iterator[Session]:
    """A session of the campaign that places a model; ratings on the fixed board steer its rounds.

    Raises InputError and StoreError as `Session` does.
    """
    campaign = prepared.campaign
    steering = PlacementFeedback(prepared.board, prepared.settings.model, campaign.plan.stop)
    with Session(campaign, amend=True, steering=steering, estimates=steering.before()) as session:
        yield session


def forecast_placement(session: Session, prepared: PreparedPlacement) -> PlacementForecast | None:
    """The cost of the rest of a placement; None where nothing is left to ask.

    Raises InputError for a budget that does not cover one battle, and where no limit ends the placement.
    """
    settings, forecast = prepared.settings, session.forecast()
    paid, left, settled = forecast.spending.nano, forecast.progress.missing, forecast.progress.settled
    if not left:
        return None
    planned = session.planned
    battles = max(1, sum(one.design.size for one in planned.rounds))
    trials = planned.trials / battles  # per battle, those on the board included
    calls, each = (number * trials / left for number in (forecast.whole.calls, forecast.whole.expected))
    if not calls:
        return None
    affordable = None if settings.money is None or not each else int((settings.money - paid) // each)
    if affordable is not None and affordable < 1 and not settled:
        raise InputError(
            f"{setting('budget')} {money(settings.money or 0)} does not cover one battle: it takes {calls:.0f} calls, "
            f"about {money(math.ceil(each))}"
        )
    there_are = (len(planned.design.models) - 1) * len(planned.design.instructions)
    limits = (affordable, settings.battles, there_are)  # the first limit reached ends it
    asked = max(0, min(one for one in limits if one is not None))
    judged = max(round(settled / trials), round(prepared.already / len(forecast.judges)))
    half = expected_half_width(prepared.board, settings, max(1, asked + judged))
    return PlacementForecast(calls, each, asked, judged > 0, half)


def expected_half_width(board: PlacementBoard, settings: PlaceSettings, battles: int) -> float | None:
    """Expected half-width of the interval after `battles` battles, in Elo points, from models of the board.

    A few models are placed again; if they have fewer battles, their error is scaled by the square root. None: unknown.
    """
    others = others_of(board.judgments, settings.model)
    step = max(1, len(others.models) // _MODELS_TRIED)
    found = place_anchors(
        others, others.models[step // 2 :: step], POLICIES[settings.policy].choose, place_phase(settings), battles,
        seed=settings.seed,
    )  # fmt: skip
    if not len(found.se):
        return None
    half = 2.0 * found.se * np.sqrt(found.battles / battles)
    # Models that could not be placed would have no end to their intervals: without them others would look typical.
    middle = float(np.median(np.append(np.nan_to_num(half, nan=np.inf), np.full(len(found.skipped), np.inf))))
    return middle if np.isfinite(middle) else None


def place_phase(settings: PlaceSettings) -> PhaseSettings:
    """The phase that chooses the battles of the placed model."""
    return PhaseSettings(
        policy=settings.policy, name="place", round=settings.round_size, purpose="place", place=settings.model
    )


def others_of(judgments: Judgments, model: str) -> Judgments:
    """A board's judgments without the placed model."""
    if model not in judgments.models:
        return judgments
    return judgments.select(judgments.between([one for one in judgments.models if one != model]))


@dataclass(frozen=True)
class PlacementFeedback:
    """Steers the rounds of a placement: the board's ratings are fixed, and only the new model is rated.

    An `arena.planning.Steering`: models with fixed ratings have an error of 0.
    """

    board: PlacementBoard
    model: str
    stop: StopSettings = field(default_factory=StopSettings)

    @cached_property
    def _rated(self) -> Ratings:
        return fit_board(with_model(self.board.judgments, self.model).comparisons(), self.model)

    def judgments(self, battles: Battles) -> Judgments:
        """The board's judgments together with these battles, the new model among the names."""
        return with_model(merge_orders(joined(self.board.battles, battles)), self.model)

    def estimate(self, battles: Battles) -> Estimates:
        """The board's ratings with errors of 0, the model's rating by its verdicts (NaN: none yet), judges' habits."""
        found = self.judgments(battles)
        rated = dict(zip(self._rated.models, self._rated.logits.tolist(), strict=True))
        logits = np.array([rated.get(name, math.nan) for name in found.models])
        se = np.where(np.isfinite(logits), 0.0, math.nan)
        code = found.models.index(self.model)
        logits[code], se[code] = self._place(found)
        habits = planning_habits(self.board.battles, found.models, logits)
        held = frozenset(name for name in found.models if math.isfinite(rated.get(name, math.nan)))
        return Estimates(found.models, logits, se, habits, held)

    def before(self) -> Estimates:
        """The estimates before the first round, which are those of the board."""
        return self.estimate(
            select_battles(self.board.battles, np.zeros(len(self.board.battles.label), dtype=np.bool_))
        )

    def analyse(self, battles: Battles, nano_usd: int) -> InterimAnalysis:
        """The model's current rating with both intervals, and whether its interval is narrow enough."""
        found = self.judgments(battles)
        code = found.models.index(self.model)
        mine = found.select((found.model_a == code) | (found.model_b == code))
        rated = [
            name for name, at in zip(self._rated.models, self._rated.logits.tolist(), strict=True) if math.isfinite(at)
        ]
        own = mine.select(mine.between([*rated, self.model])).instruction  # other battles do not place it
        clusters = int(np.count_nonzero(np.bincount(own))) if len(own) else 0
        asked = len(np.unique(np.column_stack([mine.model_a, mine.model_b, mine.instruction]), axis=0))
        logit, se = self._place(found)
        row, half = _interim_rating(self.model, logit, se, clusters, asked, self.stop.level)
        return InterimAnalysis(
            battles=asked,
            verdicts=int(mine.readable.sum()),
            instructions=clusters,
            nano=nano_usd,
            models=(row,),
            half_width=half,
            level=self.stop.level,
            stop=_enough(self.stop, self.model, asked, half),
        )

    def _place(self, found: Judgments) -> tuple[float, float]:
        code = found.models.index(self.model)
        if not ((found.model_a == code) | (found.model_b == code)).any():
            return math.nan, math.nan
        data = found.comparisons()
        place = dict(zip(self._rated.models, self._rated.logits.tolist(), strict=True))
        held = replace(
            self._rated, models=data.models, logits=np.array([place.get(name, math.nan) for name in data.models])
        )
        return place_among(data, self.model, held)


def _interim_rating(
    model: str, logit: float, se: float, clusters: int, battles: int, level: float
) -> tuple[InterimRating, float | None]:
    """A model's rating at an interim analysis, and its half-width for stopping: None below 20 instructions."""
    if not math.isfinite(logit) or not math.isfinite(se):
        elo = ELO_MEAN + POINTS_PER_LOGIT * logit if math.isfinite(logit) else None
        return InterimRating(model, elo, None, None, None, None, None, battles), None
    half = float(student.ppf(0.5 + level / 2.0, clusters - 1)) * se
    low, high = any_time_interval(np.array([logit]), np.array([se]), level=level)
    elo, low_at, high_at, low_any, high_any = (
        ELO_MEAN + POINTS_PER_LOGIT * one for one in (logit, logit - half, logit + half, float(low[0]), float(high[0]))
    )
    row = InterimRating(model, elo, POINTS_PER_LOGIT * se, low_at, high_at, low_any, high_any, battles)
    return row, POINTS_PER_LOGIT * half if clusters >= MIN_CLUSTERS else None


def _enough(stop: StopSettings, model: str, battles: int, half: float | None) -> str | None:
    if stop.battles is not None and battles >= stop.battles:
        as_many = "as many as" if battles == stop.battles else f"more than the {stop.battles} that"
        return f"{battles} battles of {model} are judged, {as_many} were asked for"
    if stop.half_width is not None and half is not None and half <= stop.half_width:
        return (
            f"the interval of {model}, on the board as it stands, is within {half:.0f} Elo points to either side, "
            f"{stop.half_width:g} were wanted"
        )
    return None
