"""Where verdicts come from and how they are read: one record for the command line, Python, boards, audits and reports.

A setting of a source is a field of `VerdictSource`, a keyword in `SourceKeywords` and an option in
`cli.verdict_options.SourceOptions`; each verb and each public function that reads verdicts then takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, TypeGuard, Unpack

from venire.arena.battles import Clustering
from venire.arena.campaigns import CampaignSettings
from venire.arena.choices import BothBad, Unattempted, Unranked
from venire.arena.errors import InputError
from venire.arena.hints import setting
from venire.arena.records import Origin
from venire.configs.loading import resolve, store_of
from venire.configs.schema import Campaign
from venire.storage.store.opening import reading
from venire.storage.store.store import Store
from venire.storage.transfer.formats.columns import RESPONDENTS
from venire.storage.transfer.formats.source import TableSource
from venire.storage.transfer.memory import MemoryTable, is_table, memory_table

Rateable = Any
"""A store's path, the open `Store`, or its campaign; the path of a file of verdicts, or several; or a table in memory:
of pandas, polars or Arrow, a dict of columns, or a list of dicts, with the columns that a file would have."""

_OF_TABLES = ("mapping", "values", "where", "origin", "form", "both_bad", "baseline")
"""Settings of tables, which a store has no use for."""


class SourceKeywords(TypedDict, total=False):
    """The keywords of public functions that read verdicts, as fields of `VerdictSource`; None: not given."""

    campaign: str | None
    mapping: Mapping[str, str] | None
    values: Mapping[str, str] | None
    where: Mapping[str, str | Sequence[str]] | None
    cluster: str | None
    origin: Origin | None
    form: str | None
    both_bad: BothBad | None
    baseline: str | None
    human: str | None
    unranked: Unranked
    unattempted: Unattempted


@dataclass(frozen=True, slots=True)
class VerdictSource:
    """The source of verdicts: a store's campaign, or files or a table in memory, and how to read them.

    `mapping` maps our column names to the files', `values` a table's words for winners to ours, `where` keeps rows by
    column and value, `cluster` names the column whose rows share their noise (by default the instruction and, of five
    respondents or more, the judge; "none": no column). `origin` is the
    origin of a file's verdicts, by default "recorded"; a store contains its own. `form` is the files' format
    (`storage.transfer.formats`), by default inferred from the columns. `both_bad` sets how a "both are bad" verdict
    counts, and `baseline` is the opponent of all models where the files do not name it. `reference` is a file of known
    ratings, or a group of people by its name ("people": the only one), whose votes are rated; it replaces the ratings
    of a store. `human` names the people whose votes judges are compared with: a group of a store, by default its only
    one, or a judge of a table. `unranked` sets how a model without a row on a ballot counts (`ratings.ballots`),
    `unattempted` whether pairs with an answer that was not attempted, or not graded, are rated.
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
    unattempted: Unattempted = "keep"
    human: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Sequence[TableSource], **given: Any) -> VerdictSource:
        """The source with the settings that were given; None leaves a setting at its default."""
        known = cls.__dataclass_fields__  # an unknown name is refused, also where nothing is given
        read = {name: value for name, value in given.items() if value is not None or name not in known}
        return cls(tuple(paths), **read)

    @property
    def store(self) -> Path | None:
        """The store that is read; None for files and tables.

        Raises InputError for a source without a path, for a folder, and for a store beside other files.
        """
        if not self.paths:
            raise InputError("nothing was named: name a store or files of verdicts")
        stores = [one for one in self.paths if _is_store(one)]
        if stores and len(self.paths) > 1:
            raise InputError(f"{stores[0]} is a store: rate it by itself, or `venire store merge` several")
        return stores[0] if stores else None

    @property
    def cluster_column(self) -> str | None:
        """The column of a table whose rows share their noise, where it is neither the instruction nor the judge."""
        return None if self.cluster in ("none", "instruction_id", *RESPONDENTS) else self.cluster

    @property
    def clustering(self) -> Clustering:
        """Which rows share their noise, of a table as far as it has no column `cluster_column`."""
        if self.cluster is None:
            return "crossed"
        return "none" if self.cluster == "none" else "judge" if self.cluster in RESPONDENTS else "cluster"

    def checked(self) -> VerdictSource:
        """The same source. Raises InputError as `store` does, and for a setting that it does not take."""
        if self.store is None:
            if self.campaign is not None:
                raise InputError(
                    f"{self.paths[0]} is a table of battles and has no campaigns: leave {setting('campaign')} out"
                )
            return self
        if given := [name for name in _OF_TABLES if getattr(self, name)] + ["unranked"] * (self.unranked != "below"):
            raise InputError(
                f"{self.store} is a store, which knows its columns and origins: leave "
                f"{', '.join(map(setting, given))} out"
            )
        if self.cluster_column is not None:
            raise InputError(f"{self.store} is a store: {setting('cluster')} takes instruction_id, judge or none")
        return self

    @contextmanager
    def opened(self) -> Iterator[Store | None]:
        """The store, open for all that reads it meanwhile; None for files and tables.

        Raises InputError as `checked` does, and what `open_store` raises.
        """
        path = self.checked().store
        if path is None:
            yield None
        else:
            with reading(path) as store:
                yield store


def verdict_source(
    source: Rateable, reference: Path | str | None = None, **reading: Unpack[SourceKeywords]
) -> VerdictSource:
    """The source that a caller in Python names, and how it is to be read.

    Raises InputError for anything else than a `Rateable`, and as `store_of` does.
    """
    return VerdictSource.of(_paths(source), reference=None if reference is None else Path(reference), **reading)


def _paths(source: Rateable) -> tuple[TableSource, ...]:
    """The paths that a caller names, or one table in memory; a campaign names its store."""
    if isinstance(source, Campaign | CampaignSettings):
        return (resolve(source).store,)
    if isinstance(source, str | Path):
        return (store_of(Path(source)),)
    if isinstance(source, Store):
        return (source.path,)
    if is_table(source):
        return (memory_table(source),)
    if isinstance(source, Sequence) and all(isinstance(path, str | Path) for path in source):
        return tuple(map(Path, source))
    raise InputError(
        f"source: verdicts cannot be read from {type(source).__name__}: give the path of a store or of files, an open "
        "store, a table of pandas, polars or Arrow, a dict of columns, or a list of dicts"
    )


def _is_store(path: TableSource) -> TypeGuard[Path]:
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
