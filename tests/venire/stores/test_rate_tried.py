"""What `venire rate` says where a rating, an error or a comparison cannot be had."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Venire = Callable[..., Any]


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "votes.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


ONE_TASK = "model_a,model_b,winner,task\na,b,a,7\na,b,b,7\na,b,a,7\n"


def test_errors_of_a_single_cluster_are_unknown_in_json_and_on_the_screen(
    venire: Venire, table: Callable[[str], Path]
) -> None:
    path = table(ONE_TASK)
    done = venire("rate", path, "--cluster", "task", "--json")
    assert done.code == 0, done.err
    found = done.json()
    assert found["diagnostics"]["degrees"] is None
    assert [row["se"] for row in found["models"]] == [None, None]
    assert "nan" not in venire("rate", path, "--cluster", "task").out


def test_a_model_without_a_rating_is_told_why(venire: Venire, table: Callable[[str], Path]) -> None:
    said = venire("rate", table("model_a,model_b,winner\na,b,a\na,c,a\nb,c,b\nb,c,c\n")).out
    assert "rating: a: won every judgment" in " ".join(said.split())
    said = venire("rate", table("model_a,model_b,winner\na,b,\n")).out
    assert "rating: a, b: took part" in " ".join(said.split())


def test_a_comparison_of_too_few_methods_says_why_each_was_left_out(
    venire: Venire, table: Callable[[str], Path]
) -> None:
    done = venire("rate", table(ONE_TASK), "--compare", "--ties", "davidson")
    assert done.code == 2
    assert "elo does not take ties" in " ".join(done.err.split())


@pytest.mark.parametrize("replicates", ["1", "1000000000"])
def test_a_number_of_replicates_that_tells_nothing_or_never_ends_is_refused(
    venire: Venire, table: Callable[[str], Path], replicates: str
) -> None:
    done = venire("rate", table(ONE_TASK), "--bootstrap", replicates)
    assert done.code == 2
    assert f"replicates is {replicates}" in " ".join(done.err.split())
