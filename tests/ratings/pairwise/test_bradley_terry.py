"""Bradley-Terry: right where an estimate exists, and a named refusal where none does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.scale import to_elo
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.judgments import merge_orders
from venire.ratings.data.result import Ratings
from venire.ratings.data.wins import WinCounts, count_matrix, win_counts
from venire.ratings.pairwise import solvers
from venire.ratings.pairwise.bradley_terry import bradley_terry, bradley_terry_wins, counts_log_likelihood
from venire.ratings.pairwise.components import SeparatedError, strong_components, weak_components
from venire.ratings.pairwise.solvers import NotConvergedError, curve_of

Table = Callable[..., Battles]
Matrix = NDArray[np.float64]

CYCLE = np.array([[0.0, 3.7, 0.6], [0.3, 0.0, 1.2], [0.4, 1.3, 0.0]])
"""The pair counts of `chained`."""


def names(size: int) -> list[str]:
    return [f"m{place:04d}" for place in range(size)]


def ladder(size: int, reach: int) -> tuple[Matrix, Matrix]:
    """Exact expected counts of neighbours on a long ladder, whose maximum is the ladder itself."""
    truth = np.arange(size) * -0.7
    wins = np.zeros((size, size))
    for step in range(1, reach + 1):
        share = 1.0 / (1.0 + math.exp(-0.7 * step))
        for place in range(size - step):
            wins[place, place + step], wins[place + step, place] = 200 * share, 200 * (1 - share)
    return wins, truth


def judged(table: Table, rows: list[tuple[Any, ...]]) -> Comparisons:
    """The two orders of verdicts merged, as every board sees them."""
    return merge_orders(table(rows)).comparisons()


def slopes(wins: Matrix, at: Matrix) -> tuple[Matrix, Matrix]:
    """Gradient (n,) of the log-likelihood and the information matrix (n, n)."""
    local = curve_of(count_matrix(wins, names(len(wins)))).at(at)
    assert isinstance(local.coupling, np.ndarray)
    return local.gradient, np.diag(local.diagonal) - local.coupling


@st.composite
def connected(draw: st.DrawFn) -> Matrix:
    """Pair counts in quarters, with a cycle of wins through all models."""
    size = draw(st.integers(2, 7))
    quarters = draw(st.lists(st.integers(0, 40), min_size=size * size, max_size=size * size))
    wins = np.array(quarters, dtype=np.float64).reshape(size, size) / 4.0
    np.fill_diagonal(wins, 0.0)
    wins[np.arange(size), (np.arange(size) + 1) % size] += 1.0
    return wins


def test_two_models_are_apart_by_the_log_of_their_odds() -> None:
    found = bradley_terry_wins([[0.0, 30.0], [10.0, 0.0]], ["a", "b"])
    assert found.logits == pytest.approx([math.log(3) / 2, -math.log(3) / 2], abs=1e-12)
    assert found.diagnostics["log_likelihood"] == pytest.approx(30 * math.log(0.75) + 10 * math.log(0.25))
    assert (found.diagnostics["pairs"], found.battles.tolist()) == (1, [40.0, 40.0])


def test_all_ties_are_all_equal(table: Table) -> None:
    found = bradley_terry(judged(table, [("a", "b", "tie"), ("b", "c", "tie"), ("c", "a", "tie")]))
    assert found.logits.tolist() == [0.0, 0.0, 0.0]


def test_one_tie_between_two_models_is_enough(table: Table) -> None:
    assert bradley_terry(judged(table, [("a", "b", "tie")])).logits.tolist() == [0.0, 0.0]


def test_judgments_become_counts_with_ties_as_half(table: Table) -> None:
    rows = [("a", "b", "first"), ("b", "a", "tie"), ("c", "b", "first"), ("b", "c", "second")]
    wins = win_counts(judged(table, rows)).matrix()
    assert wins.tolist() == [[0.0, 0.75, 0.0], [0.25, 0.0, 0.0], [0.0, 1.0, 0.0]]
    some = merge_orders(table(rows)).comparisons(["c", "b"])
    assert win_counts(some).matrix().tolist() == [[0.0, 1.0], [0.0, 0.0]]


@given(wins=connected(), data=st.data())
def test_gradient_and_information_agree_with_finite_differences(wins: Matrix, data: st.DataObject) -> None:
    size, step = len(wins), 1e-5
    at = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=size, max_size=size)))
    counts = count_matrix(wins, names(size))
    gradient, information = slopes(wins, at)
    for place, offset in enumerate(np.eye(size) * step):
        rise = counts_log_likelihood(counts, at + offset) - counts_log_likelihood(counts, at - offset)
        assert gradient[place] == pytest.approx(rise / (2 * step), abs=1e-5)
        bend = (slopes(wins, at + offset)[0] - slopes(wins, at - offset)[0]) / (2 * step)
        assert information[:, place] == pytest.approx(-bend, abs=1e-5)


@given(wins=connected(), data=st.data())
def test_a_fit_is_centred_at_its_maximum_and_follows_its_labels(wins: Matrix, data: st.DataObject) -> None:
    size = len(wins)
    found = bradley_terry_wins(wins, names(size))
    assert abs(found.logits.mean()) < 1e-12
    assert np.abs(slopes(wins, found.logits)[0]).max() <= 1e-12 * wins.sum()
    assert found.diagnostics["gradient"] <= 1e-12
    order = data.draw(st.permutations(range(size)))
    turned = bradley_terry_wins(wins[np.ix_(order, order)], names(size))
    assert turned.logits == pytest.approx(found.logits[order], abs=1e-9)
    assert bradley_terry_wins(wins.T, names(size)).logits == pytest.approx(-found.logits, abs=1e-9)
    assert bradley_terry_wins(3 * wins, names(size)).logits == pytest.approx(found.logits, abs=1e-9)


def test_truth_is_recovered_within_its_standard_error() -> None:
    """400 battles a pair of 12 models: standard errors are about 11 points, so 4 of them bound every error."""
    rng = np.random.default_rng(7)
    truth = np.linspace(1.2, -1.2, 12)
    wins = np.zeros((12, 12))
    for a in range(12):
        for b in range(a + 1, 12):
            wins[a, b] = rng.binomial(400, 1 / (1 + math.exp(truth[b] - truth[a])))
            wins[b, a] = 400 - wins[a, b]
    error = np.abs(bradley_terry_wins(wins, names(12)).elo - to_elo(truth))
    assert error.max() < 44
    assert error.mean() < 11


@pytest.mark.parametrize(("size", "reach"), [(100, 1), (300, 3)])
def test_long_ladders_are_exact(size: int, reach: int) -> None:
    """Optimisers that stop early are wrong by thousands of points on graphs of neighbours."""
    wins, truth = ladder(size, reach)
    found = bradley_terry_wins(wins, names(size))
    assert np.abs(found.elo - to_elo(truth)).max() < 1e-6
    assert found.diagnostics["iterations"] <= 10


@pytest.mark.parametrize("odds", [1e6, 1e13, 1e20])
def test_lopsided_counts_still_reach_the_maximum(odds: float) -> None:
    """A gradient that is small beside all the wins may still be large beside the one loss."""
    wins = np.array([[0.0, odds, 0.0], [1.0, 0.0, odds], [0.0, 1.0, 0.0]])
    assert np.diff(bradley_terry_wins(wins, names(3)).logits) == pytest.approx([-math.log(odds)] * 2, rel=1e-10)


def test_a_start_far_from_the_maximum_does_not_run_away() -> None:
    """A replicate starts at the estimate of all the data, where its own curve may be all but flat."""
    found = bradley_terry_wins([[0.0, 1.0], [1.0, 0.0]], ["a", "b"], start=np.array([8.0, -8.0]))
    assert found.logits == pytest.approx([0.0, 0.0], abs=1e-12)
    assert found.diagnostics["iterations"] < 60


def test_a_model_without_a_win_and_one_without_a_loss_are_named(table: Table) -> None:
    rows = [("top", "a", "first"), ("a", "b", "tie"), ("b", "bottom", "first"), ("top", "bottom", "first")]
    data = judged(table, rows)
    with pytest.raises(SeparatedError, match=r"3 groups.*top; a, b; bottom") as caught:
        bradley_terry(data)
    assert caught.value.groups == (("top",), ("a", "b"), ("bottom",))
    found = [tuple(data.models[code] for code in group) for group in data.wins.strong_components()]
    assert tuple(found) == caught.value.groups
    assert bradley_terry(merge_orders(table(rows)).comparisons(["a", "b"])).logits.tolist() == [0.0, 0.0]


def test_two_islands_are_named_and_no_offset_is_invented(table: Table) -> None:
    counts = win_counts(judged(table, [("a", "b", "tie"), ("c", "d", "tie"), ("d", "e", "tie")]))
    with pytest.raises(SeparatedError) as caught:
        bradley_terry_wins(counts)
    assert caught.value.groups == (("c", "d", "e"), ("a", "b"))
    assert weak_components(counts) == 2


def test_a_battle_won_is_no_estimate(table: Table) -> None:
    with pytest.raises(SeparatedError) as caught:
        bradley_terry(judged(table, [("b", "a", "first")]))
    assert caught.value.groups == (("b",), ("a",))


def test_many_groups_are_not_all_spelt_out() -> None:
    with pytest.raises(SeparatedError, match="40 groups") as caught:
        bradley_terry_wins(np.triu(np.ones((40, 40)), 1), names(40))
    assert len(str(caught.value)) < 250
    assert caught.value.groups == tuple((name,) for name in names(40))


@given(beats=st.lists(st.booleans(), min_size=36, max_size=36))
def test_groups_are_exactly_what_can_be_rated_together(beats: list[bool]) -> None:
    wins = np.array(beats, dtype=np.float64).reshape(6, 6)
    np.fill_diagonal(wins, 0.0)
    groups = [group.tolist() for group in strong_components(wins)]
    reach = np.linalg.matrix_power(wins + np.eye(6), 6) > 0
    assert sorted(code for group in groups for code in group) == list(range(6))
    where = {code: place for place, group in enumerate(groups) for code in group}
    for a in range(6):
        for b in range(6):
            assert (where[a] == where[b]) == bool(reach[a, b] and reach[b, a])
            if reach[a, b] and not reach[b, a]:
                assert where[a] < where[b]


def test_nothing_to_rate_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no model"):
        bradley_terry_wins(np.zeros((0, 0)), [])
    assert np.isnan(bradley_terry_wins(np.zeros((1, 1)), ["a"]).logits).tolist() == [True]
    with pytest.raises(InputError, match=r"start has shape \(3,\); give one rating for each of 2 models"):
        bradley_terry_wins([[0.0, 1.0], [1.0, 0.0]], ["a", "b"], start=np.zeros(3))


def test_a_fit_that_stops_short_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "_STEPS", 2)
    with pytest.raises(NotConvergedError, match="after 2 steps"):
        bradley_terry_wins([[0.0, 30.0], [10.0, 0.0]], ["a", "b"])


def test_counts_beyond_double_precision_are_refused() -> None:
    with pytest.raises(NotConvergedError):
        bradley_terry_wins([[0.0, 1e300], [1e-300, 0.0]], ["a", "b"])


def chained(anchors: dict[str, float] | None = None, ridge: float = 0.0) -> Ratings:
    """A cycle of a, b and c, of which a wins most."""
    data = comparisons(list("abcab"), list("bcabc"), [0.9, 0.6, 0.4, 1.0, 0.0], weight=[3.0, 2.0, 1.0, 1.0, 0.5])
    return bradley_terry(data, ridge=ridge, anchors=anchors)


@given(wins=connected(), data=st.data())
def test_the_order_of_rows_and_models_and_sides_do_not_matter(wins: Matrix, data: st.DataObject) -> None:
    size = len(wins)
    a, b = np.nonzero(wins)
    weight, y = wins[a, b], np.ones(len(a))
    wanted = bradley_terry(comparisons(a, b, y, models=names(size), weight=weight))
    assert wanted.logits == pytest.approx(bradley_terry_wins(wins, names(size)).logits, abs=1e-9)
    assert wanted.diagnostics["gradient"] <= 1e-12
    order = np.array(data.draw(st.permutations(range(len(a)))))
    label = np.array(data.draw(st.permutations(range(size))))
    shuffled = comparisons(label[a[order]], label[b[order]], y, models=names(size), weight=weight[order])
    assert bradley_terry(shuffled).logits[label] == pytest.approx(wanted.logits, abs=1e-9)
    turned = bradley_terry(comparisons(b, a, 1 - y, models=names(size), weight=weight))
    assert turned.logits == pytest.approx(wanted.logits, abs=1e-9)
    twice = comparisons(np.tile(a, 2), np.tile(b, 2), np.tile(y, 2), models=names(size), weight=np.tile(weight, 2) / 2)
    assert bradley_terry(twice).logits == pytest.approx(wanted.logits, abs=1e-9)
    mirrored = bradley_terry(comparisons(a, b, 1 - y, models=names(size), weight=weight))
    assert mirrored.logits == pytest.approx(-wanted.logits, abs=1e-9)


def test_one_anchor_shifts_and_says_so() -> None:
    free, anchored = chained(), chained({"b": 1250.0})
    assert anchored.elo[1] == pytest.approx(1250.0, abs=1e-10)
    assert np.diff(anchored.logits) == pytest.approx(np.diff(free.logits), abs=1e-12)
    assert (free.gauge, anchored.gauge) == ("mean 1000", "anchored: b = 1250")
    pulled = chained({"b": 1250.0}, ridge=2.0).elo - chained(ridge=2.0).elo
    assert pulled == pytest.approx([250.0 - (chained(ridge=2.0).elo[1] - 1000.0)] * 3, abs=1e-9)


def test_several_anchors_are_held_and_the_others_fitted_around_them() -> None:
    found = chained({"a": 1100.0, "c": 900.0})
    assert found.elo[[0, 2]] == pytest.approx([1100.0, 900.0], abs=1e-10)
    counts, (one, _, other) = count_matrix(CYCLE, list("abc")), found.logits
    lone = minimize_scalar(lambda rating: -counts_log_likelihood(counts, np.array([one, rating, other])))
    assert found.logits[1] == pytest.approx(lone.x, abs=1e-6)
    assert found.gauge == "anchored: a = 1100, c = 900"
    own = chained()
    again = chained(dict(zip(own.models, own.elo.tolist(), strict=True)))
    assert (again.logits == pytest.approx(own.logits), again.diagnostics["iterations"]) == (True, 0)


def test_ridge_is_lambda_over_two_on_the_summed_likelihood() -> None:
    """One win and ridge lambda: the gap d solves sigma(-d) = lambda d / 2."""
    data = comparisons(["a"], ["b"], [1.0])
    for ridge in (1e-9, 0.01, 1.0, 100.0):
        found = bradley_terry(data, ridge=ridge)
        gap = float(found.logits[0] - found.logits[1])
        assert 1 / (1 + math.exp(gap)) == pytest.approx(ridge * gap / 2, rel=1e-9)
        assert found.diagnostics["groups"] == [["a"], ["b"]]


def test_models_held_apart_need_no_wins_between_them() -> None:
    """The others are joined through the anchors: b beats one and loses to the other, which never met."""
    data = comparisons(["a", "b"], ["b", "c"], [1.0, 1.0])
    with pytest.raises(SeparatedError, match="3 groups"):
        bradley_terry(data)
    found = bradley_terry(data, anchors={"a": 1200.0, "c": 800.0})
    assert found.elo.tolist() == pytest.approx([1200.0, 1000.0, 800.0])
    assert found.diagnostics["components"] == 1
    with pytest.raises(SeparatedError) as caught:
        bradley_terry(comparisons(["a", "b", "d"], ["b", "c", "b"], [1.0, 1.0, 1.0]), anchors={"a": 1200.0, "c": 800.0})
    assert caught.value.groups == (("d",), ("a", "b", "c"))


def test_a_model_that_never_played_is_named_and_the_rest_is_rated() -> None:
    data = comparisons([0, 2], [1, 3], [0.75, 1.0], models=["a", "b", "c", "d"], weight=[1.0, 0.0])
    found = bradley_terry(data)
    assert np.isnan(found.logits).tolist() == [False, False, True, True]
    assert found.logits[0] - found.logits[1] == pytest.approx(math.log(3))
    assert found.diagnostics["no_estimate"] == {"c": "no comparison", "d": "no comparison"}
    assert found.battles.tolist() == [1.0, 1.0, 0.0, 0.0]
    nobody = bradley_terry(comparisons(["a"], ["b"], [1.0], weight=[0.0]))
    assert np.isnan(nobody.logits).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridge": -1.0}, "ridge is -1.0"),
        ({"ridge": math.nan}, "ridge is nan"),
        ({"anchors": {"z": 1000.0}}, "no model is called 'z'; the models are a, b, c"),
        ({"anchors": {"a": math.inf}}, "'a' has inf Elo points"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        chained(**options)


def test_an_anchor_that_met_nobody_holds_nothing() -> None:
    data = comparisons([0], [1], [0.5], models=["a", "b", "c"])
    with pytest.raises(InputError, match="c met no other model"):
        bradley_terry(data, anchors={"c": 1000.0})
    assert bradley_terry(data, anchors={"c": 1500.0, "a": 1000.0}).elo.tolist() == pytest.approx([1000, 1000, 1500])


@pytest.mark.parametrize("weight", [1e-9, 1.0, 1e12])
def test_weights_of_any_size_give_the_same_ratings(weight: float) -> None:
    data = comparisons(list("abc"), list("bca"), [1 - 1e-9, 0.6, 1e-9], weight=[weight] * 3)
    one = comparisons(list("abc"), list("bca"), [1 - 1e-9, 0.6, 1e-9])
    assert bradley_terry(data).logits == pytest.approx(bradley_terry(one).logits, rel=1e-9)


def test_an_upset_between_models_far_apart_ends_at_rounding() -> None:
    """What c gains and loses is a battle each, and its information next to nothing: a gradient of 1e-12 of that is
    rounding, and is met by luck alone, some dozen steps later."""
    wins = np.zeros((5, 5))
    wins[0, 1], wins[1, 0], wins[3, 4], wins[4, 3] = 1.1, 0.9, 1.3, 0.7
    wins[2, 0], wins[4, 2], wins[0, 4], wins[4, 0] = 1.0, 1.0, 1e13, 1.0
    wins[[2, 1, 3, 2], [1, 2, 2, 3]] = 0.1
    found = bradley_terry_wins(wins, list("abcde"))
    assert found.diagnostics["gradient"] < 1e-12
    assert found.diagnostics["iterations"] < 40


def test_a_first_guess_that_leads_nowhere_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = chained()
    monkeypatch.setattr(WinCounts, "guess", lambda counts: np.array([1e5, 0.0, -1e5]))
    assert bradley_terry_wins(CYCLE, list("abc")).logits == pytest.approx(wanted.logits, abs=1e-12)


def test_counts_and_a_start_give_the_same_ratings() -> None:
    wanted = chained()
    found = bradley_terry_wins(CYCLE, list("abc"), start=np.array([3.0, -1.0, 0.5]))
    assert found.logits == pytest.approx(wanted.logits, abs=1e-12)
    assert bradley_terry_wins(CYCLE, list("abc"), start=wanted.logits).diagnostics["iterations"] <= 1
