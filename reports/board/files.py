"""Verdicts of files, and of tables in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from venire.arena.errors import InputError
from venire.arena.hints import setting
from venire.arena.records import Origin
from venire.ratings.data.ballots import to_battles
from venire.reports.board.source import VerdictSource
from venire.reports.board.verdicts import Verdicts
from venire.storage.transfer.formats import TABLE, guess, read_verdicts
from venire.storage.transfer.formats.ballots import BallotTable, has_ballots, read_ballot_table
from venire.storage.transfer.formats.battles import read_battle_table
from venire.storage.transfer.formats.judged import ImportedVerdicts

_BALLOTS = "ballots"
"""The format of a table of ballots, as `--format` names it."""


def read_files(source: VerdictSource, features: Sequence[str]) -> Verdicts:
    """The verdicts of a checked source of files, with the named covariates.

    Raises InputError for files that cannot be read, and for settings that these do not take.
    """
    origins = [source.origin or Origin.RECORDED]
    given = {
        "values": source.values,
        "both_bad": source.both_bad,
        "baseline": source.baseline,
        "covariate": features,
        "cluster": source.cluster_column,
    }
    voted = _file_ballots(source, given)
    if voted is not None:
        pairs = to_battles(voted.ballots)
        return Verdicts(replace(pairs, clustering=source.clustering), origins, source=voted.reading())
    form = TABLE if source.cluster_column is not None or features else source.form
    found: ImportedVerdicts | None = read_verdicts(
        source.paths,
        form,
        mapping=source.mapping,
        values=source.values,
        baseline=source.baseline,
        where=source.where,
    )
    if found is not None:
        both_bad = source.both_bad or "tie"
        battles = replace(found.fitted(both_bad), clustering=source.clustering)
        return Verdicts(battles, origins, source=found.reading(both_bad))
    if len(source.paths) > 1:
        raise InputError(f"{source.paths[1]}: a plain table is rated by itself; put the tables together into one")
    if source.both_bad is not None or source.baseline is not None:
        raise InputError(
            f"{source.paths[0]} is a plain table, which names both models and knows no both-bad verdicts: leave "
            f"{setting('both_bad')} and {setting('baseline')} out"
        )
    table = read_battle_table(
        source.paths[0],
        source.mapping,
        values=source.values,
        where=source.where,
        cluster=source.cluster,
        features=[name for name in features if name != "position"],
    )
    return Verdicts(table.battles, origins, source=table.reading())


def _file_ballots(source: VerdictSource, given: Mapping[str, object]) -> BallotTable | None:
    """The ballots of a file; None if it is not a file of ballots, by `form` or, by default, by its columns.

    `given` are options by name that do not apply to ballots. Raises InputError if one of them was given, for several
    files, and as `read_ballots` does.
    """
    path, form, below = source.paths[0], source.form, source.unranked == "below"
    # Without a format, grades of MT-bench have a model and a score too.
    other = form is None and not source.mapping and guess(path) != TABLE
    if other or form not in (None, _BALLOTS) or (form is None and not has_ballots(path, source.mapping)):
        if not below:
            raise InputError(f"{path} holds no ballots (columns model and rank): leave {setting('unranked')} out")
        return None
    if len(source.paths) > 1:
        raise InputError(f"{source.paths[1]}: a table of ballots is rated by itself; put the tables together into one")
    if said := [setting(name) for name, value in given.items() if value]:
        raise InputError(f"{path} is a table of ballots: leave {', '.join(said)} out")
    return read_ballot_table(path, source.mapping, where=source.where, below=below)
