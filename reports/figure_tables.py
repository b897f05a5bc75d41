"""The figures that are asked for beside a board, as tables of texts: what a screen and a report show alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from venire.arena.wording import interval_text
from venire.ratings.am_elo.ascent import NEAR, GradientAscents
from venire.ratings.data.statistics import BoundedFigure
from venire.ratings.judges.matchup_ablation import MatchupAblation
from venire.ratings.methods.learning_curve import LearningCurve
from venire.reports.figures import (
    FigureResults,
    HeldOutPrediction,
    ModelContrast,
    PeopleOrder,
    PerturbedJudges,
    RepeatedPositions,
)
from venire.reports.sections import Block, Gap, Paragraph, TextTable, columns_of, faint


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table of texts with its title; `says` are sentences in its place, `notes` explain it; `name` is the column of
    names, whose cells, like names in sentences, are as they were given: whoever shows them escapes them."""

    title: str
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    says: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    name: int = 0


def figure_tables(figures: FigureResults) -> list[FigureTable]:
    """The tables of the figures beside a board that were asked for."""
    known = ((tables, getattr(figures, name)) for name, tables in FIGURE_TABLES.items())
    return [one for tables, figure in known if figure is not None for one in tables(figure)]


def figure_sections(figures: FigureResults) -> Iterator[Block]:
    """The tables of figures, with what explains them."""
    for one in figure_tables(figures):
        yield Gap()
        for line in one.says:
            yield Paragraph(line)
        if one.heads:
            yield TextTable(columns_of(one.heads, one.rows), one.title, name=one.name)
        yield from map(faint, one.notes)


def _prediction(found: HeldOutPrediction) -> list[FigureTable]:
    rows = tuple(
        (
            one.method,
            *(_fixed(getattr(one, name), 4) for name in ("mse", "auc", "auc_decisive", "log_loss")),
            *_difference(one.log_loss_difference),
            f"{one.not_predicted:,}",
        )
        for one in found.methods
    )
    of = "" if found.instructions is None else f" of {found.instructions:,} instructions"
    title = f"Held-out prediction   {found.judgments:,} judgments{of} in {found.folds} folds"
    heads = ("method", "MSE", "AUC", "AUC decisive", "log loss", "less", f"{100 * found.level:g} %", "not predicted")
    unit = "judgments" if found.instructions is None else "instructions"
    notes = [f"less: log loss less that of {found.beside}; folds and intervals are by {unit}"] if found.beside else []
    notes += [f"left out: {name}: {why}" for name, why in found.left_out.items()]
    return [FigureTable(title, heads, rows, notes=tuple(notes))]


def _difference(found: BoundedFigure | None) -> tuple[str, str]:
    """A difference of losses and its interval."""
    if found is None or found.value is None:
        return "", ""
    return f"{found.value:+.4f}", interval_text(found.lo, found.hi, "+.4f")


def _robustness(found: PerturbedJudges) -> list[FigureTable]:
    rows = tuple(
        (one.kind, one.method, _fixed(one.inconsistency, 4), _fixed(one.f1, 3), f"{one.draws}") for one in found.methods
    )
    title = f"Verdicts of {found.perturbed} of {found.judges} judges perturbed"
    note = (
        "inconsistency: share of pairs of models that change order; F1: of finding those judges by an ability of "
        f"{found.threshold:g} or less"
    )
    return [FigureTable(title, ("perturbation", "method", "inconsistency", "F1", "draws"), rows, (), (note,), 1)]


def _ascents(found: GradientAscents) -> list[FigureTable]:
    rows = []
    for one in found.rules:
        ends = [start.log_likelihood for start in one.starts if start.log_likelihood is not None]
        short = [found.log_likelihood - end for end in ends]
        reached = [start.epochs for start in one.starts if start.epochs is not None]
        against = sum(start.tau is not None and start.tau < 0.0 for start in one.starts)
        rows.append(
            (
                one.rule,
                "yes" if one.normalised else "no",
                f"{max(min(short), 0.0):.2f} to {max(max(short), 0.0):.2f}" if short else "",
                f"{len(reached)} of {len(one.starts)}",
                f"{median(reached):,.0f}" if reached else "",
                f"{len(one.starts) - len(ends)}",
                f"{against}",
                _fixed(one.consistency, 3),
            )
        )
    starts = len(found.rules[0].starts)
    title = (
        f"am-ELO by gradient ascent from {starts} random starts   maximum {found.log_likelihood:,.2f} "
        f"({found.steps} Newton steps)"
    )
    heads = ("by", "normalised", "nats short", "reached", "epochs", "diverged", "reversed", "consistency")
    note = (
        f"learning rate {found.learning_rate:g}, {found.epochs:,} epochs; gradient: algorithm 2 of the am-ELO paper on "
        "the mean log-likelihood, adam: its published code; normalised: abilities sum to 1; reached: within "
        f"{NEAR:g} nats of the maximum, epochs: the median until then; reversed: orders against that at the maximum; "
        "consistency: share of pairs of models that two starts order alike"
    )
    return [FigureTable(title, heads, tuple(rows), notes=(note,))]


def _contrast(found: ModelContrast) -> list[FigureTable]:
    says = (
        f"{found.model} less {found.other}: {found.difference:+.0f} Elo "
        f"({100 * found.level:g} % interval {interval_text(found.lo, found.hi, '+.0f')}); "
        f"truly higher with probability {found.above:.3f}"
    )
    until = "the interval reaches 0 no more" if found.half_width is None else f"within {found.half_width:g} Elo"
    needed = "none"
    if found.battles_between != 0:
        between, in_all = (_battles(needed) for needed in (found.battles_between, found.battles_in_all))
        needed = f"{between} between the two, or {in_all} spread as so far"
    return [FigureTable("A contrast", says=(says,), notes=(f"battles needed until {until}: {needed}",))]


def _battles(number: float | None) -> str:
    return "no number" if number is None or number == float("inf") else f"{number:,.0f}"


def _positions(found: RepeatedPositions) -> list[FigureTable]:
    rows = tuple(
        (
            one.judge,
            f"{one.battles:,}",
            *(_fixed(getattr(one, name), 3) for name in ("flip_rate", "first", "between_orders")),
            f"{one.by_order:,} of {one.tested:,}",
        )
        for one in found.judges
    )
    heads = ("judge", "battles", "flips", "1st", "between orders", f"p < {found.p_below:g}")
    note = (
        "flips: pairs of verdicts, one of each order, with opposite winners; between orders: share of the variance of "
        "verdicts; p: Fisher's exact test of order against winner, battle by battle"
    )
    return [FigureTable("Battles shown several times in each order", heads, rows, notes=(note,))]


def _people_order(found: PeopleOrder) -> list[FigureTable]:
    by_rule = ((f"together, {name}", one) for name, one in found.rivals.items())
    named = [("all together", found.together), *by_rule, *found.judges.items()]
    rows = tuple(
        (
            name,
            f"{one.instructions:,}",
            *(_interval(getattr(one, figure)) for figure in ("micro_pearson", "micro_kendall")),
            *(_fixed(getattr(one, figure).value, 3) for figure in ("macro_pearson", "macro_spearman", "macro_kendall")),
        )
        for name, one in named
    )
    heads = ("rankings", "instructions", "micro Pearson", "micro Kendall", "macro Pearson", "Spearman", "Kendall")
    title = f"Rankings against the reference   {found.models} models"
    cut = tuple((f"best {one.best}", _interval(one.micro_loss), _fixed(one.macro_loss, 3)) for one in found.truncation)
    note = "loss: share of Pearson's correlation that whole rankings have and these lose"
    shorter = FigureTable("Truncated rankings", ("rankings of the", "micro loss", "macro loss"), cut, notes=(note,))
    return [FigureTable(title, heads, rows), shorter]


def _learning_curve(found: LearningCurve) -> list[FigureTable]:
    rows = tuple(
        (
            f"{one.share:.0%}",
            f"{one.battles:,}",
            *(_interval(tau) for tau in (one.whole, *(one.known[name] for name in found.known))),
            f"{one.unrated:.1f}" if one.unrated else "",
        )
        for one in found.points
    )
    heads = ("battles", "number", "tau with all", *(f"tau with {name}" for name in found.known), "unrated")
    note = f"Kendall's tau-b: means of {found.draws} draws, and where 95 % of them lie; whole battles are drawn"
    if not any(one.unrated for one in found.points):
        heads, rows = heads[:-1], tuple(row[:-1] for row in rows)
    return [FigureTable(f"Orders by a share of the battles   {found.method}", heads, rows, notes=(note,))]


def _ablation(found: MatchupAblation) -> list[FigureTable]:
    rows = tuple(
        (
            one.choice,
            f"{one.matchups}",
            _fixed(one.pearson, 3),
            interval_text(one.lo, one.hi, ".2f"),
            _fixed(one.mae_left_out, 0),
        )
        for one in found.rows
    )
    title = f"Judges' Elo from their consistency, by matchups   {found.judges} judges"
    note = (
        f"widest, narrowest: by Elo of the two models; random: mean of {found.draws} draws and where 95 % of them lie; "
        "else Fisher's interval, about other judges"
    )
    heads = ("matchups", "number", "Pearson", "95 %", "MAE left out")
    return [FigureTable(title, heads, rows, notes=(note,))]


def _interval(one: BoundedFigure) -> str:
    if one.value is None:
        return "none"
    between = interval_text(one.lo, one.hi, ".2f")
    return f"{one.value:.3f}" + (f" ({between})" if between else "")


def _fixed(value: float | None, places: int) -> str:
    return "" if value is None or value != value else f"{value:.{places}f}"


FIGURE_TABLES: Mapping[str, Callable[[Any], list[FigureTable]]] = {
    "prediction": _prediction,
    "robustness": _robustness,
    "ascents": _ascents,
    "contrast": _contrast,
    "positions": _positions,
    "people_order": _people_order,
    "ablation": _ablation,
    "learning_curve": _learning_curve,
}
"""The tables of each figure, by its field of `FigureResults`."""
