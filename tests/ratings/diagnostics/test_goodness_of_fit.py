"""A misfit is told from chance, also where many rows share an instruction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, norm

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.diagnostics.goodness_of_fit import goodness_of_fit
from venire.ratings.pairwise.bradley_terry import bradley_terry


def table(seed: int, *, models: int = 6, instructions: int = 50, copies: int = 1, odd: float = 0.0) -> Comparisons:
    """All pairs on every instruction, each verdict `copies` times over; `odd` logits on the first pair."""
    rng = np.random.default_rng(seed)
    one, two = np.triu_indices(models, 1)
    gap = 0.3 * (two - one).astype(float)
    gap[0] += odd
    won = rng.random((instructions, len(one))) < 1.0 / (1.0 + np.exp(-gap))
    a, b = (np.repeat(np.tile(side, instructions), copies) for side in (one, two))
    cluster = np.repeat(np.arange(instructions), len(one) * copies)
    return comparisons(a, b, np.repeat(won.ravel(), copies).astype(float), cluster=cluster)


def test_the_plain_test_is_reproduced_and_the_clustered_one_agrees_where_rows_are_independent() -> None:
    data = table(1, instructions=400)
    found = goodness_of_fit(data, bradley_terry(data), draws=400)
    ratings = bradley_terry(data).logits
    total = chi = 0.0
    for one in range(6):
        for two in range(one + 1, 6):
            y = data.y[(data.a == one) & (data.b == two)]
            p = 1.0 / (1.0 + np.exp(ratings[two] - ratings[one]))
            chi += (y.sum() - len(y) * p) ** 2 / (len(y) * p * (1 - p))
            total += (y.sum() - len(y) * p) ** 2 / len(y)
    assert (found.pairs, found.degrees) == (15, 10)
    assert found.naive_p == pytest.approx(float(chi2.sf(chi, 10)), abs=1e-9)
    assert found.raw == pytest.approx(np.sqrt(total / len(data)))
    assert found.p_value == pytest.approx(found.naive_p, abs=0.12)


def test_verdicts_repeated_by_many_judges_are_no_misfit_although_the_plain_test_says_so() -> None:
    found = [goodness_of_fit(data, bradley_terry(data), draws=199) for data in (table(s, copies=6) for s in range(12))]
    assert sum(one.naive_p < 0.01 for one in found) >= 10
    assert sum(one.p_value < 0.05 for one in found) <= 2


def test_an_odd_pair_is_named_and_its_size_told() -> None:
    data = table(3, instructions=300, odd=-1.5)
    found = goodness_of_fit(data, bradley_terry(data), draws=199)
    assert found.p_value == pytest.approx(1 / 200)
    worst = found.worst[0]
    assert worst.models == ("0", "1")
    assert worst.p_value < 1e-6
    for pair in found.worst:
        assert pair.p_value == pytest.approx(min(1.0, 2 * norm.sf(abs(pair.z)) * 15))
    assert worst.share == pytest.approx(data.y[(data.a == 0) & (data.b == 1)].mean())
    assert worst.expected - worst.share > 0.15
    assert 0.05 < found.misfit < found.raw


def test_a_pair_of_which_all_is_known_beforehand_is_not_odd_for_being_unanimous() -> None:
    words = [("a", "b")] * 20 + [("b", "c")] * 20 + [("a", "c")] * 20
    y = ([1.0] * 18 + [0.0] * 2) * 2 + [1.0] * 20
    data = comparisons(*zip(*words, strict=True), y)
    found = {one.models: one for one in goodness_of_fit(data, bradley_terry(data), draws=20).worst}
    unanimous = found["a", "c"]
    assert unanimous.share == 1.0
    assert unanimous.expected == pytest.approx(0.98, abs=0.02)
    assert abs(unanimous.z) < 1.0


def test_weights_of_zero_change_nothing_and_scale_does_not_matter() -> None:
    data = table(4)
    base = goodness_of_fit(data, bradley_terry(data), draws=50)
    names = list(data.models)
    rows = [names[code] for code in data.a] + ["0"], [names[code] for code in data.b] + ["5"]
    heavy = comparisons(*rows, [*data.y, 1.0], weight=[1e12] * len(data) + [0.0], cluster=[*data.cluster.tolist(), 99])  # type: ignore[union-attr]
    found = goodness_of_fit(heavy, bradley_terry(heavy), draws=50)
    assert found.misfit == pytest.approx(base.misfit, abs=1e-6)
    assert found.p_value == base.p_value


def test_a_tree_of_pairs_is_refused_since_nothing_can_contradict_it() -> None:
    star = comparisons(["a", "a", "a", "b"], ["b", "c", "c", "a"], [1, 0, 1, 1])
    with pytest.raises(InputError, match="fit as many exactly"):
        goodness_of_fit(star, bradley_terry(star))


def test_only_models_with_a_rating_are_looked_at() -> None:
    data = table(5)
    wider = Comparisons((*data.models, "absent"), data.a, data.b, data.y, None, data.cluster, data.clusters)
    found = goodness_of_fit(wider, bradley_terry(wider), draws=20)
    assert found.pairs == 15
