"""The simulated provider in the form of Anthropic's Messages: the same judge, as the same adapter asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from venire.arena.errors import CallError, Fault
from venire.arena.records import Request
from venire.judges.providers import PROVIDERS, Endpoint
from venire.simulation.faults import Faults
from venire.simulation.wire_forms import MESSAGES

MODEL = "simulated/gpt-4-0613@1"


def asked(field: Any, server: Any, name: str, key: str | None = None, limit: int = 400, model: str = MODEL) -> Any:
    """The outcome of one question through a provider's adapter: its reply, or its error."""
    request = Request(messages=({"role": "user", "content": field.prompt("ant", "bee")},), max_tokens=limit)

    async def script() -> Any:
        async with server:
            provider = PROVIDERS[name].open(Endpoint(server.base_url, key, 30.0, 4))
            try:
                return await provider.send(provider.encode(model, request), "step-1")
            except CallError as error:
                return error
            finally:
                await provider.close()

    return asyncio.run(script())


def test_a_judge_says_the_same_in_both_forms(field: Any, make_server: Callable[..., Any]) -> None:
    for limit, finish in ((400, "stop"), (20, "length")):
        chat, message = (asked(field, make_server(), name, limit=limit) for name in ("openai", "anthropic"))
        assert chat[:6] == message[:6]
        assert (message.finish, message.estimated) == (finish, False)


def test_a_judge_is_billed_in_the_ledger(field: Any, make_server: Callable[..., Any]) -> None:
    server = make_server()
    reply = asked(field, server, "anthropic")
    (entry,) = server.ledger.entries
    assert (entry.model, entry.key, entry.outcome) == (MODEL, "step-1", "answered")
    assert entry.billed == (reply.input_tokens, reply.output_tokens)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("rate_limited", Fault.RATE_LIMITED),
        ("server_error", Fault.TRANSIENT),
        ("error_inside", Fault.TRANSIENT),
        ("empty_choices", Fault.TRANSIENT),
        ("html", Fault.TRANSIENT),
        ("cut", Fault.TRANSIENT),
    ],
)
def test_faults_are_those_of_the_form(fault: str, expected: Fault, field: Any, make_server: Callable[..., Any]) -> None:
    error = asked(field, make_server(faults=Faults(**{fault: 1.0})), "anthropic")
    assert error.fault is expected


def test_an_answer_without_tokens_is_estimated(field: Any, make_server: Callable[..., Any]) -> None:
    assert asked(field, make_server(faults=Faults(unpriced=1.0)), "anthropic").estimated


def test_a_key_and_a_model_are_asked_for(field: Any, make_server: Callable[..., Any]) -> None:
    assert asked(field, make_server(require_key="sk-ant-1234"), "anthropic", "sk-ant-1234").text
    refused = asked(field, make_server(require_key="sk-ant-1234"), "anthropic", "sk-ant-9999")
    assert refused.fault is Fault.AUTHENTICATION
    assert "sk-ant-9999" not in str(refused)
    unknown = asked(field, make_server(), "anthropic", model="nobody")
    assert (unknown.fault, unknown.status) == (Fault.BAD_REQUEST, 404)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"messages": None}, "messages: Field required"),
        ({"stream": True}, "stream must be false"),
    ],
)
def test_a_bad_request_is_refused_in_the_form_of_anthropic(
    wrong: dict[str, Any], message: str, make_server: Callable[..., Any], talk: Callable[..., None]
) -> None:
    async def script(client: Any) -> None:
        body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Say."}], **wrong}
        url = client.server.base_url + "/messages"
        async with client.session.post(url, data=orjson.dumps(body)) as response:
            shown = await response.json()
            assert (response.status, shown["type"], shown["error"]["type"]) == (400, "error", "invalid_request_error")
            assert message in shown["error"]["message"]

    talk(make_server(), script)


def test_system_texts_and_schemas_are_read() -> None:
    body = {
        "model": MODEL,
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Judge."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Say."}]}],
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object", "required": ["winner"]}}},
    }
    read = MESSAGES.read(orjson.dumps(body))
    assert read.messages == (("system", "Judge."), ("user", "Say."))
    assert (read.json_only, read.json_keys, read.max_tokens) == (True, ("winner",), 9)
