"""The source of verdicts: a store's campaign, files or a table in memory, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from venire.arena.campaigns import CampaignSettings
from venire.arena.choices import BothBad, Unranked
from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.configs.loading import resolve, store_of
from venire.configs.schema import Campaign
from venire.storage.store.store import Store
from venire.storage.transfer.formats.source import TableSource
from venire.storage.transfer.memory import MemoryTable, is_table, memory_table

Rateable = Any
"""A store's path, the open `Store`, or its campaign; the path of a file of verdicts, or several; or a table in memory:
of pandas, polars or Arrow, a dict of columns, or a list of dicts, with the columns that a file would have."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of verdicts: a store's campaign, or files or a table in memory, and how to read them.

    `mapping` maps our column names to the files', `values` a table's words for winners to ours, `where` keeps rows by
    column and value, `cluster` names the column
    whose rows share their noise ("none": no column). `origin` is the origin of a file's verdicts, by default
    "recorded"; a store contains its own. `form` is the files' format (`storage.transfer.formats`), by default inferred
    from the columns. `both_bad` sets how a "both are bad" verdict counts, and `baseline` is the opponent of all models
    where the files do not name it. `reference` is a file of known ratings, or a group of people by its name ("people":
    the only one), whose votes are rated; it replaces the ratings of a store. `human` names the people whose votes
    judges are compared with: a group of a store, by default its only one, or a judge of a table. `unranked` sets how a
    model without a row on a ballot counts (`ratings.ballots`).
    """

    paths: tuple[TableSource, ...]
    campaign: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    cluster: str | None = None
    origin: Origin | None = None
    form: str | None = None
    both_bad: BothBad | None = None
    baseline: str | None = None
    reference: Path | None = None
    unranked: Unranked = "below"
    human: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)


def places(source: Rateable) -> tuple[TableSource, ...]:
    """What a caller names as the source of verdicts: paths, or one table in memory; a campaign names its store.

    Raises InputError for anything else, and as `store_of` does.
    """
    if isinstance(source, Campaign | CampaignSettings):
        return (resolve(source).store,)
    if isinstance(source, str | Path):
        return (store_of(Path(source)),)
    if isinstance(source, Store):
        return (source.path,)
    if is_table(source):
        return (memory_table(source),)
    if isinstance(source, Sequence) and all(isinstance(one, str | Path) for one in source):
        return tuple(Path(one) for one in source)
    raise InputError(
        f"verdicts cannot be read from {type(source).__name__}: give the path of a store or of files, an open store, a "
        "table of pandas, polars or Arrow, a dict of columns, or a list of dicts"
    )


def is_store(path: TableSource) -> TypeGuard[Path]:
    """Whether a file is a DuckDB database, by its first bytes; a missing file is classified by its suffix.

    Raises InputError for a folder.
    """
    if isinstance(path, MemoryTable):
        return False
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a store or a table of battles")
    if not path.exists():
        return path.suffix in (".duckdb", ".db")
    with path.open("rb") as file:
        return file.read(12)[8:12] == b"DUCK"
