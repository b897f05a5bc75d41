"""A part of a campaign for one of several processes or machines: its trials, and its part of budgets and limits.

Every shard has the whole plan in a store of its own and asks its part of it; the stores are put together afterwards
(`storage.transfer.merging`). Which trials are whose depends on their keys alone, so shards agree without a word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from venire.arena.budgets import BudgetSettings, Shards, part_of
from venire.arena.campaigns import CampaignSettings, LaneSettings
from venire.arena.errors import InputError
from venire.configs.fields import Table
from venire.configs.schema import BudgetLimits, Judge
from venire.storage.plans import trial_states
from venire.storage.store.store import Store

Settings = TypeVar("Settings", BudgetSettings, LaneSettings)

_WRITTEN = re.compile(r"(\d{1,4})/(\d{1,4})")


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` (from 1) of a campaign in `of` parts, and further parts that it is to take over."""

    number: int
    of: int
    taken: tuple[int, ...] = ()

    def options(self, taken: Sequence[int] = ()) -> str:
        """How the command line names it, with parts to be taken over."""
        return "".join((f" --shard {self.number}/{self.of}", *(f" --take {number}/{self.of}" for number in taken)))

    @staticmethod
    def read(text: str, taken: Sequence[str] = ()) -> Shard:
        """A shard as written on the command line. Raises InputError for one that there cannot be.

        >>> Shard.read("3/8", ["5/8"])
        Shard(number=3, of=8, taken=(5,))
        """
        number, of = _numbers(text, "--shard")
        others = []
        for one in taken:
            other, parts = _numbers(one, "--take")
            if parts != of:
                raise InputError(f"--take {one}: this is a campaign in {of} shards: name one as NUMBER/{of}")
            others.append(other)
        if len({number, *others}) <= len(others):
            raise InputError(f"--take {' '.join(taken)}: a shard is taken once, and not by itself")
        return Shard(number, of, tuple(others))

    def store(self, path: Path, number: int | None = None) -> Path:
        """The store of this shard, or of another of the campaign: beside the campaign's own."""
        return path.with_name(
            f"{path.stem}.shard-{self.number if number is None else number}-of-{self.of}{path.suffix}"
        )


def _numbers(text: str, option: str) -> tuple[int, int]:
    found = _WRITTEN.fullmatch(text)
    number, of = (int(digits) for digits in found.groups()) if found else (0, 0)
    if not 1 <= number <= of:
        raise InputError(f"{option} {text}: give a part and the number of parts, such as 3/8")
    return number, of


def sharded(campaign: CampaignSettings, shard: Shard, parts: int = 1) -> CampaignSettings:
    """The campaign as one of its shards runs it: a store of its own, and so many parts of budgets and rate limits.

    Parts of budgets are rounded down, so that together they are never more than the whole. Raises InputError for a
    campaign that is planned in rounds: each shard would see verdicts of its own alone.
    """
    part = Fraction(parts, shard.of)
    if campaign.in_rounds:
        raise InputError(
            f"{campaign.path}: a campaign that is planned in rounds chooses by all verdicts so far, and a shard sees "
            "its own alone: run it whole, or choose a policy that plans once, such as widest-gap, without [plan.stop]"
        )
    return replace(
        campaign,
        store=shard.store(campaign.store),
        budget=_part(campaign.budget, BudgetLimits, part),
        judge_budgets={name: _part(limits, BudgetLimits, part) for name, limits in campaign.judge_budgets.items()},
        model_budgets={name: _part(limits, BudgetLimits, part) for name, limits in campaign.model_budgets.items()},
        judges=tuple(replace(judge, lane=_part(judge.lane, Judge, part)) for judge in campaign.judges),
    )


def _part(record: Settings, table: type[Table], part: Fraction) -> Settings:
    """What a shard has of settings, by what their table in the campaign file declares of each key."""
    values = {name: getattr(record, name) for name, key in table.declared.items() if key.shards is Shards.PART}
    parts: dict[str, Any] = {name: part_of(value, part) for name, value in values.items() if value is not None}
    return replace(record, **parts)


def shard_trials(store: Store, campaign: int, of: int, numbers: Sequence[int]) -> frozenset[int]:
    """Numbers of the planned trials of some parts: all orders of a battle of one judge and repeat, or none."""
    planned = trial_states.trial_states(store, campaign).planned
    rows = store.arrays("shard_of_trials", of=of)
    trials, parts = (np.asarray(rows[name], dtype=np.int64) for name in ("trial", "part"))
    mine = np.isin(parts, [number - 1 for number in numbers]) & planned[trials]
    return frozenset(trials[mine].tolist())
