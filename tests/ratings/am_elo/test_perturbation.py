"""Spoilt judges are spoilt as asked, the others are left alone, and draws do not hang on how a table is sorted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.ratings.am_elo.robustness import Perturbation, perturb
from venire.ratings.data.comparisons import Comparisons, comparisons

KINDS: tuple[Perturbation, ...] = ("random", "equal", "flip", "mixed")


def table(rows: int = 600, seed: int = 0, *, extras: bool = False) -> Comparisons:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 5, rows)
    b = (a + rng.integers(1, 5, rows)) % 5
    y = rng.choice([0.0, 0.25, 0.5, 1.0], rows)
    more = {"weight": rng.choice([0.5, 1.0], rows), "cluster": rng.integers(0, 4, rows)} if extras else {}
    return comparisons(a, b, y, judge=np.array(["zoe", "abe", "mia"])[rng.integers(0, 3, rows)], **more)


def content(data: Comparisons) -> Counter[Hashable]:
    """The rows by name with A before B, however they are sorted."""
    assert data.judge is not None
    found: Counter[Hashable] = Counter()
    for row in range(len(data)):
        sides, y = (data.models[data.a[row]], data.models[data.b[row]]), float(data.y[row])
        turned = (sides, y) if sides[0] < sides[1] else (sides[::-1], 1.0 - y)
        weight = 1.0 if data.weight is None else float(data.weight[row])
        cluster = "" if data.cluster is None else data.clusters[data.cluster[row]]
        found[turned, data.judges[data.judge[row]], weight, cluster] += 1
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_other_judges_stay_as_they_are_and_so_does_the_table_given(kind: Perturbation) -> None:
    data = table()
    before = data.y.copy()
    found = perturb(data, ["mia"], kind)
    spoilt = data.judge == data.judges.index("mia")
    assert np.array_equal(found.y[~spoilt], before[~spoilt])
    assert not np.array_equal(found.y[spoilt], before[spoilt])
    assert np.array_equal(data.y, before)
    assert (found.models, found.judges) == (data.models, data.judges)
    assert found.a is data.a


def test_each_kind_does_what_its_name_says() -> None:
    data = table(6000)
    everyone = data.judges
    assert np.array_equal(perturb(data, everyone, "flip").y, 1.0 - data.y)
    assert (perturb(data, everyone, "equal").y == 0.5).all()
    random, mixed = (perturb(data, everyone, kind, seed=1).y for kind in ("random", "mixed"))
    decided = data.y != 0.5
    for y, ties in ((random, 1 / 2), (mixed, 1 / 2 * 1 / 3 + 1 / 3)):
        assert (y[~decided] == 0.5).all()
        assert np.isin(y[decided], (0.0, 0.5, 0.75, 1.0)).all()
        other = y[decided] == 1.0 - data.y[decided]
        tied = y[decided] == 0.5
        assert (other | tied).all()
        # Four thousand verdicts: a share's standard error is below 0.008.
        assert tied.mean() == pytest.approx(ties, abs=0.03)


def test_the_same_seed_draws_the_same_and_another_another() -> None:
    data = table()
    one, again, other = (perturb(data, ["abe", "zoe"], "mixed", seed=seed).y for seed in (3, 3, 4))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS), st.booleans())
def test_draws_do_not_hang_on_rows_sides_names_codes_or_the_list_of_judges(
    seed: int, kind: Perturbation, extras: bool
) -> None:
    rng = np.random.default_rng(seed)
    data = table(80, seed, extras=extras)
    assert data.judge is not None
    order, turn = rng.permutation(len(data)), rng.random(len(data)) < 0.5
    names = np.array(data.models)
    a, b = names[data.a], names[data.b]
    again = comparisons(
        np.where(turn, b, a)[order],
        np.where(turn, a, b)[order],
        np.where(turn, 1.0 - data.y, data.y)[order],
        models=tuple(rng.permutation(names).tolist()),
        weight=None if data.weight is None else data.weight[order],
        cluster=None if data.cluster is None else np.array(data.clusters)[data.cluster][order],
        judge=np.array(data.judges)[data.judge][order],
    )
    one = perturb(data, ["zoe", "abe"], kind, seed=seed)
    assert content(one) == content(perturb(again, ["abe", "zoe", "abe"], kind, seed=seed))


def test_nobody_spoilt_is_nothing_changed() -> None:
    data = table()
    assert np.array_equal(perturb(data, [], "flip").y, data.y)


def test_what_is_not_possible_is_said() -> None:
    data = table()
    with pytest.raises(InputError, match=r"kind is 'shout'; .*here are: random, equal, flip, mixed"):
        perturb(data, ["abe"], "shout")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no judge is called 'eve'; the judges are abe, mia, zoe"):
        perturb(data, ["abe", "eve"], "flip")
    with pytest.raises(InputError, match="seed is -1"):
        perturb(data, ["abe"], "flip", seed=-1)
    with pytest.raises(InputError, match="name no judge"):
        perturb(comparisons([0], [1], [1.0]), [], "flip")
