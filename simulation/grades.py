"""Grades of one answer: whether it is correct, and whether it continues after its end.

Behaviour that the profiles do not define:

- Correctness. An answer has a margin `m = (Elo - 1000) * ln 10 / 400 + 1.5 * normal('difficulty', instruction) +
  logistic('answer', instruction, model)`, the same for every judge, and is correct where m is above 0. With
  `uniform('attempt', instruction, model)` below 0.04 it is no attempt, and every judge sees that. A judge sees `m +
  spread / slope * normal(seed, 'grade', name, instruction, model, repeat)`, slope the profile's and at least 0.5. With
  the reference answer the spread is 0.5. Without it the spread is 3 and m appears 0.7 greater: plausible answers are
  taken for correct.
- Echo. The judge reads the text: it goes on when its last words are one phrase three times over or more (12 words at
  least in all), or when a line that opens a question, such as `Question:` or `User:`, comes after the first line and is
  answered by a line such as `Answer:` or `Assistant:`. Its error rate is `1 / (1 + exp(slope))`: with this probability
  it gives the opposite answer, drawn by text and repeat.
"""

from __future__ import annotations

import re
from math import exp, log

from venire.arena.keys import text_digest
from venire.arena.scale import ELO_MEAN, LOGITS_PER_POINT
from venire.simulation.answer_key import AnswerKey, KnownCompletion
from venire.simulation.chat_replies import UNREADABLE, JudgeReply, fallible_reply, timed_reply
from venire.simulation.chat_requests import ChatRequest, RecognisedQuestion
from venire.simulation.judge import Profile, normal_of, parse_model, uniform, uniform_of

_UNATTEMPTED = 0.04
_SPREAD = {"direct": 3.0, "direct-reference": 0.5}
_LENIENCE = {"direct": 0.7, "direct-reference": 0.0}
_MIN_SLOPE = 0.5
_MIN_REPEATS, _MIN_WORDS, _MAX_WORDS = 3, 12, 3000
_ASKS = re.compile(r"^\W{0,4}(?:q|question|user|human|instruction|problem)(?: ?\d+)?\W{0,3}:", re.IGNORECASE)
_ANSWERS = re.compile(r"^\W{0,4}(?:a|answer|assistant|response|solution)(?: ?\d+)?\W{0,3}:", re.IGNORECASE)


def grade(request: ChatRequest, question: RecognisedQuestion, answer_key: AnswerKey) -> JudgeReply:
    """Grade the completion in a question; unknown texts get an unreadable reply."""
    profile, seed = parse_model(request.model)
    found = find_graded_completion(question, answer_key)
    if found is None:
        return timed_reply(profile, request, UNREADABLE, 1.0, tokens=1)
    trial = (question.protocol, found.instruction_id, found.model, request.repeat)
    return fallible_reply(
        profile, seed, request, trial, grade_letter(profile, seed, found, question.protocol, request.repeat)
    )


def find_graded_completion(question: RecognisedQuestion, answer_key: AnswerKey) -> KnownCompletion | None:
    """The completion in a question; where a reference is shown, it may be at any position."""
    texts = question.texts
    places = reversed(range(len(texts)))
    tries = [texts] if question.protocol == "direct" else [texts[:place] + texts[place + 1 :] for place in places]
    for shown in tries:
        if len(shown) > 1 and (found := answer_key.find("\n\n".join(shown[:-1]), shown[-1])) is not None:
            return found[0]
    return None


def margin(known: KnownCompletion) -> float | None:
    """The margin of correctness of an answer in log odds, independent of the judge; None: no attempt."""
    answer = f"{known.instruction_id}|{known.model}"
    if uniform_of(f"attempt|{answer}") < _UNATTEMPTED:
        return None
    drawn = uniform_of(f"answer|{answer}")
    ability = (known.elo - ELO_MEAN) * LOGITS_PER_POINT
    return ability + 1.5 * normal_of(f"difficulty|{known.instruction_id}") + log(drawn / (1 - drawn))


def grade_letter(profile: Profile, seed: int, known: KnownCompletion, protocol: str, repeat: int) -> str:
    """The letter that a judge gives."""
    seen = perceived_margin(profile, seed, known, protocol, repeat)
    return "C" if seen is None else "A" if seen > 0 else "B"


def perceived_margin(profile: Profile, seed: int, known: KnownCompletion, protocol: str, repeat: int) -> float | None:
    """The margin of correctness as perceived by a judge, in log odds; None: no attempt."""
    if (truth := margin(known)) is None:
        return None
    drawn = normal_of(f"{seed}|grade|{profile.name}|{known.instruction_id}|{known.model}|{repeat}")
    return truth + _LENIENCE[protocol] + _SPREAD[protocol] / max(_MIN_SLOPE, profile.slope) * drawn


def grade_echo(request: ChatRequest, question: RecognisedQuestion, answer_key: AnswerKey) -> JudgeReply:
    """State whether the completion in a question continues after its final answer."""
    profile, seed = parse_model(request.model)
    text = question.texts[-1]
    trial = ("echo", text_digest(text).hex(), request.repeat)
    wrong = uniform(seed, "echo", profile.name, *trial) < 1 / (1 + exp(profile.slope))
    return fallible_reply(profile, seed, request, trial, "ECHO" if echoes(text) != wrong else "NO_ECHO")


def echoes(text: str) -> bool:
    """Whether a text ends in a repeated phrase, or asks and answers further questions after its first line."""
    return _repeats(text.casefold().split()[-_MAX_WORDS:]) or _asks_itself(text)


def _repeats(words: list[str]) -> bool:
    for size in range(1, len(words) // _MIN_REPEATS + 1):
        times = max(_MIN_REPEATS, -(-_MIN_WORDS // size))
        last = words[-size:]
        if len(words) >= times * size and all(
            words[len(words) - (n + 1) * size : len(words) - n * size] == last for n in range(1, times)
        ):
            return True
    return False


def _asks_itself(text: str) -> bool:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    question = next((number for number, line in enumerate(lines) if number and _ASKS.match(line)), None)
    return question is not None and any(_ANSWERS.match(line) for line in lines[question + 1 :])
