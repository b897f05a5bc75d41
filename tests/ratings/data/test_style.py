"""What shows in a text, and differences of it."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from venire.arena.errors import InputError
from venire.ratings.data.comparisons import comparisons
from venire.ratings.data.style import (
    STYLE_NAMES,
    Style,
    relative_difference,
    same_family,
    style,
    style_covariates,
    unit_scale,
)
from venire.ratings.pairwise.covariates import covariates

BASELINE = "gpt4_1106_preview"


@pytest.mark.parametrize(
    ("text", "headers", "bold", "lists"),
    [
        ("", 0, 0, 0),
        ("# One\n## Two\n####### seven\n#none\n   ### three", 3, 0, 0),
        ("**a** and **b c** and __d__, not **e\nf**\n****", 0, 3, 0),
        ("- a\n* b\n+ c\n  12. d\n3) e\n-f\n4.5 g\n--- \n", 0, 0, 5),
        ("* **Point**: text", 0, 1, 1),
        ("```python\n# comment\n- x\n**kwargs and **more**\n```\n# Title", 1, 0, 0),
        ("````\n```\n# inside\n````\n# outside", 1, 0, 0),
        ("~~~\n# inside\n```\n# still\n~~~\n- out", 0, 0, 1),
        ("```\n# a block that never ends\n- x", 0, 0, 0),
        ("call `__init__` and `a ** b ** c`, then __this__", 0, 1, 0),
        ("**fett**\r\n# Ü\r\n- ä", 1, 1, 1),
    ],
)
def test_rules_by_example(text: str, headers: int, bold: int, lists: int) -> None:
    assert style(text) == Style(len(text), len(text.split()), headers, bold, lists)


@given(st.text(alphabet="#*_-`~ \n1.a)", max_size=60))
def test_any_text_has_counts_and_one_without_code_has_those_of_plain_patterns(text: str) -> None:
    found = style(text)
    assert min(found.characters, found.words, found.headers, found.bold, found.lists) >= 0
    if "`" not in text and "~" not in text:
        assert found.headers == len(re.findall(r"^ {0,}#{1,6} ", text, re.MULTILINE))
        assert found.bold == len(re.findall(r"\*\*[^*\n]+\*\*|__[^_\n]+__", text))
        assert found.lists == len(re.findall(r"^ *(?:[-*+]|\d{1,9}[.)]) ", text, re.MULTILINE))


@pytest.mark.parametrize("part", ["**a", "__a", "`a", "\n", " ", "1", "```\n", "* ", "#"])
def test_a_long_text_of_openings_takes_no_longer_than_any_other(part: str) -> None:
    start = time.process_time()
    style(part * (300_000 // len(part)))
    assert time.process_time() - start < 2.0


def test_relative_differences() -> None:
    assert relative_difference([3, 0, 0, 5], [1, 0, 2, 5]).tolist() == [0.5, 0.0, -1.0, 0.0]
    assert relative_difference([[2.0]], [[6.0]]).tolist() == [[-0.5]]
    for count, shown in ((-1, "-1.0"), (float("nan"), "nan"), (float("inf"), "inf")):
        with pytest.raises(InputError, match=f"b, row 1: {shown} is not possible"):
            relative_difference([1, 1], [2, count])


def test_columns_have_unit_deviation_about_zero_and_turn_sign_with_the_sides() -> None:
    a = ["# T\n- x\n- y", "plain words", "**b** text", ""]
    b = ["short", "# H\n**q** longer text of words", "other", ""]
    x, turned = style_covariates(a, b), style_covariates(b, a)
    assert x.shape == (4, len(STYLE_NAMES))
    assert np.sqrt(np.mean(x**2, axis=0)) == pytest.approx(np.ones(4))
    assert np.array_equal(x, -turned)
    # One row read from the other side changes its own sign alone.
    mixed = style_covariates([b[0], *a[1:]], [a[0], *b[1:]])
    assert mixed == pytest.approx(x * np.array([[-1], [1], [1], [1]]))
    assert x[3].tolist() == [0, 0, 0, 0]
    words = style_covariates(["one two three", "x"], ["four", "y"], length="words")
    assert words[:, 0] == pytest.approx([np.sqrt(2), 0.0])


def test_a_column_that_never_differs_stays_zero() -> None:
    scaled, spread = unit_scale(np.array([[0.0, 2.0], [0.0, -2.0]]))
    assert scaled.tolist() == [[0, 1], [0, -1]]
    assert spread.tolist() == [1, 2]
    assert style_covariates([], []).shape == (0, 4)


def test_own_family() -> None:
    judge = ["gpt", "gpt", "gpt", "gpt", None]
    assert same_family(judge, ["gpt", "x", "gpt", None, None], ["x", "gpt", "gpt", "x", None]).tolist() == [
        1,
        -1,
        0,
        0,
        0,
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: style_covariates(["a"], []), "1 texts for A and 0 for B"),
        (
            lambda: style_covariates(["a"], ["b"], length="tokens"),
            "length is 'tokens'; .*here are: characters, words",
        ),
        (lambda: same_family(["a"], [], ["b"]), "families of 1 judges, 0 and 1 answers"),
    ],
)
def test_bad_columns_are_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_the_same_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = sys.modules["venire.ratings.data.style"]
    seen: list[str] = []
    monkeypatch.setattr(module, "style", lambda text: seen.append(text) or style(text))
    style_covariates(["same"] * 50, ["other"] * 50)
    assert sorted(seen) == ["other", "same"]


@pytest.fixture(scope="module")
def alpaca(shared_data: Path) -> tuple[Any, ...]:
    """Columns of AlpacaEval: model, instruction, probability for it, its answer, the baseline's answer."""
    folder = shared_data / "alpaca_eval"
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT j.model, j.instruction_id, j.prob_model_beats_baseline, m.completion, b.completion "
            "FROM read_parquet($judged) j JOIN read_parquet($written) m USING (model, instruction_id) "
            "JOIN read_parquet($written) b ON b.model = $baseline AND b.instruction_id = j.instruction_id",
            {
                "judged": str(folder / "judgments.parquet"),
                "written": str(folder / "completions.parquet"),
                "baseline": BASELINE,
            },
        ).fetchall()
    return tuple(zip(*rows, strict=True))


def test_the_raw_effect_of_length_in_alpaca_eval(alpaca: tuple[Any, ...]) -> None:
    _, _, y, ours, theirs = alpaca
    ratio = [
        np.log(max(style(a).characters, 1) / max(style(b).characters, 1)) for a, b in zip(ours, theirs, strict=True)
    ]
    assert spearmanr(y, ratio).statistic == pytest.approx(0.4438, abs=1e-4)


@pytest.mark.slow
def test_alpaca_eval_with_length_accounted_for(alpaca: tuple[Any, ...], shared_data: Path) -> None:
    """Seen: 1.07 logits a deviation of length (error 0.09), log-likelihood -4713 to -4437; against people's Elo of nine
    systems Spearman 0.967 to 0.983, Kendall 0.889 to 0.944, but Pearson 0.990 to 0.968."""
    model, instruction, y, ours, theirs = alpaca
    data = comparisons(model, [BASELINE] * len(model), y, cluster=instruction)
    found = covariates(data, style_covariates(ours, theirs)[:, :1], ["length"])
    lo, hi = found.interval()
    assert 0.8 < lo[0] < 1.07 < hi[0] < 1.3
    assert found.log_likelihood - found.plain_log_likelihood > 250
    path = str(shared_data / "alpaca_eval" / "models.parquet")
    with duckdb.connect() as connection:
        people = dict(connection.execute("SELECT model, arena_elo_2024_02_02 FROM read_parquet(?)", [path]).fetchall())
    both = [code for code, name in enumerate(data.models) if people.get(name) is not None]
    reference = [people[data.models[code]] for code in both]
    assert len(both) == 9
    controlled, raw = (spearmanr(one.logits[both], reference).statistic for one in (found.ratings, found.plain))
    assert (raw, controlled) == pytest.approx((0.9667, 0.9833), abs=1e-4)
