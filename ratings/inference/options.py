"""Options of rating methods; a name has the same meaning for all methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from venire.arena.choices import (
    BattleOrder,
    ConformalMethod,
    Flips,
    Habit,
    HumanTies,
    Merge,
    OwnVotes,
    PairErrors,
    RatedPairs,
    Ties,
)
from venire.arena.errors import InputError
from venire.arena.keywords import check_fields
from venire.ratings.data.validation import check_draws, check_level

_MAX_REPLICATES = 100_000
"""Maximum number of replicates: more would take memory and hours without changing a printed bound."""

_MAX_RESTARTS = 1_000
"""Maximum number of starts: more would take minutes and find the same optima."""


_MAX_K = 10_000.0

_FLAGS = {
    "anchors": "--anchor",
    "replicates": "--bootstrap",
    "covariates": "--covariate",
    "own_votes": "--own",
    "judge_weights": "--judge-weight",
    "habits": "--habit",
}
"""Options with another name on the command line, where most are given one at a time."""


_SINGLE = {"of_some": True}
"""Of a field that single methods take: where several are compared, the others ignore it."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a rating method; None leaves the choice to the method.

    `replicates` above 0 requests bootstrap intervals instead of the sandwich, `ridge` is lambda in lambda / 2 |R|^2 on
    the summed likelihood, `anchors` are Elo points by model, `ties` defines how half outcomes count, `flips` how two
    orders with opposite winners are treated, `pairs` whether intervals are about all pairs of models or those that were
    asked, which have no lack of fit between them, `covariates` names columns of features. `own_votes` states whether a
    judge that is one of the models votes on itself, `judge_weights` the weight of a judge's verdicts (1 where not
    named). am-ELO: `restarts` more starts from the seed, `habits` of judges to fit, `ability_ridge` is lambda in lambda
    / 2 (theta - 1)^2. Stable Arena: judges with fewer than `least_verdicts` judgments, or an ability of `least_ability`
    or less, are left out, repeatedly under `until_stable`. Kemeny-Young: `seconds` is the time limit for proving an
    order optimal. Online Elo: `order` is that in which battles are taken, `k` the points of a certain win, in Elo
    points. Soft-Elo: `human_ties` is what a tie of people counts as in beta, `conformal` how intervals of people's
    ratings are calibrated. Raises `InputError` for values that no method accepts.
    """

    merge: Merge = "mean"
    flips: Flips = "tie"
    ties: Ties = "half"
    ridge: float | None = None
    anchors: Mapping[str, float] = field(default_factory=dict)
    errors: PairErrors | None = None
    pairs: RatedPairs = "all"
    replicates: int = 0
    seed: int = 0
    level: float = 0.95
    covariates: tuple[str, ...] = field(default=(), metadata=_SINGLE)
    own_votes: OwnVotes = "include"
    judge_weights: Mapping[str, float] = field(default_factory=dict)
    restarts: int = field(default=0, metadata=_SINGLE)
    habits: tuple[Habit, ...] = field(default=(), metadata=_SINGLE)
    ability_ridge: float = field(default=0.0, metadata=_SINGLE)
    least_verdicts: int = field(default=50, metadata=_SINGLE)
    least_ability: float = field(default=0.0, metadata=_SINGLE)
    until_stable: bool = field(default=False, metadata=_SINGLE)
    seconds: float = field(default=60.0, metadata=_SINGLE)
    order: BattleOrder = field(default="shuffled", metadata=_SINGLE)
    k: float = field(default=4.0, metadata=_SINGLE)
    human_ties: HumanTies = field(default="drop", metadata=_SINGLE)
    conformal: ConformalMethod = field(default="leave-one-out", metadata=_SINGLE)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.ridge is not None and not 0.0 <= self.ridge < float("inf"):
            raise InputError(f"ridge is {self.ridge}; give 0 for none, or a number such as 0.01")
        if self.replicates == 1 or self.replicates > _MAX_REPLICATES:
            raise InputError(
                f"replicates is {self.replicates}; give 0 for no bootstrap, or 2 to {_MAX_REPLICATES}, such as 1000"
            )
        check_draws(self.replicates, self.seed)
        check_level(self.level)
        self._check_judges()

    def _check_judges(self) -> None:
        for name, weight in self.judge_weights.items():
            if not 0.0 <= weight < float("inf"):
                raise InputError(f"the weight of judge {name!r} is {weight}; give a number, 0 or more")
        if not 0 <= self.restarts <= _MAX_RESTARTS:
            raise InputError(f"restarts is {self.restarts}; give 0 to {_MAX_RESTARTS}")
        if not 0.0 <= self.ability_ridge < float("inf"):
            raise InputError(f"ability_ridge is {self.ability_ridge}; give 0 for none, or a number such as 1")
        if self.least_verdicts < 1:
            raise InputError(f"least_verdicts is {self.least_verdicts}; give 1 or more")
        if not 0.0 <= self.least_ability < float("inf"):
            raise InputError(f"least_ability is {self.least_ability}; give 0 or more, such as 0.2")
        if not 0.0 < self.seconds < float("inf"):
            raise InputError(f"seconds is {self.seconds}; give a time above 0")
        if not 0.0 < self.k <= _MAX_K:
            raise InputError(f"k is {self.k}; give a number above 0 and up to {_MAX_K:g}, such as 4")

    def changed(self) -> tuple[str, ...]:
        """Names of the options that differ from their defaults."""
        plain = Options()
        return tuple(one.name for one in fields(self) if getattr(self, one.name) != getattr(plain, one.name))


OF_SOME = frozenset(one.name for one in fields(Options) if one.metadata.get("of_some"))
"""Options of single methods: the other methods of a comparison ignore them."""


def option_flag(name: str) -> str:
    """The command-line flag of an option, such as `--ability-ridge` of ability_ridge."""
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


def option_names(names: Iterable[str]) -> str:
    """Names of options for a message, each with its command-line flag if that is spelt differently."""
    flags = {name: option_flag(name) for name in names}
    return ", ".join(name if flag == f"--{name}" else f"{name} ({flag})" for name, flag in flags.items())
