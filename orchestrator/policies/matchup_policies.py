"""Policies that choose matchups, to be put to all instructions of a plan (arXiv 2509.23510)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from venire.arena.campaigns import PhaseSettings
from venire.arena.errors import InputError
from venire.arena.planning import Pick, PlanState, Policy


def widest_gap(state: PlanState, phase: PhaseSettings, number: int, rng: np.random.Generator) -> list[Pick]:
    """The matchups with the widest absolute Elo gap, connected, no model in more than its share of them.

    Wide gaps tell good judges from bad ones with the fewest calls (arXiv 2509.23510). Raises InputError for a
    model without Elo and for a number of matchups that cannot connect the models.
    """
    return connected(_widest(state), state, phase, number)


def random_pairs(state: PlanState, phase: PhaseSettings, number: int, rng: np.random.Generator) -> list[Pick]:
    """Matchups drawn at random, connected, no model in more than its share of them."""
    candidates = _candidates(state)
    return connected([candidates[n] for n in rng.permutation(len(candidates))], state, phase, number)


def all_pairs(state: PlanState, phase: PhaseSettings, number: int, rng: np.random.Generator) -> list[Pick]:
    """Every matchup once."""
    return _candidates(state)


def banded_gap(state: PlanState, phase: PhaseSettings, number: int, rng: np.random.Generator) -> list[Pick]:
    """Matchups drawn from those whose Elo gap is within `phase.band`, connected, within each model's share.

    Good judges agree about wide gaps; gaps of medium width distinguish them. Where the band does not connect all
    models, or has too few matchups, the matchups nearest to it are added. Raises InputError where no gap is within the
    band.
    """
    return connected(_banded(state, phase, rng), state, phase, number)


def half_banded(state: PlanState, phase: PhaseSettings, number: int, rng: np.random.Generator) -> list[Pick]:
    """Half the widest matchups and half drawn from the band: for bad judges and good ones at once."""
    widest = _widest(state)
    ranked = [pick for both in zip(widest, _banded(state, phase, rng), strict=True) for pick in both]
    return connected(list(dict.fromkeys(ranked)), state, phase, number)


def gap(state: PlanState, a: str, b: str) -> float | None:
    """The width of two models' Elo gap in points; None where one of the ratings is not known."""
    known = a in state.elo and b in state.elo
    return abs(state.elo[a] - state.elo[b]) if known else None


def _candidates(state: PlanState) -> list[Pick]:
    return [Pick(a, b, gain=gap(state, a, b)) for a, b in combinations(sorted(state.models), 2)]


def _widest(state: PlanState) -> list[Pick]:
    return sorted(_candidates(state), key=lambda pick: (-(pick.gain or 0.0), pick.model_a, pick.model_b))


def _banded(state: PlanState, phase: PhaseSettings, rng: np.random.Generator) -> list[Pick]:
    """The matchups within the band in a drawn order, then the others by how far they are from it."""
    low, high = phase.band
    drawn = _candidates(state)
    drawn = [drawn[n] for n in rng.permutation(len(drawn))]
    off = [max(low - (pick.gain or 0.0), (pick.gain or 0.0) - high, 0.0) for pick in drawn]
    if min(off) > 0.0:
        raise InputError(
            f"[plan] band = [{low:g}, {high:g}]: no two of the {len(state.models)} models are so many Elo points "
            "apart; widen it"
        )
    return [drawn[n] for n in sorted(range(len(drawn)), key=off.__getitem__)]


def connected(ranked: Sequence[Pick], state: PlanState, phase: PhaseSettings, number: int) -> list[Pick]:
    """The first matchups of a ranking, as many as leave room for those that join the rest, in ranked order.

    Fewer than wanted where no further one keeps every model within its share. One more pick saves at most one joining
    matchup, so shrinking the picks by the excess never overshoots. Raises InputError for a number that cannot connect
    the models.
    """
    wanted = min(number, len(ranked))
    models = len(state.models)
    if wanted < models - 1:
        raise InputError(
            f"[plan] matchups = {wanted} cannot connect {models} models: it takes at least {models - 1}; raise it or "
            "name fewer models in [data] models"
        )
    cap = _cap(phase.coverage, wanted, models)
    place = {pick: n for n, pick in enumerate(ranked)}
    picks = wanted
    while True:  # without picks, two matchups a model always join all of them in a chain
        chosen = _join(_within(ranked, picks, cap), ranked, state.models, cap)
        if chosen is not None and len(chosen) <= wanted:
            return sorted(chosen, key=place.__getitem__)
        picks -= 1 if chosen is None else len(chosen) - wanted


def _cap(coverage: float, wanted: int, models: int) -> int:
    """Matchups that one model may be in: its share, but never less than an even share, nor than a chain needs."""
    return max(math.floor(coverage * wanted + 1e-9), math.ceil(2 * wanted / models), 2)


def _within(ranked: Iterable[Pick], number: int, cap: int) -> list[Pick]:
    used: dict[str, int] = {}
    chosen: list[Pick] = []
    for matchup in ranked:
        if len(chosen) == number:
            break
        if max(used.get(matchup.model_a, 0), used.get(matchup.model_b, 0)) < cap:
            chosen.append(matchup)
            for model in (matchup.model_a, matchup.model_b):
                used[model] = used.get(model, 0) + 1
    return chosen


def _join(chosen: list[Pick], ranked: Sequence[Pick], models: Sequence[str], cap: int) -> list[Pick] | None:
    """The chosen matchups and the first of the ranking that join what they leave apart; None where the cap forbids."""
    parent = {model: model for model in models}

    def root(model: str) -> str:
        while parent[model] != model:
            parent[model] = parent[parent[model]]
            model = parent[model]
        return model

    used = dict.fromkeys(models, 0)
    joined = list(chosen)
    apart = len(models)
    for matchup in chosen:
        used[matchup.model_a] += 1
        used[matchup.model_b] += 1
        a, b = root(matchup.model_a), root(matchup.model_b)
        if a != b:
            parent[a] = b
            apart -= 1
    for matchup in ranked:
        if apart == 1:
            break
        a, b = root(matchup.model_a), root(matchup.model_b)
        if a == b or max(used[matchup.model_a], used[matchup.model_b]) >= cap:
            continue
        parent[a] = b
        apart -= 1
        used[matchup.model_a] += 1
        used[matchup.model_b] += 1
        joined.append(matchup)
    return joined if apart == 1 else None


_BAND = frozenset({"band"})

WIDEST_GAP = Policy(widest_gap, crossed=True, needs_elo=True)
BANDED_GAP = Policy(banded_gap, crossed=True, needs_elo=True, settings=_BAND)
HALF_BANDED = Policy(half_banded, crossed=True, needs_elo=True, settings=_BAND)
RANDOM = Policy(random_pairs, crossed=True)
ALL_PAIRS = Policy(all_pairs, crossed=True, every_pair=True)
