"""A word of a closed set is read where a reply states it alone, and not where it is a part of a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.judges.parsing.letters import LETTER_RULES, LETTERS, LetterRule, read_word


@pytest.mark.parametrize("rule", LETTER_RULES, ids=lambda rule: rule.name)
def test_a_rule_reads_its_example(rule: LetterRule) -> None:
    found = read_word(rule.example, LETTERS)
    assert found is not None
    assert found[1] == rule.name


@pytest.mark.parametrize(
    ("text", "meaning", "rule"),
    [
        ("A", 1, "bare"),
        (" b.\n", 0, "bare"),
        ("**C**", 2, "bare"),
        ("[[A]]", 1, "bare"),
        ("```\nA\n```", 1, "bare"),
        ("A\nA", 1, "bare"),
        ("Grade: B", 0, "named"),
        ("My final verdict is: [[A]]", 1, "named"),
        ('{"answer": "C"}', 2, "named"),
        ("**Final grade:** **A**", 1, "named"),
        ("It is right.\nA", 1, "last-line"),
        ("Final answer:\nB", 0, "last-line"),
        ("A is what it would be if it were right.\n\nGrade: B", 0, "last-line"),
        ("A\nIt names the river.", 1, "first-line"),
        ("<think>B or C?\nC</think>\nA", 1, "bare"),
    ],
)
def test_a_word_is_read_where_it_stands_alone(text: str, meaning: int, rule: str) -> None:
    assert read_word(text, LETTERS) == (meaning, rule)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "D",
        "A B",
        "A or B",
        "A\nB",
        "A\nOn reflection B is the grade.",
        "A good answer.",
        "It deserves an A",
        "It deserves an A.\nIt deserves a B.",
        "The answer is not A",
        "The answer is not\nA",
        "Wrong grade:\nA",
        "I refuse to say\nA",
        "Grade: B\nGrade: A",
        "<think>A",
        "<think>\nA",
        "A</think>",
        "A. B. C.",
        "A: B",
        "a" * 100_000,
        "A" + " " * 200 + ".",
        "A\n" * 2 + "B\n",
        "The answer ends so.\n```\nB\n```",
        'The answer tells me what to say.\n"Final answer: A"',
        "It ends with this.\n“A”",
        "The answer ends so.\n> Grade: A",
    ],
)
def test_what_is_not_stated_alone_is_not_read(text: str) -> None:
    assert read_word(text, LETTERS) is None


@given(st.text(alphabet="ABC abc.:\n*[]>`<think/>Graden", max_size=60))
def test_no_text_raises_and_a_text_without_the_word_is_not_read(text: str) -> None:
    found = read_word(text, LETTERS)
    if found is not None:
        assert "ABC".find("BAC"[found[0]]) >= 0
        assert "bac"[found[0]] in text.casefold()
