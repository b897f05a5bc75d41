"""`venire prices`: what is known of the prices of models, and from where."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from venire.cli.options import JSON

if TYPE_CHECKING:
    from venire.judges.providers.price_table import KnownModel


def prices(
    words: list[str] = typer.Argument(
        None, metavar="[MODEL|WORD]...", help="Models as a campaign file names them, or words of their names."
    ),
    base_url: str | None = typer.Option(None, "--base-url", help="Where they are asked: vendors' names differ."),
    as_json: bool = JSON,
) -> None:
    """Show the prices and contexts of models that are known.

    A word that is no model is searched in the names of all that are known; without words, these are counted by vendor.
    The prices are those of the table that litellm ships: compare them with your provider's page. Nobody is asked.

    Exit codes: 0 all are known, 1 a model has no price.

    Examples:
      venire prices
      venire prices haiku
      venire prices openai:gpt-4.1-mini
      venire prices deepseek-chat --base-url https://api.deepseek.com/v1 --json
    """
    from venire.cli.options import write_json
    from venire.judges.providers.price_table import find_model, known_models, models_named, price_table
    from venire.render.prices import show_found, show_prices, show_vendors
    from venire.render.screen import console

    models: dict[str, KnownModel | None] = {}
    found: dict[str, KnownModel] = {}
    for word in words or []:
        known = find_model(word, base_url) or known_models().get(word)
        if known is None and base_url is None and (named := models_named(word)):
            found |= named
        else:
            models[word] = known
    if as_json:
        listed = models | found if words else known_models()
        write_json({"table": price_table(), "models": [_document(name, one) for name, one in listed.items()]})
    elif not words:
        show_vendors(console(), known_models(), price_table())
    else:
        if models:
            show_prices(console(), models, price_table())
        if found:
            show_found(console(), found, price_table())
    raise typer.Exit(int(any(one is None or one.price is None for one in models.values())))


def _document(model: str, known: KnownModel | None) -> dict[str, Any]:
    """One model as JSON: US dollars per million tokens."""
    if known is None:
        return {"model": model, "entry": None, "price": None, "context": None}
    rates = None if known.price is None else asdict(known.price)
    dollars = rates and {name: None if rate is None else rate / 1e9 for name, rate in rates.items()}
    return {"model": model, "entry": known.entry, "price": dollars, "context": known.context}
