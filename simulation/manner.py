"""How a simulated judge says what it has decided: readable or not, in which time, within the limit of tokens.

The profiles have these figures for verdicts of two stages. The same are used for every protocol: `invalid` is the share
of replies that no rule reads, a judge that is asked once more answers in a readable form in half of these cases, and
the noise of time is drawn once a trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from venire.simulation.dialect import Ask, Logprobs
from venire.simulation.judge import Profile, normal_of, tokens_per_character, uniform_of
from venire.simulation.replies import UNREADABLE, JudgeReply, limited

__all__ = ["answered", "spoken"]


def answered(profile: Profile, seed: int, ask: Ask, trial: Sequence[str | int], text: str) -> JudgeReply:
    """A reply with this text, unless the judge's habit spoils it; `trial` is what the draws are keyed by."""
    about = "|".join([profile.name, *map(str, trial)])
    invalid = uniform_of(f"{seed}|invalid|{about}") < profile.invalid
    repaired = bool(ask.quoted) and uniform_of(f"{seed}|repair|{about}") < 0.5
    noise = exp(profile.latency_log_sd * normal_of(f"{seed}|latency|{about}"))
    return spoken(profile, ask, UNREADABLE if invalid and not repaired else text, noise)


def spoken(
    profile: Profile, ask: Ask, text: str, noise: float, *, tokens: int | None = None, logprobs: Logprobs = ()
) -> JudgeReply:
    """A reply of these tokens (None: counted from its characters, 1 at least), in the judge's time under this noise."""
    count = max(1, round(tokens_per_character() * len(text))) if tokens is None else tokens
    prompt_tokens = round(tokens_per_character() * ask.characters)
    seconds = (profile.first_token_s + count / profile.tokens_per_s) * noise
    return limited(JudgeReply(text, "stop", prompt_tokens, count, seconds, logprobs), ask.max_tokens)
