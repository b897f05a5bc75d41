"""Answers in the many forms that servers give them."""

from __future__ import annotations

import json
from functools import reduce
from itertools import product
from operator import getitem
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.errors import CallError, Fault, TransientError
from venire.arena.records import Reply
from venire.judges.providers import replies
from venire.judges.providers.replies import read_reply

BODY = b'{"messages":[{"content":"1 or 2?","role":"user"}]}'


def read(message=None, finish="stop", **rest):
    choice = {"index": 0, "message": {"content": "1"} if message is None else message, "finish_reason": finish}
    return read_reply(orjson.dumps({"choices": [choice], **rest}).decode(), BODY)


@pytest.mark.parametrize(
    ("message", "text", "finish"),
    [
        ({"content": "1"}, "1", "stop"),
        ({"content": None}, "", "stop"),
        ({}, "", "stop"),
        ({"content": [{"type": "text", "text": "1"}, {"type": "text", "text": " wins"}]}, "1 wins", "stop"),
        ({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "1"}, "x"]}, "1", "stop"),
        ({"content": None, "refusal": "no"}, "no", "refusal"),
        ({"content": "1", "refusal": None}, "1", "stop"),
        ({"content": [{"type": "refusal", "refusal": "no"}]}, "no", "refusal"),
        ({"content": None, "provider_specific_fields": {"refusal": "no"}}, "no", "refusal"),
    ],
)
def test_the_text_is_found(message, text, finish):
    reply = read(message)
    assert (reply.text, reply.finish) == (text, finish)


@pytest.mark.parametrize(
    ("usage", "cached", "written"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 32}}, 64, 32),
        ({"prompt_tokens_details": {"cached_tokens": 64, "cache_creation_tokens": 32}}, 64, 32),
        ({"prompt_tokens_details": {"cache_creation_tokens": None}, "cache_creation_input_tokens": 0}, 0, 0),
        ({"prompt_tokens_details": {"cached_tokens": 64}}, 64, None),
        ({"prompt_tokens_details": None}, 0, None),
        ({}, 0, None),
    ],
)
def test_tokens_of_a_cache_are_found_and_what_is_not_said_of_writing_stays_unknown(usage, cached, written):
    reply = read(usage={"prompt_tokens": 128, "completion_tokens": 1, **usage})
    assert (reply.input_tokens, reply.cached_tokens, reply.written_tokens) == (128, cached, written)


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
        ("refusal", "refusal"),
        ("tool_calls", "stop"),
        ("MAX_TOKENS", "length"),
        ("RECITATION", "content_filter"),
        (None, "stop"),
    ],
)
def test_the_finish_is_one_of_ours(said, finish):
    assert read(finish=said).finish == finish


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_kept_apart(name):
    assert read({"content": "1", name: "because"}).reasoning == "because"
    assert read({"content": "1", name: {"odd": 1}}).reasoning == ""


@pytest.mark.parametrize(
    ("dollars", "nano"),
    [
        (0, 0),
        (1, 1_000_000_000),
        (0.1, 100_000_000),
        (1.1e-05, 11_000),
        (0.000000001, 1),
        (1e-12, 1),
        (0.00123456789, 1_234_568),
        (-0.5, None),
        (1e300, None),
        ("0.1", None),
        (True, None),
        ({"total": 1}, None),
        (None, None),
    ],
)
def test_a_cost_is_exact_and_rounded_up(dollars, nano):
    assert read(usage={"prompt_tokens": 1, "completion_tokens": 1, "cost": dollars}).cost == nano


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": -3}, {"prompt_tokens": 0}])
def test_tokens_that_are_not_counted_are_estimated(usage):
    reply = read({"content": "word " * 40}, usage=usage)
    assert (reply.input_tokens, reply.output_tokens, reply.estimated) == (13, 50, True)


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": 5, "completion_tokens": 7}, {"prompt_tokens": 5, "completion_tokens": 0}]
)
def test_tokens_that_are_counted_are_not_said_to_be_estimated(usage):
    assert read({"content": ""}, usage=usage).estimated is False


def test_an_answer_that_was_counted_at_no_tokens_is_counted_by_its_text():
    reply = read({"content": "word " * 40}, usage={"prompt_tokens": 5, "completion_tokens": 0})
    assert (reply.input_tokens, reply.output_tokens, reply.estimated) == (5, 50, True)


STREAM = (
    {"model": "m-1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    {"choices": [{"index": 0, "delta": {"reasoning_content": "be"}}]},
    {"choices": [{"index": 0, "delta": {"reasoning_content": "cause"}}]},
    {"choices": [{"index": 0, "delta": {"content": "The first"}}], "usage": None},
    {"choices": [{"index": 1, "delta": {"content": "not asked for"}}]},
    {"choices": [{"index": 0, "delta": {"content": " wins."}, "finish_reason": "length"}]},
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 7}},
)


def stream(*chunks, end="data: [DONE]\n\n"):
    return ": comment\n\n" + "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + end


def test_an_answer_that_is_streamed_though_nobody_asked_is_read():
    reply = read_reply(stream(*STREAM), BODY)
    assert (reply.text, reply.reasoning, reply.finish) == ("The first wins.", "because", "length")
    assert (reply.input_tokens, reply.output_tokens, reply.served_model, reply.estimated) == (9, 7, "m-1", False)


def test_a_stream_that_breaks_off_or_has_an_error_is_no_reply():
    with pytest.raises(TransientError, match="broke off"):
        read_reply(stream(*STREAM[:4], end=""), BODY)
    with pytest.raises(TransientError, match="slower") as caught:
        read_reply(stream(*STREAM[:4], {"error": {"code": 429, "message": "slower"}}), BODY)
    assert caught.value.fault is Fault.RATE_LIMITED


@pytest.mark.parametrize("read_other", [replies.parse])
def test_a_stream_in_a_form_that_is_not_read_is_named(read_other):
    with pytest.raises(TransientError, match="only streams"):
        read_other("event: message_start\ndata: {}\n\n")


@pytest.mark.parametrize(
    ("message", "what", "remedy"),
    [
        ({"content": None, "reasoning_content": "A is longer"}, "'A is longer'", "reasoning parser"),
        ({"content": "", "tool_calls": [{"function": {"name": "pick", "arguments": "{}"}}]}, "'pick'", "tool"),
        ({"content": None, "function_call": {"name": "pick", "arguments": "{}"}}, "'pick'", "tool"),
        ({"content": "", "tool_calls": []}, "no text", "max_tokens"),
    ],
)
def test_what_came_instead_of_a_text_is_named_with_what_to_do(message, what, remedy):
    textless = replies.instead_of_text(read(message))
    assert textless is not None
    assert what in textless.what
    assert remedy in textless.remedy
    assert (
        replies.instead_of_text(read({"content": "1", **{k: v for k, v in message.items() if k != "content"}})) is None
    )


def test_an_answer_of_no_tokens_costs_none():
    assert read({"content": ""}, usage={"prompt_tokens": 5, "completion_tokens": 0}).output_tokens == 0


def test_an_error_inside_a_choice_counts_by_its_code():
    choice = {"message": {"content": ""}, "error": {"code": 429, "message": "slower"}}
    with pytest.raises(TransientError, match="slower") as caught:
        read_reply(orjson.dumps({"choices": [choice]}).decode(), BODY)
    assert (caught.value.fault, caught.value.may_be_billed) == (Fault.RATE_LIMITED, True)
    with pytest.raises(TransientError):
        read(finish="error")


@pytest.mark.parametrize("beside", [{"usage": {"prompt_tokens": 5}}, {"choices": [{"message": {"content": "a"}}]}])
def test_a_refusal_inside_an_answer_is_billed_only_where_something_was_made(beside):
    error = {"error": {"code": 429, "message": "slower"}}
    for payload, billed in ((error, False), ({**error, **beside}, True)):
        with pytest.raises(TransientError) as caught:
            read_reply(orjson.dumps(payload).decode(), BODY)
        assert (caught.value.fault, caught.value.may_be_billed) == (Fault.RATE_LIMITED, billed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "refusal", "error", "usage", "model", "code", "type"]),
            inner,
        )
    ),
    max_leaves=20,
)


@given(JSON, JSON, JSON)
def test_any_answer_is_a_reply_or_a_call_error(payload, message, usage):
    for value in (payload, {"choices": [{"message": message}], "usage": usage}, {"choices": payload}):
        found: Reply | CallError
        try:
            found = read_reply(orjson.dumps(value).decode(), BODY)
        except CallError as error:
            found = error
        if isinstance(found, Reply):
            assert found.input_tokens > 0
            assert found.finish in ("stop", "length", "content_filter", "refusal")
        else:
            assert found.may_be_billed or found.fault in (Fault.RATE_LIMITED, Fault.QUOTA, Fault.AUTHENTICATION)


VENDORS = Path(__file__).parent / "vendors"
ANSWERS = [
    one["body"]
    for path in sorted(VENDORS.glob("*.json"))
    for one in json.loads(path.read_text(encoding="utf-8"))["answers"]
    if isinstance(one["body"], dict) and one["body"].get("choices")
]
FIELDS = {
    "message": ("content", "refusal", "provider_specific_fields", "reasoning", "reasoning_content"),
    "usage": (
        *("cost", "cost_in_usd_ticks", "is_byok", "cost_details", "cache_creation_input_tokens", "reasoning_tokens"),
        *("prompt_tokens", "completion_tokens", "prompt_cache_hit_tokens", "total_tokens"),
    ),
    "details": ("cached_tokens", "cache_write_tokens", "cache_creation_tokens"),
}
SAID = (None, False, True, 0, 1, 7, 0.25, "", "no", [], {}, {"refusal": "no"}, {"reasoning_tokens": 3})


def read_with_care(payload):
    """Read as if every answer said everything; the reply, or what the error says."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_RARE_IN_MESSAGES", "_RARE_IN_USAGE", "_RARE_IN_DETAILS"):
            patch.setattr(replies, name, Everything())
        return read_or_error(payload)


class Everything:
    def isdisjoint(self, others):
        return False


def read_or_error(payload):
    try:
        return read_reply(orjson.dumps(payload).decode(), BODY)
    except CallError as error:
        return error.fault, str(error)


@pytest.mark.parametrize(("place", "name"), [(place, name) for place, names in FIELDS.items() for name in names])
def test_what_most_answers_lack_is_passed_over_and_nothing_else(place, name):
    for answer, said in product(ANSWERS, SAID):
        payload = json.loads(json.dumps(answer))
        usage = payload.setdefault("usage", {})
        details = usage.setdefault("prompt_tokens_details", {})
        places = {"message": payload["choices"][0]["message"], "usage": usage, "details": details}
        places[place][name] = said
        assert read_or_error(payload) == read_with_care(payload)


PLAIN = {
    "model": "m-1",
    "choices": [{"message": {"content": "said", "refusal": None}, "finish_reason": "stop", "logprobs": None}],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 0},
    },
    "system_fingerprint": "fp",
}
PLACES = [
    ("model",),
    ("choices",),
    ("choices", 0),
    *(("choices", 0, name) for name in ("message", "finish_reason", "logprobs", "error")),
    *(("choices", 0, "message", name) for name in ("content", "refusal", "reasoning")),
    ("usage",),
    *(("usage", name) for name in ("prompt_tokens", "completion_tokens", "cost")),
    *(("usage", "prompt_tokens_details", name) for name in ("cached_tokens", "cache_write_tokens")),
    ("usage", "prompt_tokens_details"),
    ("usage", "completion_tokens_details"),
    ("usage", "completion_tokens_details", "reasoning_tokens"),
    ("system_fingerprint",),
    ("error",),
]
VALUES = [7, 0, -1, 2**31, 1.5, True, None, "7", "", "length", "tool_calls", "error", [], ["x"], {}, {"content": []}]


def placed(payload, path, value):
    """The payload with another value at a path, where there is such a place."""
    answer = orjson.loads(orjson.dumps(payload))
    try:
        here = reduce(getitem, path[:-1], answer)
        if isinstance(here, dict) == isinstance(path[-1], str):
            here[path[-1]] = value
    except (IndexError, KeyError, TypeError):
        pass  # an earlier change took the place away
    return answer


@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(VALUES)), max_size=2))
def test_an_answer_says_the_same_whether_it_is_plain_or_has_a_field_that_is_rare_and_empty(changes):
    """The danger: the short way for plain answers reads something otherwise than the long one."""

    def found(answer):
        try:
            reply = read_reply(orjson.dumps(answer).decode(), BODY)
        except CallError as error:
            return error.fault, str(error)
        return reply._replace(raw="")

    payload = PLAIN
    for path, value in changes:
        payload = placed(payload, path, value)
    rare = placed(payload, ("choices", 0, "message", "reasoning_content"), "")
    assert found(payload) == found(rare)


def test_a_plain_answer_is_read_whole():
    raw = orjson.dumps(PLAIN).decode()
    assert read_reply(raw, BODY) == Reply("said", "stop", "", 9, 3, 2, 0, None, "m-1", "fp", raw)
