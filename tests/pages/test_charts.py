"""Charts of pages: what they draw is in the chart, and labels do not meet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from venire.pages.bars import drawn_board
from venire.pages.charts import CHARTS, chart

START = datetime(2026, 11, 26, 23, 59, 58, tzinfo=UTC)


def calls(seconds: float) -> list[dict[str, Any]]:
    """Calls of two outcomes in four spans."""
    times = [START + timedelta(seconds=seconds * number / 4) for number in range(5)]
    stacked = (("answered", 0.0, 30.0), ("transient", 30.0, 40.0))
    return [
        {"start": start, "end": end, "outcome": outcome, "low": low, "high": high}
        for start, end in pairwise(times)
        for outcome, low, high in stacked
    ]


@pytest.mark.parametrize("seconds", [0.0, 0.4, 3.0, 59.0, 3_600.0, 86_400.0, 40 * 86_400.0, 900 * 86_400.0])
def test_spans_of_any_length_fill_the_chart_and_have_a_few_labels(seconds: float) -> None:
    made = chart("calls", calls(seconds))
    assert made.kinds == ["answered", "transient"]
    for area in made.areas:
        assert 0.0 <= area["x"] <= area["x"] + area["width"] <= 100.01
        assert 0.0 <= area["y"] <= area["y"] + area["height"] <= made.height
    places = [one["x"] for one in made.across_ticks]
    assert len(places) <= 8
    assert all(second - first > 10.0 for first, second in pairwise(places))
    assert [one["text"] for one in made.up_ticks][:2] == ["0", "10"]


def test_money_that_was_never_paid_is_a_line_at_the_bottom() -> None:
    rows = [{"time": START + timedelta(seconds=number), "dollars": 0.0} for number in range(3)]
    made = chart("money", rows)
    assert made.line.startswith("M0 ")
    assert made.line.count(made.line.split()[1]) == 3


def test_shares_are_on_the_whole_scale_and_other_values_on_their_own() -> None:
    ends = [
        [one["text"] for one in chart("intervals", [{"name": "x", "lo": lo, "value": 0.6, "hi": hi}]).bars["axis"]]  # type: ignore[index]
        for lo, hi in ((0.5, 0.7), (-2.0, 3.0))
    ]
    assert ends[0] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert ends[1][0] == "-2"
    assert ends[1][-1] == "3"


@pytest.mark.parametrize("wide", [3.0, 47.0, 640.0, 1550.0, 30_000.0])
def test_labels_of_a_board_have_room_where_a_bar_is_shortest(wide: float) -> None:
    made = drawn_board([{"model": "a", "elo": 1000.0 + wide, "lo": None, "hi": None}, {"model": "b", "elo": 1000.0}])
    places = [one["x"] for one in made["axis"] if one["text"]]
    assert 2 <= len(places) <= 7
    assert all(second - first > 12.0 for first, second in pairwise(places))


def test_a_kind_that_there_is_not_is_said() -> None:
    with pytest.raises(ValueError, match="pie"):
        chart("pie", [])
    assert set(CHARTS) == {"calls", "money", "intervals", "wins"}
