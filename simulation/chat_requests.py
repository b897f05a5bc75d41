"""Chat requests as an OpenAI-compatible server reads them, and recognition of their judge protocol. Pure.

The protocol of a request is recognised from the text outside of the fences; nothing is sent for the simulator only. A
question made from the prompt of a registered protocol, also of another package, belongs to that protocol. For custom
prompts, the recognition looks for the text that a parser of replies needs and that every prompt of the protocol must
therefore contain.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

import orjson

from venire.arena.records import Request
from venire.judges import PROTOCOLS, prompts
from venire.judges.protocols.criteria import CRITERIA
from venire.judges.safety.sanitize import split_fences

Stage = Literal["reasons", "verdict", "repair"]

FenceSplitter = Callable[[str], tuple[tuple[str, ...], str]]
"""Splits a message into its fenced texts and its own words: `sanitize.split_fences`, or a cache."""

_MAX_LOGPROBS = 20
_STAGES: tuple[Stage, ...] = ("reasons", "verdict", "repair")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The fields of a chat request that a simulated judge needs."""

    model: str
    question: str
    """The first user message with fenced texts; without any, the first user message."""
    texts: tuple[str, ...]
    """Its texts between fences."""
    words: str
    """Its text outside of fences."""
    stage: Stage
    repeat: int
    characters: int
    """The total over all messages."""
    max_tokens: int | None
    quoted: tuple[str, ...] = ()
    """The assistant's turns: earlier replies that the client sends back."""
    messages: tuple[tuple[str, str], ...] = ()
    """Role and text of each, in order."""
    top_logprobs: int = 0
    """The number of most likely tokens requested per position of the answer; 0 for none."""
    json_only: bool = False
    """Whether the answer must be JSON only."""
    json_keys: tuple[str, ...] = ()
    """The keys that the requested schema requires of the answer, if there is one."""
    stream: bool = False
    """Whether the answer is to come as server-sent events."""
    stream_usage: bool = False
    """Whether the last of these events is to hold the tokens used."""


class RequestError(Exception):
    """A request that a provider rejects with status 400; `param` names the invalid field, if there is one."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


def read_request(body: bytes) -> ChatRequest:
    """The chat request in a JSON body.

    The number of assistant turns after the question gives the stage: none means reasons (or the only answer of a
    one-call protocol); one means the verdict (or its repair); more mean a repair. Raises `RequestError` for requests
    that a provider would reject.
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
    if _integer(sent, "n", minimum=1) not in (None, 1):
        raise RequestError("n must be 1: a request has one answer here; send another request, with another seed", "n")
    messages = _messages(sent.get("messages"))
    asked, (texts, words) = _question(messages)
    quoted = tuple(text for role, text in messages[asked:] if role == "assistant")
    stream, stream_usage = _stream(sent)
    seed = _integer(sent, "seed")
    limit = _integer(sent, "max_completion_tokens", minimum=1)
    return ChatRequest(
        model=model,
        question=messages[asked][1],
        texts=texts,
        words=words,
        stage=_STAGES[min(len(quoted), 2)],
        repeat=1 if seed is None else seed,
        characters=sum(len(text) for _, text in messages),
        max_tokens=_integer(sent, "max_tokens", minimum=1) if limit is None else limit,
        quoted=quoted,
        messages=tuple(messages),
        top_logprobs=_top_logprobs(sent),
        json_only=_json_only(sent.get("response_format")),
        json_keys=_required_keys(sent.get("response_format")),
        stream=stream,
        stream_usage=stream_usage,
    )


def chat_request_of(
    model: str, request: Request, *, structured: bool, split: FenceSplitter = split_fences
) -> ChatRequest:
    """The result of `read_request` for the body of an encoded request, computed without that body.

    `structured` states whether the body requests an answer that conforms to the request's schema; `split` may be a
    cache, since each step of a trial shows the same question. Raises `RequestError` for requests that a provider
    rejects.
    """
    if not model:
        raise RequestError("model must be a name", "model")
    if request.max_tokens < 1:
        raise RequestError("max_tokens must be at least 1", "max_tokens")
    messages = [(message["role"], message["content"]) for message in request.messages]
    asked, (texts, words) = _question(messages, split)
    quoted = tuple(text for role, text in messages[asked:] if role == "assistant")
    return ChatRequest(
        model=model,
        question=messages[asked][1],
        texts=texts,
        words=words,
        stage=_STAGES[min(len(quoted), 2)],
        repeat=1 if request.seed is None else request.seed,
        characters=sum([len(text) for _, text in messages]),
        max_tokens=request.max_tokens,
        quoted=quoted,
        messages=tuple(messages),
        top_logprobs=min(request.top_logprobs, _MAX_LOGPROBS),
        json_only=structured and request.schema is not None,
        json_keys=tuple(request.schema.get("required", ())) if structured and request.schema is not None else (),
    )


def _question(
    messages: list[tuple[str, str]], split: FenceSplitter = split_fences
) -> tuple[int, tuple[tuple[str, ...], str]]:
    """The index of the message with the question, its fenced texts and its words; few-shot examples may precede it."""
    first: int | None = None
    for index, (role, text) in enumerate(messages):
        if role == "user":
            shown = split(text)
            if shown[0]:
                return index, shown
            first = index if first is None else first
    if first is None:
        raise RequestError("messages must hold one of role user", "messages")
    return first, ((), messages[first][1])


def _top_logprobs(sent: dict[str, Any]) -> int:
    wanted = _integer(sent, "top_logprobs", minimum=0) or 0
    if wanted > _MAX_LOGPROBS:
        raise RequestError(f"top_logprobs must be at most {_MAX_LOGPROBS}", "top_logprobs")
    listed = sent.get("logprobs")
    if listed is not None and not isinstance(listed, bool):
        raise RequestError("logprobs must be true or false", "logprobs")
    if wanted and not listed:
        raise RequestError("top_logprobs is accepted only where logprobs is true", "top_logprobs")
    return max(wanted, 1) if listed else 0


def _json_only(sent: object) -> bool:
    """Whether a response_format requests JSON; a schema is checked only as far as every provider does."""
    if sent is None:
        return False
    kind = sent.get("type") if isinstance(sent, dict) else None
    if not isinstance(sent, dict) or kind not in ("text", "json_object", "json_schema"):
        raise RequestError("response_format must have the type text, json_object or json_schema", "response_format")
    if kind == "json_schema":
        schema = sent.get("json_schema")
        if not isinstance(schema, dict) or not isinstance(schema.get("name"), str) or "schema" not in schema:
            raise RequestError("response_format.json_schema must have a name and a schema", "response_format")
    return bool(kind != "text")


def _required_keys(response_format: object) -> tuple[str, ...]:
    """The keys that a checked response_format requires at the top of the answer."""
    schema = response_format.get("json_schema", {}).get("schema") if isinstance(response_format, dict) else None
    required = schema.get("required") if isinstance(schema, dict) else None
    return tuple(key for key in required if isinstance(key, str)) if isinstance(required, list) else ()


def _stream(sent: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the answer is streamed, and whether with the tokens used."""
    stream, options = sent.get("stream"), sent.get("stream_options")
    if stream is not None and not isinstance(stream, bool):
        raise RequestError("stream must be true or false", "stream")
    if options is not None and not stream:
        raise RequestError("stream_options is accepted only where stream is true", "stream_options")
    if options is not None and not isinstance(options, dict):
        raise RequestError("stream_options must be an object", "stream_options")
    return bool(stream), bool(options and options.get("include_usage"))


def _messages(sent: object) -> list[tuple[str, str]]:
    """Role and text of each message."""
    if not isinstance(sent, list) or not sent:
        raise RequestError("messages must be a list that is not empty", "messages")
    messages = []
    for number, message in enumerate(sent):
        if not isinstance(message, dict) or not isinstance(role := message.get("role"), str):
            raise RequestError(f"messages[{number}] must be an object with a role", "messages")
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(part["text"] for part in content if _is_text(part))
        if not isinstance(content, str):
            raise RequestError(f"messages[{number}] must have a text as its content", "messages")
        messages.append((role, content))
    return messages


def _is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _integer(sent: dict[str, Any], name: str, minimum: int | None = None) -> int | None:
    """An integer field, or None where it is absent or null."""
    value = sent.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise RequestError(f"{name} must be a whole number", name)
    if minimum is not None and value < minimum:
        raise RequestError(f"{name} must be at least {minimum}", name)
    return value


_TURN = re.compile(r"^Turn \d+, (?:user|assistant)", re.MULTILINE)
_LABEL = re.compile(r"^Answer \w+:$", re.MULTILINE)
_NUMBERED = re.compile(r"^\W*[0-9]+[.)]\s", re.MULTILINE)
_ONE_OR_TWO = tuple(re.compile(rf"(?<![\w.]){digit}(?!\w|\.[0-9])") for digit in "12")
_BEST = re.compile(r"\b(?:best|exactly|top) ([0-9]+)\b")


@dataclass(frozen=True, slots=True)
class RecognisedQuestion:
    """A protocol by name, the fenced texts of the question, and how many are to be ranked if not all."""

    protocol: str
    texts: tuple[str, ...]
    best: int | None = None


def recognise(ask: ChatRequest) -> RecognisedQuestion:
    """The protocol of a request and its texts; two stages by default."""
    if not ask.texts:
        return RecognisedQuestion("two-stage" if ask.question.startswith(_openings()) else "generate", ())
    protocol, best = _by_words(ask.words, ask.top_logprobs > 0, PROTOCOLS.changes)
    return RecognisedQuestion(protocol, ask.texts, best)


@lru_cache(maxsize=64)
def _by_words(outside: str, listed: bool, changes: int) -> tuple[str, int | None]:
    """The protocol implied by a question's own words, which are the same in all of a judge's questions.

    The second value is how many are to be ranked, if not all. `listed` states whether log-probabilities are requested,
    `changes` is the version of the registry of protocols.
    """
    words = _LABEL.sub("", _TURN.sub("", outside))
    protocol = _of_template(outside, changes) or _protocol(words, words.casefold(), listed)
    best = _BEST.search(words) if PROTOCOLS[protocol].shape.ranks else None
    return protocol, int(best[1]) if best else None


def _protocol(words: str, lower: str, listed: bool) -> str:
    if all(name in lower for name in CRITERIA):
        return "criteria"
    if "A>>B" in words:
        return "five-point"
    if "NO_ECHO" in words:
        return "echo"
    if re.search(r"\bnot[ _-]attempted\b", lower):
        return "direct-reference" if re.search(r"\breference\b", lower) else "direct"
    if re.search(r"\brank", lower):
        return "listwise"
    if listed or all(digit.search(_NUMBERED.sub("", words)) for digit in _ONE_OR_TWO):
        return "binary"
    return "two-stage"


def _of_template(outside: str, changes: int) -> str | None:
    """The protocol whose prompt a question was made from; of several matches the prompt with the most words."""
    words = " ".join(outside.split())
    return next((protocol for pattern, protocol in _templates(changes) if pattern.fullmatch(words)), None)


@lru_cache(maxsize=1)
def _templates(changes: int) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns of each protocol's own questions, those with the most words first."""
    found = []
    for protocol, entry in PROTOCOLS.items():
        for name in entry.prompts if entry.rehearse is not None else ():
            template = prompts.load(entry.folder, name)
            if template.get_identifiers():
                text = template.substitute(dict.fromkeys(template.get_identifiers(), "\0"))
                parts = [" ".join(part.split()) for part in text.split("\0")]
                found.append((len("".join(parts)), r"\s?.*?\s?".join(map(re.escape, parts)), protocol))
    return tuple((re.compile(pattern), protocol) for _, pattern, protocol in sorted(found, key=lambda one: -one[0]))


@cache
def _openings() -> tuple[str, ...]:
    """Beginnings of judges' questions: such a question without fences is still not an instruction for a contestant."""
    sent = [(entry.folder, name) for entry in PROTOCOLS.values() for name in entry.prompts]
    texts = (prompts.load(folder, name) for folder, name in sent)
    return tuple(text.template.partition("$")[0] for text in texts if text.get_identifiers())
