"""What is shown below a board on request: prediction, robustness, a contrast, places, and people's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from venire.render.screen import tabulate
from venire.wording import plain

__all__ = ["show_figures"]


def show_figures(screen: Console, facts: Mapping[str, Any]) -> None:
    """A table for each of the figures that the diagnostics of a board have."""
    for name, show in _SHOWN.items():
        if name in facts:
            screen.print()
            show(screen, facts[name])


def _prediction(screen: Console, found: Mapping[str, Any]) -> None:
    rows = [
        [
            plain(one["method"]),
            *(_fixed(one[name], 4) for name in ("mse", "auc", "auc_decisive", "log_loss")),
            f"{one['not_predicted']:,}",
        ]
        for one in found["methods"]
    ]
    title = f"Held-out prediction   {found['judgments']:,} judgments in {found['folds']} folds"
    tabulate(screen, ["method", "MSE", "AUC", "AUC decisive", "log loss", "not predicted"], rows, title=title)
    for name, why in found["left_out"].items():
        screen.print(f"left out: {name}: {plain(why)}", style="dim")


def _robustness(screen: Console, found: Mapping[str, Any]) -> None:
    rows = [
        [one["kind"], one["method"], _fixed(one["inconsistency"], 4), _fixed(one["f1"], 3), f"{one['draws']}"]
        for one in found["methods"]
    ]
    title = f"Verdicts of {found['perturbed']} of {found['judges']} judges perturbed"
    tabulate(screen, ["perturbation", "method", "inconsistency", "F1", "draws"], rows, name=1, title=title)
    screen.print(
        "inconsistency: share of pairs of models that change order; F1: of finding those judges by an ability of 0 or "
        "less",
        style="dim",
    )


def _contrast(screen: Console, found: Mapping[str, Any]) -> None:
    screen.print(
        f"{plain(found['model'])} less {plain(found['other'])}: {found['difference']:+.0f} Elo "
        f"({100 * found['level']:g} % interval {found['lo']:+.0f} to {found['hi']:+.0f}); "
        f"truly higher with probability {found['above']:.3f}"
    )
    until = "the interval reaches 0 no more" if found["half_width"] is None else f"within {found['half_width']:g} Elo"
    if found["battles_between"] == 0:
        screen.print(f"battles needed until {until}: none", style="dim")
    else:
        screen.print(
            f"battles needed until {until}: {_battles(found['battles_between'])} between the two, or "
            f"{_battles(found['battles_in_all'])} spread as so far",
            style="dim",
        )


def _battles(number: float | None) -> str:
    return "no number" if number is None or number == float("inf") else f"{number:,.0f}"


def _positions(screen: Console, found: Mapping[str, Any]) -> None:
    rows = [
        [
            plain(one["judge"]),
            f"{one['battles']:,}",
            *(_fixed(one[name], 3) for name in ("flip_rate", "first", "between_orders")),
            f"{one['by_order']:,} of {one['tested']:,}",
        ]
        for one in found["judges"]
    ]
    heads = ["judge", "battles", "flips", "1st", "between orders", f"p < {found['p_below']:g}"]
    tabulate(screen, heads, rows, title="Battles shown several times in each order")
    screen.print(
        "flips: pairs of verdicts, one of each order, with opposite winners; between orders: share of the variance of "
        "verdicts; p: Fisher's exact test of order against winner, battle by battle",
        style="dim",
    )


def _people_order(screen: Console, found: Mapping[str, Any]) -> None:
    named = [("all together", found["together"]), *found["judges"].items()]
    rows = [
        [
            plain(name),
            f"{one['instructions']:,}",
            *(_interval(one[figure]) for figure in ("micro_pearson", "micro_kendall")),
            *(_fixed(one[figure]["value"], 3) for figure in ("macro_pearson", "macro_spearman", "macro_kendall")),
        ]
        for name, one in named
    ]
    heads = ["rankings", "instructions", "micro Pearson", "micro Kendall", "macro Pearson", "Spearman", "Kendall"]
    tabulate(screen, heads, rows, title=f"Rankings against the reference   {found['models']} models")
    cut = [
        [f"best {one['best']}", _interval(one["micro_loss"]), _fixed(one["macro_loss"], 3)]
        for one in found["truncation"]
    ]
    screen.print()
    tabulate(screen, ["rankings of the", "micro loss", "macro loss"], cut, title="Truncated rankings")
    screen.print("loss: share of Pearson's correlation that whole rankings have and these lose", style="dim")


def _interval(one: Mapping[str, Any]) -> str:
    if one["value"] is None:
        return "none"
    return f"{one['value']:.3f}" + ("" if one["lo"] is None else f" ({one['lo']:.2f} to {one['hi']:.2f})")


def _fixed(value: float | None, places: int) -> str:
    return "" if value is None or value != value else f"{value:.{places}f}"


_SHOWN = {
    "prediction": _prediction,
    "robustness": _robustness,
    "contrast": _contrast,
    "positions": _positions,
    "people_order": _people_order,
}
