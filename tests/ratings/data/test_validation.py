"""Labels: whatever form a column has, each row gets the code of its own name."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.ratings.agreement.calibration import calibration
from venire.ratings.am_elo.evaluation import evaluate
from venire.ratings.data import validation as coding
from venire.ratings.data.comparisons import comparisons
from venire.ratings.data.validation import code_integers, code_labels, column
from venire.ratings.pairwise.online import online_elo, trueskill
from venire.ratings.soft_elo.conformal import split_coverage
from venire.ratings.soft_elo.cross_validation import leave_one_out

FORMS: dict[str, Any] = {
    "list of shared strings": lambda names: [STORE.setdefault(name, name) for name in names],
    "list of strings of their own": lambda names: np.array(names).tolist(),
    "tuple": tuple,
    "objects": lambda names: np.array(names, dtype=object),
    "every second object": lambda names: np.array([name for name in names for _ in "ab"], dtype=object)[::2],
    "fixed width": np.array,
    "other byte order": lambda names: np.array(names).astype(np.array(names).dtype.newbyteorder()),
    "every second string": lambda names: np.array([name for name in names for _ in "ab"])[::2],
    "variable width": lambda names: np.array(names, dtype=np.dtypes.StringDType()),
    "categorical": lambda names: SimpleNamespace(
        codes=np.unique(names, return_inverse=True)[1].astype(np.int16), categories=sorted(set(names))
    ),
}
STORE: dict[str, str] = {}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=15)
@given(names=st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=9), min_size=1))
def test_each_row_gets_its_own_name_in_every_form(form: str, names: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coding, "_ROWS", 5)
        known, codes = code_labels("model_a", column("model_a", FORMS[form](names)))
    assert [known[code] for code in codes.tolist()] == names


@pytest.mark.parametrize("form", FORMS)
def test_more_names_than_fit_a_table_are_coded_too(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coding, "_NAMES", 10)
    names = [f"m{code % 300}" for code in range(3000)]
    known, codes = code_labels("model_a", column("model_a", FORMS[form](names)))
    assert [known[code] for code in codes.tolist()] == names


def test_names_that_differ_in_one_place_are_told_apart() -> None:
    names = ["a" * place + "b" + "a" * (20 - place) for place in range(20)] * 50
    known, codes = code_labels("model_a", np.array(names))
    assert [known[code] for code in codes.tolist()] == names
    assert len(known) == 20


def test_arrow_dictionaries_are_known_by_their_attributes() -> None:
    part = SimpleNamespace(indices=np.array([1, 0, 1]), dictionary=SimpleNamespace(to_pylist=lambda: ["x", "y"]))
    known, codes = code_labels("judge", column("judge", SimpleNamespace(combine_chunks=lambda: part)))
    assert [known[code] for code in codes.tolist()] == ["y", "x", "y"]
    with pytest.raises(InputError, match="judge, row 2: there is no name"):
        column("judge", SimpleNamespace(codes=np.array([0, 0, -1]), categories=["x"]))


@pytest.mark.parametrize("value", [None, 1, float("nan"), ["x"]])
@pytest.mark.parametrize("kind", ["list", "objects"])
def test_what_is_not_a_name_is_refused_by_row(value: Any, kind: str) -> None:
    values: Any = ["a", "b", value, "a"]
    if kind == "objects":
        values = np.empty(4, dtype=object)
        values[:] = ["a", "b", value, "a"]
    with pytest.raises(InputError, match="model_a, row 2: "):
        code_labels("model_a", column("model_a", values))


def test_numbers_with_a_fraction_are_no_names() -> None:
    with pytest.raises(InputError, match="cluster holds float64; give names, or integers"):
        code_labels("cluster", column("cluster", [1.0, 2.5]))
    with pytest.raises(InputError, match=r"cluster has shape \(2, 1\)"):
        column("cluster", np.zeros((2, 1)))


@given(codes=st.lists(st.integers(-5, 5000), max_size=60))
def test_integers_are_placed_among_those_that_occur(codes: list[int]) -> None:
    found, places = code_integers(np.array(codes, dtype=np.int64))
    assert found.tolist() == sorted(set(codes))
    assert [int(found[place]) for place in places] == codes


def test_integers_without_gaps_are_taken_as_they_are() -> None:
    codes = np.tile(np.arange(7, dtype=np.int32), 3)
    assert code_integers(codes)[1] is codes


DATA = comparisons(list("abcabc"), list("bcacab"), [1.0, 0.0, 0.5, 1.0, 0.0, 1.0])
SCORE = np.array([1.0, -1.0, 0.0, 2.0, -1.0, 1.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda **told: calibration([0.5, 0.4], [1.0, 0.0], **told),
        lambda **told: online_elo(DATA, **told),
        lambda **told: trueskill(DATA, **told),
        lambda **told: evaluate(DATA, lambda train, test: test.y, **told),
        lambda **told: split_coverage([1.0, 2.0], 1.0, [1000.0, 1010.0], **told),
        lambda **told: leave_one_out(DATA, SCORE, DATA.y, replicates=2, **told),
    ],
)
def test_a_negative_seed_is_refused_by_name(call: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="seed is -1; give a number that is not negative"):
        call(seed=-1)
