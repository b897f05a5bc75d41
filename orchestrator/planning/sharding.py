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

import numpy as np

from venire.arena.campaigns import BudgetSettings, CampaignSettings
from venire.arena.errors import InputError
from venire.storage.plans import trial_states
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store

__all__ = ["Shard", "shard_trials", "sharded"]

_WRITTEN = re.compile(r"(\d{1,4})/(\d{1,4})")


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` (from 1) of a campaign in `of` parts, and further parts that it has taken over."""

    number: int
    of: int
    taken: tuple[int, ...] = ()

    @property
    def part(self) -> Fraction:
        """Its part of budgets and limits, those of parts that it has taken over included."""
        return Fraction(1 + len(self.taken), self.of)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The parts that it asks."""
        return (self.number, *self.taken)

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
    number, of = (int(one) for one in found.groups()) if found else (0, 0)
    if not 1 <= number <= of:
        raise InputError(f"{option} {text}: give a part and the number of parts, such as 3/8")
    return number, of


def sharded(campaign: CampaignSettings, shard: Shard) -> CampaignSettings:
    """The campaign as one of its shards runs it: a store of its own, and its part of budgets and rate limits.

    Parts of budgets are rounded down, so that together they are never more than the whole. Raises InputError for a
    campaign that is planned in rounds: each shard would see verdicts of its own alone.
    """
    if campaign.in_rounds:
        raise InputError(
            f"{campaign.path}: a campaign that is planned in rounds chooses by all verdicts so far, and a shard sees "
            "its own alone: run it whole, or choose a policy that plans once, such as widest-gap, without [plan.stop]"
        )
    return replace(
        campaign,
        store=shard.store(campaign.store),
        budget=_part(campaign.budget, shard),
        judge_budgets={name: _part(budget, shard) for name, budget in campaign.judge_budgets.items()},
        model_budgets={name: _part(budget, shard) for name, budget in campaign.model_budgets.items()},
        judges=tuple(
            replace(judge, lane=replace(judge.lane, share=judge.lane.share * float(shard.part)))
            for judge in campaign.judges
        ),
    )


def _part(budget: BudgetSettings, shard: Shard) -> BudgetSettings:
    calls, money, tokens = (
        None if limit is None else int(limit * shard.part) for limit in (budget.calls, budget.money, budget.tokens)
    )
    return BudgetSettings(calls, money, tokens)


def shard_trials(store: Store, campaign: int, shard: Shard, whole: Path) -> frozenset[int]:
    """Numbers of the trials of a plan that a shard asks: all orders of a battle of one judge and repeat, or none.

    What the store of a shard that was taken over has settled is left out, where that store (beside `whole`, the
    campaign's own) can be read. Raises StoreHeldError where that shard is still running.
    """
    planned = trial_states.trial_states(store, campaign).planned
    rows = store.arrays("shard_of_trials", of=shard.of)
    numbers, parts = (np.asarray(rows[name], dtype=np.int64) for name in ("trial", "part"))
    mine = np.isin(parts, [number - 1 for number in shard.numbers]) & planned[numbers]
    done = _settled_elsewhere(store, shard, whole)
    return frozenset(numbers[mine].tolist()) - done


def _settled_elsewhere(store: Store, shard: Shard, whole: Path) -> frozenset[int]:
    """Numbers here of the trials that shards which were taken over have settled."""
    found: set[int] = set()
    for number in shard.taken:
        path = shard.store(whole, number)
        if path.exists():
            with open_store(path, create=False) as other:
                keys = [key for (key,) in other.read("settled_keys")]
            found |= {trial for (trial,) in store.read("trials_of_keys", keys=keys)}
    return frozenset(found)
