"""The binary protocol: which of two answers is more surely correct, 1 or 2, without a tie.

Source: docs/protocols.md; Remeli and Hardt 2026.

With log-probabilities the verdict has a score as well: how much likelier the judge was to say 1 than 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, isfinite, log

from venire.arena.records import Conversation, Material, Preference, Reply, Trial
from venire.arena.shapes import Shape
from venire.judges.conversation import ask_with_repair, make_request, user_message
from venire.judges.entry import VERDICT_TOKENS, ProtocolEntry, ProtocolOption, ReplyExample
from venire.judges.parsing.choices import WHOLE_CHOICES, read_choice
from venire.judges.prompts import choose, fixed, show_completion, show_instruction, with_options

__all__ = ["BINARY", "PROMPTS", "binary", "log_odds"]

PROMPTS = ("question", "repair")
_WINNER = {1: 1, 2: -1}
_LISTED = 20
"""Likeliest tokens asked for at each place: as many as the most generous endpoints tell."""


def binary(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
    """Ask for 1 or 2, then once more for the form if neither can be read; 0 is not accepted.

    Options: `max_tokens`, `temperature` (absent: the model's own), `repair` ("1" or "0"), `logprobs` ("1": ask for
    log-probabilities, and score the verdict by `log_odds`; the score is null where none can be had).
    """
    question = choose("binary", "question", options).substitute(
        instruction=show_instruction(material),
        first=show_completion(material, 0),
        second=show_completion(material, 1),
    )
    listed = _LISTED if options.get("logprobs") == "1" else 0
    request = make_request(trial, options, (user_message(question),), top_logprobs=listed)
    return (yield from ask_with_repair(request, fixed("binary", "repair", options), options, _read))


def _read(reply: Reply) -> tuple[Preference, str, bool] | None:
    if (found := read_choice(reply.text)) is None or found[0] not in _WINNER:
        return None
    choice, rule = found
    # Where more is said than the choice, a digit among the tokens may be another than the one that was read.
    score = log_odds(reply.logprobs) if rule in WHOLE_CHOICES and "<" not in reply.text else None
    return Preference(_WINNER[choice], score), rule, rule in WHOLE_CHOICES


def log_odds(logprobs: tuple[tuple[tuple[str, float], ...], ...]) -> float | None:
    """log p(1) - log p(2) at the position of the digit, or None where it is not reported.

    `logprobs` has the likeliest tokens of each place with their natural log-probabilities. The place is the first one
    whose likeliest token is 1 or 2, so that words such as "Answer:" may come before it. Tokens that differ in
    whitespace alone are one digit, and their probabilities add up. A digit that is not among the tokens reported has no
    known probability, and then there is no score.
    """
    for place in logprobs:
        likeliest = max(place, key=lambda candidate: candidate[1], default=("", 0.0))
        if likeliest[0].strip() in ("1", "2"):
            one, two = (_log_sum([value for token, value in place if token.strip() == digit]) for digit in "12")
            return None if one is None or two is None else one - two
    return None


def _log_sum(values: list[float]) -> float | None:
    """The logarithm of summed probabilities, relative to the largest so that none is lost; None for none."""
    finite = [value for value in values if isfinite(value)]
    return max(finite) + log(sum(exp(value - max(finite)) for value in finite)) if finite else None


BINARY = ProtocolEntry(
    number=3,
    shape=Shape(2, Preference),
    talk=with_options(binary),
    prompts=PROMPTS,
    folder="binary",
    expects=(VERDICT_TOKENS,),
    options={"logprobs": ProtocolOption(frozenset({"0", "1"}).__contains__, '"1" or "0"')},
    examples=(ReplyExample(("1",), Preference(1)), ReplyExample(("Neither.", "2"), Preference(-1))),
    rehearse="venire.simulation.comparisons:compare",
)
