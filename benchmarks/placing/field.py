"""The systems of AlpacaEval that people rated, and a simulated judge of their completions; docs/policies.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.records import Status
from venire.judges import PROTOCOLS
from venire.judges.providers.price_table import find_price
from venire.simulation.judge import load_profiles, simulate

_SYSTEMS = """
select model, coalesce(arena_elo_2024_04_18, arena_elo_2024_02_02) elo from read_parquet(?)
where has_completions and elo is not null order by model
"""
_COMPLETIONS = "select model, instruction_id, length(completion) from read_parquet(?)"
_INSTRUCTIONS = "select instruction_id, length(instruction) from read_parquet(?) order by instruction_id"
_LABEL = {"first": 1, "second": -1, "tie": 0}
_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class Field:
    """Systems with their Elo by people, and characters of `instructions` and `completions` (models, instructions)."""

    models: tuple[str, ...]
    elo: NDArray[np.float64]
    names: tuple[str, ...]
    instructions: NDArray[np.float64]
    completions: NDArray[np.float64]

    def judged(self, rows: NDArray[Any], profile: str, seed: int) -> Battles:
        """A simulated judge's verdicts on battles (battles, 3), each in both orders."""
        judge, labels = load_profiles()[profile], np.zeros((len(rows), 2), dtype=np.int8)
        read = np.ones((len(rows), 2), dtype=np.bool_)
        for row, (a, b, place) in enumerate(rows.tolist()):
            for order, (one, other) in enumerate(((a, b), (b, a))):
                said = simulate(
                    judge,
                    seed,
                    instruction_id=self.names[place],
                    first=self.models[one],
                    second=self.models[other],
                    gap=float(self.elo[one] - self.elo[other]),
                    chars_first=int(self.completions[one, place]),
                    chars_second=int(self.completions[other, place]),
                ).verdict
                read[row, order] = said is not None
                labels[row, order] = 0 if said is None else _LABEL[said] * (1 if order == 0 else -1)
        both = np.repeat(rows, 2, axis=0).astype(np.int32)
        return Battles(
            models=self.models,
            judges=(profile,),
            instructions=self.names,
            model_a=both[:, 0].copy(),
            model_b=both[:, 1].copy(),
            judge=np.zeros(len(both), dtype=np.int32),
            instruction=both[:, 2].copy(),
            repeat=np.ones(len(both), dtype=np.int32),
            swapped=np.tile([False, True], len(rows)),
            status=np.where(read.ravel(), Status.OK, Status.UNREADABLE).astype(np.int8),
            label=labels.ravel(),
        )


def read_field(data: Path, instructions: int, seed: int) -> Field:
    """The systems with completions and people's Elo (April 2024, else February), on instructions drawn at random."""
    folder = data / "alpaca_eval"
    elo = dict(duckdb.execute(_SYSTEMS, [str(folder / "models.parquet")]).fetchall())
    lengths = {
        (model, number): characters
        for model, number, characters in duckdb.execute(_COMPLETIONS, [str(folder / "completions.parquet")]).fetchall()
        if model in elo
    }
    texts = [
        (number, characters)
        for number, characters in duckdb.execute(_INSTRUCTIONS, [str(folder / "instructions.parquet")]).fetchall()
        if all((model, number) in lengths for model in elo)
    ]
    drawn = [texts[n] for n in sorted(np.random.default_rng(seed).permutation(len(texts))[:instructions])]
    return Field(
        tuple(elo),
        np.array(list(elo.values()), dtype=np.float64),
        tuple(f"{number:03}" for number, _ in drawn),
        np.array([characters for _, characters in drawn], dtype=np.float64),
        np.array([[lengths[model, number] for number, _ in drawn] for model in elo], dtype=np.float64),
    )


def nano_dollars(
    field: Field, row: str, models: Sequence[str], names: Sequence[str], protocol: str = "two-stage"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Expected cost of a battle in both orders at a row of the price table: by instruction, by completion."""
    price = find_price(row)
    assert price is not None, row
    entry = PROTOCOLS[protocol]
    steps, replies = len(entry.expects), list(entry.expects)
    frame = sum(len(text) for _, _, text in entry.texts({}))
    tokens = steps * frame / _CHARACTERS_A_TOKEN + sum(sum(replies[:step]) for step in range(steps))
    fixed = 2 * (tokens * price.input + sum(replies) * price.output) / 1e6
    each = 2 * steps * price.input / _CHARACTERS_A_TOKEN / 1e6
    rows = [field.models.index(name) for name in models]
    places = [field.names.index(name) for name in names]
    return fixed + each * field.instructions[places], each * field.completions[np.ix_(rows, places)]
