"""Verdicts on two answers by every pairwise protocol, and rankings of many, from the formula of `profiles.json`.

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
- Ranking: each answer at place p of n (from 0) has the utility

        slope * Elo * ln 10 / 400 + length * ln(max(20, characters)) + self_preference (its own answer)
          + sigma_item / sqrt 2 * (rho * normal(seed, 'liked', instruction, model)
                                   + sqrt(1 - rho^2) * normal(seed, 'list taste', name, instruction, model))
          - (position + sigma_position * normal(seed, 'list pull', name, instruction)) * p / (n - 1)
          + sigma_order / sqrt 2 * normal(seed, 'list order', name, instruction, model, p)
          + temperature * gumbel(seed, 'list sample', name, instruction, model, p, repeat)

  with gumbel = -ln(-ln(uniform)), and answers are ranked by it. The difference of two utilities is distributed as the
  `z` of a pair with these two, since two Gumbel draws differ by a logistic one, except that the length ratio of a pair
  is held within e^-2 and e^2. The draws are others than those of the pair, so single verdicts may differ. The pull goes
  from the first place to the last in even steps. Ties do not exist here: the tie band and tied items do not count.

What two stages do is said in `simulation.server`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from math import exp, log, sqrt
from typing import NamedTuple

from venire.arena.scale import LOGITS_PER_POINT
from venire.judges.prompts import labels
from venire.judges.protocols.criteria import CRITERIA
from venire.simulation.answer_key import AnswerKey, Known
from venire.simulation.chat_replies import UNREADABLE, JudgeReply, Logprobs, answered, limited, remarks, spoken
from venire.simulation.chat_requests import Ask, Asked
from venire.simulation.injections import shown_texts, swayed
from venire.simulation.judge import (
    Profile,
    Side,
    SimulatedVerdict,
    normal,
    normal_of,
    parse_model,
    simulate,
    tokens_per_character,
    uniform,
    uniform_of,
)

__all__ = [
    "FIVE_POINT_CUT",
    "POINTS_PER_UNIT",
    "Drawn",
    "compare",
    "digit_logprobs",
    "draw",
    "five_point_label",
    "rank",
    "reply_to",
    "score_sides",
    "utility",
]

_NOT_KNOWN = ("The texts of this comparison are not known to this judge.", 11)
_DIGIT: dict[Side, str] = {"first": "1", "second": "2", "tie": "0"}

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


def rank(ask: Ask, asked: Asked, answer_key: AnswerKey) -> JudgeReply:
    """Rank the completions that a question shows, or the best of them; texts that are not known cannot be read."""
    profile, seed = parse_model(ask.model)
    found = answer_key.find_list(asked.texts)
    if found is None:
        return spoken(profile, ask, UNREADABLE, 1.0, tokens=1)
    shown = len(found)
    worth = [
        utility(
            profile,
            seed,
            known,
            chars=len(text),
            own=answer_key.own(profile.name, known.model, ""),
            place=place,
            shown=shown,
            repeat=ask.repeat,
        )
        for place, (known, text) in enumerate(zip(found, asked.texts[-shown:], strict=True))
    ]
    order = sorted(range(shown), key=lambda place: -worth[place])[: asked.best]
    names = labels(found)
    trial: tuple[str | int, ...] = ("list", found[0].instruction_id, *(known.model for known in found), ask.repeat)
    return answered(profile, seed, ask, trial, " > ".join(names[place] for place in order))


def utility(
    profile: Profile, seed: int, known: Known, *, chars: int, own: int, place: int, shown: int, repeat: int
) -> float:
    """What one of `shown` answers, at a place from 0 on, is worth to a judge, in latent units; `own` is 1 or 0."""
    item = (profile.name, known.instruction_id, known.model)
    shared = normal(seed, "liked", known.instruction_id, known.model)
    taste = profile.rho * shared + sqrt(1 - profile.rho**2) * normal(seed, "list taste", *item)
    pull = profile.position + profile.sigma_position * normal(seed, "list pull", profile.name, known.instruction_id)
    drawn = uniform(seed, "list sample", *item, place, repeat)
    return (
        profile.slope * known.elo * LOGITS_PER_POINT
        + profile.length * log(max(20, chars))
        + profile.self_preference * own
        + profile.sigma_item / sqrt(2) * taste
        - pull * place / max(1, shown - 1)
        + profile.sigma_order / sqrt(2) * normal(seed, "list order", *item, place)
        - profile.temperature * log(-log(drawn))
    )
