"""Completions of simulated contestants: texts of a plausible length that declare themselves as simulated.

Behaviour that the profiles do not define: a completion begins with a line that names the model and calls the text
simulated, and continues with meaningless sentences, drawn by profile, seed, all messages and repeat. Its length follows
the profile's median and spread of reply tokens; it is never empty or unreadable. The text does not contain its quality:
a judge of it needs the Elo of its model. An edited copy is the completion with an echo: the instruction and the answer
three times more, whatever edit was asked for.
"""

from __future__ import annotations

from math import exp

from venire.arena.keys import text_digest
from venire.simulation.answer_key import AnswerKey
from venire.simulation.chat_replies import JudgeReply, timed_reply
from venire.simulation.chat_requests import ChatRequest, RecognisedQuestion
from venire.simulation.judge import normal, parse_model, tokens_per_character, uniform

_POOLS = {
    "subject": (
        "The first point",
        "What was asked",
        "The usual case",
        "A simple example",
        "The remaining part",
        "The order of the steps",
        "One exception",
        "The shorter way",
        "A careful reader",
        "The second point",
    ),
    "verb": (
        "depends on",
        "follows from",
        "is best seen beside",
        "comes before",
        "can be checked against",
        "differs little from",
        "has to wait for",
        "rests on",
    ),
    "object": (
        "what was said above",
        "the wording of the question",
        "the numbers that are given",
        "common practice",
        "the rest of the answer",
        "a second look",
        "the purpose at hand",
        "what is left open",
        "the plain meaning",
        "the conditions that hold",
    ),
}


def write(request: ChatRequest, question: RecognisedQuestion, answer_key: AnswerKey) -> JudgeReply:
    """The completion of the contestant named in a request."""
    profile, seed = parse_model(request.model)
    said = text_digest("\x1f".join(part for message in request.messages for part in message)).hex()
    drawn = (seed, "completion", profile.name, said, request.repeat)
    tokens = profile.reply_tokens_median * exp(profile.reply_tokens_log_sd * normal(*drawn, "length"))
    text = f"[Simulated text of {request.model}.]\n\n"
    number = 0
    while not number or len(text) < tokens / tokens_per_character():
        words = (pool[int(uniform(*drawn, kind, number) * len(pool))] for kind, pool in _POOLS.items())
        text += ("" if number == 0 else "\n\n" if number % 6 == 0 else " ") + " ".join(words) + "."
        number += 1
    return timed_reply(profile, request, text, exp(profile.latency_log_sd * normal(*drawn, "latency")))


def edit(request: ChatRequest, question: RecognisedQuestion, answer_key: AnswerKey) -> JudgeReply:
    """The completion of a request with an echo, whatever the prompt asks for: question and answer three times more."""
    profile, seed = parse_model(request.model)
    instruction, text = "\n\n".join(question.texts[:-1]), question.texts[-1]
    copied = text + 3 * f"\n\nQuestion: {instruction}\nAnswer: {text}"
    drawn = (seed, "edit", profile.name, text_digest(text).hex(), request.repeat)
    return timed_reply(profile, request, copied, exp(profile.latency_log_sd * normal(*drawn, "latency")))
