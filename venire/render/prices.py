"""Prices of models as a table."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from venire.arena.wording import money, plain
from venire.judges.providers.vendors import KnownModel
from venire.render.screen import tabulate


def show_prices(screen: Console, found: Mapping[str, KnownModel | None], table: str | None) -> None:
    """A line a model in US dollars per million tokens, where the figures come from, and what to do without one."""
    head = ("model", "input", "output", "cached", "written", "context", "entry")
    tabulate(screen, head, [_row(name, one) for name, one in found.items()])
    if table is None:
        screen.print("litellm, whose table has the prices, is not installed")
    else:
        screen.print(f"US dollars per million tokens, by {table}: compare with your provider's page", style="dim")
    if unknown := [name for name, one in found.items() if one is None or one.price is None]:
        names = plain(", ".join(unknown))
        screen.print(f"no price is known of {names}: give price = {{ input = ..., output = ... }} in the campaign file")


def _row(model: str, known: KnownModel | None) -> tuple[str, ...]:
    if known is None:
        return (plain(model), *("-",) * 6)
    price = known.price
    rates = (None,) * 4 if price is None else (price.input, price.output, price.cached, price.written)
    cells = ("-" if rate is None else money(rate) for rate in rates)
    return (plain(model), *cells, "-" if known.context is None else f"{known.context:,}", plain(known.entry))
