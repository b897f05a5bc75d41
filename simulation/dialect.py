"""The OpenAI-compatible dialect as a server sees it: requests read, answers and errors written. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import orjson

__all__ = ["Ask", "RequestError", "Stage", "completion_body", "error_body", "models_body", "read_request"]

Stage = Literal["reasons", "verdict", "repair"]

_STAGES: tuple[Stage, ...] = ("reasons", "verdict", "repair")


@dataclass(frozen=True, slots=True)
class Ask:
    """One chat request, as far as a simulated judge needs it."""

    model: str
    question: str
    """The first user message: where the texts stand."""
    stage: Stage
    repeat: int
    characters: int
    """Of all messages together."""
    max_tokens: int | None
    quoted: tuple[str, ...] = ()
    """The assistant's turns: earlier replies that the client sends back."""
    messages: tuple[tuple[str, str], ...] = ()
    """Role and text of each, in order."""


class RequestError(Exception):
    """A request that a provider answers with status 400; `param` names the field at fault, where it is one."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


def read_request(body: bytes) -> Ask:
    """The chat request in a body of JSON.

    The stage is told by the assistant's turns: none, reasons are wanted; one, the verdict; more, a repair.
    Raises `RequestError` for what a provider would refuse.
    """
    try:
        sent = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(f"The body is not JSON: {error}") from error
    if not isinstance(sent, dict):
        raise RequestError("The body must be a JSON object")
    model = sent.get("model")
    if not isinstance(model, str) or not model:
        raise RequestError("model must be a name", "model")
    if sent.get("stream"):
        raise RequestError("stream is not supported here", "stream")
    said = _messages(sent.get("messages"))
    question = next((text for role, text in said if role == "user"), None)
    if question is None:
        raise RequestError("messages must hold one of role user", "messages")
    quoted = tuple(text for role, text in said if role == "assistant")
    seed = _whole(sent, "seed")
    limit = _whole(sent, "max_completion_tokens", least=1)
    return Ask(
        model=model,
        question=question,
        stage=_STAGES[min(len(quoted), 2)],
        repeat=1 if seed is None else seed,
        characters=sum(len(text) for _, text in said),
        max_tokens=_whole(sent, "max_tokens", least=1) if limit is None else limit,
        quoted=quoted,
        messages=tuple(said),
    )


def _messages(sent: object) -> list[tuple[str, str]]:
    """Role and text of each message."""
    if not isinstance(sent, list) or not sent:
        raise RequestError("messages must be a list that is not empty", "messages")
    said = []
    for number, message in enumerate(sent):
        if not isinstance(message, dict) or not isinstance(role := message.get("role"), str):
            raise RequestError(f"messages[{number}] must be an object with a role", "messages")
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(part["text"] for part in content if _is_text(part))
        if not isinstance(content, str):
            raise RequestError(f"messages[{number}] must have a text as its content", "messages")
        said.append((role, content))
    return said


def _is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _whole(sent: dict[str, Any], name: str, least: int | None = None) -> int | None:
    """A field that must be a whole number, or None where it is absent or null."""
    value = sent.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise RequestError(f"{name} must be a whole number", name)
    if least is not None and value < least:
        raise RequestError(f"{name} must be at least {least}", name)
    return value


def completion_body(
    *,
    id: str,
    created: int,
    model: str,
    text: str,
    finish: str,
    prompt_tokens: int,
    tokens: int,
    fingerprint: str,
    counted: bool = True,
    cached: int | None = None,
) -> bytes:
    """A `chat.completion` object with one choice; `created` in seconds since 1970, tokens told where `counted`.

    `cached` are the prompt's tokens that were read from a cache, where there is one.
    """
    usage: dict[str, Any] = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": tokens,
        "total_tokens": prompt_tokens + tokens,
    }
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return orjson.dumps(
        {
            "id": id,
            "object": "chat.completion",
            "created": created,
            "model": model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text, "refusal": None},
                    "logprobs": None,
                    "finish_reason": finish,
                }
            ],
            **({"usage": usage} if counted else {}),
            "system_fingerprint": fingerprint,
        }
    )


def models_body(names: Iterable[str]) -> bytes:
    """The list of models as `GET /v1/models` answers it."""
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "venire"} for name in names]
    return orjson.dumps({"object": "list", "data": listed})


def error_body(message: str, kind: str, *, code: str | None = None, param: str | None = None) -> bytes:
    """An error in the form that clients of this dialect expect."""
    return orjson.dumps({"error": {"message": message, "type": kind, "code": code, "param": param}})
