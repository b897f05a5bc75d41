"""Other clients of an OpenAI-compatible API at the simulated provider: streams, models, formats, log-probabilities."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

from venire.judges.protocols.criteria import CRITERIA
from venire.simulation.faults import Faults
from venire.simulation.server import JudgeServer, serve_in_thread

STEADY = "simulated/gpt-4-0613@1"
CHAT = [{"role": "user", "content": "Name a prime number."}]


@pytest.fixture(scope="module")
def openai() -> Any:
    """The library, whose import takes more than a second: only the worker that has these tests needs it."""
    return import_module("openai")


@pytest.fixture
def client(openai: Any, make_server: Callable[..., JudgeServer]) -> Iterator[Any]:
    with (
        serve_in_thread(make_server()) as server,
        openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as opened,
    ):
        yield opened


def test_a_stream_holds_the_text_of_the_whole_answer(client: Any) -> None:
    whole = client.chat.completions.create(model=STEADY, messages=CHAT)
    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(model=STEADY, messages=CHAT, stream=True, stream_options=options))
    *steps, end, tokens = chunks
    assert "".join(chunk.choices[0].delta.content for chunk in steps) == whole.choices[0].message.content
    assert len(steps) > 20
    assert (steps[0].choices[0].delta.role, steps[0].object) == ("assistant", "chat.completion.chunk")
    assert end.choices[0].finish_reason == whole.choices[0].finish_reason == "stop"
    assert (tokens.choices, tokens.usage.total_tokens) == ([], whole.usage.total_tokens)
    plain = list(client.chat.completions.create(model=STEADY, messages=CHAT, stream=True))
    assert len(plain) == len(chunks) - 1
    assert all(chunk.usage is None for chunk in plain)
    with client.chat.completions.create(model=STEADY, messages=CHAT, stream=True) as left:
        next(iter(left))  # a client that reads no further
    assert client.chat.completions.create(model=STEADY, messages=CHAT).choices


def test_a_stream_is_server_sent_events_and_faults_are_not_streamed(
    ask: Any, field: Any, talk: Any, make_server: Any
) -> None:
    body = ask(STEADY, field.prompt("ant", "cat"), stream=True, max_tokens=7)

    async def script(client: Any) -> None:
        answer = await client.chat(body)
        assert answer.headers["Content-Type"] == "text/event-stream"
        *events, done, rest = answer.raw.decode().split("\n\n")
        assert (done, rest) == ("data: [DONE]", "")
        assert all(event.startswith("data: {") for event in events)
        assert json.loads(events[-1][6:])["choices"][0]["finish_reason"] == "length"
        assert client.server.ledger.totals().answered == 1

    talk(make_server(), script)

    async def refused(client: Any) -> None:
        answer = await client.chat(body)
        assert (answer.status, answer.headers["Content-Type"].partition(";")[0]) == (429, "application/json")

    talk(make_server(faults=Faults(rate_limited=1.0)), refused)


def test_a_model_is_found_by_its_name_and_another_is_not(openai: Any, client: Any) -> None:
    assert client.models.retrieve(STEADY).id == STEADY
    assert client.models.retrieve("simulated/gpt-4-0613@77").owned_by == "venire"
    listed = [one.id for one in client.models.list()]
    assert client.models.retrieve(listed[0]).id == listed[0]
    with pytest.raises(openai.NotFoundError, match="gpt-4o") as caught:
        client.models.retrieve("gpt-4o")
    assert caught.value.code == "model_not_found"


def test_several_answers_and_json_that_cannot_be_had_are_refused_with_what_to_do(openai: Any, client: Any) -> None:
    assert client.chat.completions.create(model=STEADY, messages=CHAT, n=1).choices
    with pytest.raises(openai.BadRequestError, match=r"n must be 1: .* send another request"):
        client.chat.completions.create(model=STEADY, messages=CHAT, n=3)
    text = {"type": "text"}
    assert client.chat.completions.create(model=STEADY, messages=CHAT, response_format=text).choices
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    for wanted in ({"type": "json_object"}, schema):
        with pytest.raises(openai.BadRequestError, match="in plain text; leave response_format out"):
            client.chat.completions.create(model=STEADY, messages=CHAT, response_format=wanted)


def test_json_is_answered_where_the_question_has_such_an_answer(openai: Any, client: Any, field: Any) -> None:
    question = field.prompt("ant", "cat") + f"\nGrade {', '.join(CRITERIA)}."
    asked = {"model": STEADY, "messages": [{"role": "user", "content": question}]}
    found = client.chat.completions.create(**asked, response_format={"type": "json_object"})
    keys = list(json.loads(found.choices[0].message.content))

    def schema(*required: str) -> dict[str, Any]:
        return {"type": "json_schema", "json_schema": {"name": "x", "schema": {"required": required}}}

    assert client.chat.completions.create(**asked, response_format=schema(*keys)).choices
    with pytest.raises(openai.BadRequestError, match="has no key 'mood'"):
        client.chat.completions.create(**asked, response_format=schema("mood"))


def test_log_probabilities_come_where_they_are_asked_for(client: Any, field: Any) -> None:
    assert client.chat.completions.create(model=STEADY, messages=CHAT).choices[0].logprobs is None
    (choice,) = client.chat.completions.create(model=STEADY, messages=CHAT, logprobs=True, top_logprobs=2).choices
    assert "".join(place.token for place in choice.logprobs.content) == choice.message.content
    assert {place.logprob for place in choice.logprobs.content} == {0.0}
    question = [{"role": "user", "content": field.prompt("ant", "cat") + "\nAnswer 1 or 2."}]
    asked = {"model": STEADY, "messages": question, "logprobs": True, "top_logprobs": 5}
    (verdict,) = client.chat.completions.create(**asked).choices
    (place,) = verdict.logprobs.content
    assert {one.token for one in place.top_logprobs} >= {"1", "2"}
    assert place.logprob < 0.0
    chunks = list(client.chat.completions.create(**asked, stream=True))
    assert chunks[1].choices[0].logprobs.content[0].logprob == place.logprob
