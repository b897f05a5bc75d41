"""The verdict model of simulated judges: profiles of recorded judges, and the formula of `profiles.json`. Pure.

Every draw is a hash of named parts, so that a verdict depends on neither the order of calls nor the process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from math import exp, log, sqrt
from statistics import NormalDist
from struct import Struct
from types import MappingProxyType
from typing import Any, Literal

from venire.arena.errors import InputError
from venire.arena.scale import LOGITS_PER_POINT
from venire.arena.wording import suggest

Side = Literal["first", "second", "tie"]

_MODEL = re.compile(r"simulated/([^@/]+)@(0|[1-9][0-9]*)")
OBEYING = MappingProxyType({"obedient": "gpt-4-0613", "gullible": "gpt-4-0613"})
"""Judges that obey injected instructions (`simulation.injections`), each with its profile for all other cases."""

_inverse_normal = NormalDist().inv_cdf
_first_eight = Struct(">Q").unpack_from


@dataclass(frozen=True, slots=True)
class Profile:
    """One recorded judge as parameters; `parameters` of `profiles.json` documents their meaning and units."""

    name: str
    slope: float
    sigma_item: float
    rho: float
    position: float
    sigma_position: float
    sigma_order: float
    temperature: float
    tie_band: float
    item_tie: float
    length: float
    self_preference: float
    invalid: float
    reply_tokens_median: float
    reply_tokens_log_sd: float
    first_token_s: float
    tokens_per_s: float
    latency_log_sd: float

    def __hash__(self) -> int:
        """Hash of the name: verdicts are cached by profile, and a hash of all parameters takes as long as two draws."""
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class SimulatedVerdict:
    """The result of the formula for one trial, in presentation order; times in seconds."""

    verdict: Side | None
    """None: a reply without a readable verdict."""
    leaning: Side
    """The verdict from `z` and the tie draw, readable or not."""
    z: float
    reply_tokens: int
    latency_s: float
    """Time of the reasons, which have `reply_tokens` tokens."""
    short_latency_s: float
    """Time of a one-token reply, with the same noise."""
    repairable: bool
    """Whether a repair request gets a readable answer; drawn only where `verdict` is None."""


@cache
def _table() -> Mapping[str, Any]:
    content: dict[str, Any] = json.loads(files("venire.simulation").joinpath("profiles.json").read_bytes())
    return content


@cache
def load_profiles() -> Mapping[str, Profile]:
    """The recorded judges by profile name, read once from the package."""
    profiles = _table()["profiles"]
    return MappingProxyType({name: Profile(name, **entry["parameters"]) for name, entry in profiles.items()})


@cache
def tokens_per_character() -> float:
    """Tokens in one character of text, the same for every profile."""
    return float(_table()["tokens_per_character"])


@cache
def profiles_digest() -> str:
    """Ten hexadecimal digits that change with the profile table."""
    return sha256(json.dumps(_table(), sort_keys=True).encode()).hexdigest()[:10]


def model_name(profile: str, seed: int) -> str:
    """The name under which a profile and a seed are asked: `simulated/<profile>@<seed>`."""
    return f"simulated/{profile}@{seed}"


@lru_cache(maxsize=256)
def parse_model(name: str) -> tuple[Profile, int]:
    """The profile and the seed that a model name stands for.

    A judge in `OBEYING` has a profile under its own name. Raises `InputError` for an invalid name and for an unknown
    profile.
    """
    if (match := _MODEL.fullmatch(name)) is None:
        raise InputError(f"model {name!r} is not simulated: write simulated/<profile>@<seed>, the seed a whole number")
    profiles = load_profiles()
    if (profile := profiles.get(OBEYING.get(match[1], match[1]))) is None:
        raise InputError(f"model {name!r} names no profile; {suggest(match[1], (*profiles, *OBEYING))}")
    return (replace(profile, name=match[1]) if match[1] in OBEYING else profile), int(match[2])


def uniform(*parts: str | int) -> float:
    """A number strictly between 0 and 1 drawn by SHA-256 from the parts, as defined in `formula` of `profiles.json`."""
    return uniform_of("|".join(map(str, parts)))


def normal(*parts: str | int) -> float:
    """A number of the standard normal distribution, drawn as `uniform` is."""
    return _inverse_normal(uniform(*parts))


def uniform_of(name: str) -> float:
    """`uniform` for parts that are already joined by bars: joining them takes as long as the digest."""
    number: int = _first_eight(sha256(name.encode()).digest())[0]
    return ((number >> 11) + 0.5) / 2**53


def normal_of(name: str) -> float:
    """`normal` for parts that are already joined by bars."""
    return _inverse_normal(uniform_of(name))


@lru_cache(maxsize=4096)  # the steps of a trial make the same call in close succession
def simulate(
    profile: Profile,
    seed: int,
    *,
    instruction_id: str | int,
    first: str,
    second: str,
    gap: float,
    chars_first: int,
    chars_second: int,
    own: int = 0,
    repeat: int = 1,
) -> SimulatedVerdict:
    """The verdict of a judge on one pair in one order (`formula` of `profiles.json`).

    `first` and `second` name the models in the order shown, `gap` is the rating of the first minus that of the second
    (Elo points of people's votes), lengths are in characters, `own` is 1, -1 or 0 when the first, the second or neither
    is the judge's own answer, `repeat` counts from 1.
    """
    a, b, s = (first, second, 1) if first <= second else (second, first, -1)
    item = f"{profile.name}|{instruction_id}|{a}|{b}"
    once = f"{item}|{s}|{repeat}"
    ell = min(2.0, max(-2.0, log(max(20, chars_first) / max(20, chars_second))))
    mean = profile.slope * gap * LOGITS_PER_POINT + profile.length * ell + profile.self_preference * own
    taste, pull, tied = _of_battle(profile, seed, item, f"{instruction_id}|{a}|{b}")
    order = profile.sigma_order * normal_of(f"{seed}|order|{item}|{s}")
    z = mean + (s * (taste + order) + pull) + profile.temperature * _logistic(f"{seed}|sample|{once}")
    leaning = _side(profile, z, tied=tied)
    invalid = uniform_of(f"{seed}|invalid|{once}") < profile.invalid
    noise = exp(profile.latency_log_sd * normal_of(f"{seed}|latency|{once}"))
    log_tokens = profile.reply_tokens_log_sd * normal_of(f"{seed}|tokens|{once}")
    tokens = max(1, round(profile.reply_tokens_median * exp(log_tokens)))
    return SimulatedVerdict(
        verdict=None if invalid else leaning,
        leaning=leaning,
        z=z,
        reply_tokens=tokens,
        latency_s=(profile.first_token_s + tokens / profile.tokens_per_s) * noise,
        short_latency_s=(profile.first_token_s + 1 / profile.tokens_per_s) * noise,
        repairable=invalid and uniform_of(f"{seed}|repair|{once}") < 0.5,
    )


def _logistic(name: str) -> float:
    drawn = uniform_of(name)
    return log(drawn / (1 - drawn))


@lru_cache(maxsize=1024)  # both orders of a battle use the same draws in close succession
def _of_battle(profile: Profile, seed: int, item: str, battle: str) -> tuple[float, float, bool]:
    """A judge's draws for a battle, independent of order: its taste for A, its position bias, and a tie.

    `battle` is the key for all judges, who share a part of their taste; `item` is the key for this judge.
    """
    alone = sqrt(1 - profile.rho**2) * normal_of(f"{seed}|taste|{item}")
    taste = profile.sigma_item * (profile.rho * normal_of(f"{seed}|item|{battle}") + alone)
    pull = profile.position + profile.sigma_position * normal_of(f"{seed}|pull|{item}")
    return taste, pull, uniform_of(f"{seed}|tie|{item}") < profile.item_tie


def _side(profile: Profile, z: float, *, tied: bool) -> Side:
    if tied or -profile.tie_band <= z <= profile.tie_band:
        return "tie"
    return "first" if z > 0 else "second"
