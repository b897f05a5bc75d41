"""Verdicts on two answers by the other pairwise protocols, from the same `z` as those in two stages.

What the profiles do not say, and what is done here:

- Binary: 1 where `z` is above 0, else 2; neither the tie band nor tied items count. Where log-probabilities are asked
  for, `p(1) = 0.99 sigma(z)` and `p(2) = 0.99 sigma(-z)`, so that their log odds are `z`; 0 has what is left.
- Five-point: a tie is A=B; the verdict is the strong one where `z` is beyond the tie band by more than 2 latent units.
- Criteria: the mean over the six criteria of first minus second is `z / 2` rounded to a sixth of a point and held
  within -9 and 9: two latent units are one point. What is over when it is spread evenly falls on criteria that are
  drawn. The level of the scores is 6 and half a point more for each 100 Elo points that both models have over 1000 on
  average, with a drawn part of its own for each criterion. The preference is the verdict, ties included. Remarks follow
  the JSON, unless JSON alone was asked for.
- Reasons take the formula's tokens, scores take theirs by their characters.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from math import exp, log
from typing import NamedTuple

from venire.judges.protocols.criteria import CRITERIA
from venire.simulation.answers import AnswerKey, Known
from venire.simulation.dialect import Ask, Logprobs
from venire.simulation.judge import (
    Profile,
    Side,
    SimulatedVerdict,
    normal_of,
    parse_model,
    simulate,
    tokens_per_character,
    uniform_of,
)
from venire.simulation.manner import spoken
from venire.simulation.recognition import Asked
from venire.simulation.replies import UNREADABLE, JudgeReply, remarks

__all__ = [
    "FIVE_POINT_CUT",
    "POINTS_PER_UNIT",
    "Drawn",
    "compare",
    "digit_logprobs",
    "draw",
    "five_point_label",
    "score_sides",
]

FIVE_POINT_CUT = 2.0
"""Latent units beyond the tie band from which on a preference is a strong one."""
POINTS_PER_UNIT = 0.5
"""Points of mean difference on the criteria for one latent unit."""

_DIGITS_SHARE = 0.99
_WEAK: dict[Side, str] = {"first": "A>B", "second": "B>A", "tie": "A=B"}
_STRONG: dict[Side, str] = {"first": "A>>B", "second": "B>>A", "tie": "A=B"}
_LABEL_TOKENS = 3
_SCORES = dict.fromkeys(CRITERIA, "%d")
_JSON = json.dumps({"first": _SCORES, "second": _SCORES, "preference": "%s"}).replace('"%d"', "%d")
"""The answer by criteria, with places for the scores of both and for the side."""


def compare(ask: Ask, asked: Asked, answer_key: AnswerKey) -> JudgeReply:
    """A verdict on the two completions that a question shows; texts that are not known cannot be read."""
    drawn = draw(ask, asked, answer_key)
    if isinstance(drawn, JudgeReply):
        return drawn
    profile, seed, found, said, noise = drawn
    if asked.protocol == "binary":
        told = digit_logprobs(said.z, ask.top_logprobs)
        return spoken(profile, ask, "1" if said.z > 0 else "2", noise, tokens=1, logprobs=told)
    if asked.protocol == "five-point":
        return _five_point(profile, seed, ask, found, said, noise)
    return _criteria(profile, seed, ask, found, said, noise)


class Drawn(NamedTuple):
    """What a simulated judge draws for a pair, before it says it in the words of a protocol."""

    profile: Profile
    seed: int
    found: tuple[Known, ...]
    said: SimulatedVerdict
    noise: float
    """Factor of its time."""


def draw(ask: Ask, asked: Asked, answer_key: AnswerKey) -> Drawn | JudgeReply:
    """What a judge draws for the pair that a question shows, or what it replies where it says nothing readable."""
    profile, seed = parse_model(ask.model)
    found = answer_key.find_pair(asked.texts)
    if found is None:
        return spoken(profile, ask, UNREADABLE, 1.0, tokens=1)
    first, second = found
    said = simulate(
        profile,
        seed,
        instruction_id=first.instruction_id,
        first=first.model,
        second=second.model,
        gap=first.elo - second.elo,
        chars_first=len(asked.texts[-2]),
        chars_second=len(asked.texts[-1]),
        own=answer_key.own(profile.name, first.model, second.model),
        repeat=ask.repeat,
    )
    noise = said.short_latency_s / (profile.first_token_s + 1 / profile.tokens_per_s)
    if said.verdict is None and not (ask.quoted and said.repairable):
        return spoken(profile, ask, UNREADABLE, noise, tokens=1)
    return Drawn(profile, seed, found, said, noise)


def digit_logprobs(z: float, wanted: int) -> Logprobs:
    """The likeliest tokens of a reply of one digit, the likeliest first; none where none are wanted."""
    told = [("1", -_softplus(-z)), ("2", -_softplus(z))]
    told = [(token, value + log(_DIGITS_SHARE)) for token, value in told]
    told.append(("0", log(1 - _DIGITS_SHARE)))
    said = told.pop(0 if z > 0 else 1)
    return ((said, *sorted(told, key=lambda one: -one[1]))[:wanted],) if wanted else ()


def _softplus(x: float) -> float:
    return max(x, 0.0) + log(1 + exp(-abs(x)))


def five_point_label(profile: Profile, said: SimulatedVerdict) -> str:
    """The label of a verdict by its `z`."""
    strong = abs(said.z) > profile.tie_band + FIVE_POINT_CUT
    return (_STRONG if strong else _WEAK)[said.leaning]


def _five_point(
    profile: Profile, seed: int, ask: Ask, found: tuple[Known, ...], said: SimulatedVerdict, noise: float
) -> JudgeReply:
    label = five_point_label(profile, said)
    if ask.quoted:
        return spoken(profile, ask, label, noise, tokens=_LABEL_TOKENS)
    reasons = remarks(profile, seed, found, ask.repeat, said.reply_tokens)
    return spoken(profile, ask, f"{reasons}\n\n{label}", noise, tokens=said.reply_tokens + _LABEL_TOKENS)


def _criteria(
    profile: Profile, seed: int, ask: Ask, found: tuple[Known, ...], said: SimulatedVerdict, noise: float
) -> JudgeReply:
    first, second = found
    pair = sorted((first.model, second.model))
    parts, ranks = _drawn_for(f"{profile.name}|{first.instruction_id}|{'|'.join(pair)}|{ask.repeat}", seed)
    level = 6 + (first.elo + second.elo - 2000) / 400
    of_first, of_second = score_sides(POINTS_PER_UNIT * said.z, [level + part for part in parts], ranks)
    text = _JSON % (*of_first, *of_second, said.leaning)
    tokens = round(tokens_per_character() * len(text))
    if not ask.json_only and not ask.quoted:
        text += "\n\n" + remarks(profile, seed, found, ask.repeat, said.reply_tokens)
        tokens += said.reply_tokens
    return spoken(profile, ask, text, noise, tokens=tokens)


@lru_cache(maxsize=1024)  # both orders of a battle draw the same, one soon after the other
def _drawn_for(item: str, seed: int) -> tuple[Sequence[float], Sequence[float]]:
    """Of each criterion its own part of the level, and its rank among those that take what is over."""
    parts = [normal_of(f"{seed}|level|{item}|{name}") for name in CRITERIA]
    return parts, [uniform_of(f"{seed}|remainder|{item}|{name}") for name in CRITERIA]


def score_sides(mean: float, levels: Sequence[float], ranks: Sequence[float]) -> tuple[list[int], list[int]]:
    """Scores of both sides from 1 to 10, whose mean difference is `mean` to the nearest 1 / len(levels).

    `levels` are where each pair of scores is centred; the criteria of the lowest `ranks` take what is over.
    """
    count = len(levels)
    total = max(-9 * count, min(9 * count, round(count * mean)))
    each, over = divmod(total, count)
    more = set(sorted(range(count), key=ranks.__getitem__)[:over])
    first, second = [], []
    for place, level in enumerate(levels):
        gap = each + (place in more)
        score = max(1 + max(gap, 0), min(10 + min(gap, 0), round(level + gap / 2)))
        first.append(score)
        second.append(score - gap)
    return first, second
