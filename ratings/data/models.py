"""Selections of models: those suitable for ranking against accuracy, and a judge's own model and its family."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.arena.errors import InputError
from venire.ratings.data.validation import check_seed, float_array

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class FilteredModels:
    """Models kept, most accurate first, and the reason for each dropped model, in the order of removal."""

    kept: tuple[str, ...]
    dropped: dict[str, str]


def filter_models(
    models: Sequence[str],
    accuracy: ArrayLike,
    parse_rate: ArrayLike,
    *,
    baseline: float,
    min_parse_rate: float = 0.9,
    min_gap: float = 0.01,
    seed: int = 0,
) -> FilteredModels:
    """Apply the three rules of Remeli and Hardt 2026 in their order to shares from 0 to 1 (models,).

    First a parse rate above `min_parse_rate`, then an accuracy above `baseline`. The rest are sorted by accuracy; of
    two closer than `min_gap` the model with the lower parse rate is dropped, then the less accurate, then a random one.
    The last rule raises correlations with accuracy. Raises `InputError` for shares outside [0, 1] and names listed
    twice.

    >>> from venire.ratings import filter_models
    >>> found = filter_models(["a", "b", "c"], [0.9, 0.7, 0.2], [1.0, 0.95, 0.99], baseline=0.3)
    >>> found.kept
    ('a', 'b')
    """
    right, parsed = _shares("accuracy", accuracy, len(models)), _shares("parse_rate", parse_rate, len(models))
    if len(set(models)) != len(models):
        raise InputError("models: a name is listed twice; give every model one name")
    dropped: dict[str, str] = {}
    rows = sorted(zip(models, right, parsed, strict=True), key=lambda row: (-row[1], row[0]))
    for name, _, rate in rows:
        if not rate > min_parse_rate:
            dropped[name] = f"parse rate {rate:.3f} is not above {min_parse_rate:g}"
    for name, share, _ in rows:
        if name not in dropped and not share > baseline:
            dropped[name] = f"accuracy {share:.3f} is not above the baseline {baseline:g}"
    check_seed(seed)
    rng = np.random.default_rng(seed)
    kept: list[tuple[str, float, float]] = []
    for row in (row for row in rows if row[0] not in dropped):
        last = kept[-1] if kept else None
        if last is None or last[1] - row[1] >= min_gap - _ROUNDING:
            kept.append(row)
            continue
        pair = (last, row)
        equal = last[1:] == row[1:]
        falls = int(rng.integers(2)) if equal else int((row[2], row[1]) < (last[2], last[1]))
        loser, stays = pair[falls], pair[1 - falls]
        why = "at random" if equal else "its parse rate is lower" if loser[2] < stays[2] else "it is less accurate"
        dropped[loser[0]] = f"within {min_gap:g} of {stays[0]} in accuracy: {why}"
        kept[-1] = stays
    return FilteredModels(tuple(row[0] for row in kept), dropped)


def _shares(argument: str, values: ArrayLike, models: int) -> list[float]:
    shares = float_array(argument, values)
    if shares.shape != (models,):
        raise InputError(f"{argument} has shape {shares.shape}; give one share for each of {models} models")
    wrong = ~((shares >= 0.0) & (shares <= 1.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"{argument}, row {row}: {shares[row]} is not possible: give a share from 0 to 1")
    return [float(share) for share in shares]


def alike_names(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Groups of names that differ in letter case, spaces or Unicode form only, each and all in order.

    >>> alike_names(["oak", "gpt-4.1", "GPT-4.1"])
    (('GPT-4.1', 'gpt-4.1'),)
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        groups.setdefault(" ".join(folded.split()), []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def model_of_judge(judges: Sequence[str], models: Sequence[str], peers: Mapping[str, str]) -> NDArray[np.int64]:
    """The model that each judge is: by `peers`, else by equal name; -1 where it is none (judges,)."""
    place = {name: code for code, name in enumerate(models)}
    return np.array([place.get(peers.get(name, name), -1) for name in judges], dtype=np.int64)


def own_models(
    judges: Sequence[str],
    models: Sequence[str],
    peers: Mapping[str, str] | None = None,
    families: Mapping[str, str] | None = None,
    judge_families: Mapping[str, str] | None = None,
) -> NDArray[np.bool_]:
    """Which models are each judge's own (judges, models): the model that it is, and those of its family.

    `peers` maps judges to models of another name; `families` and `judge_families` give the family of each model and
    judge, where known. A judge that `judge_families` does not name has the family of the model that it is.
    """
    of_model, of_judge = families or {}, judge_families or {}
    table = np.zeros((len(judges), len(models)), dtype=np.bool_)
    for row, judge in zip(table, judges, strict=True):
        model = (peers or {}).get(judge, judge)
        family = of_judge.get(judge, of_model.get(model))
        row[:] = [name == model or bool(family and of_model.get(name) == family) for name in models]
    return table
