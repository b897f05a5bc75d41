"""Wire forms in which simulated judges are asked: OpenAI's chat completions, and Anthropic's Messages. Pure.

A Messages request is read as the chat request that asks the same, so that a judge answers both alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from venire.simulation.chat_replies import JudgeReply, completion_body, error_body
from venire.simulation.chat_requests import ChatRequest, RequestError, read_request
from venire.simulation.faults import FAULT_RESPONSES, FaultKind

_INVALID = "invalid_request_error"

_STOPS: Mapping[str, str] = {"stop": "end_turn", "length": "max_tokens"}
_ERRORS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


def _read_message_request(body: bytes) -> ChatRequest:
    """The chat request that a Messages request comes to; raises `RequestError` for one that would be refused."""
    try:
        sent = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(f"The body is not JSON: {error}") from error
    if not isinstance(sent, dict):
        raise RequestError("The body must be a JSON object")
    if sent.get("stream"):
        raise RequestError("stream must be false: messages are answered whole here", "stream")
    if not isinstance(sent.get("max_tokens"), int):
        raise RequestError("max_tokens: Field required", "max_tokens")
    messages = sent.get("messages")
    if not isinstance(messages, list):
        raise RequestError("messages: Field required", "messages")
    system = [{"role": "system", "content": sent["system"]}] if sent.get("system") else []
    chat: dict[str, Any] = {
        "model": sent.get("model"),
        "max_tokens": sent["max_tokens"],
        "messages": [*system, *messages],
    }
    if (schema := _schema(sent.get("output_config"))) is not None:
        chat["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return read_request(orjson.dumps(chat))


def _schema(config: object) -> object:
    form = config.get("format") if isinstance(config, dict) else None
    return form.get("schema") if isinstance(form, dict) and form.get("type") == "json_schema" else None


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """What an answer says beside the reply; `created` in seconds since 1970, `cached` as in `completion_body`."""

    name: str
    created: int
    model: str
    fingerprint: str
    counted: bool = True
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class WireForm:
    """How a request is read, and how its answer, its refusal and a fault are written."""

    read: Callable[[bytes], ChatRequest]
    answer: Callable[[JudgeReply, AnswerFacts], bytes]
    refuse: Callable[[int, str, str | None, str | None], bytes]
    """From status, message, code and the name of the invalid field."""
    fault: Callable[[FaultKind], bytes]


def _completion(reply: JudgeReply, facts: AnswerFacts) -> bytes:
    return completion_body(
        reply,
        id=f"chatcmpl-{facts.name}",
        created=facts.created,
        model=facts.model,
        fingerprint=facts.fingerprint,
        counted=facts.counted,
        cached=facts.cached,
    )


def _message(reply: JudgeReply, facts: AnswerFacts) -> bytes:
    read = facts.cached or 0
    usage = {
        "input_tokens": reply.prompt_tokens - read,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": read,
        "output_tokens": reply.tokens,
    }
    return orjson.dumps(
        {
            "id": f"msg_{facts.name}",
            "type": "message",
            "role": "assistant",
            "model": facts.model,
            "content": [{"type": "text", "text": reply.text}],
            "stop_reason": _STOPS[reply.finish],
            "stop_sequence": None,
            **({"usage": usage} if facts.counted else {}),
        }
    )


def _refused_completion(status: int, message: str, code: str | None, param: str | None) -> bytes:
    return error_body(message, _INVALID, code=code, param=param)


def _message_fault(kind: FaultKind) -> bytes:
    """The body of a fault; those of gateways are the same in every form."""
    response = FAULT_RESPONSES[kind]
    if kind == "empty_choices":
        return b'{"type":"message","role":"assistant"}'
    if kind not in ("rate_limited", "server_error", "error_inside"):
        return response.body
    said = orjson.loads(response.body)["error"]["message"]
    return message_error(said, response.status)


def message_error(message: str, status: int) -> bytes:
    """The body of an answer of this status, in the form of Anthropic's errors."""
    kind = _ERRORS.get(status, "api_error")
    return orjson.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": None})


CHAT = WireForm(read_request, _completion, _refused_completion, lambda kind: FAULT_RESPONSES[kind].body)
MESSAGES = WireForm(
    _read_message_request,
    _message,
    lambda status, message, code, param: message_error(message, status),
    _message_fault,
)
