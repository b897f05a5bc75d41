"""Ratings from pairs held against accuracy: by kind of pair, of graders, and under the accuracy filter."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.reports.test_grades import make_grades, of
from venire.arena.battles import Battles, Grades
from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.ratings.agreement.reference import agreement
from venire.ratings.data.judgments import merge_orders, select_battles
from venire.ratings.diagnostics.accuracy import PAIR_KINDS
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import rate
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.components import ranked_values
from venire.render.sections import show
from venire.reports.board.board import Board, with_grades
from venire.reports.board.build import build
from venire.reports.comparison import compare
from venire.reports.grade_sections import grade_sections
from venire.reports.graded_pairs import completion_grades, kinds_of_pairs
from venire.reports.grades import RankAgreement, grade_board
from venire.reports.rank_agreement import with_rank_agreement

Table = Callable[..., Battles]
MODELS = "abcdef"


def answers(seed: int = 0, instructions: int = 60) -> dict[str, list[int]]:
    """Grades of six models, a the most often right; f often does not attempt."""
    rng = np.random.default_rng(seed)
    right = {name: [int(x) for x in rng.random(instructions) < 0.8 - 0.12 * n] for n, name in enumerate(MODELS)}
    return right | {"f": [2 if n % 5 == 0 else grade for n, grade in enumerate(right["f"])]}


def judged(
    table: Table, grades: dict[str, list[int]], seed: int = 1, *, taste: float = 0.0, judges: Sequence[str] = ("j",)
) -> Battles:
    """All pairs by judges who mostly see who is right, and else follow `taste`: above 0 it is for earlier models."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(len(grades["a"])):
        for one, other in ((a, b) for a in MODELS for b in MODELS if a < b):
            lead = 2.0 * ((grades[one][item] == 1) - (grades[other][item] == 1))
            for judge in judges:
                better = lead + (taste if lead == 0 else 0.0) + rng.logistic(0.0, 1.0) > 0
                rows.append((one, other, "first" if better else "second", judge, f"q{item}"))
    return table(rows)


def board(battles: Battles, grades: Grades, *, baseline: float | Sequence[float] = 0.0, **options: Any) -> Board:
    given = Options(**options)
    made = build(battles, origins=[Origin.RECORDED], options=given)
    graded = with_grades(made, grade_board(grades, verdicts="recorded", level=given.level))
    return with_rank_agreement(graded, grades, battles, given, accuracy_baseline=baseline)


def found(made: Board) -> RankAgreement:
    assert made.grades is not None
    assert made.grades.agreement is not None
    return made.grades.agreement


def test_each_kind_of_pair_is_rated_alone_and_held_against_accuracy(table: Table) -> None:
    grades = answers()
    battles = judged(table, grades, taste=-0.4)
    made = board(battles, make_grades(of("t", "direct-reference", **grades)))
    whole, *kinds = found(made).rows
    assert (whole.ratings, whole.share, whole.models) == ("all pairs", 1.0, 6)
    assert [row.ratings for row in kinds] == list(PAIR_KINDS)
    assert [row.judgments for row in kinds] == [
        sum(
            kind == ("unattempted" if 2 in (x, y) else "discriminative" if x != y else "non-discriminative")
            for a in MODELS
            for b in MODELS
            if a < b
            for x, y in zip(grades[a], grades[b], strict=True)
        )
        for kind in PAIR_KINDS
    ]
    assert whole.judgments == sum(row.judgments or 0 for row in kinds) == 15 * 60
    right, alike = kinds[0], kinds[1]
    assert right.kendall is not None
    assert alike.kendall is not None
    assert right.kendall > 0.7 > 0 > alike.kendall  # its taste is for the models that are less often right
    lo, hi = right.intervals["spearman"]
    assert lo < (right.spearman or 0.0) < hi
    accuracy = made.grades.accuracy.accuracy if made.grades and made.grades.accuracy else {}
    elo = {row.model: row.elo for row in made.models if row.elo is not None}
    expected = agreement(elo, accuracy)
    assert (whole.kendall, whole.pearson) == pytest.approx((expected.kendall, expected.pearson))
    assert whole.distance == pytest.approx((1 - (whole.kendall or 0.0)) / 2)
    assert found(made).ungraded == 0.0


def test_the_method_and_options_of_the_board_are_those_of_each_kind(table: Table) -> None:
    grades = answers()
    battles = judged(table, grades)
    kinds = kinds_of_pairs(make_grades(of("t", "direct", **grades)), "direct", battles)
    made = board(battles, make_grades(of("t", "direct", **grades)), ridge=30.0)
    rated = bradley_terry(merge_orders(select_battles(battles, kinds == 0)).comparisons(), ridge=30.0)
    accuracy = made.grades.accuracy.accuracy if made.grades and made.grades.accuracy else {}
    expected = agreement(dict(zip(rated.models, rated.elo.tolist(), strict=True)), accuracy)
    assert found(made).rows[1].pearson == pytest.approx(expected.pearson)


def test_of_several_grades_of_an_answer_the_most_frequent_counts() -> None:
    rows = of("x", "direct", a=[1, 1, 2]) + of("y", "direct", a=[1, 0, 2]) + of("z", "direct", a=[0, None, 2], b=[1])
    assert completion_grades(make_grades(rows), "direct").tolist() == [[1, -1, 2], [1, -1, -1]]


def test_pairs_with_an_answer_that_was_not_graded_are_of_no_kind(table: Table) -> None:
    battles = table([("a", "b", "first", "j", "q0"), ("a", "c", "first", "j", "q0"), ("a", "b", "first", "j", "q9")])
    grades = make_grades(of("t", "direct", a=[1], b=[0]))
    assert kinds_of_pairs(grades, "direct", battles).tolist() == [0, -1, -1]
    unnamed = table([("a", "b", "first")], named=False)
    assert kinds_of_pairs(grades, "direct", unnamed).tolist() == [-1]


def test_graders_without_the_truth_are_held_against_it(table: Table) -> None:
    grades = answers()
    reversed_ = dict(zip(MODELS, reversed([grades[name] for name in MODELS]), strict=True))
    rows = of("t", "direct-reference", **grades) + of("good", "direct", **grades) + of("bad", "direct", **reversed_)
    lines = {row.ratings: row for row in found(board(judged(table, grades), make_grades(rows))).rows}
    assert lines["direct: good"].kendall == 1.0
    assert (lines["direct: bad"].kendall or 0.0) < -0.5
    assert (lines["direct: good"].judgments, lines["direct: good"].share) == (None, None)
    assert "direct" in lines
    assert "direct-reference" not in lines


def test_the_filter_names_who_falls_and_rates_the_rest(table: Table) -> None:
    grades = answers()
    battles = judged(table, grades)
    made = board(battles, make_grades(of("t", "direct", **grades)), baseline=0.3)
    (kept,) = found(made).filters
    assert set(kept.kept) | set(kept.dropped) == set(MODELS)
    assert "not above the baseline 0.3" in kept.dropped["f"]
    assert kept.agreement is not None
    assert kept.agreement.models == len(kept.kept) < 6
    assert kept.agreement.judgments == 60 * len(kept.kept) * (len(kept.kept) - 1) // 2
    (every,) = found(board(battles, make_grades(of("t", "direct", **grades)))).filters
    if not every.dropped:
        assert every.agreement is None
    with pytest.raises(InputError, match="accuracy baseline is 25"):
        board(battles, make_grades(of("t", "direct", **grades)), baseline=25)


def test_filters_stand_side_by_side_each_with_its_models_and_agreement(table: Table) -> None:
    grades = answers()
    battles, graded = judged(table, grades), make_grades(of("t", "direct", **grades))
    made = board(battles, graded, baseline=[0.0, 0.3, 0.5, 0.3])
    filters = found(made).filters
    assert [one.baseline for one in filters] == [0.0, 0.3, 0.5]
    for one in filters:
        (alone,) = found(board(battles, graded, baseline=one.baseline)).filters
        assert (one.kept, one.dropped) == (alone.kept, alone.dropped)
        figures = [(row.models, row.judgments, row.kendall) for row in (one.agreement, alone.agreement) if row]
        assert len(set(figures)) <= 1
    document = found(made).to_json()
    assert [one["baseline"] for one in document["filters"]] == [0.0, 0.3, 0.5]
    assert document["filter"] == document["filters"][0]
    assert "filters" not in found(board(battles, graded)).to_json()
    out = io.StringIO()
    assert made.grades is not None
    show(Console(file=out, width=130, markup=False), grade_sections(made.grades))
    rows = {line.partition("%")[0]: line.split() for line in out.getvalue().splitlines() if line.startswith("accuracy")}
    assert {name: row[5] for name, row in rows.items() if "filter" not in name} == {
        one.name.rstrip("%"): f"{len(one.kept)}" for one in filters if len(one.kept) > 3
    }


def test_a_kind_that_cannot_be_rated_together_says_why(table: Table) -> None:
    grades = {name: [int(n < 3 - MODELS.index(name) // 2) for n in range(3)] for name in MODELS}
    battles = judged(table, grades)
    made = board(battles, make_grades(of("t", "direct", **grades)))
    silent = found(made).rows[3]
    assert (silent.ratings, silent.judgments, silent.reason) == ("unattempted", 0, "there is no such pair")
    out = io.StringIO()
    assert made.grades is not None
    show(Console(file=out, width=130, markup=False), grade_sections(made.grades))
    assert "rank agreement with accuracy: unattempted:" in out.getvalue()
    json.dumps(made.to_json(), allow_nan=False)


@pytest.mark.parametrize(("width", "wide"), [(80, False), (130, True)])
def test_the_table_fits_its_terminal(table: Table, width: int, wide: bool) -> None:
    grades = answers()
    judges = ("gpt-3.5-turbo-1106", "claude-3-opus")
    made = board(judged(table, grades, judges=judges), make_grades(of("t", "direct", **grades)), baseline=0.3)
    out = io.StringIO()
    assert made.grades is not None
    show(Console(file=out, width=width, markup=False), grade_sections(made.grades))
    text = out.getvalue()
    assert "Rank agreement with accuracy" in text
    assert "non-discriminative" in text
    assert "Rank agreement by judge" in text
    assert ("Pearson  " in text) is wide
    assert all(len(line) <= width for line in text.splitlines())
    assert "drops f: accuracy" in text


def test_each_method_of_a_comparison_is_held_against_what_is_known_by_its_own_ratings(table: Table) -> None:
    """Few battles, unevenly spread: shares of wins and Bradley-Terry give other orders."""
    rng = np.random.default_rng(4)
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f"), ("a", "f"), ("a", "d")]
    rows = [(*pairs[rng.integers(7)], "first" if rng.random() < 0.6 else "second", "j", f"q{n}") for n in range(140)]
    battles = table(rows)
    known = {name: float(-n) for n, name in enumerate(MODELS)}
    methods = ("bradley-terry", "win-rate")
    (met,) = compare(battles, methods, Options(), {"reference": ("a file", known)}).agreements
    expected = [agreement(ranked_values(rate(battles, name, Options())), known) for name in methods]
    assert met.kendall == tuple(one.kendall for one in expected)
    assert met.kendall[0] != met.kendall[1]
    assert met.lo == tuple(one.intervals["kendall"][0] for one in expected)
    assert met.spearman == tuple(one.spearman for one in expected)
    assert (met.name, met.source, met.models) == ("reference", "a file", (6, 6))
