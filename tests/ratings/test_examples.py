"""The examples of the estimators are true."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module

import numpy as np
import pytest

from venire import ratings

FUNCTIONS = sorted(name for name in ratings.__all__ if inspect.isfunction(getattr(ratings, name)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_an_estimator_is_true(name: str) -> None:
    function = getattr(ratings, name)
    names = {**vars(import_module(function.__module__)), "np": np}
    (example,) = doctest.DocTestFinder().find(function, name, globs=names)
    found = doctest.DocTestRunner(verbose=False).run(example)
    assert found.attempted > 0
    assert found.failed == 0
