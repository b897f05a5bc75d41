"""Parameters of tests that repeat one promise in many cases."""

from __future__ import annotations

from typing import Any

import pytest


def slow_after(number: int, *cases: Any) -> list[Any]:
    """The cases, each a value or a tuple of them, of which those after the first `number` run in `make test-slow`."""
    slow = [
        pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.slow) for one in cases[number:]
    ]
    return [*cases[:number], *slow]
