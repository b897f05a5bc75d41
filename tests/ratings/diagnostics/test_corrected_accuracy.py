"""Accuracy by a judge that errs, corrected by answers of known truth."""

from __future__ import annotations

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.diagnostics.corrected_accuracy import corrected_accuracy


def drawn(seed: int = 0, labelled: int = 200) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Two models right in 30 and 80 % of 300 questions, by a judge with sensitivity 0.9 and specificity 0.7."""
    rng = np.random.default_rng(seed)
    model = np.repeat(["weak", "strong"], 300)
    right = rng.random(600) < np.where(model == "weak", 0.3, 0.8)
    said = np.where(right, rng.random(600) < 0.9, rng.random(600) < 0.3).astype(float)
    truth = np.full(600, np.nan)
    known = rng.permutation(600)[:labelled]
    truth[known] = right[known]
    return list(model), said, truth, np.tile(np.arange(300), 2)


def test_the_share_is_that_of_rogan_and_gladen() -> None:
    model, said, truth, question = drawn()
    found = corrected_accuracy(model, said, truth, question)
    sensitivity, specificity = said[truth == 1.0].mean(), 1.0 - said[truth == 0.0].mean()
    share = said[np.array(model) == "weak"].mean()
    expected = (share + specificity - 1.0) / (sensitivity + specificity - 1.0)
    assert found.models == ("strong", "weak")
    assert found.accuracy[1] == pytest.approx(expected)
    assert (found.errors.sensitivity, found.errors.specificity) == pytest.approx((sensitivity, specificity))
    assert abs(found.accuracy[1] - 0.3) < abs(share - 0.3), "a judge that takes wrong answers for right flatters"


def test_fewer_labels_widen_the_interval() -> None:
    widths = []
    for labelled in (60, 600):
        model, said, truth, question = drawn(labelled=labelled)
        found = corrected_accuracy(model, said, truth, question)
        widths.append(found.hi - found.lo)
    assert (widths[0] > 1.3 * widths[1]).all()


def test_a_judge_without_errors_is_left_as_it_is() -> None:
    said = np.array([1.0, 0.0] * 20)
    found = corrected_accuracy(["m"] * 40, said, said)
    assert found.accuracy.tolist() == [0.5]
    assert found.lo[0] < 0.5 < found.hi[0]


def test_what_says_nothing_of_the_truth_is_refused() -> None:
    said = np.array([1.0, 0.0] * 20)
    with pytest.raises(InputError, match="say nothing of the truth"):
        corrected_accuracy(["m"] * 40, said, 1.0 - said)
    with pytest.raises(InputError, match="20 verdicts on right and 0 on wrong"):
        corrected_accuracy(["m"] * 40, said, np.where(said == 1.0, 1.0, np.nan))
    with pytest.raises(InputError, match="differ in length"):
        corrected_accuracy(["m"], said, said)
    with pytest.raises(InputError, match="other than 0 and 1"):
        corrected_accuracy(["m"] * 40, said * 2, said)
