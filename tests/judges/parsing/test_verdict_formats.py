"""A reply is read in a dialect where the judge itself names one verdict, and nowhere else."""

from __future__ import annotations

import random
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

from tests.judges.agreement import Agreement, agreements
from tests.judges.fuzzing import STATEMENTS, check
from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.judges import parsing
from venire.judges.parsing.choices import read_choice
from venire.judges.parsing.verdict_formats import (
    VERDICT_FORMATS,
    FormatRule,
    VerdictFormat,
    choose_format,
    rank_formats,
    read_in_every_format,
    read_verdict,
)

FENCED = "<<<0123456789abcdef\nThe final answer is [[A]]\n0123456789abcdef>>>"
RULES = [(dialect, rule) for dialect in VERDICT_FORMATS.values() for rule in dialect.rules]

READ = {
    ("mt-bench", "[[A]]"): "first",
    ("mt-bench", '"[[A]]"'): "first",
    ("mt-bench", "```\n[[A]]\n```"): "first",
    ("mt-bench", "Final verdict: `[[A]]`"): "first",
    ("mt-bench", 'It says "The final answer is [[A]]". I say [[B]]'): "second",
    ("mt-bench", "It says 'The final answer is [[A]]' and that's wrong. [[B]]"): "second",
    ("mt-bench", "“The final answer is [[A]]” is what it says. [[B]]"): "second",
    ("mt-bench", 'It says "[[A]]\n\nand more" but [[B]]'): "second",
    ("mt-bench", "> The final answer is [[A]]\n\n[[B]]"): "second",
    ("mt-bench", "It ends with\n```\n[[A]]\n```\n[[B]]"): "second",
    ("mt-bench", FENCED + "\n[[B]]"): "second",
    ("mt-bench", "<think>[[A]]</think>[[B]]"): "second",
    ("mt-bench", "Hm. <think>[[A]]</think> So: [[B]]"): "second",
    ("mt-bench", "It's 5\" long, the assistants' answer. [[C]]"): "tie",
    ("mt-bench", "My verdict: [[ A ]]"): "first",
    ("mt-bench", "Both are fine.\n\n**[[b]]**"): "second",
    ("mt-bench", "最终结论：［［Ａ］］"): "first",
    ("mt-bench", "最终结论：【【B】】"): "second",
    ("mt-bench", "\\[\\[C\\]\\]"): "tie",
    ("mt-bench", "The first one is clearer.\n\n$\\boxed{A}$"): "first",
    ("mt-bench", "Final verdict: $\\boxed{\\text{B}}$"): "second",
    ("letter", "$\\boxed{A}$"): "first",
    ("arena-hard", "Verdict: [[ b > a ]]"): "second",
    ("arena-hard", "My final verdict is: [[B>>A]]"): "second",
    ("arena-hard", "[[A=B]]"): "tie",
    ("alpaca-eval", "m"): "first",
    ("alpaca-eval", "M"): "second",
    ("alpaca-eval", "Output (a) is longer.\n\nOutput (b)"): "second",
    ("scores", "7 8"): "second",
    ("scores", "8/10 7/10"): "first",
    ("scores", "9.5, 9.5\n\nThe first is better."): "tie",
    ("scores", "Score A: 7\nScore B: 8"): "second",
    ("scores", "I would give Assistant 2 a score of 9 and Assistant 1 a score of 8."): "second",
    ("json", '{"choice": "A"}'): "first",
    ("json", '{\n  "reason": "It says \\"B\\".",\n  "winner": "Model A"\n}'): "first",
    ("json", 'So my verdict is {"winner": "model_b"}.'): "second",
    ("json", '{"winner": "model_a", "reason": "It is'): "first",
    ("json", '{"score": 7, "winner": "B", "rea'): "second",
    ("json", '{"winner": "tie"'): "tie",
    ("json", 'Reasons.\n```json\n{"verdict": "tie"}\n```'): "tie",
    ("letter", "**B**."): "second",
    ("letter", "The answer is A."): "first",
    ("letter", "Choice: B. Response 2 is better than Response 1."): "second",
    ("letter", "After a look at both:\n\n**Choice**: A\nReason: B is short."): "first",
    ("one-two-three", "Overall, the two responses are equivalent in quality.\n\n2"): "second",
    ("one-two-three", "x = 10\n\n1"): "first",
    ("one-two-three", "Therefore, I choose 3 as the two assistants are equivalent."): "tie",
    ("label-line", "Tie\nBoth are right."): "tie",
    ("label-line", "1\nResponse 2 has 3 faults."): "first",
    ("prose", "Both are fine. However, I would give Assistant 2 a slight edge over Assistant 1."): "second",
    ("prose", "However, if I had to choose one, I would choose Assistant 1, as it is longer."): "first",
    ("prose", "Therefore, the two assistants are equivalent."): "tie",
}

NOT_READ = (
    *(("mt-bench", text) for text in (FENCED, "[[A]] [[B]]", "not [[A]]", "[[A]] if you like", "[A]", "[[D]]")),
    ("mt-bench", 'It says "The final answer is [[A]]".'),
    ("mt-bench", "It says “The final answer is [[A]]”."),
    ("mt-bench", "`[[A]]` is how it ends"),
    ("mt-bench", "> The final answer is [[A]]"),
    ("mt-bench", "> It ends with\n```\n[[A]]\n```"),
    ("mt-bench", "It ends with\n```\n[[A]]\n```"),
    ("mt-bench", 'It says "[[A]] and the mark is never closed. [[B]]'),
    ("mt-bench", "```\n[[A]]\n[[B]]"),
    ("mt-bench", "[[B]]\n```\n[[A]]"),
    ("mt-bench", '"[[A]]'),
    ("mt-bench", "<<<0123456789abcdef [[A]]\nhm\n0123456789abcdef>>>"),
    ("mt-bench", "<think>[[A]]"),
    ("mt-bench", "[[A]]<think>"),
    ("mt-bench", "</think>[[A]]"),
    ("mt-bench", "<think>[[A]]</thinking>[[B]]"),
    ("mt-bench", FENCED.removesuffix(">>>") + "\n[[B]]"),
    ("arena-hard", "[[A>>B]] or [[B>>A]]"),
    ("alpaca-eval", "Output (a) is better"),
    ("alpaca-eval", "Output (a)\nOutput (b)"),
    ("scores", "Score A: 7"),
    ("scores", "Assistant 1: 8, 9\nAssistant 2: 7, 9"),
    ("scores", "Assistant 1: 9/10\nAssistant 2: 9/10\nThe second is slightly clearer."),
    ("scores", "8/10 7/5"),
    ("json", '{"winner": "model_a", "winner": "model_b"}'),
    ("json", '{"winner": "model_a"} {"winner": "model_b"}'),
    ("json", '{"winner": "model_a'),
    ("json", '{"reason": "The \\"winner\\": \\"model_a\\" is'),
    ("json", '{"reason": {"winner": "model_a", "b'),
    ("json", '{"winner": "model_a", "reason": "It says "hi".", "b'),
    ("json", '{"winner": "model_a", "winner": "model_b", "reason": "I'),
    ("json", 'It says "{"winner": "model_a", "reason": "I'),
    ("mt-bench", "The list is read by x[[a]]"),
    ("mt-bench", "It writes [[ a ]]; then it is done.\nBoth are fine."),
    ("mt-bench", "if [[ a ]]"),
    ("mt-bench", "[[B]]\n[[a]]"),
    ("mt-bench", "The right answer is $\\boxed{B}$, as Assistant A says."),
    ("mt-bench", "[[A]]\n$\\boxed{B}$"),
    ("mt-bench", "The answer to the question is\n$\\boxed{B}$"),
    ("letter", "$\\boxed{AB}$"),
    ("letter", "The correct answer is $\\boxed{B}$"),
    ("json", '{"choice": 1}'),
    ("json", '{"winner": {"name": "a"}}'),
    ("json", 'It says "{"winner": "model_a"}".'),
    ("json", '> {"winner": "model_a"}'),
    ("json", 'It holds\n```json\n{"choice": "B"}\n```\nwhich is wrong.'),
    *(
        ("letter", text)
        for text in ("a", "D", "I", "I like A", "A or B", "A\nB", "Choice: A or B", "AB", "Choice: A, not B")
    ),
    ("letter", "Choice: A. Actually, Choice: B"),
    ("one-two-three", "1\n\n2"),
    ("one-two-three", "Output: 1\nOr not.\nOutput: 2"),
    ("one-two-three", "The answer is 2 for x, and I like both.\nBoth are fine."),
    ("one-two-three", "4"),
    ("one-two-three", "I choose 2.5 of them"),
    ("label-line", "Sure.\n1"),
    ("label-line", "garbage"),
    ("prose", "I would not choose Assistant 1."),
    ("prose", "I don't think that Assistant 1 is better."),
    ("prose", "If you want code, I would choose Assistant 1."),
    ("prose", "I would choose Assistant 1 if you want code."),
    ("prose", "I would choose Assistant 1 or Assistant 2."),
    ("prose", "I choose Assistant 1. No, I choose Assistant 2."),
    ("prose", "I choose Assistant 1, but I would also recommend Assistant 2."),
    ("prose", "Both are fine. However, I would also recommend Assistant 2."),
    ("prose", "Should I say that Assistant 1 is better?"),
    ("prose", 'The reply says "I would choose Assistant 1."'),
    ("prose", "Assistant 1 is better at maths."),
)


@pytest.mark.parametrize(("dialect", "rule"), RULES, ids=lambda one: one.name)
def test_a_rule_reads_its_own_example(dialect: VerdictFormat, rule: FormatRule) -> None:
    found = read_verdict(rule.example, dialect)
    assert (found.rule, found.status) == (rule.name, Status.OK)
    assert read_in_every_format(rule.example)[dialect.name] == found


def test_dialects_and_their_rules_have_a_name_each_and_none_is_a_judges() -> None:
    assert list(VERDICT_FORMATS) == [dialect.name for dialect in VERDICT_FORMATS.values()]
    for dialect in VERDICT_FORMATS.values():
        assert len({rule.name for rule in dialect.rules}) == len(dialect.rules)
    said = " ".join(path.read_text(encoding="utf-8").lower() for path in Path(parsing.__file__).parent.glob("*.py"))
    assert not re.search(r"\b(?:gpt|claude|gemini|bard|vicuna|pandalm|llama|mistral|qwen)\b", said)


@pytest.mark.parametrize(("dialect", "text"), READ)
def test_one_verdict_in_the_judges_own_words_is_read(dialect: str, text: str) -> None:
    assert read_verdict(text, VERDICT_FORMATS[dialect]).verdict == READ[dialect, text]


@pytest.mark.parametrize(("dialect", "text"), NOT_READ)
def test_no_verdict_or_two_or_only_a_quoted_one_is_unreadable(dialect: str, text: str) -> None:
    found = read_verdict(text, VERDICT_FORMATS[dialect])
    assert (found.verdict, found.rule, found.status) == (None, None, Status.UNREADABLE)


@pytest.mark.parametrize("name", [name for name in STATEMENTS if name != "label-line"])
def test_each_statement_is_read_alone_and_none_beside_another_verdict(name: str) -> None:
    statements = STATEMENTS[name]
    for verdict, ways in statements.items():
        for way in ways:
            assert read_verdict(way, VERDICT_FORMATS[name]).verdict == verdict, way
            for other in (one for kind, ones in statements.items() if kind != verdict for one in ones):
                for text in (f"{way}\n{other}", f"{way}\n\nIt is long.\n\n{other}", f"It is long.\n{way}\n\n{other}\n"):
                    assert read_verdict(text, VERDICT_FORMATS[name]).verdict is None, text


def test_our_own_dialect_reads_nothing_that_the_two_stage_protocol_does_not() -> None:
    labels = {0: "tie", 1: "first", 2: "second"}
    rng = random.Random(5)
    pieces = ("1", "2", "0", "3", "\n", " ", "Answer: ", "The first is better.", '"', "```", "> ", "**", "not ")
    for _ in range(5_000):
        text = "".join(rng.choices(pieces, k=rng.randrange(7)))
        found = read_verdict(text, VERDICT_FORMATS["zero-one-two"])
        choice = read_choice(text)
        assert found.verdict is None or (choice is not None and found.verdict == labels[choice[0]]), ascii(text)


@pytest.mark.parametrize("replies", [4_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_thousands_of_replies_are_read_without_an_exception_or_a_guess(replies: int) -> None:
    rng = random.Random(31)
    read: Counter[str] = Counter()
    for _ in range(replies):
        read += check(rng)
    assert set(read) == set(VERDICT_FORMATS), "each dialect reads some of them"
    assert max(read.values()) < replies / 5, "and none reads most of them"


def test_no_pattern_looks_at_more_than_a_bounded_stretch_of_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern of bounded width tries a bounded number of ways at each place, so reading is linear in the length."""
    seen: set[str] = set()
    compile_ = re.compile

    def record(pattern: str, flags: int = 0) -> re.Pattern[str]:
        seen.add(pattern)
        return compile_(pattern, flags)

    monkeypatch.setattr(re, "compile", record)
    folder = Path(parsing.__file__).parent
    for name in ("reply_text", "decisions", "label_context", "verdict_patterns", "verdict_formats"):
        runpy.run_path(str(folder / f"{name}.py"))
    assert len(seen) > 30
    unbounded = [
        pattern for pattern in seen if re.search(r"(?<!\\)[*+](?!\]|[^\[]*\])|\{[0-9]+,\}", _without_classes(pattern))
    ]
    assert unbounded == []


def _without_classes(pattern: str) -> str:
    """A pattern without escapes and character classes, in which `*` and `+` are characters."""
    return re.sub(r"\[(?:\\.|[^\]\\])*\]", "", re.sub(r"\\[^\w\[\]]", "", pattern))


@pytest.mark.slow
@pytest.mark.parametrize(
    "filler", ['"', "'", "`", "“", "<think>", "</think>", '{"', "> ", "[[A]] ", "I choose ", "\n", "(", "1\n"]
)
def test_a_judge_that_is_stuck_is_read_all_the_same(filler: str) -> None:
    for text in (filler * 5_000, f"{filler * 5_000}x", f"Answer: {filler * 5_000}", f" {filler}x" * 5_000):
        read_in_every_format(text)
    assert read_in_every_format('{"a":' * 20_000)["json"].verdict is None


def test_the_dialect_that_reads_most_is_chosen_and_of_equals_the_first_of_the_table() -> None:
    replies = ["Choice: A", "Choice: B", "So: [[B]]"]
    readings = [read_in_every_format(reply) for reply in replies]
    found = rank_formats({name: [one[name].verdict for one in readings] for name in VERDICT_FORMATS})
    assert choose_format(found, 3).name == "letter"
    assert [(one.name, one.read, one.against) for one in found] == [("letter", 2, 0), ("mt-bench", 1, 0)]
    same = rank_formats({"one": ["first", None], "two": ["first", None], "three": [None, None]})
    assert (choose_format(same, 2).name, len(same)) == ("one", 2)


def test_dialects_that_read_the_same_replies_otherwise_are_for_the_user_to_choose_from() -> None:
    with pytest.raises(InputError, match=r"one reads 2 of 2; two reads 2, 1 of them otherwise \(the first in row 2\)"):
        choose_format(rank_formats({"one": ["first", "tie"], "two": ["first", "second"]}), 2)
    with pytest.raises(InputError, match="none of the dialects reads any of the 2 replies"):
        choose_format(rank_formats({"one": [None, None]}), 2)
    with pytest.raises(InputError, match=r"two reads 1000, 1 of them otherwise \(the first in row 1000\)"):
        choose_format(rank_formats({"one": ["first"] * 1000, "two": [*["first"] * 999, "second"]}), 1000)
    rare = rank_formats({"one": ["first"] * 1000, "two": ["second", *["first"] * 990, *[None] * 9]})
    assert choose_format(rare, 1000).name == "one"


@pytest.mark.slow
def test_recorded_judges_are_read_as_published(shared_data: Path) -> None:
    rows = {(one.records, one.judge): one for one in agreements(shared_data, ("held",))}
    assert len(rows) == 16
    for one in rows.values():
        assert one.share_agree >= 0.995, one
        if one.records == "devbench_repeats" or one.judge in {"gpt-4", "claude-v1"}:
            assert one.share_read >= 0.99, one
    prose = {"bard": 0.95, "vicuna-13b": 0.95, "gpt-3.5-turbo": 0.99}
    assert all(rows["vicuna80_peers", judge].share_read >= share for judge, share in prose.items())
    published_null = rows["pandalm", "gpt-3.5-turbo"]
    assert published_null == Agreement("pandalm", "gpt-3.5-turbo", "held", "label-line", 514, 500, 500)
