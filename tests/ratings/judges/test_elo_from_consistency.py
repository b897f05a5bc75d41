"""Elo of judges from their scores: the line, its errors out of sample, and the top cluster."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.judges.consistency import consistency
from venire.ratings.judges.elo_from_consistency import elo_from_consistency, elo_from_scores

Table = Callable[..., Battles]

NAMES = tuple("abcdefghijkl")
SCORES = np.array([0.10, 0.22, 0.15, 0.31, 0.40, 0.38, 0.52, 0.49, 0.66, 0.71, 0.70, 0.83])
ELO = np.array([1010, 1034, 1041, 1090, 1102, 1130, 1171, 1160, 1251, 1262, 1300, 1281.0])


def test_figures_are_those_of_the_textbook() -> None:
    found = elo_from_scores(NAMES, SCORES, ELO).all
    slope, intercept = np.polyfit(SCORES, ELO, 1)
    assert (found.slope, found.intercept) == pytest.approx((slope, intercept))
    assert found.pearson == pytest.approx(pearsonr(SCORES, ELO).statistic)
    assert found.spearman == pytest.approx(spearmanr(SCORES, ELO).statistic)
    assert found.kendall == pytest.approx(kendalltau(SCORES, ELO).statistic)
    assert found.mae == pytest.approx(np.abs(ELO - slope * SCORES - intercept).mean())
    assert found.mae_sd == pytest.approx(found.mae / ELO.std(ddof=1))


def test_correlations_have_fishers_intervals_and_three_judges_none() -> None:
    found = elo_from_scores(NAMES, SCORES, ELO).all
    expected = pearsonr(SCORES, ELO).confidence_interval(0.95)
    assert found.intervals["pearson"] == pytest.approx((expected.low, expected.high))
    assert set(found.intervals) == {"pearson", "spearman", "kendall"}
    assert elo_from_scores(NAMES[:3], [0.1, 0.2, 0.4], [3.0, 2.0, 1.1]).all.pearson is None


def test_every_judge_is_predicted_from_the_others_alone() -> None:
    found = elo_from_scores(NAMES, SCORES, ELO).all
    errors = []
    for judge in range(len(NAMES)):
        others = np.arange(len(NAMES)) != judge
        line = np.polyfit(SCORES[others], ELO[others], 1)
        errors.append(abs(ELO[judge] - np.polyval(line, SCORES[judge])))
    assert found.mae_left_out == pytest.approx(np.mean(errors))
    assert found.mae is not None
    assert found.mae_left_out is not None
    assert found.mae_left_out > found.mae


def test_the_top_cluster_is_over_1250_or_else_the_top_third() -> None:
    found = elo_from_scores(NAMES, SCORES, ELO)
    assert (found.cluster, found.top.judges) == ("Elo over 1250", ("i", "j", "k", "l"))
    lower = elo_from_scores(NAMES, SCORES, ELO - 200)
    assert (lower.cluster, lower.top.judges) == ("top third", ("i", "j", "k", "l"))
    assert lower.top.pearson == pytest.approx(found.top.pearson)


def test_a_noisy_score_says_how_high_a_correlation_can_be() -> None:
    error = np.full(12, 0.1)
    found = elo_from_scores(NAMES, SCORES, ELO, se=error).all
    assert found.reliability == pytest.approx(1 - 0.01 / SCORES.var(ddof=1))
    assert found.limit == pytest.approx(np.sqrt(1 - 0.01 / SCORES.var(ddof=1)))
    assert elo_from_scores(NAMES, SCORES, ELO, se=error * 9).all.limit == 0.0
    assert elo_from_scores(NAMES, SCORES, ELO).all.limit is None


def test_judges_without_a_score_or_an_elo_are_left_out_by_name() -> None:
    found = elo_from_scores(NAMES, [np.inf, *SCORES[1:]], [*ELO[:-1], np.nan])
    assert found.left_out == ("a", "l")
    assert found.all.judges == NAMES[1:-1]
    assert "left out, without a finite score or a known Elo: a, l" in found.summary()


@pytest.mark.parametrize(("score", "elo"), [([0.1, 0.2, 0.3], [1.0, 2.0, 3.5]), ([0.5] * 4, [1.0, 2.0, 3.0, 4.0])])
def test_too_little_gives_no_line(score: list[float], elo: list[float]) -> None:
    found = elo_from_scores(NAMES[: len(score)], score, elo)
    assert (found.all.slope, found.all.pearson, found.all.mae_left_out) == (None, None, None)
    assert found.summary()


def test_equal_elos_have_a_line_and_no_correlation() -> None:
    found = elo_from_scores(NAMES[:4], SCORES[:4], [1000.0] * 4).all
    assert (found.slope, found.mae, found.pearson, found.mae_sd) == (0.0, 0.0, None, None)


def test_a_judge_that_alone_makes_the_line_cannot_be_predicted() -> None:
    assert elo_from_scores(NAMES[:4], [1.0, 1.0, 1.0, 2.0], ELO[:4]).all.mae_left_out is None


@given(order=st.permutations(range(12)), scale=st.floats(0.1, 10), shift=st.floats(-500, 500))
def test_order_of_judges_and_unit_of_the_score_do_not_matter(order: list[int], scale: float, shift: float) -> None:
    plain = elo_from_scores(NAMES, SCORES, ELO)
    other = elo_from_scores([NAMES[k] for k in order], scale * SCORES[order] + shift, ELO[order])
    assert sorted(other.top.judges) == sorted(plain.top.judges)
    assert other.all.mae_left_out == pytest.approx(plain.all.mae_left_out, rel=1e-6)
    assert other.top.pearson == pytest.approx(plain.top.pearson, abs=1e-6)


def test_every_score_of_a_table_can_be_used(table: Table) -> None:
    """Judges that err more and more: each score orders them as planted."""
    rng = np.random.default_rng(3)
    elo = {"a": 1100.0, "b": 1000.0, "c": 900.0}
    rows = []
    for judge, chance in zip("jklmno", (0.95, 0.9, 0.85, 0.8, 0.7, 0.6), strict=True):
        for item in range(60):
            for x, y in (("a", "b"), ("b", "c"), ("a", "c")):
                right = rng.random(2) < chance
                rows.append((x, y, "first" if right[0] else "second", judge, f"i{item}"))
                rows.append((y, x, "second" if right[1] else "first", judge, f"i{item}"))
    found = consistency(table(rows), elo=elo)
    known = dict(zip("jklmno", (1300.0, 1280.0, 1270.0, 1260.0, 1200.0, 1100.0), strict=True))
    for score in ("consistency", "decisive", "corrected", "discrimination"):
        line = elo_from_consistency(found, known, score=score)
        assert line.all.spearman == pytest.approx(1.0)
        assert line.all.reliability is not None
        assert 0.8 < line.all.reliability < 1.0
        assert len(line.top.judges) == 4
    with pytest.raises(InputError, match="here are: "):
        elo_from_consistency(found, known, score="flips")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="elo has shape"):
        elo_from_scores(NAMES, SCORES, ELO[1:])
