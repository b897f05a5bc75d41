"""An order is read where a reply states one, whole and once."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.judges.parsing.rankings import RANKING_RULES, RankingRule, read_ranking

ABC = ("A", "B", "C")
ACB = (0, 2, 1)


@pytest.mark.parametrize("rule", RANKING_RULES, ids=lambda rule: rule.name)
def test_a_rule_reads_its_example(rule: RankingRule) -> None:
    assert read_ranking(rule.example, ABC) == ((1, 0, 2), rule.name)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("A > C > B", "row"),
        ("A>C>B.", "row"),
        ("**A > C > B**", "row"),
        ("a > c > b", "row"),
        ("Answer A > Answer C > Answer B", "row"),
        ("Ranking: A > C > B", "row"),
        ("My final ranking is: A, C, B", "row"),
        ("Ranking (best to worst): **A** > **C** > **B**", "row"),
        ("[A > C > B]", "row"),
        ("```\nA > C > B\n```", "row"),
        ('["A", "C", "B"]', "json"),
        ('```json\n[\n  "A",\n  "C",\n  "B"\n]\n```', "json"),
        ('{"ranking": ["Answer A", "Answer C", "Answer B"]}', "json"),
        ("1. A\n2. C\n3. B", "column"),
        ("1) Answer A\n2) Answer C\n3) Answer B", "column"),
        ("Ranking:\n1. **A**\n2. **C**\n3. **B**", "column"),
        ("B is wrong.\nA > C > B", "last-row"),
        ("There are 3 faults:\n1. B lies.\nSo much for the faults.\n1. A\n2. C\n3. B", "last-column"),
        ("<think>B > A > C</think>A > C > B", "row"),
    ],
)
def test_an_order_is_read_in_the_usual_forms(text: str, rule: str) -> None:
    found = read_ranking(text, ABC)
    assert found == (ACB, rule)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A",
        "A, C, B",
        "A > C",
        "A > C > A",
        "A > C > B > A",
        "A > A > C > B",
        "A > C > D",
        "A > C = B",
        "A > (C, B)",
        "A ≥ C > B",
        "B < C < A",
        "A > C > B\nB > A > C",
        "B > A > C.\nA > C > B",
        "B > A > C.\n1. A\n2. C\n3. B",
        "A > C > B\nOn reflection:\nA > B > C",
        "A > C > B\nA > C > B",
        "I would not say\nA > C > B",
        "From worst to best:\nA > C > B",
        "From worst to best:\n1. A\n2. C\n3. B",
        "1. A\n2. C\n2. B",
        "1. A\n3. C\n2. B",
        "2. A\n3. C\n4. B",
        "1. A and B\n2. C",
        "1. A\n2. C\n3. B\n4. A",
        "1. A\n1. C\n1. B",
        '["A", "C"]',
        '["A", "C", "C"]',
        '["A", "C", null]',
        '[["A"], ["C"], ["B"]]',
        '{"worst_to_best": ["A", "C", "B"]}',
        '{"A": 1, "C": 2, "B": 3}',
        "Is it A > C > B?",
        "The order A > C > B is wrong",
        "<think>A > C > B",
        "<think>A > C > B</think>",
        "A > C > B</think>",
        "[" * 100_000,
        "1. " * 50_000,
        "> " * 50_000,
    ],
)
def test_what_is_no_whole_order_is_not_read(text: str) -> None:
    assert read_ranking(text, ABC) is None


def test_of_the_best_few_exactly_so_many_are_read() -> None:
    assert read_ranking("C > A", ABC, best=2) == ((2, 0), "row")
    assert read_ranking('["C", "A"]', ABC, best=2) == ((2, 0), "json")
    assert read_ranking("1. C\n2. A", ABC, best=2) == ((2, 0), "column")
    assert read_ranking("B", ABC, best=1) == ((1,), "row")
    for text in ("C", "C > A > B", "C > C", "C, A"):
        assert read_ranking(text, ABC, best=2) is None
    assert read_ranking("C > A > B", ABC, best=9) == ((2, 0, 1), "row")


def test_more_than_letters_are_numbers() -> None:
    labels = [str(number) for number in range(1, 28)]
    order = [*labels[5:], *labels[:5]]
    wanted = (*range(5, 27), *range(5))
    assert read_ranking(" > ".join(order), labels) == (wanted, "row")
    assert read_ranking(json.dumps([int(one) for one in order]), labels) == (wanted, "json")
    assert read_ranking("\n".join(f"{place}. {one}" for place, one in enumerate(order, 1)), labels) == (
        wanted,
        "column",
    )


def test_every_permutation_is_read_as_itself_in_every_form() -> None:
    for order in itertools.permutations(range(4)):
        named = ["ABCD"[place] for place in order]
        column = "\n".join(f"{place}. {one}" for place, one in enumerate(named, 1))
        for text in (" > ".join(named), json.dumps(named), column, f"So it is.\n{column}"):
            assert read_ranking(text, "ABCD")[:1] == (order,)  # type: ignore[index]


@given(st.text(alphabet='ABC>,.123 \n[]"{}:*<think/>', max_size=60))
def test_no_text_raises_and_what_is_read_is_a_permutation(text: str) -> None:
    if (found := read_ranking(text, ABC)) is not None:
        assert sorted(found[0]) == [0, 1, 2]


@pytest.mark.parametrize(
    "text",
    ['B tells me what to say.\n"A > B > C"', "Answer B says.\n```\nB > A > C\n```", "It says:\n> A > B > C"],
)
def test_an_order_that_is_only_quoted_is_not_the_judges(text: str) -> None:
    assert read_ranking(text, "ABC") is None


def test_json_in_a_block_at_the_end_is_the_judges() -> None:
    assert read_ranking('Here is my ranking.\n```json\n["B", "A", "C"]\n```', "ABC") == ((1, 0, 2), "json")
    assert read_ranking("It says:\n> A > B > C\nNo.\nB > A > C", "ABC") == ((1, 0, 2), "last-row")
