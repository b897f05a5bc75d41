"""What models cost and how much they take in, from the table that litellm ships, read as a file.

litellm itself is not imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from venire.arena.campaigns import TokenPrice
from venire.judges.providers.vendors import vendor_of

__all__ = ["find_context", "find_price"]

_TABLE = "model_prices_and_context_window_backup.json"
_RATES = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
_MODES = frozenset({"chat", "completion", "responses"})
_NANO_PER_MILLION_TOKENS = 10**9 * 10**6


def find_price(model: str, base_url: str | None = None) -> TokenPrice | None:
    """The price of a model, in nano-dollars per million tokens rounded up; None where the table does not know it.

    The name is tried as the table writes models of the vendor at `base_url`, where that is known, then as it is, then
    without its first `vendor/`. Only base rates are read: surcharges for very long
    prompts and discounts of batches are left out. Rates of cached input count where they are above nothing and not
    above the input's, those of writing to a cache where they are above the input's; what else stands there in some
    entries is a gap or a mistake, and taking it for true could spend more than was counted.
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
    table = _table()
    prefix = vendor_of(base_url or "").prices
    names = (f"{prefix}/{model}" if prefix else model, model, model.partition("/")[2])
    entry = next((table[name] for name in names if name in table), None)
    return entry if entry is not None and entry.get("mode") in _MODES else None


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
    path = Path(package.origin).with_name(_TABLE)
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8") as file:
        table: dict[str, dict[str, Any]] = json.load(file, parse_float=Decimal)
    return table
