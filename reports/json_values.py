"""Records as plain JSON values: the one way from what was measured to a document."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

OPTIONAL: Mapping[str, bool] = {"optional": True}
"""Metadata of a field that a document has only where it is not None."""


def json_values(value: Any) -> Any:
    """A record, or values that hold some, as plain JSON values: floats to six decimals, so that equal records have
    equal bytes; what is not finite is null.

    A field's metadata may name its `key`, where that is no name of Python's, and say that it is `OPTIONAL`.

    >>> json_values({"share": 2 / 3, "rows": (1, float("nan"))})
    {'share': 0.666667, 'rows': [1, None]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return round(value, 6) + 0.0 if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): json_values(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(entry) for entry in value]
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        known = {one: getattr(value, one.name) for one in fields(value)}
        return {
            one.metadata.get("key", one.name): json_values(entry)
            for one, entry in known.items()
            if entry is not None or not one.metadata.get("optional")
        }
    return value


def flat_values(records: Iterable[object]) -> dict[str, Any]:
    """The fields of some records in one document, a later record's over an earlier one's of the same key."""
    return {key: entry for record in records for key, entry in json_values(record).items()}
