"""What models cost and how much they take in, from the table that litellm ships, read as a file.

litellm itself is not imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from venire.arena.campaigns import TokenPrice
from venire.arena.wording import nearest
from venire.judges.providers.vendors import VENDORS, vendor_of

_PRICE_TABLE = "model_prices_and_context_window_backup.json"
_RATES = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
_MODES = frozenset({"chat", "completion", "responses"})
_NANO_PER_MILLION_TOKENS = 10**9 * 10**6


_TABLE_DATES = {"1.106.2": "2026-10-21"}
"""The day on which a release of litellm was built, from its wheel: an installed package no longer has it."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model in the price table: its `entry` there, its price, and how many tokens it takes in; None: not given."""

    entry: str
    price: TokenPrice | None
    context: int | None


def price_table() -> str | None:
    """The name of the price table, with its date where that is known; None where litellm is not installed."""
    if not _table():
        return None
    release = version("litellm")
    dated = f" of {_TABLE_DATES[release]}" if release in _TABLE_DATES else ""
    return f"the table of litellm {release}{dated}"


def find_model(model: str, base_url: str | None = None) -> KnownModel | None:
    """The entry of a model in the price table, found by its name as `find_price` does; None where there is none."""
    if (name := _entry_name(model, base_url)) is None:
        return None
    return KnownModel(name, find_price(model, base_url), find_context(model, base_url))


def known_models() -> Mapping[str, KnownModel]:
    """The models of vendors that are known by name, by their short names: vendor by vendor, in alphabetical order.

    Without those that no price is known of.

    >>> known_models()["anthropic:claude-haiku-4-5"].context
    200000
    """
    found: dict[str, KnownModel] = {}
    for vendor, its in VENDORS.items():
        if its.home is None or its.home.key_variable is None:
            continue
        prefix = its.prices or vendor
        for entry, about in sorted(_table().items()):
            if about.get("litellm_provider") not in (prefix, vendor, f"{vendor}_chat"):
                continue
            model = entry.removeprefix(f"{prefix}/")
            known = find_model(model, its.home.base_url)
            if known is not None and known.price is not None and known.entry == entry:
                found[f"{vendor}:{model}"] = known
    return found


def models_named(words: str) -> Mapping[str, KnownModel]:
    """Those of `known_models` whose short names hold all of some words, in whatever case."""
    parts = words.lower().split()
    return {name: known for name, known in known_models().items() if all(part in name.lower() for part in parts)}


def nearest_model(model: str, base_url: str | None = None) -> str | None:
    """The short name of the known model whose name is most like another, of the vendor at `base_url` alone if given.

    None where there is none, and for an address of no vendor.

    >>> nearest_model("gpt-4.1-mni", "https://api.openai.com/v1")
    'openai:gpt-4.1-mini'
    """
    sellers = {name for name, vendor in VENDORS.items() if base_url is None or vendor is vendor_of(base_url)}
    sold = (name.partition(":") for name in known_models())
    names = {
        alias: f"{seller}:{own}" for seller, _, own in sold if seller in sellers for alias in (own, f"{seller}:{own}")
    }
    near = nearest(model, names, cutoff=0.7)
    return None if near is None else names[near]


def selling_vendor(model: str) -> str | None:
    """The vendor of a model by its bare name, where the price table has that for one of the vendors; else None.

    >>> selling_vendor("claude-sonnet-4-5")
    'anthropic'
    """
    table, listed = _table(), _table().get(model, {}).get("litellm_provider")
    sold = []
    for name, vendor in VENDORS.items():
        prefix = vendor.prices or name
        if vendor.home is None or vendor.home.key_variable is None or find_price(model, vendor.home.base_url) is None:
            continue
        if listed in (prefix, name):
            return name
        if f"{prefix}/{model}" in table:
            sold.append(name)
    return sold[0] if len(sold) == 1 else None


def find_price(model: str, base_url: str | None = None) -> TokenPrice | None:
    """The price of a model, in nano-dollars per million tokens rounded up; None where the table does not know it.

    The name is tried as the table writes models of the vendor at `base_url`, where that is known, then as it is, then
    without its first `vendor/`. Only base rates are read: surcharges for very long
    prompts and discounts of batches are left out. Rates of cached input count where they are above nothing and not
    above the input's, those of writing to a cache where they are above the input's; other values in some
    entries are gaps or mistakes, and using them could spend more than was counted.
    """
    entry = _entry(model, base_url)
    if entry is None:
        return None
    given, output, cached, written = (_rate(entry.get(name)) for name in _RATES)
    if given is None or output is None:
        return None
    return TokenPrice(
        given,
        output,
        cached if cached is not None and 0 < cached <= given else None,
        written if written is not None and written > given else None,
    )


def find_context(model: str, base_url: str | None = None) -> int | None:
    """How many tokens a model takes in, found by its name as `find_price` does; None where the table does not say.

    Vendors count the answer within it or beside it, and the table does not tell which.
    """
    entry = _entry(model, base_url)
    tokens = None if entry is None else entry.get("max_input_tokens")
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def _entry(model: str, base_url: str | None) -> Mapping[str, Any] | None:
    name = _entry_name(model, base_url)
    return None if name is None else _table()[name]


def _entry_name(model: str, base_url: str | None) -> str | None:
    table = _table()
    prefix = vendor_of(base_url or "").prices
    names = (f"{prefix}/{model}" if prefix else model, model, model.partition("/")[2])
    name = next((name for name in names if name in table), None)
    return name if name is not None and table[name].get("mode") in _MODES else None


def _rate(dollars_per_token: object) -> int | None:
    if isinstance(dollars_per_token, bool) or not isinstance(dollars_per_token, int | Decimal):
        return None
    return int((Decimal(dollars_per_token) * _NANO_PER_MILLION_TOKENS).to_integral_value(ROUND_CEILING))


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, Any]]:
    """Entries by name, read once a process; empty where litellm is not installed or ships no table."""
    package = find_spec("litellm")
    if package is None or package.origin is None:
        return {}
    path = Path(package.origin).with_name(_PRICE_TABLE)
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8") as file:
        table: dict[str, dict[str, Any]] = json.load(file, parse_float=Decimal)
    return table
