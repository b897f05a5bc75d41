"""Stable Arena leaves out judges that gave few verdicts or judge no better than by chance, says why, and no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.am_elo.robustness import perturb
from venire.ratings.am_elo.stable_arena import NobodyLeftError, StableArena, stable_arena
from venire.ratings.data.comparisons import Comparisons, comparisons

Arena = Callable[..., Comparisons]


def of(data: Comparisons, judges: set[str]) -> Comparisons:
    """The rows of some judges."""
    assert data.judge is not None
    return data.select(np.isin(data.judge, [code for code, name in enumerate(data.judges) if name in judges]))


def gone(found: StableArena, at_pass: int | None = None) -> list[str]:
    return [one.judge for one in found.dropped if at_pass in (None, one.at_pass)]


def test_judges_against_all_others_are_left_out_and_the_rest_is_rated_without_them(arena: Arena) -> None:
    data = arena(1, against=5)
    found = stable_arena(data)
    assert gone(found) == ["j00", "j01", "j02", "j03", "j04"]
    assert (found.passes, found.stopped) == (1, None)
    alone = am_elo(of(data, set(data.judges[5:])))
    assert found.fit.ratings.logits == pytest.approx(alone.ratings.logits, abs=1e-9)
    everyone = am_elo(data)
    for one in found.dropped:
        code = data.judges.index(one.judge)
        assert one.ability == everyone.ability[code] == found.ability[code] < 0.0
        assert one.verdicts == np.count_nonzero(data.judge == code)
        assert one.reason == f"ability {one.ability:.3g}, not above 0"
    assert np.isnan(found.fit.ability[:5]).all()
    assert found.ability[5:] == pytest.approx(alone.ability[5:], abs=1e-9)


def test_a_judge_of_ties_alone_is_left_out_by_default(arena: Arena) -> None:
    data = perturb(arena(2, against=1), ["j07"], "equal")
    found = stable_arena(data)
    assert gone(found) == ["j00", "j07"]
    assert found.dropped[1].ability == pytest.approx(0.0, abs=1e-9)


def test_few_verdicts_are_fewer_than_told_and_never_seen_by_a_fit(arena: Arena) -> None:
    data = arena(3, models=5, judges=4, rows=400, spread=0.1)
    assert data.judge is not None
    counts = np.bincount(data.judge)
    least = int(counts.min())
    few = data.judges[int(np.argmin(counts))]
    assert gone(stable_arena(data, least_verdicts=least)) == []
    found = stable_arena(data, least_verdicts=least + 1)
    (one,) = (one for one in found.dropped if one.at_pass == 0)
    assert (one.judge, one.verdicts, one.reason) == (few, least, f"{least} verdicts, fewer than {least + 1}")
    assert np.isnan(one.ability)
    without = am_elo(of(data, set(data.judges) - {few}))
    assert found.fit.ratings.logits == pytest.approx(without.ratings.logits, abs=1e-9)
    assert (found.passes, np.isnan(found.ability[data.judges.index(few)])) == (0, True)


def test_verdicts_are_rows_that_count_whatever_their_weight(arena: Arena) -> None:
    data = arena(3, models=5, judges=4, rows=400, spread=0.1)
    assert data.judge is not None
    mine = data.judge == 2
    size = int(np.count_nonzero(mine))
    light = replace(data, weight=np.where(mine, 0.25, 1.0))
    assert "j02" not in gone(stable_arena(light, least_verdicts=size))
    silent = replace(data, weight=np.where(mine & (np.cumsum(mine) == 1), 0.0, 1.0))
    assert gone(stable_arena(silent, least_verdicts=size), 0).count("j02") == 1


def test_a_judge_is_back_when_it_has_enough_verdicts(arena: Arena) -> None:
    data = arena(4)
    assert data.judge is not None
    mine = data.judge == data.judges.index("j05")
    early = data.select(~mine | (np.cumsum(mine) <= 30))
    before, after = stable_arena(early), stable_arena(data)
    assert [(one.verdicts, one.reason) for one in before.dropped if one.judge == "j05"] == [
        (30, "30 verdicts, fewer than 50")
    ]
    assert "j05" not in gone(after)
    assert np.isfinite(after.ability[data.judges.index("j05")])


def test_a_second_pass_finds_what_the_first_could_not(arena: Arena) -> None:
    data = arena(20, models=6, judges=12, rows=700, spread=0.9)
    once, again = (stable_arena(data, least_ability=0.21, until_stable=again) for again in (False, True))
    assert (gone(once), once.passes) == (["j00", "j01"], 1)
    assert ([(one.judge, one.at_pass) for one in again.dropped], again.passes) == (
        [("j00", 1), ("j01", 1), ("j04", 2)],
        2,
    )
    # On the scale of the first fit: the second one's mean of 1 is the mean that those kept had in the first.
    first, second = am_elo(data), am_elo(of(data, set(data.judges) - {"j00", "j01"}))
    kept = ~np.isin(data.judges, ["j00", "j01"])
    expected = second.ability[4] * first.ability[kept].mean()
    assert again.dropped[2].ability == pytest.approx(expected, abs=1e-9)
    assert first.ability[4] > 0.21


def test_the_threshold_stays_on_the_scale_of_the_first_fit(arena: Arena) -> None:
    data = arena(5, models=6, judges=12, rows=2000, spread=0.3, against=4)
    assert data.judge is not None
    weak = perturb(data, ["j07"], "random")
    turned = replace(weak, y=np.where(weak.judge == 7, 1.0 - weak.y, weak.y))
    first = am_elo(turned)
    second = am_elo(of(turned, set(data.judges[4:])))
    scale = first.ability[4:].mean()
    assert (np.argmin(second.ability[4:]), scale > 1.5) == (3, True)
    least = float(second.ability[7] * (1.0 + scale) / 2.0)
    assert 0.0 < second.ability[7] < least < first.ability[4:].min()
    found = stable_arena(turned, least_ability=least, until_stable=True)
    assert (gone(found), found.passes) == (["j00", "j01", "j02", "j03"], 1)


def test_nobody_is_left_out_for_an_ability_of_undecided_sign(arena: Arena) -> None:
    data = perturb(arena(6, judges=20, rows=3000, spread=0.0), [f"j{code:02}" for code in range(10)], "flip")
    found = stable_arena(data)
    assert (found.dropped, found.passes) == ((), 0)
    assert found.fit.sign != "as the majority"
    assert found.stopped is not None
    assert "undecided" in found.stopped


def test_options_of_the_fit_reach_it_and_the_place_shown_stays_with_its_row(arena: Arena) -> None:
    data = arena(9, models=5, judges=6, rows=900, against=2)
    first = np.random.default_rng(0).choice([-1.0, 1.0], len(data))
    found = stable_arena(data, first=first, habits=("position",), ridge=0.1, errors="none")
    assert gone(found) == ["j00", "j01"]
    assert data.judge is not None
    rows = data.judge >= 2
    alone = am_elo(data.select(rows), first=first[rows], habits=("position",), ridge=0.1, errors="none")
    assert found.fit.position == pytest.approx(alone.position, abs=1e-9, nan_ok=True)
    assert found.fit.ratings.logits == pytest.approx(alone.ratings.logits, abs=1e-9)
    assert stable_arena(data, errors="none").fit.ratings.covariance is None
    assert stable_arena(data, restarts=2, errors="none").fit.restarts.starts == 3
    with pytest.raises(InputError, match=r"first has shape \(3,\), there are 900 comparisons"):
        stable_arena(data, first=[1, 1, -1], habits=("position",))


def test_no_judge_left_is_said(arena: Arena) -> None:
    data = arena(7, models=5, judges=4, rows=400)
    assert data.judge is not None
    most = int(np.bincount(data.judge).max())
    with pytest.raises(
        NobodyLeftError, match=rf"fewer than 500 verdicts, the most j0\d with {most}: lower least_verdicts"
    ):
        stable_arena(data, least_verdicts=500)
    with pytest.raises(InputError, match=r"no judge has an ability above 9, the most \d\.\d+: lower least_ability"):
        stable_arena(data, least_ability=9.0)
    with pytest.raises(InputError, match="there is no verdict of any judge"):
        stable_arena(comparisons([], [], [], models=["a", "b"], judge=[]))


def test_what_is_not_possible_is_said(arena: Arena) -> None:
    data = arena(7, models=5, judges=4, rows=400)
    with pytest.raises(InputError, match="least_verdicts is 0; give 1 or more"):
        stable_arena(data, least_verdicts=0)
    for strange in (-0.1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="least_ability is"):
            stable_arena(data, least_ability=strange)
    with pytest.raises(InputError, match="name no judge"):
        stable_arena(comparisons([0, 1], [1, 0], [1.0, 1.0]))


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_who_is_left_out_does_not_hang_on_rows_sides_or_names(arena: Arena, seed: int) -> None:
    data = arena(8, models=6, judges=12, rows=900, against=2)
    assert data.judge is not None
    rng = np.random.default_rng(seed)
    order, turn = rng.permutation(len(data)), rng.random(len(data)) < 0.5
    models, judges = np.array(data.models), np.array(data.judges)
    codes = rng.permutation(len(models))
    called = np.array([f"n{code:02}" for code in codes])
    a, b = called[data.a], called[data.b]
    again = comparisons(
        np.where(turn, b, a)[order],
        np.where(turn, a, b)[order],
        np.where(turn, 1.0 - data.y, data.y)[order],
        judge=judges[data.judge][order],
    )
    one, other = (stable_arena(table, least_ability=0.21, until_stable=True) for table in (data, again))
    assert gone(one) == gone(other) != []
    placed = [again.models.index(name) for name in called]
    assert other.fit.ratings.logits[placed] == pytest.approx(one.fit.ratings.logits, abs=1e-7)
    assert [one.ability for one in other.dropped] == pytest.approx([one.ability for one in one.dropped], abs=1e-7)


def test_crowd_of_which_few_gave_fifty_votes(shared_data: Path) -> None:
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT first, second, verdict, annotator FROM read_parquet(?) WHERE annotator_kind = 'human'",
            [str(shared_data / "llmfao" / "comparisons.parquet")],
        ).fetchall()
    first, second, verdict, annotator = zip(*rows, strict=True)
    outcome = [{"first": 1.0, "tie": 0.5, "second": 0.0}[word] for word in verdict]
    found = stable_arena(comparisons(first, second, outcome, judge=annotator))
    assert len(gone(found, 0)) == 124 - 37
    assert gone(found, 1) == ["worker_11", "worker_15", "worker_20", "worker_70"]
    assert [one.ability for one in found.dropped if one.at_pass] == pytest.approx(
        [-0.0567, -0.532, -0.124, -0.358], abs=1e-3
    )
    assert found.fit.loglik == pytest.approx(-3808.736, abs=1e-2)
