"""Answers that echo, by model, and what judges of pairs make of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from tests.reports.test_grades import make_grades, of
from venire.arena.battles import Battles, Grades
from venire.arena.records import Origin
from venire.ratings.inference.options import Options
from venire.render.sections import show
from venire.reports.board.board import with_grades
from venire.reports.board.build import build
from venire.reports.echoes import with_echo_pairs
from venire.reports.grade_sections import grade_sections
from venire.reports.grades import EchoTable, GradeBoard, grade_board

Table = Callable[..., Battles]
ECHOES = {"a": [1, 1, 0, 0], "b": [0, 1, 0, 0], "c": [1, None, 0, 0]}


def grade_part(table: Table, rows: list[Any], grades: Grades, **options: Any) -> GradeBoard:
    given = Options(**options)
    battles = table(rows)
    made = with_grades(
        build(battles, origins=[Origin.RECORDED], options=given), grade_board(grades, verdicts="recorded")
    )
    found = with_echo_pairs(made, grades, battles, given).grades
    assert found is not None
    return found


def echo_of(found: GradeBoard) -> EchoTable:
    assert found.echo is not None
    return found.echo


def test_the_share_of_answers_that_echo_has_an_interval_by_model() -> None:
    echo = echo_of(grade_board(make_grades(of("e", "echo", **ECHOES)), verdicts="recorded"))
    assert [(row.model, row.share, row.graded, row.unparsed) for row in echo.models] == [
        ("a", 0.5, 4, 0),
        ("c", pytest.approx(1 / 3), 3, 1),
        ("b", 0.25, 4, 0),
    ]
    assert all(0.0 <= (row.lo or 0.0) < (row.share or 0.0) < (row.hi or 0.0) <= 1.0 for row in echo.models)
    assert echo.judges == ("e",)


def test_grades_of_echoes_alone_make_no_table_of_accuracy() -> None:
    found = grade_board(make_grades(of("e", "echo", **ECHOES)), verdicts="recorded")
    assert found.tables == ()
    assert found.accuracy is None
    assert grade_board(make_grades(of("t", "direct", a=[1])), verdicts="recorded").echo is None


def test_the_answer_that_does_not_echo_is_counted_where_one_does(table: Table) -> None:
    """q0: a and c echo, b does not; q1: a and b do, c is not known; q2: nobody does."""
    rows = [
        ("a", "b", "second", "j", "q0"),
        ("b", "c", "tie", "j", "q0"),
        ("a", "c", "first", "j", "q0"),
        ("a", "b", "first", "j", "q1"),
        ("b", "c", "first", "j", "q1"),
        ("a", "b", "second", "j", "q2"),
    ]
    accuracy = of("t", "direct", a=[1, 1, 1, 0], b=[0, 1, 1, 0], c=[0, 1, 1, 0])
    found = echo_of(grade_part(table, rows, make_grades([*of("e", "echo", **ECHOES), *accuracy])))
    whole, right, alike = found.pairs
    assert (whole.pairs, whole.judgments, whole.one_echoes) == ("all pairs", 5, pytest.approx(2 / 5))
    assert (whole.clean.share, whole.clean.rows) == (0.75, 2)  # b won once and tied once
    assert (right.pairs, right.judgments, right.clean.share) == ("discriminative", 2, 1.0)
    assert (alike.pairs, alike.judgments, alike.clean.share) == ("non-discriminative", 3, 0.5)


def test_a_table_of_echoes_is_shown_with_what_judges_preferred(table: Table) -> None:
    rows = [("a", "b", "second", "j", "q0"), ("a", "c", "first", "j", "q2")]
    found = grade_part(table, rows, make_grades(of("e", "echo", **ECHOES)))
    assert [row.pairs for row in echo_of(found).pairs] == ["all pairs"]  # no grades say which are discriminative
    out = io.StringIO()
    show(Console(file=out, width=80, markup=False), grade_sections(found))
    text = out.getvalue()
    assert "Echoes   verdicts: recorded" in text
    assert "Preference where one answer echoes   verdicts: recorded" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    json.dumps(found.to_json(), allow_nan=False)
