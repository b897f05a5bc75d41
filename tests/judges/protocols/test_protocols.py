"""What each protocol shows, and how its replies end it: scripted replies in, an outcome out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import log
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.keys import fence
from venire.arena.records import (
    Ballot,
    Completion,
    GeneratedText,
    Grade,
    Instruction,
    Material,
    Outcome,
    Preference,
    Reply,
    Request,
    Status,
    Trial,
)
from venire.judges import PROTOCOLS
from venire.judges.conversation import advance
from venire.judges.orientation import BOTH_ORDERS, arrange, orient
from venire.judges.protocols.binary import log_odds
from venire.judges.protocols.criteria import CRITERIA, SCHEMA
from venire.judges.safety.sanitize import fenced_texts, sanitize

PAIRWISE = sorted(name for name, entry in PROTOCOLS.items() if entry.shape.pairwise and name != "recorded")
SINGLE = sorted(name for name, entry in PROTOCOLS.items() if entry.shape.grades)


def scores(first: list[float], second: list[float], preference: str) -> str:
    sides = {"first": dict(zip(CRITERIA, first, strict=True)), "second": dict(zip(CRITERIA, second, strict=True))}
    return json.dumps({**sides, "preference": preference})


def logprobs(*places: Mapping[str, float]) -> tuple[tuple[tuple[str, float], ...], ...]:
    return tuple(tuple(place.items()) for place in places)


# Criteria


def test_the_score_is_the_mean_difference_and_the_pairs_are_kept_in_order(say: Any) -> None:
    found = say("criteria", scores([10, 9, 8, 7, 6, 5], [1, 2, 3, 4, 5, 6.5], "first"))
    pairs = ((10.0, 1.0), (9.0, 2.0), (8.0, 3.0), (7.0, 4.0), (6.0, 5.0), (5.0, 6.5))
    assert found == Outcome(Status.OK, Preference(1, pytest.approx(23.5 / 6), pairs), "json")


def test_a_preference_against_the_scores_is_kept_with_the_scores(say: Any) -> None:
    found = say("criteria", scores([9] * 6, [3] * 6, "second"))
    assert (found.reading.winner, found.reading.score) == (-1, 6.0)
    assert say("criteria", scores([9] * 6, [3] * 6, "tie")).reading.winner == 0


def test_the_criteria_are_asked_at_the_temperature_of_the_judge_with_the_schema(say: Any) -> None:
    request = say("criteria")
    assert (request.temperature, request.schema, request.seed) == (0.0, SCHEMA, 3)
    assert CRITERIA == ("adherence", "helpfulness", "factuality", "completeness", "clarity", "fluency")
    text = request.messages[0]["content"]
    assert [text.index(f"\n{name}: ") for name in CRITERIA] == sorted(text.index(f"\n{name}: ") for name in CRITERIA)
    form = json.loads(next(line for line in text.splitlines() if line.startswith('{"first"')))
    assert tuple(form["first"]) == tuple(form["second"]) == CRITERIA


def test_the_schema_demands_every_score_and_nothing_else() -> None:
    assert SCHEMA["required"] == ["first", "second", "preference"]
    for side in ("first", "second"):
        assert SCHEMA["properties"][side]["required"] == list(CRITERIA)
        assert SCHEMA["properties"][side]["additionalProperties"] is False
    json.dumps(SCHEMA)


def test_scores_are_read_though_the_explanation_was_cut_off(say: Any) -> None:
    text = scores([5] * 6, [4] * 6, "first")
    assert say("criteria", Reply(f"{text}\nThe first is", "length")).reading.score == 1.0
    assert say("criteria", Reply(text[:-3], "length")) == Outcome(Status.TRUNCATED)


# Binary


@pytest.mark.parametrize(("text", "winner"), [("1", 1), ("2", -1), ("Answer: 2", -1)])
def test_binary_has_a_winner_and_without_log_probabilities_no_score(text: str, winner: int, say: Any) -> None:
    assert say("binary", text).reading == Preference(winner, None)


@pytest.mark.parametrize("text", ["0", "tie", "1 or 2", "3", "12"])
def test_binary_accepts_no_tie(text: str, say: Any) -> None:
    assert isinstance(say("binary", text), Request)
    assert say("binary", text, text) == Outcome(Status.UNREADABLE)


def test_log_probabilities_are_asked_for_where_the_judge_is_set_so(say: Any) -> None:
    assert [say("binary", options={"logprobs": flag}).top_logprobs for flag in "01"] == [0, 20]
    assert say("binary").top_logprobs == 0
    assert say("binary", "Hm.", options={"logprobs": "1"}).top_logprobs == 20


def test_the_score_is_the_log_odds_of_one_against_two(say: Any) -> None:
    told = logprobs({"1": log(0.6), " 1": log(0.1), "2": log(0.2), "2\n": log(0.05), "0": log(0.05)})
    assert say("binary", Reply("1", logprobs=told)).reading.score == pytest.approx(log(0.7 / 0.25))
    flipped = logprobs({"2": log(0.6), " 2": log(0.1), "1": log(0.25)})
    assert say("binary", Reply("2", logprobs=flipped)).reading == Preference(-1, pytest.approx(log(0.25 / 0.7)))


@pytest.mark.parametrize(
    ("told", "score"),
    [
        ((), None),
        (((),), None),
        (logprobs({"Answer": -0.1, "1": -3.0, "2": -9.0}, {":": -0.1}, {" 2": log(0.8), " 1": log(0.2)}), log(0.25)),
        (logprobs({"1": -0.001, "one": -8.0}), None),
        (logprobs({"1": -0.001, "2": float("-inf")}), None),
        (logprobs({"1": -0.5, "12": -1.0, "1.": -1.0}), None),
        (logprobs({"A": -0.1}, {"B": -0.1}), None),
        (logprobs({"1": -1000.0, "2": -2000.0}), 1000.0),
    ],
)
def test_the_place_that_counts_is_the_first_whose_likeliest_token_is_a_digit(told: Any, score: float | None) -> None:
    assert log_odds(told) == (None if score is None else pytest.approx(score))


@pytest.mark.parametrize("text", ["I looked at 2 points.\n1", "1\nIt is sound.", "<think>2</think>1"])
def test_where_more_is_said_than_the_choice_there_is_no_score(text: str, say: Any) -> None:
    told = logprobs({"2": -0.1, "1": -3.0})
    assert say("binary", Reply(text, logprobs=told)).reading == Preference(1, None)


# Five-point


@pytest.mark.parametrize(
    ("label", "winner", "score"),
    [("A>>B", 1, 2.0), ("A>B", 1, 1.0), ("A=B", 0, 0.0), ("B>A", -1, -1.0), ("B>>A", -1, -2.0)],
)
def test_five_point_reads_each_label_after_reasons(label: str, winner: int, score: float, say: Any) -> None:
    forms = (label, f"Both are short.\n{label}", f"[[{label}]]", f"Reasons.\n\nMy final verdict is: [[{label}]]",
             f"It is so.\n**{label}**", f"Verdict: {label}")  # fmt: skip
    for text in forms:
        assert say("five-point", text).reading == Preference(winner, score)


@pytest.mark.parametrize(
    "text",
    [
        "A>>>B",
        "A<B",
        "A>A",
        "A>>B\nA>B",
        "A>B or A=B",
        "A>B\nThough one may also say B>A.",
        "A > > B",
        "A>>",
        ">",
        "It quotes [[A>>B]]",
        "Answer A is slightly better: [[B>>A]]",
        "First [[A>B]].\nThen [[B>A]].",
        "<think>A>B",
        "A is better than B",
        "A",
    ],
)
def test_five_point_does_not_guess(text: str, say: Any) -> None:
    assert isinstance(say("five-point", text), Request)


def test_five_point_is_not_read_where_its_last_line_was_cut_off(say: Any) -> None:
    assert say("five-point", Reply("A is clear.\nA>B", "length")) == Outcome(Status.TRUNCATED)
    assert say("five-point").schema is None


# Direct and echo


@pytest.mark.parametrize("protocol", ["direct", "direct-reference"])
@pytest.mark.parametrize(
    ("text", "grade"),
    [
        ("A", Grade(1, "correct")),
        ("B", Grade(0, "incorrect")),
        ("C", Grade(2, "not attempted")),
        ("CORRECT", Grade(1, "correct")),
        ("Grade: INCORRECT", Grade(0, "incorrect")),
        ("NOT_ATTEMPTED", Grade(2, "not attempted")),
        ("A: CORRECT", Grade(1, "correct")),
        ("C (not attempted)", Grade(2, "not attempted")),
        ("It says the Rhine.\nB", Grade(0, "incorrect")),
    ],
)
def test_direct_reads_letters_and_their_words(protocol: str, text: str, grade: Grade, say: Any) -> None:
    assert say(protocol, text).reading == grade


@pytest.mark.parametrize(
    "text", ["A: INCORRECT", "A\nIt is incorrect.", "not correct", "It is correct", "AB", "D", "A/B"]
)
def test_direct_does_not_guess(text: str, say: Any) -> None:
    assert isinstance(say("direct", text), Request)


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        ("ECHO", Grade(1, "ECHO")),
        ("NO_ECHO", Grade(0, "NO_ECHO")),
        ("No echo.", Grade(0, "NO_ECHO")),
        ("Answer: **ECHO**", Grade(1, "ECHO")),
        ("NO_ECHO\nThere is no echo in it.", Grade(0, "NO_ECHO")),
    ],
)
def test_echo_reads_its_two_words(text: str, grade: Grade, say: Any) -> None:
    assert say("echo", text).reading == grade


@pytest.mark.parametrize(
    "text", ["ECHO\nNO_ECHO", "NO_ECHO\nAlthough it is an ECHO.", "NO", "echoes", "ECHO?no", "not ECHO"]
)
def test_echo_does_not_guess(text: str, say: Any) -> None:
    assert isinstance(say("echo", text), Request)


def test_only_the_form_with_the_reference_shows_it(say: Any, material: Any) -> None:
    shown = material("The Volga.", reference="It is the Volga, $answer.")
    texts = {name: fenced_texts(say(name, shown=shown).messages[0]["content"]) for name in SINGLE}
    assert texts == {
        "direct": ("Longest river?", "The Volga."),
        "direct-reference": ("Longest river?", "The Volga.", "It is the Volga, $answer."),
        "echo": ("Longest river?", "The Volga."),
    }


def test_a_missing_reference_is_an_error_that_names_the_instruction(say: Any, material: Any) -> None:
    with pytest.raises(ValueError, match="instruction 'i' has no reference answer"):
        say("direct-reference", shown=material("The Volga.", reference=None))


# Listwise


def test_a_ranking_becomes_places_in_the_order_shown(say: Any, material: Any) -> None:
    shown = material("one", "two", "three", "four")
    assert say("listwise", "C > A > D > B", shown=shown).reading == Ballot((2, 4, 1, 3))
    assert say("listwise", "D > B", shown=shown, options={"best": "2"}).reading == Ballot((0, 2, 0, 1))
    assert say("listwise", "D > B", "D > B > A > C", shown=shown).reading == Ballot((3, 2, 4, 1))


def test_a_list_shows_every_answer_under_its_label(say: Any, material: Any) -> None:
    texts = tuple(f"Answer {number}: " for number in range(30))
    text = say("listwise", shown=material(*texts)).messages[0]["content"]
    assert fenced_texts(text) == ("Longest river?", *texts)
    assert text.index("\nAnswer 1:\n<<<") < text.index("\nAnswer 30:\n<<<")
    assert "Rank all 30 answers" in text
    few = say("listwise", shown=material(*texts[:3]), options={"best": "2"}).messages[0]["content"]
    assert "\nAnswer C:\n<<<" in few
    assert "exactly 2 answers" in few


@pytest.mark.parametrize("best", ["3", "4", "99"])
def test_the_best_of_all_or_more_is_a_ranking_of_all(best: str, say: Any, material: Any) -> None:
    shown = material("one", "two", "three")
    assert say("listwise", shown=shown, options={"best": best}) == say("listwise", shown=shown)
    assert say("listwise", "B > C > A", shown=shown, options={"best": best}).reading == Ballot((3, 1, 2))


def test_a_label_that_was_cut_is_not_another_label(say: Any, material: Any) -> None:
    many, few = material(*map(str, range(30))), material("one", "two", "three")
    options = {"best": "2"}
    assert say("listwise", Reply("3 > 1", "length"), shown=many, options=options) == Outcome(Status.TRUNCATED)
    assert say("listwise", Reply("C > A", "length"), shown=few, options=options).status is Status.OK


# Generate


def test_a_contestant_is_put_the_instruction_and_nothing_else(say: Any, material: Any) -> None:
    request = say("generate", shown=material(turns=("One?", "Two.", "Three?")))
    assert request.messages == (
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "Three?"},
    )
    assert (request.seed, request.max_tokens, request.schema) == (3, 512, None)


def test_a_contestant_is_put_one_question_after_another_and_answers_in_parts(say: Any, material: Any) -> None:
    shown = material(turns=("One?", "Two?"))
    assert say("generate", shown=shown).messages == ({"role": "user", "content": "One?"},)
    assert say("generate", "First.", shown=shown).messages == (
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "First."},
        {"role": "user", "content": "Two?"},
    )
    whole = GeneratedText("[turn 1]\nFirst.\n\n[turn 2]\nSecond.")
    assert say("generate", "First.", "Second.", shown=shown) == Outcome(Status.OK, whole, "text")
    assert say("generate", "First.", Reply("Sec", "length"), shown=shown) == Outcome(Status.TRUNCATED)
    assert say("generate", Reply("", "refusal"), shown=shown) == Outcome(Status.REFUSED)


@pytest.mark.parametrize("text", ["The Volga.", " \n  indented\n", "Use <think> tags.", "1", "<b>Volga</b>"])
def test_a_completion_is_kept_as_it_came(text: str, say: Any) -> None:
    assert say("generate", text) == Outcome(Status.OK, GeneratedText(text), "text")


def test_thoughts_are_no_part_of_a_completion(say: Any) -> None:
    assert say("generate", "<think>Hm.</think>\n\nThe Volga.").reading == GeneratedText("The Volga.")
    assert say("generate", "<think>Hm.") == Outcome(Status.UNREADABLE)
    assert say("generate", "<think>Hm.</think>") == Outcome(Status.UNREADABLE)


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_completion_is_unreadable_and_a_cut_one_truncated(text: str, say: Any) -> None:
    assert say("generate", text) == Outcome(Status.UNREADABLE)
    assert say("generate", Reply("The Vol", "length")) == Outcome(Status.TRUNCATED)


# All


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name not in ("generate", "recorded")])
def test_every_text_stands_in_the_fence_of_its_own(protocol: str, say: Any, material: Any) -> None:
    shown = material(*(("The Volga.",) if protocol in (*SINGLE, "edit") else ("The Volga.", "The Rhine.")))
    text = say(protocol, shown=shown).messages[0]["content"]
    for mark, one in zip(shown.fences, ("Longest river?", *(one.text for one in shown.shown)), strict=True):
        assert f"<<<{mark}\n{one}\n{mark}>>>" in text


def verdict_of(protocol: str, reply: str, first: str, second: str) -> Outcome:
    texts = ("Why?", first, second)
    shown = Material(
        Instruction("i", ("Why?",)),
        (Completion("m", "i", first), Completion("n", "i", second)),
        tuple(fence(text, b"constant") for text in texts),
    )
    script = [Reply("Both are fine.")] * (len(PROTOCOLS[protocol].expects) - 1)
    talk, trial = PROTOCOLS[protocol].talk, Trial(bytes(16), bytes(16), protocol, "i", ())
    asked = advance(talk, trial, shown, {"max_tokens": "9"}, ())
    assert isinstance(asked, Request)
    assert fenced_texts(asked.messages[0]["content"]) == tuple(map(sanitize, texts))
    found = advance(talk, trial, shown, {"max_tokens": "9"}, [*script, Reply(reply)])
    assert isinstance(found, Outcome)
    return found


MIRRORED = {
    "two-stage": [("1", "2"), ("2", "1"), ("0", "0")],
    "binary": [("1", "2"), ("2", "1")],
    "five-point": [("A>>B", "B>>A"), ("A>B", "B>A"), ("A=B", "A=B"), ("B>>A", "A>>B")],
    "criteria": [
        (scores([9, 8, 7, 6, 5, 4], [4] * 6, "first"), scores([4] * 6, [9, 8, 7, 6, 5, 4], "second")),
        (scores([2] * 6, [4] * 6, "tie"), scores([4] * 6, [2] * 6, "tie")),
    ],
}


@pytest.mark.parametrize("protocol", PAIRWISE)
@given(a=st.text(max_size=12), b=st.text(max_size=12))
@settings(max_examples=25)
def test_both_orders_mirror(protocol: str, a: str, b: str) -> None:
    """A judge that follows the answers wherever they stand has one verdict in both orders, score and criteria too."""
    for straight, mirrored in MIRRORED[protocol]:
        verdicts = [
            orient(b"", swapped, verdict_of(protocol, (straight, mirrored)[swapped], *arrange(a, b, swapped)))
            for swapped in BOTH_ORDERS
        ]
        assert verdicts[0] == verdicts[1]
        assert verdicts[0].status is Status.OK
        score = verdicts[0].score
        assert (score is None) == (protocol in ("two-stage", "binary"))


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name not in ("generate", "recorded")])
def test_no_request_names_a_model_and_the_store_shows_only_in_fences(protocol: str, say: Any, material: Any) -> None:
    shown = material("The Volga.", "The Rhine.")
    text = say(protocol, shown=shown).messages[0]["content"]
    assert "model-" not in text
    for mark in shown.fences:
        text = text.replace(mark, "")
    assert "constant" not in text
