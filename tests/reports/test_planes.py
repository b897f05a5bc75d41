"""Points on a plane: everything within it, labels that meet nothing, steps, ticks, and intervals without an end."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.reports.planes import PlaneAxis, plane, stair

COST = PlaneAxis("cost", "cost", "cost_lo", "cost_hi", lambda value: f"${value:g}", room=0.1, logarithmic=True)
ELO = PlaneAxis("Elo", "elo", "lo", "hi", lambda value: f"{value:.0f}", room=20.0)


def row(model: str, cost: float, elo: float, **more: Any) -> dict[str, Any]:
    return {"model": model, "cost": cost, "elo": elo, "lo": None, "hi": None, "cost_lo": None, "cost_hi": None, **more}


ROWS = st.lists(
    st.builds(
        lambda name, cost, elo, half, wide, low, high: row(
            name,
            cost,
            elo,
            lo=elo - half if low else None,
            hi=elo + half if high else None,
            cost_lo=cost / wide,
            cost_hi=cost * wide,
        ),
        st.text(max_size=40),
        st.floats(1e-3, 1e12),
        st.floats(-1e4, 1e4),
        st.floats(0.0, 500.0),
        st.floats(1.0, 3.0),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)


@given(ROWS)
def test_all_is_within_the_plane_and_labels_meet_neither_each_other_nor_points(rows: list[dict[str, Any]]) -> None:
    made = plane(rows, "model", COST, ELO)
    boxes = []
    for one in made["points"]:
        assert made["left"] <= one["x"] <= made["right"]
        assert made["top"] <= one["y"] <= made["bottom"]
        for bar, low, high in ((one["wide"], made["left"], made["right"]), (one["tall"], made["top"], made["bottom"])):
            assert bar is None or low <= min(bar["lo"], bar["hi"]) <= max(bar["lo"], bar["hi"]) <= high
        if label := one["label"]:
            boxes.append((label["x"], label["y"] - 9.0, label["x"] + 6.0 * len(label["text"]), label["y"] + 2.0))
            assert boxes[-1][2] <= made["width"]
    for a, b in combinations(boxes, 2):
        assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]
    for a in boxes:
        assert not any(a[0] < one["x"] < a[2] and a[1] < one["y"] < a[3] for one in made["points"])
    for one, other in pairwise(made["across"]):
        assert one["at"] < other["at"]
        assert one["text"] != other["text"]


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (7.0, 15.0), (3.0, 90.0), (1e-3, 1e6)])
def test_a_logarithmic_scale_has_round_numbers_over_all_of_it(low: float, high: float) -> None:
    made = plane([row("a", low, 0.0), row("b", high, 1.0)], "model", COST, ELO)
    places = [one["at"] for one in made["across"]]
    assert len(places) > 2
    span = made["right"] - made["left"]
    assert max(b - a for a, b in pairwise([made["left"], *places, made["right"]])) < 0.5 * span


def test_an_interval_without_an_end_goes_to_the_edge_and_is_marked() -> None:
    rows = [row("a", 1.0, 0.0, lo=-50.0), row("b", 2.0, 9.0, hi=90.0), row("c", 3.0, 5.0, lo=float("-inf"), hi=8.0)]
    made = plane(rows, "model", COST, ELO)
    a, b, c = (one["tall"] for one in made["points"])
    assert (a["hi"], a["open_hi"], a["open_lo"]) == (made["top"], True, False)
    assert (b["lo"], b["open_lo"], b["open_hi"]) == (made["bottom"], True, False)
    assert (c["lo"], c["open_lo"]) == (made["bottom"], True)
    assert all(one["wide"] is None for one in made["points"])


def test_a_frontier_goes_in_steps_to_the_edge() -> None:
    assert stair([], 10.0) == ""
    assert stair([{"x": 1.0, "y": 9.0}, {"x": 5.0, "y": 2.5}, {"x": 6.0, "y": 1.0}], 10.0) == "M1 9 H5 V2.5 H6 V1 H10"
