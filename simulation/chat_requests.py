"""Chat requests as a server of the OpenAI-compatible protocol reads them, and the judge protocol that each is of. Pure.

A request is of the protocol whose question its words are, the text outside of the fences: nothing is sent for the
simulator's sake. A question that was made from the prompt of a registered protocol, also of another package, is of that
protocol. Prompts may be a user's own: what a reader needs in order to read a reply must stand in any prompt of its
protocol, and that is what is looked for then.
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

__all__ = [
    "ChatRequest",
    "FenceSplitter",
    "RecognisedQuestion",
    "RequestError",
    "Stage",
    "chat_request_of",
    "read_request",
    "recognise",
]

Stage = Literal["reasons", "verdict", "repair"]

FenceSplitter = Callable[[str], tuple[tuple[str, ...], str]]
"""From a message to the texts that it shows between fences, and its own words: `sanitize.split_fences`, or a cache."""

_MAX_LOGPROBS = 20
_STAGES: tuple[Stage, ...] = ("reasons", "verdict", "repair")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One chat request, as far as a simulated judge needs it."""

    model: str
    question: str
    """The first user message that shows fenced texts; the first of all where none does."""
    texts: tuple[str, ...]
    """What it shows between fences."""
    words: str
    """What it says outside of them."""
    stage: Stage
    repeat: int
    characters: int
    """Of all messages together."""
    max_tokens: int | None
    quoted: tuple[str, ...] = ()
    """The assistant's turns: earlier replies that the client sends back."""
    messages: tuple[tuple[str, str], ...] = ()
    """Role and text of each, in order."""
    top_logprobs: int = 0
    """How many likeliest tokens are wanted at each place of the answer; 0 where none are."""
    json_only: bool = False
    """Whether the answer must be JSON and nothing else."""


class RequestError(Exception):
    """A request that a provider answers with status 400; `param` names the field at fault, where it is one."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


def read_request(body: bytes) -> ChatRequest:
    """The chat request in a body of JSON.

    The stage is known by the assistant's turns after the question: none, reasons are wanted (or the only answer of a
    protocol of one call); one, the verdict (or its repair); more, a repair.
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
    messages = _messages(sent.get("messages"))
    asked, (texts, words) = _question(messages)
    quoted = tuple(text for role, text in messages[asked:] if role == "assistant")
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
    )


def chat_request_of(
    model: str, request: Request, *, structured: bool, split: FenceSplitter = split_fences
) -> ChatRequest:
    """The same as `read_request` of the body that a request is encoded to, made without that body.

    `structured` says whether the body asks for an answer that holds to the request's schema; `split` may be a cache,
    since each step of a trial shows the same question. Raises `RequestError` for what a provider refuses.
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
    )


def _question(
    messages: list[tuple[str, str]], split: FenceSplitter = split_fences
) -> tuple[int, tuple[tuple[str, ...], str]]:
    """The place of the message that asks, and what it shows and says: worked examples may stand before it."""
    first: int | None = None
    for place, (role, text) in enumerate(messages):
        if role == "user":
            shown = split(text)
            if shown[0]:
                return place, shown
            first = place if first is None else first
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
    """Whether a response_format asks for JSON; a schema is looked at only as far as every provider does."""
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
    """A field that must be a whole number, or None where it is absent or null."""
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
    """A protocol by its name, the fenced texts of the question, and how many are to be ranked where not all are."""

    protocol: str
    texts: tuple[str, ...]
    best: int | None = None


def recognise(ask: ChatRequest) -> RecognisedQuestion:
    """The protocol of a request and what it shows; two stages where nothing says otherwise."""
    if not ask.texts:
        return RecognisedQuestion("two-stage" if ask.question.startswith(_openings()) else "generate", ())
    protocol, best = _by_words(ask.words, ask.top_logprobs > 0, PROTOCOLS.changes)
    return RecognisedQuestion(protocol, ask.texts, best)


@lru_cache(maxsize=64)
def _by_words(outside: str, listed: bool, changes: int) -> tuple[str, int | None]:
    """The protocol that a question's own words ask for, which are the same in all of a judge's questions.

    With it how many are to be ranked, where not all are. `listed` says whether log-probabilities are asked for,
    `changes` how often the registry of protocols has changed.
    """
    words = _LABEL.sub("", _TURN.sub("", outside))
    protocol = _of_template(outside, changes) or _protocol(words, words.casefold(), listed)
    best = _BEST.search(words) if protocol == "listwise" else None
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
    """The protocol whose own prompt a question was made from; of several that fit the one with most words."""
    words = " ".join(outside.split())
    return next((protocol for pattern, protocol in _templates(changes) if pattern.fullmatch(words)), None)


@lru_cache(maxsize=1)
def _templates(changes: int) -> tuple[tuple[re.Pattern[str], str], ...]:
    """What the words of each protocol's own questions look like, those with most words first."""
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
    """How the questions of judges begin: one that shows nothing in fences is still no instruction for a contestant."""
    sent = [(entry.folder, name) for entry in PROTOCOLS.values() for name in entry.prompts]
    texts = (prompts.load(folder, name) for folder, name in sent)
    return tuple(text.template.partition("$")[0] for text in texts if text.get_identifiers())
