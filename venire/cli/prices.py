"""`venire prices`: what is known of the prices of models, and from where."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from venire.cli.options import JSON

if TYPE_CHECKING:
    from venire.judges.providers.vendors import KnownModel


def prices(
    models: list[str] = typer.Argument(..., metavar="MODEL...", help="Names as a campaign file has them."),
    base_url: str | None = typer.Option(None, "--base-url", help="Where they are asked: vendors' names differ."),
    as_json: bool = JSON,
) -> None:
    """Show the prices and contexts of models that are known without a price in the campaign file.

    They are those of the table that litellm ships: compare them with your provider's page. Nobody is asked.

    Exit codes: 0 all are known, 1 a model has no price.

    Examples:
      venire prices gpt-4o-mini
      venire prices deepseek-chat --base-url https://api.deepseek.com/v1 --json
    """
    from venire.cli.options import write_json
    from venire.judges.providers.vendors import find_model, price_table
    from venire.render.prices import show_prices
    from venire.render.screen import console

    found = {model: find_model(model, base_url) for model in dict.fromkeys(models)}
    if as_json:
        write_json({"table": price_table(), "models": [_document(name, one) for name, one in found.items()]})
    else:
        show_prices(console(), found, price_table())
    raise typer.Exit(int(any(one is None or one.price is None for one in found.values())))


def _document(model: str, known: KnownModel | None) -> dict[str, Any]:
    """One model as JSON: US dollars per million tokens."""
    if known is None:
        return {"model": model, "entry": None, "price": None, "context": None}
    rates = None if known.price is None else asdict(known.price)
    dollars = rates and {name: None if rate is None else rate / 1e9 for name, rate in rates.items()}
    return {"model": model, "entry": known.entry, "price": dollars, "context": known.context}
