"""Borda, Copeland and minimax by hand, also where models met unequally."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ratings.elections import TENNESSEE, election
from venire.ratings.data.votes import Votes
from venire.ratings.voting.rules import borda, copeland, minimax

UNEVEN = Votes(("a", "b", "c"), np.array([[0.0, 6.0, 0.0], [4.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
"""a and b met ten times, b and c twice, a and c never."""


def test_borda_is_the_share_of_points() -> None:
    found = borda(election(TENNESSEE))
    # Points of each city: 3 for the first place, 2 for the second, ..., of 300 there are to have.
    points = {"Memphis": 126, "Nashville": 194, "Chattanooga": 173, "Knoxville": 107}
    assert found.score == pytest.approx([points[name] / 300 for name in found.models])
    assert found.unit == "share of votes"


def test_shares_are_of_what_a_model_met() -> None:
    assert borda(UNEVEN).score == pytest.approx([6 / 10, 5 / 12, 1 / 2])
    assert borda(UNEVEN).order == ("a", "c", "b")


def test_copeland_counts_opponents_met_and_half_of_even_splits() -> None:
    assert copeland(UNEVEN).score == pytest.approx([1.0, 0.25, 0.5])
    assert copeland(election(TENNESSEE)).score == pytest.approx([2 / 3, 1 / 3, 0.0, 1.0])


def test_minimax_is_the_smallest_margin_in_votes() -> None:
    found = minimax(election(TENNESSEE))
    margins = {"Memphis": 42 - 58, "Nashville": 58 - 42, "Chattanooga": 32 - 68, "Knoxville": 17 - 83}
    assert found.score == pytest.approx([margins[name] for name in found.models])
    assert minimax(UNEVEN).score == pytest.approx([2.0, -2.0, 0.0])
