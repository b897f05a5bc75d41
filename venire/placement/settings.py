"""The settings of a placement, as `venire place` and `venire.place` take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypedDict

from venire.arena.keywords import Count, Seed, Several


class PlaceKeywords(TypedDict, total=False):
    """The keywords of `venire.place` that say how a model is placed; `budget` in US dollars."""

    budget: float | Decimal | None
    completions: Path | str | None
    elo: float | None
    campaign: str | None
    judges: Sequence[str]
    half_width: float | None
    battles: Count | None
    instructions: Several | None
    policy: str
    round_size: Count
    level: float
    alpha: float
    seed: Seed


@dataclass(frozen=True)
class PlaceSettings:
    """The user's settings of `venire place`; money in nano-dollars, `half_width` in Elo points; None: no limit."""

    store: Path
    model: str
    money: int | None = None
    campaign: str | None = None
    judges: tuple[str, ...] = ()
    completions: Path | None = None
    policy: str = "information"
    seed: int = 0
    half_width: float | None = None
    battles: int | None = None
    instructions: int | None = None
    round_size: int = 10
    level: float = 0.95
    alpha: float = 0.1
    elo: float | None = None
    """The model's Elo by people's votes, where known; simulated judges need it."""

    @classmethod
    def of(
        cls,
        model: str,
        store: Path | str,
        *,
        budget: float | Decimal | None = None,
        completions: Path | str | None = None,
        judges: Sequence[str] = (),
        **given: Any,
    ) -> PlaceSettings:
        """The settings that `PlaceKeywords` name."""
        return cls(
            Path(store),
            model,
            money=None if budget is None else nano(budget),
            completions=None if completions is None else Path(completions),
            judges=tuple(sorted(set(judges))),
            **given,
        )


def nano(dollars: float | Decimal) -> int:
    """US dollars as whole nano-dollars."""
    return int(round(Decimal(str(dollars)), 9).scaleb(9))
