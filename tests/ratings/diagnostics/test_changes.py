"""Changes of ratings between two tables: errors against matrices written out by hand, and who is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit

from venire.arena.errors import InputError
from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.diagnostics.changes import rating_changes
from venire.ratings.diagnostics.influence import first_order_effects

PAIRS = np.array(list(combinations(range(5), 2)))
NOBODY: Mapping[int, float] = {}


def judged(
    seed: int, moved: Mapping[int, float] = NOBODY, *, instructions: int = 40, taste: int = 0, pairs: np.ndarray = PAIRS
) -> Comparisons:
    """Judgments of five models by `seed`, on the instructions whose taste is drawn by `taste`."""
    strength = np.linspace(-0.8, 0.8, 5) + np.array([moved.get(code, 0.0) for code in range(5)])
    helped = 0.8 * np.random.default_rng([1, taste]).normal(size=(5, instructions))
    a, b = np.repeat(pairs, instructions, axis=0).T
    item = np.tile(np.arange(instructions), len(pairs))
    p = expit(strength[a] - strength[b] + helped[a, item] - helped[b, item])
    y = (np.random.default_rng([2, seed]).random((3, len(p))) < p).mean(axis=0)
    return comparisons(a, b, y, models=list("abcde"), cluster=[f"{taste} {code}" for code in item])


def test_errors_are_the_sandwich_of_both_tables_paired_by_instruction() -> None:
    before, now = judged(1), judged(2)
    found = rating_changes(before, now)
    assert (found.clusters, found.shared) == ((40, 40), 40)
    scores = np.zeros((40, 5))
    for sign, one in zip((-1.0, 1.0), map(first_order_effects, (before, now)), strict=True):
        row = np.zeros((40, 5))
        np.add.at(row, (one.data.cluster, one.data.a), one.residuals)
        np.add.at(row, (one.data.cluster, one.data.b), -one.residuals)
        scores += sign * row @ one.bread
    covariance = scores.T @ scores * 40 / 39
    shares = _shares(covariance)
    weights = np.eye(5) - shares
    se = np.sqrt(np.diag(weights @ covariance @ weights.T))
    np.testing.assert_allclose([row.se for row in found.models], POINTS_PER_LOGIT * se, rtol=1e-3)
    assert all(row.reference for row in found.models)
    assert np.array([row.change for row in found.models]) @ shares == pytest.approx(0.0, abs=1e-6)
    assert all(row.now - row.before == pytest.approx(row.change) for row in found.models)


def _shares(covariance: np.ndarray) -> np.ndarray:
    """Precisions by quasi-variances, fitted to the variances of differences by least squares, as shares."""
    first, second = np.triu_indices(5, 1)
    design = np.eye(5)[first] + np.eye(5)[second]
    apart = np.eye(5)[first] - np.eye(5)[second]
    quasi = np.linalg.lstsq(design, np.diag(apart @ covariance @ apart.T), rcond=None)[0]
    return np.asarray((1.0 / quasi) / (1.0 / quasi).sum())


def test_one_that_changed_is_named_alone_and_the_others_stay_where_they_were() -> None:
    found = rating_changes(judged(3), judged(4, {1: 1.5}))
    assert [row.model for row in found.models if row.changed] == ["b"]
    assert [row.model for row in found.models if not row.reference] == ["b"]
    assert all(abs(row.change) < 60.0 for row in found.models if row.reference)
    (changed,) = [row for row in found.models if row.changed]
    assert changed.lo < POINTS_PER_LOGIT * 1.5 < changed.hi + 60.0


@pytest.mark.slow
def test_no_model_is_named_by_chance_more_often_than_said() -> None:
    """Of 60 tables judged anew, and of 60 where one model is somewhat better, at most few name one that is not."""
    for moved in (NOBODY, {2: 0.5}):
        named = 0
        for seed in range(60):
            tables = (
                judged(100 + seed, instructions=25, taste=seed),
                judged(200 + seed, moved, instructions=25, taste=seed),
            )
            named += any(row.changed and row.model != "c" * bool(moved) for row in rating_changes(*tables).models)
        assert named <= 7  # of 60 at 5 %: beyond 7 by chance once in a hundred


def test_instructions_in_both_tables_make_intervals_narrower() -> None:
    same, other = (rating_changes(judged(5), judged(6, taste=taste)) for taste in (0, 1))
    assert (same.shared, other.shared) == (40, 0)
    assert sum(row.se for row in same.models) < 0.8 * sum(row.se for row in other.models)


def test_other_pairs_have_wider_errors_by_the_lack_of_fit_between_pairs() -> None:
    rng = np.random.default_rng(3)
    effect = rng.normal(size=len(PAIRS))

    def with_effects(seed: int, kept: np.ndarray) -> Comparisons:
        data = judged(seed, pairs=PAIRS[kept])
        pull = np.repeat(effect[kept], 40)
        y = (rng.random((3, len(data))) < expit(pull)).mean(axis=0)
        return replace(data, y=y)

    some, others, every = np.arange(7), np.arange(3, 10), np.arange(10)
    apart = rating_changes(with_effects(1, some), with_effects(2, others))
    alike = rating_changes(with_effects(1, every), with_effects(2, every))
    assert min(row.se for row in apart.models) > 2.0 * max(row.se for row in alike.models)
    assert not any(row.changed for row in apart.models)


def test_the_same_verdicts_did_not_change_and_one_instruction_tells_nothing() -> None:
    data = judged(7)
    assert {(row.change, row.lo, row.hi, row.changed) for row in rating_changes(data, data).models} == {
        (0.0, 0.0, 0.0, False)
    }
    single = replace(data, cluster=np.zeros(len(data), dtype=np.int32), clusters=("q",))
    assert all(np.isnan(row.se) and not row.changed for row in rating_changes(single, data).models)


def test_of_two_models_both_are_named_and_tables_without_common_models_are_refused() -> None:
    pair = PAIRS[:1]
    found = rating_changes(judged(8, pairs=pair), judged(9, {0: 3.0}, pairs=pair))
    assert [row.changed for row in found.models] == [True, True]
    other = replace(judged(9), models=tuple("vwxyz"))
    with pytest.raises(InputError, match="no two models in common"):
        rating_changes(judged(8), other)


def test_from_five_judges_of_both_tables_errors_are_of_other_judges_too() -> None:
    rng = np.random.default_rng(4)
    tables = []
    for seed in (1, 2):
        data = judged(seed)
        judge = np.tile(np.arange(6, dtype=np.int32), len(data))
        rows = data.select(np.repeat(np.arange(len(data)), 6))
        rows = replace(rows, y=(rng.random(len(rows)) < rows.y).astype(float), judge=judge, judges=tuple("uvwxyz"))
        tables.append(rows)
    plain, crossed = rating_changes(*tables), rating_changes(*(replace(one, crossed=True) for one in tables))
    assert (plain.crossed, crossed.crossed) == (False, True)
    # Five degrees of freedom, where there are six judges: 2.57 standard errors to either side.
    assert all(
        (row.hi - row.lo) / row.se == pytest.approx(2 * 2.5706, rel=1e-3) for row in crossed.models if row.se > 0
    )
