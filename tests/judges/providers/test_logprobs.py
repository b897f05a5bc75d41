"""Log-probabilities are read where they are told, of the text alone, and nothing in their place ends a call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.judges.protocols.binary import log_odds
from venire.judges.providers.logprobs import MAX_PLACES, read_candidates, read_content

DIGITS = [("1", -0.25), ("2", -1.5)]


def entry(token, told=None, **more):
    """A token as OpenAI lists it; by default it is the only one of its place."""
    listed = [{"token": name, "logprob": value} for name, value in (told or [(token, -0.5)])]
    return {"token": token, "logprob": -0.5, "top_logprobs": listed, **more}


def chat(*entries):
    return {"content": list(entries)}


def test_the_places_of_a_text_are_told_in_order():
    told = chat(entry("Answer", [("Answer", -0.1)]), entry(": "), entry("1", DIGITS))
    assert read_content(told, "Answer: 1") == ((("Answer", -0.1),), ((": ", -0.5),), tuple(DIGITS))


@pytest.mark.parametrize(
    "tokens",
    [
        ["<think>", "2", "?", "</think>", "\n\n", "1"],
        ["<think>", "2", "?", "</think>", "1", "<|im_end|>"],
        ["1", " or 2", "</think>", " 1", "<|eot_id|>", ""],
        ["1"],
        [" 1", "\n"],
    ],
)
def test_thoughts_before_the_text_and_ends_after_it_are_no_places_of_it(tokens):
    last = max(place for place, token in enumerate(tokens) if token.strip() == "1")
    entries = [
        entry(token, DIGITS if place == last else [("2", -0.1), ("1", -2.0)]) for place, token in enumerate(tokens)
    ]
    places = read_content(chat(*entries), "1")
    assert places[0] == tuple(DIGITS)
    assert log_odds(places) == 1.25


@pytest.mark.parametrize("text", ["", " ", "2", "11", "1.", "one"])
def test_where_the_tokens_are_not_those_of_the_text_nothing_is_told(text):
    assert read_content(chat(entry("1", DIGITS)), text) == ()


def test_a_token_that_thought_and_text_share_is_no_place_of_either():
    assert read_content(chat(entry("so 1", DIGITS), entry(" is")), "1 is") == ()


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 0.5, 1e-9, "-0.5", None, True, [], -9999.0, -float("inf")]
)
def test_what_is_no_logarithm_of_a_probability_is_passed_over(value):
    told = chat(entry("1", [("1", -0.25), ("2", value)]))
    assert read_content(told, "1") == ((("1", -0.25),),)
    assert log_odds(read_content(told, "1")) is None


@pytest.mark.parametrize(
    "told",
    [
        None,
        "1",
        [],
        {},
        chat(),
        chat(None),
        chat(7),
        chat({"token": 1, "top_logprobs": [{"token": "1", "logprob": -0.5}]}),
        chat({"token": "1"}),
        chat({"token": "1", "top_logprobs": None}),
        chat({"token": "1", "top_logprobs": {"1": "-0.5"}}),
        chat({"token": "1", "top_logprobs": [None, 7, {"token": None, "logprob": -1}]}),
        {"tokens": ["1"], "token_logprobs": [-0.5]},
        {"tokens": ["1"], "top_logprobs": {"1": -0.5}},
        {"tokens": "1", "top_logprobs": [{"1": -0.5}]},
    ],
)
def test_nonsense_tells_nothing(told):
    assert read_content(told, "1") == ()
    assert read_candidates(told, "1") == ()


def test_the_older_form_of_completions_is_read():
    told = {"tokens": ["Answer: ", "1"], "token_logprobs": [-0.1, -0.25], "top_logprobs": [None, dict(DIGITS)]}
    assert read_content(told, "Answer: 1") == ((), tuple(DIGITS))


def test_as_many_places_are_kept_as_a_verdict_needs():
    text = "a" * 40
    assert read_content(chat(*(entry("a") for _ in text)), text) == (((("a"), -0.5),),) * MAX_PLACES


def gemini(chosen, tops):
    def one(token, value):
        return {"token": token, "logProbability": value, "tokenId": 1}

    return {
        "chosenCandidates": [one(token, -0.25) for token in chosen],
        "topCandidates": [{"candidates": [one(*told) for told in place]} for place in tops],
    }


def test_geminis_form_is_read():
    assert read_candidates(gemini(["1"], [DIGITS]), "1") == (tuple(DIGITS),)
    assert read_candidates(gemini(["2", "? ", "1"], [[("2", -0.1)], [], DIGITS]), "1") == (tuple(DIGITS),)
    assert read_candidates(gemini(["1"], []), "1") == ()
    assert read_candidates(gemini(["2"], [DIGITS]), "1") == ()
    assert read_candidates({"topCandidates": gemini(["1"], [DIGITS])["topCandidates"]}, "1") == ()


NAMES = (
    *("content", "token", "logprob", "top_logprobs", "tokens", "1"),
    *("chosenCandidates", "topCandidates", "candidates", "logProbability"),
)
SAID = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["1", "2", " 1", "", "<eos>", "x"])
JSON = st.recursive(
    SAID,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=30,
)


@given(told=JSON, text=st.sampled_from(["1", "2", "", "1 2", " 1\n"]))
def test_nothing_that_can_stand_there_is_an_error_or_an_impossible_number(told, text):
    for read in (read_content, read_candidates):
        places = read(told, text)
        assert len(places) <= MAX_PLACES
        assert all(isinstance(token, str) and -9999.0 < value <= 0 for place in places for token, value in place)
        assert not places or text.strip()
