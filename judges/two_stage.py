"""The two-stage protocol: reasons first, then one character (SPEC 1; paper 000, "two-stage preference elicitation").

Asking for reasons before a verdict keeps weak judges from answering the instruction instead of judging the answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from venire.arena.records import Conversation, Material, Outcome, Preference, Reply, Request, Status, Trial
from venire.judges.hardening import enclose
from venire.judges.parsing import WHOLE, read_choice
from venire.judges.prompts import load

__all__ = ["PROMPTS", "two_stage"]

PROMPTS = ("reasons", "verdict", "repair")
_WINNER = {0: 0, 1: 1, 2: -1}
_CUT_SHORT = {"length": Status.TRUNCATED, "content_filter": Status.FILTERED, "refusal": Status.REFUSED}


def two_stage(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Ask for reasons, then for one of 1, 2 and 0, then once more for the form if it cannot be read.

    Options: `max_tokens` of each reply, `temperature` (absent: the model's own), `repair` ("1" or "0").
    Reasons cut off at the limit are still reasons and the verdict is asked; reasons that are empty, refused or
    filtered end the trial.
    """
    question = {"role": "user", "content": _question(material)}
    reasons = yield _request(trial, options, (question,))
    if reasons.finish in ("content_filter", "refusal") or not reasons.text.strip():
        return Outcome(_CUT_SHORT.get(reasons.finish, Status.UNREADABLE))
    so_far: tuple[Mapping[str, str], ...] = (
        question,
        {"role": "assistant", "content": reasons.text},
        {"role": "user", "content": load("two_stage", "verdict").template},
    )
    reply = yield _request(trial, options, so_far)
    outcome = _read(reply)
    if outcome.status is not Status.UNREADABLE or options.get("repair", "1") != "1" or not reply.text.strip():
        return outcome
    so_far += (
        {"role": "assistant", "content": reply.text},
        {"role": "user", "content": load("two_stage", "repair").template},
    )
    repaired = yield _request(trial, options, so_far)
    return _read(repaired)


def _question(material: Material) -> str:
    texts = ("\n\n".join(material.instruction.turns), *(completion.text for completion in material.shown))
    instruction, first, second = map(enclose, texts, material.fences)
    return load("two_stage", "reasons").substitute(instruction=instruction, first=first, second=second)


def _request(trial: Trial, options: Mapping[str, str], messages: tuple[Mapping[str, str], ...]) -> Request:
    temperature = options.get("temperature")
    return Request(
        messages,
        max_tokens=int(options["max_tokens"]),
        temperature=None if temperature is None else float(temperature),
        seed=trial.repeat,
    )


def _read(reply: Reply) -> Outcome:
    if reply.finish in ("content_filter", "refusal"):
        return Outcome(_CUT_SHORT[reply.finish])
    if (found := read_choice(reply.text)) is not None and (reply.finish != "length" or found[1] in WHOLE):
        choice, rule = found
        return Outcome(Status.OK, Preference(_WINNER[choice]), rule)
    return Outcome(_CUT_SHORT.get(reply.finish, Status.UNREADABLE))
