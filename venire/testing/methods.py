"""The contract of a rating method."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Ballots, Battles
from venire.ratings.data.judgments import select_battles
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import METHODS, rate

_STRENGTHS = np.array([-1.2, -0.6, 0.0, 0.7, 1.4])
_MODELS = ("c", "e", "a", "d", "b")
"""Ordered by strength, which is not the order of their names."""
_INSTRUCTIONS = 30
_JUDGES = ("x", "y", "z")
_CLOSE = 1e-6
_OPTIONS = Options(replicates=20, covariates=("position",))


def check_method(name: str) -> None:
    """Check that a registered rating method keeps its contract. Raises AssertionError with the broken rule.

    From simulated verdicts (five models, three judges, 30 instructions, both orders) it recovers the order of the
    models; neither the order of rows nor the naming of side A matters; the same seed gives the same figures.

    >>> check_method("bradley-terry")
    """
    method = METHODS[name]
    battles = _battles(ballots="ballots" in method.needs)
    options = _options(name)
    if not method.rates:
        rate(battles, name, options)
        return
    values = _values(name, battles, options)
    assert values == _values(name, battles, options), f"{name}: one seed gives different figures"
    order = tuple(sorted(values, key=values.__getitem__))
    assert order == _MODELS, f"{name}: the order is {order} and should be {_MODELS}"
    rng = np.random.default_rng(3)
    shuffled = _values(name, _shuffled(battles, rng), options)
    turned = _values(name, _turned(battles), options)
    close = _CLOSE if method.orders or "ridge" in method.options else 5.0  # sequential updates depend on the order
    for what, other in (("the order of rows", shuffled), ("which side is called A", turned)):
        worst = max(abs(values[model] - other[model]) for model in _MODELS)
        assert worst <= close * max(1.0, *map(abs, values.values())), f"{name}: {what} changes a value by {worst:g}"


def _options(name: str) -> Options:
    known = METHODS[name].options
    return _OPTIONS if "covariates" in known else replace(_OPTIONS, covariates=())


def _values(name: str, battles: Battles, options: Options) -> dict[str, float]:
    """The method's value of each model: positions for an order, else ratings."""
    found = rate(battles, name, options)
    given = found.ratings.logits if found.position is None else -found.position
    assert np.isfinite(given).all(), f"{name}: a model that took part in many battles has no value"
    return dict(zip(found.ratings.models, map(float, given), strict=True))


def _battles(*, ballots: bool) -> Battles:
    rng = np.random.default_rng(11)
    size = len(_MODELS)
    names = tuple(sorted(_MODELS))
    strength = np.array([_STRENGTHS[_MODELS.index(model)] for model in names])
    first, second = np.triu_indices(size, 1)
    grid = np.indices((len(first), _INSTRUCTIONS, len(_JUDGES), 2)).reshape(4, -1)
    pair, instruction, judge, swapped = grid
    a, b = first[pair], second[pair]
    z = 2.5 * (strength[a] - strength[b]) + 0.3 * np.where(swapped, -1, 1) + rng.logistic(size=len(a))
    label = np.where(np.abs(z) < 0.2, 0, np.sign(z)).astype(np.int8)
    whole = np.int32
    table = Battles(
        models=names,
        judges=_JUDGES,
        instructions=tuple(f"i{n}" for n in range(_INSTRUCTIONS)),
        model_a=a.astype(whole),
        model_b=b.astype(whole),
        judge=judge.astype(whole),
        instruction=instruction.astype(whole),
        repeat=np.ones(len(a), whole),
        swapped=swapped.astype(bool),
        status=np.zeros(len(a), np.int8),
        label=label,
        score=z,
        human=np.where(rng.random(len(a)) < 1 / (1 + np.exp(-2 * (strength[a] - strength[b]))), 1.0, 0.0),
    )
    return replace(table, ballots=_ballots(names, strength, rng)) if ballots else table


def _ballots(names: tuple[str, ...], strength: NDArray[np.float64], rng: np.random.Generator) -> Ballots:
    judge, instruction = (one.ravel().astype(np.int32) for one in np.indices((len(_JUDGES), _INSTRUCTIONS)))
    worth = 2.5 * strength + rng.gumbel(size=(len(judge), len(names)))
    rank = (np.argsort(np.argsort(-worth, axis=1), axis=1) + 1).astype(np.float64)
    items = tuple(f"i{n}" for n in range(_INSTRUCTIONS))
    return Ballots(names, _JUDGES, items, judge, instruction, np.ones(len(judge), np.int32), rank)


def _shuffled(battles: Battles, rng: np.random.Generator) -> Battles:
    rows = rng.permutation(len(battles.label))
    return select_battles(battles, rows) if battles.ballots is None else battles


def _turned(battles: Battles) -> Battles:
    """The same verdicts with sides A and B exchanged."""
    assert battles.score is not None
    assert battles.human is not None
    return replace(
        battles,
        model_a=battles.model_b,
        model_b=battles.model_a,
        label=-battles.label,
        swapped=~battles.swapped,
        score=-battles.score,
        human=1 - battles.human,
    )
