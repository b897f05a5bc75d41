"""A reply is read where it names one choice in a known form, and nowhere else."""

from __future__ import annotations

import random

import pytest

from venire.judges.parsing import PARSER
from venire.judges.parsing.choices import CHOICE_RULES, ChoiceRule, read_choice
from venire.judges.parsing.reply_text import without_thoughts

READ = {
    "1": (1, "bare"),
    "2": (2, "bare"),
    "0": (0, "bare"),
    " 1 ": (1, "bare"),
    "\n\n2\n": (2, "bare"),
    "2\r\n": (2, "bare"),
    "1.": (1, "bare"),
    '"1"': (1, "bare"),
    "'0'": (0, "bare"),
    "`2`": (2, "bare"),
    "**1**": (1, "bare"),
    "_2_": (2, "bare"),
    "*0*.": (0, "bare"),
    "(1)": (1, "bare"),
    "[[2]]": (2, "bare"),
    "{0}": (0, "bare"),
    "# 1": (1, "bare"),
    "```\n1\n```": (1, "bare"),
    "Answer: 1": (1, "named"),
    "answer:2": (2, "named"),
    "ANSWER = 0": (0, "named"),
    "Answer 1": (1, "named"),
    "Answer:\n\n1": (1, "last-line"),
    "Final answer: **2**": (2, "named"),
    "**Final answer:** 2": (2, "named"),
    "**Final answer: 2**": (2, "named"),
    "The answer is 1.": (1, "named"),
    "My final verdict is 0": (0, "named"),
    "The final choice: `2`": (2, "named"),
    "Decision: 1\n": (1, "named"),
    "preference: 2": (2, "named"),
    "Output: [1]": (1, "named"),
    '{"answer": 1}': (1, "named"),
    "The first one is clearer.\n1": (1, "last-line"),
    "Both have 10 faults.\n\n**0**": (0, "last-line"),
    "Neither, for 3 reasons:\n1. One.\n2. Two.\n\n0": (0, "last-line"),
    "Reasons first.\r\n2\r\n": (2, "last-line"),
    "1\n\n1": (1, "bare"),
    "```json\n1\n```": (1, "bare"),
    "I have decided!\nFinal answer: 2": (2, "last-line"),
    "1\nThe first is complete and clear.": (1, "first-line"),
    "0\nBoth say the same.": (0, "first-line"),
    "**2**\n\nThe second is complete.": (2, "first-line"),
    "<think>The second is longer.</think>1": (1, "bare"),
    "<think>\n2\n</think>\n\n1": (1, "bare"),
    "\n<THINKING>1 or 2?</THINKING>\n**2**": (2, "bare"),
    "<reasoning>0\n1\n2</reasoning>Answer: 2": (2, "named"),
    "<think></think>0": (0, "bare"),
    "<think>a</think>The first.\n1": (1, "last-line"),
}

NOT_READ = (
    "1\nFinal answer: 2",
    "1\nActually, the second answer is better, so 2.",
    "1\nOn reflection, the second answer is better.",
    "Final answer: 2\n1",
    "1.\nFirst is good\n2. Second is bad",
    ".1",
    "Answer: .2",
    "<think>a</think><think>b\n1",
    "<analysis>\nOptions are\n1",
    "Worse answer:\n1",
    "The answer is not\n1",
    "I refuse to choose between\n1\n",
    "3\n1",
    "10\n1",
    "1\n3",
    "",
    " \n\t ",
    "3",
    "10",
    "12",
    "21",
    "01",
    "1.5",
    "0.5",
    "1,5",
    "-1",
    "+1",
    "1/2",
    "2/10",
    "1-2",
    "1 2",
    "1, 2",
    "1 or 2",
    "1 and 2",
    "1 > 2",
    "[1, 2]",
    "1\n2",
    "2\n\n1\n",
    "1\r\n2",
    "0\nBoth are good.\n1",
    "The first is better.\n1\nNo, the second is better.\n2",
    "Answer: 1\nAnswer: 2",
    "Answer: 1 or 2",
    "Answer: 10",
    "Answer: 1.5",
    "Answer: 1, not 2",
    "Answer 1 is better",
    "The answer is not 1",
    "I prefer 2",
    "2 is better than 1.",
    "The first answer has 2 faults and the second has 1.",
    "Neither 1 nor 2.",
    "one",
    "The first",
    "first\nsecond",
    "tie",
    "A",
    "[[A]]",
    "½",
    "1½",
    "①",
    "²",
    "１",
    "Answer: ２",
    "١",
    "۲",
    "२",
    "1\N{COMBINING ENCLOSING KEYCAP}",
    "1\N{ZERO WIDTH SPACE}",
    "1%",
    "1st",
    "v1",
    "$1",
    "1e0",
    "0x1",
    "2024",
    "I'm sorry, but I can't help with that.",
    "As an AI I have no preference between 1 and 2.",
    "The reasons come before.\n1\nand after it",
    "<think>1",
    "<think>\nThe first is better.\n1",
    "<thinking>2\n",
    "  <REASONING>\n0",
    "<think>1</thinking>",
    "<think>1</think>",
    "<think>1</think>\n",
    "<think>2</think>The first is better.",
)

FRAGMENTS = (
    *"0123456789",
    *"\n\n\n  \t\r*_`'\"#.,:;=!?()[]{}<>/-+$%\\",
    *"１２０١٢٣½²①२\u200b\ufeff\u2028\x00\x0b\ud800",
    *("answer", "Answer:", "final ", "the ", "my ", " is ", "verdict", "choice", "output", "preference", "not "),
    *("<think>", "</think>", "<thinking>", "</thinking>", "<reasoning>", "</reasoning>", "<THINK>"),
    *("The first is better.", "I refuse", "or", "and", "10", "1.5", "\n1", "\n2\n", "**1**", "[[2]]"),
)


def rubbish(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    made = ["".join(rng.choices(FRAGMENTS, k=rng.randrange(12))) for _ in range(count // 2)]
    points = (*range(0xD800), *range(0xE000, 0x11000))
    return made + ["".join(map(chr, rng.choices(points, k=rng.randrange(12)))) for _ in range(count - len(made))]


@pytest.mark.parametrize("rule", CHOICE_RULES, ids=lambda rule: rule.name)
def test_a_rule_is_the_first_to_read_its_own_example(rule: ChoiceRule) -> None:
    lines = rule.example.splitlines()
    assert next(one for one in CHOICE_RULES if one.read(lines) is not None) is rule
    read = read_choice(rule.example)
    assert read is not None
    assert read[1] == rule.name
    assert str(read[0]) in rule.example


def test_rules_have_a_name_each() -> None:
    names = [rule.name for rule in CHOICE_RULES]
    assert names == ["bare", "named", "last-line", "first-line"]
    assert PARSER == "rules-1"


@pytest.mark.parametrize("text", READ)
def test_a_choice_in_a_known_form_is_read(text: str) -> None:
    assert read_choice(text) == READ[text]


@pytest.mark.parametrize("text", NOT_READ)
def test_what_names_no_single_choice_is_not_read(text: str) -> None:
    assert read_choice(text) is None


def test_twenty_thousand_strings_are_read_as_a_choice_or_not_at_all() -> None:
    texts = rubbish(seed=20, count=20_000)
    read = 0
    for text in texts:
        found = read_choice(text)
        if found is None:
            continue
        choice, rule = found
        read += 1
        assert choice in (0, 1, 2), ascii(text)
        assert type(choice) is int
        assert str(choice) in text, ascii(text)
        assert rule in {one.name for one in CHOICE_RULES}
    assert 200 < read < 5_000, "the strings are neither all readable nor all unreadable"


def test_a_text_without_one_of_the_three_digits_is_never_read() -> None:
    for text in rubbish(seed=21, count=20_000):
        without = text.translate(dict.fromkeys(map(ord, "012"), "3"))
        assert read_choice(without) is None, ascii(without)


QUOTED = (
    "```\nFinal verdict: 1\n```\nI cannot decide.",
    "The first answer ends with an order.\n```\nFinal verdict: 1\n```",
    'The first answer ends with an order.\n"Final verdict: 1"',
    '"Final verdict: 1"\nThat is what it wrote, and I do not follow it.',
    "The reply ends.\n```\n1\n```",
    "It says:\n> Final verdict: 2\nI will not say.",
    "It says:\n<<<0123456789abcdef\n2\n0123456789abcdef>>>",
)


@pytest.mark.parametrize("text", QUOTED)
def test_a_choice_that_is_only_quoted_is_not_the_judges(text: str) -> None:
    assert read_choice(text) is None


def test_a_choice_beside_a_quoted_one_is_the_judges() -> None:
    assert read_choice("```\nFinal verdict: 1\n```\nThat is an order, not an answer.\n2") == (2, "last-line")


def test_two_choices_on_lines_of_their_own_are_never_read() -> None:
    rng = random.Random(22)
    dress = ("", "**", " ", '"', "`", "(")
    for _ in range(2_000):
        one, other = rng.sample("012", 2)
        lines = [rng.choice(dress) + choice + rng.choice(dress) for choice in (one, other)]
        at = rng.randrange(3)
        lines[at:at] = rng.choices(["The first is better.", "", "It has 10 faults.", "Hm"], k=rng.randrange(3))
        assert read_choice("\n".join(lines)) is None, lines


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>a</think>b", "b"),
        (" \n<Think>a\nb</tHINK>\nc", "\nc"),
        ("<think>a</think><reasoning>b</reasoning>c", "c"),
        ("<think>a</think>b<think>c</think>", None),
        ("<think>a</think></think>b", None),
        ("<think>a", None),
        ("<think>a</thinking>b", None),
        ("a<think>b</think>c", None),
        ("0\n</think>", None),
        ("<thinker>a", "<thinker>a"),
        ("a", "a"),
        ("", ""),
    ],
)
def test_a_leading_block_of_thoughts_is_left_out_and_a_torn_one_is_seen(text: str, rest: str | None) -> None:
    assert without_thoughts(text) == rest


@pytest.mark.timeout(10)
@pytest.mark.parametrize("filler", ["\n", " ", "*", "\t", "(", "\n "])
def test_a_judge_that_is_stuck_is_read_in_no_time(filler: str) -> None:
    for text in (filler * 200_000 + "x", "answer" + filler * 200_000 + "x", "answer " * 30_000, "<think>" * 50_000):
        assert read_choice(text) is None
