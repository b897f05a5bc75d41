"""The part of a board that comes from grades of single completions."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from venire.arena.battles import Grades
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.render.sections import show
from venire.reports.grade_sections import grade_sections
from venire.reports.grades import GradeBoard, grade_board

Row = tuple[str, str, str, str, int | None]


def make_grades(rows: Iterable[Row], categories: dict[str, str] | None = None) -> Grades:
    """Grades from rows of judge, protocol, model, instruction and label; None is a reply that was not read."""
    full = list(rows)
    asked = sorted({(row[0], row[1]) for row in full})
    models, instructions = (sorted({row[place] for row in full}) for place in (2, 3))

    def codes(names: list[Any], values: Iterable[Any]) -> Any:
        return np.array([names.index(value) for value in values], dtype=np.int32)

    return Grades(
        models=tuple(models),
        judges=tuple(judge for judge, _ in asked),
        protocols=tuple(protocol for _, protocol in asked),
        instructions=tuple(instructions),
        categories=tuple((categories or {}).get(name, "") for name in instructions),
        model=codes(models, (row[2] for row in full)),
        judge=codes(asked, (row[:2] for row in full)),
        instruction=codes(instructions, (row[3] for row in full)),
        repeat=np.ones(len(full), dtype=np.int32),
        status=np.array([Status.UNREADABLE if row[4] is None else Status.OK for row in full], dtype=np.int8),
        label=np.array([row[4] or 0 for row in full], dtype=np.int8),
    )


def of(judge: str, protocol: str, **labels: list[int | None]) -> list[Row]:
    """Rows of one judge: the labels of each model on instructions q0, q1 and so on."""
    return [
        (judge, protocol, model, f"q{n}", label) for model, those in labels.items() for n, label in enumerate(those)
    ]


def board(grades: Grades, **options: Any) -> GradeBoard:
    return grade_board(grades, verdicts="recorded", campaigns=["c"], **options)


def shown(found: GradeBoard, width: int = 130) -> str:
    out = io.StringIO()
    show(Console(file=out, width=width, markup=False, highlight=False), grade_sections(found))
    return out.getvalue()


def test_accuracy_is_among_attempted_answers_and_the_rest_is_counted_apart() -> None:
    found = board(make_grades(of("j", "direct", oak=[1, 1, 0, 2, 2, None], elm=[0, 0, 0, 0, 0, 1])))
    (table,) = found.tables
    oak, elm = table.models
    assert (oak.model, elm.model) == ("oak", "elm")
    assert oak.accuracy == pytest.approx(2 / 3)
    assert (oak.correct, oak.attempted, oak.graded, oak.unparsed) == (2, 3, 5, 1)
    assert oak.not_attempted == pytest.approx(2 / 5)
    assert oak.parse_rate == pytest.approx(5 / 6)
    assert (elm.accuracy, elm.not_attempted) == (pytest.approx(1 / 6), 0.0)
    assert None not in (oak.lo, oak.hi, elm.lo, elm.hi)
    assert table.instructions == 6
    assert table.categories == ()
    text = shown(found)
    assert "Accuracy   direct   verdicts: recorded" in text
    assert [line.split()[1:3] for line in text.splitlines()[2:4]] == [["oak", "66.7%"], ["elm", "16.7%"]]
    assert "without reference answers" in text


def test_grades_against_reference_answers_come_first() -> None:
    rows = of("a", "direct", oak=[0], elm=[1]) + of("z", "direct-reference", oak=[1], elm=[0])
    found = board(make_grades([*rows, *of("e", "echo", oak=[1], elm=[1])]))
    assert [table.protocol for table in found.tables] == ["direct-reference", "direct"]
    assert found.accuracy is not None
    assert found.accuracy.accuracy == {"oak": 1.0, "elm": 0.0}
    assert [(row.judge, row.protocol, row.yes) for row in found.graders] == [
        ("a", "direct", 0.5),
        ("e", "echo", 1.0),
        ("z", "direct-reference", 0.5),
    ]


def test_a_model_of_which_nothing_is_known_has_no_accuracy() -> None:
    found = board(make_grades(of("j", "direct", oak=[2, 2], elm=[None, None], ash=[0, 1])))
    assert [(row.model, row.accuracy) for row in found.tables[0].models] == [("ash", 0.5), ("elm", None), ("oak", None)]
    assert found.tables[0].models[1].unparsed == 2
    assert "none" in shown(found)
    json.dumps(found.to_json(), allow_nan=False)


def test_categories_have_their_own_accuracy_where_there_are_several() -> None:
    rows = of("j", "direct", oak=[1, 1, 0, 0], elm=[1, 0, 2, 2])
    kinds = {"q0": "maths", "q1": "maths", "q2": "law", "q3": "law"}
    table = board(make_grades(rows, kinds)).tables[0]
    assert table.categories == ("law", "maths")
    by_model = {row.model: row.categories for row in table.models}
    assert (by_model["oak"]["maths"].share, by_model["oak"]["law"].share) == (1.0, 0.0)
    assert (by_model["elm"]["maths"].share, by_model["elm"]["law"].share) == (0.5, None)
    assert by_model["oak"]["maths"].rows == 2
    text = shown(board(make_grades(rows, kinds)))
    assert "Accuracy by category" in text
    assert "100% (" in text
    same = board(make_grades(rows, dict.fromkeys(kinds, "maths")))
    assert "categories" not in same.to_json()["accuracy"][0]["models"][0]


def test_many_categories_are_broken_into_tables_that_fit() -> None:
    rows = of("j", "direct", oak=[1, 0] * 12)
    text = shown(board(make_grades(rows, {f"q{n}": f"category {n // 2}" for n in range(24)})), width=80)
    assert all(f"category {n}" in text for n in range(12))
    assert all(len(line) <= 80 for line in text.splitlines() if "category" in line)


def test_grades_of_five_judges_who_differ_are_about_other_judges_too() -> None:
    shares = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
    rows = [
        row for judge, n in shares.items() for row in of(judge, "direct", oak=([1] * n + [0] * (6 - n)) * 5, elm=[1, 0])
    ]
    grades = replace(make_grades(rows), clustering="crossed")
    both, these = board(grades), board(replace(grades, clustering="cluster"))
    four = board(replace(make_grades([row for row in rows if row[0] != "e"]), clustering="crossed"))
    wide, narrow = (next(row for row in one.tables[0].models if row.model == "oak") for one in (both, these))
    assert wide.accuracy == narrow.accuracy
    assert wide.lo is not None
    assert wide.hi is not None
    assert narrow.lo is not None
    assert narrow.hi is not None
    assert wide.hi - wide.lo > 2.0 * (narrow.hi - narrow.lo)
    said = [one.to_json()["accuracy"][0]["estimand"] for one in (both, these, four)]
    assert said == [
        "other instructions and other judges like these",
        "other instructions; these judges only",
        "other instructions; these judges only",
    ]
    assert "over 30 instructions and 5 judges" in shown(both)


def test_answers_to_one_instruction_are_one_cluster_unless_rows_are_independent() -> None:
    rows = [row for judge in "abc" for row in of(judge, "direct", oak=[1, 1, 0, 1, 0, 1, 1, 1])]
    grades = make_grades(rows)
    by_instruction, by_row = board(grades), board(replace(grades, clustering="none"))
    widths = [one.tables[0].models[0].hi - one.tables[0].models[0].lo for one in (by_instruction, by_row)]  # type: ignore[operator]  # both known
    assert widths[0] > 1.5 * widths[1]
    assert (by_instruction.cluster, by_row.cluster) == ("instructions", "none")
    assert "answers as independent" in shown(by_row)
    wide = board(grades, level=0.99).tables[0].models[0]
    assert wide.lo is not None
    assert wide.lo < (by_instruction.tables[0].models[0].lo or 0.0)
    with pytest.raises(InputError, match="level is 95"):
        board(grades, level=95)


def test_rows_are_flat_and_alike() -> None:
    rows = of("a", "direct", oak=[0], elm=[1]) + of("z", "direct-reference", oak=[1], elm=[0])
    flat = board(make_grades(rows)).rows()
    assert [(row["protocol"], row["model"]) for row in flat] == [
        ("direct-reference", "oak"),
        ("direct-reference", "elm"),
        ("direct", "elm"),
        ("direct", "oak"),
    ]
    assert len({tuple(row) for row in flat}) == 1
