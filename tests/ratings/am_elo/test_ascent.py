"""am-ELO by gradient ascent: what the paper's figure 5 shows, held against the maximum."""

from __future__ import annotations

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.am_elo.ascent import GradientAscents, gradient_ascents
from venire.ratings.data.comparisons import Comparisons, comparisons


def arena(seed: int = 0) -> Comparisons:
    """600 verdicts on five models by six judges, all of whom mean well."""
    rng = np.random.default_rng(seed)
    strength, ability = np.linspace(-1.5, 1.5, 5), np.linspace(0.7, 1.3, 6)
    a = rng.integers(0, 5, 600)
    b, judge = (a + rng.integers(1, 5, 600)) % 5, rng.integers(0, 6, 600)
    y = rng.random(600) < 1.0 / (1.0 + np.exp(-ability[judge] * (strength[a] - strength[b])))
    return comparisons(a, b, y.astype(float), judge=judge)


@pytest.fixture(scope="module")
def found() -> GradientAscents:
    return gradient_ascents(arena(), learning_rate=0.5, epochs=700)


def shares(found: GradientAscents) -> dict[tuple[str, bool], float | None]:
    return {(one.rule, one.normalised): one.consistency for one in found.rules}


def test_without_normalisation_the_start_decides_which_end_is_up(found: GradientAscents) -> None:
    free = next(one for one in found.rules if (one.rule, one.normalised) == ("gradient", False))
    assert all(start.epochs is not None for start in free.starts), "all reach the maximum"
    reversed_starts = sum(start.tau == pytest.approx(-1.0) for start in free.starts)
    assert sum(start.tau == pytest.approx(1.0) for start in free.starts) == 5 - reversed_starts
    assert 0 < reversed_starts < 5
    assert free.consistency == pytest.approx({1: 0.6, 2: 0.4, 3: 0.4, 4: 0.6}[reversed_starts]), (
        "pairs of starts that agree, of ten"
    )


def test_with_normalisation_the_published_code_ends_in_one_order(found: GradientAscents) -> None:
    assert shares(found)["adam", True] == 1.0
    normalised = next(one for one in found.rules if (one.rule, one.normalised) == ("adam", True))
    assert all(start.tau == pytest.approx(1.0) for start in normalised.starts)


def test_no_ascent_ends_above_the_maximum_and_those_that_reached_it_are_near(found: GradientAscents) -> None:
    for one in found.rules:
        for start in one.starts:
            assert start.log_likelihood is not None
            short = found.log_likelihood - start.log_likelihood
            assert short > -1e-6
            assert (start.epochs is None) == (short > 0.1)


def test_an_ascent_that_diverges_is_said_to() -> None:
    found = gradient_ascents(arena(), learning_rate=1e12, epochs=20)
    plain = next(one for one in found.rules if one.rule == "gradient")
    assert {(start.log_likelihood, start.epochs, start.tau) for start in plain.starts} == {(None, None, None)}
    assert plain.consistency is None


def test_verdicts_on_models_without_a_rating_do_not_count() -> None:
    data = arena()
    names = [f"m{code}" for code in range(5)]
    a, b = ([names[code] for code in column] for column in (data.a, data.b))
    judge = [data.judges[code] for code in data.judge] if data.judge is not None else []
    more = comparisons([*a, "ash"], [*b, "m0"], [*data.y, 1.0], judge=[*judge, data.judges[0]])
    whole = gradient_ascents(more, epochs=5)
    assert whole.log_likelihood == pytest.approx(gradient_ascents(data, epochs=5).log_likelihood)


@pytest.mark.parametrize(
    ("given", "named"),
    [({"starts": 1}, "starts"), ({"learning_rate": 0.0}, "learning_rate"), ({"epochs": 0}, "epochs")],
)
def test_a_number_out_of_range_is_refused_by_name(given: dict[str, float], named: str) -> None:
    with pytest.raises(InputError, match=named):
        gradient_ascents(arena(), **given)  # type: ignore[arg-type]
