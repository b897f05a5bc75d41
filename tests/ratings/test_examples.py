"""The examples of the estimators are true."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module

import numpy as np
import pytest

from venire import ratings

FUNCTIONS = sorted(name for name in ratings.__all__ if inspect.isfunction(getattr(ratings, name)))
WITHOUT = {
    "adjust_for_position",
    "consistency",
    "drift",
    "elo_from_consistency",
    "family_preference",
    "interim_analysis",
    "jackknife_plus",
    "position_audits",
    "position_bias",
    "position_effects",
    "rating_drift",
    "self_preference_odds",
}
"""Those without an example yet: what they take is made by a store, or by another function of this list."""


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in WITHOUT])
def test_the_example_of_an_estimator_is_true(name: str) -> None:
    function = getattr(ratings, name)
    names = {**vars(import_module(function.__module__)), "np": np}
    (example,) = doctest.DocTestFinder().find(function, name, globs=names)
    found = doctest.DocTestRunner(verbose=False).run(example)
    assert found.attempted > 0
    assert found.failed == 0


def test_no_function_with_an_example_is_listed_as_without() -> None:
    assert [name for name in sorted(WITHOUT) if ">>>" in (inspect.getdoc(getattr(ratings, name)) or "")] == []
