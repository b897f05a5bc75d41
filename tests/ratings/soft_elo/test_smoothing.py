"""Soft targets are set beside what one constant can do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import comparisons
from venire.ratings.soft_elo.cross_validation import CONFIDENCES, baselines, smooth_labels


def test_the_sweep_is_from_55_to_95_in_steps_of_5() -> None:
    assert CONFIDENCES == (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def test_recorded_battles_give_the_errors_of_every_baseline(arena_sample: dict[str, Any]) -> None:
    found = baselines(arena_sample["data"], arena_sample["score"], arena_sample["human"], held_out=False)
    mae = {name: accuracy.mae for name, accuracy in found.accuracy.items()}
    assert mae == pytest.approx({"hard": 53.79, "scaled-hard": 19.39, "smoothed": 19.89, "soft": 17.03}, abs=0.01)
    assert (found.confidence, found.held_out) == (0.8, False)
    assert list(found.sweep) == list(CONFIDENCES)


def test_soft_ratings_also_lead_where_every_model_is_left_out(arena_sample: dict[str, Any]) -> None:
    found = baselines(arena_sample["data"], arena_sample["score"], arena_sample["human"])
    mae = {name: accuracy.mae for name, accuracy in found.accuracy.items()}
    assert mae == pytest.approx({"hard": 57.63, "scaled-hard": 24.01, "smoothed": 21.72, "soft": 19.54}, abs=0.01)
    assert (found.confidence, found.held_out) == (0.8, True)


def test_smoothed_verdicts_keep_ties_and_shares_in_proportion() -> None:
    assert smooth_labels([1.0, 0.5, 0.0, 0.75], 0.8) == pytest.approx([0.8, 0.5, 0.2, 0.65])
    assert np.array_equal(smooth_labels([1.0, 0.0], 1.0), [1.0, 0.0])


def test_bad_confidences_are_refused(arena_sample: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"confidence is 0\.4"):
        smooth_labels([1.0], 0.4)
    with pytest.raises(InputError, match="confidences is empty"):
        baselines(arena_sample["data"], arena_sample["score"], arena_sample["human"], confidences=())


def test_confidences_that_look_alike_are_each_tried_once() -> None:
    data = comparisons(["a", "b", "c"], ["b", "c", "a"], [1.0, 0.0, 1.0])
    found = baselines(data, [1.0, -1.0, 1.0], [1.0, 1.0, 1.0], confidences=(0.8, 0.8, 0.80000001), held_out=False)
    assert list(found.sweep) == [0.8, 0.80000001]
