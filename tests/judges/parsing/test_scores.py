"""Scores are read from one JSON object that is whole, and from nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.judges.parsing.scores import SCORE_RULES, ScoreRule, Scores, read_scores

NAMES = ("clarity", "fluency")
GOOD: dict[str, Any] = {"first": {"clarity": 7, "fluency": 10}, "second": {"clarity": 4, "fluency": 1},
                        "preference": "first"}  # fmt: skip
TEXT = json.dumps(GOOD)
READ = Scores(((7.0, 4.0), (10.0, 1.0)), 1)


def changed(side: str, **scores: object) -> str:
    return json.dumps({**GOOD, side: {**GOOD[side], **scores}})


@pytest.mark.parametrize("rule", SCORE_RULES, ids=lambda rule: rule.name)
def test_a_rule_reads_its_example(rule: ScoreRule) -> None:
    assert read_scores(rule.example, ["clarity"]) == (Scores(((7.0, 4.0),), 1), rule.name)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (TEXT, "json"),
        (f"  {json.dumps(GOOD, indent=2)}\n", "json"),
        (f"<think>{changed('first', clarity=1)}</think>\n{TEXT}", "json"),
        (f"```json\n{TEXT}\n```", "json-in-block"),
        (f"```\n{json.dumps(GOOD, indent=4)}\n```\nThe first is clearer.", "json-in-block"),
        (f"Here you are:\n```JSON\n{TEXT}\n```", "json-in-block"),
        (f"{TEXT}\n\nThe second scores 9 on nothing; 10/10 for the first.", "json-first"),
        (f"{TEXT} Because.", "json-first"),
        (f"{TEXT}\n{TEXT}", "json-first"),
        (f"My scores:\n\n{TEXT}", "json-last"),
    ],
)
def test_the_object_is_found_with_prose_around_it(text: str, rule: str) -> None:
    assert read_scores(text, NAMES) == (READ, rule)


def test_numbers_as_texts_and_half_steps_are_scores() -> None:
    text = changed("first", clarity="7", fluency=" 9.5 ").replace('"preference": "first"', '"preference": " Second"')
    assert read_scores(text, NAMES) == (Scores(((7.0, 4.0), (9.5, 1.0)), -1), "json")
    assert read_scores(changed("second", clarity=4.0), NAMES) == (READ, "json")


def test_what_else_the_object_holds_is_passed_over() -> None:
    text = json.dumps({**GOOD, "explanation": "The first 9, the second 3.", "overall": {"first": 1}})
    assert read_scores(text, NAMES) == (READ, "json")
    assert read_scores(changed("first", wit=99), NAMES) == (READ, "json")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7 8",
        "{}",
        "[]",
        "null",
        TEXT[:-1],
        TEXT[1:],
        TEXT.replace('"', "'"),
        json.dumps([GOOD]),
        changed("first", clarity=0),
        changed("first", clarity=11),
        changed("first", clarity=0.5),
        changed("first", clarity=10.5),
        changed("first", clarity=7.3),
        changed("first", clarity="7/10"),
        changed("first", clarity="seven"),
        changed("first", clarity="٧"),
        changed("first", clarity=True),
        changed("first", clarity=None),
        changed("first", clarity=[7]),
        changed("first", clarity={"score": 7}),
        changed("first", clarity=float("nan")),
        changed("first", clarity=float("inf")),
        changed("first", clarity=1e400),
        json.dumps({**GOOD, "first": {"clarity": 7}}),
        json.dumps({**GOOD, "first": [7, 10]}),
        json.dumps({"first": GOOD["first"], "second": GOOD["second"]}),
        json.dumps({"first": GOOD["first"], "preference": "first"}),
        *(json.dumps({**GOOD, "preference": wrong}) for wrong in ("1", "A", "", "neither", 1, None, True, ["first"])),
        TEXT.replace('"clarity": 7', '"clarity": 7, "clarity": 3'),
        f"{TEXT[:-1]}, \"preference\": \"second\"}}",
        f"{TEXT}\n{changed('first', clarity=1)}",
        f"```\n{TEXT}\n```\n```\n{changed('first', clarity=1)}\n```",
        f"```\n{TEXT}\n```\n{changed('first', clarity=1)}",
        f"The answer quotes {TEXT} and more",
        f"The form was {TEXT}",
        f"{{\n{TEXT}",
        f"<think>{TEXT}",
        f"<think>Hm.</think><think>{TEXT}",
        "{" * 100_000,
        '{"a":' * 100_000,
        "[" * 100_000,
        f'{TEXT[:-1]}, "notes": {"[" * 20_000}{"]" * 20_000}}}',
    ],
)  # fmt: skip
def test_what_is_not_one_whole_object_is_not_read(text: str) -> None:
    assert read_scores(text, NAMES) is None


@given(st.text(alphabet='{}[]":,17 \nfirstecondplay`', max_size=200))
def test_no_text_raises(text: str) -> None:
    assert read_scores(text, NAMES) is None
