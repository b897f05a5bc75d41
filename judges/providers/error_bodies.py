"""What the body of a failed call says: its machine codes, its message and how long it says the prompt is.

One reader for all of the field's forms. What differs from server to server are rows of the tables below: where errors
are nested, what codes and messages are called there, and the sentences of prompts that are too long.
docs/providers.md#error-bodies says who writes which form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from venire.arena.errors import PromptSize

TOO_LONG_CODE = "context_length_exceeded"
FILTERED_CODE = "content_filter"
DAY_USED_UP_CODE = "insufficient_quota"

# Names under which a further error, a list of them or its JSON text is nested, inmost last.
_NESTED = (
    *("metadata", "provider_specific_fields", "innererror", "raw", "violations", "details"),
    *("error", "errors", "detail", "message"),
)
_TEXTS = frozenset({"raw", "message"})
"""Of these the ones that hold JSON as a text: what a gateway passes on."""
_DEEPEST = 6

_CODE_NAMES = ("error_type", "reason", "limit_source", "code", "type", "error_code", "__type")
_MESSAGE_NAMES = ("message", "msg", "raw", "error", "detail", "Message", "error_message", "error_msg", "errorMessage")
_TOO_LONG_PARAMETERS = frozenset({"input_tokens", "input_text"})
"""vLLM's names of what is wrong with a prompt that is too long."""
_COUNTED = re.compile(r"context length is (?P<context>\d+) tokens.* \(parameter=input_tokens, value=(?P<given>\d+)\)$")
"""How a message of vLLM's ends that has the parameter `input_tokens`, whatever its sentence."""
_FILTER_MARKS = frozenset({"flagged_input", "patterns"})
"""What OpenRouter's moderation and its guard against injected prompts add."""
_BLOCKED = frozenset({"2016", "2017"})
"""Cloudflare's codes for a prompt and an answer that its guardrails block, beside `success: false`."""
_NAMED_FIELDS = 3
"""Fields of a request that a message names, of all that were refused."""


class ErrorBody(NamedTuple):
    """What a body says; all of it may be missing."""

    codes: tuple[str, ...] = ()
    """Machine codes, inmost first, with one of ours where the server says the same in another place than a code."""
    message: str = ""
    size: PromptSize | None = None
    """How long the prompt is, where that was refused and the server counted it."""


def read_error_body(payload: object, header: str | None = None) -> ErrorBody:
    """Read the JSON of a body, None where it is none; `header` is what AWS names the error outside of the body."""
    codes: list[str] = []
    message = ""
    size: PromptSize | None = None
    for error in _errors(payload):
        text = _message(error)
        message = message or text
        marked, counted = _marks(error, text)
        size = size or counted
        named = [error.get(name) for name in _CODE_NAMES]
        codes += marked + [_aws_name(code) for code in named if isinstance(code, str | int) and code != ""]
    if header:
        codes.append(_aws_name(header))
    if isinstance(payload, dict) and payload.get("success") is False and not _BLOCKED.isdisjoint(codes):
        codes.append(FILTERED_CODE)
    return ErrorBody(tuple(codes), message, size)


def parse_json(text: str) -> object:
    """The JSON that a text is; None where it is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


_QUOTED = 1000
"""Characters of a body that may be quoted as its message."""
_PAGE = re.compile(r"\s*<(!doctype|html|head|body)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title>([^<]{1,200})</title>", re.IGNORECASE)


def what_is_said(body: ErrorBody, text: str) -> str:
    """The server's own sentence in a body, else what the body is instead of one."""
    if body.message:
        return body.message
    if _PAGE.match(text):
        titled = _TITLE.search(text)
        return f"a web page, {titled[1].strip()}" if titled else "a web page"
    return text[:_QUOTED].strip() or "no message"


def _errors(payload: object, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The objects in which servers put what went wrong, inmost first."""
    if depth > _DEEPEST:
        return
    if isinstance(payload, list):
        fields = [text for entry in payload if isinstance(entry, dict) and "msg" in entry and (text := _message(entry))]
        if len(fields) > 1:
            more = f" (and {len(fields) - _NAMED_FIELDS:,} more)" if len(fields) > _NAMED_FIELDS else ""
            yield {"message": "; ".join(fields[:_NAMED_FIELDS]) + more}
        for entry in payload:
            yield from _errors(entry, depth + 1)
    if not isinstance(payload, dict):
        return
    for name in _NESTED:
        inner = payload.get(name)
        if name in _TEXTS and isinstance(inner, str):
            inner = _json_in(inner)
        if isinstance(inner, dict | list):
            yield from _errors(inner, depth + 1)
    yield payload


def _json_in(text: str) -> object:
    """The JSON that a message passes on, behind the names of exceptions or not; None where it is no such text."""
    inner = without_wrapping(text)
    return parse_json(inner) if inner[:1] in ("{", "[") else None


def _aws_name(code: str | int) -> str:
    """A code as a text, without the namespace before and the address behind it that AWS may write."""
    return str(code).rpartition("#")[2].partition(":")[0] if isinstance(code, str) else str(code)


def _message(error: Mapping[str, Any]) -> str:
    """The message of one object; what FastAPI says of a request's fields names them."""
    for name in _MESSAGE_NAMES:
        value = error.get(name)
        if isinstance(value, str) and value.strip() and not (name in _TEXTS and _json_in(value)):
            where = error.get("loc") if name == "msg" else None
            field = ".".join(map(str, where)) if isinstance(where, list) else ""
            return f"{field}: {value}" if field else value
    return ""


def _marks(error: Mapping[str, Any], message: str) -> tuple[list[str], PromptSize | None]:
    """Codes for what a server says in another place than a code, and its count of a prompt that is too long."""
    codes, size = [], None
    if not _FILTER_MARKS.isdisjoint(error) or _FILTERED_CLASS.match(message):
        codes.append(FILTERED_CODE)
    if "PerDay" in str(error.get("quotaId")):
        codes.append(DAY_USED_UP_CODE)  # Google's: a wait of seconds does not help, whatever RetryInfo contains
    sentence, parameter = read_too_long(message), error.get("param")
    beyond = isinstance(parameter, str) and parameter in _TOO_LONG_PARAMETERS
    if sentence is not None or beyond or _TOO_LONG_CLASS.match(message):
        codes.append(TOO_LONG_CODE)
        size = sentence
    if size is None and parameter == "input_tokens" and (found := _COUNTED.search(message)):
        size = PromptSize(int(found["given"]), int(found["context"]), at_least=" at least " in message)
    counted, context = error.get("n_prompt_tokens"), error.get("n_ctx")
    if type(counted) is type(context) is int and min(counted, context) > 0:
        size = PromptSize(counted, context)  # llama.cpp's
    return codes, size if size is not None and size.tokens else None


_FILTERED_CLASS = re.compile(r"(litellm\.BadRequestError: )?litellm\.ContentPolicyViolationError: ")
_TOO_LONG_CLASS = re.compile(r"(litellm\.BadRequestError: )?litellm\.ContextWindowExceededError: ")
"""How messages of LiteLLM's proxy begin, whose codes are those of any bad request: the class of the exception."""

_WRAPPED = re.compile(
    r"(?:litellm\.\w+Error: |[A-Z]\w+(?:Error|Exception)(?:: | - )|<LM Studio error> |Input validation error: "
    r"|The model returned the following errors: |Invalid request: |<400> InternalError\.Algo\.InvalidParameter: )+"
)
"""What gateways and servers put before a sentence that is another's."""


def without_wrapping(message: str) -> str:
    """A message without what gateways have put before it."""
    wrapped = _WRAPPED.match(message)
    return message[wrapped.end() :] if wrapped else message


class TooLong(NamedTuple):
    """The sentence of a server about a prompt that is too long."""

    who: str
    pattern: re.Pattern[str]


def _too_long(*rows: tuple[str, str]) -> tuple[TooLong, ...]:
    """Rows of who says it and the whole sentence; {given} and {context} are its counts, {n} another number."""
    number = r"\d(?:[\d,]*\d)?"
    found = []
    for who, sentence in rows:
        pattern = sentence.replace("{n}", number)
        for name in ("given", "context"):
            pattern = pattern.replace(f"{{{name}}}", f"(?P<{name}>{number})")
        found.append(TooLong(who, re.compile(pattern.replace("{least}", "(?P<least>at least )?"))))
    return tuple(found)


_OPENAI = r"This (?:model|endpoint)'s maximum context length is {context} tokens(?:\. H|, h)owever, "
_REDUCE = r"(?:\. Please reduce [a-z_; ]+\.(?: None)?)?\.?(?: \(parameter=[a-z_]+, value={n}\))?"
_LOAD = r"Try to load the model with a larger context length, or provide a shorter (?:input|prompt)\.?"
_NO_DATA = r"(?: ?Error Data: n/a, Additional Data: n/a)?"
TOO_LONG = _too_long(
    ("OpenAI", _OPENAI + r"your messages resulted in {given} tokens" + _REDUCE),
    ("OpenAI, DeepSeek, vLLM", _OPENAI + r"you requested {n} tokens \({given} in [a-z ]+[,;] {n} [a-z ]+\)" + _REDUCE),
    ("vLLM", _OPENAI + r"your prompt contains {least}{given} input tokens, which exceeds [a-z ]+" + _REDUCE),
    ("OpenRouter", _OPENAI + r"you requested about {n} tokens \({given} of text input[a-z\d ,]*\)\. Please reduce the "
     r"length of either one, or use the [a-z\"-]+ [a-z]+ to compress your prompt automatically\."),
    ("OpenAI, vLLM", _OPENAI + r"you requested {given} tokens" + _REDUCE),
    ("vLLM", r"You passed {given} input tokens and requested {n} output tokens\. However, the model's context length "
     r"is only {context} tokens, resulting in a maximum input length of {n} tokens" + _REDUCE),
    ("vLLM", r"Input length \({given}\) exceeds model's maximum context length \({context}\)\."),
    ("vLLM", r"The decoder prompt \(length {given}\) is longer than the maximum model length of {context}\. Make "
     r"sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens\.[A-Za-z ,]*\.?"),
    ("vLLM", r"'max_tokens' or 'max_completion_tokens' is too large: {n}\. This model's maximum context length is "
     r"{context} tokens and your request has {given} input tokens \({n} > {n} - {n}\)\.(?: None)?"),
    ("SGLang", r"The input \({given} tokens\) is longer than the model's context length \({context} tokens\)\."),
    ("SGLang", r"Requested token count exceeds the model's maximum context length of {context} tokens\. You requested "
     r"a total of {n} tokens: {given} tokens from the input messages and {n} tokens for the completion\. "
     r"Please reduce the number of tokens in the input messages or the completion to fit within the limit\."),
    ("Anthropic", r"prompt is too long: {given} tokens > {context} maximum"),
    ("Anthropic", r"input length and `max_tokens` exceed context limit: {given} \+ {n} > {context}, decrease input "
     r"length or `max_tokens` and try again"),
    ("Gemini", r"The input token count(?: \({given}\))? exceeds the maximum number of tokens allowed \({context}\)\."),
    ("Bedrock", r"Input is too long for requested model\.?"),
    ("TGI, Together", r"`inputs` tokens \+ `max_new_tokens` must be <= {context}\. Given: {given} `inputs` tokens and "
     r"{n} `max_new_tokens`"),
    ("TGI, Together", r"`inputs` must have less than {context} tokens\. Given: {given}"),
    ("llama.cpp", r"request \({given} tokens\) exceeds the available context size \({context} tokens\), "
     r"try increasing it"),
    ("llama.cpp", r"the request exceeds the available context size[.,] try increasing [a-z ]+"),
    ("LM Studio", r"Trying to keep the first {given} tokens when context the overflows\. However, the model is loaded "
     r"with context length of only {context} tokens, which is not enough\. " + _LOAD + _NO_DATA),
    ("LM Studio", r"The number of tokens to keep from the initial prompt is greater than the context length"
     r"(?: \(n_keep: {given} ?>= n_ctx: {context}\))?\. " + _LOAD + _NO_DATA),
    ("LM Studio", r"Cannot truncate prompt with n_keep \({given}\) >= n_ctx \({context}\)"),
    ("Mistral", r"Prompt contains {given} tokens(?: and {n} draft tokens)?, too large for model with {context} "
     r"maximum context length"),
    ("xAI", r"This model's maximum prompt length is {context} but the request contains {given} tokens\."),
    ("Moonshot", r"Your request exceeded model token limit: {context} \(requested: {given}\)"),
    ("DashScope", r"Range of input length should be \[1, {context}\]"),
    ("oMLX", r"Prompt too long: {given} tokens exceeds max context window of {context} tokens"),
)  # fmt: skip
"""Whole sentences; none of their variable parts has room for words of a prompt."""


def read_too_long(message: str) -> PromptSize | None:
    """What a message says of the prompt's length, where all of it says that the prompt is too long; else None.

    Counts are 0 where the sentence has none. Where it counts prompt and answer together only, that is taken.
    """
    sentence = without_wrapping(message)
    for row in TOO_LONG:
        if (found := row.pattern.fullmatch(sentence)) is not None:
            parts = {name: value or "" for name, value in found.groupdict().items()}
            given, context = (int(parts.get(name, "").replace(",", "") or 0) for name in ("given", "context"))
            return PromptSize(given, context, at_least=bool(parts.get("least")))
    return None
