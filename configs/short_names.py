"""Short names of models, such as `openai:gpt-4.1-mini`: the vendor before a model says where it is asked.

They are written out before anything is checked or compared, so that a judge is the same written long and short. Only
a model that is given with neither `provider` nor `base_url` can be a short name: everywhere else a colon or a slash is
part of the model's own name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from venire.arena.registry import PROVIDERS
from venire.arena.wording import nearest
from venire.configs.problems import quoted

_SHORT = re.compile(r"([^:/]+)[:/](.+)", re.DOTALL)
_SIMULATED = "simulated"


def written_out(table: Mapping[str, Any], *, fallback: bool = False) -> Mapping[str, Any]:
    """The table of a judge, contestant, editor or fallback with the vendor of its model written out.

    What the table gives itself stays: another `key_variable`, or a price where a server of one's own is free.

    >>> written_out({"model": "mistral:mistral-large-latest"})["key_variable"]
    'MISTRAL_API_KEY'
    """
    model, provider = table.get("model"), table.get("provider")
    if isinstance(provider, str):
        return {**table, "provider": PROVIDERS.named(provider)}
    if not isinstance(model, str) or "base_url" in table or "provider" in table:
        return table
    vendor, name = _split(model)
    if vendor == _SIMULATED:
        return {**table, "model": f"{_SIMULATED}/{name}"}
    for spoken, entry in PROVIDERS.items() if vendor else ():
        found = entry.vendor(vendor)
        if found is not None and found.home is not None:
            return {**_keys(table, found.home, fallback), **table, "model": name, "provider": spoken}
    return table


def _split(model: str) -> tuple[str, str]:
    """The word before a model, in lower case, and the model; an empty word where nothing stands before it."""
    match = _SHORT.fullmatch(model)
    return ("", model) if match is None else (match[1].lower(), match[2])


def _keys(table: Mapping[str, Any], home: Any, fallback: bool) -> dict[str, Any]:
    """What a vendor's home says in place of keys of a table; a fallback cannot be free."""
    keys = {"base_url": home.base_url}
    if home.key_variable is not None:
        return keys if "key_variables" in table else {**keys, "key_variable": home.key_variable}
    return keys if fallback or "price" in table else {**keys, "free": True}


def missing_address(model: str) -> str:
    """A sentence for a model whose name does not say where it is asked, with what to write in its place.

    >>> missing_address("opnai:gpt-4o")
    'missing, and "opnai" is no vendor that is known by name: did you mean openai:gpt-4o? Otherwise give base_url'
    """
    vendor, name = _split(model)
    vendors = {known: one for entry in PROVIDERS.values() for known, one in entry.vendors.items()}
    names = [known for known, one in vendors.items() if one.home is not None]
    if vendor in vendors and vendors[vendor].home is None:
        return f"missing; every account at {vendor} has an address of its own, and its own names for models: give both"
    if vendor in names:
        return f"missing; leave out provider, which the model {quoted(model)} names itself"
    aliases = {alias: known for known in names for alias in (known, *vendors[known].aliases)}
    if near := nearest(vendor, aliases, cutoff=0.8):
        what = f"{quoted(vendor)} is no vendor that is known by name"
        return f"missing, and {what}: did you mean {aliases[near]}:{name}? Otherwise give base_url"
    return (
        "missing; give the URL where the model is asked, or write its vendor before it, as in openai:gpt-4.1-mini; "
        f"known are {', '.join(names)}, simulated"
    )
