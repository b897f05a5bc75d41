"""Expected calibration error, its interval, and what noise alone shows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.ratings.agreement.calibration import calibration


def drawn(rows: int, slope: float, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probabilities that overstate by 1 / slope in log odds, and what came true."""
    logits = rng.normal(0.0, 1.5, rows)
    true = rng.random(rows) < 1 / (1 + np.exp(-slope * logits))
    return 1 / (1 + np.exp(-logits)), true.astype(np.float64)


def test_two_bins_by_hand() -> None:
    found = calibration([0.2, 0.9, 0.4, 0.7], [0, 1, 1, 0], bins=2)
    assert found.stated == pytest.approx([0.3, 0.8])
    assert found.came_true == pytest.approx([0.5, 0.5])
    assert found.error.value == pytest.approx((0.2 + 0.3) / 2)
    assert found.rows.tolist() == [2, 2]


def test_bins_are_of_equal_size_and_equal_probabilities_keep_their_order() -> None:
    stated = np.tile([0.5, 0.4, 0.6], 68)
    true = (np.arange(204) < 102).astype(np.float64)
    found = calibration(stated, true)
    assert found.rows.tolist() == [21, 21, 21, 21, 20, 20, 20, 20, 20, 20]
    order = sorted(range(204), key=stated.__getitem__)  # Python's sort is stable
    assert found.came_true[:3].tolist() == pytest.approx([true[order[n * 21 : n * 21 + 21]].mean() for n in range(3)])


def test_the_interval_is_reflected_about_the_estimate() -> None:
    stated, true = drawn(400, 0.5, np.random.default_rng(1))
    member = np.zeros((400, 1))
    member[:, 0] = stated - true
    weights = np.random.default_rng(0).multinomial(400, np.full(400, 1 / 400), size=500)
    low, high = np.quantile(np.abs(weights @ member).sum(axis=1) / 400, [0.05, 0.95])
    error = calibration(stated, true, bins=1, level=0.9, replicates=500).error
    assert error.value is not None
    assert (error.lo, error.hi) == pytest.approx((max(0.0, 2 * error.value - high), 2 * error.value - low))


def test_fewer_rows_than_bins_and_none() -> None:
    assert len(calibration([0.1, 0.9], [0, 1]).rows) == 2
    nothing = calibration([], [])
    assert (nothing.error.value, nothing.error.reason) == (None, "there is no row")


def test_what_is_no_probability_is_named() -> None:
    with pytest.raises(InputError, match=r"probability, row 1: 1\.5"):
        calibration([0.5, 1.5], [0, 1])
    with pytest.raises(InputError, match="outcome, row 0: nan"):
        calibration([0.5], [np.nan])
    with pytest.raises(InputError, match="probability has 1 rows, outcome 2"):
        calibration([0.5], [0, 1])
    with pytest.raises(InputError, match="bins is 0"):
        calibration([0.5], [0], bins=0)


@pytest.mark.slow
def test_the_interval_holds_the_truth_where_percentiles_would_not() -> None:
    """300 samples of 1,000 rows. Slope 0.8: basic 0.90, percentiles 0.37; slope 0.4: 0.93 and 0.91."""
    rng = np.random.default_rng(0)
    for slope, least, most in ((0.8, 0.86, 0.6), (0.4, 0.89, 1.0)):
        truth = calibration(*drawn(1_000_000, slope, rng), replicates=0).error.value
        assert truth is not None
        basic = percentile = 0
        for seed in range(300):
            error = calibration(*drawn(1000, slope, rng), replicates=300, seed=seed).error
            assert error.value is not None
            assert error.lo is not None
            assert error.hi is not None
            basic += error.lo <= truth <= error.hi
            percentile += 2 * error.value - error.hi <= truth <= 2 * error.value - error.lo
        assert basic / 300 >= least
        assert percentile / 300 <= most
