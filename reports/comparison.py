"""Several methods on the same verdicts, side by side: each model's rank, and how far the orders agree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.wording import interval_text, suggest
from venire.ratings.agreement.reference import Agreement, agreement
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.result import Rated
from venire.ratings.data.statistics import kendall
from venire.ratings.data.validation import finite_or_none
from venire.ratings.inference.options import OF_SOME, Options, option_names
from venire.ratings.methods.methods import METHODS, ignored_options, merge_selected, missing_data, rate
from venire.ratings.pairwise.components import largest_group, ranked_values
from venire.reports.board.model_rows import order_by_wins, outside_ratings
from venire.reports.sections import Block, Column, Paragraph, TextTable, faint
from venire.reports.tables import RowTable

_COLUMNS: tuple[tuple[str, type], ...] = (("elo", float), ("rank", int))

_FAR = 1e9
"""Beyond every rating, in Elo points."""


@dataclass(frozen=True, slots=True)
class ComparedModel:
    """One model under every method: Elo points and rank (1 is best, ties share the better rank), None where unrated.

    A method that gives an order has ranks and no Elo. Where a method rated groups separately, its largest group is
    ranked, with those that only beat it above and those that only lost to it below; another model has no rank. `moved`
    is the rank under each method minus that under the first: positive is worse.
    """

    model: str
    elo: tuple[float | None, ...]
    rank: tuple[int | None, ...]
    moved: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class MethodAgreement:
    """Each method's agreement with known values of the models; figures are by method, None where undefined.

    `name` is `reference` (ratings known before) or `accuracy` (from grades), `source` where they come from. `lo` and
    `hi` bound `kendall` (tau-b) at `level`, about other models of the same kind. `models` counts those with both;
    `reason` is the first method's without figures.
    """

    name: str
    source: str
    level: float
    kendall: tuple[float | None, ...]
    lo: tuple[float | None, ...]
    hi: tuple[float | None, ...]
    spearman: tuple[float | None, ...]
    models: tuple[int, ...]
    reason: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(RowTable):
    """The methods compared, the models by rank under the first, and Kendall's tau-b of each method with the first.

    `left_out` gives, for each method that was not run, what it lacks; `disconnected` names methods that rated groups.
    `agreements` hold each method against known ratings and accuracy, as far as there are any; `notes` say what else a
    reader must know, such as what was taken as the instruction.
    """

    methods: tuple[str, ...]
    models: tuple[ComparedModel, ...]
    kendall: tuple[float | None, ...]
    left_out: dict[str, str]
    disconnected: tuple[str, ...] = ()
    agreements: tuple[MethodAgreement, ...] = ()
    notes: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """The models by rank under the first method, one flat dict each: Elo and rank by each method, None if unrated.

        A column is named after its method, such as `bradley-terry elo` and `bradley-terry rank`.
        """
        return [
            {"model": row.model}
            | {f"{name} elo": elo for name, elo in zip(self.methods, row.elo, strict=True)}
            | {f"{name} rank": rank for name, rank in zip(self.methods, row.rank, strict=True)}
            for row in self.models
        ]

    def _columns(self) -> dict[str, type]:
        elos, ranks = (dict.fromkeys((f"{name} {what}" for name in self.methods), kind) for what, kind in _COLUMNS)
        return {"model": str, **elos, **ranks}

    def sections(self) -> Iterator[Block]:
        """The rank of each model under each method, with how far it moved from the first method's."""
        against = [one for one in self.agreements if any(tau is not None for tau in one.kendall)]
        names = [row.model for row in self.models] + ["Kendall's tau-b"]
        for one in against:
            names += [f"tau-b with {one.name}", f"  {100 * one.level:g} %"]
        columns = [Column("model", names)]
        for index, method in enumerate(self.methods):
            cells = [_moved(row.rank[index], row.moved[index]) for row in self.models] + [_tau(self.kendall[index])]
            for one in against:
                cells += [_tau(one.kendall[index]), interval_text(one.lo[index], one.hi[index], ".2f")]
            columns.append(Column(method, cells))
        yield TextTable(columns, f"Rank by method, and places moved from {self.methods[0]}", divisible=True)
        for one in self.agreements:
            if one.reason is not None:
                yield Paragraph(f"note: no tau-b with {one.name} of every method: {one.reason}")
            counts = sorted(set(one.models))
            models = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            yield faint(f"{one.name}: {one.source}, {models} models; intervals are about other models of the same kind")
        if self.disconnected:
            yield Paragraph(
                f"note: no common estimate exists under {', '.join(self.disconnected)}: ranked are the largest group "
                "of models, and those wholly above or below it"
            )
        for name, reason in self.left_out.items():
            yield faint(f"left out: {name} {reason}")
        for note in self.notes:
            yield Paragraph(f"note: {note}")

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain JSON values, floats rounded to six decimals."""

        def by_method(values: Sequence[Any]) -> dict[str, Any]:
            shown = [round(value, 6) if isinstance(value, float) else value for value in values]
            return dict(zip(self.methods, shown, strict=True))

        return {
            "methods": list(self.methods),
            "models": [
                {
                    "model": row.model,
                    "elo": by_method(row.elo),
                    "rank": by_method(row.rank),
                    "moved": by_method(row.moved),
                }
                for row in self.models
            ],
            "kendall": by_method(self.kendall),
            "left_out": self.left_out,
            "apart": list(self.disconnected),
            **({"notes": list(self.notes)} if self.notes else {}),
            **{
                one.name: {
                    name: by_method(value) if isinstance(value, tuple) else value
                    for name, value in asdict(one).items()
                    if name != "name"
                }
                for one in self.agreements
            },
        }


def _moved(rank: int | None, moved: int | None) -> str:
    return "none" if rank is None else f"{rank}" + (f" ({moved:+d})" if moved else "")


def _tau(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def compare(
    battles: Battles,
    methods: Sequence[str],
    options: Options,
    known: Mapping[str, tuple[str, Mapping[str, float]]] = {},
) -> Comparison:
    """Rate one table by several methods: the named methods, or all that its columns allow.

    `known` are values of the models to hold each method against, with their source, by what they are: `reference` or
    `accuracy`.

    Raises `InputError` for fewer than two methods and for a method named twice, and as `rate` does for a named method.
    """
    if len(set(methods)) != len(methods):
        raise InputError("a method is named twice: name each once")
    chosen, left_out = list(methods), {}
    if not chosen:
        left_out = {name: f"needs {lack}" for name in METHODS if (lack := missing_data(battles, name, options))}
        left_out |= {name: "rates no models" for name, one in METHODS.items() if not one.rates}
        left_out |= {
            name: f"does not take {option_names(lost)}"
            for name in METHODS
            if name not in left_out and (lost := ignored_options(name, options_for(name, options)))
        }
        chosen = [name for name in METHODS if name not in left_out]
    if len(chosen) < 2:
        raise InputError(
            f"a comparison needs two methods or more; there are: {', '.join(METHODS)}"
            + "".join(f"\nleft out: {name} {why}" for name, why in left_out.items())
        )
    if unknown := [name for name in chosen if name not in METHODS]:
        raise InputError(f"method is {unknown[0]!r}; {suggest(unknown[0], METHODS)}")
    _refuse_ignored_options(chosen, options)
    found = [rate(battles, name, options_for(name, options)) for name in chosen]
    # A method of people's votes rates those that people saw, which may be fewer, or others.
    models = tuple(sorted({model for one in found for model in one.ratings.models}))
    elo = np.array([_of_models(one.ratings.elo, one, models) for one in found])
    judgments = merge_selected(battles, options)
    rank = np.array([_ranks(_of_models(_with_outside(judgments, one, options.level), one, models)) for one in found])
    rows = []
    for place, model in enumerate(models):
        ranks = [int(value) or None for value in rank[:, place]]
        first = ranks[0]
        rows.append(
            ComparedModel(
                model=model,
                elo=tuple(float(value) if math.isfinite(value) else None for value in elo[:, place]),
                rank=tuple(ranks),
                moved=tuple(None if one is None or first is None else one - first for one in ranks),
            )
        )
    order = order_by_wins(judgments, found[0])
    rows.sort(key=lambda row: (row.rank[0] or math.inf, order.get(row.model, 0), row.model))
    together = [_of_models(_together(one), one, models) for one in found]
    taus = tuple(_kendall(together[0], one) for one in together)
    disconnected = tuple(name for name, one in zip(chosen, found, strict=True) if len(one.groups) > 1)
    agreements = tuple(
        _method_agreement(name, source, found, values, options.level) for name, (source, values) in known.items()
    )
    return Comparison(tuple(chosen), tuple(rows), taus, left_out, disconnected, agreements)


def _method_agreement(
    name: str, source: str, found: Sequence[Rated], values: Mapping[str, float], level: float
) -> MethodAgreement:
    # Values that print alike are ties.
    known = {model: round(value, 6) for model, value in values.items()}
    met: list[Agreement] = [agreement(ranked_values(one), known, level=level) for one in found]
    bounds = [one.intervals.get("kendall", (None, None)) for one in met]
    return MethodAgreement(
        name=name,
        source=source,
        level=level,
        kendall=tuple(one.kendall for one in met),
        lo=tuple(lo for lo, _ in bounds),
        hi=tuple(hi for _, hi in bounds),
        spearman=tuple(one.spearman for one in met),
        models=tuple(one.models for one in met),
        reason=next((one.reason for one in met if one.reason is not None), None),
    )


_FEWEST_MODELS = 3
"""Models below which tau of two orders says nothing."""


def options_for(method: str, options: Options) -> Options:
    """The options that one of several methods receives: without those that belong to other methods only."""
    plain = Options()
    others = {name: getattr(plain, name) for name in OF_SOME - METHODS[method].options}
    return replace(options, **others)


def _refuse_ignored_options(methods: Sequence[str], options: Options) -> None:
    """Raises `InputError` for a method-specific option that none of these methods takes."""
    taken = frozenset[str]().union(*(METHODS[name].options for name in methods))
    if lost := [name for name in options.changed() if name in OF_SOME - taken]:
        raise InputError(
            f"none of {', '.join(methods)} takes {', '.join(lost)}: leave it out, or add a method that does"
        )


def _together(rated: Rated) -> NDArray[np.float64]:
    """The values (models,) that rank the largest group rated together, higher being better; NaN elsewhere."""
    value = rated.ratings.elo if rated.position is None else -rated.position
    return np.where(rated.group == (largest_group(rated) or 0), value, np.nan)


def _of_models(values: NDArray[np.float64], rated: Rated, models: Sequence[str]) -> NDArray[np.float64]:
    """The values of a method's models for `models` (models,); NaN of those that it does not know."""
    known = dict(zip(rated.ratings.models, values.tolist(), strict=True))
    return np.array([known.get(model, math.nan) for model in models])


def _with_outside(judgments: Judgments, rated: Rated, level: float) -> NDArray[np.float64]:
    """`_together`, with the models that only beat the ranked ones above all of them, those that only lost below."""
    value = _together(rated)
    if rated.ratings.models != judgments.models:  # people's own votes, which these judgments say nothing of
        return value
    order = order_by_wins(judgments, rated)
    for model, side in outside_ratings(judgments, rated, level).items():
        value[rated.ratings.models.index(model)] = (_FAR if side.above else -_FAR) - order.get(model, 0)
    return value


def _ranks(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Ranks, 1 for the best; values that print alike share a rank; 0 where there is no value."""
    rounded = np.round(value, 6)
    better = rounded[None, :] > rounded[:, None]
    return np.where(np.isfinite(value), 1 + better.sum(axis=1), 0)


def _kendall(first: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """Kendall's tau-b over the models that both rate: a description of two orders, and no estimate of a third."""
    both = np.flatnonzero(np.isfinite(first) & np.isfinite(other))
    if len(both) < _FEWEST_MODELS:
        return None
    ours, theirs = np.round(first[both], 6), np.round(other[both], 6)
    return finite_or_none(float(kendall(ours[None], theirs)[0]))
