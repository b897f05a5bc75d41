"""What a method hears: judges on themselves, and the weight of each. A voice counted in silence turns an order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.data.ballots import ballots, to_battles
from venire.ratings.data.judgments import select_battles
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import METHODS, ignored_options, merge_selected, rate, select_verdicts

Table = Callable[..., Battles]


@pytest.fixture(scope="module")
def voices() -> Callable[..., Battles]:
    """Verdicts of three judges with scores, people's votes and a covariate; the middle judge says so many times."""

    def make(table: Table, times: int = 1) -> Battles:
        rng = np.random.default_rng(3)
        rows: list[tuple[Any, ...]] = []
        for item in range(90):
            a, b = rng.choice(5, 2, replace=False)
            verdict = ["first", "second", "tie"][rng.choice(3, p=[0.5, 0.35, 0.15])]
            rows.append((f"m{a}", f"m{b}", verdict, f"j{item % 3}", f"i{item}"))
        found = table(rows, ordered=False)
        size = len(rows)
        found = replace(
            found,
            score=rng.normal(size=size) + found.label,
            human=np.where(rng.random(size) < 0.7, (found.label + 1) / 2, 0.5),
            features={"length": rng.normal(size=size)},
        )
        return select_battles(found, np.repeat(np.arange(size), np.where(found.judge == 1, times, 1)))

    return make


def told(method: str, **options: Any) -> Options:
    covariates = ("length",) if method == "covariates" else ()
    least = {"least_verdicts": 1} if "least_verdicts" in METHODS[method].options else {}  # verdicts count, not weights
    return Options(covariates=covariates, **least, **options)


@pytest.mark.parametrize("method", [name for name, one in METHODS.items() if "ballots" not in one.needs])
def test_a_judge_of_weight_three_says_everything_three_times_or_its_weight_is_refused(
    table: Table, voices: Callable[..., Battles], method: str
) -> None:
    once = voices(table)
    options = told(method, judge_weights={"j1": 3.0})
    if "judge_weights" in ignored_options(method, options):
        with pytest.raises(InputError, match="does not take judge_weights"):
            rate(once, method, options)
        return
    weighed, thrice, plain = (
        rate(*one)
        for one in ((once, method, options), (voices(table, 3), method, told(method)), (once, method, told(method)))
    )
    for name in ("logits", "score"):
        found, expected = getattr(weighed.ratings, name), getattr(thrice.ratings, name)
        if found is not None:
            np.testing.assert_allclose(found, expected, atol=1e-6)
    if weighed.position is None:
        assert np.abs(weighed.ratings.elo - plain.ratings.elo).max() > 1.0


@pytest.mark.parametrize("method", [name for name, one in METHODS.items() if "ballots" in one.needs])
def test_ballots_of_a_judge_of_weight_three_are_three_of_them(method: str) -> None:
    rng = np.random.default_rng(6)
    cast = [(f"j{one % 3}", f"i{one}", rng.permutation(4) + 1) for one in range(30)]

    def make(times: int) -> Battles:
        rows = [
            (judge, task, f"m{model}", rank, repeat)
            for judge, task, ranks in cast
            for repeat in range(1, (times if judge == "j1" else 1) + 1)
            for model, rank in enumerate(ranks.tolist())
        ]
        *columns, repeat = map(list, zip(*rows, strict=True))
        return to_battles(ballots(*columns, repeat=repeat))

    weighed = rate(make(1), method, Options(judge_weights={"j1": 3.0}))
    thrice, plain = rate(make(3), method, Options()), rate(make(1), method, Options())
    for name in ("logits", "score"):
        if getattr(plain.ratings, name) is not None:
            np.testing.assert_allclose(getattr(weighed.ratings, name), getattr(thrice.ratings, name), atol=1e-6)
    if weighed.position is not None:
        np.testing.assert_array_equal(weighed.position, thrice.position)
    else:
        assert np.abs(weighed.ratings.elo - plain.ratings.elo).max() > 1.0


def test_weights_multiply_those_of_rows_and_ballots_and_nought_is_silence() -> None:
    columns = (["x", "x", "y", "y"], ["i"] * 4, ["a", "b", "a", "b"], [1, 2, 2, 1])
    battles = to_battles(ballots(*columns, weight=[2.0, 2.0, 5.0, 5.0]))
    found = select_verdicts(battles, Options(judge_weights={"x": 3.0}))
    assert found.weight is not None
    assert found.weight.tolist() == [6, 5]
    assert found.ballots is not None
    assert found.ballots.weight is not None
    assert found.ballots.weight.tolist() == [6, 5]
    silent = select_verdicts(battles, Options(judge_weights={"x": 0.0}))
    assert (len(silent.label), silent.judges) == (1, ("x", "y"))
    assert silent.ballots is not None
    assert silent.ballots.judge.tolist() == [1]


def test_judges_are_not_heard_on_themselves_under_either_name(table: Table) -> None:
    rows = [("a", "b", "first", "a"), ("b", "c", "first", "a"), ("a", "b", "first", "z"), ("a", "c", "tie", "z")]
    battles = table(rows)
    exclude = Options(own_votes="exclude")
    assert len(select_verdicts(battles, Options()).label) == 4
    assert len(select_verdicts(battles, exclude).label) == 3
    assert len(select_verdicts(replace(battles, peers={"z": "b"}), exclude).label) == 2
    assert len(merge_selected(battles, exclude)) == 3


def test_the_ballots_of_judges_lose_what_they_say_of_themselves() -> None:
    battles = to_battles(ballots(["a", "a", "a", "z", "z", "z"], None, ["a", "b", "c"] * 2, [1, 2, 3, 3, 2, 1]))
    found = select_verdicts(battles, Options(own_votes="exclude"))
    assert found.ballots is not None
    np.testing.assert_array_equal(found.ballots.rank, [[np.nan, 1, 2], [3, 2, 1]])
    assert len(found.label) == 4


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (Options(own_votes="exclude"), "no judge is one of the models"),
        (Options(judge_weights={"k": 1.0}), "there is no judge 'k' to weigh; there is: j"),
    ],
)
def test_what_cannot_be_left_out_or_weighed_is_refused(table: Table, options: Options, why: str) -> None:
    with pytest.raises(InputError, match=why):
        select_verdicts(table([("a", "b", "first")]), options)
