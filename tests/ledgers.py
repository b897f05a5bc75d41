"""The file that an embedded server keeps of its requests, read again."""

from __future__ import annotations

from pathlib import Path

import orjson

from venire.simulation.ledger import LedgerEntry


def read_ledger(path: Path) -> list[LedgerEntry]:
    """The entries in a ledger's file, each marked as answered where a later line records it.

    A line truncated by the end of the process is left out.
    """
    entries: list[LedgerEntry] = []
    latest: dict[int, LedgerEntry] = {}
    for line in path.read_bytes().splitlines():
        try:
            fields = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if "body" in fields:
            billed = fields.pop("billed", None)
            entries.append(LedgerEntry(**fields, billed=None if billed is None else tuple(billed)))
            latest[fields["ordinal"]] = entries[-1]
        else:
            latest[fields["ordinal"]].answered = fields["answered"]
    return entries
