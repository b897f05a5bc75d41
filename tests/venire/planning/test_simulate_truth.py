"""What a simulation knows to be true: its field, and what its judges would say in the long run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.experiments.contestants import ELO, fill, made_up
from venire.experiments.figures import LongRunJudge, known_slope, long_run, shares
from venire.ratings.data.statistics import spearman
from venire.simulation.judge import load_profiles, simulate
from venire.storage.read import frames
from venire.storage.store.opening import open_store
from venire.storage.transfer import importing

CHARS = (1100, 800)


def said(profile: str, protocol: str, gap: float, items: int) -> NDArray[np.float64]:
    """Outcomes for the first model by the judge itself, mean of both orders, one an instruction."""
    one = load_profiles()[profile]

    def outcome(number: int, swapped: bool) -> float:
        names, chars = ("a", "b"), CHARS
        if swapped:
            names, chars = ("b", "a"), (CHARS[1], CHARS[0])
        found = simulate(
            one,
            11,
            instruction_id=number,
            first=names[0],
            second=names[1],
            gap=-gap if swapped else gap,
            chars_first=chars[0],
            chars_second=chars[1],
        )
        if protocol == "binary":
            won = 1.0 if found.z > 0 else 0.0
        else:
            won = {"first": 1.0, "second": 0.0, "tie": 0.5}[found.leaning]
        return 1.0 - won if swapped else won

    return np.array([(outcome(number, False) + outcome(number, True)) / 2 for number in range(items)])


@pytest.mark.parametrize(
    ("profile", "protocol", "gap"),
    [
        ("gpt-4-0613", "two-stage", 60.0),
        ("claude-3-haiku-designs", "two-stage", -150.0),
        ("gpt-3.5-turbo-vicuna80", "binary", 150.0),
    ],
)
def test_long_run_shares_are_what_the_judges_say_over_many_instructions(
    profile: str, protocol: str, gap: float
) -> None:
    outcomes = said(profile, protocol, gap, 2_500)
    ratio = np.log(CHARS[0] / CHARS[1])
    share = shares(LongRunJudge(load_profiles()[profile], protocol), np.array([gap]), np.array([[ratio]]))
    error = outcomes.std() / np.sqrt(len(outcomes))
    assert abs(outcomes.mean() - share[0]) < 3.5 * error
    assert error < 0.01


def test_shares_of_both_sides_make_one() -> None:
    habit = LongRunJudge(load_profiles()["bard"], "two-stage")
    ratios = np.array([[0.3, -0.1]])
    there = shares(habit, np.array([75.0]), ratios)
    assert shares(habit, np.array([-75.0]), -ratios) == pytest.approx(1.0 - there)


def of(profiles: Sequence[str], protocol: str = "two-stage") -> list[LongRunJudge]:
    return [LongRunJudge(load_profiles()[name], protocol) for name in profiles]


def test_long_run_ratings_keep_the_order_of_the_field_on_a_scale_of_the_judges() -> None:
    field = made_up(20, 50)
    known = np.array([field.elo[name] for name in field.models])
    steep, flat = (long_run(field, of([name])) for name in ("gpt-4-0613", "vicuna-13b"))
    assert steep is not None
    assert flat is not None
    assert list(np.argsort(steep)) == list(np.argsort(known)) == list(np.argsort(flat))
    assert np.ptp(steep) > 2 * np.ptp(flat)
    assert abs(steep.mean()) < 1e-12


def test_two_judges_are_rated_between_the_two() -> None:
    field = made_up(8, 50)
    one, other, both = (
        long_run(field, of(names)) for names in (["gpt-4-0613"], ["vicuna-13b"], ["gpt-4-0613", "vicuna-13b"])
    )
    assert one is not None
    assert other is not None
    assert both is not None
    assert np.ptp(other) < np.ptp(both) < np.ptp(one)


def test_lists_have_no_long_run_here() -> None:
    assert long_run(made_up(5, 10), of(["gpt-4-0613"], "listwise")) is None


def test_noise_of_any_kind_makes_a_known_slope_flatter() -> None:
    slopes = {name: known_slope(profile) for name, profile in load_profiles().items()}
    assert slopes["gpt-4-0613"] > slopes["gpt-3.5-turbo-1106"] > slopes["claude-3-haiku-designs"]


def test_a_made_up_field_has_the_known_ratings_and_names_that_do_not_give_them_away() -> None:
    field = made_up(20, 10)
    assert sorted(field.elo.values()) == sorted(ELO)
    places = np.arange(20, dtype=np.float64)
    assert abs(spearman(np.array([[field.elo[name] for name in field.models]]), places)[0]) < 0.6
    few = made_up(5, 10)
    assert (min(few.elo.values()), max(few.elo.values())) == (ELO[0], ELO[-1])
    with pytest.raises(InputError, match="at least 2 models"):
        made_up(1, 10)


def test_lengths_of_a_made_up_field_are_drawn_by_its_seed(tmp_path: Path) -> None:
    field = made_up(6, 60)

    def texts(seed: int, name: str) -> dict[tuple[str, str], str]:
        with open_store(tmp_path / name) as store:
            fill(store, field, seed)
            assert frames.elos(store) == dict(field.elo)
            return {(model, instruction): text for instruction, _, model, text in importing.answer_key(store)}

    first, again, other = texts(1, "a.duckdb"), texts(1, "b.duckdb"), texts(2, "c.duckdb")
    assert first == again
    assert first != other
    assert len(first) == 360
    assert len(set(first.values())) == 360
    logs = np.log([[len(first[model, name]) for model in field.models] for name in sorted({i for _, i in first})])
    assert 6.7 < logs.mean() < 7.3
    assert 0.3 < (logs - logs.mean(axis=1, keepdims=True)).std() < 0.38
