"""Verdicts on two answers by every pairwise protocol, and rankings of many, from the formula of `profiles.json`.

Behaviour that the profiles do not define:

- Binary: 1 where `z` is above 0, else 2; neither the tie band nor tied items count. Where log-probabilities are asked
  for, `p(1) = 0.99 sigma(z)` and `p(2) = 0.99 sigma(-z)`, so that their log odds are `z`; 0 has the remaining
  probability.
- Five-point: a tie is A=B; the verdict is the strong one where `z` is beyond the tie band by more than 2 latent units.
- Criteria: the mean over the six criteria of first minus second is `z / 2` rounded to a sixth of a point and held
  within -9 and 9: two latent units are one point. The remainder after even distribution goes to randomly drawn
  criteria. The level of the scores is 6, plus half a point for each 100 Elo points of the models' mean above 1000, plus
  a random part for each criterion. The preference is the verdict, including ties. Remarks follow the JSON, unless only
  JSON was requested.
- Reasons have the formula's number of tokens; scores have tokens by their characters.
- Ranking: each answer at place p of n (from 0) has the utility

        slope * Elo * ln 10 / 400 + length * ln(max(20, characters)) + self_preference (its own answer)
          + sigma_item / sqrt 2 * (rho * normal(seed, 'liked', instruction, model)
                                   + sqrt(1 - rho^2) * normal(seed, 'list taste', name, instruction, model))
          - (position + sigma_position * normal(seed, 'list pull', name, instruction)) * p / (n - 1)
          + sigma_order / sqrt 2 * normal(seed, 'list order', name, instruction, model, p)
          + temperature * gumbel(seed, 'list sample', name, instruction, model, p, repeat)

  with gumbel = -ln(-ln(uniform)), and answers are ranked by it. The difference of two utilities is distributed as the
  `z` of a pair with these two, since two Gumbel draws differ by a logistic one, except that the length ratio of a pair
  is held within e^-2 and e^2. The draws differ from those of the pair, so single verdicts may differ. The position bias
  decreases linearly from the first place to the last. Ties do not exist here: the tie band and tied items do not count.

`simulation.server` describes the two-stage protocol.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from math import exp, log, sqrt
from typing import NamedTuple

from venire.arena.scale import LOGITS_PER_POINT
from venire.judges.protocols.criteria import CRITERIA
from venire.simulation.answer_key import AnswerKey, KnownCompletion
from venire.simulation.chat_replies import (
    UNREADABLE,
    JudgeReply,
    Logprobs,
    remarks,
    timed_reply,
    truncate_reply,
)
from venire.simulation.chat_requests import ChatRequest, RecognisedQuestion
from venire.simulation.injections import obeyed_verdict, shown_texts
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

_NOT_KNOWN = ("The texts of this comparison are not known to this judge.", 11)
_DIGIT: dict[Side, str] = {"first": "1", "second": "2", "tie": "0"}

FIVE_POINT_CUT = 2.0
"""Latent units beyond the tie band from which a preference is strong."""
POINTS_PER_UNIT = 0.5
"""Points of mean difference on the criteria for one latent unit."""

_DIGITS_SHARE = 0.99
_WEAK: dict[Side, str] = {"first": "A>B", "second": "B>A", "tie": "A=B"}
_STRONG: dict[Side, str] = {"first": "A>>B", "second": "B>>A", "tie": "A=B"}
_LONGEST_TOKEN = 32
"""Characters of a token of reasons, at most."""
_LABEL_TOKENS = 3
_SCORES = dict.fromkeys(CRITERIA, "%d")
_JSON = json.dumps({"first": _SCORES, "second": _SCORES, "preference": "%s"}).replace('"%d"', "%d")
"""The answer by criteria, with places for the scores of both and for the side."""


def compare(request: ChatRequest, question: RecognisedQuestion, answer_key: AnswerKey) -> JudgeReply:
    """A verdict on the two completions in a question; unknown texts get an unreadable reply."""
    drawn = draw_verdict(request, question, answer_key)
    if isinstance(drawn, JudgeReply):
        return drawn
    profile, seed, completions, simulated, noise = drawn
    if question.protocol == "binary":
        listed = digit_logprobs(simulated.z, request.top_logprobs)
        return timed_reply(profile, request, "1" if simulated.z > 0 else "2", noise, tokens=1, logprobs=listed)
    if question.protocol == "five-point":
        return _five_point(profile, seed, request, completions, simulated, noise)
    return _criteria(profile, seed, request, completions, simulated, noise)


class DrawnVerdict(NamedTuple):
    """A simulated judge's drawn verdict on a pair, before it is formatted for a protocol."""

    profile: Profile
    seed: int
    completions: tuple[KnownCompletion, ...]
    simulated: SimulatedVerdict
    noise: float
    """Factor of its time."""


def draw_verdict(
    request: ChatRequest, question: RecognisedQuestion, answer_key: AnswerKey
) -> DrawnVerdict | JudgeReply:
    """The judge's drawn verdict on the pair in a question, or an unreadable reply."""
    profile, seed = parse_model(request.model)
    completions = answer_key.find_pair(question.texts)
    if completions is None:
        return timed_reply(profile, request, UNREADABLE, 1.0, tokens=1)
    first, second = completions
    simulated = simulate(
        profile,
        seed,
        instruction_id=first.instruction_id,
        first=first.model,
        second=second.model,
        gap=first.elo - second.elo,
        chars_first=len(question.texts[-2]),
        chars_second=len(question.texts[-1]),
        own=answer_key.own(profile.name, first.model, second.model),
        repeat=request.repeat,
    )
    noise = simulated.short_latency_s / (profile.first_token_s + 1 / profile.tokens_per_s)
    if simulated.verdict is None and not (request.quoted and simulated.repairable):
        return timed_reply(profile, request, UNREADABLE, noise, tokens=1)
    return DrawnVerdict(profile, seed, completions, simulated, noise)


def digit_logprobs(z: float, wanted: int) -> Logprobs:
    """The most likely tokens of a one-digit reply, in descending order; none if none are requested."""
    listed = [("1", -_softplus(-z)), ("2", -_softplus(z))]
    listed = [(token, value + log(_DIGITS_SHARE)) for token, value in listed]
    listed.append(("0", log(1 - _DIGITS_SHARE)))
    written = listed.pop(0 if z > 0 else 1)
    return ((written, *sorted(listed, key=lambda one: -one[1]))[:wanted],) if wanted else ()


def _softplus(x: float) -> float:
    return max(x, 0.0) + log(1 + exp(-abs(x)))


def five_point_label(profile: Profile, simulated: SimulatedVerdict) -> str:
    """The label of a verdict by its `z`."""
    strong = abs(simulated.z) > profile.tie_band + FIVE_POINT_CUT
    return (_STRONG if strong else _WEAK)[simulated.leaning]


def _five_point(
    profile: Profile,
    seed: int,
    request: ChatRequest,
    completions: tuple[KnownCompletion, ...],
    simulated: SimulatedVerdict,
    noise: float,
) -> JudgeReply:
    label = five_point_label(profile, simulated)
    if request.quoted:
        return timed_reply(profile, request, label, noise, tokens=_LABEL_TOKENS)
    reasons = remarks(profile, seed, completions, request.repeat, simulated.reply_tokens)
    return timed_reply(profile, request, f"{reasons}\n\n{label}", noise, tokens=simulated.reply_tokens + _LABEL_TOKENS)


def _criteria(
    profile: Profile,
    seed: int,
    request: ChatRequest,
    completions: tuple[KnownCompletion, ...],
    simulated: SimulatedVerdict,
    noise: float,
) -> JudgeReply:
    first, second = completions
    pair = sorted((first.model, second.model))
    parts, ranks = _drawn_for(f"{profile.name}|{first.instruction_id}|{'|'.join(pair)}|{request.repeat}", seed)
    level = 6 + (first.elo + second.elo - 2000) / 400
    of_first, of_second = score_sides(POINTS_PER_UNIT * simulated.z, [level + part for part in parts], ranks)
    text = _JSON % (*of_first, *of_second, simulated.leaning)
    tokens = round(tokens_per_character() * len(text))
    if not request.json_only and not request.quoted:
        text += "\n\n" + remarks(profile, seed, completions, request.repeat, simulated.reply_tokens)
        tokens += simulated.reply_tokens
    return timed_reply(profile, request, text, noise, tokens=tokens)


@lru_cache(maxsize=1024)  # both orders of a battle use the same draws, one soon after the other
def _drawn_for(item: str, seed: int) -> tuple[Sequence[float], Sequence[float]]:
    """The random part of the level of each criterion, and its rank for taking the remainder."""
    parts = [normal_of(f"{seed}|level|{item}|{name}") for name in CRITERIA]
    return parts, [uniform_of(f"{seed}|remainder|{item}|{name}") for name in CRITERIA]


def score_sides(mean: float, levels: Sequence[float], ranks: Sequence[float]) -> tuple[list[int], list[int]]:
    """Scores of both sides from 1 to 10, whose mean difference is `mean` to the nearest 1 / len(levels).

    `levels` are the centres of the pairs of scores; the criteria with the lowest `ranks` take the remainder.
    """
    count = len(levels)
    total = max(-9 * count, min(9 * count, round(count * mean)))
    each, over = divmod(total, count)
    more = set(sorted(range(count), key=ranks.__getitem__)[:over])
    first, second = [], []
    for index, level in enumerate(levels):
        gap = each + (index in more)
        score = max(1 + max(gap, 0), min(10 + min(gap, 0), round(level + gap / 2)))
        first.append(score)
        second.append(score - gap)
    return first, second


def compare_in_two_stages(request: ChatRequest, question: RecognisedQuestion, answer_key: AnswerKey) -> JudgeReply:
    """The two-stage answer of the simulated judge named in the request.

    The texts are found between the fences of the first user message: the instruction, the first completion and the
    second. Texts that are not in the answer key get an unreadable reply. A judge that obeys injected instructions in
    the first message gives their verdict instead. Raises `InputError` for a model that is not simulated.
    """
    profile, seed = parse_model(request.model)
    texts = request.texts or shown_texts(profile.name, request.question)
    completions = answer_key.find_pair(texts)
    prompt_tokens = round(tokens_per_character() * request.characters)
    if request.stage != "reasons" and (side := obeyed_verdict(profile.name, request.question)) is not None:
        return JudgeReply(_DIGIT[side], "stop", prompt_tokens, 1, profile.first_token_s + 1 / profile.tokens_per_s)
    if completions is None:
        text, tokens = _NOT_KNOWN if request.stage == "reasons" else (UNREADABLE, 1)
        latency = profile.first_token_s + tokens / profile.tokens_per_s
        return truncate_reply(JudgeReply(text, "stop", prompt_tokens, tokens, latency), request.max_tokens)
    first, second = completions
    simulated = simulate(
        profile,
        seed,
        instruction_id=first.instruction_id,
        first=first.model,
        second=second.model,
        gap=first.elo - second.elo,
        chars_first=len(texts[-2]),
        chars_second=len(texts[-1]),
        own=answer_key.own(profile.name, first.model, second.model),
        repeat=request.repeat,
    )
    if request.stage == "reasons":
        tokens = simulated.reply_tokens
        # A person's vote is one token, for which a whole remark is too long: lanes would not believe the count.
        text = remarks(profile, seed, completions, request.repeat, tokens)[: tokens * _LONGEST_TOKEN]
        return truncate_reply(JudgeReply(text, "stop", prompt_tokens, tokens, simulated.latency_s), request.max_tokens)
    return JudgeReply(_verdict(request, simulated), "stop", prompt_tokens, 1, simulated.short_latency_s)


def _verdict(request: ChatRequest, simulated: SimulatedVerdict) -> str:
    side = simulated.leaning if request.stage == "repair" and simulated.repairable else simulated.verdict
    return UNREADABLE if side is None else _DIGIT[side]


class DrawnRanking(NamedTuple):
    """A simulated judge's drawn ranking of several completions, before it is formatted for a protocol."""

    profile: Profile
    seed: int
    completions: tuple[KnownCompletion, ...]
    order: tuple[int, ...]
    """Places in the order shown, from 0 on, the best first."""


def draw_ranking(
    request: ChatRequest, question: RecognisedQuestion, answer_key: AnswerKey
) -> DrawnRanking | JudgeReply:
    """The judge's drawn ranking of the completions in a question, or of the best of them, or an unreadable reply."""
    profile, seed = parse_model(request.model)
    completions = answer_key.find_list(question.texts)
    if completions is None:
        return timed_reply(profile, request, UNREADABLE, 1.0, tokens=1)
    shown = len(completions)
    worth = [
        utility(
            profile,
            seed,
            known,
            chars=len(text),
            own=answer_key.own(profile.name, known.model, ""),
            place=place,
            shown=shown,
            repeat=request.repeat,
        )
        for place, (known, text) in enumerate(zip(completions, question.texts[-shown:], strict=True))
    ]
    order = tuple(sorted(range(shown), key=lambda place: -worth[place])[: question.best])
    return DrawnRanking(profile, seed, completions, order)


def utility(
    profile: Profile, seed: int, known: KnownCompletion, *, chars: int, own: int, place: int, shown: int, repeat: int
) -> float:
    """The judge's utility of one of `shown` answers, at a place from 0 on, in latent units; `own` is 1 or 0."""
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
