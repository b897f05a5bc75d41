"""Reading an answer in the form of OpenAI's chat completions, which most vendors and servers speak."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any, NamedTuple

import orjson

from venire.arena.errors import CallError, Fault
from venire.arena.records import Reply
from venire.judges.providers.faults import error_inside, failure
from venire.judges.providers.logprobs import read_content
from venire.judges.providers.token_counting import estimate

_FINISHES: Mapping[str, str] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    **dict.fromkeys(
        (
            *("blocklist", "content_filter", "content_filtered", "guardrail_intervened", "prohibited_content"),
            *("recitation", "safety", "spii"),
        ),
        "content_filter",
    ),
}
"""Reasons that are not a reply's own end, in the words of OpenAI and of the vendors that gateways pass on."""
# Where generation broke off inside the server: SGLang, Mistral and OpenRouter, DeepSeek.
_BROKEN_OFF = ("abort", "error", "insufficient_system_resource")
_MAX_DOLLARS = 1_000_000
_TICKS = 10**10
"""Ticks per dollar, the unit in which xAI reports the cost of a call."""
_MAX_TOKENS = 2**31 - 1
_PLAIN_FINISHES: Mapping[str, str] = {"stop": "stop", "length": "length"}
# Fields that most answers lack: one with any of them is no plain one.
_RARE_IN_MESSAGES = frozenset({"provider_specific_fields", "reasoning", "reasoning_content"})
_RARE_IN_USAGE = frozenset(
    {"cache_creation_input_tokens", "cost", "cost_in_usd_ticks", "prompt_cache_hit_tokens", "reasoning_tokens"}
)
_RARE_IN_DETAILS = frozenset({"cache_write_tokens", "cache_creation_tokens"})


def read_reply(raw: str, body: bytes) -> Reply:
    """The reply in an answer of status 200; `raw` is its text without the key, `body` the request that it answers.

    Where the answer counts no tokens they are estimated from the texts (see `tokens.estimate`) and marked so in the
    reply: zero would understate the cost to the budget. Raises `CallError` where the answer is unusable; the call may
    be billed all the same.
    """
    payload = read_stream(raw) if is_stream(raw) else parse(raw)
    return _plain_reply(payload, raw) or _any_reply(payload, raw, body)


def _plain_reply(payload: Mapping[str, Any], raw: str) -> Reply | None:
    """The reply of an answer with nothing in it but what most have; None for any other, which `_any_reply` reads.

    For what is read here both say the same, and this one takes half the time.
    """
    try:
        choice, usage = payload["choices"][0], payload["usage"]
        message, finish = choice["message"], _PLAIN_FINISHES[choice["finish_reason"]]
        text, model = message["content"], payload["model"]
        given, made = usage["prompt_tokens"], usage["completion_tokens"]
    except (KeyError, IndexError, TypeError):
        return None
    details, of_output = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    fingerprint = payload.get("system_fingerprint") or ""
    if not (
        type(text) is type(model) is type(fingerprint) is str
        and type(given) is type(made) is int
        and 0 < given <= _MAX_TOKENS
        and 0 < made <= _MAX_TOKENS
        and type(details) is type(of_output) is dict
        and not of_output.get("reasoning_tokens")
        and message.get("refusal") is None
        and not choice.get("logprobs")
        and "error" not in payload
        and "error" not in choice
        and _RARE_IN_MESSAGES.isdisjoint(message)
        and _RARE_IN_USAGE.isdisjoint(usage)
        and _RARE_IN_DETAILS.isdisjoint(details)
    ):
        return None
    return Reply(text, finish, "", given, made, count(details, "cached_tokens"), 0, None, model, fingerprint, raw)


def _any_reply(payload: Mapping[str, Any], raw: str, body: bytes) -> Reply:
    choice, message = _choice(payload)
    text, finish = _text(message, choice)
    reasoning = _reasoning(message)
    said = text + reasoning
    usage = member(payload, "usage")
    given, made = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    cached = count(member(usage, "prompt_tokens_details"), "cached_tokens") or count(usage, "prompt_cache_hit_tokens")
    thought = count(member(usage, "completion_tokens_details"), "reasoning_tokens") or count(usage, "reasoning_tokens")
    return Reply(
        text=text,
        finish=finish,
        reasoning=reasoning,
        input_tokens=given or estimate(body.decode()),
        output_tokens=made if made and not thought else _output_tokens(usage, thought, said),
        cached_tokens=cached,
        reasoning_tokens=thought,
        cost=_cost(usage),
        served_model=string(payload, "model"),
        fingerprint=string(payload, "system_fingerprint"),
        raw=raw,
        estimated=not (given and (made or thought or (not said and isinstance(usage.get("completion_tokens"), int)))),
        written_tokens=_written(usage),
        logprobs=read_content(listed, text) if (listed := choice.get("logprobs")) else (),
    )


def _choice(payload: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The first choice of an answer and its message; raises the error that the answer contains, if any."""
    if "error" in payload:
        _raise_error_of(payload)
    choices = payload.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise no_answer("HTTP 200 without a choice")
    if "error" in choice:
        _raise_error_of(choice)
    if choice.get("finish_reason") in _BROKEN_OFF:
        raise no_answer(f"HTTP 200 with a choice that ended in {choice['finish_reason']}")
    return choice, message


def _raise_error_of(part: Mapping[str, Any]) -> None:
    """Raise the error that a part of an answer carries, if it does."""
    if (broken := error_inside(part)) is not None:
        raise broken


def parse(raw: str) -> dict[str, Any]:
    """The JSON object that an answer is; raises `CallError` where it is none."""
    try:
        payload = orjson.loads(raw)
    except orjson.JSONDecodeError:
        payload = None
    if not isinstance(payload, dict):
        if is_stream(raw):
            raise no_answer("HTTP 200 with an event stream, though none was asked for: this server only streams")
        raise no_answer("HTTP 200 with a body that is no JSON object; does base_url end where the API begins?")
    return payload


_STREAM = re.compile(r"\s*(?:data|event|id|retry)?:")


def is_stream(raw: str) -> bool:
    """Whether an answer is a stream of server-sent events."""
    return _STREAM.match(raw) is not None


def read_stream(raw: str) -> dict[str, Any]:
    """The answer that a stream of chunks makes, for servers that stream though nobody asked them to.

    Raises `CallError` where the stream broke off: neither a reason for its end nor the mark of the end came.
    """
    answer: dict[str, Any] = {}
    message: dict[str, Any] = {}
    choice: dict[str, Any] = {"message": message, "finish_reason": None}
    ended = False
    for line in raw.splitlines():
        name, _, data = line.partition(":")
        if name != "data":
            continue
        if data.strip() == "[DONE]":
            ended = True
            continue
        chunk = parse(data)
        answer |= {key: value for key, value in chunk.items() if value is not None and key != "choices"}
        for part in chunk.get("choices") or ():
            if isinstance(part, dict) and not part.get("index"):
                choice |= {key: value for key, value in part.items() if value is not None and key != "delta"}
                _add_delta(message, part.get("delta"))
    if not (ended or choice["finish_reason"] or "error" in answer):
        raise no_answer("HTTP 200 with an event stream that broke off")
    return answer | {"choices": [choice]}


def _add_delta(message: dict[str, Any], delta: object) -> None:
    """Put a part of a message to what came of it before: texts and lists grow, anything else is as it was said last."""
    for key, value in delta.items() if isinstance(delta, dict) else ():
        before = message.get(key)
        if isinstance(value, str) and key != "role":
            message[key] = string(message, key) + value
        elif isinstance(value, list):
            message[key] = [*(before if isinstance(before, list) else ()), *value]
        elif value is not None:
            message[key] = value


def no_answer(message: str) -> CallError:
    """The error for an answer of status 200 that holds no reply: the call may be billed all the same."""
    return failure(message, Fault.TRANSIENT, status=200, may_be_billed=True)


def _text(message: Mapping[str, Any], choice: Mapping[str, Any]) -> tuple[str, str]:
    """Text and finish; a refusal has a field of its own, which litellm moves into another."""
    refused = string(message, "refusal") or string(member(message, "provider_specific_fields"), "refusal")
    content = message.get("content")
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        refused = refused or "".join(string(part, "refusal") for part in parts)
        content = "".join(string(part, "text") for part in parts)
    if refused:
        return refused, "refusal"
    return content if isinstance(content, str) else "", _FINISHES.get(string(choice, "finish_reason").lower(), "stop")


class Textless(NamedTuple):
    """What came instead of a text, and what to do about it."""

    what: str
    remedy: str


def instead_of_text(reply: Reply) -> Textless | None:
    """What a reply has that has no text; None where it has one.

    >>> instead_of_text(Reply("", reasoning="Answer A names the river.")).what
    "no text, but the thought 'Answer A names the river.'"
    """
    if reply.text.strip():
        return None
    if (name := _called_tool(reply.raw)) is not None:
        return Textless(
            f"no text, but a call of the tool {name!r}",
            "none is offered: turn off the server's parser of tool calls (vLLM: --enable-auto-tool-choice)",
        )
    if reply.reasoning:
        return Textless(
            f"no text, but the thought {excerpt(reply.reasoning)!r}",
            "raise max_tokens, turn thinking off, or see whether the server's reasoning parser is that of the model",
        )
    return Textless("no text", "raise max_tokens, since a model that thinks unseen may have used them up")


def _called_tool(raw: str) -> str | None:
    """The name of the tool that an answer calls; None where it calls none."""
    if '"tool_calls"' not in raw and '"function_call"' not in raw:
        return None
    try:
        _, message = _choice(read_stream(raw) if is_stream(raw) else parse(raw))
    except CallError:
        return None
    calls = message.get("tool_calls")
    first = calls[0] if isinstance(calls, list) and calls else None
    call = member(first, "function") if isinstance(first, dict) else member(message, "function_call")
    return string(call, "name") or None


_EXCERPT = 100
"""Characters that an excerpt has from the beginning of a text, and from its end."""


def excerpt(text: str) -> str:
    """The beginning and the end of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= 2 * _EXCERPT else f"{line[:_EXCERPT]} ... {line[-_EXCERPT:]}"


def _reasoning(message: Mapping[str, Any]) -> str:
    """The reasoning, which is in a separate field or, at Mistral, in parts of the content."""
    content = message.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    thoughts = [part["thinking"] for part in parts if isinstance(part.get("thinking"), list)]
    return (
        string(message, "reasoning")
        or string(message, "reasoning_content")
        or "".join(string(piece, "text") for pieces in thoughts for piece in pieces if isinstance(piece, dict))
    )


def _output_tokens(usage: Mapping[str, Any], thought: int, text: str) -> int:
    """Output tokens with those of reasoning, which xAI leaves out of the count, though not out of the total."""
    given, made = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    if thought and count(usage, "total_tokens") == given + made + thought:
        return made + thought
    if "completion_tokens" in usage and not text:
        return made
    return made or estimate(text)


def _cost(usage: Mapping[str, Any]) -> int | None:
    """The cost of a call as the vendor reports it: OpenRouter in dollars, xAI in ticks.

    With a vendor's own key behind OpenRouter the call is paid twice: a fee there, and the tokens at the vendor. None
    where the second part is not reported, so that the price counts.
    """
    cost = _nano_dollars(usage.get("cost"))
    if cost is not None and usage.get("is_byok") is True:
        upstream = _nano_dollars(member(usage, "cost_details").get("upstream_inference_cost"))
        return None if upstream is None else cost + upstream
    if cost is None and (ticks := count(usage, "cost_in_usd_ticks", most=_MAX_DOLLARS * _TICKS)):
        return -(-ticks // (_TICKS // 10**9))
    return cost


def _written(usage: Mapping[str, Any]) -> int | None:
    """Tokens written to a cache, in the words of OpenAI or of litellm; None where nothing is said of them."""
    details = member(usage, "prompt_tokens_details")
    for parent, name in (
        (details, "cache_write_tokens"),
        (details, "cache_creation_tokens"),
        (usage, "cache_creation_input_tokens"),
    ):
        if isinstance(parent.get(name), int):
            return count(parent, name)
    return None


def member(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object of that name; an empty one where there is none."""
    value = parent.get(name)
    return value if type(value) is dict else {}


def string(parent: Mapping[str, Any], name: str) -> str:
    """The text of that name; empty where there is none."""
    value = parent.get(name)
    return value if type(value) is str else ""


def count(parent: Mapping[str, Any], name: str, most: int = _MAX_TOKENS) -> int:
    """A count of tokens; 0 where there is none, or none that can be true."""
    value = parent.get(name)
    return value if type(value) is int and 0 <= value <= most else 0  # a truth value is no count


def _nano_dollars(dollars: object) -> int | None:
    """The cost that the vendor reports, rounded up; the shortest decimal of a float is what was written."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float) or not 0 <= dollars <= _MAX_DOLLARS:
        return None
    return int((Decimal(str(dollars)) * 10**9).to_integral_value(ROUND_CEILING))
