"""Rankings of many answers, so that of two they are what the pairwise formula says.

What the profiles do not say, and what is done here: each answer at place p of n (from 0) has the utility

    slope * Elo * ln 10 / 400 + length * ln(max(20, characters)) + self_preference (its own answer)
      + sigma_item / sqrt 2 * (rho * normal(seed, 'liked', instruction, model)
                               + sqrt(1 - rho^2) * normal(seed, 'list taste', name, instruction, model))
      - (position + sigma_position * normal(seed, 'list pull', name, instruction)) * p / (n - 1)
      + sigma_order / sqrt 2 * normal(seed, 'list order', name, instruction, model, p)
      + temperature * gumbel(seed, 'list sample', name, instruction, model, p, repeat)

with gumbel = -ln(-ln(uniform)), and answers are ranked by it. The difference of two utilities is distributed as the `z`
of a pair with these two, since two Gumbel draws differ by a logistic one, except that the length ratio of a pair is
held within e^-2 and e^2. The draws are others than those of the pair, so single verdicts may differ. The pull goes from
the first place to the last in even steps. Ties do not exist here: the tie band and tied items do not count.
"""

from __future__ import annotations

from math import log, sqrt

from venire.judges.showing import labels
from venire.simulation.answers import AnswerKey, Known
from venire.simulation.dialect import Ask
from venire.simulation.judge import Profile, normal, parse_model, uniform
from venire.simulation.manner import answered, spoken
from venire.simulation.recognition import Asked
from venire.simulation.replies import UNREADABLE, JudgeReply

__all__ = ["rank", "utility"]

_LOG_ODDS_PER_ELO = log(10) / 400


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
        profile.slope * known.elo * _LOG_ODDS_PER_ELO
        + profile.length * log(max(20, chars))
        + profile.self_preference * own
        + profile.sigma_item / sqrt(2) * taste
        - pull * place / max(1, shown - 1)
        + profile.sigma_order / sqrt(2) * normal(seed, "list order", *item, place)
        - profile.temperature * log(-log(drawn))
    )
