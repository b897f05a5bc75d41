"""From verdicts in a store or in a table to a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from venire.arena.errors import InputError
from venire.arena.records import GENERATE, Origin, Shape
from venire.judges import PROTOCOLS
from venire.reports.board import Board, build
from venire.storage import frames
from venire.storage.formats import read_verdicts
from venire.storage.formats.battles import read_battles
from venire.storage.formats.judged import BothBad, Judged
from venire.storage.store import Store, open_store

__all__ = ["choose_campaign", "is_store", "rate", "rate_campaign"]


def is_store(path: Path) -> bool:
    """Whether a file is a DuckDB database, by its first bytes; a missing file counts as one by its ending.

    Raises InputError for a folder.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a store or a table of battles")
    if not path.exists():
        return path.suffix in (".duckdb", ".db")
    with path.open("rb") as file:
        return file.read(12)[8:12] == b"DUCK"


def rate(
    path: Path | str | Sequence[Path | str],
    *,
    campaign: str | None = None,
    mapping: Mapping[str, str] | None = None,
    origin: Origin | None = None,
    replicates: int = 200,
    seed: int | None = None,
    form: str | None = None,
    both_bad: BothBad = "tie",
    baseline: str | None = None,
) -> Board:
    """The board of a store's campaign (the only one, unless named), or of verdicts in one or several files.

    `origin` says where a file's verdicts come from, recorded unless told; a store knows by itself. `form` is the files'
    format (`storage.formats`), guessed from their columns unless told; `both_bad` is what a verdict that both are bad
    counts as, and `baseline` whom all models met where the files do not say. Of a format that is not a plain table the
    board's diagnostics have `source`: what became of the rows. Raises InputError for a path that cannot be read, a
    campaign that is not there, and an argument that does not apply.
    """
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(one) for one in path]
    if not paths:
        raise InputError("nothing was named: name a store or files of verdicts")
    stores = [one for one in paths if is_store(one)]
    if stores and len(paths) > 1:
        raise InputError(f"{stores[0]} is a store: rate it by itself, or `venire store merge` several")
    if not stores:
        if campaign is not None:
            raise InputError(f"{paths[0]} is a table of battles and has no campaigns: leave --campaign out")
        return _rate_files(paths, mapping or {}, form, both_bad, baseline, origin or Origin.RECORDED, replicates, seed)
    if mapping or origin is not None or form is not None or baseline is not None or both_bad != "tie":
        raise InputError(
            f"{paths[0]} is a store, which knows its columns and origins: leave --map and --origin out, --format, "
            "--baseline and --both-bad too"
        )
    with open_store(paths[0], create=False) as store:
        return rate_campaign(store, choose_campaign(store, campaign), replicates=replicates, seed=seed)


def _rate_files(
    paths: Sequence[Path],
    mapping: Mapping[str, str],
    form: str | None,
    both_bad: BothBad,
    baseline: str | None,
    origin: Origin,
    replicates: int,
    seed: int | None,
) -> Board:
    found: Judged | None = read_verdicts(paths, form, mapping=mapping, baseline=baseline)
    if found is None:
        if len(paths) > 1:
            raise InputError(f"{paths[1]}: a plain table is rated by itself; put the tables together into one")
        battles = read_battles(paths[0], mapping)
        return build(battles, origins=[origin], replicates=replicates, seed=seed or 0)
    board = build(found.fitted(both_bad), origins=[origin], replicates=replicates, seed=seed or 0)
    return replace(board, diagnostics={**board.diagnostics, "source": found.told(both_bad)})


def rate_campaign(
    store: Store, campaign: frames.CampaignRow, *, replicates: int = 200, seed: int | None = None
) -> Board:
    """The board of one campaign of an open store; the seed is the campaign's own unless another is given."""
    judges = frames.judges(store, campaign.id)
    known = [PROTOCOLS[judge.protocol] for judge in judges if judge.protocol in PROTOCOLS]
    if known and not any(entry.shape is Shape.PAIR for entry in known):
        raise InputError(
            f"campaign {campaign.name!r} has no judge of pairs to rate models from: what its judges said is in the "
            "views grade (answers one by one) and ballot (answers ranked): venire sql STORE 'select * from ballot'"
        )
    return build(
        frames.battles(store, campaign.id),
        reference=frames.elos(store),
        origins={judge.origin for judge in judges},
        replicates=replicates,
        seed=campaign.seed if seed is None else seed,
        families=frames.families(store),
        judge_families={judge.name: judge.family for judge in judges if judge.family is not None},
    )


def _generates(store: Store, campaign: frames.CampaignRow) -> bool:
    """Whether contestants are asked in a campaign, and nobody judges."""
    asked = frames.judges(store, campaign.id)
    return bool(asked) and all(one.protocol == GENERATE for one in asked)


def choose_campaign(store: Store, name: str | None) -> frames.CampaignRow:
    """The named campaign, or of the only one that judges. Raises InputError naming those that are there."""
    there = [one for one in frames.campaigns(store) if not _generates(store, one)]
    if not there:
        raise InputError(f"the store {store.path} has no campaign yet: `venire run FILE` starts one")
    names = ", ".join(one.name for one in there)
    if name is None:
        if len(there) > 1:
            raise InputError(f"the store {store.path} has several campaigns, name one with --campaign: {names}")
        return there[0]
    for one in there:
        if one.name == name:
            return one
    raise InputError(f"the store {store.path} has no campaign {name!r}; there are: {names}")
