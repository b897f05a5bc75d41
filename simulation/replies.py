"""From a chat request to what a simulated judge writes back. Pure: no network, no clock."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from math import exp

from venire.simulation.answers import AnswerKey, Known
from venire.simulation.dialect import Ask, Logprobs
from venire.simulation.judge import (
    Profile,
    Side,
    SimulatedVerdict,
    normal,
    parse_model,
    simulate,
    tokens_per_character,
    uniform_of,
)
from venire.simulation.obedience import shown_texts, swayed
from venire.simulation.recognition import Asked

__all__ = ["UNREADABLE", "JudgeReply", "limited", "remarks", "reply_to", "seconds"]

UNREADABLE = "Unclear."
"""A verdict that no rule reads: one token, and neither a digit nor the name of a place."""

_NOT_KNOWN = ("The texts of this comparison are not known to this judge.", 11)
_DIGIT: dict[Side, str] = {"first": "1", "second": "2", "tie": "0"}
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
    """A reply with its tokens, and the seconds that the judge would have taken for it."""

    text: str
    finish: str
    prompt_tokens: int
    tokens: int
    latency_s: float
    logprobs: Logprobs = ()


def reply_to(ask: Ask, asked: Asked, answer_key: AnswerKey) -> JudgeReply:
    """What the simulated judge named in the request answers in two stages.

    The texts are found between the fences of the first user message: the instruction, the first completion and the
    second. Texts that the answer key does not have get a reply that cannot be read. A judge that obeys what the first
    message tells it says that instead. Raises `InputError` for a model that is not simulated.
    """
    profile, seed = parse_model(ask.model)
    texts = ask.texts or shown_texts(profile.name, ask.question)
    found = answer_key.find_pair(texts)
    prompt_tokens = round(tokens_per_character() * ask.characters)
    if ask.stage != "reasons" and (side := swayed(profile.name, ask.question)) is not None:
        return JudgeReply(_DIGIT[side], "stop", prompt_tokens, 1, profile.first_token_s + 1 / profile.tokens_per_s)
    if found is None:
        text, tokens = _NOT_KNOWN if ask.stage == "reasons" else (UNREADABLE, 1)
        latency = profile.first_token_s + tokens / profile.tokens_per_s
        return limited(JudgeReply(text, "stop", prompt_tokens, tokens, latency), ask.max_tokens)
    first, second = found
    said = simulate(
        profile,
        seed,
        instruction_id=first.instruction_id,
        first=first.model,
        second=second.model,
        gap=first.elo - second.elo,
        chars_first=len(texts[-2]),
        chars_second=len(texts[-1]),
        own=answer_key.own(profile.name, first.model, second.model),
        repeat=ask.repeat,
    )
    if ask.stage == "reasons":
        text = remarks(profile, seed, found, ask.repeat, said.reply_tokens)
        return limited(JudgeReply(text, "stop", prompt_tokens, said.reply_tokens, said.latency_s), ask.max_tokens)
    return JudgeReply(_verdict(ask, said), "stop", prompt_tokens, 1, said.short_latency_s)


def _verdict(ask: Ask, said: SimulatedVerdict) -> str:
    side = said.leaning if ask.stage == "repair" and said.repairable else said.verdict
    return UNREADABLE if side is None else _DIGIT[side]


def remarks(profile: Profile, seed: int, found: Sequence[Known], repeat: int, tokens: int) -> str:
    """Remarks in a drawn order, as long as so many tokens are (or all of them once, where that is shorter)."""
    first, second = found
    shown = f"{first.instruction_id}|{first.model}|{second.model}"
    drawn = uniform_of(f"{seed}|reasons|{profile.name}|{shown}|{repeat}")
    start = int(drawn * len(_ORDERS))
    enough = bisect_left(_LENGTHS[start], tokens / tokens_per_character()) + 1
    return _written(start, enough)


@cache  # as many texts as there are remarks, squared
def _written(start: int, number: int) -> str:
    return " ".join(_ORDERS[start][:number])


def limited(reply: JudgeReply, limit: int | None) -> JudgeReply:
    """The reply cut off where the request's limit of tokens ends it."""
    if limit is None or reply.tokens <= limit:
        return reply
    kept = max(1, len(reply.text) * limit // reply.tokens)
    return replace(
        reply, text=reply.text[:kept], finish="length", tokens=limit, latency_s=reply.latency_s * limit / reply.tokens
    )


def seconds(reply: JudgeReply, model: str, request: str, asked: int) -> float:
    """Seconds that the reply takes when a request, named by its digest, is made for the `asked`-th time.

    A repeat draws its time anew: one that was too slow for its client would be so every time. Raises `InputError` for a
    model that is not simulated.
    """
    if asked == 1:
        return reply.latency_s
    profile, seed = parse_model(model)
    noise = exp(profile.latency_log_sd * normal(seed, "latency", request, asked))
    return (profile.first_token_s + reply.tokens / profile.tokens_per_s) * noise
