"""Orders in which battles are taken one after another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from venire.arena.errors import InputError
from venire.ratings import comparisons, online_elo, trueskill


@pytest.mark.parametrize("method", [online_elo, trueskill])
def test_a_negative_seed_is_refused_by_name(method: Callable[..., object]) -> None:
    data = comparisons(["a", "b"], ["b", "a"], [1.0, 1.0])
    with pytest.raises(InputError, match="seed is -1"):
        method(data, seed=-1)
