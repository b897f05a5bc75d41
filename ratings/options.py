"""What a method that rates models may be told; one argument means the same to all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from venire.arena.errors import InputError
from venire.ratings.checks import check_draws, check_level
from venire.ratings.covariance import PairErrors
from venire.ratings.merging import Flips, Merge

__all__ = ["MOST_REPLICATES", "Options", "Ties"]

MOST_REPLICATES = 100_000
"""More would take memory and hours, and move no bound that is printed."""

Ties = Literal["half", "drop", "rao-kupper", "davidson"]


@dataclass(frozen=True, slots=True)
class Options:
    """What a method is told; None leaves the choice to the method.

    `replicates` above 0 asks for bootstrap intervals in place of the sandwich, `ridge` is lambda in lambda / 2 |R|^2
    on the summed likelihood, `anchors` are Elo points by model, `ties` says what half outcomes count as, `flips` what
    becomes of two orders with opposite winners, `covariates` names columns of features. Raises `InputError` for what
    no method accepts.
    """

    merge: Merge = "mean"
    flips: Flips = "tie"
    ties: Ties = "half"
    ridge: float | None = None
    anchors: Mapping[str, float] = field(default_factory=dict)
    errors: PairErrors | None = None
    replicates: int = 0
    seed: int = 0
    level: float = 0.95
    covariates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, choices in (("merge", Merge), ("flips", Flips), ("ties", Ties), ("errors", PairErrors)):
            given = getattr(self, name)
            if given is not None and given not in get_args(choices):
                raise InputError(f"{name} is {given!r}; choose one of {', '.join(get_args(choices))}")
        if self.ridge is not None and not 0.0 <= self.ridge < float("inf"):
            raise InputError(f"ridge is {self.ridge}; give 0 for none, or a number such as 0.01")
        if self.replicates == 1 or self.replicates > MOST_REPLICATES:
            raise InputError(
                f"replicates is {self.replicates}; give 0 for no bootstrap, or 2 to {MOST_REPLICATES}, such as 1000"
            )
        check_draws(self.replicates, self.seed)
        check_level(self.level)
        if self.replicates == 1 or self.replicates > MOST_REPLICATES:
            raise InputError(
                f"replicates is {self.replicates}; give 0 for no bootstrap, or 2 to {MOST_REPLICATES}, such as 1000"
            )

    def changed(self) -> tuple[str, ...]:
        """Names of the options that differ from their defaults."""
        plain = Options()
        return tuple(one.name for one in fields(self) if getattr(self, one.name) != getattr(plain, one.name))
