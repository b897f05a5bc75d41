"""Replies of a simulated model: the text within its token limit, tokens and time, and the response body. Pure.

The profiles contain these figures for two-stage verdicts; they are used for every protocol. `invalid` is the share of
unparsable replies, a repair request gets a readable answer in half of these cases, and the time noise is drawn once per
trial.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from math import exp
from typing import Any

import orjson

from venire.simulation.answer_key import AnswerKey, KnownCompletion
from venire.simulation.chat_requests import ChatRequest, RecognisedQuestion
from venire.simulation.judge import (
    Profile,
    normal,
    normal_of,
    parse_model,
    tokens_per_character,
    uniform_of,
)

Logprobs = tuple[tuple[tuple[str, float], ...], ...]
"""Tokens at each position with their natural log-probabilities."""

UNREADABLE = "Unclear."
"""An unparsable verdict: one token that is neither a digit nor the name of a place."""
_REMARKS = (
    "The first answer takes up the instruction directly and stays with it to the end.",
    "The second answer reads the instruction in a slightly different way, which is defensible.",
    "Where the first answer gives an example, it chose one that fits the question.",
    "The second answer explains its steps, so that a reader can follow and check them.",
    "Some statements in the first answer are broader than what it offers in support of them.",
    "The second answer leaves out a condition that matters in practice.",
    "In tone both answers suit the person who asked.",
    "The first answer puts its main point early, which helps a reader in a hurry.",
    "The second answer is better divided into parts, and each part does one thing.",
    "The first answer repeats itself in places without adding to what was said.",
    "Neither answer invents sources, and neither claims more certainty than it can have.",
    "The second answer mentions a limit that the first answer passes over.",
    "The wording of the first answer is plain, and its terms are used consistently.",
    "In the second answer a few sentences are long and have to be read again.",
    "Both answers keep to the form that was asked for.",
    "The first answer covers the most important cases and says little about the rest.",
    "The second answer goes through more cases and gives each of them less room.",
    "As far as can be checked here, the facts in the first answer hold.",
    "The facts in the second answer hold as well, with some detail left vague.",
    "A reader who knows little of the matter would find the first answer easy to start from.",
    "A reader who knows the matter would find more to use in the second answer.",
    "The ending of the first answer sums up what was said before it.",
    "The second answer ends with a practical suggestion.",
    "What sets the two answers apart is how they weigh completeness against clarity.",
)
_ORDERS = tuple(_REMARKS[start:] + _REMARKS[:start] for start in range(len(_REMARKS)))
_LENGTHS = tuple(tuple(accumulate(len(remark) + 1 for remark in order)) for order in _ORDERS)


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """A reply with its tokens, and the seconds that the judge needs for it."""

    text: str
    finish: str
    prompt_tokens: int
    tokens: int
    latency_s: float
    logprobs: Logprobs = ()


Rehearse = Callable[[ChatRequest, RecognisedQuestion, AnswerKey], JudgeReply]
"""The function in a protocol's entry: from a request, its recognised question and the answer key to a reply."""


def fallible_reply(
    profile: Profile, seed: int, request: ChatRequest, trial: Sequence[str | int], text: str
) -> JudgeReply:
    """A reply with this text, or `UNREADABLE` with the profile's probability; `trial` is the key of the draws."""
    about = "|".join([profile.name, *map(str, trial)])
    invalid = uniform_of(f"{seed}|invalid|{about}") < profile.invalid
    repaired = bool(request.quoted) and uniform_of(f"{seed}|repair|{about}") < 0.5
    noise = exp(profile.latency_log_sd * normal_of(f"{seed}|latency|{about}"))
    return timed_reply(profile, request, UNREADABLE if invalid and not repaired else text, noise)


def timed_reply(
    profile: Profile,
    request: ChatRequest,
    text: str,
    noise: float,
    *,
    tokens: int | None = None,
    logprobs: Logprobs = (),
) -> JudgeReply:
    """A reply of these tokens (None: estimated from its characters, at least 1), with the judge's time and noise."""
    count = max(1, round(tokens_per_character() * len(text))) if tokens is None else tokens
    prompt_tokens = round(tokens_per_character() * request.characters)
    seconds = (profile.first_token_s + count / profile.tokens_per_s) * noise
    reply = truncate_reply(JudgeReply(text, "stop", prompt_tokens, count, seconds, logprobs), request.max_tokens)
    return replace(reply, logprobs=_certain(reply.text)) if request.top_logprobs and not logprobs else reply


def _certain(text: str) -> Logprobs:
    """Log-probabilities of a text that no distribution was drawn for: its words, each with probability 1."""
    return tuple(((word, 0.0),) for word in _words(text))


def _words(text: str) -> list[str]:
    """A text in pieces of a word each, with the white space before it: together they are the text."""
    return re.findall(r"\s*\S+|\s+", text)


def remarks(profile: Profile, seed: int, found: Sequence[KnownCompletion], repeat: int, tokens: int) -> str:
    """Remarks in random order with a length of `tokens` tokens (or all of them once, if that is shorter)."""
    shown = "|".join([found[0].instruction_id, *(known.model for known in found)])
    drawn = uniform_of(f"{seed}|reasons|{profile.name}|{shown}|{repeat}")
    start = int(drawn * len(_ORDERS))
    enough = bisect_left(_LENGTHS[start], tokens / tokens_per_character()) + 1
    return _written(start, enough)


@cache  # as many texts as there are remarks, squared
def _written(start: int, number: int) -> str:
    return " ".join(_ORDERS[start][:number])


def truncate_reply(reply: JudgeReply, limit: int | None) -> JudgeReply:
    """The reply truncated at the request's token limit."""
    if limit is None or reply.tokens <= limit:
        return reply
    kept = max(1, len(reply.text) * limit // reply.tokens)
    return replace(
        reply, text=reply.text[:kept], finish="length", tokens=limit, latency_s=reply.latency_s * limit / reply.tokens
    )


def reply_seconds(reply: JudgeReply, model: str, request: str, asked: int) -> float:
    """Seconds for the reply when a request, identified by its digest, is made for the `asked`-th time.

    A repeat draws its time again; otherwise a reply that was too slow for its client would always be. Raises
    `InputError` for a model that is not simulated.
    """
    if asked == 1:
        return reply.latency_s
    profile, seed = parse_model(model)
    noise = exp(profile.latency_log_sd * normal(seed, "latency", request, asked))
    return (profile.first_token_s + reply.tokens / profile.tokens_per_s) * noise


def completion_body(
    reply: JudgeReply,
    *,
    id: str,
    created: int,
    model: str,
    fingerprint: str,
    counted: bool = True,
    cached: int | None = None,
) -> bytes:
    """A `chat.completion` object with one choice; `created` in seconds since 1970, tokens reported where `counted`.

    `cached` is the number of prompt tokens read from a cache, if there is one.
    """
    usage: dict[str, Any] = {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.tokens,
        "total_tokens": reply.prompt_tokens + reply.tokens,
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
                    "message": {"role": "assistant", "content": reply.text, "refusal": None},
                    "logprobs": _logprobs_body(reply.logprobs),
                    "finish_reason": reply.finish,
                }
            ],
            **({"usage": usage} if counted else {}),
            "system_fingerprint": fingerprint,
        }
    )


def stream_events(body: bytes, *, usage: bool) -> list[bytes]:
    """The response body of `completion_body` as server-sent events, a word each, the last of them `[DONE]`.

    The first word has all log-probabilities; with `usage` the tokens used are in an event of their own before the last.
    """
    whole = orjson.loads(body)
    (choice,) = whole["choices"]
    head = {name: whole[name] for name in ("id", "created", "model", "system_fingerprint")}
    head["object"] = "chat.completion.chunk"
    nothing: dict[str, Any] = {"usage": None} if usage else {}

    def chunk(delta: dict[str, Any], *, logprobs: Any = None, finish: str | None = None) -> dict[str, Any]:
        step = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return {**head, "choices": [step], **nothing}

    chunks = [chunk({"role": "assistant", "content": "", "refusal": None})]
    for number, word in enumerate(_words(choice["message"]["content"])):
        chunks.append(chunk({"content": word}, logprobs=None if number else choice["logprobs"]))
    chunks.append(chunk({}, finish=choice["finish_reason"]))
    if usage and "usage" in whole:
        chunks.append({**head, "choices": [], "usage": whole["usage"]})
    return [b"data: " + event + b"\n\n" for event in [*map(orjson.dumps, chunks), b"[DONE]"]]


def _logprobs_body(logprobs: Logprobs) -> dict[str, Any] | None:
    if not logprobs:
        return None
    places = [[{"token": token, "logprob": value, "bytes": None} for token, value in place] for place in logprobs]
    return {"content": [{**place[0], "top_logprobs": place} for place in places], "refusal": None}


def models_body(names: Iterable[str]) -> bytes:
    """The response body of `GET /v1/models`."""
    return orjson.dumps({"object": "list", "data": [_model(name) for name in names]})


def model_body(name: str) -> bytes:
    """The response body of `GET /v1/models/{id}`."""
    return orjson.dumps(_model(name))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "venire"}


def error_body(message: str, kind: str, *, code: str | None = None, param: str | None = None) -> bytes:
    """An error body in the form of the OpenAI-compatible API."""
    return orjson.dumps({"error": {"message": message, "type": kind, "code": code, "param": param}})
