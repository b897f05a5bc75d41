"""File formats, one file each: how a user's data comes in."""

from __future__ import annotations

from venire.storage.formats import tables

__all__ = ["FORMATS"]

FORMATS = {"table": tables.read}
