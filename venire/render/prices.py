"""Prices of models as a table."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from rich.console import Console

from venire.arena.wording import money, plain
from venire.judges.providers.price_table import KnownModel, nearest_model
from venire.render.screen import tabulate

_LISTED = 40
"""Models that are shown of a search."""


def show_prices(screen: Console, models: Mapping[str, KnownModel | None], table: str | None) -> None:
    """A line a model in US dollars per million tokens, where the figures come from, and what to do without one."""
    head = ("model", "input", "output", "cached", "written", "context", "entry")
    tabulate(screen, head, [_row(name, one) for name, one in models.items()])
    _source(screen, table)
    if unknown := [name for name, one in models.items() if one is None or one.price is None]:
        names = plain(", ".join(unknown))
        screen.print(f"no price is known of {names}: give price = {{ input = ..., output = ... }} in the campaign file")
        if near := list(filter(None, map(nearest_model, unknown))):
            screen.print(f"the nearest known: {plain(', '.join(near))}")


def show_found(screen: Console, models: Mapping[str, KnownModel], table: str | None) -> None:
    """The first of the models that a search found, and how many more there are."""
    rows = [(*_row(name, one)[:3], _row(name, one)[5]) for name, one in models.items()]
    tabulate(screen, ("model", "input", "output", "context"), rows[:_LISTED])
    _source(screen, table)
    if (more := len(rows) - _LISTED) > 0:
        screen.print(f"{more:,} more: a longer word finds fewer, and --json lists all")


def show_vendors(screen: Console, models: Mapping[str, KnownModel], table: str | None) -> None:
    """A line a vendor: how many of its models have a price, and the lowest and the highest for what they are sent."""
    if table is None:
        _source(screen, table)
        return
    rows = []
    for vendor, names in groupby(models, key=lambda name: name.partition(":")[0]):
        inputs = [price.input for name in names if (price := models[name].price) is not None]
        rows.append((f"{vendor}:", f"{len(inputs):,}", money(min(inputs)), money(max(inputs))))
    tabulate(screen, ("vendor", "models", "lowest input", "highest input"), rows)
    _source(screen, table)
    screen.print("search: venire prices WORD, such as venire prices haiku or venire prices groq:")


def _source(screen: Console, table: str | None) -> None:
    if table is None:
        screen.print("litellm, whose table has the prices, is not installed")
    else:
        screen.print(f"US dollars per million tokens, by {table}: compare with your provider's page", style="dim")


def _row(model: str, known: KnownModel | None) -> tuple[str, ...]:
    if known is None:
        return (plain(model), *("-",) * 6)
    price = known.price
    rates = (None,) * 4 if price is None else (price.input, price.output, price.cached, price.written)
    cells = ("-" if rate is None else money(rate) for rate in rates)
    return (plain(model), *cells, "-" if known.context is None else f"{known.context:,}", plain(known.entry))
