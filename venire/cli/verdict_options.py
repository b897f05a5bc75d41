"""The options of verbs that read verdicts, as records: where verdicts come from, how they are rated, which figures.

A field is an option; a verb takes a record by `with_options`. Where an option has a few words to choose from, they are
those of `arena.choices`, which the library takes too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.arena.choices import (
    BattleOrder,
    BothBad,
    ConformalMethod,
    Flips,
    HumanTies,
    OrdersMerge,
    OwnVotes,
    PairErrors,
    RatedPairs,
    Ties,
    Unattempted,
    Unranked,
    VerdictOrigin,
)
from venire.arena.errors import InputError
from venire.cli.help import FIGURES, INTERVALS, JUDGMENTS, METHOD, OF_ONE_METHOD, READ, verdict_formats

if TYPE_CHECKING:
    from venire.ratings.inference.options import Options
    from venire.reports.board.source import VerdictSource
    from venire.reports.board.verdicts import Verdicts
    from venire.reports.figures import Figures

_read = partial(typer.Option, rich_help_panel=READ)
_judgments = partial(typer.Option, rich_help_panel=JUDGMENTS)
_method = partial(typer.Option, rich_help_panel=METHOD)
_intervals = partial(typer.Option, rich_help_panel=INTERVALS)
_of_one_method = partial(typer.Option, rich_help_panel=OF_ONE_METHOD)
_figures = partial(typer.Option, rich_help_panel=FIGURES)

Campaign = Annotated[str | None, _read("--campaign", help="Which campaign of a store that has several.")]
Mapped = Annotated[list[str], _read("--map", help="OURS=THEIRS: a column that is called otherwise in the table.")]
Values = Annotated[
    list[str],
    _read(
        "--value",
        metavar="THEIRS=OURS",
        help="What a table's word for a winner means: model_a, model_b, tie, or nothing.",
    ),
]
Where = Annotated[list[str], _read("--where", help="COLUMN=VALUE: keep these rows of a table.")]
Form = Annotated[
    str | None,
    _read(
        "--format",
        autocompletion=verdict_formats,
        help="What the files are; default: guessed from their columns. `venire formats` describes them.",
    ),
]
BadTies = Annotated[
    BothBad | None, _read("--both-bad", help="What a verdict that both are bad counts as; default: tie.")
]
Merged = Annotated[OrdersMerge, _judgments("--merge", help="A tie and a win of both orders: half a win, or a tie.")]
Flipped = Annotated[Flips, typer.Option("--flips", rich_help_panel=JUDGMENTS, help="Orders with opposite winners.")]
Seed = Annotated[int | None, _intervals("--seed", help="Of all random draws; default: the campaign's own, or 0.")]


class HabitChoice(StrEnum):
    """`arena.choices.Habit` as an enumeration, since typer takes no list of a Literal."""

    POSITION = "position"
    TIES = "ties"


@dataclass(frozen=True)
class TableOptions:
    """How a table of verdicts is read."""

    mapping: Mapped = field(default_factory=list)
    values: Values = field(default_factory=list)
    where: Where = field(default_factory=list)
    form: Form = None
    both_bad: BadTies = None


@dataclass(frozen=True)
class SourceOptions:
    """Where verdicts come from, and how they are read: fields of `VerdictSource`."""

    campaign: Campaign = None
    mapping: Mapped = field(default_factory=list)
    values: Values = field(default_factory=list)
    where: Where = field(default_factory=list)
    cluster: Annotated[
        str | None,
        _intervals(
            "--cluster",
            help="Column whose rows share their noise, such as judge, or none; default: the instruction, and the judge "
            "where there are five or more.",
        ),
    ] = None
    origin: Annotated[
        VerdictOrigin | None, _read("--origin", help="Where a table's verdicts come from; default: recorded.")
    ] = None
    form: Form = None
    both_bad: BadTies = None
    baseline: Annotated[str | None, _read("--baseline", help="Whom all models met, where the files do not say.")] = None
    human: Annotated[
        str | None,
        _read(
            "--human",
            metavar="NAME",
            help="People whose votes judges are compared with: a group that `venire import votes` named, default the "
            "only one; of a table a judge.",
        ),
    ] = None
    unranked: Annotated[
        Unranked,
        _read(
            "--unranked",
            help="A model without a row on a ballot that others on the instruction have: below those ranked, or "
            "absent.",
        ),
    ] = "below"
    unattempted: Annotated[
        Unattempted,
        _read(
            "--unattempted",
            help="Where answers were graded: pairs with an answer that was not attempted, or has no grade.",
        ),
    ] = "keep"

    def source(self, paths: Sequence[Path]) -> VerdictSource:
        """What these options name: a store's campaign, or files and how to read them."""
        from venire.arena.records import Origin
        from venire.reports.board.source import VerdictSource

        read = {
            "mapping": column_map(self.mapping),
            "values": value_map(self.values),
            "where": where(self.where),
            "origin": None if self.origin is None else Origin(self.origin),
        }
        return VerdictSource.of(paths, **vars(self) | read)


@dataclass(frozen=True)
class RatedSource(SourceOptions):
    """A source of verdicts to rate, with what ratings are compared with."""

    reference: Annotated[
        Path | None,
        _read(
            "--reference",
            help="Ratings to compare with: a table of model and elo, a board in JSON, or a group of people by name.",
        ),
    ] = None


@dataclass(frozen=True)
class RatingOptions:
    """How verdicts become ratings: fields of `ratings.inference.options.Options`."""

    own_votes: Annotated[OwnVotes, _judgments("--own", help="What judges that are models say of themselves.")] = (
        "include"
    )
    judge_weights: Annotated[
        list[str], _judgments("--judge-weight", help="JUDGE=WEIGHT: what a judge's verdicts count; others 1.")
    ] = field(default_factory=list)
    ridge: Annotated[
        float | None,
        _method("--ridge", help="Pulls ratings together: lambda of lambda/2 |R|^2; default: the method's."),
    ] = None
    anchors: Annotated[list[str], _method("--anchor", help="MODEL=ELO: hold this model at this rating.")] = field(
        default_factory=list
    )
    merge: Merged = "mean"
    flips: Flipped = "tie"
    ties: Annotated[Ties, typer.Option("--ties", rich_help_panel=JUDGMENTS, help="What a tie counts as.")] = "half"
    replicates: Annotated[int, _intervals("--bootstrap", min=0, help="Replicates for intervals; 0: by formula.")] = 0
    errors: Annotated[
        PairErrors | None, _intervals("--errors", help="Standard errors; default: cluster, where there are any.")
    ] = None
    pairs: Annotated[
        RatedPairs,
        typer.Option(
            "--pairs", rich_help_panel=INTERVALS, help="Intervals are about all pairs of models, or those asked alone."
        ),
    ] = "all"
    level: Annotated[float, typer.Option("--level", rich_help_panel=INTERVALS, help="Of the intervals.")] = 0.95
    seed: Seed = None
    covariates: Annotated[
        list[str],
        _method(
            "--covariate",
            help="covariates: a column, or position; of a store also length, headers, bold, lists, same-family.",
        ),
    ] = field(default_factory=list)
    restarts: Annotated[
        int, _of_one_method("--restarts", min=0, help="am-elo: this many more starts, from the seed.")
    ] = 0
    habits: Annotated[
        list[HabitChoice], _of_one_method("--habit", help="am-elo: habits of each judge to fit beside its ability.")
    ] = field(default_factory=list)
    ability_ridge: Annotated[
        float, _of_one_method("--ability-ridge", help="am-elo: lambda of lambda/2 (ability - 1)^2.")
    ] = 0.0
    least_verdicts: Annotated[
        int, _of_one_method("--least-verdicts", help="stable-arena: judges with fewer are left out.")
    ] = 50
    least_ability: Annotated[
        float, _of_one_method("--least-ability", help="stable-arena: judges at or below it are left out.")
    ] = 0.0
    until_stable: Annotated[
        bool, _of_one_method("--until-stable", help="stable-arena: fit again until nobody is left out.")
    ] = False
    seconds: Annotated[float, _of_one_method("--seconds", help="kemeny: time to prove the order in.")] = 60.0
    order: Annotated[
        BattleOrder,
        _of_one_method(
            "--order", help="elo: battles in many drawn orders, or in the given one (rows of a file, times of a store)."
        ),
    ] = "shuffled"
    k: Annotated[float, _of_one_method("--k", help="elo: what one battle can move a rating by, in points.")] = 4.0
    human_ties: Annotated[
        HumanTies, _of_one_method("--human-ties", help="soft-elo: what a tie of people counts as in a judge's beta.")
    ] = "drop"
    conformal: Annotated[
        ConformalMethod,
        _of_one_method("--conformal", help="soft-elo: intervals calibrated with one or two models left out."),
    ] = "leave-one-out"

    def options(self, seed: int) -> Options:
        """The options of a rating method; `seed` is that of the campaign, for where none was given."""
        from venire.ratings.inference.options import Options

        read = {
            "anchors": anchors(self.anchors),
            "judge_weights": judge_weights(self.judge_weights),
            "seed": seed if self.seed is None else self.seed,
            "covariates": tuple(self.covariates),
            "habits": tuple(dict.fromkeys(habit.value for habit in self.habits)),
        }
        return Options(**vars(self) | read)

    def read(self, source: VerdictSource) -> tuple[Verdicts, Options]:
        """The verdicts of a source as these options take them, and the options of a method; its seed by default."""
        from venire.reports.board.rate import read

        verdicts = read(source, self.covariates, in_order=self.order == "given")
        return verdicts, self.options(verdicts.seed)


@dataclass(frozen=True)
class FigureOptions:
    """Figures beside a board: fields of `reports.figures.Figures`."""

    folds: Annotated[
        int, _figures("--folds", help="Predict each of so many parts from the others: MSE, AUC, log loss.")
    ] = 0
    steady: Annotated[
        float, _figures("--steady", help="Perturb the verdicts of this share of judges in four ways.")
    ] = 0.0
    threshold: Annotated[
        float, _figures("--threshold", help="Of --steady: judges of this ability or less count as found.")
    ] = 0.0
    ascents: Annotated[
        int, _figures("--ascents", help="am-ELO by gradient ascent from so many random starts, as in its paper.")
    ] = 0
    learning_rate: Annotated[
        float, _figures("--learning-rate", help="Of --ascents: what a slope of the mean log-likelihood is times.")
    ] = 0.1
    epochs: Annotated[int, _figures("--epochs", help="Of --ascents: steps of each.")] = 2000
    contrast: Annotated[
        tuple[str, str],
        _figures(
            "--contrast", show_default=False, metavar="A B", help="Two models: their difference and what it needs."
        ),
    ] = ("", "")
    half_width: Annotated[
        float | None, _figures("--half-width", help="Of the contrast, in Elo points: battles until then.")
    ] = None
    positions: Annotated[bool, _figures("--positions", help="Audit battles shown several times in each order.")] = False
    people: Annotated[bool, _figures("--people", help="Rankings of single instructions against the reference.")] = False
    learning_curve: Annotated[
        bool, _figures("--learning-curve", help="Orders by 5 to 70 % of the battles beside that by all.")
    ] = False
    ablation: Annotated[
        bool, _figures("--ablation", help="Judges' Elo from their consistency, by number and kind of matchups.")
    ] = False

    def figures(self) -> Figures:
        """What `reports.figures.figures_of` is asked for."""
        from venire.reports.figures import Figures

        return Figures(**vars(self) | {"contrast": self.contrast if any(self.contrast) else None})


def anchors(pairs: list[str]) -> dict[str, float]:
    """`--anchor MODEL=ELO` options as Elo points by model; the name may hold an equals sign."""
    return _numbers(pairs, "--anchor", "MODEL=ELO", "gpt-4=1250", " Elo points")


def judge_weights(pairs: list[str]) -> dict[str, float]:
    """`--judge-weight JUDGE=WEIGHT` options as weights by judge; the name may hold an equals sign."""
    return _numbers(pairs, "--judge-weight", "JUDGE=WEIGHT", "gpt-4=0.5", "")


def _numbers(pairs: list[str], option: str, form: str, example: str, unit: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for pair in pairs:
        name, _, text = pair.rpartition("=")
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not name or not math.isfinite(number):
            raise InputError(f"{option} takes {form}, as in {option} {example}, and got {pair!r}")
        if found.setdefault(name, number) != number:
            raise InputError(f"{option} gives {name} both {found[name]:g} and {number:g}{unit}; give it one")
    return found


def where(pairs: list[str]) -> dict[str, tuple[str, ...]]:
    """`--where COLUMN=VALUE` options as values by column; a column of `COLUMN!=VALUE` ends in an exclamation mark."""
    found: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        column, equals, value = pair.partition("=")
        if not equals or not column.removesuffix("!"):
            raise InputError(f"--where takes COLUMN=VALUE or COLUMN!=VALUE, as in --where kind=human, and got {pair!r}")
        found[column] = (*found.get(column, ()), value)
    return found


def column_map(pairs: list[str]) -> dict[str, str]:
    """`--map OURS=THEIRS` options as a mapping from our column names to the file's."""
    found: dict[str, str] = {}
    for pair in pairs:
        ours, equals, theirs = pair.partition("=")
        if not equals or not ours or not theirs:
            raise InputError(f"--map takes OUR_COLUMN=THEIR_COLUMN, as in --map elo=arena_elo, and got {pair!r}")
        found[ours] = theirs
    return found


def value_map(pairs: list[str]) -> dict[str, str]:
    """`--value THEIRS=OURS` options as a table's words for winners and ours; a word may hold an equals sign."""
    found: dict[str, str] = {}
    for pair in pairs:
        theirs, equals, ours = pair.rpartition("=")
        if not equals or not theirs:
            raise InputError(f"--value takes THEIR_WORD=OUR_WORD, as in --value left=model_a, and got {pair!r}")
        if found.setdefault(theirs, ours) != ours:
            raise InputError(f"--value gives {theirs} both as {found[theirs]!r} and as {ours!r}; give it one meaning")
    return found
