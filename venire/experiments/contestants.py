"""The contestants of a simulation: those of a campaign's data, or a generated field whose ratings are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError
from venire.arena.hints import setting_with
from venire.arena.records import Completion, Instruction, Rating
from venire.ratings.data.statistics import norm
from venire.storage.read import frames
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing

ELO = (
    *(815.2, 841.6, 864.1, 898.1, 907.5, 922.2, 926.3, 942.8, 953.0, 960.0),
    *(1007.3, 1015.5, 1046.0, 1052.4, 1071.0, 1087.4, 1123.2, 1159.5, 1178.4, 1228.6),
)
"""Elo by people's votes of twenty models, from weak to strong, from a public arena of 2023."""

INSTRUCTIONS = 200
"""Default number of instructions of a generated field."""

_MEAN, _BETWEEN, _WITHIN = 7.0, 0.6, 0.347
"""Logarithm of a reply's length in characters: mean, its spread over instructions, and the spread within each."""

_POINTS = 33
_MAX_LENGTHS = 4_000_000
_FILLER = "Simulated text without a meaning, as long as an answer would be. "


@dataclass(frozen=True, slots=True, eq=False)
class ContestantField:
    """Models by name with their Elo, and the number of instructions; `made_up` or from the file's data.

    `pairs` (pairs, 2) are indices into `models`, and `log_ratios` (pairs or 1, any) are logarithms of the ratios of
    the lengths of their replies: taken from the data, or from the distribution of a generated field.
    """

    elo: Mapping[str, float]
    instructions: int
    made_up: bool
    log_ratios: NDArray[np.float64]
    left_out: tuple[str, ...] = ()
    """Models of the data without an Elo, which simulated judges cannot judge."""

    @property
    def models(self) -> tuple[str, ...]:
        """Their names in order."""
        return tuple(sorted(self.elo))

    @property
    def pairs(self) -> NDArray[np.intp]:
        """Every pair of models once, as indices into `models`."""
        return np.array(list(combinations(range(len(self.elo)), 2)), dtype=np.intp)

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Elo of the first model minus that of the second, for each pair."""
        elo = np.array([self.elo[name] for name in self.models])
        return np.asarray(elo[self.pairs[:, 0]] - elo[self.pairs[:, 1]], dtype=np.float64)


def made_up(models: int, instructions: int) -> ContestantField:
    """A generated field: Elo values from `ELO`, or the wanted number of values between its least and largest.

    Names are assigned to Elo values at random, so that the order of names does not reveal the ranking. Raises
    InputError for fewer than two models, and for no instruction.
    """
    if models < 2 or instructions < 1:
        raise InputError(f"a field of {models} models on {instructions} instructions: take at least 2 models and 1")
    elo = np.interp(np.linspace(0, len(ELO) - 1, models), np.arange(len(ELO)), ELO)
    places = np.random.default_rng(models).permutation(models)
    names = {f"model-{place + 1:0{len(str(models))}d}": round(float(elo[n]), 1) for n, place in enumerate(places)}
    quantiles = norm.ppf((np.arange(_POINTS) + 0.5) / _POINTS)
    return ContestantField(names, instructions, True, np.sqrt(2.0) * _WITHIN * quantiles[None, :])


def fill(store: Store, field: ContestantField, seed: int) -> None:
    """Write a generated field into an empty store; the seed determines the lengths of its replies."""
    rng = np.random.default_rng([seed, len(field.elo), field.instructions])
    common = rng.normal(_MEAN, _BETWEEN, (1, field.instructions))
    own = rng.normal(0.0, _WITHIN, (len(field.elo), field.instructions))
    lengths = np.maximum(20, np.rint(np.exp(common + own))).astype(np.int64).tolist()
    names = [f"i{number + 1:0{len(str(field.instructions))}d}" for number in range(field.instructions)]

    def completions() -> Iterator[Completion]:
        for model, row in zip(field.models, lengths, strict=True):
            for name, length in zip(names, row, strict=True):
                head = f"{model} {name}. "
                yield Completion(model, name, (head + _FILLER * (length // len(_FILLER) + 1))[:length])

    importing.add(store, (Instruction(name, (f"Instruction {name} of a made-up field.",)) for name in names))
    importing.add(store, completions())
    importing.add(store, [Rating(model, elo) for model, elo in field.elo.items()])


def read_field(campaign: CampaignSettings, path: Path) -> ContestantField:
    """The field of a campaign's data files, which are imported into a new store at `path`.

    Raises InputError where fewer than two models have completions and Elo, and as reading the files does.
    """
    data = campaign.data
    with open_store(path) as store:
        for kind, file in (("instructions", data.instructions), ("completions", data.completions)):
            if file is not None:
                importing.add_file(
                    store, file, "instructions" if kind == "instructions" else "completions", _map(data.maps, kind)
                )
        if data.elo is not None:
            importing.add_file(store, data.elo, "elo", _map(data.maps, "elo"))
        importing.add(store, [Rating(one.name, one.elo) for one in campaign.contestants if one.elo is not None])
        return _field(campaign, store)


def _map(maps: Mapping[str, Mapping[str, str]] | None, kind: str) -> Mapping[str, str]:
    return (maps or {}).get(kind, {})


def _field(campaign: CampaignSettings, store: Store) -> ContestantField:
    known = frames.elos(store)
    there = [one.model for one in importing.contestants(store)]
    named = [model for model in there if campaign.data.models is None or model in campaign.data.models]
    elo = {model: known[model] for model in named if model in known}
    if len(elo) < 2:
        raise InputError(
            f"{campaign.path}: a simulation knows the contestants by their Elo, and {len(elo)} of {len(named)} models "
            "with completions have one: name tables in [data], or take a made-up field with "
            f"{setting_with('models', 20)}"
        )
    lengths: dict[str, dict[str, int]] = {}
    for instruction, _, model, text in importing.answer_key(store):
        if model in elo:
            lengths.setdefault(instruction, {})[model] = len(text)
    common = [row for row in lengths.values() if len(row) == len(elo)]
    if not common:
        raise InputError(f"{campaign.path}: no instruction was answered by all {len(elo)} models: see [data] models")
    chars = np.array([[row[model] for model in sorted(elo)] for row in common], dtype=np.float64)
    logs = np.log(np.maximum(20.0, chars))
    first, second = np.array(list(combinations(range(len(elo)), 2)), dtype=np.intp).T
    step = max(1, len(logs) * len(first) // _MAX_LENGTHS)  # a sample of very many
    ratios = (logs[::step, first] - logs[::step, second]).T
    return ContestantField(elo, len(common), False, ratios, tuple(model for model in named if model not in elo))
