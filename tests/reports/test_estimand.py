"""What intervals are about: said by what errors were clustered by, and the same on every road."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venire.arena.records import Origin
from venire.arena.registry import METHODS
from venire.pages.report_page import report_html, report_markdown
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import rate as rated_by
from venire.reports.board.board import Board
from venire.reports.board.rate import rate, read
from venire.reports.board.source import verdict_source
from venire.reports.documents.report import report_document
from venire.reports.markdown import markdown
from venire.reports.sections import Section

THESE, OTHER = "other instructions; these judges only", "other instructions and other judges like these"


@cache
def votes(respondents: int, *, pairs: int = 10, misfit: float = 0.0) -> dict[str, list[Any]]:
    """Votes of so many people, who differ, on `pairs` of five models; some pairs depart from any ratings."""
    rng = np.random.default_rng(respondents)
    first, second = (side[:pairs] for side in np.triu_indices(5, 1))
    count = 12 * respondents * len(first)
    a, b = (np.tile(side, 12 * respondents) for side in (first, second))
    taste = rng.normal(size=(respondents, 5)) - 0.4 * np.arange(5)
    who, asked = rng.integers(0, respondents, count), rng.integers(0, 30, count)
    won = rng.random(count) < 1.0 / (1.0 + np.exp(taste[who, b] - taste[who, a] + misfit * (-1.0) ** (a + b)))
    return {
        "model_a": [f"m{code}" for code in a],
        "model_b": [f"m{code}" for code in b],
        "winner": ["model_a" if one else "model_b" for one in won],
        "annotator": [f"p{code:02}" for code in who],
        "instruction_id": [f"i{code:02}" for code in asked],
        "repeat": list(range(1, count + 1)),
    }


def width(board: Board) -> float:
    """The mean width of intervals."""
    return float(np.mean([row.hi - row.lo for row in board.models if row.hi is not None and row.lo is not None]))


def facts(board: Board) -> dict[str, Any]:
    """The diagnostics of a board's document."""
    found: dict[str, Any] = board.to_json()["diagnostics"]
    return found


def test_five_respondents_are_crossed_and_fewer_are_these_alone() -> None:
    few, many = facts(rate(votes(3))), facts(rate(votes(6)))
    assert (few["errors"], few["cluster"], few["estimand"]) == ("cluster", "instructions", THESE)
    assert (many["errors"], many["cluster"], many["estimand"]) == ("two-way", "instructions and judges", OTHER)
    assert many["degrees"] == 5.0


@pytest.mark.parametrize(
    ("cluster", "errors", "estimand"),
    [
        ("instruction_id", "cluster", THESE),
        ("annotator", "cluster", "other judges like these; these instructions only"),
        ("judge", "cluster", "other judges like these; these instructions only"),
        ("none", "sandwich", "other battles; these judges only"),
    ],
)
def test_a_named_cluster_is_the_only_one(cluster: str, errors: str, estimand: str) -> None:
    found = facts(rate(votes(6), cluster=cluster))
    assert (found["errors"], found["estimand"]) == (errors, estimand)


def test_ratings_do_not_depend_on_what_is_clustered() -> None:
    crossed, alone = rate(votes(6)), rate(votes(6), cluster="none")
    assert [row.elo for row in crossed.models] == pytest.approx([row.elo for row in alone.models])
    assert width(crossed) > 1.2 * width(alone), "these people differ"


def test_respondents_are_called_as_they_are() -> None:
    assert facts(rate(votes(3), origin=Origin.PEOPLE))["estimand"] == "other instructions; these people only"
    lone = {name: list(column) for name, column in votes(3).items() if name != "annotator"}
    assert facts(rate(lone))["estimand"] == "other instructions; this judge only"


def test_replicates_are_of_instructions_alone() -> None:
    found = facts(rate(votes(6), options=Options(replicates=20)))
    assert (found["errors"], found["estimand"]) == ("bootstrap over 30 instructions", THESE)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_with_errors_by_formula_crosses_respondents(method: str) -> None:
    given, needs = votes(6), METHODS[method].needs
    scores = [2.0 * (one == "model_a") - 1.0 for one in given["winner"]]
    table: dict[str, list[Any]] = {**given, "human_winner": given["winner"], "score_difference": scores}
    if "ballots" in needs:
        rng, orders = np.random.default_rng(1), 40
        places = np.concatenate([rng.permutation(4) + 1 for _ in range(orders)]).tolist()
        who, asked = ([f"{row % size}" for row in range(orders) for _ in "abcd"] for size in (8, 10))
        table = {"judge": who, "instruction_id": asked, "model": [*"abcd"] * orders, "rank": places}
    options = Options(covariates=("extra",)) if method == "covariates" else Options()
    table |= (
        {"extra_a": [row % 3 for row in given["repeat"]], "extra_b": [1] * len(scores)}
        if method == "covariates"
        else {}
    )
    errors = rated_by(read(verdict_source(table), options.covariates).battles, method, options).ratings.errors
    by_formula = "errors" in METHODS[method].options or method in ("even-pairs", "win-rate", "win-rate-balanced")
    assert errors == ("two-way" if by_formula else "none")


def test_it_stands_beside_the_intervals_on_terminal_and_report(tmp_path: Path) -> None:
    columns, path = votes(6), tmp_path / "votes.csv"
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *rows]), encoding="utf-8")
    assert f"95 % intervals: {OTHER}" in markdown([Section("", "", list(rate(path).sections()))])
    document = report_document(verdict_source(path))
    for text in (report_markdown(document), report_html(document)):
        assert f"95% intervals: {OTHER}" in text


def test_lack_of_fit_is_named_and_left_out_of_given_pairs() -> None:
    uneven, errors = votes(3, pairs=7, misfit=1.5), "sandwich"
    all_pairs = rate(uneven, options=Options(errors=errors))
    given = rate(uneven, options=Options(errors=errors, pairs="given"))
    assert facts(all_pairs)["errors"] == "sandwich, with lack of fit between pairs"
    assert facts(all_pairs)["estimand"].endswith("all pairs, asked or not")
    assert facts(given)["errors"] == "sandwich"
    assert facts(given)["estimand"].endswith("these pairs only")
    assert width(given) < width(all_pairs)
