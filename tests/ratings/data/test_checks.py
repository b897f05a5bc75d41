"""A seed or a level that means nothing is refused in words, wherever it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.agreement.calibration import calibration
from venire.ratings.agreement.chance_corrected import cohen_kappa, krippendorff_alpha
from venire.ratings.am_elo.evaluation import evaluate
from venire.ratings.data.comparisons import comparisons
from venire.ratings.pairwise.online import online_elo, trueskill
from venire.ratings.soft_elo.conformal import split_coverage
from venire.ratings.soft_elo.cross_validation import leave_one_out

DATA = comparisons(list("abcabc"), list("bcacab"), [1.0, 0.0, 0.5, 1.0, 0.0, 1.0])
SCORE = np.array([1.0, -1.0, 0.0, 2.0, -1.0, 1.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda **told: cohen_kappa([1, 0], [1, 1], **told),
        lambda **told: krippendorff_alpha([[1, 0], [1, 1]], **told),
        lambda **told: calibration([0.5, 0.4], [1.0, 0.0], **told),
        lambda **told: online_elo(DATA, **told),
        lambda **told: trueskill(DATA, **told),
        lambda **told: evaluate(DATA, lambda train, test: test.y, **told),
        lambda **told: split_coverage([1.0, 2.0], 1.0, [1000.0, 1010.0], **told),
        lambda **told: leave_one_out(DATA, SCORE, DATA.y, replicates=2, **told),
    ],
)
def test_a_negative_seed_is_refused_by_name(call: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="seed is -1; give a number that is not negative"):
        call(seed=-1)
